"""The graph of a model of the zoo: its mean loss on the small batch that its plugin has for checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import tree
from ..debug import Call
from ..engine.backend import is_array
from ..engine.tensor import Tensor, wrap
from ..nn.functional import losses
from ..nn.init import skip
from ..random import seed_everything
from ..train.loss_terms import checked_terms
from ..viz.drawing.arrays import count
from ..viz.graph.boxes import Box, boxes_of, key_of
from ..viz.graph.graph import Graph, watched
from ..viz.graph.labels import Look
from .registry import blamed
from .spec import ModelSpec

__all__ = ["graph_of"]

LARGE = 30_000_000  # weights of a new model


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
        model, remark = _new_model(spec, config) if model is None else (model, "")
        batch = spec.example(config)
        loss, apart = watched(lambda: _mean_loss(spec, model, batch), fused)
        known = {key_of(tensor): (name, tensor) for name, tensor in _parts(batch)}
        known |= {key_of(parameter): (path, parameter) for path, parameter in model.named_parameters()}
        known[key_of(loss[0])] = ("loss", loss[0])
        boxes = boxes_of(loss, known, [tensor.data for _, tensor in _parts(batch)], apart)
        _name_in_turn(model, boxes)
        boxes = _loss_apart(boxes, type(model).__name__)
    graph = Graph(boxes, spec.name, depth, look)
    graph.remark = remark
    return graph


def _new_model(spec: ModelSpec, config: Any) -> tuple[Any, str]:
    """A model with its initial weights; of a large one they stay 0, since drawing them would take long."""
    with skip():
        model = spec.build(config)
    amount = sum(parameter.size for parameter in model.parameters())
    if amount > LARGE:
        return model, f"{count(amount)} weights are too many to be drawn at random here: they are 0"
    seed_everything(0)
    return spec.build(config), ""


def _mean_loss(spec: ModelSpec, model: Any, batch: Any) -> Tensor:
    """All terms that can be learned from, each divided by its units."""
    terms = checked_terms(spec.loss(model, batch), batch)
    means = [amount / max(units, 1) for amount, units in terms.values() if amount.requires_grad]
    return sum(means[1:], means[0])


def _parts(batch: Any) -> Iterator[tuple[str, Tensor]]:
    """The arrays of a batch, named by their fields or numbers; what would be "ids" twice is "source" and "target"."""
    parts = [(path, part) for path, part in tree.paths(batch) if isinstance(part, Tensor) or is_array(part)]
    short = [_name(path) for path, _ in parts]
    for (path, part), name in zip(parts, short):
        if short.count(name) > 1 and len(path) > 1:
            name = " ".join(map(str, path[:-1] if path[-1] == "ids" else path))
        yield name, part if isinstance(part, Tensor) else wrap(part)


def _name(path: tuple[Any, ...]) -> str:
    """The last field of a path, and the numbers behind it."""
    names = [i for i, key in enumerate(path) if isinstance(key, str)]
    return " ".join(map(str, path[names[-1] :] if names else ("batch", *path)))


def _name_in_turn(model: Any, boxes: Sequence[Box]) -> None:
    """A part of the model that has several names, as tied embeddings have, is called by one after the other."""
    turns: dict[str, tuple[list[str], list[Call]]] = {}
    for path, part in model.named_modules():
        for name, child in part.named_children():
            names = [other for other, one in vars(part).items() if one is child]
            if len(names) > 1:
                turns[f"{path}.{name}".removeprefix(".")] = names, []
    for box in boxes:
        for depth in range(2, len(box.calls) + 1):
            _, calls = turns.get(".".join(call.name for call in box.calls[1:depth]), ([], []))
            if box.calls[depth - 1] not in calls:
                calls.append(box.calls[depth - 1])
    for names, calls in turns.values():
        for call, name in zip(calls, names):
            call.name = name


def _loss_apart(boxes: list[Box], model: str) -> list[Box]:
    """The same with a group of its own for what only makes a loss of what the weights have made."""
    constant: set[Box] = set()  # made of weights alone, such as the transposed ones
    needed: set[Box] = set()  # for something that reads weights
    for box in boxes:
        if box.kind == "parameter" or box.sources and constant.issuperset(box.sources):
            constant.add(box)
    for box in reversed(boxes):
        in_part = any(call.kind for call in box.calls[1:])
        if box in needed or in_part or not constant.isdisjoint(box.sources):
            needed |= {box, *box.sources}
    own = {box for box in boxes if [call.kind for call in box.calls[:1]] == [model]}
    functions = [call.name for box in boxes for call in box.calls if not call.kind and call.name in losses.__all__]
    has_loss = any(call.name in functions for box in own for call in box.calls)  # inside of the model
    apart = [
        box for box in boxes
        if box.kind == "op" and not box.is_output and box not in needed and (has_loss or box not in own)
    ]  # fmt: skip
    if len(apart) < 2:
        return boxes
    group = Call(functions[0] if functions else "loss", "loss")
    for box in apart:
        box.calls = (group, *[call for call in box.calls[box in own :] if call.name != group.name])
    last = [box for box in boxes if box.is_output]
    return [box for box in boxes if box not in {*apart, *last}] + apart + last
