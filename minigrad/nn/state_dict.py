"""State dicts: whether one fits a model, which is checked before anything is written; and moving tensors to a dtype or device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..engine.backend import Array, is_array, to_numpy
from ..engine.tensor import Tensor, wrap
from ..errors import DtypeError, MinigradError
from ..kernels import Packed
from ..ops.creation import tensor


class StateError(MinigradError, ValueError):
    """A state dict does not fit the model it is loaded into."""


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(state, strict=False)` passed over: names only the model has, and names only the state has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def fitted(
    model: str, own: Mapping[str, Any], state: Mapping[str, Any], strict: bool
) -> tuple[list[tuple[Tensor, Array]], dict[int, Packed], IncompatibleKeys]:
    """Each tensor of a model with the array to be copied into it, and the packed weights by the ids of what they replace.

    A StateError lists all that does not fit.
    """
    if not isinstance(state, Mapping):
        fix = "pass what state_dict() gave, or the tensors that mg.load read"
        raise StateError(f"{model}: this is not a state dict", "names with their tensors", type(state).__name__, fix)
    paths: dict[int, list[str]] = {}
    for name, mine in own.items():
        paths.setdefault(id(mine), []).append(name)
    missing = [name for name, mine in own.items() if not any(path in state for path in paths[id(mine)])]
    unexpected = [name for name in state if name not in own]
    given = {name: _as_tensor(state[name]) for name in own if name in state}
    misshaped = [
        f"{name} (model {own[name].shape}, state {value.shape})"
        for name, value in given.items()
        if value is not None and value.shape != own[name].shape
    ]
    unfit = [
        f"{name} (model {_kind(own[name])}, state {'no numbers' if value is None else _kind(value)})"
        for name, value in given.items()
        if value is None or not _fits_kind(value, own[name])
    ]
    untied = [] if misshaped or unfit else [" = ".join(tied) for tied in paths.values() if _differ(tied, given)]
    wrong = {"of another shape": misshaped, "of another kind": unfit, "tied in the model, but not in the state": untied}
    alien = bool(own) and bool(state) and not given  # even without strict: nothing at all would be loaded
    if strict or alien or any(wrong.values()):
        found = {"missing": missing, "unexpected": unexpected, **wrong} if strict or alien else wrong
        if any(found.values()):
            raise StateError(
                f"{model}: the state does not fit the model",
                f"the {len(own)} tensors of this model's own state_dict()",
                "; ".join(f"{label}: {', '.join(names)}" for label, names in found.items() if names),
                _advice(own, missing, unexpected, alien, bool(misshaped), bool(unfit or untied)),
            )
    pairs = [
        (own[name], v.to(dtype=own[name].dtype, device=own[name].device).data)
        for name, v in given.items()
        if isinstance(v, Tensor)
    ]
    packed = {id(own[name]): v.to(own[name].device) for name, v in given.items() if isinstance(v, Packed)}
    return pairs, packed, IncompatibleKeys(missing, unexpected)


def _as_tensor(value: Any) -> Tensor | Packed | None:
    """Without a copy where there is an array; None for what is not made of numbers."""
    if isinstance(value, Packed):
        return value
    if isinstance(value, Tensor) or is_array(value):
        return wrap(value.data if isinstance(value, Tensor) else value)
    try:
        return tensor(value)
    except (MinigradError, ValueError, TypeError):
        return None


def _fits_kind(given: Tensor | Packed, wanted: Tensor | Packed) -> bool:
    """Precision may be lost, as from float64 to float32, but not fractions or imaginary parts.

    A packed weight may replace one of float32, but floats no packed one: they would have to be rounded.
    """
    if isinstance(given, Packed):
        return bool(wanted.dtype == given.dtype)
    return not isinstance(wanted, Packed) and bool(np.can_cast(given.dtype, wanted.dtype, "same_kind"))


def _kind(value: Tensor | Packed) -> str:
    return f"packed {value.format}" if isinstance(value, Packed) else str(value.dtype)


def _differ(paths: list[str], given: Mapping[str, Tensor | Packed | None]) -> bool:
    """Whether the state holds different values for what is one tensor in the model."""
    found = [v for v in (given.get(path) for path in paths) if v is not None]
    if len({v.format if isinstance(v, Packed) else None for v in found}) > 1:
        return True
    values = [to_numpy(v.data) for v in found]
    return any(not np.array_equal(values[0], v, equal_nan=v.dtype.kind in "fc") for v in values[1:])


def _advice(
    own: Mapping[str, Tensor], missing: list[str], unexpected: list[str], alien: bool, misshaped: bool, wrong: bool
) -> str:
    for prefix in dict.fromkeys(name.partition(".")[0] + "." for name in map(str, unexpected)):
        inner = [name for name in unexpected if str(name).startswith(prefix)]
        if all(name.removeprefix(prefix) in own for name in inner):
            if len(inner) == len(unexpected):
                return f"take the prefix {prefix!r} off the names of the state"
            if prefix == "model.":
                return "this is a whole checkpoint: minigrad.train.load_model(model, its file or run)"
    advice = "build the model with the configuration it was saved with"
    if wrong or alien or not (missing or unexpected or misshaped):
        return advice
    if misshaped:
        return f"{advice}; or, to fine-tune with a new head, leave its names out of the state and pass strict=False"
    return f"{advice}, or pass strict=False to pass over these names"


def moved_packed(packed: Packed, target: Any, dtype: Any, device: str | None) -> Packed:
    """The same on another device; in another dtype it cannot be."""
    place = wrap(packed.data.reshape(-1)[:0].astype(packed.dtype)).to(target, dtype=dtype, device=device)
    if place.dtype != packed.dtype:
        raise DtypeError(
            "Module.to: packed weights are computed with in float32 only",
            "float32",
            place.dtype,
            "take the model before it was packed",
        )
    return packed.to(place.device)


def moved(tensor: Tensor, target: Any, dtype: Any, device: str | None) -> tuple[Array, Array | None]:
    """The tensor's array and gradient on another device, or in another dtype if they are floating."""
    if tensor.dtype.kind != "f":
        there = wrap(tensor.data.reshape(-1)[:0]).to(target, dtype=dtype, device=device).device
        return wrap(tensor.data).to(device=there).data, None
    data = wrap(tensor.data).to(target, dtype=dtype, device=device).data
    if data.dtype.kind != "f":
        raise DtypeError("Module.to: parameters must stay floating", "float16, float32 or float64", data.dtype)
    grad = tensor.grad
    return data, None if grad is None else grad.to(target, dtype=dtype, device=device).data
