"""Functions of the array library itself, on the values of tensors: for results that have no derivative."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ..engine.backend import as_array, backend_of, on_device_of
from ..engine.modes import local, notify
from ..engine.tensor import Tensor, wrap
from ..errors import GradientError


def on_arrays(name: str, *args: Any, **options: Any) -> Any:
    """What NumPy's (or CuPy's) function of that name gives for the values of tensors, outside of any graph.

    A floating or complex result of a tensor that requires a gradient is refused: its graph would end silently.
    """
    tensors = [x for x in (*args, *options.values()) if isinstance(x, Tensor)]
    for t in tensors:
        notify("read", t, name)
    first = tensors[0].data
    with on_device_of(first):
        result = attrgetter(name)(backend_of(first).xp)(
            *[_values(x) for x in args], **{key: _values(x) for key, x in options.items()}
        )
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    if local.mode.record and any(t.node is not None for t in tensors) and any(o.dtype.kind in "fc" for o in outputs):
        raise GradientError(f"{name}: this has no derivative here", fix="x.detach() says that the graph ends")
    made = [wrap(as_array(o)) for o in outputs]
    if not isinstance(result, (tuple, list)):
        return made[0]
    return type(result)(*made) if hasattr(result, "_fields") else tuple(made)


def _values(x: Any) -> Any:
    return x.data if isinstance(x, Tensor) else x
