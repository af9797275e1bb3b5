"""Products with weights: linear maps, packed or adapted ones among them, and bilinear forms."""

from __future__ import annotations

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ShapeError
from ...functions import gelu
from ...kernels import Packed
from ...ops.linalg.einsum import einsum
from ..weights.low_rank import LowRank
from .declaration import TensorLike, function

__all__ = ["bilinear", "linear", "linear_gelu"]


@function
def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input @ weight.T + bias`: (…, in), (out, in), (out,) -> (…, out). The weight may be packed.

    >>> import minigrad as mg
    >>> mg.nn.functional.linear(mg.tensor([1.0, 2.0]), mg.tensor([[3.0, 4.0]]), mg.tensor([0.5]))
    tensor([11.5])
    """
    _check_linear(input, weight, bias)
    if isinstance(weight, Packed):
        return kernels.packed_linear(input, weight.tensor, bias, format=weight.format)
    if isinstance(weight, LowRank):
        return weight.linear(input, bias)
    return kernels.linear(input, weight, bias)


@function
def linear_gelu(
    input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, approximate: str = "none"
) -> Tensor:
    """`gelu(input @ weight.T + bias)` with one kernel: (…, in), (out, in), (out,) -> (…, out).

    >>> import minigrad as mg
    >>> mg.nn.functional.linear_gelu(mg.tensor([1.0, 2.0]), mg.tensor([[3.0, 4.0]]), mg.tensor([0.5]))
    tensor([11.5])
    """
    _check_linear(input, weight, bias)
    if isinstance(weight, Packed):
        return gelu(kernels.packed_linear(input, weight.tensor, bias, format=weight.format), approximate=approximate)
    if isinstance(weight, LowRank):
        return gelu(weight.linear(input, bias), approximate=approximate)
    return kernels.linear_gelu(input, weight, bias, approximate=approximate)


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    inner, outer = input.shape, weight.shape
    if len(outer) not in (1, 2) or not inner or inner[-1] != outer[-1]:
        fix = (
            f"make the input's last axis {outer[-1]}, or the layer for {inner[-1]} inputs" if inner and outer else None
        )
        if weight.ndim == 2 and inner and inner[-1] == outer[0]:
            fix = f"{fix}; a weight of (in, out) must be transposed"
        got = f"{input.shape} and {weight.shape}"
        raise ShapeError("linear: input and weight do not fit", "input (…, in) and weight (out, in)", got, fix)
    if bias is not None and bias.shape != outer[:-1]:
        raise ShapeError("linear: the bias does not fit the weight", weight.shape[:-1], bias.shape)


@function
def bilinear(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input1ᵀ · weight[o] · input2 + bias[o]` for each output o: (…, in1), (…, in2), (out, in1, in2), (out,) -> (…, out)."""
    shapes = input1.shape, input2.shape, weight.shape
    if (
        shapes[0][:-1] != shapes[1][:-1]
        or weight.ndim != 3
        or weight.shape[1:] != input1.shape[-1:] + input2.shape[-1:]
    ):
        got = " and ".join(map(str, shapes))
        raise ShapeError("bilinear: inputs and weight do not fit", "(…, in1), (…, in2) and (out, in1, in2)", got)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError("bilinear: the bias does not fit the weight", weight.shape[:1], bias.shape)
    product = einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias
