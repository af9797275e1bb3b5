"""The zoo: models that anybody can plug in, and the few verbs that work for all of them.

minigrad.zoo.list("gpt*", task="language model")        minigrad.zoo.create("gpt:nano", layers=2)
minigrad.zoo.train("xor", "runs/xor")                   minigrad.zoo.load("runs/xor").predict("1 0")
"""

import builtins
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import nearest
from .config import configure
from .page import Choice, Page, Picture, Slider
from .registry import Entry, PluginError, find
from .registry import list_models as list
from .spec import Config, Data, Demo, DemoResult, ModelSpec, option

if TYPE_CHECKING:
    from .checkpoints import load, load_as
    from .loaded import Loaded
    from .run_arguments import newest_run
    from .training import create, resume, train, trainer_of

# These need the Trainer, which a listing does not load.
_LAZY = {
    "Loaded": "loaded",
    "create": "training",
    "load": "checkpoints",
    "load_as": "checkpoints",
    "newest_run": "run_arguments",
    "resume": "training",
    "train": "training",
    "trainer_of": "training",
}


if not TYPE_CHECKING:  # a type checker knows what is here

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {nearest(name, __all__)}")

    def __dir__() -> builtins.list[str]:
        return sorted({*__all__, "__doc__", "__file__", "__name__", "__path__"})


__all__ = [
    "Choice", "Config", "Data", "Demo", "DemoResult", "Entry", "Loaded", "ModelSpec", "Page", "Picture", "PluginError", "Slider",
    "configure", "create", "find", "list", "load", "load_as", "newest_run", "option", "resume", "train", "trainer_of",
]  # fmt: skip
