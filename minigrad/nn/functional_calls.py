"""Calling a module with other values in the place of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..changes import changes
from ..engine.tensor import Tensor
from ..errors import ArgumentError, ShapeError, nearest
from .module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with the given Tensors, by path, instead of its own parameters and buffers.

    Those that are not given stay, unless `strict`. A tied parameter is replaced wherever it is used. Gradients go to
    the given Tensors, and what the module writes into its buffers goes into the given ones.

    >>> import minigrad as mg
    >>> layer = mg.nn.Linear(2, 1)
    >>> state = {"weight": mg.ones(1, 2), "bias": mg.zeros(1)}
    >>> mg.nn.functional_call(layer, state, mg.tensor([3.0, 4.0])).item()
    7.0
    """
    dicts = parameter_and_buffer_dicts
    given = dict(dicts) if isinstance(dicts, Mapping) else {k: v for one in dicts for k, v in one.items()}
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, strict):
        return module(*arguments, **(kwargs or {}))


@contextmanager
def _replaced(module: Module, given: Mapping[str, Tensor], strict: bool) -> Iterator[None]:
    """Inside, the given Tensors are where the module's own were."""
    places = _places(module)
    _check(type(module).__name__, places, given, strict)
    by_tensor = {id(vars(places[path][0])[places[path][1]]): value for path, value in given.items()}
    own = [(owner, name, vars(owner)[name]) for owner, name in places.values()]
    try:
        for owner, name, tensor in own:
            vars(owner)[name] = by_tensor.get(id(tensor), tensor)
        changes.note()
        yield
    finally:
        for owner, name, tensor in own:
            vars(owner)[name] = tensor
        changes.note()


def _places(module: Module) -> dict[str, tuple[Module, str]]:
    """Where each parameter and buffer is an attribute, under every path that leads there."""
    found, stack = {}, [("", module)]
    while stack:
        path, owner = stack.pop()
        for name, value in owner._parts():
            full = f"{path}.{name}" if path else name
            if isinstance(value, Module):
                stack.append((full, value))
            else:
                found[full] = (owner, name)
    return found


def _check(where: str, places: Mapping[str, tuple[Module, str]], given: Mapping[str, Tensor], strict: bool) -> None:
    for path, value in given.items():
        if path not in places:
            fix = nearest(path, places) if places else None
            raise ArgumentError(f"functional_call: {where} has no parameter or buffer {path!r}", fix=fix)
        own = vars(places[path][0])[places[path][1]]
        if not isinstance(value, Tensor) or value.shape != own.shape:
            got = value.shape if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(f"functional_call: {path} does not fit", f"a Tensor {own.shape}", got)
    if strict and (missing := [path for path in places if path not in given]):
        raise ArgumentError("functional_call: with strict, all of them are needed", got=f"no {', '.join(missing)}")
