"""Pages of pretrained language models in a real browser: their tokens, conversations, packed weights, and weights beside the page."""

import pytest
from support import page_driver
from support.page_driver import FEW, Driven, fresh

from minigrad import nn
from minigrad.data import BPETokenizer
from minigrad.decode import Sampling
from minigrad.errors import MinigradError
from minigrad.tokenizers import PretrainedTokenizer
from minigrad.tokenizers.description import description_of
from minigrad.tokenizers.patterns import KNOWN
from minigrad.web.program import runtime
from minigrad.zoo.pages import export_page, export_page_folder
from minigrad.zoo.pages.html import TOKENIZERS
from minigrad.zoo.pages.pretrained import pretrained_form

opened = page_driver.opened
CUT = {
    "gpt2": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    **{name: {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": KNOWN[name]}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]} for name in ("llama3", "qwen2")},
    "smollm": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    ]},
}  # fmt: skip
ODD = [
    "I'll see—you DON'T 12345 \n\n  end",
    "¿Qué? ñandú 東京 👋🏽 <|end|> a<|end|>",
    "x\u2028y\u00a0z\t\tq  ",
    "ſ'ſ 'S it'Ve",
]


@pytest.mark.parametrize("name", CUT)
def test_byte_pairs_of_pretrained_models_give_the_same_ids(opened, name):
    learned = description_of(BPETokenizer.train([FEW, *ODD] * 4, 420))
    end = {"id": 420, "content": "<|end|>", "special": True, "normalized": False}
    tokenizer = PretrainedTokenizer({
        "model": {**learned["model"], "ignore_merges": name == "llama3"}, "decoder": learned["decoder"],
        "pre_tokenizer": CUT[name], "added_tokens": [end], "special_tokens": {"eos_token": "<|end|>"},
    })  # fmt: skip
    assert tokenizer.vocab_size <= 421
    loaded = fresh("gpt", tokenizer, vocab=tokenizer.vocab_size, dim=16, layers=1, heads=2, context=24)
    page = opened(loaded, "float32")
    page.page.evaluate("document.getElementById('temperature').value = 0")
    page.page.evaluate("document.getElementById('tokens').value = 12")
    for text in ODD:
        assert page.say(text) == "".join(loaded.sample(text, tokens=12, sampling=Sampling(0)))
    form = pretrained_form(tokenizer)
    ids = page.page.evaluate(
        "([code, form, texts]) => new Function('form', 'texts', code)(form, texts)",
        [
            runtime("weights", *TOKENIZERS)
            + "\nconst t = tokenizerOf(form); return texts.map((text) => t.encode(text));",
            form,
            ODD,
        ],
    )
    assert ids == [tokenizer.encode(text) for text in ODD]


TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
TURNS = ("Who are you?", "I see.  And then 👋?", "So\nwhat")


SEND_AND_STOP = """() => {
  document.getElementById('input').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
  document.getElementById('stop').click();
}"""


def talker(template=TEMPLATE, **settings):
    special = [{"id": 420 + i, "content": name, "special": True, "normalized": False}
               for i, name in enumerate(("<|end|>", "<|user|>", "<|assistant|>", "<|system|>"))]  # fmt: skip
    learned = description_of(BPETokenizer.train([FEW, *ODD] * 4, 420))
    tokenizer = PretrainedTokenizer({
        "model": learned["model"], "decoder": learned["decoder"], "pre_tokenizer": CUT["gpt2"], "added_tokens": special,
        "special_tokens": {"eos_token": "<|end|>"}, "chat_template": template,
    })  # fmt: skip
    return fresh("gpt", tokenizer, vocab=tokenizer.vocab_size, dim=16, layers=1, heads=2, **settings)


@pytest.mark.parametrize("system", [None, "Be short."])
def test_a_chat_is_the_conversation_that_python_has(opened, system):
    loaded = talker(context=160)
    page, chat = opened(loaded, "float32"), loaded.chat(system)
    page.page.evaluate("document.getElementById('temperature').value = 0")
    page.page.evaluate("document.getElementById('tokens').value = 9")
    page.page.evaluate("text => { document.getElementById('system').value = text; }", system or "")
    for text in TURNS:
        assert page.say(text) == "".join(chat.say(text, tokens=9, sampling=Sampling(0)))
    assert page.page.locator("#talk li").count() == 5  # the newest answer stands below
    page.page.click("#anew")
    assert page.page.locator("#talk li").count() == 0 and page.page.text_content("#output") == ""


def test_a_chat_that_is_too_long_forgets_its_oldest_turns(opened):
    loaded = talker(context=64)
    page, chat = opened(loaded, "float32"), loaded.chat(notice=lambda text: None)
    page.page.evaluate("document.getElementById('temperature').value = 0")
    page.page.evaluate("document.getElementById('tokens').value = 12")
    for text in TURNS:
        assert page.say(text) == "".join(chat.say(text, tokens=12, sampling=Sampling(0)))
    assert "forgotten" in page.page.text_content("#notes")


def test_a_chat_is_typed_sent_and_stopped_at_the_keyboard(opened):
    driven = opened(talker(context=160), "float32", width=390)
    page = driven.page
    page.focus("#input")
    page.keyboard.type("Hello")
    assert page.locator("#talk li").count() == 0
    page.keyboard.press("Enter")
    assert page.locator("#talk li").all_text_contents() == ["youHello"] and page.input_value("#input") == ""
    driven.wait()
    page.keyboard.type("More")
    page.evaluate(SEND_AND_STOP)
    assert page.text_content("#state") == "Stopped." and page.locator("#talk li").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_template_that_does_more_than_turns_is_refused(tmp_path):
    odd = TEMPLATE.replace("<|end|>", "<|end|>{{ loop.index }}")
    with pytest.raises(MinigradError, match="minigrad serve RUN"):
        export_page(talker(odd, context=64), tmp_path / "page.html")


@pytest.mark.parametrize("format", ["f16", "bf16", "i8", "q4_0", "q4_1", "q5_0", "q5_1"])
def test_packed_weights_of_every_format_stay_packed(opened, format):
    tokenizer = BPETokenizer.train([FEW] * 5, 300)
    loaded = fresh("gpt", tokenizer, vocab=tokenizer.vocab_size, dim=64, layers=2, heads=2, context=24)
    for layer in loaded.model.modules():
        if type(layer) is nn.Linear:
            layer.weight = nn.Packed.from_floats(layer.weight, format)
    page = opened(loaded, "float32")
    page.page.evaluate("document.getElementById('temperature').value = 0")
    page.page.evaluate("document.getElementById('tokens').value = 20")
    assert page.say("bad") == "".join(loaded.sample("bad", tokens=20, sampling=Sampling(0)))


@pytest.mark.parametrize("part", [300, 6 * 2**20])
def test_a_page_may_have_its_weights_beside_it(tmp_path, browser, monkeypatch, part):
    monkeypatch.setattr("minigrad.zoo.pages.html.PART", part)
    loaded = fresh("regression")
    folder = export_page_folder(loaded, tmp_path / "page")
    assert (len(list(folder.glob("weights-*.js"))) > 1) == (part == 300)
    context, asked, said = browser.new_context(offline=True), [], []
    opened_page = context.new_page()
    opened_page.on("request", lambda request: asked.append(request.url))
    opened_page.on("console", lambda message: said.append(message.text))
    opened_page.goto((folder / "page.html").resolve().as_uri())
    page = Driven(opened_page)
    assert abs(float(page.say("1.5")) - loaded.predict("1.5")[0]["value"]) < 2e-4
    own = {path.resolve().as_uri() for path in folder.iterdir()}
    assert {url for url in asked if not url.startswith("blob:")} == own and said == []
    context.close()


def test_a_page_without_its_weights_says_so(tmp_path, browser):
    folder = export_page_folder(fresh("regression"), tmp_path / "page")
    (folder / "weights-1.js").unlink()
    page = browser.new_page()
    page.goto((folder / "page.html").resolve().as_uri())
    page.locator("body[data-state=failed]").wait_for()
    assert "weights-1.js is missing or damaged" in page.text_content("#state")
    page.close()
