"""Fused operations: each has a definition made of ordinary ops, and kernels for NumPy, numba and CUDA that compute it faster."""

from ..ops import products
from . import numpy, numpy_attention, numpy_rows, stacks  # noqa: F401  (importing them registers their kernels)
from .definitions import (
    attention,
    cross_entropy,
    dropout,
    embedding,
    gelu,
    layer_norm,
    linear,
    linear_gelu,
    masked_softmax,
    packed_attention,
    rms_norm,
    silu,
    softmax,
    swiglu,
)
from .fused import FUSED, Fused, Kernel
from .selection import implementation, use

products.stacked = stacks.product

__all__ = [
    "FUSED", "Fused", "Kernel", "attention", "cross_entropy", "dropout", "embedding", "gelu", "implementation",
    "layer_norm", "linear", "linear_gelu", "masked_softmax", "packed_attention", "rms_norm", "silu", "softmax", "swiglu", "use",
]  # fmt: skip
