"""What an op declares and what follows from it: its signature, and for each set of inputs that need gradients a plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .backend import device_of
from .elsewhere import ARGUMENTS
from .errors import CallError, nearest
from .graph import Node
from .tensor import wrap

if TYPE_CHECKING:
    from .op import Op

STAND_INS = ("shape", "dtype", "ndim", "device")  # what a rule may ask of an input, as in `a_shape`, without keeping it
_nothing = itemgetter(slice(0, 0))


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

    @cached_property
    def shown(self) -> inspect.Signature:
        """As a user calls it: attributes also by position, whatever is required first."""
        kind: Any = inspect.Parameter
        by_place = kind.POSITIONAL_OR_KEYWORD
        inputs = [kind(n, by_place, default=self.optional.get(n, kind.empty)) for n in self.inputs]
        if self.spread:
            inputs[-1] = inputs[-1].replace(kind=kind.VAR_POSITIONAL)
        attributes = [
            kind(n, kind.KEYWORD_ONLY if self.spread else by_place, default=d) for n, d in self.defaults.items()
        ]
        return inspect.Signature(sorted(inputs + attributes, key=lambda p: (p.kind, p.default is not p.empty)))

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
                likely = ARGUMENTS.get(key, key)
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


class Plan:
    """What an op saves, and which rules run, for one set of inputs that need gradients."""

    fused = False

    def __init__(self, op: Op, needs: tuple[bool, ...]):
        self.op = op
        self.needs = needs
        self.picks: int | None = None
        inputs = op.signature.inputs
        if op.joint is not None:
            rules = [(-1, op.joint)]
        else:
            rules = [(i, op.rules[name]) for i, name in enumerate(inputs) if needs[i]]
        asked = {i: names_of(rule) for i, rule in rules}
        self.names = list(dict.fromkeys(name for names in asked.values() for name in names))
        self.getters = [_getter(op, needs, name) for name in self.names]
        positions = [inputs.index(n) if n in inputs else len(inputs) for n in self.names if n in inputs or n == "out"]
        plain = not op.signature.variadic and len(positions) == len(self.names)
        self.keep = _pick(positions) if plain else None  # from (*arrays, out), where the rules ask for nothing else
        self.rules = [(i, rule, _pick([self.names.index(n) for n in asked[i]])) for i, rule in rules]
        self.simple = op.joint is None and not op.several  # one gradient comes in, and each rule gives one out

    def save(self, arrays: Sequence[Any], out: Any, attrs: dict[str, Any]) -> tuple[Any, ...]:
        """What the rules will ask for, taken from an op that was just computed."""
        if self.keep is not None:
            return self.keep((*arrays, out))
        getters = self.getters
        if len(getters) == 2:
            return getters[0](arrays, out, attrs), getters[1](arrays, out, attrs)
        return tuple([get(arrays, out, attrs) for get in getters])

    def as_tensors(self, node: Node) -> list[Any]:
        """The saved values as Tensors tied to the nodes that made them, so that rules on them are recorded."""
        inputs = self.op.signature.inputs
        values = list(node.saved)
        for k, (name, value) in enumerate(zip(self.names, values)):
            if name == "out" and self.op.several:
                values[k] = tuple([self.op.output(v, node, j) for j, v in enumerate(value)])
            elif name == "out":
                values[k] = wrap(value, node)
            elif name in inputs and self.op.signature.variadic:
                values[k] = tuple(wrap(v, p) if hasattr(v, "shape") else v for v, p in zip(value, node.parents))
            elif name in inputs and hasattr(value, "shape"):
                values[k] = wrap(value, node.parents[inputs.index(name)])
        return values


def _pick(positions: list[int]) -> Callable[[Any], tuple[Any, ...]]:
    """A fast function from a sequence to the tuple of its entries at `positions`."""
    if len(positions) < 2:
        return itemgetter(slice(positions[0], positions[0] + 1)) if positions else _nothing
    return itemgetter(*positions)


def names_of(rule: Callable[..., Any]) -> list[str]:
    """What a rule asks for, besides the gradient."""
    if isinstance(rule, FunctionType) and not vars(rule):  # plain, not wrapped: quicker than by its signature
        return list(rule.__code__.co_varnames[1 : rule.__code__.co_argcount])
    return list(inspect.signature(rule).parameters)[1:]


def _getter(op: Op, needs: tuple[bool, ...], name: str) -> Callable[[Any, Any, Any], Any]:
    """How to find, when an op is recorded, the value that a rule calls `name`."""
    inputs, defaults = op.signature.inputs, op.signature.defaults
    stem, _, kind = name.rpartition("_")
    if name == "out":
        return lambda arrays, out, attrs: out
    if name == "needs":
        return lambda arrays, out, attrs: needs
    if name in defaults:
        return lambda arrays, out, attrs: attrs.get(name, defaults[name])
    if op.signature.variadic:
        if name in inputs:
            return lambda arrays, out, attrs: tuple(arrays)
        return lambda arrays, out, attrs: tuple([getattr(a, kind) for a in arrays])
    if name in inputs:
        i = inputs.index(name)
        return lambda arrays, out, attrs: arrays[i]
    i = inputs.index(stem)
    if kind == "device":
        return lambda arrays, out, attrs: device_of(arrays[i])
    fallback = () if kind == "shape" else None
    return lambda arrays, out, attrs: getattr(arrays[i], kind, fallback)
