"""What a spec may say about its exported page, where the page that every model gets does not know names or ranges."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Choice", "Page", "Picture", "Slider"]


@dataclasses.dataclass(frozen=True)
class Slider:
    """A number that the model takes: its name, its range, and where it stands at first."""

    name: str
    least: float
    most: float
    value: float = 0.0
    step: float | None = None  # a hundredth of the range unless given


@dataclasses.dataclass(frozen=True)
class Choice:
    """A whole number that the model takes, from 0, each with a name."""

    name: str
    choices: Sequence[str]
    value: int = 0


@dataclasses.dataclass(frozen=True)
class Picture:
    """How a drawing becomes the image that the model takes: ink is 1 and paper 0.

    With a `margin`, in pixels, the ink is cut out and enlarged up to it. `stroke` is the width of the pen beside the pad's.
    """

    margin: float | None = None
    stroke: float = 0.1


@dataclasses.dataclass(frozen=True)
class Page:
    """The page of a model. Whatever is not given follows from the model's task, or from how its loss calls it.

    `kind` is one of `minigrad.zoo.pages.KINDS`. `function` of Tensors is traced in the place of the model, on arrays like `arrays`.
    `inputs` are the controls, one for each number of a row. `output` is "classes" (logits), "probability" (the logit of
    yes) or "values", and `answers` are their names. `examples` are texts that can be chosen. `settings` are those of the kind.
    """

    kind: str = ""
    function: Callable[..., Any] | None = None
    arrays: Sequence[Any] = ()
    inputs: Sequence[Slider | Choice] = ()
    picture: Picture = Picture()
    output: str = ""
    answers: Sequence[str] = ()
    examples: Sequence[str] = ()
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
