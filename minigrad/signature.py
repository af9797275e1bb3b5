"""The inputs and attributes that a function declares, and how the arguments of a call fall on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Sequence
from types import FunctionType
from typing import Any

from .errors import UNOFFERED, ArgumentError, CallError, GradientError, describe, likely_argument, nearest

INCOMPLETE = {"where": "use mg.nonzero(condition) for the places where it holds"}  # what NumPy and PyTorch do with less
STAND_INS = ("shape", "dtype", "ndim", "device")  # what a rule may ask of an input, as in `a_shape`, without keeping it


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

    def bind(self, name: str, args: Sequence[Any], attrs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Sort out positional attributes and inputs given by keyword; refuse what does not fit."""
        order = [*self.inputs, *self.defaults]
        if len(args) > len(order):
            raise CallError(f"{name}: too many arguments", f"{name}{self}", f"{len(args)} arguments")
        given = dict(zip(order, args))
        for key, value in attrs.items():
            if key not in order:
                raise unknown_argument(name, key, order, f"{name}{self}")
            if key in given:
                raise CallError(f"{name}: argument {key!r} is given twice", f"{name}{self}")
            given[key] = value
        for key in order:
            default = self.optional.get(key, self.defaults.get(key, inspect.Parameter.empty))
            if key not in given and default is inspect.Parameter.empty:
                raise CallError(f"{name}: argument {key!r} is missing", f"{name}{self}", fix=INCOMPLETE.get(name))
        inputs = [given.pop(key, self.optional.get(key)) for key in self.inputs]
        if not self.variadic or self.spread:
            return inputs, given
        if not isinstance(inputs[0], (list, tuple)) or not inputs[0]:
            raise ArgumentError(
                f"{name}: the first argument must be a sequence of tensors",
                "[a, b, …], not empty",
                type(inputs[0]).__name__,
            )
        return inputs[0], given


def unknown_argument(name: str, key: str, known: Sequence[str], shown: str | None = None) -> CallError:
    """The error for an argument that a function or constructor does not have: what it takes, and the nearest of that."""
    likely = likely_argument(key, known)
    shown = f"{name}({_shown(known)})" if shown is None else shown
    if likely is None and key in UNOFFERED:
        return CallError(f"{name}: the option {key!r} is not offered", shown, fix=f"leave it out: {UNOFFERED[key]}")
    fix = f"write {likely}= instead" if likely else nearest(key, known) if known else f"leave {key} out"
    return CallError(f"{name}: unknown argument {key!r}", shown, fix=fix)


class Constructed:
    """The base of classes that are made by users: a keyword that `__init__` does not have is answered with those it has.

    `__new__` gets the arguments first, so that a call which is right costs a comparison of names and nothing else.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        code = getattr(cls.__init__, "__code__", None)  # None: the class has no `__init__` of its own
        taken = () if code is None else code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        if code is None or not code.co_flags & inspect.CO_VARKEYWORDS:
            for key in kwargs:
                if key not in taken:
                    raise unknown_argument(cls.__name__, key, taken)
        most = 0 if code is None else code.co_argcount - 1
        if len(args) > most and not (code is not None and code.co_flags & inspect.CO_VARARGS):
            got = f"{len(args)} by position"
            raise CallError(f"{cls.__name__}: too many arguments", f"{cls.__name__}({_shown(taken)})", got)
        is_copy = not args and not kwargs  # `copy` asks for an object to fill
        if code is not None and not is_copy and (missing := _missing(cls.__init__, code, len(args), kwargs)):
            problem = f"{cls.__name__}: {' and '.join(missing)} must be given"
            raise CallError(problem, f"{cls.__name__}({_shown(taken)})", _given(args, kwargs))
        return super().__new__(cls)


def _missing(init: Any, code: Any, count: int, kwargs: dict[str, Any]) -> list[str]:
    """The arguments without a default that a constructor was not given, `count` of them by position."""
    positional = code.co_varnames[1 : code.co_argcount - len(init.__defaults__ or ())]
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    needed = [*positional[count:], *[name for name in by_name if name not in (init.__kwdefaults__ or ())]]
    return [name for name in needed if name not in kwargs]


def _given(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    parts = [describe(x) for x in args] + [f"{name}={describe(x)}" for name, x in kwargs.items()]
    return ", ".join(parts) or "nothing"


def _shown(names: Iterable[str]) -> str:
    """The names of arguments that users may give."""
    return ", ".join(name for name in names if not name.startswith("_"))


def signature_of_op(forward: Any) -> Signature:
    """The inputs and attributes of an op. Refuses what cannot be its forward function, or has names that rules use for something else."""
    if not callable(forward) or next(iter(inspect.signature(forward).parameters), None) != "xp":
        raise ArgumentError(
            "op: the forward function takes the array module first",
            "def name(xp, a, b, *, attribute=…)",
            getattr(forward, "__name__", type(forward).__name__),
        )
    name, signature = getattr(forward, "__name__", "op"), Signature(forward, skip=1)
    taken = ["out", "needs", *stand_ins_of(signature)]
    for own in (*signature.inputs, *signature.defaults):
        if own in taken:
            raise ArgumentError(
                f"{name}: an input or attribute cannot be called {own!r}, which rules use for something else",
                f"none of {', '.join(taken)}",
                f"{name}{signature}",
                f"call it {own}_ or something else",
            )
    return signature


def stand_ins_of(signature: Signature) -> list[str]:
    """The names by which a rule may ask for the shape of an input, or the like."""
    return [f"{stem}_{kind}" for stem in signature.inputs for kind in STAND_INS]


def missing_rule(name: str, signature: Signature, rules: Container[str], needs: int) -> GradientError:
    """The error for an op without a rule for one of the inputs that need a gradient, given as bits."""
    if signature.variadic:
        (missing,) = signature.inputs
        fix = f"give one for all inputs with @{name}.vjp, or detach() them"
    else:
        missing = next(n for i, n in enumerate(signature.inputs) if needs >> i & 1 and n not in rules)
        fix = f"give one with {name}.vjp({missing}=lambda g: …), or pass {missing}.detach()"
    return GradientError(f"{name}: there is no rule for the gradient of {missing!r}", fix=fix)


def check_rules(name: str, signature: Signature, rules: dict[str, Any], joint: Callable[..., Any] | None) -> None:
    """Refuse rules for inputs that an op does not have, or that ask for what it does not have."""
    inputs = signature.inputs
    known = ["out", *inputs, *signature.defaults, *stand_ins_of(signature)]
    for key, rule in {**rules, **({"needs": joint} if joint else {})}.items():
        if key not in inputs and rule is not joint:
            raise ArgumentError(
                f"{name}.vjp: there is no input {key!r}", f"{name}{signature}", fix=nearest(key, inputs)
            )
        for asked in names_of(rule):
            if asked not in known and not (rule is joint and asked == "needs"):
                raise ArgumentError(
                    f"{name}.vjp: a rule asks for {asked!r}, which this op does not have", fix=nearest(asked, known)
                )
    if signature.variadic and rules:
        raise ArgumentError(
            f"{name}.vjp: an op with *{inputs[0]} takes one rule for all inputs",
            fix=f"write it as a decorator, @{name}.vjp",
        )


def names_of(rule: Callable[..., Any]) -> list[str]:
    """What a rule asks for, besides the gradient."""
    if isinstance(rule, FunctionType) and not vars(rule):  # plain, not wrapped: quicker than by its signature
        return list(rule.__code__.co_varnames[1 : rule.__code__.co_argcount])
    return list(inspect.signature(rule).parameters)[1:]
