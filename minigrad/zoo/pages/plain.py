"""The pages of all other models: a pad to draw on, sliders, or a text, by what the loss calls the model with."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...engine.backend import is_array, to_numpy
from ...engine.tensor import Tensor
from ...errors import ArgumentError
from ...web.program import Programs, traced
from ..conformance.calls import NotApplicable, first_call
from ..page import Choice, Page, Slider
from .content import Content, tokenizer_form
from .text import classes

__all__ = ["called_arrays", "numbers", "words"]

SAY = "say in its spec what the page shows: ModelSpec(page=lambda loaded: zoo.Page(function=…, arrays=[…]))"
MOST = 256  # numbers that can be typed


def numbers(loaded: Any, said: Page) -> Content:
    """A program `read(*inputs)` for one row: of an image, of numbers, or of tokens."""
    if said.function is None and not said.arrays:
        function, arrays = loaded.model, called_arrays(loaded)
    else:
        function, arrays = said.function or loaded.model, [np.asarray(x) for x in said.arrays]
    rows = [x[:1] for x in arrays]
    if len(rows) == 1 and rows[0].dtype.kind in "iu" and rows[0].ndim == 2 and loaded.tokenizer and not said.inputs:
        return classes(loaded, _as_text(loaded, said))
    programs = Programs()
    programs.add("read", traced(function, rows, holding=[loaded.model]))
    settings = {"output": said.output or _output_of(loaded, programs), "answers": list(said.answers)}
    shown: dict[str, Any] = {"examples": list(said.examples)}
    if len(rows) == 1 and rows[0].dtype.kind == "f" and rows[0].ndim in (3, 4):
        *_, height, width = rows[0].shape
        shown["image"] = {
            "height": height, "width": width, "channels": rows[0].size // (height * width),
            "margin": said.picture.margin, "stroke": said.picture.stroke,
        }  # fmt: skip
        return Content("numbers", "image", programs, settings, shown)
    shown["inputs"] = _controls(loaded, said, arrays)
    count = len(shown["inputs"])
    named = all("choices" in field for field in shown["inputs"])
    shown["wanted"] = (
        "their names" if named else "a number" if count == 1 else f"{count} numbers, with spaces between them"
    )
    return Content("numbers", "numbers", programs, settings, shown, labels={"label": f"Or type {shown['wanted']}"})


def called_arrays(loaded: Any) -> list[np.ndarray]:
    """What the loss of a model's spec calls it with, on the tiny example that every spec has."""
    name = loaded.spec.name
    try:
        call = first_call(loaded.model, loaded.spec.loss, loaded.spec.example(loaded.config))
    except NotApplicable as error:
        raise ArgumentError(f"{name} has no page: {error}", fix=SAY) from None
    if call.kwargs or not all(isinstance(x, Tensor) or is_array(x) for x in call.args):
        raise ArgumentError(f"{name} has no page: its loss calls it with something else than arrays", fix=SAY)
    arrays = [to_numpy(x.data if isinstance(x, Tensor) else x) for x in call.args]
    if any(x.ndim == 0 or x.dtype.kind not in "fiub" for x in arrays):
        raise ArgumentError(f"{name} has no page: its loss calls it with arrays of no rows, or of no numbers", fix=SAY)
    return arrays


def _as_text(loaded: Any, said: Page) -> Page:
    plain = {"frame": [[], [], []], "context": 512, **said.settings}
    output = said.output or ("classes" if loaded.spec.task == "classification" else "values")
    return replace(said, settings=plain, output=output)


def _output_of(loaded: Any, programs: Programs) -> str:
    """Logits of a model that classifies are shown as probabilities, and all else as numbers."""
    if loaded.spec.task != "classification":
        return "values"
    return "probability" if programs.widths["read"] == 1 else "classes"


def _controls(loaded: Any, said: Page, arrays: list[np.ndarray]) -> list[dict[str, Any]]:
    """A control for each number of a row, with the number of the input that it belongs to."""
    places = [(i, column) for i, x in enumerate(arrays) for column in x.reshape(len(x), -1).T]
    given = list(said.inputs) or [_slider(k, column) for k, (_, column) in enumerate(places)]
    if len(given) != len(places) or len(given) > MOST:
        raise ArgumentError(
            f"{loaded.spec.name} has no page", f"a control for each of {len(places)} numbers, up to {MOST}", len(given)
        )
    found = []
    for (i, _), control in zip(places, given):
        if isinstance(control, Choice):
            found.append({"name": control.name, "choices": list(control.choices), "value": control.value, "input": i})
            continue
        step = control.step or (control.most - control.least) / 100 or 1
        found.append({
            "name": control.name, "least": control.least, "most": control.most, "value": control.value, "step": step,
            "input": i,
        })  # fmt: skip
    return found


def _slider(number: int, column: np.ndarray) -> Slider:
    """A slider over what the example has, and a little more."""
    least, most = float(column.min()), float(column.max())
    if column.dtype.kind != "f":
        return Slider(f"input {number + 1}", int(least), int(most), int(column[0]), 1)
    size = 10.0 ** math.floor(math.log10(max(most - least, 1e-6)))
    least, most = math.floor(least / size) * size, math.ceil(most / size) * size
    return Slider(f"input {number + 1}", least, most if most > least else least + 1, round(float(column[0]), 3))


def words(loaded: Any, said: Page) -> Content:
    """A program `read(id)` that says how near each word is to one: (1,) -> (words,)."""
    if said.function is None:
        raise ArgumentError(f"{loaded.spec.name} has no page: it says no function of a word", fix=SAY)
    form = tokenizer_form(loaded)
    if form["kind"] != "word":
        raise ArgumentError(f"{loaded.spec.name} has no page", "a tokenizer of words", repr(loaded.tokenizer))
    programs = Programs()
    programs.add("read", traced(said.function, [np.array([loaded.tokenizer.vocab_size - 1])], holding=[loaded.model]))
    settings = {"output": "values", "shown": 5, "first": 0, **said.settings}
    labels = {"label": "A word", "heading": "The nearest words"}
    return Content("words", "text", programs, settings, {"examples": list(said.examples)}, form, labels)
