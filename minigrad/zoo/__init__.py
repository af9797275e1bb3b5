"""The zoo: models that anybody can plug in, and the few verbs that work for all of them.

minigrad.zoo.list("gpt*", task="lm")        minigrad.zoo.create("gpt:nano", n_layer=2)
minigrad.zoo.train("xor", "runs/xor")       minigrad.zoo.load("runs/xor").predict("1 0")
"""

import builtins
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..engine.errors import nearest
from .registry import Entry, PluginError, find
from .registry import list_models as list
from .settings import configure
from .spec import Config, Data, ModelSpec, option

if TYPE_CHECKING:
    from .running import Loaded, create, load, newest_run, resume, train

_RUNNING = {
    "Loaded",
    "create",
    "load",
    "newest_run",
    "resume",
    "train",
}  # need the Trainer, which a listing need not load


if not TYPE_CHECKING:  # a type checker knows what is here

    def __getattr__(name: str) -> Any:
        if name in _RUNNING:
            return getattr(import_module(f"{__name__}.running"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {nearest(name, __all__)}")

    def __dir__() -> builtins.list[str]:
        return sorted({*__all__, "__doc__", "__file__", "__name__", "__path__"})


__all__ = [
    "Config", "Data", "Entry", "Loaded", "ModelSpec", "PluginError", "configure", "create", "find", "list", "load",
    "newest_run", "option", "resume", "train",
]  # fmt: skip
