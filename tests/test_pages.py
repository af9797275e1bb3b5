"""Exported pages in a real browser, from a file and without a network: they answer what Python answers with the same weights."""

import dataclasses
import re

import numpy as np
import pytest
from support import page_driver
from support.page_driver import FEW, RUNS, exported, fresh
from support.small_zoo import SPEC as LINE

import minigrad as mg
from minigrad import nn, zoo
from minigrad.data import BPETokenizer, CharTokenizer, WordTokenizer
from minigrad.decode import Sampling
from minigrad.errors import MinigradError
from minigrad.zoo.pages import export_page, with_weights

opened = page_driver.opened
SENTENCES = """
    You are welcome|Where is the library?|How much does it cost?|I do not look for the blue map|Thank you!|Good morning|
    I'm tired|She doesn't see the dog|We want the red car|They can't buy it|Where's the station?|the house is big|
    I see you. You see me.|Do you want a coffee?|He has two brothers|My sister is here|zebra crossing|hello|
    What is your name?|I will not go|the black cats|a small town|We eat bread|Is it far?|I don't understand|Help!|
    Please|See you tomorrow|It is late|The girl reads a book|The boys do not sleep|You have the key|
    I like the old school|Can you help me?|Nothing|Yes|No|An apple and a pear|She lives in the city|We are happy"""
PHRASES = [text.strip() for text in SENTENCES.split("|")]


@pytest.mark.parametrize("weights", ["int8", "float32"])
def test_the_translator_says_the_same_as_python_with_the_same_weights(opened, weights):
    loaded = exported("translator")
    small, chosen = with_weights(loaded, weights)
    assert chosen == weights
    texts = PHRASES if weights == "int8" else PHRASES[:5]
    page = opened(loaded, weights)
    assert [page.say(text) for text in texts] == [found.text for found in small.translate(texts)]


def test_alternatives_have_the_scores_of_the_search_and_words_say_where_they_looked(opened):
    loaded = exported("translator")
    page = opened(loaded, "float32")
    page.say("You are welcome")
    (found,) = loaded.translate(["You are welcome"])
    said = page.bars("#alternatives")
    assert [text for text, _ in said] == [text for _, text in found.best]
    np.testing.assert_allclose([float(score) for _, score in said], [score for score, _ in found.best], atol=1e-3)
    crosses = [layer for layer in loaded.attention("You are welcome").layers if layer.kind == "cross"]
    weights = crosses[-1].weights.mean(axis=0)
    shares = page.page.locator("#alignment td[title]").evaluate_all(
        "cells => cells.map((cell) => parseFloat(cell.title))"
    )
    np.testing.assert_allclose(np.array(shares).reshape(weights.shape) / 100, weights, atol=1e-3)
    assert page.page.locator("#alignment thead th").all_text_contents() == list(crosses[-1].columns)


def test_doubt_is_shown_with_the_word_that_is_least_sure(opened):
    loaded = exported("translator")
    page, doubted = opened(loaded, "float32"), []
    for text in ("You are welcome", "Hello my friend, how are you doing?", "Where is the library?"):
        (found,) = loaded.translate([text])
        page.say(text)
        sure = page.page.text_content("#sure")
        doubted.append(sure.startswith("doubtful: "))
        assert doubted[-1] is found.is_doubtful and f"{100 * found.confidence:.1f} % sure of each word" in sure
        assert (f", {100 * found.weakest:.1f} % of “" in sure) is found.is_doubtful
    assert doubted == [False, True, False]


def test_a_long_text_is_cut_into_sentences_and_unknown_words_are_named(opened):
    loaded = exported("translator")
    text = "You are welcome. Where is the qwertz?  Thank you!"
    page = opened(loaded, "float32")
    (found,) = loaded.translate([text])
    assert page.say(text) == found.text and len(found.pieces) == 3
    assert "qwertz" in page.page.text_content("#notes")
    assert page.say("   ") == ""


def test_a_language_model_writes_what_python_writes_also_beyond_its_context(opened):
    loaded = exported("gpt")
    page = opened(loaded, "float32")
    page.page.evaluate("document.getElementById('temperature').value = 0")
    assert loaded.model.context < 140
    for prompt, count in (("Ana", 140), ("", 20), ("One day, Ben went to the", 5)):
        page.page.evaluate("count => { document.getElementById('tokens').value = count; }", count)
        assert page.say(prompt) == "".join(loaded.sample(prompt, tokens=count, sampling=Sampling(0)))
    page.page.locator("#place").evaluate("range => { range.value = 1; range.dispatchEvent(new Event('input')); }")
    logits = loaded.logits([loaded.tokenizer.encode("One day, Ben went to the")])[0, -1]
    logits[:5] = -np.inf
    likely = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    said = page.bars()
    assert [token for token, _ in said] == [
        loaded.tokenizer.token(i).replace(" ", "␣") for i in np.argsort(-likely)[: len(said)].tolist()
    ]
    np.testing.assert_allclose(
        [float(number[:-2]) / 100 for _, number in said], np.sort(likely)[::-1][: len(said)], atol=1e-3
    )


SMALL = {"corpus": "reverse", "dim": 32, "heads": 2, "hidden": 48, "depth": 2}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("translator", {"positions": "learned", "position_options": {"max_length": 40}}),
        ("translator", {"positions": "rotary", "decoder": {"recurrence": "ssru"}, "norm_first": False}),
        ("translator", {"positions": "sinusoidal", "decoder": {"recurrence": "ssru"}, "beams": 1}),
        (
            "translator",
            {"activation": "swiglu", "block": {"norm": "rms", "kv_heads": 1}, "separate": "head", "form": "lower"},
        ),
        ("gpt", {"positions": "sinusoidal", "tied": False, "context": 24}),
        ("rnn", {"cell": "lstm"}),
        ("rnn", {"cell": "gru"}),
        ("gpt", {"norm": "rms", "activation": "swiglu", "bias": False, "context": 24}),
    ],
)
def test_other_parts_and_layers_say_the_same(opened, name, settings):
    tokenizer = BPETokenizer.train([FEW] * 5, 300)
    sizes = SMALL if name == "translator" else {"dim": 32, "layers": 2, **({"heads": 2} if name == "gpt" else {})}
    loaded = fresh(name, tokenizer, **{**sizes, **settings, "vocab": tokenizer.vocab_size})
    page = opened(loaded, "int8")
    small, _ = with_weights(loaded, "int8")
    if name == "translator":
        assert page.say("You see the dög 👋") == small.translate("You see the dög 👋")[0].text
        return
    page.page.evaluate("document.getElementById('temperature').value = 0")
    page.page.evaluate("document.getElementById('tokens').value = 30")
    assert page.say("You see the dög") == "".join(small.sample("You see the dög", tokens=30, sampling=Sampling(0)))


def test_a_seed_is_drawn_anew_and_writing_can_be_stopped(opened):
    page = opened(exported("gpt"), "float32")
    first = page.page.text_content("#output")
    page.page.click("#again")
    page.wait()
    assert page.page.text_content("#output") != first
    page.page.evaluate("document.getElementById('tokens').value = 1000")
    page.page.click("#again")
    page.page.click("#stop")
    assert page.state == "Stopped."


def test_a_model_that_answers_writes_its_answer(opened):
    loaded = exported("few_shot")
    page = opened(loaded)
    for prompt in ("abc>cba;fed>def;hag>", "abc>ABC;fed>FED;hag>"):
        assert page.say(prompt) == loaded.predict(prompt)[0]["answer"]


def test_blanks_are_filled_with_the_words_and_chances_of_python(opened):
    loaded = exported("bert")
    page = opened(loaded, "float32")
    one, two = "The <mask> was hungry.", "Ana lost her kite in the park. | <mask> was very sad."
    for text in (one, two):
        said, (answer,) = page.say(text), loaded.predict(text)
        words = answer["<mask>"]
        assert said == text.replace("<mask>", next(iter(words)))
        rows = page.bars()
        assert [word for word, _ in rows[:5]] == list(words)
        np.testing.assert_allclose([float(n[:-2]) / 100 for _, n in rows[:5]], list(words.values()), atol=1e-3)
    assert abs(float(rows[5][1][:-2]) / 100 - answer["follows"]) < 1e-3


def test_classes_of_a_text(opened):
    loaded = fresh(
        "bert",
        WordTokenizer.train("Ana had a red kite . Then Ben helped her ."),
        task="classify",
        classes=("yes", "no"),
        vocab=16,
    )
    page = opened(loaded)
    for text in ("Ana had a red kite.", "Then Ben helped her. | Ana had a kite."):
        (answer,) = loaded.predict(text)
        assert page.say(text) == answer["class"]
        np.testing.assert_allclose(
            [float(n[:-2]) / 100 for _, n in page.bars()], list(answer["probabilities"].values()), atol=1e-3
        )


WORDS = "Ana Ben had lost found a red kite in the park . Who Then helped her ? One day , it was very sad she cried"


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("tag", "One day, Ana lost her red kite in the park."),
        ("answer", "Who lost the kite? | Ana had a red kite. One day, Ana lost it in the park."),
        ("similar", "she was very sad | Ana cried"),
        ("embed", "she was very sad | Ben found the kite in the park."),
    ],
)
def test_tags_answers_and_likeness(opened, task, text):
    tokenizer = WordTokenizer.train(WORDS)
    classes = ("none", "who", "what") if task == "tag" else ()
    loaded = fresh("bert", tokenizer, task=task, classes=classes, vocab=tokenizer.vocab_size)
    (answer,) = loaded.predict(text)
    page = opened(loaded)
    said, rows = page.say(text), dict(page.bars())
    if task == "tag":
        assert said == answer["tags"]
    elif task == "answer":
        assert said == answer["answer"] and abs(float(rows["sure"][:-2]) / 100 - answer["probability"]) < 1e-3
    else:
        assert abs(float(said) - answer["cosine"]) < 2e-4
        assert task == "embed" or abs(float(rows["they say the same"][:-2]) / 100 - answer["same"]) < 1e-3


def test_sliders_choices_and_typed_numbers_are_one(opened):
    loaded = fresh("xor")
    page = opened(loaded)
    for text in ("1 0", "0.25 0.5"):
        assert float(page.say(text)) == pytest.approx(loaded.predict(text)[0]["probability"], abs=2e-4)
    page.page.locator("#controls input").first.focus()
    page.page.keyboard.press("Home")
    page.wait()
    assert page.page.input_value("#input") == "0 0.5"
    assert page.say("1 2 3") == "" and "2 numbers" in page.state


@pytest.mark.parametrize(
    ("name", "texts"),
    [("regression", ["1.5", "-3"]), ("facts", ["Michael Jordan", "Serena Jordan", "Jordan", "Usain"])],
)
def test_other_models_answer_as_python_does(opened, name, texts):
    loaded = fresh(name)
    page = opened(loaded)
    for text in texts:
        (answer,) = loaded.predict(text)
        said = page.say(text)
        assert said == answer["answer"] if name == "facts" else abs(float(said) - answer["value"]) < 2e-4


def test_all_numbers_of_a_row_come_back(opened):
    loaded = fresh("superposition")
    page = opened(loaded)
    given = np.zeros((1, loaded.config.features), "float32")
    given[0, 3] = 0.5
    said = page.say(" ".join(map(str, given[0])))
    np.testing.assert_allclose([float(x) for x in said.split()], loaded.model(mg.tensor(given)).numpy()[0], atol=2e-4)


def test_neighbours_of_a_word(opened):
    tokenizer = WordTokenizer(["dog", "cat", "soup", "red", "blue", "ana", "ben", "park"])
    loaded = fresh("word2vec", tokenizer, vocab=tokenizer.vocab_size)
    page = opened(loaded)
    assert page.say("soup") == ", ".join(loaded.predict("soup")[0]["nearest"])
    assert page.say("spoon") == "" and "spoon" in page.page.text_content("#notes")


@pytest.mark.parametrize("name", ["digits", "bitmlp"])
def test_what_is_drawn_is_read_as_python_reads_the_drawing(opened, tmp_path, name):
    loaded = fresh(name)
    page = opened(loaded, width=390)
    drawing = ".....\n.###.\n...#.\n..#+.\n..#.."
    (tmp_path / "seven").write_text(drawing)
    (answer,) = loaded.predict(str(tmp_path / "seven"))
    assert page.say(drawing) == str(answer["digit"])
    assert float(page.bars()[0][1][:-2]) / 100 == pytest.approx(answer["probability"], abs=1e-3)
    page.page.click("#clear")
    assert page.page.text_content("#output") == ""
    box = page.page.locator("#pad").bounding_box()
    page.page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 200, box["y"] + 60, steps=4)
    page.page.mouse.move(box["x"] + 140, box["y"] + 220, steps=4)
    page.page.mouse.up()
    page.wait()
    (tmp_path / "drawn").write_text(page.page.input_value("#input"))
    assert page.page.text_content("#output") == str(loaded.predict(str(tmp_path / "drawn"))[0]["digit"])


def test_a_stranger_s_plugin_has_a_page_by_its_spec_alone(opened):
    loaded = fresh(LINE)
    page = opened(loaded)
    assert page.page.locator("#controls input[type=range]").count() == 3
    wanted = loaded.model(mg.tensor([[0.5, -1.0, 2.0]])).item()
    assert float(page.say("0.5 -1 2")) == pytest.approx(wanted, abs=1e-4)


class Mood(nn.Module):
    def __init__(self, vocab):
        self.words, self.out = nn.Embedding(vocab, 4), nn.Linear(4, 3)

    def forward(self, ids):
        return self.out(self.words(ids).mean(axis=1))


def test_a_stranger_s_text_classifier_reads_text(opened):
    tokenizer = CharTokenizer("abcdefghij ")
    spec = dataclasses.replace(
        LINE, task="classification", build=lambda config: Mood(tokenizer.vocab_size),
        example=lambda config: (np.array([[5, 6, 7]]), np.array([0])),
        loss=lambda model, batch: {"loss": (nn.functional.cross_entropy(model(mg.tensor(batch[0])), mg.tensor(batch[1])), 1)},
    )  # fmt: skip
    loaded = fresh(spec, tokenizer)
    page = opened(loaded)
    for text in ("bad", "a big head"):
        assert page.say(text) == str(loaded.model(mg.tensor([tokenizer.encode(text)])).argmax(axis=1).item())


@pytest.mark.parametrize("name", ["translator", "gpt", "bert", "digits", "xor"])
def test_pages_fit_a_phone_and_every_control_has_a_name(opened, name):
    loaded = exported(name) if (RUNS / name).is_dir() else fresh(name)
    page = opened(loaded, width=390, dark=True).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = "nodes => nodes.filter((x) => !x.labels.length).map((x) => x.outerHTML)"
    assert page.locator("input, textarea, select").evaluate_all(unnamed) == []
    assert page.locator("#output").get_attribute("aria-live") == "polite"
    assert page.locator("#state").get_attribute("role") == "status"


def test_nothing_but_its_own_script_may_run(tmp_path):
    text = export_page(fresh("xor"), tmp_path / "page.html").read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'" and parts["worker-src"] == "blob:"
    assert all(parts[name].startswith("'sha256-") and " " not in parts[name] for name in ("script-src", "style-src"))
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", text.partition("<script")[0])


def test_a_hostile_name_stays_text(opened):
    hostile = '</script><script>alert(1)</script>"<img src=x onerror=alert(2)>'
    loaded = fresh(dataclasses.replace(LINE, summary=hostile, page=lambda loaded: zoo.Page(answers=[hostile])))
    page = opened(loaded)
    assert hostile in page.page.text_content(".lead") and page.page.locator("img").count() == 0
    page.say("1 2 3")
    assert page.bars()[0][0] == hostile


def test_a_browser_without_workers_says_so(browser, tmp_path):
    path = export_page(fresh("xor"), tmp_path / "page.html")
    page = browser.new_page()
    page.add_init_script("delete window.Worker")
    page.goto(path.resolve().as_uri())
    assert "lacks web workers" in page.text_content("#state")
    page.close()


class Sorting(nn.Module):
    def __init__(self):
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        return self.out(mg.linalg.inv(x.reshape(-1, 1, 1) + 1).reshape(-1, 3))


def test_an_op_without_a_kernel_is_named_with_its_module(tmp_path):
    loaded = fresh(dataclasses.replace(LINE, build=lambda config: nn.Sequential(Sorting())))
    with pytest.raises(MinigradError, match="op 'inv' in the module 'Sequential.0'") as caught:
        export_page(loaded, tmp_path / "page.html")
    assert "minigrad export RUN FOLDER" in str(caught.value)


def test_what_a_page_cannot_be_is_said(tmp_path):
    with pytest.raises(MinigradError, match=r"is too large for a page\n.*15 MB") as caught:
        export_page(
            fresh(
                dataclasses.replace(LINE, build=lambda config: nn.Sequential(nn.Linear(3, 10**6), nn.Linear(10**6, 1)))
            ),
            tmp_path / "p.html",
            "float32",
        )
    assert "--weights int8" in str(caught.value)
    tags = fresh("bert", CharTokenizer("ab"), task="tag", classes=("yes", "no"), vocab=7)
    with pytest.raises(MinigradError, match="a tokenizer of words"):
        export_page(tags, tmp_path / "p.html")
    assert not (tmp_path / "p.html").exists()
