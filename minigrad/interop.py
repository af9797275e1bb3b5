"""Tensors where others expect numbers, sequences or arrays: Python's and NumPy's protocols, DLPack, and PyTorch's names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from .engine.backend import backend_named, duplicate, to_numpy
from .engine.call import check_fresh
from .engine.modes import local, notify
from .engine.tensor import Tensor, wrap
from .engine.writes import writes
from .errors import FOREIGN_ATTRIBUTES, PYTORCH_NAMES, ArgumentError, DtypeError, GradientError, ShapeError
from .foreign_arrays import no_bfloat16
from .ops import FUNCTIONS
from .ops.creation import constant, empty_like, full_like, get_default_dtype, ones_like, zeros_like

__all__ = ["NUMPY", "from_dlpack", "is_hint"]

IN_LINALG = (
    "cholesky", "cond", "det", "eigh", "eigvalsh", "inv", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv",
    "qr", "slogdet", "solve", "svdvals", "tensorinv", "tensorsolve",
)  # fmt: skip
NOT_NUMPY = {
    "put_along_axis",
    "svd",
    "permute_dims",
}  # NumPy's writes in place, gives another form, or is its transpose
ALIASES = {  # NumPy has two functions for one of ours
    np.amax: "max",
    np.amin: "min",
    np.around: "round",
    np.rint: "round",
    np.invert: "bitwise_invert",
    np.radians: "deg2rad",
    np.degrees: "rad2deg",
    np.linalg.matmul: "matmul",
    np.linalg.tensordot: "tensordot",
    np.linalg.vecdot: "vecdot",
    np.linalg.outer: "outer",
    np.linalg.cross: "cross",
}

SCIPY = {  # the ufuncs of scipy.special
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "expit": "sigmoid", "logit": "logit", "log_expit": "logsigmoid",
    "gammaln": "lgamma", "psi": "digamma", "xlogy": "xlogy", "exp2": "exp2", "log1p": "log1p", "expm1": "expm1", "cbrt": "cbrt",
}  # fmt: skip


def _counterparts(functions: dict[str, Callable[..., Any]]) -> dict[Callable[..., Any], Callable[..., Any]]:
    """NumPy's functions, and what they call when given a Tensor."""
    table: dict[Any, Any] = {
        getattr(np, name): f for name, f in functions.items() if hasattr(np, name) and name not in NOT_NUMPY
    }
    table |= {getattr(np.linalg, name): functions[name] for name in IN_LINALG}
    table |= {theirs: functions[ours] for theirs, ours in ALIASES.items()}
    table |= {np.matrix_transpose: lambda x: x.mT, np.linalg.matrix_transpose: lambda x: x.mT}
    table[np.where] = lambda condition, *values: functions["where" if values else "nonzero"](condition, *values)
    table |= {np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}
    table |= {np.zeros_like: zeros_like, np.ones_like: ones_like, np.full_like: full_like, np.empty_like: empty_like}
    table[np.linalg.svd] = lambda x, full_matrices=True, compute_uv=True: (
        functions["svd"](x, full_matrices=full_matrices) if compute_uv else functions["svdvals"](x)
    )
    table[np.linalg.diagonal] = lambda x, *, offset=0: functions["diagonal"](x, offset, -2, -1)
    table[np.linalg.trace] = lambda x, *, offset=0: functions["trace"](x, offset, -2, -1)
    return table


NUMPY = _counterparts(FUNCTIONS)  # for np.exp(t) and the like


class Protocols(Tensor):
    """What Python and NumPy ask of an object: `len(t)`, `float(t)`, `np.exp(t)`, `array + t`. Tensor itself gets these methods."""

    __slots__ = ()

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array, leaving the graph: the tensor's own memory on a CPU, a copy from a GPU.

        The memory of a tensor that requires a gradient is shown read-only, since a write would go unnoticed.
        """
        notify("read", self, "numpy")
        array = to_numpy(self.data)
        if self.node is not None and array is self.data:
            array = array.view()
            array.flags.writeable = False
        return array

    def item(self, *index: Any) -> Any:
        """The one element as a Python number, or with an index the i-th of all, or the one at (i, j, …), as NumPy's."""
        if index:
            place = index[0] if isinstance(index[0], tuple) else index
            return self[place].item() if len(place) > 1 else self.reshape(-1)[place].item()
        if self.data.size != 1:
            raise ShapeError(
                "item: the tensor does not have exactly one element",
                "1 element",
                f"{self.size} in shape {self.shape}",
                "index it first, or use x.tolist()",
            )
        notify("read", self, "item")
        return self.data.item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        notify("read", self, "tolist")
        return self.data.tolist()

    def __repr__(self) -> str:
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

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
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

    def __complex__(self) -> complex:
        return complex(self.item())

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module `minigrad.array_api`, which keeps the array API standard."""
        namespace = import_module("minigrad.array_api")  # loaded when first asked for
        if api_version not in (None, *namespace.SUPPORTED_VERSIONS):
            raise ArgumentError(
                "__array_namespace__: this version of the standard is not offered",
                ", ".join(namespace.SUPPORTED_VERSIONS),
                repr(api_version),
            )
        return namespace

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """This tensor on another device, as the array API standard has it; `x.to(device)` does the same."""
        if stream is not None:
            raise ArgumentError("to_device: streams are not offered", "stream=None", repr(stream))
        return self.to(device=device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory of this tensor for another library, or a copy of it, as the array API standard has it."""
        array = constant(self, "DLPack")
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(to_numpy(constant(self, "np.asarray")), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc not in NUMPY and method == "__call__":
            return _foreign_ufunc(ufunc, inputs, kwargs)
        out = kwargs.pop("out", None)
        name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        if ufunc not in NUMPY or method != "__call__" or kwargs:
            raise DtypeError(
                f"{name} does not work on Tensors this way",
                fix="use the minigrad function of that name without extra arguments, or x.numpy()",
            )
        if out is None:
            return NUMPY[ufunc](*inputs)
        arrays = [constant(x, f"{name}(…, out=…)") if isinstance(x, Tensor) else x for x in (*inputs, *out)]
        if local.mode.record:
            check_fresh(f"{name}(…, out=…)", arrays, [None] * len(arrays))
        ufunc(*arrays[: len(inputs)], out=tuple(arrays[len(inputs) :]))
        for target in arrays[len(inputs) :]:
            writes.mark(target)
        return out[0]

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func in NUMPY:
            return NUMPY[func](*args, **kwargs)
        where = f"np.{func.__name__}, which has no counterpart in minigrad"
        return func(*[_read_only(x, where) for x in args], **{k: _read_only(x, where) for k, x in kwargs.items()})

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in HINTS]


def _hint(name: str) -> property:
    def refuse(self: Tensor) -> Any:
        from .foreign_names import TENSORS, hint  # a large table, which only mistakes need

        told = f"minigrad calls it {PYTORCH_NAMES[name]}" if name in PYTORCH_NAMES else hint(TENSORS, name)
        raise AttributeError(f"a Tensor has no attribute {name!r}; {told}")

    return property(refuse, doc="Not here: the error says what minigrad calls it.")


for _name, _method in vars(Protocols).items():
    if callable(_method):
        _method.__qualname__ = f"Tensor.{_name}"
        setattr(Tensor, _name, _method)
HINTS = frozenset((*PYTORCH_NAMES, *FOREIGN_ATTRIBUTES.split()))
for _name in HINTS:  # not __getattr__, which would slow down every access to .data and .node
    setattr(Tensor, _name, _hint(_name))


def is_hint(name: str) -> bool:
    """Whether an attribute of Tensor only says what minigrad calls it."""
    return name in HINTS


def _foreign_ufunc(ufunc: np.ufunc, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """A ufunc of SciPy by the op of that name; any other one on constants, giving what it gives."""
    ours = SCIPY.get(ufunc.__name__)
    if (
        ours is not None
        and not kwargs
        and getattr(sys.modules.get("scipy.special._ufuncs"), ufunc.__name__, None) is ufunc
    ):
        return FUNCTIONS[ours](*inputs)
    where = f"{ufunc.__name__}, which has no counterpart in minigrad"
    return ufunc(*[_read_only(x, where) for x in inputs], **{k: _read_only(x, where) for k, x in kwargs.items()})


def _read_only(value: Any, where: str) -> Any:
    """Constants as arrays that cannot be written to, also inside lists, for a function that knows nothing of Tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)([_read_only(item, where) for item in value])
    if not isinstance(value, Tensor):
        return value
    array = to_numpy(constant(value, where)).view()
    array.flags.writeable = False
    return array


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A Tensor that shares memory with any array that speaks DLPack (NumPy, CuPy, PyTorch, JAX …).

    On another `device`, or with `copy=True`, it has memory of its own; `copy=False` refuses what needs a copy.
    """
    shared = _shared(x)
    if device not in (None, shared.device):
        if copy is False:
            raise ArgumentError(
                "from_dlpack: another device needs a copy",
                f"device={shared.device!r}",
                f"copy=False, device={device!r}",
            )
        return shared.to(device=device)
    return shared.clone() if copy else shared


def _shared(source: Any) -> Tensor:
    """A Tensor in the memory of an array that speaks DLPack."""
    if isinstance(source, Tensor):  # its own memory, so that writes are seen by both
        constant(source, "from_dlpack")
        return source.detach()
    if type(source) is np.ndarray:
        return wrap(source)
    if "bfloat16" in str(getattr(source, "dtype", "")):
        raise no_bfloat16("from_dlpack", type(source).__name__)
    if hasattr(source, "__dlpack_device__") and source.__dlpack_device__()[0] != 1:
        return wrap(backend_named("cuda").xp.from_dlpack(source))
    try:
        return wrap(np.from_dlpack(source))
    except (AttributeError, TypeError):
        raise DtypeError(
            "from_dlpack: this object does not speak DLPack", "an array with a __dlpack__ method", type(source).__name__
        ) from None
