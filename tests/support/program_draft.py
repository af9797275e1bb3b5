"""A random program while it is drawn: each step runs in PyTorch at once, so that shapes and dtypes are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .programs import Copying, Step, execute, their_names, torch

LIMIT = 1e3  # values beyond it end a program: rounding would be all that is compared


class Draft:
    """A program that is being drawn."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.steps: list[Step] = []
        self.names = their_names()
        self.count = 0
        self.ended = False

    def choice(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def seed(self) -> int:
        return int(self.rng.integers(1000))

    def value(self, name: str) -> Any:
        return self.names[name]

    def pick(self, accepts: Callable[[Any], bool] | None = None, recent: bool = True) -> str:
        """The name of a tensor, a late one more often; raises LookupError where there is none."""
        found = [
            n for n, v in self.names.items() if n[0] in "xvgkw" and n[1:].isdigit() and isinstance(v, torch.Tensor)
        ]
        found = [n for n in found if (accepts or is_float)(self.names[n])]
        if not found:
            raise LookupError
        place = self.rng.beta(2, 1) if recent else self.rng.random()
        return found[min(int(place * len(found)), len(found) - 1)]

    def new(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def shape(self, axes: int | None = None) -> tuple[int, ...]:
        axes = self.choice((0, 1, 1, 2, 2, 2, 3)) if axes is None else axes
        return tuple(0 if self.chance(0.03) else self.choice((1, 2, 2, 3, 3, 4)) for _ in range(axes))

    def add(self, ours: str, theirs: str | None = None, kind: str = "op") -> bool:
        """Append a step if PyTorch can run it and its result is of a size that can be compared."""
        step = Step(ours, ours if theirs is None else theirs, kind)
        before = {n for n, v in self.names.items() if isinstance(v, torch.Tensor)}
        with Copying():
            error = execute(step.theirs, self.names)
        if error is not None:
            if isinstance(error, (NameError, SyntaxError)):
                raise error
            if kind in ("write", "derivative") and self.chance(0.3):
                self.steps.append(step)  # refused there, so to be refused here
            self.ended = kind in ("write", "derivative")  # a refusal may leave PyTorch's graph half changed
            return False
        changed = kind in ("write", "derivative", "hook")
        checked = self.names if changed else {n: self.names[n] for n in step.defines}
        if all(fits(v) for v in checked.values()):
            self.steps.append(step)
            return True
        if changed:
            self.ended = True
            self.names = their_names()
            with Copying():
                for known in self.steps:
                    execute(known.theirs, self.names)
        else:
            for name in step.defines - before:
                del self.names[name]
        return False

    def leaf(self, shape: tuple[int, ...] | None = None, dtype: str = "float64", grad: bool = True) -> str:
        name = self.new("x")
        numbers = f"numbers({self.seed()}, {self.shape() if shape is None else shape}, '{dtype}')"
        self.add(f"{name} = tensor({numbers}{', requires_grad=True' if grad else ''})", kind="leaf")
        return name

    def whole(self, shape: tuple[int, ...]) -> str:
        name = self.new("k")
        self.add(f"{name} = tensor(numbers({self.seed()}, {shape}, 'int64'))", kind="leaf")
        return name


def is_float(v: Any) -> bool:
    return v.dtype.is_floating_point


def fits(v: Any) -> bool:
    """Whether a value, and its gradient, can be compared."""
    if not isinstance(v, torch.Tensor) or not v.dtype.is_floating_point or not v.numel():
        return not isinstance(v, torch.Tensor) or v.numel() < 400
    limit = 50 if v.dtype == torch.float16 else LIMIT
    return v.numel() < 400 and bool((v.detach().abs() < limit).all())


def dtype_of(v: Any) -> str:
    return str(v.dtype).removeprefix("torch.")
