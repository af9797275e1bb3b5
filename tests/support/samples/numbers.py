"""Samples of what takes numbers apart and puts them together; NumPy's functions are the references."""

from __future__ import annotations

import numpy as np

from . import ALL_FLOATS, AS_GIVEN, add, spread

ENDS = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
for name, (low, high) in {"exp2": (-2, 2), "cbrt": (0.3, 3), "deg2rad": (-200, 200), "rad2deg": (-3, 3)}.items():
    add(name, getattr(np, name), spread(2, 3, low=low, high=high), dtypes=ALL_FLOATS)
    add(name, getattr(np, name), ENDS, label="ends", gradient=False)
add("cbrt", np.cbrt, -spread(3, low=0.3, high=3), label="negative")

BINARY = {  # name -> the domains of both
    "fmod": ((-2.9, 2.9), (0.83, 1.73)),
    "fmax": ((-2, 2), (-1.7, 2.1)),
    "fmin": ((-2, 2), (-1.7, 2.1)),
    "logaddexp2": ((-2, 2), (-2, 2)),
    "copysign": ((-2, 2), (-2, 2)),
}
for name, (left, right) in BINARY.items():
    a, b = spread(2, 3, low=left[0], high=left[1]), spread(2, 3, low=right[0], high=right[1], seed=1)
    add(name, getattr(np, name), a, b, dtypes=ALL_FLOATS)
    add(name, getattr(np, name), a, b[0], label="stretched")
    add(name, getattr(np, name), a, 1.3, label="number right")
    add(name, getattr(np, name), 1.3, b, label="number left", gradient=name != "copysign")
add("fmod", np.fmod, spread(4, low=-2.9, high=2.9), -spread(4, low=0.83, high=1.73), label="negative divisor")
for name in ("fmax", "fmin"):
    one, other = np.array([1.0, np.nan, 2.0]), np.array([np.nan, 3.0, 1.0])
    add(name, getattr(np, name), one, other, label="NaN", gradient=False)
    add(name, getattr(np, name), np.array([1.0, -2.0, 3.0]), np.array([1.05, -2.1, 2.9]), label="near each other")
for name in ("nextafter", "heaviside"):
    add(name, getattr(np, name), np.array([-1.0, 0.0, 2.0]), np.array([0.5, 0.25, 3.0]))
add("lerp", lambda a, b, w: a + w * (b - a), spread(2, 3), spread(3, seed=1), spread(2, 3, low=-1, high=2, seed=2))
add("lerp", lambda a, b, w: a + w * (b - a), spread(3), spread(3, seed=1), 0.3, label="number")
add("lerp", lambda a, b, w: b, np.array([1e9, 1.0]), np.array([0.1, 3.0]), 1.0, label="at the end", gradient=False)
add("ldexp", np.ldexp, spread(2, 3), np.array([1, -2, 3]))
add("frexp", np.frexp, spread(2, 3) * 9)
add("modf", np.modf, spread(2, 3) * 3)
add("modf", np.modf, ENDS, label="ends", gradient=False)
add("frac", lambda a: a - np.trunc(a), spread(2, 3), dtypes=ALL_FLOATS)
add("fix", np.trunc, spread(2, 3), dtypes=ALL_FLOATS)
add("divmod", np.divmod, spread(2, 3, low=-2.9, high=2.9), spread(3, low=0.83, high=1.73))
add("float_power", np.float_power, spread(2, 3, low=0.3, high=2), spread(3), dtypes=("float64", "float32"))
add("float_power", np.float_power, np.array([1, 2, 3]), 0.5, dtypes=AS_GIVEN, label="integers")
add("nan_to_num", np.nan_to_num, spread(2, 3))
add("nan_to_num", np.nan_to_num, ENDS, dtypes=("float64",), label="ends", gradient=False)
add(
    "nan_to_num", np.nan_to_num, ENDS, kwargs={"nan": 9.0, "posinf": 5.0, "neginf": -5.0}, label="given", gradient=False
)
add("nan_to_num", np.nan_to_num, np.array([1, 2]), dtypes=AS_GIVEN, label="integers")

whole, other = np.array([[12, -18, 0], [7, 4, 35]]), np.array([8, 6, 5])
for name in ("gcd", "lcm"):
    add(name, getattr(np, name), whole, other, dtypes=AS_GIVEN)
for name in ("signbit", "isposinf", "isneginf", "isreal"):
    add(name, getattr(np, name), ENDS, dtypes=ALL_FLOATS)
near = np.array([1.0, np.nan, np.inf, 0.0]), np.array([1.0 + 1e-6, np.nan, np.inf, 1e-7])
add("isclose", np.isclose, *near)
add("isclose", np.isclose, *near, kwargs={"equal_nan": True, "atol": 1e-5}, label="equal_nan")
add("isclose", np.isclose, near[0], 1.0, kwargs={"rtol": 0.5}, label="number")
