"""Modules that hold others, or parameters, in order or by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, describe
from ..module import Module, Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Indexed(Module):
    """Modules under the names "0", "1", …"""

    def _place(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            name, what = type(self).__name__, getattr(module, "__name__", type(module).__name__)
            fix = f"unpack it: {name}(*layers)" if isinstance(module, (list, tuple)) else None
            fix = "take its layer, as nn.ReLU() for relu" if callable(module) else fix
            raise ArgumentError(f"{name}: only modules can be in it", "a Module", what, fix)
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


class _Named(Module):
    """Modules or parameters under names of their own."""

    def _items(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if isinstance(value, (Module, Parameter))}

    def _checked(self, value: Any) -> Any:
        """What is put in, as what it holds."""
        raise NotImplementedError

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str) or not key or "." in key or hasattr(type(self), key):
            raise ArgumentError(
                f"{type(self).__name__}: this cannot be a key",
                "text without dots that is no name of a method",
                repr(key),
            )
        setattr(self, key, self._checked(value))
        self._rename(self._name)

    def __getitem__(self, key: str) -> Any:
        return self._items()[key]

    def __delitem__(self, key: str) -> None:
        delattr(self, self._known(key))

    def _known(self, key: str) -> str:
        if key not in self._items():
            raise KeyError(key)
        return key

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._items())

    def __contains__(self, key: object) -> bool:
        return key in self._items()

    def keys(self) -> Iterable[str]:
        """The names, in the order they were added."""
        return self._items().keys()

    def values(self) -> Iterable[Any]:
        """What is under the names."""
        return self._items().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with what is under them."""
        return self._items().items()

    def update(self, others: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add others, or put them in the place of those with the same name."""
        for key, value in dict(others).items():
            self[key] = value

    def pop(self, key: str) -> Any:
        """Take one out, and return it."""
        value = self[key]
        del self[key]
        return value


class ModuleDict(_Named):
    """Modules by name, in a dict that knows its parts: `x = self.heads[task](x)`.

    >>> import minigrad as mg
    >>> heads = mg.nn.ModuleDict({"size": mg.nn.Linear(4, 1), "kind": mg.nn.Linear(4, 3)})
    >>> heads["kind"](mg.ones(2, 4)).shape
    (2, 3)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()):
        self.update(modules)

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, Module):
            raise ArgumentError("ModuleDict: only modules can be in it", "a Module", describe(value))
        return value

    def _rename(self, name: str) -> None:
        super()._rename(name)
        for key, child in self.named_children():
            child._rename(f"{name}.{key}")  # as in a ModuleList, which is not called either


class ParameterDict(_Named):
    """Parameters by name, in a dict whose parts are trained and saved; a Tensor becomes a Parameter."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()):
        self.update(parameters)

    def _checked(self, value: Any) -> Any:
        return _as_parameter("ParameterDict", value)


class ParameterList(Module):
    """Parameters in a list whose parts are trained and saved; a Tensor becomes a Parameter.

    >>> import minigrad as mg
    >>> shifts = mg.nn.ParameterList([mg.zeros(3), mg.zeros(2)])
    >>> [name for name, _ in shifts.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] = ()):
        self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end; returns the whole."""
        setattr(self, str(len(self)), _as_parameter("ParameterList", value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several parameters at the end; returns the whole."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return sum(isinstance(value, Parameter) for value in vars(self).values())

    def __iter__(self) -> Iterator[Parameter]:
        return iter([value for value in vars(self).values() if isinstance(value, Parameter)])

    def __getitem__(self, index: int | slice) -> Any:
        return list(self)[index]

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(range(len(self))[index]), _as_parameter("ParameterList", value))


def _as_parameter(where: str, value: Any) -> Parameter:
    if isinstance(value, Module) or not isinstance(value, Tensor):
        raise ArgumentError(f"{where}: only parameters can be in it", "a Parameter or a Tensor", describe(value))
    return value if isinstance(value, Parameter) else Parameter(value)
