"""`gradcheck` compares the derivatives that minigrad computes with finite differences of the function itself.

The outputs `y` are turned into one number, `sum(w * y + v * y² / 2)` with fixed random weights `w` and `v`. (The squares
make the gradient `w + v * y` that enters the last rule depend on the inputs: so the second order also proves that rules
can be differentiated with respect to it.) The derivative of this number along a direction is measured with central
differences at two step sizes (Richardson's extrapolation, whose error falls with the fourth power of the step) and
compared with the gradient: along each element of a small input, and along random directions of every input. The
second order does the same with the gradient, projected on random weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .autograd import grad
from .engine.backend import backend_of, device_of, to_numpy
from .engine.modes import enable_grad, no_grad
from .engine.tensor import Tensor, wrap
from .errors import ArgumentError, DtypeError, MinigradError
from .ops.creation import tensor

__all__ = ["CheckResult", "GradcheckError", "KinkError", "gradcheck"]

SMALL = 64  # elements: in an input up to this size each is checked on its own
DIRECTIONS = 3  # random directions for each input
RETRIES = 5  # the step is divided by 4 at most this often, until two steps agree


class GradcheckError(MinigradError, AssertionError):
    """A derivative is wrong, or the function cannot be checked."""


class KinkError(GradcheckError):
    """The function has no derivative at the given point: it bends or jumps there."""


@dataclass(frozen=True)
class CheckResult:
    """What `gradcheck` found; true if everything agreed."""

    ok: bool
    compared: int  # derivatives that were compared
    kinks: int  # derivatives that were left out, since the function bends or jumps there
    problem: str = ""

    def __bool__(self) -> bool:
        return self.ok


def gradcheck(
    f: Callable[..., Any],
    inputs: Any,
    *,
    order: int = 2,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    seed: int = 0,
    allow_kinks: bool = False,
    raise_exception: bool = True,
) -> CheckResult:
    """Check the derivatives of `f` at `inputs`, the first and (unless `order=1`) the second.

    `f` takes Tensors and returns a Tensor or a tuple of them. Floating inputs are differentiated, and so are the
    parameters of `f`, if it has a method `parameters()`; other inputs are passed on. Everything that is
    differentiated must be float64, since in float32 a finite difference has hardly three right digits; give
    `atol` and `rtol` to check float32 all the same.

    Also checked: gradients have the dtype and shape of their input, the value is the same with and without
    recording and from call to call, and the inputs are left as they were.

    >>> import minigrad as mg
    >>> from minigrad.check import gradcheck
    >>> x = mg.tensor([0.5, 1.5], dtype="float64")
    >>> bool(gradcheck(lambda x: mg.exp(x) * x, x))
    True
    >>> @mg.op
    ... def cube(xp, a):
    ...     return a ** 3
    >>> cube.vjp(a=lambda g, a: 2 * g * a ** 2)
    >>> print(gradcheck(cube, x, order=1, raise_exception=False).problem.splitlines()[0])
    gradcheck: the first derivative is wrong in input 0, element (0,)
    """
    if order not in (1, 2):
        raise ArgumentError("gradcheck: order must be 1 or 2", "1 or 2", repr(order))
    given = [inputs] if isinstance(inputs, Tensor) or not isinstance(inputs, (list, tuple)) else list(inputs)
    args = [tensor(x) for x in given]
    named = {f"input {i}": x.requires_grad_() for i, x in enumerate(args) if x.dtype.kind == "f"}
    if hasattr(f, "parameters"):
        named |= {f"parameter {i}": p for i, p in enumerate(f.parameters())}
    narrow = _check_dtypes(named, atol is not None and rtol is not None)
    step = eps or (1e-2 if narrow else 1e-3)
    tolerances = (1e-8 if atol is None else atol, 1e-6 if rtol is None else rtol)
    checker = _Checker(f, args, named, step, tolerances, np.random.default_rng(seed), allow_kinks)
    try:
        checker.check_values()
        checker.check_first()
        if order == 2:
            checker.check_second()
    except GradcheckError as error:
        if raise_exception:
            raise
        return CheckResult(False, checker.compared, checker.kinks, str(error))
    return CheckResult(True, checker.compared, checker.kinks)


def _check_dtypes(named: dict[str, Tensor], tolerances_given: bool) -> bool:
    """Whether a dtype narrower than float64 is to be checked; an error if that would be meaningless."""
    if not named:
        raise ArgumentError(
            "gradcheck: there is nothing to differentiate",
            "at least one floating input",
            "none",
            "pass float64 tensors",
        )
    narrow = [name for name, x in named.items() if x.dtype != np.float64]
    if narrow and not tolerances_given:
        raise DtypeError(
            f"gradcheck: {narrow[0]} is {named[narrow[0]].dtype}, in which rounding hides all but gross errors of a finite difference",
            "float64",
            named[narrow[0]].dtype,
            "use x.astype('float64'), or give both atol and rtol",
        )
    return bool(narrow)


class _Checker:
    """One function at one point, and the counts so far."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: list[Tensor],
        named: dict[str, Tensor],
        step: float,
        tolerances: tuple[float, float],
        rng: np.random.Generator,
        allow_kinks: bool,
    ):
        self.f, self.args, self.named, self.step, self.rng, self.allow_kinks = f, args, named, step, rng, allow_kinks
        self.atol, self.rtol = tolerances
        self.precision = max(float(np.finfo(x.dtype).eps) for x in named.values())
        self.base = {name: to_numpy(x.data).copy() for name, x in named.items()}
        self.weights: list[tuple[np.ndarray, np.ndarray]] = []
        self.smooth = {name: np.ones(x.shape) for name, x in named.items()}  # 0 where a kink was found
        self.compared = self.kinks = 0

    def outputs(self) -> list[Tensor]:
        """The floating outputs of the function."""
        result = self.f(*self.args)
        several = result if isinstance(result, (tuple, list)) else (result,)
        if not all(isinstance(y, Tensor) for y in several):
            raise GradcheckError(
                "gradcheck: the function must return Tensors", "a Tensor or a tuple of Tensors", type(result).__name__
            )
        return [y for y in several if y.dtype.kind == "f"]

    def value(self) -> tuple[float, float]:
        """The projected value, and the size of the numbers that were summed for it."""
        with no_grad():
            arrays = [to_numpy(y.data).astype(np.float64) for y in self.outputs()]
        products = [w * y + v * y * y / 2 for (w, v), y in zip(self.weights, arrays)]
        return float(sum(p.sum() for p in products)), float(sum(abs(p).sum() for p in products))

    def gradients(self, create_graph: bool = False) -> list[Tensor | None]:
        """The gradient of the projected value for each input; None where it does not depend on it."""
        with enable_grad():
            outs = self.outputs()
            seeds = [y * wrap(_place(v, y)) + wrap(_place(w, y)) for (w, v), y in zip(self.weights, outs)]
            return list(grad(outs, list(self.named.values()), seeds, create_graph=create_graph, allow_unused=True))

    def check_values(self) -> None:
        with enable_grad():
            recorded = [to_numpy(y.data).copy() for y in self.outputs()]
        with no_grad():
            plain, again = ([to_numpy(y.data).copy() for y in self.outputs()] for _ in range(2))
        if not recorded:
            raise GradcheckError("gradcheck: the function has no floating output", "at least one", "none")
        if not _same(plain, again):
            raise GradcheckError(
                "gradcheck: the function is not deterministic, two calls at the same point differ",
                fix="set the seed inside it (mg.manual_seed), or switch dropout off",
            )
        if not _same(plain, recorded):
            raise GradcheckError(
                "gradcheck: the function's value changes when it is recorded",
                fix="it should not ask whether gradients are enabled",
            )
        draw = self.rng.standard_normal
        self.weights = [(draw(y.shape), draw(y.shape) / (1 + abs(y).max(initial=0))) for y in plain]
        for name, x in self.named.items():
            if not np.array_equal(to_numpy(x.data), self.base[name], equal_nan=True):
                raise GradcheckError(f"gradcheck: the function changed {name} in place", fix="let it work on x.clone()")

    def check_first(self) -> None:
        analytic = self.gradients()
        for (name, x), g in zip(self.named.items(), analytic):
            if g is not None and (g.shape != x.shape or g.dtype != x.dtype):
                raise GradcheckError(
                    f"gradcheck: the gradient of {name} does not look like it",
                    f"{x.shape} {x.dtype}",
                    f"{g.shape} {g.dtype}",
                )
        self.compare("first", [_array(g, x) for g, x in zip(analytic, self.named.values())], self.value)

    def check_second(self) -> None:
        """The gradient, projected on random weights, is a function like any other: differentiate it again."""
        leaves = list(self.named.values())
        plain = [_array(g, x) for g, x in zip(self.gradients(), leaves)]
        first = self.gradients(create_graph=True)
        for name, fast, slow in zip(self.named, plain, (_array(g, x) for g, x in zip(first, leaves))):
            if not np.allclose(fast, slow, self.rtol, self.atol):
                raise GradcheckError(
                    f"gradcheck: the gradient of {name} changes with create_graph=True",
                    fast.ravel()[:8],
                    slow.ravel()[:8],
                )
        weights = [self.rng.standard_normal(x.shape) for x in leaves]

        def projected() -> tuple[float, float]:
            products = [w * _array(g, x) for w, g, x in zip(weights, self.gradients(), leaves)]
            return float(sum(p.sum() for p in products)), float(sum(abs(p).sum() for p in products))

        seeded = [(g, wrap(_place(w, g))) for g, w in zip(first, weights) if g is not None and g.node is not None]
        outs, seeds = [g for g, _ in seeded], [w for _, w in seeded]
        with enable_grad():
            analytic = grad(outs, leaves, seeds, allow_unused=True)
        self.compare("second", [_array(g, x) for g, x in zip(analytic, leaves)], projected)

    def compare(self, which: str, analytic: list[np.ndarray], value: Callable[[], tuple[float, float]]) -> None:
        center = value()
        for (name, x), g in zip(self.named.items(), analytic):
            for element, direction in self.directions(x, self.smooth[name]):
                where = f"{name}, element {element}" if element is not None else f"{name}, along a random direction"
                slope, noise, kink = self.measure(x, name, direction, value, center)
                if kink is not None and not np.isnan(slope):
                    if not self.allow_kinks:
                        raise KinkError(
                            f"gradcheck: the function bends or jumps at this point, so it has no {which} derivative in {where}",
                            "equal slopes on both sides",
                            kink,
                            "move the input away from the kink, or pass allow_kinks=True to leave it out",
                        )
                    self.kinks += 1
                    self.smooth[name][element if element is not None else ...] = 0
                    continue
                self.compared += 1
                self._compare(which, where, float((g * direction).sum()), slope, noise)

    def directions(self, x: Tensor, smooth: np.ndarray) -> Iterator[tuple[tuple[int, ...] | None, np.ndarray]]:
        """Each element of a small input, then random directions of length 1 that avoid the kinks found meanwhile."""
        if x.size <= SMALL:
            for element in [e for e in np.ndindex(x.shape) if smooth[e]]:
                direction = np.zeros(x.shape)
                direction[element] = 1
                yield element, direction
        for _ in range(DIRECTIONS if x.size > 1 else 0):
            direction = self.rng.standard_normal(x.shape) * smooth
            if direction.any():
                yield None, direction / np.linalg.norm(direction)

    def measure(
        self,
        x: Tensor,
        name: str,
        direction: np.ndarray,
        value: Callable[[], tuple[float, float]],
        center: tuple[float, float],
    ) -> tuple[float, float, str | None]:
        """The slope along a direction, the error to be expected of it, and a description of the kink if there is one."""
        middle, size = center
        step, gaps = self.step, []
        for _ in range(RETRIES):
            far_right, near_right, near_left, far_left = (
                self.at(x, name, t * direction, value) for t in (step, step / 2, -step / 2, -step)
            )
            wide, narrow = (far_right - far_left) / (2 * step), (near_right - near_left) / step
            noise = 16 * self.precision * size / step
            tolerance = self.atol + self.rtol * abs(narrow) + noise
            bend_far = abs(far_right - 2 * middle + far_left) / step
            bend_near = abs(near_right - 2 * middle + near_left) / (step / 2)
            bent = bend_near > 0.75 * bend_far and bend_near > 4 * tolerance
            gaps.append(abs(wide - narrow))
            if gaps[-1] <= 30 * tolerance and not bent:
                return (4 * narrow - wide) / 3, noise + gaps[-1], None
            step /= 4
        smooth_once = not bent and gaps[-1] < 0.05 * max(gaps)
        if smooth_once:  # but not twice: the error falls with the step, not with its square
            return narrow, noise + 2 * gaps[-1], None
        left, right = (middle - near_left) / (2 * step), (near_right - middle) / (2 * step)
        return narrow, noise, f"{left:.6g} on the left, {right:.6g} on the right, at a distance of {2 * step:.2g}"

    def at(self, x: Tensor, name: str, shift: np.ndarray, value: Callable[[], tuple[float, float]]) -> float:
        """The value with one input moved; the input is put back whatever happens."""
        before = x.data
        x.data = _place((self.base[name] + shift).astype(x.dtype), x)
        try:
            with np.errstate(all="ignore"):
                return value()[0]
        finally:
            x.data = before

    def _compare(self, which: str, where: str, analytic: float, numeric: float, noise: float) -> None:
        tolerance = self.atol + self.rtol * max(abs(analytic), abs(numeric)) + noise
        difference = abs(analytic - numeric)
        if not difference <= tolerance:
            outside = "the function is not finite near this point: move the input, or pass a smaller eps"
            hint = "correct the rule of an op in it" if np.isfinite(numeric) else outside
            raise GradcheckError(
                f"gradcheck: the {which} derivative is wrong in {where}",
                f"{numeric:.10g} by finite differences, within {tolerance:.2g}",
                f"{analytic:.10g} by backward, which is off by {difference:.3g}",
                hint,
            )


def _same(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second))


def _place(array: np.ndarray, like: Tensor) -> Any:
    """A host array in the dtype and on the device of a Tensor."""
    return backend_of(like.data).place(np.asarray(array, dtype=like.dtype), device_of(like.data))


def _array(g: Tensor | None, x: Tensor) -> np.ndarray:
    """A gradient on the host; zeros where there is none."""
    return np.zeros(x.shape) if g is None else to_numpy(g.data)
