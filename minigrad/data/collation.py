"""How examples become a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import tree
from ..engine.backend import is_array
from ..engine.tensor import Tensor
from ..errors import ArgumentError, describe
from ..ops.creation import tensor
from ..ops.layout.joining import stack

__all__ = ["default_collate", "default_convert"]


def default_collate(examples: Sequence[Any]) -> Any:
    """Examples of one structure as one: numbers, arrays and Tensors are stacked along a new first axis, texts listed.

    Dicts, tuples, lists, NamedTuples and dataclasses stay what they are.

    >>> import minigrad as mg
    >>> batch = mg.data.default_collate([{"x": [1.0, 2.0], "name": "a"}, {"x": [3.0, 4.0], "name": "b"}])
    >>> [part.tolist() for part in batch["x"]], batch["name"]
    ([[1.0, 3.0], [2.0, 4.0]], ['a', 'b'])
    """
    first, form = examples[0], tree.form(examples[0])
    for number, example in enumerate(examples):
        if tree.form(example) != form:
            raise ArgumentError(
                f"default_collate: example {number} of the batch is not built as the first one",
                describe(first),
                describe(example),
                "give every example the same keys and lengths, or pass collate_fn=",
            )
    columns = zip(*(list(tree.leaves(example)) for example in examples))
    return tree.unflatten(first, [_joined(column) for column in columns])


def default_convert(example: Any) -> Any:
    """An example with its arrays as Tensors, for a loader that makes no batches."""
    return tree.map(lambda leaf: tensor(leaf) if is_array(leaf) else leaf, example)


def _joined(values: tuple[Any, ...]) -> Any:
    first = values[0]
    if isinstance(first, (str, bytes)):
        return list(values)
    if isinstance(first, Tensor):
        _check_shapes(values)
        return stack(values)
    if is_array(first):
        _check_shapes(values)
        return tensor(np.stack(values)) if isinstance(first, np.ndarray) else stack([tensor(x) for x in values])
    if isinstance(first, (bool, int, float, complex, np.generic)):
        return tensor(np.array(values)) if isinstance(first, np.generic) else tensor(list(values))
    raise ArgumentError(
        "default_collate: such values cannot be put into a batch",
        "numbers, arrays, Tensors, texts, and dicts, tuples or lists of them",
        type(first).__name__,
        "convert them in the dataset, or pass collate_fn=",
    )


def _check_shapes(values: tuple[Any, ...]) -> None:
    shapes = list(dict.fromkeys(tuple(value.shape) for value in values if hasattr(value, "shape")))
    if len(shapes) > 1 or not all(hasattr(value, "shape") for value in values):
        raise ArgumentError(
            "default_collate: the arrays of a batch differ in shape",
            "one shape",
            " and ".join(map(str, shapes[:4])),
            "fill them up to one length in collate_fn=, for instance with minigrad.data.Padded.of",
        )
