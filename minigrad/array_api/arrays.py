"""Results that have no derivative, computed by the array library itself, and results that may be written to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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


def writable(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function, with results in memory that no rule keeps: code for the standard often writes into what it gets.

    `exp` keeps its output for the backward, which a write would spoil, so that the backward would have to be refused.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Tensor:
        result = function(*args, **options)
        node = result.node
        if node is None or node.saved is None:
            return result
        is_kept = result.data.base is not None or any(value is result.data for value in node.saved)
        return result.clone() if is_kept else result

    return call
