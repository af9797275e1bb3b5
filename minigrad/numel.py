"""The number of elements of a Tensor: NumPy's `x.size`, an int, which can also be called as PyTorch's `x.size(0)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import tree
from .errors import axis_problem, is_whole

__all__ = ["Numel", "plain"]


class Numel(int):
    """A number of elements. `x.size() is x.shape`, and `x.size(0)` is `x.shape[0]`.

    To NumPy a subclass of int is an array of int64, beside which float32 becomes float64. So whatever NumPy is asked to
    compute with one is computed with the plain int.
    """

    _shape: tuple[int, ...] = ()  # of the Tensor; a public `shape` would make this look like an array

    @classmethod
    def of(cls, array: Any) -> Numel:
        """The number of elements of an array."""
        size = cls(array.size)
        size._shape = array.shape
        return size

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._shape
        if problem := axis_problem("size", dim if is_whole(dim) else (dim,), len(self._shape), self._shape):
            raise problem
        return self._shape[dim]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*[plain(x) for x in inputs], **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return function(*tree.map(plain, args), **tree.map(plain, kwargs))


def plain(value: Any) -> Any:
    """A number of elements as a plain int; anything else as it is."""
    return int(value) if type(value) is Numel else value
