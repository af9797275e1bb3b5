"""The table of ops. `FUNCTIONS` holds their public forms by name."""

from . import (  # noqa: F401  (importing them fills the table)
    activations,
    along,
    arithmetic,
    convolution,
    counting,
    creation,
    cumulative,
    decompositions,
    diagonals,
    einsum,
    elementwise,
    factorization,
    indexing,
    joining,
    linalg,
    matrix_functions,
    nan_reduction,
    neural,
    numbers,
    pooling,
    products,
    random,
    reduction,
    resampling,
    scatter,
    sets,
    shape,
    sorting,
    special,
    windows,
)
from .attach import attach

FUNCTIONS = attach()
