"""The Tensor: an array, and the node that says how it was made.

Arithmetic and the methods that are ops (`x.sum()`, `x @ w`, `x[0]` …) are attached by `minigrad.ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import elsewhere
from .backend import Array, backend_of, device_of, duplicate, is_array, on_device_of, to_numpy
from .errors import ArgumentError, DeviceError, DtypeError, GradientError, ShapeError, describe
from .graph import Node, leaf, store, sweep
from .methods import Methods
from .modes import local
from .protocols import Protocols
from .writes import tick, writes

_new = object.__new__


def wrap(data: Array, node: Node | None = None) -> Tensor:
    """A Tensor around an array, without a copy and without a check: how the engine makes its results."""
    t = _new(Tensor)
    t.data = data
    t.node = node
    return t


class Tensor(Methods, Protocols):
    """An n-dimensional array whose history is remembered, so that derivatives can be taken through it."""

    __slots__ = ("data", "node", "__weakref__")
    __array_priority__ = 1000
    __hash__ = object.__hash__
    data: Array
    node: Node | None

    def __new__(
        cls, data: Any = (), dtype: Any = None, device: str | None = None, requires_grad: bool = False
    ) -> Tensor:
        from .convert import tensor

        made = tensor(data, dtype, device, requires_grad)
        self = _new(cls)
        self.data, self.node = made.data, made.node
        return self

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
    def size(self) -> int:
        """The number of elements."""
        return self.data.size

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
            self.node = leaf(self.shape, self.dtype)
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
        self.node.grad = array

    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Add to `.grad` of every leaf the derivative of this tensor (times `gradient`, if it is not a scalar).

        >>> import minigrad as mg
        >>> x = mg.tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor(6.)
        """
        store(sweep([(_node_of(self), seed_of(self, gradient))], retain_graph=retain_graph))

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call `hook(gradient)` whenever a backward computes this tensor's gradient; what it returns replaces it."""
        if not callable(hook):
            raise ArgumentError(
                "register_hook: a hook is a function of the gradient", "a callable", type(hook).__name__
            )
        node = _node_of(self)
        if node.hooks is None:
            node.hooks = {}
        handle = HookHandle(node.hooks)
        node.hooks[handle.key] = hook
        return handle

    def retain_grad(self) -> Tensor:
        """Keep this tensor's gradient in `.grad` although it is not a leaf; returns the tensor itself."""
        _node_of(self).retain = True
        return self

    def detach(self) -> Tensor:
        """The same values, in the same memory, as a constant."""
        return wrap(duplicate(self.data) if writes.is_stale(self.data, None) else self.data)

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array, leaving the graph: the tensor's own memory on a CPU, a copy from a GPU.

        The memory of a tensor that requires a gradient is shown read-only, since a write would go unnoticed.
        """
        array = to_numpy(self.data)
        if self.node is not None and array is self.data:
            array = array.view()
            array.flags.writeable = False
        return array

    def item(self) -> Any:
        """The one element, as a Python number."""
        if self.data.size != 1:
            raise ShapeError(
                "item: the tensor does not have exactly one element",
                "1 element",
                f"{self.size} in shape {self.shape}",
                "index it first, or use x.tolist()",
            )
        return self.data.item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self.data.tolist()

    def cpu(self) -> Tensor:
        """This tensor on the CPU."""
        return self.to("cpu")

    def cuda(self) -> Tensor:
        """This tensor on the first GPU."""
        return self.to("cuda")

    def __repr__(self) -> str:
        from .convert import get_default_dtype

        body = np.array2string(self.numpy(), separator=", ", prefix="tensor(")
        notes = [f"dtype={self.dtype}"] if self.dtype not in (get_default_dtype(), np.int64, np.bool_) else []
        notes += [f"device={self.device!r}"] if self.device != "cpu" else []
        if self.node is not None:
            notes.append("requires_grad=True" if self.node.plan is None else f"op={self.node.name}")
        return f"tensor({', '.join([body, *notes])})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __len__(self) -> int:
        if not self.shape:
            raise DtypeError("len: a tensor without axes has no length", got="shape ()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                "the truth of a tensor with several elements is ambiguous",
                "1 element",
                f"shape {self.shape}",
                "use x.any() or x.all()",
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DtypeError("only an integer tensor can be an index", "an integer dtype", self.dtype.name)
        return int(self.item())

    def __contains__(self, value: Any) -> bool:
        found = self == value
        return isinstance(found, Tensor) and bool(found.any())

    def __copy__(self) -> Tensor:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise GradientError(
                "deepcopy: only leaves can be copied deeply", got=repr(self.node), fix="use x.detach() or x.clone()"
            )
        made = type(self)(self, requires_grad=False)
        if self.node is not None:
            made.requires_grad_()
            made.grad = None if self.node.grad is None else wrap(duplicate(self.node.grad))
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise DtypeError(
            "a Tensor cannot be pickled, since unpickling runs code",
            fix="use mg.save({'name': x}, path) and mg.load(path)",
        )

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in elsewhere.NAMES]


def _hint(name: str) -> property:
    def refuse(self: Tensor) -> Any:
        raise AttributeError(f"a Tensor has no attribute {name!r}; minigrad calls it {elsewhere.NAMES[name]}")

    return property(refuse, doc=f"Not here: minigrad calls it {elsewhere.NAMES[name]}.")


for _name in elsewhere.NAMES:  # not __getattr__, which would slow down every access to .data and .node
    setattr(Tensor, _name, _hint(_name))


class HookHandle:
    """What `register_hook` returns: `remove()` takes the hook away again."""

    def __init__(self, hooks: dict[int, Any]):
        self._hooks, self.key = hooks, tick()

    def remove(self) -> None:
        self._hooks.pop(self.key, None)


def _node_of(t: Tensor) -> Node:
    if t.node is None:
        why = "it was computed inside no_grad()" if not local.mode.record else "no input of it has requires_grad=True"
        raise GradientError(
            "this tensor has no graph to differentiate",
            got=f"{t.shape} {t.dtype}; perhaps {why}",
            fix="create inputs with requires_grad=True",
        )
    return t.node


def seed_of(output: Tensor, gradient: Any) -> Array:
    """The gradient a sweep starts with: 1 for a scalar, otherwise what the user gave, checked and copied."""
    if writes.recorded and writes.is_stale(output.data, output.node):
        raise GradientError(
            "backward: this tensor shares memory with one that was written to in place, and its own graph does not know of that write",
            got=f"{output.shape} {output.dtype}",
            fix="take the view again after the write, or clone() it before",
        )
    if gradient is None:
        if output.size != 1:
            raise GradientError(
                "backward of a tensor that is not a scalar needs a gradient",
                "one element, or backward(gradient)",
                f"shape {output.shape}",
                "reduce it first, as in y.sum().backward(), or pass a gradient of that shape",
            )
        if not output.shape and output.data.__class__ is np.ndarray:
            return np.asarray(1, output.dtype)
        return backend_of(output.data).full(output.shape, 1, output.dtype, output.device)
    seed = gradient
    if not isinstance(seed, Tensor):
        from .convert import tensor

        seed = tensor(gradient, dtype=output.dtype, device=None if is_array(gradient) else output.device)
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
    with on_device_of(seed.data):
        return seed.data.astype(output.dtype, copy=True)
