"""`minigrad learn`: solutions are right, wrong answers are caught, messages help, and a learner's code is kept in bounds."""

import ast
import functools
import json
import runpy
import sys

import numpy as np
import pytest
from support.documents import ROOT
from support.wrong_answers import caught, wrong_answers

import minigrad as mg
import minigrad.learn
from minigrad.cli import main
from minigrad.errors import ArgumentError
from minigrad.learn import TITLES, check, check_engine, lesson_of, sheet, solution
from minigrad.learn.compare import difference, shown
from minigrad.learn.exercise import tried
from minigrad.learn.lessons import exercises

HOLE = '    raise NotImplementedError("write this")\n'
TUTORIALS = {int(path.name[:2]): path for path in sorted((ROOT / "tutorials").glob("[0-9][0-9]_*.py"))}


@pytest.fixture
def lesson(tmp_path):
    """Writes the exercises of lesson 1 with some functions in the place of holes."""

    def write(**bodies):
        text = sheet(1)
        for name, body in bodies.items():
            head, _, rest = text.partition(f"def {name}(")
            text = f"{head}def {name}({rest.replace(HOLE, f'    {body}' + chr(10), 1)}"
        path = tmp_path / "lesson_01.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_each_tutorial_has_a_lesson_of_three_exercises_and_says_so():
    table = (ROOT / "tutorials" / "README.md").read_text(encoding="utf-8")
    for number, title in TITLES.items():
        text = TUTORIALS[number].read_text(encoding="utf-8")
        assert f"| [{number}. {title}]({TUTORIALS[number].name}) |" in table
        assert f"`minigrad learn start {number}`" in text
        assert len(exercises(number)) == 3
    assert TITLES.keys() == TUTORIALS.keys()


def solved(number: int) -> str:
    """The exercises of a lesson with their solutions below the holes: what comes later counts."""
    return "\n\n".join([sheet(number), *(solution(number, one.name) for one in exercises(number))])


@pytest.mark.parametrize("number", TITLES)
def test_solutions_are_right_and_holes_are_open(number, tmp_path):
    """Here without a process for each, since these take time to start."""
    path = tmp_path / "answers.py"
    for text, status in ((sheet(number), "open"), (solved(number), "right")):
        path.write_text(text, encoding="utf-8")
        names = runpy.run_path(str(path))
        assert [tried(one, names[one.name])["status"] for one in exercises(number)] == [status] * 3


@pytest.mark.parametrize("number", [2, 18, 19])
def test_solutions_are_right_in_their_process_too(number, tmp_path):
    path = tmp_path / "answers.py"
    path.write_text(solved(number), encoding="utf-8")
    assert lesson_of(path) == number
    assert [(one.name, one.status) for one in check(path)] == [(one.name, "right") for one in exercises(number)]


@pytest.mark.parametrize("number", TITLES)
def test_a_sheet_shows_titles_and_examples_but_nothing_of_the_solutions(number):
    text = sheet(number)
    tree = ast.parse(text)
    for one in exercises(number):
        (node,) = (node for node in tree.body if getattr(node, "name", None) == one.name)
        assert ">>> " in ast.get_docstring(node)
        functions = [node] if isinstance(node, ast.FunctionDef) else node.body[1:]
        assert all(ast.unparse(function.body[-1]) in HOLE.replace('"', "'") for function in functions)
        (body,) = ast.parse(solution(number, one.name)).body
        for statement in body.body[1:] if isinstance(body, ast.FunctionDef) else []:
            assert ast.unparse(statement) not in text
        assert one.hint and ast.unparse(body.body[-1]) not in one.hint
    assert "oracle" not in text and "@exercise" not in text


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="this system has no alarms")
def test_of_wrong_answers_at_least_95_in_100_are_caught(tmp_path):
    """All of them: python -m tests.support.wrong_answers"""
    count, missed = 0, []
    for number in TITLES:
        answers = [*wrong_answers(number)]
        for one in exercises(number):
            assert sum(answer.name == one.name for answer in answers) >= 5, one.name
        for answer, is_caught in zip(answers, caught(answers, tmp_path)):
            count += 1
            missed += [] if is_caught else [answer]
    assert count > 800
    assert len(missed) <= 0.05 * count, [f"{answer.name}: {answer.change}" for answer in missed]


def test_a_wrong_answer_hears_the_call_both_values_the_place_and_a_hint(lesson):
    right, wrong, still_open = check(
        lesson(slopes="return b + 1, a + 2 * b + 1", central="print('here'); return f(x) / h")
    )
    assert (right.status, wrong.status, still_open.status) == ("right", "wrong", "open")
    assert wrong.case == "central(cube, 2.0, 0.1)"
    assert (wrong.expected, wrong.got, wrong.printed) == ("12.01", "80.0", "here\n")
    assert wrong.hint == exercises(1)[1].hint
    (found, *_) = check(lesson(slopes="return b + 1, b"))
    assert (found.at, found.expected, found.got) == ("[1]", "5", "1.0")


def test_an_error_is_told_with_the_line_of_the_learner(lesson):
    path = lesson(slopes="return c")
    (found, *_) = check(path)
    line = path.read_text(encoding="utf-8").splitlines().index("    return c") + 1
    assert (found.status, found.got) == ("failed", f"line {line}: NameError: name 'c' is not defined")
    path.write_text(sheet(1) + "\nslopes = 3\ncentral = None\ndel prices\n", encoding="utf-8")
    assert [one.got for one in check(path)] == ["3", "None", "nothing of that name in the file"]


def test_a_file_that_does_not_run_is_told_once_and_shows_no_solutions(tmp_path, capsys):
    path = tmp_path / "lesson_01.py"
    path.write_text(sheet(1) + "\ndef broken(:\n", encoding="utf-8")
    assert main(["learn", "check", str(path), "--solution"]) == 1
    told, *rest = capsys.readouterr().out.splitlines()
    assert told == f"the file does not run: line {len(sheet(1).splitlines()) + 2}: SyntaxError: invalid syntax"
    assert rest[:2] == ["", "0 of 3 right"] and sum(line.startswith("# try it first") for line in rest) == 3
    path.write_text(sheet(1) + "\nwhile True: pass\n", encoding="utf-8")
    assert {(one.status, one.whole) for one in check(path, seconds=1)} == {("slow", True)}


def test_what_is_returned_of_another_kind_is_shown_rather_than_where_it_was_of_no_use():
    (xnor, *_) = exercises(4)
    assert tried(xnor, lambda a, b: None) == {
        "status": "wrong",
        "for": "xnor(0, 0)",
        "got": "None, which is of no use here: TypeError: float() argument must be a string or a real number, not 'NoneType'",
    }
    assert tried(xnor, lambda a, b: 0.5)["got"] == "'0.500'"


def test_one_that_is_slow_or_breaks_python_does_not_spoil_the_others(lesson):
    path = lesson(
        slopes="while True: pass", central="return (f(x + h) - f(x - h)) / (2 * h)", prices="import os; os._exit(3)"
    )
    assert [one.status for one in check(path, seconds=1)] == ["slow", "right", "crashed"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux holds a process to so much memory")
def test_one_that_wants_too_much_memory_is_told_so(lesson):
    path = lesson(slopes="return len(bytearray(3 * 2**30)), 0", central="import sys; sys.exit('bye')")
    found = check(path)
    assert [one.status for one in found] == ["memory", "failed", "open"]
    assert found[1].got.endswith("SystemExit: bye")


def test_the_process_knows_little_of_its_surroundings_and_works_in_a_folder_of_its_own(lesson, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "abc")
    body = "import os; return [os.environ.get('SECRET_TOKEN'), os.getcwd(), os.read(0, 1)]"
    path = lesson(slopes=body)
    (found, *_) = check(path)
    assert found.status == "wrong" and "abc" not in found.got and str(path.parent) not in found.got


def test_what_an_answer_prints_or_writes_to_the_channel_is_no_verdict(lesson):
    forged = '{"name": "slopes", "status": "right"}'
    body = f"import os; os.write(1, b'{forged}\\n'); print('{forged}' * 1000); return 0, 0"
    (found, *_) = check(lesson(slopes=body))
    assert found.status == "wrong" and len(found.printed) == 1000


@pytest.mark.parametrize(
    ("expected", "got", "told"),
    [
        (1.0, 1.0, None),
        (1.0, 1, None),
        (1.0, mg.tensor(1.0), None),
        (np.array([1.0, 2.0]), [1.0, 2.0], None),
        (np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]), None),
        ([1, 2], (1, 2), None),
        ("yes", "yes", None),
        ({"a": 1}, {"a": 1.0}, None),
        (1.0, None, {"expected": "a number: 1.0", "got": "None"}),
        (1.0, "1", {"expected": "a number: 1.0", "got": "'1'"}),
        (1.0, np.nan, {"expected": "1.0", "got": "nan"}),
        (1.0, -np.inf, {"expected": "1.0", "got": "-inf"}),
        (
            np.zeros((2, 2)),
            np.zeros(4),
            {"expected": "the shape (2, 2): [[0., 0.], [0., 0.]]", "got": "the shape (4,): [0., 0., 0., 0.]"},
        ),
        (np.zeros((2, 2)), np.eye(2), {"at": "[0, 0]", "expected": "0.0", "got": "1.0"}),
        ([1, 2], [1], {"expected": "2 values: [1, 2]", "got": "1: [1]"}),
        ([1, [2, 3]], [1, [2, 4]], {"at": "[1][1]", "expected": "3", "got": "4"}),
        ([1], 1, {"expected": "1 values: [1]", "got": "1"}),
        ("no", True, {"expected": "'no'", "got": "True"}),
        (True, 1.0, {"expected": "bool: True", "got": "float64: 1.0"}),
        ({"a": 1}, {"b": 1}, {"expected": "the keys ['a']", "got": "['b']"}),
        (2**60 + 1, 2**60, {"expected": str(2**60 + 1), "got": str(2**60)}),
    ],
)
def test_the_first_difference_is_told(expected, got, told):
    assert difference(expected, got, 1e-6) == told


def test_a_value_is_shown_in_one_short_line():
    assert shown(np.arange(50.0).reshape(5, 10)) == "an array of shape (5, 10)"
    assert shown([0.1] * 20) == f"[{', '.join(['0.1'] * 10)}, …]"
    assert shown({"a": (1,)}) == "{'a': (1,)}" and shown(np.float32(0.5)) == "0.5" and shown(len) == "len"
    assert len(shown("x" * 10_000)) < 250


def test_an_answer_that_changes_its_arguments_spoils_neither_the_case_nor_the_oracle():
    (softmax, *_) = exercises(6)

    def in_place(z):
        z -= z.max()
        np.exp(z, out=z)
        z /= z.sum()
        return z

    assert tried(softmax, in_place) == tried(softmax, in_place) == {"status": "right"}


def test_a_learner_starts_a_lesson_and_sees_how_far_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["learn"]) == 0
    printed = capsys.readouterr().out
    assert f"0 of {3 * len(TITLES)} right\nnext: minigrad learn start 1\n" in printed
    assert main(["learn", "start", "1"]) == 0
    path = tmp_path / "lessons" / "lesson_01.py"
    assert path.read_text(encoding="utf-8") == sheet(1)
    capsys.readouterr()
    assert main(["learn", "start", "1"]) == 2
    assert "is there already, with your work in it" in capsys.readouterr().err
    path.write_text(sheet(1).replace(HOLE, "    return b + 1, b\n", 1), encoding="utf-8")
    assert main(["learn", "check", str(path), "--solution"]) == 1
    printed = capsys.readouterr().out
    assert (
        "1. slopes: wrong\n   for:      slopes(2.0, 1.0)\n   expected: 5 at [1]\n   got:      1.0\n   hint: " in printed
    )
    assert "2. central: not written yet\n" in printed and "\n0 of 3 right\n" in printed
    assert "return b + 1, (b + 1) + (a + b)" in printed  # it was tried
    assert "return (f(x + h)" not in printed and printed.count("# try it first") == 2
    path.write_text(solved(1), encoding="utf-8")
    assert main(["learn", "check", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["right"] == 3 and {one["status"] for one in told["exercises"]} == {"right"}
    assert main(["learn", "list", "lessons"]) == 0
    printed = capsys.readouterr().out
    assert "3 of 3  slopes, central, prices\n" in printed and "next: minigrad learn start 2\n" in printed
    assert main(["learn", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lessons"][0]["right"] == ["slopes", "central", "prices"]
    (tmp_path / "lessons" / "progress.json").write_text("[1", encoding="utf-8")
    assert main(["learn"]) == 2 and "is damaged: delete it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["start"], "which lesson?"),
        (["start", "99"], "there is no lesson '99'"),
        (["start", "four"], "there is no lesson 'four'"),
        (["start", "1", "a", "b"], "too many words: minigrad learn start LESSON FOLDER"),
        (["check"], "which file?"),
        (["check", "nothing.py"], "cannot be read: No such file"),
        (["check", "other.py"], "holds no lesson"),
        (["check", "wild.py"], "holds no lesson"),
        (["list", "--solution"], "--solution goes with check"),
        (["list", "--wheel", "a.whl"], "--wheel goes with notebooks"),
        (["notebooks", "out", "99"], "there is no such tutorial"),
        (["notebooks", "out", "1", "--wheel", "nothing.whl"], "there is no such wheel"),
    ],
)
def test_a_wrong_call_is_told_in_a_line(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.py").write_text("print(1)\n")
    (tmp_path / "wild.py").write_text("LESSON = 999\n")
    assert main(["learn", *words]) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and told in errors


def test_a_file_that_is_no_text_holds_no_lesson(tmp_path):
    (tmp_path / "a.py").write_bytes(b"\xff\xfe\x00LESSON = 1")
    with pytest.raises(ArgumentError, match="it is not UTF-8"):
        lesson_of(tmp_path / "a.py")


def test_a_tutorial_is_written_as_a_notebook(tmp_path, monkeypatch, capsys):
    """That notebooks are executed, and run elsewhere, test_notebooks.py shows: here they are only written."""
    monkeypatch.setattr(
        "minigrad.learn.write_notebooks", functools.partial(minigrad.learn.write_notebooks, execute=False)
    )
    assert main(["learn", "notebooks", str(tmp_path / "here"), "1"]) == 0
    (path,) = (tmp_path / "here").glob("*.ipynb")
    assert capsys.readouterr().out == f"wrote {path}\n" and path.name == "01_one_number_at_a_time.ipynb"
    monkeypatch.setattr("minigrad.cli.learn.TUTORIALS", tmp_path / "nowhere")
    assert main(["learn", "notebooks", str(tmp_path)]) == 2
    assert "come with the checkout" in capsys.readouterr().err


def test_an_engine_of_lesson_2_computes_what_minigrad_computes_in_lessons_3_to_6(tmp_path, capsys):
    path = tmp_path / "lesson_02.py"
    path.write_text(solved(2), encoding="utf-8")
    assert [one.status for one in check_engine(path)] == ["right", "right", "right", "open"]
    assert main(["learn", "engine", str(path)]) == 0
    assert "lesson 6: not written yet\n   hint:     give Value the methods exp() and log()" in capsys.readouterr().out
    path.write_text(sheet(2), encoding="utf-8")
    assert main(["learn", "engine", str(path)]) == 1
    capsys.readouterr()
    more = """
import math

def exp(self):
    return Value(math.exp(self.data), (self,), (math.exp(self.data),))

def log(self):
    return Value(math.log(self.data), (self,), (1 / self.data,))

Value.exp, Value.log = exp, log
"""
    path.write_text(solved(2) + more, encoding="utf-8")
    assert main(["learn", "engine", str(path)]) == 0
    assert capsys.readouterr().out.endswith("your engine computes 4 of 4 as minigrad does\n")
    path.write_text(solved(2).replace("parent.grad += slope", "parent.grad = slope") + more, encoding="utf-8")
    assert [one.status for one in check_engine(path)] == ["wrong"] * 4
    (tmp_path / "lesson_01.py").write_text(sheet(1), encoding="utf-8")
    with pytest.raises(ArgumentError, match="has no engine"):
        check_engine(tmp_path / "lesson_01.py")
