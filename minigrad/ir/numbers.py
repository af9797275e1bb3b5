"""Numbers that a compiled function asks for anew at each call, such as a learning rate, while it is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..engine.modes import notify
from ..engine.tensor import Tensor
from ..ops.creation import get_default_dtype
from .graph import Number

__all__ = ["Scalar", "WholeNumber", "standing_for"]


class WholeNumber(int):
    """A whole number, and how to ask for it again."""

    number: Number

    def __new__(cls, number: Number) -> WholeNumber:
        self = super().__new__(cls, number.example)
        self.number = number
        return self


class Scalar(Tensor):
    """A number that arithmetic with numbers keeps a number, in double precision as Python's, and an op takes like one."""

    __slots__ = ("number",)
    number: Number

    def __new__(cls, number: Number, dtype: Any) -> Scalar:
        self = object.__new__(cls)
        self.data, self.node, self.number = np.dtype(dtype).type(number.example), None, number  # for any device
        return self


def standing_for(number: Number, dtype: Any = None) -> Scalar | WholeNumber:
    """What stands for a number while a function is traced; a floating one meets tensors of this dtype."""
    return WholeNumber(number) if number.kind is int else Scalar(number, dtype or get_default_dtype())


def _between(symbol: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Scalar, Any], Any]:
    def method(self: Scalar, other: Any) -> Any:
        if isinstance(other, Tensor) and not isinstance(other, Scalar) or not isinstance(other, (int, float, Scalar)):
            return NotImplemented  # an op of the tensor takes it from here
        mine = self.number
        key = (symbol, swapped, other.number if isinstance(other, Scalar) else other)
        if key not in mine.derived:
            mine.derived[key] = _derived(symbol, mine, other.number if isinstance(other, Scalar) else other, swapped)
        return Scalar(mine.derived[key], self.dtype)

    return method


def _derived(symbol: Callable[[Any, Any], Any], mine: Number, other: Any, swapped: bool) -> Number:
    """What arithmetic makes of a number and another one, or a constant; it is read at each call, so by few calls."""
    read = mine.read
    if isinstance(other, Number):
        first, second = (other, mine) if swapped else (mine, other)
        return Number(partial(_applied, symbol, first.read, second.read), float, symbol(first.example, second.example))
    if swapped:
        return Number(lambda: symbol(other, read()), float, symbol(other, mine.example))
    return Number(lambda: symbol(read(), other), float, symbol(mine.example, other))


def _applied(symbol: Callable[[Any, Any], Any], first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    return symbol(first(), second())


def _decision(symbol: Callable[[Any, Any], bool]) -> Callable[[Scalar, Any], bool]:
    """A comparison decides what the function does next: the graph holds only while it comes out the same."""

    def method(self: Scalar, other: Any) -> bool:
        outcome = bool(symbol(self.number.example, other))
        notify("decided", lambda: bool(symbol(self.number.read(), other)) == outcome)
        return outcome

    return method


for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(Scalar, f"__{_name}__", _decision(getattr(operator, _name)))
Scalar.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]
for _name in ("add", "sub", "mul", "truediv", "pow"):
    _symbol = getattr(operator, _name)
    setattr(Scalar, f"__{_name}__", _between(_symbol, swapped=False))
    setattr(Scalar, f"__r{_name}__", _between(_symbol, swapped=True))
