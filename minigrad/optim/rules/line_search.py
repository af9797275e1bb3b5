"""A line search that ends in a point with the strong Wolfe conditions, as PyTorch's (and minFunc's)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Point", "strong_wolfe"]

DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions


class Point(NamedTuple):
    """A point on the line: how far along it is, the loss there, the gradient, and its product with the direction."""

    t: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, t: float, longest: float, limit: int, tolerance: float = 1e-9
) -> tuple[Point, int]:
    """The point that was found from the first guess `t`, and how often the loss was evaluated.

    `longest` is the largest element of the direction. After `limit` further evaluations the best point so far is taken.
    """
    bracket, tries = _bracket(evaluate, start, t, limit)
    low, high = _order(bracket)
    stalled = False
    while len(bracket) == 2 and tries < limit and abs(bracket[1].t - bracket[0].t) * longest >= tolerance:
        t, stalled = _inside(bracket, stalled)
        point = evaluate(t)
        tries += 1
        if point.loss > start.loss + DECREASE * t * start.slope or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = _order(bracket)
            continue
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, tries + 1
        if point.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low], tries + 1


def _bracket(evaluate: Callable[[float], Point], start: Point, t: float, limit: int) -> tuple[list[Point], int]:
    """Two points with a good one between them, or one that is good itself; and the number of steps that it took."""
    before, point = start, evaluate(t)
    for tries in range(limit):
        if point.loss > start.loss + DECREASE * point.t * start.slope or tries > 1 and point.loss >= before.loss:
            return [before, point], tries
        if abs(point.slope) <= -CURVATURE * start.slope:
            return [point], tries
        if point.slope >= 0:
            return [before, point], tries
        t = _lowest(before, point, point.t + 0.01 * (point.t - before.t), point.t * 10)
        before, point = point, evaluate(t)
    return [start, point], limit


def _order(bracket: list[Point]) -> tuple[int, int]:
    """Which of the two points is lower, and which is higher."""
    return (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)


def _inside(bracket: list[Point], stalled: bool) -> tuple[float, bool]:
    """The next t to try, away from the ends of the bracket if the last was near one too; and whether this one is near."""
    first, last = sorted(point.t for point in bracket)
    t, margin = _lowest(bracket[0], bracket[1], first, last), 0.1 * (last - first)
    if min(last - t, t - first) >= margin:
        return t, False
    if stalled or t >= last or t <= first:
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
    return t, True


def _lowest(one: Point, two: Point, least: float, most: float) -> float:
    """Where the cubic through two points with their slopes is lowest, within bounds; in the middle if it is nowhere."""
    a, b = (one, two) if one.t <= two.t else (two, one)
    try:
        d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
        d2 = d1**2 - a.slope * b.slope
        if d2 >= 0:
            t = b.t - (b.t - a.t) * ((b.slope + d2**0.5 - d1) / (b.slope - a.slope + 2 * d2**0.5))
            return min(max(t, least), most)
    except (ZeroDivisionError, OverflowError):
        pass
    return (least + most) / 2
