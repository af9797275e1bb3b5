"""Hyperparameters of optimisers: the values that each may have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError

__all__ = ["checked_option"]

Check = tuple[Callable[[Any], Any], str]


def _number(holds: Callable[[float], bool]) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, (bool, str)) or not holds(number := float(value)) or not math.isfinite(number):
            raise ValueError
        return number

    return check


def _pair(value: Any) -> tuple[float, float]:
    first, second = value
    return _fraction(first), _fraction(second)


def _ordered(fits: Callable[[float, float], bool]) -> Callable[[Any], tuple[float, float]]:
    def check(value: Any) -> tuple[float, float]:
        first, second = map(_number(lambda x: x > 0), value)
        if not fits(first, second):
            raise ValueError
        return first, second

    return check


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _label(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_fraction = _number(lambda x: 0 <= x < 1)
_NOT_NEGATIVE: Check = (_number(lambda x: x >= 0), "a number of at least 0")
_FLAG: Check = (_flag, "True or False")
OPTIONS: dict[str, Check] = {
    "lr": _NOT_NEGATIVE,
    "initial_lr": _NOT_NEGATIVE,
    "momentum": _NOT_NEGATIVE,
    "dampening": (_number(lambda x: True), "a number"),
    "weight_decay": _NOT_NEGATIVE,
    "eps": _NOT_NEGATIVE,
    "alpha": (_fraction, "a number from 0 to below 1"),
    "betas": (_pair, "two numbers from 0 to below 1"),
    "nesterov": _FLAG,
    "amsgrad": _FLAG,
    "centered": _FLAG,
    "maximize": _FLAG,
    "decoupled_weight_decay": _FLAG,
    "lr_decay": _NOT_NEGATIVE,
    "initial_accumulator_value": _NOT_NEGATIVE,
    "rho": (_number(lambda x: 0 <= x <= 1), "a number from 0 to 1"),
    "momentum_decay": _NOT_NEGATIVE,
    "lambd": _NOT_NEGATIVE,
    "t0": _NOT_NEGATIVE,
    "etas": (_ordered(lambda shrink, grow: shrink < 1 < grow), "two numbers, between 0 and 1 and above 1"),
    "step_sizes": (_ordered(lambda least, most: least <= most), "two numbers above 0, the smaller one first"),
    "name": (_label, "a string"),
}


def checked_option(where: str, option: str, value: Any) -> Any:
    """The checked value as the optimiser uses it: a float, a pair of floats, a bool. Unknown options pass unchecked."""
    if option not in OPTIONS:
        return value
    check, expected = OPTIONS[option]
    try:
        return check(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{where}: {option} cannot be used", expected, repr(value)) from None
