"""The course: exercises for the tutorials, which mark themselves, and the tutorials as notebooks.

A lesson is a module of `lessons`: each exercise in it has its solution, cases to try, and an oracle that knows the answers in
another way. `sheet` writes a lesson out as a file with holes; `checking` runs what a learner wrote, in a process of its own.
"""

from .checking import Verdict, check, check_engine
from .lessons import TITLES, lesson
from .notebooks import notebook_of, scripts, write_notebooks
from .progress import progress_in, record
from .sheet import lesson_of, sheet, solution

__all__ = [
    "TITLES", "Verdict", "check", "check_engine", "lesson", "lesson_of", "notebook_of", "progress_in", "record", "scripts", "sheet", "solution",
    "write_notebooks",
]  # fmt: skip
