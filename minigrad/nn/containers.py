"""Modules that hold others in order: ModuleList and Sequential."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import ArgumentError
from .module import Module

__all__ = ["ModuleList", "Sequential"]


class _Indexed(Module):
    """Modules under the names "0", "1", …"""

    def _place(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            what = getattr(module, "__name__", type(module).__name__)
            raise ArgumentError(f"{type(self).__name__}: only modules can be in it", "a Module", what)
        setattr(self, str(index), module)
        self._rename(self._name)

    def append(self, module: Module) -> Any:
        """Add a module at the end; returns the whole."""
        self._place(len(self), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add several modules at the end; returns the whole."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.named_children())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.children()))

    def __getitem__(self, index: int | slice) -> Any:
        return list(self.children())[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self._place(range(len(self))[index], module)


class ModuleList(_Indexed):
    """Modules in a list that knows its parts: `for block in self.blocks: x = block(x)`."""

    def __init__(self, modules: Iterable[Module] = ()):
        self.extend(modules)

    def _rename(self, name: str) -> None:
        super()._rename(name)
        for index, child in self.named_children():
            child._rename(f"{name}.{index}")  # a list is not called, so its name goes into the scope with its parts


class Sequential(_Indexed):
    """Modules applied one after the other; a slice of them is a Sequential of the same modules.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
    >>> model(mg.ones(4, 2)).shape
    (4, 1)
    """

    def __init__(self, *modules: Module):
        self.extend(modules)

    def forward(self, x: Any) -> Any:
        for module in [value for value in vars(self).values() if isinstance(value, Module)]:
            x = module(x)
        return x

    def __getitem__(self, index: int | slice) -> Any:
        chosen = super().__getitem__(index)
        if not isinstance(index, slice):
            return chosen
        part = Sequential()
        vars(part).update({str(i): module for i, module in enumerate(chosen)})  # they keep their names in the whole
        return part
