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


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError
    return value


def _limits(value: Any) -> tuple[float | None, float]:
    first, second = value
    return None if first is None else _not_negative(first), _not_negative(second)


def _three(value: Any) -> tuple[float, float, float]:
    a, b, c = map(_number(lambda x: True), value)
    return a, b, c


def _choice(*names: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is not None and value not in names:
            raise ValueError
        return value

    return check


_not_negative = _number(lambda x: x >= 0)
_fraction = _number(lambda x: 0 <= x < 1)
_NOT_NEGATIVE: Check = (_not_negative, "a number of at least 0")
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
    "beta2_decay": (_number(lambda x: x <= 0), "a number of at most 0"),
    "d": (_number(lambda x: x >= 1), "a number of at least 1"),
    "Adafactor.eps": (_limits, "two numbers of at least 0, the first of which may be None"),
    "ns_coefficients": (_three, "three numbers"),
    "ns_steps": (_count, "a whole number from 1"),
    "adjust_lr_fn": (_choice("original", "match_rms_adamw"), "'original', 'match_rms_adamw' or None"),
    "max_iter": (_count, "a whole number from 1"),
    "max_eval": (_count, "a whole number from 1"),
    "history_size": (_count, "a whole number from 1"),
    "tolerance_grad": _NOT_NEGATIVE,
    "tolerance_change": _NOT_NEGATIVE,
    "line_search_fn": (_choice("strong_wolfe"), "'strong_wolfe' or None"),
    "name": (_label, "a string"),
}


def checked_option(where: str, option: str, value: Any) -> Any:
    """The checked value as the optimiser uses it: a float, a pair of floats, a bool. Unknown options pass unchecked."""
    own = f"{where}.{option}"  # an option that means something else there
    if own not in OPTIONS and option not in OPTIONS:
        return value
    check, expected = OPTIONS[own if own in OPTIONS else option]
    try:
        return check(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{where}: {option} cannot be used", expected, repr(value)) from None
