"""Every error minigrad raises on purpose: what went wrong, what was expected, what came, and the fix."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# What PyTorch calls a thing, and what minigrad, with NumPy, calls it.
PYTORCH_NAMES = {
    "view": "reshape", "permute": "transpose or permute_dims", "unsqueeze": "expand_dims", "cat": "concatenate", "concat": "concatenate",
    "pow": "** or power", "mul": "* or multiply", "sub": "- or subtract", "div": "/ or divide", "neg": "- or negative",
    "mm": "@ or matmul", "bmm": "@ or matmul", "clamp": "clip",
    "index_select": "take", "expand": "broadcast_to", "amax": "max", "amin": "min", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "dim": "ndim", "numel": "size", "type": "astype", "t": "T", "copy": "clone", "contiguous": "clone", "chunk": "split", "grad_fn": "node",
    "float": "astype('float32')", "double": "astype('float64')", "half": "astype('float16')", "long": "astype('int64')",
    "int": "astype('int32')", "zero_": "x[...] = 0", "fill_": "x[...] = value", "copy_": "x[...] = y", "add_": "+=", "sub_": "-=",
    "mul_": "*=", "div_": "/=", "array": "tensor", "asarray": "tensor", "from_numpy": "tensor", "set_grad_enabled": "no_grad or enable_grad",
}  # fmt: skip
# Further attributes that arrays of PyTorch, NumPy and JAX have: `foreign_names` says what they are here.
FOREIGN_ATTRIBUTES = """
    absolute acosh addbmm addcdiv addcmul addmm addmv addr adjoint aminmax argwhere asinh atan2 atanh baddbmm bitwise_not bool byte
    clamp_max clamp_min dist eq ge ger gt index_put_ inverse is_complex is_floating_point kthvalue le lt movedim msort mv nanquantile
    narrow ne pinverse put repeat_interleave select sgn short split_with_sizes swapdims take_along_dim tensor_split true_divide unbind
    vdot choose compress fill at values indices expand_as view_as reshape_as type_as new_zeros new_ones new_full new_empty new_tensor
    is_cuda is_cpu get_device itemsize element_size nelement ndimension stride strides flags is_contiguous flat base data_ptr tobytes
    tofile dump block_until_ready unfold prelu hardshrink mH H conjugate allclose bernoulli multinomial partition
    argpartition char register_post_accumulate_grad_hook retains_grad clamp_ relu_ exp_ log_ sqrt_ sigmoid_ tanh_ abs_ neg_ pow_
    normal_ uniform_ random_ bernoulli_ exponential_ masked_fill_ masked_scatter_ scatter_ scatter_add_ index_add_ index_copy_
    index_fill_ fill_diagonal_ clip_ floor_ round_ lerp_ addcmul_ addcdiv_ squeeze_ unsqueeze_ transpose_ t_ resize_ detach_
    histc mode
"""
# What PyTorch and NumPy call an argument, and what it may be called here: the first that a function takes.
PYTORCH_ARGUMENTS = {
    "dim": "axis", "dims": "axis axes reps", "keepdim": "keepdims", "correction": "ddof", "start_dim": "start_axis", "end_dim": "end_axis",
    "embed_dim": "dim", "d_model": "dim", "num_heads": "heads", "nhead": "heads", "kdim": "key_dim", "vdim": "value_dim",
    "dim_feedforward": "hidden", "num_layers": "depth", "T_max": "total", "total_steps": "total", "eta_min": "min_lr", "step_size": "size",
    "unbiased": "ddof", "p": "ord", "in_dims": "in_axes", "out_dims": "out_axes", "learning_rate": "lr", "tensors": "arrays",
    "a_min": "min", "a_max": "max", "newshape": "shape", "max_epochs": "epochs", "num_epochs": "epochs",
    "other": "b", "exponent": "b", "vec2": "b", "ar2": "b", "a2": "b", "end": "b", "x1": "a", "x2": "b", "y": "b", "A": "a", "B": "b",
    "diagonal": "k offset", "offset": "k", "dim0": "axis1", "dim1": "axis1 axis2", "dim2": "axis2", "size": "shape repeats",
    "index": "indices", "src": "values", "shifts": "shift", "attn_mask": "mask", "pad": "pad_width", "interpolation": "method",
    "sorted_sequence": "a", "equation": "subscripts", "split_size_or_sections": "indices_or_sections",
    "sections": "indices_or_sections", "indices": "index indices_or_sections", "train": "training", "M": "m", "weight": "weights",
    "some": "full_matrices", "unitriangular": "unit_diagonal", "descending": "largest", "reps": "repeats",
}  # fmt: skip
# Options of NumPy and PyTorch, and what does the same where a function does not take them.
UNOFFERED = {
    "out": "write x[...] = f(y)", "where": "use mg.where(condition, f(x), y)", "initial": "add it to the result, or use mg.maximum",
    "casting": "convert first: x.astype(dtype)", "subok": "there are no subclasses", "order": "layouts are NumPy's C order",
    "like": "give device=", "layout": "tensors are dense", "memory_format": "layouts are NumPy's C order", "pin_memory": "x.to(device) copies",
    "non_blocking": "x.to(device) waits", "inplace": "write x = f(x)", "generator": "mg.manual_seed sets the one source",
    "size_average": "use reduction=", "reduce": "use reduction=", "sparse": "gradients are dense", "antialias": "there is no filter for it",
    "dtype": "convert the result: x.astype(dtype)", "kind": "sorting is stable", "hermitian": "use mg.linalg.eigh",
    "compute_uv": "use mg.linalg.svdvals", "rounding_mode": "use mg.floor_divide, or mg.trunc(a / b)", "optimize": "the order of products is found",
    "overwrite_input": "inputs stay as they are", "max_norm": "scale the rows of the weight", "norm_type": "scale the rows of the weight",
    "scale_grad_by_freq": "gradients are sums", "out_int32": "positions are int64", "sparse_grad": "gradients are dense",
    "as_tuple": "it gives a tuple, a tensor for each axis; mg.stack(mg.nonzero(x), axis=-1) has a row for each place",
    "right": "use side='right'", "upper": "lower=False is the upper one", "retstep": "the step is x[1] - x[0]", "allow_pickle": "there is no pickle",
    "mmap_mode": "files are mapped if they can be",
    "verbose": "print what you want to see", "batch_first": "batches always come first",
}  # fmt: skip


class MinigradError(Exception):
    """The common base: catch this to catch whatever minigrad refuses to do.

    The message is laid out so that the eye finds each part: the problem, what was expected, what came, the fix.
    """

    def __init__(self, problem: str, expected: object = None, got: object = None, fix: object = None):
        parts = (("expected", expected), ("got", got), ("fix", fix))
        lines = [f"  {label + ':':9} {text}" for label, text in parts if text is not None]
        super().__init__("\n".join([problem, *lines]))


class ArgumentError(MinigradError, ValueError):
    """An argument has a value that the function cannot take."""


class CallError(ArgumentError, TypeError):
    """A function was called with too many arguments, too few, or one it does not have."""


class ShapeError(MinigradError, ValueError):
    """Shapes do not fit together."""


class AxisError(MinigradError, ValueError, IndexError):
    """An axis does not exist, or is named twice."""


class IndexingError(MinigradError, IndexError):
    """An index, or a class label, is out of range or of the wrong kind."""


class DtypeError(MinigradError, TypeError):
    """A dtype is unknown, or cannot be used here."""


class DeviceError(MinigradError, ValueError):
    """A device is unknown, absent, or two devices were mixed."""


class GradientError(MinigradError, RuntimeError):
    """A derivative was asked for that does not exist or can no longer be computed."""


class NonFiniteError(MinigradError, ArithmeticError):
    """Under `minigrad.debug()`: an operation produced the first NaN or infinity."""


class CheckpointError(MinigradError, ValueError):
    """A file of tensors is missing, damaged, or not what it claims to be."""


class MissingExtraError(MinigradError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def install_hint(extra: str, *options: str) -> str:
    """The command that installs an extra for this Python, from the checkout: package indexes have another `minigrad`.

    >>> install_hint("viz").partition(" -m ")[2]  # doctest: +ELLIPSIS
    "pip install -e '...[viz]'"
    """
    checkout = Path(__file__).resolve().parent.parent
    command = [sys.executable or "python", "-m", "pip", "install", *options, "-e"]
    if (checkout / "setup.cfg").is_file():
        return shlex.join([*command, f"{checkout}[{extra}]"])
    return f"{shlex.join([*command, f'.[{extra}]'])}, in the checkout of minigrad"


def public(module: str, known: Iterable[str], kind: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that shows the names in `known` alone, and says what a missing one is called.

    `kind` says whose names people may have in mind: one of `minigrad.foreign_names`.
    """
    names = sorted(known)

    def __getattr__(name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else missing_name(module, name, names, kind)

    return __getattr__, lambda: [*names, "__doc__", "__file__", "__name__"]


def missing_name(module: str, name: str, known: Iterable[str], kind: str = "", near: str = "") -> AttributeError:
    """The error for a name that a module does not have: what it is called here, why it is missing, or what is near."""
    from .foreign_names import hint  # a large table, which only mistakes need

    folded = {option.casefold(): option for option in known}
    asked = name.casefold()
    close = difflib.get_close_matches(asked, folded, n=3, cutoff=0.72)
    close = close or [option for option in folded if len(asked) > 3 and asked in option][:3]
    near = near or (
        f"did you mean {' or '.join(repr(folded[c]) for c in close)}?"
        if close
        else f"dir({module}) lists what there is"
    )
    return AttributeError(f"module {module!r} has no attribute {name!r}: {hint(kind, name) or near}", name=name)


def missing_attribute(owner: Any, name: str, kind: str) -> AttributeError:
    """The error for an attribute that an object does not have, with what minigrad calls it."""
    from .foreign_names import CALLED  # as above

    called = "" if name.startswith("_") else CALLED[kind].get(name, "")
    ending = f": minigrad calls it {called}" if called else ""
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{ending}", name=name, obj=owner)


def likely_argument(name: str, known: Iterable[str]) -> str | None:
    """What a function calls the argument that PyTorch or NumPy calls `name`, if it has one."""
    return next((option for option in PYTORCH_ARGUMENTS.get(name, "").split() if option in known), None)


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """A phrase such as "did you mean 'float32' or 'float64'?", or the whole list when nothing is near."""
    options = [str(k) for k in known]
    folded: dict[str, list[str]] = {}
    for option in options:
        folded.setdefault(option.casefold(), []).append(option)
    matches = difflib.get_close_matches(str(name).casefold(), folded, n=count, cutoff=0.5)
    close = [option for match in matches for option in folded[match]][:count]
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "choose one of " + ", ".join(options)


def printable(value: Any) -> str:
    """Text that does nothing to a terminal but appear: control characters, but for line ends and tabs, are spelt out."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in str(value))


def describe(value: Any) -> str:
    """`(2, 3) float32` for an array, `3.0` for a scalar, the same inside tuples, and the type's name for anything else."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, (tuple, list)) and len(value) <= 8:
        parts = ", ".join(describe(v) for v in value) + "," * (isinstance(value, tuple) and len(value) == 1)
        return f"({parts})" if isinstance(value, tuple) else f"[{parts}]"
    if value is Ellipsis:
        return "…"
    if isinstance(value, slice):
        bounds = ["" if bound is None else str(bound) for bound in (value.start, value.stop, value.step)]
        return ":".join(bounds).removesuffix(":")
    return repr(value) if isinstance(value, (bool, int, float, complex, type(None), str)) else type(value).__name__


def is_whole(value: Any) -> bool:
    """Whether `value` is one whole number: Python's, NumPy's, or a Tensor without axes; a boolean is none."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and not getattr(value, "ndim", 0)


def axes_of(axis: Any) -> tuple[Any, ...]:
    """One axis, or a tuple or list of them, as a tuple."""
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


def axis_problem(where: str, axis: Any, ndim: int, shape: Sequence[Any]) -> AxisError | None:
    """The error for `axis` on an array of `ndim` dimensions, or None if the axis is fine."""
    axes = axes_of(axis)
    got = f"axis={axis!r} for shape {tuple(shape)}"
    if not all(is_whole(a) for a in axes):
        return AxisError(f"{where}: an axis must be a whole number", "an int or a tuple of ints", got)
    positive = [a.__index__() + (ndim if a < 0 else 0) for a in axes]
    if any(not 0 <= a < ndim for a in positive):
        expected = f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis: the array has no dimensions"
        return AxisError(f"{where}: there is no such axis", expected, got, "count axes from 0, or from the end with -1")
    if len(set(positive)) != len(positive):
        return AxisError(f"{where}: an axis is named twice", "each axis once", got, "drop the repeated axis")
    return None


def broadcast_problem(where: str, shapes: Sequence[tuple[int, ...]]) -> ShapeError | None:
    """The error for shapes that do not broadcast, naming the first axis that clashes; None if they do."""
    longest = max((len(s) for s in shapes), default=0)
    for back in range(1, longest + 1):
        sizes = [s[-back] for s in shapes if len(s) >= back]
        if len({n for n in sizes if n != 1}) > 1:
            clash = " and ".join(str(n) for n in dict.fromkeys(n for n in sizes if n != 1))
            return ShapeError(
                f"{where}: shapes do not broadcast, axis -{back} has sizes {clash}",
                "equal sizes, or 1, on every axis counted from the right",
                " and ".join(str(s) for s in shapes),
                "reshape one of them, or add an axis of size 1 with expand_dims or x[:, None]",
            )
    return None


def inside(name: str, scope: str, error: MinigradError) -> MinigradError:
    """The same error, with the name of the function that was called in front of the op that it failed in."""
    text = str(error).removeprefix(f"{scope}: ")
    if not text.startswith(f"{name}:"):
        error.args = (f"{scope}: {name}: {text}" if scope else f"{name}: {text}",)
    return error


def explain(op: Any, arrays: Sequence[Any], attrs: Mapping[str, Any], scope: str, error: Exception) -> MinigradError:
    """Turn what the array library raised inside `op` into an error in minigrad's own words."""
    name = op.name.lstrip("_")
    where = f"{scope}: {name}" if scope else name
    shapes = [tuple(x.shape) for x in arrays if hasattr(x, "shape")]
    axis = attrs.get("axis")
    reason = None
    with suppress(Exception):  # an explanation that fails must not hide what it explains
        reason = op.explain(*arrays, **attrs) if op.explain is not None else None
    if isinstance(reason, MinigradError):
        return inside(name, scope, reason)
    if axis is not None and shapes and (problem := axis_problem(where, axis, len(shapes[0]), shapes[0])):
        return problem
    if op.elementwise and (clash := broadcast_problem(where, shapes)):
        return clash
    got = ", ".join([describe(x) for x in arrays] + [f"{k}={describe(v)}" for k, v in attrs.items()])
    if isinstance(error, AttributeError) and any(isinstance(x, (int, float, complex)) for x in arrays):
        return DtypeError(
            f"{where}: a plain number stands where a tensor is needed",
            "Tensors or arrays",
            got,
            "make a tensor of it, as in mg.tensor(2.0)",
        )
    if isinstance(error, TypeError) and any(_no_number(x) for x in arrays):
        return DtypeError(f"{where}: an operand is not a number or an array", "a Tensor, an array or a number", got)
    if isinstance(error, TypeError) and isinstance(axis, (tuple, list)):
        return AxisError(
            f"{where}: this axis cannot be used here",
            "an int, or a tuple of ints where several axes make sense",
            got,
            "give one axis",
        )
    kind = _kind_of(error)
    if reason:
        expected, fix = reason
        return (ShapeError if kind is ArgumentError else kind)(
            f"{where}: cannot be computed for this input", expected, got, fix
        )
    if op.expects is not None:
        return kind(f"{where}: cannot be computed for this input", op.expects, got)
    return kind(f"{where}: {_one_line(error)}", got=got)


def wrong_count(rule: str, inputs: int, grads: Any) -> GradientError:
    """The error for a rule for all inputs that did not give a gradient, or None, for each."""
    is_sequence = isinstance(grads, (tuple, list))
    gave = f"{len(grads)} gradient{'s' * (len(grads) != 1)}" if is_sequence else "no tuple of gradients"
    return GradientError(
        f"{rule} gave {gave} for {'1 input' if inputs == 1 else f'{inputs} inputs'}",
        "a tuple with an array for each input, or None where `needs` is false",
        describe(grads),
    )


def no_array(name: str, out: Any) -> ArgumentError:
    """The error for a forward that returned something else."""
    several = "declare an op that returns several arrays with @mg.op(several=True)"
    fix = several if isinstance(out, tuple) else None
    return ArgumentError(f"{name}: its forward returned {describe(out)}", "an array", fix=fix)


def no_derivative(name: str, dtype: Any) -> GradientError:
    """The error for an op that gave complex numbers from inputs that need a gradient."""
    fix = "x.detach() says that the graph ends"
    return GradientError(f"{name}: complex results have no derivative here", got=str(dtype), fix=fix)


def _no_number(value: Any) -> bool:
    return value is None or isinstance(value, str) or hasattr(value, "dtype") and value.dtype.kind not in "biufc"


def _kind_of(error: Exception) -> type[MinigradError]:
    if isinstance(error, IndexError):
        return IndexingError
    return DtypeError if isinstance(error, (TypeError, AttributeError)) else ArgumentError


def _one_line(error: Exception) -> str:
    """The library's own words, on one line, for the rare case that has no better explanation."""
    text = " ".join(str(error).split()) or type(error).__name__
    return "is not defined for numbers of this kind" if "ufunc" in text else text
