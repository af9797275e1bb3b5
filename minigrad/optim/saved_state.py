"""The saved state of an optimiser: all of it is checked before any of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..engine.backend import is_array
from ..engine.tensor import Tensor, wrap
from ..errors import MinigradError, describe
from ..nn.module import StateError

if TYPE_CHECKING:
    from .optimizer import Group, Optimizer, State

__all__ = ["misfit", "restored"]

LATER = ("maximize", "decoupled_weight_decay")  # options that states of version 0.1 do not have


def misfit(what: str, problem: str, expected: object = None, got: object = None) -> StateError:
    """The error for a state that does not fit the object `what`."""
    fix = "load it into one made with the settings it was saved with"
    return StateError(f"{what}: the state does not fit: {problem}", expected, got, fix)


def restored(optimizer: Optimizer, state: Mapping[str, Any]) -> tuple[list[Group], dict[Tensor, State]]:
    """The options of every group and the state of every parameter, from a saved state."""
    name = type(optimizer).__name__
    values, arrays = parts(name, state)
    if values.get("kind") != name:
        raise misfit(name, "it belongs to another optimiser", name, values.get("kind"))
    groups = _restored_groups(optimizer, values.get("groups"))
    return groups, _restored_buffers(optimizer, groups, values.get("steps"), arrays)


def parts(name: str, state: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The values and the arrays of a state."""
    if not isinstance(state, Mapping) or not all(isinstance(state.get(k), Mapping) for k in ("arrays", "values")):
        raise misfit(name, "it is not what state_dict() gives", '{"arrays": {…}, "values": {…}}', describe(state))
    return state["values"], state["arrays"]


def _restored_groups(optimizer: Optimizer, saved: Any) -> list[Group]:
    name, own = type(optimizer).__name__, optimizer.param_groups
    sizes = [len(group["params"]) for group in own]
    if not isinstance(saved, list) or not all(isinstance(group, Mapping) for group in saved):
        raise misfit(name, "its groups are no list of dicts", got=describe(saved))
    if [group.get("params") for group in saved] != sizes:
        got = [group.get("params") for group in saved]
        raise misfit(name, "it has other groups", f"{sizes} parameters in the groups", got)
    groups = []
    for given in saved:
        later = {key: optimizer.defaults[key] for key in LATER if key in optimizer.defaults and key not in given}
        given = {**given, **later}
        missing = [key for key in optimizer.defaults if key not in given]
        if missing:
            raise misfit(name, f"a group lacks {', '.join(missing)}")
        try:
            options = {key: optimizer._option(key, value) for key, value in given.items() if key != "params"}
            optimizer.check_group(options)
        except MinigradError as error:
            raise misfit(name, str(error).splitlines()[0]) from None
        groups.append(options)
    return groups


def _restored_buffers(
    optimizer: Optimizer, groups: list[Group], steps: Any, arrays: Mapping[str, Any]
) -> dict[Tensor, State]:
    name = type(optimizer).__name__
    places = [(p, group) for own, group in zip(optimizer.param_groups, groups) for p in own["params"]]
    if not isinstance(steps, Mapping):
        raise misfit(name, "it has no step counts", got=describe(steps))
    expected = {}  # which array goes where
    state: dict[Tensor, State] = {}
    for key, count in steps.items():
        if not (isinstance(key, str) and key.isdecimal() and int(key) < len(places)):
            raise misfit(name, f"there is no parameter {key!r}", f"a number below {len(places)}", repr(key))
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise misfit(name, f"parameter {key} has an impossible step count", "a whole number from 1", repr(count))
        p, group = places[int(key)]
        state[p] = {"step": count}
        shapes = optimizer.buffer_shapes(p, group)
        expected.update({f"{key}.{buffer}": (p, buffer, shape) for buffer, shape in shapes.items()})
    missing = [key for key in expected if key not in arrays]
    unexpected = [str(key) for key in arrays if key not in expected]
    if missing or unexpected:
        differing = "; ".join(
            f"{label}: {', '.join(keys)}" for label, keys in (("missing", missing), ("unexpected", unexpected)) if keys
        )
        raise misfit(name, "it has other arrays", f"{len(expected)} arrays", differing)
    for key, (p, buffer, shape) in expected.items():
        state[p][buffer] = like(name, key, p, arrays[key], shape)
    return state


def like(name: str, key: str, p: Tensor, value: Any, shape: tuple[int, ...] | None = None) -> Any:
    """A copy of a saved array, in the dtype and on the device of `p`; it must have the shape of `p`, or the one given."""
    shape = p.shape if shape is None else shape
    array = value.data if isinstance(value, Tensor) else value
    if not is_array(array) or array.shape != shape or array.dtype.kind != "f":
        raise misfit(name, f"{key} does not look like its parameter", f"{shape} {p.dtype}", describe(array))
    return wrap(array).to(dtype=p.dtype, device=p.device).clone().data
