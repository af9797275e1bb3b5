"""Functions of the array library itself, on the values of tensors: for results that have no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.backend import as_array, on_device_of
from ..engine.call import settle
from ..engine.modes import local, notify
from ..engine.tensor import Tensor, wrap
from ..errors import GradientError


def on_arrays(name: str, compute: Callable[..., Any], *inputs: Any) -> Any:
    """What `compute(xp, *arrays)` gives for the values of tensors, outside of any graph: a Tensor, or a tuple of them.

    A floating or complex result of a tensor that requires a gradient is refused: its graph would end silently.
    """
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    for t in tensors:
        notify("read", t, name)
    arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
    xp, _ = settle(name, arrays)
    with on_device_of(tensors[0].data):
        result = compute(xp, *arrays)
    outputs = [as_array(o) for o in (result if isinstance(result, (tuple, list)) else (result,))]
    if local.mode.record and any(t.node is not None for t in tensors) and any(o.dtype.kind in "fc" for o in outputs):
        raise GradientError(f"{name}: this has no derivative here", fix="x.detach() says that the graph ends")
    made = tuple([wrap(o) for o in outputs])
    return made if isinstance(result, (tuple, list)) else made[0]
