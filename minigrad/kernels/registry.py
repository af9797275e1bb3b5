"""Fused operations: a definition made of ordinary ops, and kernels that compute the same faster.

    @fused
    def twice(x):                                                 # the definition: any function of ops
        return x + x
    twice.kernels["numba"] = Kernel(forward, backward, accepts)   # the speed

A kernel's `forward(*inputs, **attributes)` returns the output and whatever its own `backward` wants kept (a mean, a
mask); `backward(g, kept, needs, *inputs, **attributes)` returns one gradient for each input, None where `needs` is
false. Without a backward, the op's own rules run. Where no kernel fits the arrays the definition runs
instead. It is also what is differentiated when a higher derivative is wanted: what a kernel keeps would be a constant
there, and silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..engine.backend import Array
from ..engine.graph import sweep
from ..engine.modes import enable_grad
from ..engine.op import Function, _output
from ..engine.tensor import Tensor
from ..errors import ArgumentError, GradientError, describe
from ..ops.composite import Composite
from .selection import candidates

FUSED: dict[str, Function] = {}


class Kernel(NamedTuple):
    """One way to compute a fused op: `accepts(*inputs, **attributes)` says whether it can, or returns the kernel that does."""

    forward: Callable[..., Any]
    backward: Callable[..., Sequence[Array | None]] | None
    accepts: Callable[..., Any]


class Kernels(dict[str, Kernel]):
    """The kernels of one op, by the names of their implementations."""

    rows: tuple[str, ...] | None = None  # for the compiler, if it writes them: the inputs whose leading axes are one
    varying: tuple[str, ...] = ()  # attributes that differ from call to call
    min_ndim = 0  # of a first input that any of them takes
    foreign = False  # whether one of them is not minigrad's own, and may return an input itself

    def choose(self, arrays: Sequence[Any], attrs: dict[str, Any], size: int = 0) -> Kernel | None:
        """The first kernel, in the order of preference, that takes these arrays; None: the definition computes.

        `size` says how large the arrays are that they are a part of, if they are.
        """
        kind = type(arrays[0])
        if not hasattr(kind, "size"):
            return None
        for array in arrays:
            if array is not None:
                if type(array) is not kind:
                    return None
                if array.size > size:
                    size = array.size
        for name in candidates(kind, size):
            kernel = self.get(name)
            if kernel is not None and (fitting := kernel.accepts(*arrays, **attrs)):
                return fitting if isinstance(fitting, Kernel) else kernel
        return None

    def __setitem__(self, name: str, kernel: Kernel) -> None:
        super().__setitem__(name, kernel)
        self.foreign |= not (getattr(kernel.forward, "__module__", None) or "").startswith("minigrad.")

    def wrong_forward(self, op: str, kernel: Kernel, result: Any) -> ArgumentError:
        """The error for a forward that did not return two things."""
        return ArgumentError(
            f"{self.title(op, kernel)}: forward gave something else than its output and what it keeps",
            "two things: the output, an array, and what its backward wants kept, or None",
            describe(result),
            "return out, None",
        )

    def pull(self, op: Function, needs: Sequence[bool], g: Any, *saved: Any) -> Sequence[Any]:
        """The gradient of each input, by the kernel that ran forward; on Tensors, which are to be differentiated again, by the definition."""
        *inputs, kernel, kept, attrs = saved
        if isinstance(g, Tensor):
            return _by_definition(op, needs, g, inputs, attrs)
        if kernel.backward is None:
            raise GradientError(
                f"{self.title(op.name, kernel)}: there is no backward",
                "a backward, since a function made of ops has no rules of its own",
                fix="give Kernel(forward, backward, accepts)",
            )
        return kernel.backward(g, kept, needs, *inputs, **attrs)

    def title(self, op: str, kernel: Kernel) -> str:
        """What an error calls one of these kernels."""
        name = next((name for name, known in self.items() if known.accepts == kernel.accepts), "old")
        return f"the {name} kernel of {op.lstrip('_')}"


# Compiled steps of optimisers, chosen like the kernels of an op: forward(optimizer, p, g, state, group, scale) changes flat arrays.
STEPS = Kernels()


def _by_definition(
    op: Any, needs: Sequence[bool], g: Tensor, inputs: Sequence[Any], attrs: dict[str, Any]
) -> list[Any]:
    """Each input gets a node of its own, so that one that is given twice has two gradients."""
    with enable_grad():
        apart = [_output(x) if need else x for x, need in zip(inputs, needs)]
        out = op.define(apart, attrs)
    wanted = [x.node if need else None for x, need in zip(apart, needs)]
    results = sweep([(out.node, g)], {node for node in wanted if node is not None}, create_graph=True, quiet=True)
    return [None if node is None else results.get(node) for node in wanted]


def fuse(function: Function, rows: tuple[str, ...] | None = None, varying: tuple[str, ...] = ()) -> Function:
    """Let calls of an op or of a function made of ops go through kernels from now on.

    With `rows`, the names of the inputs whose leading axes can be taken together, (…, C) -> (N, C), the compiler writes them.
    """
    function.kernels = Kernels()
    function.kernels.rows, function.kernels.varying = rows, varying
    FUSED[function.name] = function
    return function


def fused(
    definition: Callable[..., Any] | None = None,
    /,
    rows: tuple[str, ...] | None = None,
    varying: tuple[str, ...] = (),
    **facts: Any,
) -> Any:
    """Declare a fused operation by its definition, and what is true of it, as for `@op` and `fuse`."""
    if definition is None:
        return lambda f: fused(f, rows, varying, **facts)
    return fuse(Composite(definition, **facts), rows, varying)
