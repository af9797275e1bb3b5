"""Checks of the displays of a model: its picture, its samples, and its attention."""

from __future__ import annotations

from collections.abc import Callable

from ...random import seed_everything
from ...train.evaluation import evaluation_mode
from ...viz.drawing.scene import Scene
from ..attention import attention_of
from ..loaded import Loaded
from .calls import Failed, unchanged

__all__ = ["SHOWN", "shows"]


def shows(loaded: Loaded) -> str:
    """Produce each display twice: the same seed gives the same, and the model is unchanged."""
    spec = loaded.spec
    seen = []
    for name in [name for name in SHOWN if getattr(spec, name) is not None]:
        if name == "attend" and not spec.inputs_for(loaded.config):
            seen.append("attend not tried: there are no example_inputs to try it on")
            continue
        answers = []
        with unchanged(loaded.model, f"its {name}(…)"), evaluation_mode(loaded.model):
            for _ in range(2):
                seed_everything(0)
                answers.append(SHOWN[name](loaded))
        if answers[0] != answers[1]:
            raise Failed(f"the same seed gives two different answers of its {name}(…)")
        seen.append(answers[0][0])
    return "; ".join(seen)


def _picture(loaded: Loaded) -> tuple[str, str]:
    picture = loaded.draw()
    if picture is None:
        return "draws nothing yet", ""
    if not isinstance(picture, Scene):
        raise Failed(f"its draw(…) returned {type(picture).__name__}, which is no minigrad.viz.Scene")
    return f"draws {picture.width:.0f} by {picture.height:.0f} points", picture.svg()


def _samples(loaded: Loaded) -> tuple[str, str]:
    assert loaded.spec.samples is not None
    text = loaded.spec.samples(loaded)
    if not isinstance(text, str) or not text.strip():
        raise Failed(f"its samples(…) returned {text!r:.100}, which is no text to show")
    return f"samples of {len(text.splitlines())} lines", text


def _attention(loaded: Loaded) -> tuple[str, str]:
    seen = attention_of(loaded, loaded.spec.inputs_for(loaded.config)[0])
    return seen.size, seen.overview().svg()


SHOWN: dict[str, Callable[[Loaded], tuple[str, str]]] = {
    "draw": _picture,
    "samples": _samples,
    "attend": _attention,
}
