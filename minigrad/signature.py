"""The inputs and attributes that a function declares, and how the arguments of a call fall on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from .errors import PYTORCH_ARGUMENTS, CallError, nearest


class Signature:
    """The inputs (before `*`) and attributes (after it) of a function, and how a call's arguments fall on them."""

    def __init__(self, function: Callable[..., Any], skip: int = 0):
        self.inputs: list[str] = []
        self.defaults: dict[str, Any] = {}  # of attributes
        self.optional: dict[str, Any] = {}  # of inputs
        self.variadic = False
        self.spread = False  # whether the last inputs are given one by one, as in einsum("ij,jk", x, y), or in a list
        for p in list(inspect.signature(function).parameters.values())[skip:]:
            if p.kind is p.KEYWORD_ONLY:
                self.defaults[p.name] = p.default
            else:
                self.inputs.append(p.name)
                self.variadic |= p.kind is p.VAR_POSITIONAL
                self.spread = self.variadic and skip == 0
                if p.default is not p.empty:
                    self.optional[p.name] = p.default

    def __str__(self) -> str:
        parts = [f"{n}={self.optional[n]!r}" if n in self.optional else n for n in self.inputs]
        parts += [n if d is inspect.Parameter.empty else f"{n}={d!r}" for n, d in self.defaults.items()]
        return f"({', '.join(parts)})"

    def bind(self, name: str, args: Sequence[Any], attrs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Sort out positional attributes and inputs given by keyword; refuse what does not fit."""
        order = [*self.inputs, *self.defaults]
        if len(args) > len(order):
            raise CallError(f"{name}: too many arguments", f"{name}{self}", f"{len(args)} arguments")
        given = dict(zip(order, args))
        for key, value in attrs.items():
            if key not in order:
                likely = PYTORCH_ARGUMENTS.get(key, key)
                fix = f"write {likely}= instead" if likely in order else nearest(key, order)
                raise CallError(f"{name}: unknown argument {key!r}", f"{name}{self}", fix=fix)
            if key in given:
                raise CallError(f"{name}: argument {key!r} is given twice", f"{name}{self}")
            given[key] = value
        for key in order:
            default = self.optional.get(key, self.defaults.get(key, inspect.Parameter.empty))
            if key not in given and default is inspect.Parameter.empty:
                raise CallError(f"{name}: argument {key!r} is missing", f"{name}{self}")
        inputs = [given.pop(key, self.optional.get(key)) for key in self.inputs]
        return inputs, given


def names_of(rule: Callable[..., Any]) -> list[str]:
    """What a rule asks for, besides the gradient."""
    if isinstance(rule, FunctionType) and not vars(rule):  # plain, not wrapped: quicker than by its signature
        return list(rule.__code__.co_varnames[1 : rule.__code__.co_argcount])
    return list(inspect.signature(rule).parameters)[1:]
