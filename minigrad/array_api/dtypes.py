"""Data types: conversion, promotion, limits and kinds, as the standard names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError
from ..ops.creation import as_dtype, get_default_dtype

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

DTYPES = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}  # float16, which the standard does not know, counts as real floating
KINDS = {
    **{kind: (kind,) for kind in DTYPES},
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


def default_complex() -> np.dtype:
    """The complex dtype of the precision that Python's floats get."""
    return np.result_type(get_default_dtype(), np.complex64)


def _dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, Tensor) else value


def _checked(name: str, type: Any, kinds: str, expected: str) -> np.dtype:
    dtype = as_dtype(_dtype_of(type))
    if dtype.kind not in kinds:
        raise DtypeError(f"{name}: {dtype} has no such limits", expected, dtype)
    return dtype


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """The elements in another dtype: a copy, or with `copy=False` the tensor itself where nothing changes."""
    result = x.to(dtype=dtype, device=device)
    return x.clone() if copy and result is x else result


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether every value of one dtype, or of a tensor's, is kept by another."""
    return np.can_cast(_dtype_of(from_), to)


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that arithmetic between these gives; Python numbers follow the others of their kind."""
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: there is nothing to promote", "at least one tensor or dtype", "none")
    return np.result_type(*[_dtype_of(x) for x in arrays_and_dtypes])


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another, or of a kind such as "integral" or "real floating", or one of a tuple of these."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if unknown := [k for k in kinds if isinstance(k, str) and k not in KINDS]:
        raise ArgumentError(f"isdtype: unknown kind {unknown[0]!r}", ", ".join(KINDS), repr(kind))
    return bool(np.isdtype(np.dtype(dtype), kinds))


@dataclass(frozen=True)
class FloatLimits:
    """What `finfo` tells, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


@dataclass(frozen=True)
class IntegerLimits:
    """What `iinfo` tells, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a floating dtype, or of a tensor's; for a complex one, those of its parts."""
    limits = np.finfo(_checked("finfo", type, "fc", "a floating or complex dtype"))
    eps, high, low, normal = [float(x) for x in (limits.eps, limits.max, limits.min, limits.smallest_normal)]
    return FloatLimits(limits.bits, eps, high, low, normal, np.dtype(limits.dtype))


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of an integer dtype, or of a tensor's."""
    limits = np.iinfo(_checked("iinfo", type, "iu", "an integer dtype"))
    return IntegerLimits(limits.bits, int(limits.max), int(limits.min), np.dtype(limits.dtype))
