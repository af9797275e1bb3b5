"""The task "translation": `translate` translates texts, `attention` and `tree` show how a translation was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from .task import Task
from .translate_command import TRANSLATE

if TYPE_CHECKING:
    from ...decode import Translation

__all__ = ["TRANSLATION"]


def translate(loaded: Any, texts: str | Sequence[str], **options: Any) -> list[Translation]:
    """Translate a text, or several, by beam search; `beams`, `alpha` and `max_length` are the config's unless given.

    The model is called `model(sources, targets, cache=cache)`, has `new_cache()`, and comes with a tokenizer.
    """
    from ...decode import translate

    for what, is_there in {
        "a tokenizer in its Data": loaded.tokenizer is not None,
        "`new_cache()` in its model": hasattr(loaded.model, "new_cache"),
    }.items():
        if not is_there:
            raise ArgumentError(
                f"{loaded.spec.name} cannot translate", what, "none", "add it, or a verb `translate` to the spec"
            )
    own = {name: getattr(loaded.config, name, None) for name in ("beams", "alpha", "max_length")}
    given = {name: value for name, value in {**own, **options}.items() if value is not None}
    return translate(loaded.model, loaded.tokenizer, [texts] if isinstance(texts, str) else texts, **given)


def logits(loaded: Any, sources: Any, targets: Any) -> Any:
    """The logits of the token after each of the targets, as an array: token numbers (B, S), (B, T) -> (B, T, vocabulary).

    Sources are filled up with the number of the model's padding; targets begin with that of its start.
    """
    from ...engine.modes import no_grad
    from ...ops.creation import tensor

    with no_grad():
        return loaded.model(tensor(sources), tensor(targets)).numpy()


def attention(loaded: Any, text: str, **options: Any) -> Any:
    """All attentions while a text, or its first piece, is translated: a minigrad.viz Attention."""
    from ...decode.translation import attention_inputs
    from ...viz.attention.attention import attention

    given = attention_inputs(
        loaded.tokenizer, loaded.translate([text], **options)[0], getattr(loaded.model, "vocab", None)
    )
    return attention(loaded.model, *given.pop("inputs"), title=loaded.spec.name, **given)


def tree(loaded: Any, translation: Translation) -> dict[str, Any]:
    """The tree of the search that found a translation, for `mg.viz.beam_tree`."""
    from ...decode.translation import search_tree

    return search_tree(loaded.tokenizer, translation)


TRANSLATION = Task(
    "translation",
    verbs={"translate": translate, "logits": logits, "attention": attention, "tree": tree},
    commands={"translate": TRANSLATE},
    first_use=lambda run, text: ["translate", text, "--run", run],
)
