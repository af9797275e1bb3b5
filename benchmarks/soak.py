"""Long tests that resume where they stopped: how far each has come, and what failed, is in a file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import ROOT, arguments, describe, machine, progress
from .results import add_write_option, section, write_section

TESTS = ROOT / "tests"


def helpers() -> None:
    """Make the helpers of the tests importable."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))


class Soak:
    """Counts what was done and what failed, in `build/NAME.json`, which is replaced whole after each piece of work.

    `goals` are how many of each thing are to be done, `numbers` further options, each with its default and its help.
    With a `title`, `--write` brings that section of RESULTS.md up to date.
    """

    def __init__(
        self,
        name: str,
        description: str | None,
        goals: dict[str, int],
        quick: dict[str, int],
        numbers: dict[str, tuple[int, str]] | None = None,
        title: str | None = None,
    ):
        parser = arguments(description)
        parser.add_argument(
            "--state", type=Path, default=ROOT / "build" / f"{name}.json", help="where it is kept how far it is"
        )
        parser.add_argument("--again", action="store_true", help="begin anew")
        for goal, count in goals.items():
            parser.add_argument(f"--{goal}", type=int, default=None, help=f"how many (default {count:,})")
        for number, (default, text) in (numbers or {}).items():
            parser.add_argument(f"--{number}", type=int, default=default, help=f"{text} (default {default:,})")
        if title is not None:
            add_write_option(parser)
        self.options: argparse.Namespace = parser.parse_args()
        self.name, self.title = name, title
        defaults = quick if self.options.quick else goals
        self.goals = {
            goal: defaults[goal] if getattr(self.options, goal) is None else getattr(self.options, goal)
            for goal in goals
        }
        path = self.options.state
        known = json.loads(path.read_text()) if path.exists() and not self.options.again else {}
        self.done: dict[str, int] = {goal: int(known.get("done", {}).get(goal, 0)) for goal in goals}
        self.failures: list[str] = list(known.get("failures", []))
        self.outcomes: Counter[str] = Counter(
            known.get("outcomes", {})
        )  # of what did not fail, where there are several

    def run(self, goal: str, piece: Callable[[int], int], title: str) -> None:
        """Call `piece(number done)` until the goal is reached; it returns how many it did. What it raises is a failure."""
        while self.done[goal] < self.goals[goal]:
            number = self.done[goal]
            progress(f"{title}: {number:,} of {self.goals[goal]:,}, {len(self.failures)} failures")
            try:
                self.done[goal] += piece(number)
            except Exception as error:
                self.failures.append(f"{goal} {number}: {type(error).__name__}: {str(error)[:300]}")
                self.done[goal] += 1
            self._keep()
        progress("")

    def _keep(self) -> None:
        path = self.options.state
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        state = {"done": self.done, "failures": self.failures, "outcomes": self.outcomes}
        temporary.write_text(json.dumps(state))
        os.replace(temporary, path)

    def report(self, details: str = "", **more: Any) -> int:
        """Print the result, with details, and write it into its section if asked to; the exit code."""
        here = machine()
        lines = [details, ""] if details else []
        lines += [f"{goal} done: {count:,}" for goal, count in self.done.items()]
        lines += [f"{count:8,} {outcome}" for outcome, count in self.outcomes.most_common()]
        lines += [f"failures: {len(self.failures)}", *(f"  {failure}" for failure in self.failures[:20])]
        text = "\n".join(lines)
        print(f"{describe(here)}\n{text}")
        if self.title is not None and self.options.write:
            write_section(self.options.write, self.title, section(here, text, self.options.quick))
        if self.options.json:
            result = {"benchmark": self.name, "machine": here, "done": self.done, "failures": self.failures}
            result |= {"outcomes": self.outcomes, **more} if self.outcomes else more
            print(json.dumps(result))
        return 1 if self.failures else 0
