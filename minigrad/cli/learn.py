"""`minigrad learn`: the exercises of the tutorials, which mark themselves."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import nearest
from .console import as_command, as_json, printable, styled, table
from .parser import Command, Parser, Usage, flag_json, usage_errors

if TYPE_CHECKING:
    from ..learn import Verdict

__all__ = ["LEARN"]

FOLDER = "lessons"
TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
WORDS = {
    "right": "good",
    "wrong": "bad",
    "open": "faint",
    "failed": "bad",
    "slow": "bad",
    "memory": "bad",
    "crashed": "bad",
}
TOLD = {  # what is said of an answer that gave nothing to compare
    "slow": "no result: it takes too long, perhaps for ever",
    "memory": "no result: it asks for too much memory",
    "crashed": "no result: Python itself broke off",
}


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", metavar="{" + ",".join(ACTIONS) + "}", help="default: list"
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="; ".join(text for _, text in ACTIONS.values()))
    parser.add_argument("--solution", action="store_true", help="after check: show solutions of what you have tried")
    parser.add_argument(
        "--wheel", metavar="FILE", help="of notebooks: what their first cell installs, a file or an address"
    )
    flag_json(parser)


def _learn(options: Namespace) -> int:
    if options.action not in ACTIONS:
        number = options.action if options.action.isdecimal() else None
        hint = nearest(options.action, ACTIONS) if number is None else f"to begin, minigrad learn start {number}"
        raise Usage(printable(f"there is no action {options.action!r}: {hint}"))
    if options.solution and options.action != "check":
        raise Usage("--solution goes with check: minigrad learn check FILE --solution")
    if options.wheel is not None and options.action != "notebooks":
        raise Usage("--wheel goes with notebooks: minigrad learn notebooks FOLDER --wheel FILE")
    return ACTIONS[options.action][0](options)


def _list(options: Namespace) -> int:
    """All lessons, and what is right in each so far."""
    from ..learn import TITLES, progress_in
    from ..learn.lessons import exercises

    (folder,) = _words(options, most=("FOLDER",), given=(FOLDER,))
    with usage_errors():
        right = progress_in(Path(folder))
    names = {number: [one.name for one in exercises(number)] for number in TITLES}
    done = {number: [name for name in names[number] if name in right.get(number, [])] for number in TITLES}
    if options.json:
        lessons = [{"lesson": n, "title": TITLES[n], "exercises": names[n], "right": done[n]} for n in TITLES]
        print(as_json({"folder": folder, "lessons": lessons}))
        return 0
    head = ("lesson", "", "right", "exercises")
    rows = [(f"{n:2}", TITLES[n], f"{len(done[n])} of {len(names[n])}", ", ".join(names[n])) for n in TITLES]
    print(table([head, *rows]))
    total = sum(map(len, done.values())), sum(map(len, names.values()))
    print(f"\n{total[0]} of {total[1]} right")
    todo = next((n for n in TITLES if len(done[n]) < len(names[n])), None)
    if todo is not None:
        made = _file_of(todo, folder)
        more = [] if folder == FOLDER else [folder]
        command = as_command("learn", "check", made) if made.exists() else as_command("learn", "start", todo, *more)
        print(printable(f"next: {command}"))
    return 0


def _start(options: Namespace) -> int:
    """Write the exercises of a lesson as a file with holes; one that is there already is left alone."""
    from ..learn import TITLES, sheet
    from ..learn.lessons import exercises
    from ..saving.files import write_atomically

    number, folder = _words(options, most=("LESSON", "FOLDER"), given=("", FOLDER))
    if not number.isdecimal() or int(number) not in TITLES:
        raise Usage(
            f"there is no lesson {number!r}: `minigrad learn` lists them"
            if number
            else "which lesson? `minigrad learn` lists them"
        )
    path = _file_of(int(number), folder)
    if path.exists():
        raise Usage(f"{str(path)!r} is there already, with your work in it: give another folder, or delete it")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, sheet(int(number)).encode())
    print(printable(f"wrote {path}"))
    print(printable(f"exercises: {', '.join(one.name for one in exercises(int(number)))}"))
    print(printable(f"when you have written one: {as_command('learn', 'check', path)}"))
    return 0


def _file_of(number: int, folder: str = FOLDER) -> Path:
    return Path(folder) / f"lesson_{number:02}.py"


def _check(options: Namespace) -> int:
    """Mark a file, note what is right, and show solutions if asked to."""
    from ..learn import check, lesson_of, record, solution

    (given,) = _words(options, most=("FILE",), given=("",))
    if not given:
        raise Usage("which file? `minigrad learn start 1` writes one")
    path = _file_of(int(given)) if given.isdecimal() and not Path(given).exists() else Path(given)
    with usage_errors():
        number = lesson_of(path)
        verdicts = check(path)
        right = [verdict.name for verdict in verdicts if verdict.status == "right"]
        record(path.resolve().parent, number, right)
    tried = [one.name for one in verdicts if one.status != "open" and not one.whole] if options.solution else []
    if options.json:
        solutions = {name: solution(number, name) for name in tried}
        shown = [
            {**vars(verdict), **({"solution": solutions.get(verdict.name)} if options.solution else {})}
            for verdict in verdicts
        ]
        print(as_json({"lesson": number, "right": len(right), "exercises": shown}))
    else:
        _print_verdicts(verdicts)
        print(f"\n{len(right)} of {len(verdicts)} right")
        for verdict in verdicts if options.solution else []:
            text = (
                solution(number, verdict.name)
                if verdict.name in tried
                else "# try it first; then its solution is shown here"
            )
            print(printable(f"\n# {verdict.name}\n{text}"))
    return 0 if len(right) == len(verdicts) else 1


def _engine(options: Namespace) -> int:
    """Let the learner's engine compute what minigrad computes in lessons 3 to 6."""
    from ..learn import check_engine

    (given,) = _words(options, most=("FILE",), given=("",))
    if not given:
        raise Usage("which file? One of lesson 2, whose Value is right")
    with usage_errors():
        verdicts = check_engine(Path(given))
    _print_verdicts(verdicts, without_hint=("right",))
    right = sum(verdict.status == "right" for verdict in verdicts)
    print(f"\nyour engine computes {right} of {len(verdicts)} as minigrad does")
    return 0 if right and all(verdict.status in ("right", "open") for verdict in verdicts) else 1


def _play(options: Namespace) -> int:
    """Write the pages to play with."""
    from ..learn.play import write_pages

    (folder,) = _words(options, most=("FOLDER",), given=("play",))
    for path in write_pages(Path(folder)):
        print(printable(f"wrote {path}"))
    return 0


def _notebooks(options: Namespace) -> int:
    """Write the tutorials of the checkout as notebooks, with their outputs."""
    from ..learn import write_notebooks

    folder, *only = _words(options, most=("FOLDER", "LESSON"), given=("notebooks",))
    if not (TUTORIALS / "README.md").is_file():
        raise Usage("the tutorials come with the checkout of minigrad, not with the package: call this from there")
    with usage_errors():
        names = [f"{int(number):02}" if number.isdecimal() else number for number in only]
        for path in write_notebooks(TUTORIALS, Path(folder), wheel=options.wheel, only=names):
            print(printable(f"wrote {path}"), flush=True)
    return 0


def _print_verdicts(verdicts: list[Verdict], without_hint: tuple[str, ...] = ("right", "open")) -> None:
    if verdicts[0].whole:
        print(printable(f"{styled('the file does not run', 'bad')}: {verdicts[0].got or TOLD[verdicts[0].status]}"))
        return
    for place, verdict in enumerate(verdicts, 1):
        _print_verdict(place, verdict, verdict.status not in without_hint)


def _print_verdict(place: int, verdict: Verdict, hinted: bool) -> None:
    word = {"open": "not written yet", "failed": "an error"}.get(verdict.status, verdict.status)
    print(f"{place}. {verdict.name}: {styled(word, WORDS[verdict.status])}")
    at = f" at {verdict.at}" if verdict.at else ""
    got = verdict.got or TOLD.get(verdict.status, "")
    lines = {"for": verdict.case, "expected": verdict.expected and f"{verdict.expected}{at}", "got": got}
    if hinted:
        lines |= {"hint": verdict.hint, "printed": verdict.printed.strip().replace("\n", "\n             ")}
    for label, text in lines.items():
        if text:
            print(printable(f"   {label + ':':9} {text}"))


def _words(options: Namespace, most: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """The words behind an action, with what stands for those that are left out."""
    if len(options.words) > len(most):
        raise Usage(f"too many words: minigrad learn {options.action} {' '.join(most)}")
    return (*options.words, *given[len(options.words) :])


ACTIONS: dict[str, tuple[Callable[[Namespace], int], str]] = {
    "list": (_list, f"list [FOLDER]: lessons, and what is right so far (default: {FOLDER})"),
    "start": (_start, "start LESSON [FOLDER]: write its exercises"),
    "check": (_check, "check FILE: mark them"),
    "notebooks": (_notebooks, "notebooks [FOLDER] [LESSON]: write the tutorials as notebooks, executed"),
    "engine": (_engine, "engine FILE: your Value of lesson 2 in the place of minigrad, in lessons 3 to 6"),
    "play": (_play, "play [FOLDER]: write pages to play with in a browser (default: play)"),
}
LEARN = Command(
    "exercises for the tutorials, which mark themselves", "minigrad learn start 4 lessons", _arguments, _learn
)
