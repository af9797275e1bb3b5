"""The graph of a model of the zoo: its mean loss on the small batch that its plugin has for checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from ..data.batching import Batch
from ..engine.backend import is_array, seed_everything
from ..engine.tensor import Tensor, wrap
from ..train.gradients import checked_terms
from ..viz.graph import Graph, watched
from ..viz.labels import Look
from ..viz.tracing import boxes_of, key_of
from .registry import blamed
from .spec import ModelSpec

__all__ = ["graph_of"]


def graph_of(
    spec: ModelSpec,
    config: Any,
    model: Any = None,
    *,
    depth: int = 1,
    direction: str = "forward",
    color: str | None = None,
    fused: bool = False,
) -> Graph:
    """The graph of a trained model, or of a new one; the options are those of `mg.viz.graph`."""
    look = Look(direction, color)
    with blamed(spec, "drawing the graph"):
        seed_everything(0)
        model = spec.build(config) if model is None else model
        batch = spec.example(config)
        loss, apart = watched(lambda: _mean_loss(spec, model, batch), fused)
        known = {key_of(tensor): (name, tensor) for name, tensor in _parts("batch", batch)}
        known |= {key_of(parameter): (path, parameter) for path, parameter in model.named_parameters()}
        known[key_of(loss[0])] = ("loss", loss[0])
        boxes = boxes_of(loss, known, [tensor.data for _, tensor in _parts("batch", batch)], apart)
    return Graph(boxes, spec.name, depth, look)


def _mean_loss(spec: ModelSpec, model: Any, batch: Any) -> Tensor:
    """All terms that can be learned from, each divided by its units."""
    terms = checked_terms(spec.loss(model, batch))
    means = [amount / max(units, 1) for amount, units in terms.values() if amount.requires_grad]
    return sum(means[1:], means[0])


def _parts(name: str, batch: Any) -> Iterator[tuple[str, Tensor]]:
    """The arrays of a batch, named by their fields or numbers."""
    if isinstance(batch, Batch):
        for field in dataclasses.fields(batch):
            yield from _parts(field.name, getattr(batch, field.name))
    elif isinstance(batch, dict):
        for key, part in batch.items():
            yield from _parts(str(key), part)
    elif isinstance(batch, (tuple, list)):
        for index, part in enumerate(batch):
            yield from _parts(f"{name} {index}", part)
    elif isinstance(batch, Tensor):
        yield name, batch
    elif is_array(batch):
        yield name, wrap(batch)
