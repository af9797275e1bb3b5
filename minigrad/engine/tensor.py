"""The Tensor: an array, and the node that says how it was made.

Arithmetic and the methods that are ops (`x.sum()`, `x @ w`, `x[0]` …) are attached by `minigrad.ops`.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..errors import DeviceError, DtypeError, GradientError, ShapeError, describe
from ..numel import Numel
from .backend import Array, backend_of, device_of, duplicate, is_array
from .graph import Node, leaf, store, sweep
from .methods import Methods
from .modes import local, notify
from .writes import writes

_new = object.__new__


def wrap(data: Array, node: Node | None = None) -> Tensor:
    """A Tensor around an array, without a copy and without a check: how the engine makes its results."""
    t = _new(Tensor)
    t.data, t.node = data, node
    return t


class Tensor(Methods):
    """An n-dimensional array whose history is remembered, so that derivatives can be taken through it."""

    __slots__ = ("data", "node", "__weakref__")
    __array_priority__ = 1000
    __hash__ = object.__hash__
    data: Array
    node: Node | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    @property
    def size(self) -> Numel:
        """The number of elements; called, it gives the shape, as PyTorch's: `x.size()`, and `x.size(0)` for one axis."""
        return Numel.of(self.data)

    @property
    def nbytes(self) -> int:
        """The number of bytes the elements take."""
        return self.data.nbytes

    @property
    def device(self) -> str:
        """Where the elements live: "cpu", "cuda", "cuda:1"."""
        return device_of(self.data)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are remembered for differentiation."""
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was made by a user rather than by a recorded operation."""
        return self.node is None or self.node.plan is None

    def requires_grad_(self, value: bool = True) -> Tensor:
        """Start (or stop) remembering operations on this tensor; returns the tensor itself."""
        if not value:
            if not self.is_leaf:
                raise GradientError(
                    "requires_grad_(False): this tensor is the result of a recorded operation",
                    fix="use x.detach() to get one that is not",
                )
            self.node = None
        elif self.node is None:
            if self.dtype.kind != "f":
                raise DtypeError(
                    "only floating tensors can require a gradient",
                    "float16, float32 or float64",
                    self.dtype.name,
                    "make it floating: x.astype('float32')",
                )
            if writes.is_stale(self.data, None):
                raise GradientError(
                    "requires_grad_: this tensor shares memory with one that the graph has written to",
                    got=f"{self.shape} {self.dtype}",
                    fix="take the view again after the write, or clone() it before",
                )
            self.node = leaf(self.data)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward()` has added up here; None before, and for tensors that do not require one."""
        return None if self.node is None or self.node.grad is None else wrap(self.node.grad)

    @grad.setter
    def grad(self, value: Tensor | Array | None) -> None:
        if value is None:
            if self.node is not None:
                self.node.grad = None
                notify("cleared", self.node)
            return
        if self.node is None:
            raise GradientError(
                "a tensor that does not require a gradient cannot hold one", fix="call x.requires_grad_() first"
            )
        array = value.data if isinstance(value, Tensor) else value
        if not is_array(array):
            raise DtypeError(
                "a gradient must be a Tensor or an array", f"{self.shape} {self.dtype}", type(value).__name__
            )
        if array.shape != self.shape or array.dtype != self.dtype or device_of(array) != self.device:
            raise ShapeError(
                "a gradient must look like its tensor",
                f"{self.shape} {self.dtype} on {self.device}",
                f"{describe(array)} on {device_of(array)}",
            )
        notify("stored", self.node, array)
        self.node.grad = array

    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Add to `.grad` of every leaf the derivative of this tensor (times `gradient`, if it is not a scalar).

        >>> import minigrad as mg
        >>> x = mg.tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor(6.)
        """
        seed = seed_of(self, gradient)
        store(differentiate([(node_of(self, "backward"), seed)], retain_graph=retain_graph), seed)

    def retain_grad(self) -> Tensor:
        """Keep this tensor's gradient in `.grad` although it is not a leaf; returns the tensor itself."""
        node_of(self, "retain_grad").retain = weakref.ref(self)
        return self

    def detach(self) -> Tensor:
        """The same values, in the same memory, as a constant."""
        return wrap(duplicate(self.data) if writes.is_stale(self.data, None) else self.data)


def node_of(t: Tensor, where: str) -> Node:
    """The node that tells how the values of a tensor were made; refused where there is none, or it does not tell."""
    if writes.since and writes.is_stale(t.data, t.node):
        raise GradientError(
            f"{where}: this tensor shares memory with a tensor that was written to in place, and its own graph does not know of that write",
            got=f"{t.shape} {t.dtype}",
            fix="take the view again after the write, or clone() it before",
        )
    if t.node is None:
        raise GradientError(
            f"{where}: this tensor has no graph to differentiate",
            got=f"{t.shape} {t.dtype}; perhaps "
            + ("no input of it has requires_grad=True" if local.mode.record else "it was computed inside no_grad()"),
            fix="create inputs with requires_grad=True",
        )
    return t.node


def differentiate(seeds: Any, targets: set[Node] | None = None, retain_graph: bool = False) -> dict[Node, Array]:
    """`sweep` without a graph of the result: by rules that run on arrays, or on Tensors if a tracer is to see their ops."""
    if not local.mode.tracers or not any(tracer.symbolic for tracer in local.mode.tracers):
        return sweep(seeds, targets, retain_graph=retain_graph)
    results = sweep([(node, wrap(g)) for node, g in seeds], targets, create_graph=True)
    for node, g in results.items() if targets is None else ():
        notify("storing", node)
        if node.grad is not None:  # added here, where it is seen
            results[node] = wrap(node.grad) + g
            node.grad = None
    return {node: g.data for node, g in results.items()}


def seed_of(output: Tensor, gradient: Any) -> Array:
    """The gradient a sweep starts with: 1 for a scalar, otherwise what the user gave, checked: no rule writes into it."""
    if gradient is None:
        if output.data.size != 1:
            raise GradientError(
                "backward of a tensor that is not a scalar needs a gradient",
                "one element, or backward(gradient)",
                f"shape {output.shape}",
                "reduce it first, as in y.sum().backward(), or pass a gradient of that shape",
            )
        if not output.shape and output.data.__class__ is np.ndarray and not local.mode.tracers:
            return np.asarray(1, output.dtype)
        seed = backend_of(output.data).full(output.shape, 1, output.dtype, output.device)
        notify("created", seed)
        return seed
    device = None if is_array(gradient) else output.device
    seed = gradient if isinstance(gradient, Tensor) else Tensor(gradient, output.dtype, device)
    if seed.shape != output.shape:
        raise ShapeError(
            "backward: the gradient does not look like the output",
            output.shape,
            seed.shape,
            f"pass one of shape {output.shape}",
        )
    if seed.device != output.device:
        raise DeviceError(
            "backward: the gradient is not where the output is", output.device, seed.device, "move it with g.to(device)"
        )
    return seed.data if seed.dtype == output.dtype else seed.detach().astype(output.dtype).data
