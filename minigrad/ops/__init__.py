"""The table of ops. `FUNCTIONS` holds their public forms by name."""

# Importing them fills the table.
from . import creation, fourier, random, sampled  # noqa: F401
from .attach import attach
from .elementwise import activations, arithmetic, complex_parts, numbers, special, unary  # noqa: F401
from .indexing import along, getitem, scatter  # noqa: F401
from .layout import diagonals, joining, padding, resampling, shape, windows  # noqa: F401
from .linalg import decompositions, distances, einsum, lu, matrix_functions, products, systems  # noqa: F401
from .neural import convolution, pooling, softmax  # noqa: F401
from .reductions import counting, cumulative, nan_reduction, reduction, sets, sorting, statistics  # noqa: F401

FUNCTIONS = attach()
