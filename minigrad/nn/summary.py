"""`model.summary(x)`: a table of the modules of a model, with output shapes and parameter counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..engine.modes import no_grad
from ..engine.tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

__all__ = ["summary"]


def summary(module: Module, *inputs: Any) -> str:
    """A table with a row for each module: path, type, output shape (if inputs are given), parameters, trainable ones.

    A row counts everything inside its module, and a tied parameter once. The inputs are run through the model in eval
    mode without recording, and the model is left as it was.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
    >>> print(model.summary(mg.ones(4, 2)))
    path     type        output  parameters  trainable
    -------  ----------  ------  ----------  ---------
    (whole)  Sequential  (4, 1)          33         33
    0        Linear      (4, 8)          24         24
    1        Tanh        (4, 8)           0          0
    2        Linear      (4, 1)           9          9
    -------  ----------  ------  ----------  ---------
    33 parameters, all trainable; 132 bytes
    """
    shapes = _output_shapes(module, inputs) if inputs else {}
    rows = [["path", "type", *(["output"] if inputs else []), "parameters", "trainable"]]
    for path, part in module.named_modules():
        shown = [shapes.get(id(part), "not called")] if inputs else []
        rows.append([path or "(whole)", type(part).__name__, *shown, *(f"{count:,}" for count in _counts(part))])
    return "\n".join([*_aligned(rows), _totals(module)])


def _output_shapes(module: Module, inputs: tuple[Any, ...]) -> dict[int, str]:
    """The shapes of what each module returned, last if it was called several times."""
    shapes: dict[int, str] = {}
    training = {part: part.training for part in module.modules()}
    handles = [
        part.register_forward_hook(lambda part, _, output: shapes.update({id(part): _shape(output)}))
        for part in training
    ]
    try:
        with no_grad():
            module.eval()(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for part, mode in training.items():
            vars(part)["training"] = mode
    return shapes


def _shape(output: Any) -> str:
    if isinstance(output, Tensor):
        return str(output.shape)
    if isinstance(output, dict):
        return ", ".join(f"{name} {_shape(value)}" for name, value in output.items())
    return ", ".join(map(_shape, output)) if isinstance(output, (tuple, list)) else type(output).__name__


def _counts(module: Module) -> tuple[int, int]:
    """How many numbers the parameters and packed weights of a module stand for, and how many of them are trained."""
    weights: list[Any] = [*module.parameters(), *[weight for _, weight in module.named_packed()]]
    return sum(p.size for p in weights), sum(p.size for p in weights if p.requires_grad)


def _aligned(rows: list[list[str]]) -> list[str]:
    """Text to the left, the two columns of numbers to the right, rules below the header and at the end."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    numbers = len(widths) - 2
    lines = [
        "  ".join(
            cell.rjust(width) if i >= numbers else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
    rule = "  ".join("-" * width for width in widths)
    return [lines[0], rule, *lines[1:], rule]


def _totals(module: Module) -> str:
    total, trained = _counts(module)
    parts = [f"{total:,} parameters, " + ("all trainable" if trained == total else f"{trained:,} trainable")]
    if buffers := sum(b.size for b in module.buffers()):
        parts.append(f"{buffers:,} in buffers")
    return "; ".join([*parts, _bytes(memory(module))])


def memory(module: Module) -> int:
    """The bytes of all its parameters, buffers and packed weights."""
    parts: list[Any] = [*module.parameters(), *module.buffers(), *[weight for _, weight in module.named_packed()]]
    return sum(part.nbytes for part in parts)


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
