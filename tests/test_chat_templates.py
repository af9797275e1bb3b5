"""Chat templates: the text that transformers makes of them, and what happens to one that means harm."""

import pytest

from minigrad.data import DataError
from minigrad.errors import ArgumentError
from minigrad.tokenizers import PretrainedTokenizer
from minigrad.tokenizers.chat import chat_ids, chat_text, render

pytest.importorskip("jinja2")
from minigrad.tokenizers.chat_worker import rendered  # noqa: E402

# In the manner of the models that they are named after.
TEMPLATES = {
    "SmolLM2": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful assistant<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "Llama 2": """{% if messages[0]['role'] == 'system' %}{% set talk = messages[1:] %}{% set rules = messages[0]['content'] %}
{% else %}{% set talk = messages %}{% set rules = false %}{% endif %}
{% for message in talk %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Roles must alternate: user, assistant, user, …') }}
    {% endif %}
    {% if loop.index0 == 0 and rules != false %}{% set content = '<<SYS>>\\n' + rules + '\\n<</SYS>>\\n\\n' + message['content'] %}
    {% else %}{% set content = message['content'] %}{% endif %}
    {% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
    {% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}
{% endfor %}""",
    "Llama 3": """{{- bos_token }}
{%- if not date_string is defined %}{%- set date_string = '26 Jul 2024' %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{{- 'Today Date: ' + date_string + '\\n\\n' }}
{{- system_message }}{{- '<|eot_id|>' }}
{%- for message in messages %}
    {%- if 'tool_calls' in message %}{{- message.tool_calls | tojson(indent=4) }}
    {%- else %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}
""",
    "Qwen 2": """{%- if tools %}{{- '<|im_start|>system\\n# Tools\\n' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) or message.role == 'assistant' %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif loop.first %}{{- '<|im_start|>system\\n' ~ message.content ~ '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""",
    "Mistral": """{%- set ns = namespace(count=0) -%}{{ bos_token }}
{%- for message in messages -%}
    {%- if message['role'] == 'user' -%}{%- set ns.count = ns.count + 1 -%}{{ ' [INST] ' + message['content'] + ' [/INST]' }}
    {%- elif message['role'] == 'system' -%}{%- continue -%}
    {%- elif message['role'] == 'assistant' -%}{{ ' ' + message['content'] + eos_token}}
    {%- else -%}{{ raise_exception('Only user, system and assistant roles are supported!') }}
    {%- endif -%}
{%- endfor -%}{% if ns.count > 99 %}{{ strftime_now('%Y') }}{% endif %}""",
    "Zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{% generation %}{{ '<|assistant|>\\n'  + message['content'] + eos_token }}{% endgeneration %}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
}  # fmt: skip
USER, ANSWER = (
    {"role": "user", "content": "  Wie heißt du? <b>👋</b>\n"},
    {"role": "assistant", "content": 'I\'m "SmolLM" & co. '},
)
CHATS = [
    [USER],
    [{"role": "system", "content": "Be brief. "}, USER],
    [{"role": "system", "content": "Be brief."}, USER, ANSWER, {"role": "user", "content": "2 + 2 = ?"}],
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_give_the_text_that_transformers_gives(name):
    oracle = pytest.importorskip("transformers.utils.chat_template_utils")
    options = {"tools": [{"type": "function", "name": "f<x>"}]} if name == "Qwen 2" else {}
    for chat in CHATS:
        for prompted in (True, False):
            given = {"add_generation_prompt": prompted, **TOKENS, **options}
            (expected,), _ = oracle.render_jinja_template([chat], chat_template=TEMPLATES[name], **given)
            variables = {"messages": chat, "documents": None, "tools": None, **given}
            assert rendered(TEMPLATES[name], variables) == expected
    assert render(TEMPLATES[name], chat, **given) == expected


def test_a_template_can_refuse_messages():
    with pytest.raises(ArgumentError, match="Roles must alternate"):
        render(TEMPLATES["Llama 2"], [USER, USER], **TOKENS)


@pytest.mark.parametrize(
    "harmful",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'a' * 10**10 }}",
        "{{ '%9999999999d' % 1 }}",
        "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ ().__class__.__bases__ }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ undefined.field }}",
    ],
)
def test_a_template_that_means_harm_is_stopped(harmful):
    with pytest.raises(DataError):
        render(harmful, [], seconds=5.0)


def test_messages_are_plain_values():
    with pytest.raises(ArgumentError, match="messages are texts"):
        render("", [{"role": object()}])


def test_the_ids_of_a_chat_have_the_special_tokens_that_the_template_wrote():
    words = ["[UNK]", "<s>", "</s>", "Hi", "there"]
    tokenizer = PretrainedTokenizer.from_json(
        {
            "added_tokens": [{"id": i, "content": words[i], "special": True, "normalized": False} for i in (1, 2)],
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": {"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]},
            "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "[UNK]"},
            "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
        }
    )
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi there"}]
    assert chat_text(tokenizer, chat) == "<s>Hi</s>Hi there</s>"
    assert chat_ids(tokenizer, chat) == [1, 3, 2, 3, 4, 2]


def test_a_tokenizer_without_a_template_says_so():
    tokenizer = PretrainedTokenizer.from_json({"model": {"type": "WordLevel", "vocab": {"a": 0}}})
    with pytest.raises(ArgumentError, match="no chat template"):
        chat_text(tokenizer, [USER])
