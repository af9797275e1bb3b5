"""The page of a served model: that of `minigrad export`, which asks the server where the model would be too large for a page."""

from __future__ import annotations

from typing import Any

from ..decode.translation import doubted
from ..errors import MinigradError
from ..nn.summary import memory
from ..web.program import Programs
from ..zoo.page import Page
from ..zoo.pages import LARGEST, content_of, with_weights
from ..zoo.pages.content import Content
from ..zoo.pages.html import html_of

__all__ = ["page_of"]

WRITING = {"temperature": 0.8, "tokens": 100}


def page_of(loaded: Any) -> str:
    """The page as HTML. Texts are written and translated by the server, as are answers of models that no page can hold."""
    said = loaded.spec.page(loaded) if loaded.spec.page is not None else Page()
    if "sample" in loaded.verbs and loaded.tokenizer is not None and hasattr(loaded.model, "context"):
        return html_of(loaded, _asking("continuation", {**WRITING, **said.settings}, said))
    if "translate" in loaded.verbs:
        own = {
            "beams": getattr(loaded.config, "beams", None) or 5,
            "alpha": getattr(loaded.config, "alpha", None) or 1.0,
            "doubted": doubted(loaded.tokenizer),
        }
        return html_of(loaded, _asking("translation", own, said))
    if memory(loaded.model) <= 4 * LARGEST:  # in 8 bits it may fit
        try:
            small, chosen = with_weights(loaded)
            whole = html_of(small, content_of(small), chosen)
            if len(whole) <= LARGEST:
                return whole
        except MinigradError:
            pass  # it has no page of its own
    examples = said.examples or loaded.spec.inputs_for(loaded.config)
    labels = {"label": "Input", "heading": "Answer"}
    kind = "predict" if loaded.spec.predict is not None else "embed"
    return html_of(
        loaded, Content(kind, "text", Programs(), {"output": "values"}, {"examples": list(examples)}, None, labels)
    )


def _asking(kind: str, settings: dict[str, Any], said: Page) -> Content:
    return Content(kind, kind, Programs(), settings, {"examples": list(said.examples)})
