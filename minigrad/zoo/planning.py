"""Plans for a model of the zoo on machines that are not here: every layout, and which is the best."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import nn
from ..errors import ArgumentError
from ..parallel.machine_speed import measured_efficiency
from ..parallel.pipeline import blocks_of
from ..parallel.planning import Cluster, Forecast, Known, forecast, layouts_for
from ..parallel.profiling import profile_blocks
from .config import configure
from .registry import blamed
from .spec import ModelSpec
from .training import named

__all__ = ["fits", "plan"]

SMALL = {"dim": 16, "heads": 2, "layers": 2, "depth": 2, "hidden": 16, "vocab": 300, "context": 16}


def plan(name: str, cluster: Cluster, batch: int, overrides: Any = None, length: int | None = None) -> list[Forecast]:
    """What to expect of each layout, the fastest first; `length` is that of a text, the model's context unless given.

    The weights of the model are never drawn, so that it may be larger than this machine.
    """
    spec, preset = named(name)
    config = configure(spec, preset, overrides or {})
    with blamed(spec, "building the model"), nn.init.skip():
        model = spec.build(config)
    if not blocks_of(model):
        raise ArgumentError(f"{spec.name} has no blocks that could be divided", "a transformer", spec.name)
    tokens = length if length is not None else int(getattr(config, "context", 64))
    if cluster.efficiency is None:
        share = measured_efficiency(blocks_of(model)[0][1], tokens)
        cluster = dataclasses.replace(cluster, efficiency=share)
    uses = _uses(spec, len(blocks_of(model)))
    known: Known = {}
    found = [
        forecast(model, uses, layout, cluster, batch, tokens, known) for layout in layouts_for(model, cluster.ranks)
    ]
    made = [one for one in found if one is not None]
    if not made:
        raise ArgumentError(
            f"{cluster.ranks} ranks cannot divide {name} and a batch of {batch}", f"more rows than {batch}", batch
        )
    return sorted(made, key=lambda one: (not fits(one, cluster), one.seconds))


def fits(one: Forecast, cluster: Cluster) -> bool:
    """Whether the ranks of a machine have room in its memory."""
    return one.bytes * cluster.ranks_inside <= cluster.memory


def _uses(spec: ModelSpec, blocks: int) -> dict[str, list[int]]:
    """After how many blocks each parameter outside of them is used, as a small model of the same kind shows."""
    known = set(vars(configure(spec, None, spec.tiny or {})))
    config = configure(spec, None, {**(spec.tiny or {}), **{k: v for k, v in SMALL.items() if k in known}})
    model = spec.build(config)
    _, uses = profile_blocks(model, spec.loss, spec.example(config), passes=1)
    few = len(blocks_of(model))
    return {name: sorted({phase * blocks // few for phase in used}) for name, used in uses.items()}
