"""What an exercise is, and how an answer to it is tried."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from .compare import difference, shown

__all__ = ["MISSING", "Exercise", "exercise", "tried"]

Written = TypeVar("Written", bound=Callable[..., Any])
SOLVED = "__exercise__"  # the attribute by which a solution knows its exercise
MISSING = object()  # the answer of a file that has none


@dataclass(frozen=True)
class Exercise:
    """A function or class to write: its solution, the cases on which it is tried, and what knows the answers otherwise."""

    name: str
    solution: Callable[..., Any]
    cases: Sequence[tuple[Any, ...]]
    oracle: Callable[..., Any]
    hint: str
    probe: Callable[..., Any] | None  # what is compared, from the answer and a case; None: what the answer returns
    tolerance: float
    answer: str = ""  # what the learner's function or class is called, if not like the exercise


def exercise(
    *,
    cases: Sequence[tuple[Any, ...]],
    oracle: Callable[..., Any],
    hint: str,
    probe: Callable[..., Any] | None = None,
    tolerance: float = 1e-6,
) -> Callable[[Written], Written]:
    """Declare the function or class below as the solution of an exercise.

    `oracle(*case)` is what is expected. `probe(answer, *case)` is what is compared with it, where a call alone says too
    little, as of a class.
    """

    def declare(solution: Written) -> Written:
        setattr(solution, SOLVED, Exercise(solution.__name__, solution, cases, oracle, hint, probe, tolerance))
        return solution

    return declare


def tried(exercise: Exercise, answer: Any, place: str = "") -> dict[str, str]:
    """Try an answer on all cases: `status` is right, wrong, open (not written yet) or failed, with what is to be told.

    `place` is the file of the answer: the line of it in which an error arose is named.
    """
    if not callable(answer):
        wanted = f"a {_kind(exercise)} {exercise.answer or exercise.name}"
        got = "nothing of that name in the file" if answer is MISSING else shown(answer)
        return {"status": "wrong", "expected": wanted, "got": got}
    for case in exercise.cases:
        given = copy.deepcopy(case)
        told = {"for": f"{exercise.name}({', '.join(map(shown, case))})"}
        kept, returned = _keeping(answer)
        try:
            with np.errstate(all="ignore"):
                got = kept(*given) if exercise.probe is None else exercise.probe(kept, *given)
        except NotImplementedError:
            return {"status": "open"}
        except MemoryError:
            return {"status": "memory", **told}
        except (Exception, SystemExit) as error:
            if not returned or _lines(error, place):
                return {"status": "failed", **told, "got": described(error, place)}
            got = f"{shown(returned[-1])}, which is of no use here: {described(error, place)}"
            return {"status": "wrong", **told, "got": got}
        with np.errstate(all="ignore"):
            expected = exercise.oracle(*copy.deepcopy(case))
        found = difference(expected, got, exercise.tolerance)
        if found is not None:
            return {"status": "wrong", **told, **found}
    return {"status": "right"}


def _keeping(answer: Any) -> tuple[Any, list[Any]]:
    """An answer, and a list to which it adds what it returns, if it is a function."""
    returned: list[Any] = []
    if not isinstance(answer, FunctionType):
        return answer, returned

    @wraps(answer)
    def kept(*given: Any, **options: Any) -> Any:
        returned.append(answer(*given, **options))
        return returned[-1]

    return kept, returned


def described(error: BaseException, place: str) -> str:
    """An error in one line, with the line of the learner's file where it arose."""
    lines, text = _lines(error, place), str(error).strip()
    if isinstance(error, SyntaxError):
        lines, text = [error.lineno or 0], error.msg
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}{f': {text.splitlines()[0]}' if text else ''}"[:300]


def _lines(error: BaseException, place: str) -> list[int]:
    """The lines of a file through which an error came."""
    return [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == place]


def _kind(exercise: Exercise) -> str:
    return "class" if isinstance(exercise.solution, type) or exercise.answer else "function"
