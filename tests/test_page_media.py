"""Pages of models that read pictures and sounds, paint, or translate by recurrence: in a real browser they answer as Python does."""

import re

import numpy as np
import pytest
from minigrad_models.paint.model import Painter
from support import page_driver
from support.page_driver import FEW, exported, fresh

import minigrad as mg
from minigrad.data import BPETokenizer
from minigrad.data.sounds import write_wav
from minigrad.errors import MinigradError
from minigrad.zoo.pages import export_page

opened = page_driver.opened
NUMBERS = ["1", "2", "3", "4", "5"]
PIXELS = """() => {
  const canvas = document.getElementById('picture');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return Array.from(data);
}"""


@pytest.mark.parametrize("name", ["caption", "speech"])
def test_what_is_seen_or_heard_is_said_in_the_words_of_python(opened, name):
    loaded = exported(name)
    page = opened(loaded, width=390)
    assert [page.say(number) for number in NUMBERS] == [answer["text"] for answer in loaded.predict(*NUMBERS)]
    assert page.say("99") == "" and "a number from 1 to 8" in page.state.lower()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = "nodes => nodes.filter((x) => !x.labels.length).map((x) => x.outerHTML)"
    assert page.page.locator("input, textarea, select").evaluate_all(unnamed) == []


def test_a_sound_file_is_heard_as_python_hears_it(opened, tmp_path):
    loaded = exported("speech")
    page = opened(loaded)
    said = loaded.sound(3, str(tmp_path / "spoken.wav"))
    page.page.set_input_files("#file", str(tmp_path / "spoken.wav"))
    page.page.locator("#output", has_text=re.compile(f"^{said}$")).wait_for()
    assert page.page.text_content("#output") == loaded.predict(str(tmp_path / "spoken.wav"))[0]["text"] == said
    (tmp_path / "no.wav").write_bytes(b"RIFF nothing")
    page.page.set_input_files("#file", str(tmp_path / "no.wav"))
    page.page.locator("#notes", has_text="no sound").wait_for()
    write_wav(tmp_path / "long.wav", np.zeros(8000 * 3, "float32"), 8000)
    page.page.set_input_files("#file", str(tmp_path / "long.wav"))
    page.page.locator("#notes", has_text="first 2 seconds").wait_for()


def test_a_picture_comes_out_of_the_noise_that_python_begins_with(opened):
    loaded = fresh("paint", patch=8, layers=1, dim=32, heads=2, strokes=5)
    last = loaded.model.last.weight
    with mg.no_grad():
        last[:] = last * 20  # so that there is something to see
    page, text = opened(loaded), "a small red circle above a large blue square"
    for seed in (0, 1):
        said = page.say(text)
        wanted = loaded.model.paint([text], seed=seed)[-1][0]
        assert said == "painted {painted:.3f}, colour {colour}".format(**loaded.spec.predict(loaded, [text])[0]) or seed
        pixels = np.array(page.page.evaluate(PIXELS)).reshape(32, 32, 4)
        assert wanted.std() > 0.1 and (pixels[..., 3] == 255).all()
        assert np.abs(pixels[..., :3] - 255 * np.moveaxis(wanted, 0, -1)).max() < 1.5
        page.page.click("#again")
        page.wait()
    assert page.say("a pink dog") == "" and "pink, dog" in page.page.text_content("#notes")
    assert isinstance(loaded.model, Painter)


@pytest.mark.parametrize(("cell", "attention"), [("lstm", True), ("gru", False)])
def test_a_recurrent_translator_searches_as_python_does(opened, cell, attention):
    tokenizer = BPETokenizer.train([FEW] * 5, 300)
    sizes = {"corpus": "reverse", "dim": 16, "hidden": 32, "vocab": tokenizer.vocab_size}
    loaded = fresh("seq2seq", tokenizer, cell=cell, attention=attention, **sizes)
    page = opened(loaded, "float32")
    (found,) = loaded.translate(["You see the dög 👋"])
    assert page.say("You see the dög 👋") == found.text
    assert [text for text, _ in page.bars("#alternatives")] == [text for _, text in found.best]


def test_a_vision_transformer_reads_what_is_drawn(opened, tmp_path):
    loaded = exported("vit")
    page, drawing = opened(loaded, width=390), ".....\n.###.\n...#.\n..#+.\n..#.."
    (tmp_path / "seven").write_text(drawing)
    try:
        (answer,) = loaded.predict(str(tmp_path / "seven"))
    except MinigradError:
        pytest.skip("this vit does not read drawings")
    assert page.say(drawing) == str(answer["digit"])


def test_settings_that_a_page_needs_are_named(tmp_path):
    import dataclasses

    from minigrad import zoo

    for kind in ("painting", "described"):
        loaded = fresh(dataclasses.replace(zoo.find("xor"), page=lambda loaded, kind=kind: zoo.Page(kind=kind)))
        with pytest.raises(MinigradError, match="xor has no page"):
            export_page(loaded, tmp_path / "page.html")
