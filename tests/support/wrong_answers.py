"""Wrong answers to the exercises of `minigrad learn`: generated from the solutions, and mistakes that learners make.

    python -m tests.support.wrong_answers            # how many of them are caught, lesson by lesson
    python -m tests.support.wrong_answers --missed   # and those that are not

A generated answer changes one place of a solution: an operator, a comparison, a number, a function, a sign, the order of two
arguments, a statement that is left out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import io
import runpy
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.learn import TITLES, sheet, solution
from minigrad.learn.exercise import tried
from minigrad.learn.lessons import exercises

if __package__ == "tests.support":  # called as a module
    from .learner_mistakes import MISTAKES
else:
    from support.learner_mistakes import MISTAKES

SECONDS = 2.0  # for one answer
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv, ast.FloorDiv: ast.Mod,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.RShift: ast.LShift, ast.LShift: ast.RShift,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
FUNCTIONS = {
    "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax", "sin": "cos", "cos": "sin", "sum": "mean", "mean": "sum", "rint": "floor",
    "exp": "sqrt", "sqrt": "exp", "sign": "abs", "maximum": "minimum", "cumsum": "array", "ceil": "floor", "log": "exp", "log2": "log", "var": "std",
    "zeros": "ones", "tril": "triu", "any": "all",
}  # fmt: skip
EVEN = {"max", "min", "np.maximum"}  # the order of their arguments says nothing


class Wrong(NamedTuple):
    """A wrong answer: the source of the function or class, and what was done to it."""

    lesson: int
    name: str
    change: str
    source: str


def wrong_answers(number: int) -> Iterator[Wrong]:
    """All wrong answers to the exercises of a lesson."""
    for one in exercises(number):
        right = solution(number, one.name)
        for old, new in MISTAKES[number][one.name]:
            assert right.count(old) == 1, f"lesson {number}, {one.name}: {old!r} stands {right.count(old)} times in it"
            yield Wrong(number, one.name, f"{old} -> {new}", right.replace(old, new))
        seen = {ast.dump(ast.parse(right))}
        for change, tree in _changed(ast.parse(right)):
            if ast.dump(tree) not in seen:
                seen.add(ast.dump(tree))
                yield Wrong(number, one.name, change, ast.unparse(ast.fix_missing_locations(tree)))


def _changed(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Copies of a tree, each with one node replaced."""
    for place, node in enumerate(ast.walk(tree)):
        for replacement in _instead_of(node):
            changed = copy.deepcopy(tree)
            target = [*ast.walk(changed)][place]
            before = ast.unparse(node).partition("\n")[0]
            target.__class__ = type(replacement)
            target.__dict__.clear()
            target.__dict__.update(vars(replacement))
            after = ast.unparse(ast.fix_missing_locations(replacement)).partition("\n")[0]
            yield f"line {getattr(node, 'lineno', 0)}: {before} -> {after}", changed


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand wrongly in the place of a node."""
    other = copy.deepcopy(node)
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        other.op = OPERATORS[type(node.op)]()
        yield other
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        other.ops[0] = COMPARISONS[type(node.ops[0])]()
        yield other
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield other.operand
    elif isinstance(node, ast.Attribute) and node.attr in FUNCTIONS:
        other.attr = FUNCTIONS[node.attr]
        yield other
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield other.value
    elif isinstance(node, ast.Name) and node.id in FUNCTIONS:
        yield ast.Name(FUNCTIONS[node.id], node.ctx)
    elif isinstance(node, ast.Call) and len(node.args) == 2 and ast.unparse(node.func) not in EVEN:
        other.args.reverse()
        yield other
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        other.elts.reverse()
        yield other
    elif isinstance(node, ast.If):
        other.test = ast.UnaryOp(ast.Not(), other.test)
        yield other
    elif (
        isinstance(node, (ast.AugAssign, ast.Break, ast.Continue))
        or isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
    ):
        yield ast.Pass()


class TooSlow(BaseException):
    """It took longer than it may."""


def _stop(*signalled: Any) -> None:
    raise TooSlow


def caught(answers: list[Wrong], folder: Path) -> list[bool]:
    """Whether each wrong answer is told to be wrong, an error, or too slow."""
    result = []
    for number in sorted({answer.lesson for answer in answers}):
        known = {one.name: one for one in exercises(number)}
        head = sheet(number)
        for answer in (one for one in answers if one.lesson == number):
            path = folder / "answer.py"
            path.write_text(f"{head}\n{answer.source}\n", encoding="utf-8")  # what comes later counts
            result.append(_verdict(known[answer.name], path) != "right")
    return result


def _verdict(exercise: Any, path: Path) -> str:
    """As the process of `minigrad learn check` does it, but here, with an alarm in the place of the limits."""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = runpy.run_path(str(path))
            return tried(exercise, names[exercise.name], str(path))["status"]
    except TooSlow:
        return "slow"
    except (SyntaxError, NameError, TypeError) as error:
        return f"failed: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    """Try all wrong answers, and print how many are caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missed", action="store_true", help="show the answers that are not caught")
    options, found = parser.parse_args(), {}
    with tempfile.TemporaryDirectory() as folder:
        for number in TITLES:
            answers = [*wrong_answers(number)]
            found |= dict(zip(answers, caught(answers, Path(folder))))
            own = {answer: is_caught for answer, is_caught in found.items() if answer.lesson == number}
            fewest = min(sum(answer.name == one.name for answer in own) for one in exercises(number))
            print(
                f"lesson {number:2}: {sum(own.values())} of {len(own)} caught, at least {fewest} an exercise",
                flush=True,
            )
            for answer in (a for a, is_caught in own.items() if options.missed and not is_caught):
                print(f"    {answer.name}: {answer.change}")
    mistakes = sum(len(some) for names in MISTAKES.values() for some in names.values())
    print(
        f"{sum(found.values())} of {len(found)} wrong answers are caught: {sum(found.values()) / len(found):.1%} ({mistakes} of them by hand)"
    )


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    main()
