"""The array API standard, version 2024.12, on Tensors: what `x.__array_namespace__()` gives.

Where `mg` has manners of its own, as with copies or `ddof`, the functions here keep the standard. They are made of our ops,
so that derivatives flow through them.
"""

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from numpy import bool_ as bool
from numpy import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from ..errors import public
from . import creation, dtypes, elementwise, fft, linalg, manipulation, searching, statistics
from .creation import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .info import __array_namespace_info__
from .linalg import matmul, tensordot, vecdot
from .manipulation import *  # noqa: F403
from .searching import *  # noqa: F403
from .statistics import *  # noqa: F403

__array_api_version__ = "2024.12"
SUPPORTED_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
newaxis = None

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "bool",
    "complex128",
    "complex64",
    "e",
    "fft",
    "float32",
    "float64",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "linalg",
    "matmul",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "vecdot",
]
__all__ += creation.__all__
__all__ += dtypes.__all__
__all__ += elementwise.__all__
__all__ += manipulation.__all__
__all__ += searching.__all__
__all__ += statistics.__all__

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__)
