"""Samples of special functions; SciPy's are the references."""

from __future__ import annotations

import numpy as np
from scipy import special

from . import ALL_FLOATS, AS_GIVEN, add, spread

UNARY = {  # name -> reference and the domain
    "erfc": (special.erfc, -3, 5),
    "erfinv": (special.erfinv, -0.95, 0.95),
    "lgamma": (special.gammaln, 0.3, 12),
    "digamma": (special.digamma, 0.3, 12),
    "sinc": (np.sinc, -2.3, 2.3),
    "logit": (special.logit, 0.05, 0.95),
    "_logit": (special.logit, 0.05, 0.95),
}
for name, (reference, low, high) in UNARY.items():
    add(name, reference, spread(2, 3, low=low, high=high), dtypes=ALL_FLOATS, dtype_as_reference=False)
    add(name, reference, spread(low=low, high=high), label="0-d")
    add(name, reference, spread(0, 3), label="empty", gradient=False)
ENDS = np.array([0.0, 7.0, 26.0, -30.0, np.inf, np.nan])
for name in ("erfc", "lgamma", "digamma"):
    add(name, UNARY[name][0], ENDS, label="ends", gradient=False)
    add(name, UNARY[name][0], np.array([3, 1, 2]), dtypes=AS_GIVEN, label="integers")
for name in ("lgamma", "digamma"):
    add(name, UNARY[name][0], np.array([-0.3, -2.6, 0.45, -7.2]), label="mirrored", tolerance=10)
add("erfinv", special.erfinv, np.array([0.0, 1e-9, 1 - 1e-12, -1.0, 1.0, 1.5, np.nan]), label="ends", gradient=False)
add("sinc", np.sinc, np.array([0.0, 1e-4, 0.499, -0.501, 1.0]), label="at 0")
add("sinc", np.sinc, np.array([0, 1, -2]), dtypes=AS_GIVEN, label="integers")
add("logit", special.logit, np.array([0.0, 1.0]), label="ends", gradient=False)
add(
    "logit",
    lambda a, eps: special.logit(np.clip(a, eps, 1 - eps)),
    np.array([-0.2, 0.05, 0.3, 0.97, 1.4]),
    kwargs={"eps": 0.1},
    label="eps",
)
for order in (1, 2, 3):
    add(
        "_polygamma",
        lambda a, order: special.polygamma(order, a).astype(a.dtype),
        spread(4, low=0.3, high=14),
        kwargs={"order": order},
        label=f"{order}",
    )
add(  # by the recurrence, since SciPy's is for positive numbers only
    "_polygamma",
    lambda a, order: (special.polygamma(1, a + 3) + sum((a + k) ** -2.0 for k in range(3))).astype(a.dtype),
    np.array([-0.3, -1.6, 0.2]),
    kwargs={"order": 1},
    label="mirrored",
    tolerance=100,
)
add("polygamma", lambda n, a: special.polygamma(n, a).astype(a.dtype), 2, spread(3, low=0.3, high=3))
add("polygamma", lambda n, a: special.digamma(a), 0, spread(3, low=0.3, high=3), label="0")
zeros = np.array([0.0, 0.0, 1.5, np.nan, 0.0]), np.array([0.0, 2.0, 0.0, 1.0, np.nan])
for name, shift in (("xlogy", 0.0), ("xlog1py", 1.0)):
    reference = getattr(special, name)
    add(name, reference, spread(2, 3), spread(3, low=0.3, high=2) - shift, dtypes=ALL_FLOATS, dtype_as_reference=False)
    add(name, reference, 1.5, spread(2, low=0.3, high=2) - shift, dtype_as_reference=False, label="number left")
    add(name, reference, spread(2), 1.5, dtype_as_reference=False, label="number right")
    add(name, reference, zeros[0], zeros[1] - shift, label="zeros", gradient=False)
    add(name, reference, np.zeros(2), np.array([0.5, 1.5]), label="nothing of a logarithm")
