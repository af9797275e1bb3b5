"""The table of ops. `FUNCTIONS` holds their public forms by name."""

from . import (  # noqa: F401  (importing them fills the table)
    activations,
    along,
    arithmetic,
    convolution,
    creation,
    decompositions,
    diagonals,
    einsum,
    elementwise,
    factorization,
    indexing,
    joining,
    linalg,
    matrix_functions,
    neural,
    pooling,
    products,
    random,
    reduction,
    resampling,
    scatter,
    shape,
    windows,
)
from .attach import attach

FUNCTIONS = attach()
