"""The model that reads digits: what it is shown, that convolutions learn what one weight a pixel cannot, and what it answers."""

from __future__ import annotations

import numpy as np
import pytest
from minigrad_models import digits
from minigrad_models.digits import images as drawing
from minigrad_models.digits.model import accuracy, as_table, confusions

import minigrad as mg
from minigrad import nn, zoo
from minigrad.errors import ArgumentError

SEVEN = """
      #########
              #
             #
            #
           #
          #
         #
        #
       #
"""
ZERO = "\n".join(["..######..", ".##....##.", *["##......##"] * 9, ".##....##.", "..######.."])


@pytest.fixture(scope="module", params=[0, 1, 2], ids="seed {}".format)
def runs(request, tmp_path_factory):
    """A convolutional and a linear run of one seed, shortened, with images that are drawn from that seed as well."""
    folder, seed = tmp_path_factory.mktemp("runs"), request.param
    options = {"steps": 250, "batch": 32, "lr": 8e-3, "images": 4000, "images_seed": seed, "held_out": 600}
    for net in ("conv", "linear"):
        config = zoo.configure(digits.spec, None, {**options, "net": net})
        zoo.trainer_of(digits.spec, config, folder / net, seed=seed, progress=False).train()
    return {net: zoo.load(folder / net) for net in ("conv", "linear")}


def test_convolutions_read_what_they_have_never_seen_and_one_weight_a_pixel_does_not(runs):
    """Chance is 10 %. The standard deviation of an accuracy of 95 % over 600 images is 0.9 points, so 6 are not luck."""
    conv, linear = (runs[net].evaluate()["accuracy"] for net in ("conv", "linear"))
    assert conv > 0.93
    assert 0.5 < linear < conv - 0.06


def test_what_is_printed_afterwards_is_what_was_measured(runs):
    loaded = runs["conv"]
    text = digits.after(loaded, loaded.path)
    shown, labels = drawing.images(600, loaded.config.images_seed, "test")
    right = int((loaded.model(mg.tensor(shown)).numpy().argmax(axis=1) == labels).sum())
    first, second = text.splitlines()[:2]
    assert first == f"accuracy on 600 test images: {right / 600:.2%}"
    linear = runs["linear"].evaluate()["accuracy"]
    assert abs(float(second.split()[5].rstrip("%")) / 100 - linear) < 0.03
    table = np.array([[0 if n == "·" else int(n) for n in line.split()[1:]] for line in text.splitlines()[4:]])
    assert table.shape == (10, 10) and (table.sum(axis=1) == 60).all() and np.trace(table) == right


def test_it_reads_drawings_of_any_size_and_digits_drawn_anew(runs, tmp_path):
    (tmp_path / "seven.txt").write_text(SEVEN)
    (tmp_path / "zero.txt").write_text(ZERO)
    seven, zero = runs["conv"].predict(str(tmp_path / "seven.txt"), str(tmp_path / "zero.txt"))
    assert (seven["digit"], zero["digit"]) == (7, 0)
    words = [f"{digit}:{number}" for digit in range(10) for number in range(10)]
    answers = runs["conv"].predict(*words)
    assert sum(answer["digit"] == int(word[0]) for word, answer in zip(words, answers)) > 90
    assert all(0.1 <= a["probability"] <= 1 and a["or_probability"] <= a["probability"] for a in answers)
    assert len({answer["drawing"] for answer in answers}) == 100


def test_the_loss_is_that_of_the_formula_on_every_device(device):
    model, (shown, labels) = zoo.create("digits").to(device), drawing.images(10, 0, "train")
    terms = digits.loss(model, (shown, labels))
    logits = model(mg.tensor(shown, device=device)).numpy().astype("float64")
    surprise = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(10), labels]
    assert terms["loss"][0].item() == pytest.approx(surprise.sum(), rel=1e-5) and terms["loss"][1] == 10
    assert terms["accuracy"] == (int((logits.argmax(axis=1) == labels).sum()), 10)


def test_it_learns_by_convolution_and_pooling():
    kinds = [type(module) for module in zoo.create("digits").modules()]
    assert kinds.count(nn.Conv2d) == 2 and kinds.count(nn.MaxPool2d) == 2


def test_images_follow_from_their_seed_and_parts_share_none():
    shown = {part: drawing.images(200, 5, part)[0] for part in ("train", "valid", "test")}
    drawing.images.cache_clear()
    again, labels = drawing.images(200, 5, "train")
    np.testing.assert_array_equal(again, shown["train"])
    assert (np.bincount(labels) == 20).all() and again.shape == (200, 1, 16, 16) and again.dtype == np.float32
    assert (drawing.images(200, 6, "train")[0] != again).any()
    every = np.concatenate(list(shown.values())).reshape(600, -1)
    assert len(np.unique(every, axis=0)) == 600


def test_a_pixel_is_dark_where_the_pen_passed_and_nowhere_else():
    """Distances against a plain loop over densely sampled points of each segment."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 16, (2, 3, 4, 2))
    along = np.linspace(0, 1, 2001)
    expected = np.empty((3, 16, 16))
    for image, row, column in np.ndindex(3, 16, 16):
        px = x[image, :, :1] + along * (x[image, :, 1:] - x[image, :, :1])  # (4, 2001)
        py = y[image, :, :1] + along * (y[image, :, 1:] - y[image, :, :1])
        expected[image, row, column] = np.hypot(px - column - 0.5, py - row - 0.5).min()
    np.testing.assert_allclose(drawing._distances(x, y), expected, atol=5e-3)


def test_a_drawing_keeps_its_shape_when_it_is_fitted(tmp_path):
    page = tmp_path / "bar.txt"
    page.write_text("....\n" * 3 + ".##.\n" * 22 + "....\n")
    image = drawing.read_drawing(str(page))
    assert image.shape == (1, 16, 16) and image.dtype == np.float32
    assert image.sum() == pytest.approx(11.0 * 1.0, rel=1e-5)  # 22 by 2 marks, each half a pixel wide
    assert np.flatnonzero(image[0].sum(axis=0)).tolist() == [7, 8]
    assert image[0].sum(axis=1).tolist() == pytest.approx([0, 0, 0.5, *[1.0] * 10, 0.5, 0, 0])


def test_a_printed_drawing_can_be_read_again(tmp_path):
    image = drawing.from_words("4:2")
    page = tmp_path / "four.txt"
    page.write_text(drawing.as_text(image))
    assert drawing.read_drawing(str(page)).max() > 0.5
    assert (drawing.from_words("4:2") == image).all() and (drawing.from_words("4:3") != image).any()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("..#\n.x.", "line 2(.|\n)*'x'"),
        ("...\n", "is empty"),
        ("", "is empty"),
        (b"\xff#", "line 1"),
        (None, "no drawing"),
    ],
)
def test_what_is_no_drawing_is_said(content, words, tmp_path):
    page = tmp_path / "page.txt"
    if content is not None:
        page.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ArgumentError, match=words):
        drawing.from_words(str(page))


def test_confusions_count_each_image_once():
    class Fixed(nn.Linear):
        def forward(self, input):
            return mg.nn.functional.one_hot(mg.tensor(input)[:, 0, 0, 0].astype("int64"), 10).astype("float32")

    said = np.array([3, 3, 5, 0])
    shown = np.zeros((4, 1, 16, 16), "float32")
    shown[:, 0, 0, 0] = said
    counts = confusions(Fixed(1, 1), shown, np.array([3, 5, 5, 0]))
    assert counts.sum() == 4 and [counts[3, 3], counts[5, 3], counts[5, 5], counts[0, 0]] == [1, 1, 1, 1]
    assert accuracy(counts) == 0.75
    assert as_table(counts).splitlines()[6].split() == ["5", "·", "·", "·", "1", "·", "1", "·", "·", "·", "·"]
