"""The attention of a trained model for a text; the plugin's `attend` says what the model is called with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, nearest
from .registry import PluginError, blamed, entries, package_of

if TYPE_CHECKING:
    from ..viz.attention.attention import Attention
    from .loaded import Loaded
    from .spec import ModelSpec

__all__ = ["attention_of", "models_with_attention", "shows_attention"]

NEEDED = {"inputs", "tokens"}
KNOWN = NEEDED | {"keys", "chosen", "sentences", "options", "vocabulary", "logits", "row"}


def shows_attention(spec: ModelSpec) -> bool:
    """Whether the attention of a model can be seen: its spec has `attend`, or a verb `attention` of its own."""
    return spec.attend is not None or "attention" in spec.verbs


def models_with_attention() -> list[str]:
    """The installed models whose attention can be seen."""
    return [entry.name for entry in entries() if entry.spec is not None and shows_attention(entry.spec)]


def attention_of(loaded: Loaded, text: str) -> Attention:
    """All attentions of a loaded model for one text; its spec's `attend` says how the model reads it, or its own verb does it."""
    from ..viz.attention.attention import attention

    spec = loaded.spec
    if "attention" in spec.verbs:
        return loaded.attention(text)
    if spec.attend is None:
        able = ", ".join(models_with_attention()) or "none of the installed models can"
        raise ArgumentError(
            f"{spec.name} shows no attention", f"a model that does: {able}", spec.name,
            "of any model of your own, mg.viz.attention(model, x, tokens=…) shows it",
        )  # fmt: skip
    with blamed(spec, "saying what it attends to"):
        given = _checked(loaded, spec.attend(loaded, text))
        inputs, options = given.pop("inputs"), given.pop("options", None) or {}
        return attention(
            loaded.model,
            *inputs,
            title=spec.name if given.get("sentences") else f"{spec.name}: {text}",
            **given,
            **options,
        )


def _checked(loaded: Loaded, given: Any) -> dict[str, Any]:
    """What `attend` returned, if it is of the right form."""
    plugin = f"{loaded.spec.name!r} of {package_of(loaded.spec)}"
    if not isinstance(given, dict) or not given.keys() >= NEEDED:
        raise PluginError(
            f"{plugin}: its attend(…) must say what the model takes", '{"inputs": (…,), "tokens": […]}', given
        )
    for name in sorted(given.keys() - KNOWN):
        raise PluginError(f"{plugin}: its attend(…) returned {name!r}, which means nothing", fix=nearest(name, KNOWN))
    if not isinstance(given["inputs"], (tuple, list)):
        raise PluginError(
            f"{plugin}: the inputs of its attend(…) are not in a tuple", "(x,)", type(given["inputs"]).__name__
        )
    return dict(given)
