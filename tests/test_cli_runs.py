"""A run from the command line, from training to sharing; the important steps in processes of their own."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from test_mpi import MPIEXEC, surroundings, with_mpi

import minigrad as mg
from minigrad.cli import COMMANDS, main
from minigrad.errors import install_hint

# Where kernels of numba are compiled for the first time, that is said, and here nothing else may be.
SETTINGS = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MINIGRAD_KERNELS": "numpy"}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "minigrad", *arguments]
    return subprocess.run(command, cwd=folder, env=SETTINGS, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a run of xor in `runs/xor`, trained by the bare command."""
    folder = tmp_path_factory.mktemp("cli")
    done = run(folder, "train", "xor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("training xor into runs/xor (seed 0)\n")
    assert "minigrad predict runs/xor" in done.stdout.splitlines()[-1]
    return folder


@pytest.fixture
def here(place, monkeypatch) -> Path:
    monkeypatch.chdir(place)
    return place


def lines_of_metrics(folder: Path) -> list[dict[str, str]]:
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_trained_xor_is_right_about_every_row(place):
    judged = run(place, "eval", "runs/xor", "--json")
    assert (judged.returncode, judged.stderr) == (0, "")
    numbers = json.loads(judged.stdout)
    assert numbers["accuracy"] == 1 and 0 < numbers["loss"] < 0.1
    answered = run(place, "predict", "runs/xor", "0 0", "0 1", "1 0", "1 1", "--json")
    assert (answered.returncode, answered.stderr) == (0, "")
    answers = json.loads(answered.stdout)
    assert [answer["input"] for answer in answers] == ["0 0", "0 1", "1 0", "1 1"]
    assert [round(answer["probability"]) for answer in answers] == [0, 1, 1, 0]


def test_text_says_the_same_as_json(here, capsys):
    main(["eval", "runs/xor", "--json"])
    numbers = json.loads(capsys.readouterr().out)
    assert main(["eval", "runs/xor"]) == 0
    shown = {
        name: text.split() for name, _, text in (line.partition(" ") for line in capsys.readouterr().out.splitlines())
    }
    assert shown.keys() == numbers.keys() and shown["accuracy"][1:] == ["%"]
    assert float(shown["accuracy"][0]) == pytest.approx(100 * numbers["accuracy"], rel=1e-3)
    assert float(shown["loss"][0]) == pytest.approx(numbers["loss"], rel=1e-2)
    assert main(["predict", "runs/xor", "1 0", "-1 0"]) == 0
    assert re.fullmatch(r"input: 1 0  probability: [01]\.\d+\ninput: -1 0  probability: .*\n", capsys.readouterr().out)


def test_settings_and_options_reach_the_run(place):
    options = ["--seed", "7", "hidden=3", "--max-steps", "4", "--threads", "1", "--out", "mine"]
    assert run(place, "train", "xor:bare", "lr=0.125", *options).returncode == 0
    loaded = mg.zoo.load(place / "mine")
    assert (loaded.config.lr, loaded.config.hidden, loaded.config.activation) == (0.125, 3, "sigmoid")
    assert (loaded.arguments["seed"], loaded.arguments["preset"], loaded.step) == (7, "bare", 4)
    assert loaded.model.state_dict()["hidden.weight"].shape == (3, 2)
    assert json.loads((place / "mine" / "config.json").read_text())["versions"]["threads"] == 1


def test_directories_that_are_taken_are_numbered(here, capsys):
    for expected in ("runs/xor-bare-relu", "runs/xor-bare-relu-2", "runs/xor-bare-relu-3"):
        assert main(["train", "xor:bare-relu", "--max-steps", "1"]) == 0
        assert f"into {expected} " in capsys.readouterr().out
        assert (here / expected / "latest").is_file()


def test_a_run_is_never_overwritten(here, capsys):
    before = (here / "runs/xor/metrics.csv").read_bytes()
    assert main(["train", "xor", "--out", "runs/xor"]) == 1
    assert (
        "'runs/xor' already holds a run\n  fix:      go on with it: minigrad resume runs/xor" in capsys.readouterr().err
    )
    assert (here / "runs/xor/metrics.csv").read_bytes() == before


def test_a_resumed_run_equals_one_that_was_not_interrupted(place, here):
    assert main(["train", "xor", "--out", "whole", "--max-steps", "120", "--seed", "5"]) == 0
    assert main(["train", "xor", "--out", "parts", "--max-steps", "50", "--seed", "5"]) == 0
    done = run(place, "resume", "parts", "--max-steps", "120")
    assert (done.returncode, done.stderr) == (0, "")
    whole, parts = (mg.zoo.load(place / name, "latest").model.state_dict() for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name].numpy(), parts[name].numpy())


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_saves_and_says_how_to_go_on_which_works(place, here):
    command = [sys.executable, "-m", "minigrad", "train", "xor", "steps=1000000", "--out", "stopped run"]
    process = subprocess.Popen(
        command, cwd=place, env=SETTINGS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    metrics = place / "stopped run" / "metrics.csv"
    deadline = time.monotonic() + 40
    while not (metrics.is_file() and metrics.read_text().count("\n") > 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate(timeout=40)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert shown.endswith("go on with minigrad resume 'stopped run'\n")
    step = mg.zoo.load(place / "stopped run", "latest").step
    assert step > 0
    assert main(["resume", "stopped run", "--max-steps", str(step + 1)]) == 0
    assert mg.zoo.load(place / "stopped run", "latest").step == step + 1


def test_the_curves_in_the_terminal_show_the_ends_of_metrics_csv(here, capsys):
    assert main(["plot", "runs/xor"]) == 0
    shown = capsys.readouterr().out
    rows = lines_of_metrics(here / "runs/xor")
    for name in ("loss", "accuracy", "grad_norm"):
        values = [float(row[name]) for row in rows if row[name]]
        assert f"* {name}: {values[-1]:.4g} at step {rows[-1]['step']}" in shown
    losses = [float(row[name]) for row in rows for name in ("loss", "valid_loss") if row.get(name)]
    panel = shown.partition("\n\n")[0].splitlines()
    assert panel[1].split() == [f"{max(losses):.4g}", "|*"]
    assert panel[12].startswith(f"{min(losses):.4g} |") and panel[12].endswith("o")
    assert panel[-1].split() == [rows[0]["step"], rows[-1]["step"]]


@pytest.mark.parametrize(
    ("content", "last"),
    [
        (b"step,loss\n10,1e308\n20,-1e308\n30,nan\n40,inf\n", "at step 20\n"),
        (b"step,loss\n10,5e-324\n10,0.0\n", "0 at step 10\n"),
        (b"step,loss\n10,0.5\n20,0.25,7,8\n30\nx,1\n1e300,1\n-5,1\n40,0.1", "0.1 at step 40\n"),
        (b"step,lo\x1b[2Jss\n10,0.5\n", "0.5 at step 10\n"),
        (b"", None),
        (b"step,loss\n", None),
        (b"\xff\xfe\x00nothing\n\x00", None),
        (b"step,loss\n10," + b"9" * 200_000, None),
    ],
)
def test_a_damaged_table_is_drawn_as_far_as_it_goes_or_refused(content, last, tmp_path, capsys):
    (tmp_path / "metrics.csv").write_bytes(content)
    assert main(["plot", str(tmp_path)]) == (0 if last else 1)
    shown, errors = capsys.readouterr()
    assert "\x1b" not in shown + errors
    assert last in shown if last else "metrics.csv" in errors and "fix:" in errors


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG\r\n"), ("c.pdf", b"%PDF")])
def test_pictures_are_painted_by_matplotlib(here, capsys, name, start):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install -e '.[viz]'")
    assert main(["plot", "runs/xor", "-o", name]) == 0
    assert (here / name).read_bytes().startswith(start)


def test_an_svg_needs_nothing_and_a_folder_that_is_missing_is_named(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", "runs/xor", "-o", "b.svg", "--log"]) == 0
    assert ElementTree.parse(here / "b.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    capsys.readouterr()
    assert main(["plot", "runs/xor", "-o", "nowhere/b.svg"]) == 1
    assert "the folder 'nowhere' does not exist" in capsys.readouterr().err


def test_a_picture_without_matplotlib_names_the_extra(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    monkeypatch.delitem(sys.modules, "minigrad.viz.drawing.figure", raising=False)
    assert main(["plot", "runs/xor", "-o", "none.png"]) == 1
    errors = capsys.readouterr().err
    assert "needs matplotlib" in errors and install_hint("viz") in errors
    assert not (here / "none.png").exists()


def test_the_average_is_the_mean_of_the_last_checkpoints_and_can_be_used_like_a_run(here, capsys):
    assert main(["average", "runs/xor", "--last", "2", "-o", "mean.safetensors"]) == 0
    files = sorted((here / "runs/xor/checkpoints").iterdir())[-2:]
    parts = [mg.train.read_checkpoint(path).model for path in files]
    averaged = mg.zoo.load("mean.safetensors").model.state_dict()
    for name, value in averaged.items():
        np.testing.assert_allclose(value.numpy(), (parts[0][name] + parts[1][name]) / 2, rtol=1e-6, atol=1e-7)
    capsys.readouterr()
    assert main(["eval", "mean.safetensors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1
    assert main(["average", "runs/xor", "--last", "99", "-o", "mean.safetensors"]) == 2
    assert "use --last 3 or less" in capsys.readouterr().err


def test_an_exported_model_has_the_same_weights_and_gives_the_same_answers(place, tmp_path, capsys):
    done = run(place, "export", "runs/xor", "-o", str(tmp_path / "shared"))
    assert (done.returncode, done.stderr) == (0, "")
    from safetensors.numpy import load_file

    weights = load_file(tmp_path / "shared" / "model.safetensors")
    trained = mg.zoo.load(place / "runs/xor").model.state_dict()
    assert weights.keys() == trained.keys()
    for name, value in trained.items():
        np.testing.assert_array_equal(weights[name], value.numpy())
    description = json.loads((tmp_path / "shared" / "config.json").read_text())
    assert (description["model"], description["config"]["hidden"]) == ("xor", 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shared"]
    answers = []
    for run_directory in (tmp_path / "shared", place / "runs/xor"):
        assert main(["predict", str(run_directory), "0 1", "0.3 0.9", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert len(answers[0]) == 2 and answers[0] == answers[1]


def test_export_overwrites_nothing_and_leaves_nothing_half_done(here, tmp_path, capsys, monkeypatch):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    assert main(["export", "runs/xor", "-o", str(tmp_path / "taken")]) == 1
    assert "is taken" in capsys.readouterr().err

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("minigrad.zoo.export.write_atomically", full)
    assert main(["export", "runs/xor", "-o", str(tmp_path / "new")]) == 1
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "mine.txt"]


def test_a_damaged_export_is_refused(here, tmp_path, capsys):
    assert main(["export", "runs/xor", "-o", str(tmp_path / "shared")]) == 0
    for text in ("{", "[]", '{"format": "other"}', '{"format": "minigrad-model-1", "config": {}, "step": "x"}'):
        (tmp_path / "shared" / "config.json").write_text(text)
        assert main(["eval", str(tmp_path / "shared")]) == 1
        errors = capsys.readouterr().err
        assert "was not written by `minigrad export`, or is damaged" in errors and "Traceback" not in errors


def test_a_tokenizer_goes_with_an_export(tmp_path):
    from minigrad.zoo.export import export, load_exported

    tokenizer = mg.data.CharTokenizer.train("words")
    spec = mg.zoo.find("xor")
    arguments = {
        "model": "xor",
        "preset": None,
        "config": {},
        "data": "/secret",
        "seed": 0,
        "max_steps": 1,
        "device": "cpu",
    }
    loaded = mg.zoo.Loaded(spec, spec.config(), spec.build(spec.config()), tokenizer, arguments, 1, tmp_path)
    export(loaded, tmp_path / "shared")
    again = load_exported(tmp_path / "shared")
    assert again.tokenizer.encode("sword") == tokenizer.encode("sword")
    assert "/secret" not in (tmp_path / "shared" / "config.json").read_text()


@pytest.mark.parametrize("verb", ["eval", "resume", "plot", "average", "export", "predict"])
def test_a_directory_that_does_not_exist_is_told_so(verb, tmp_path, capsys):
    rest = {"average": ["-o", "x"], "export": ["-o", "x"], "predict": ["1 0"]}
    assert main([verb, str(tmp_path / "nowhere"), *rest.get(verb, [])]) == 1
    assert "nowhere' does not exist" in capsys.readouterr().err


RUN_VERBS = ["eval", "resume", "plot", "report", "average", "export", "predict"]


def use(verb: str, path: str, folder: Path) -> list[str]:
    """A call of a command with the path of a run."""
    more = {"average": ["-o", str(folder / "x")], "export": ["-o", str(folder / "x")], "predict": ["1 0"]}
    return [verb, path, *more.get(verb, [])]


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_a_model_in_the_place_of_a_run_gets_the_newest_run_of_it(verb, here, tmp_path, capsys):
    for name, fix in {
        "xor": "give a run of it, such as runs/xor",
        "bert": "train it first: minigrad train bert",
    }.items():
        assert main(use(verb, name, tmp_path)) == 1
        assert f"{name!r} is a model, not a run\n" in (told := capsys.readouterr().err) and fix in told


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_a_folder_of_runs_in_the_place_of_a_run_gets_the_runs_in_it(verb, here, tmp_path, capsys):
    before = sorted(Path("runs").iterdir())
    assert main(use(verb, "runs", tmp_path)) == 1
    told = capsys.readouterr().err
    assert "'runs' is a folder of runs, not a run\n" in told and "give one of them: " in told and "runs/xor" in told
    assert sorted(Path("runs").iterdir()) == before


@pytest.mark.parametrize("verb", ["eval", "resume", "plot", "average", "export", "predict"])
def test_a_directory_that_is_no_run_is_told_without_a_traceback(verb, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    rest = {"average": ["-o", str(tmp_path / "x")], "export": ["-o", str(tmp_path / "x")], "predict": ["1 0"]}
    for name in ("empty", "nowhere"):
        assert main([verb, str(tmp_path / name), *rest.get(verb, [])]) == 1
        errors = capsys.readouterr().err
        assert errors.startswith("minigrad: error: ") and name in errors and "fix:" in errors
        assert "Traceback" not in errors and "mistake in minigrad" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("verb", ["resume", "average"])
def test_a_checkpoint_is_no_run_that_can_be_gone_on_with_or_averaged(verb, here, tmp_path, capsys):
    (checkpoint, *_) = Path("runs/xor/checkpoints").iterdir()
    assert main([verb, str(checkpoint), *(["-o", str(tmp_path / "x")] if verb == "average" else [])]) == 1
    errors = capsys.readouterr().err
    assert f"{str(checkpoint)!r} is a file" in errors and "expected: the directory of a run" in errors


@pytest.mark.parametrize("command", ["train xor --out runs", "demo --out runs", "train xor --out runs/xor"])
def test_a_place_with_other_files_is_refused_and_nothing_is_announced(command, here, capsys):
    before = sorted(here.rglob("*"))
    assert main(command.split()) == 1
    shown = capsys.readouterr()
    assert (
        shown.out == "" and "cannot be a run directory: it holds other files" in shown.err or "holds a run" in shown.err
    )
    assert sorted(here.rglob("*")) == before


def test_a_refusal_suggests_a_place_that_is_free(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    for number in range(7):
        (tmp_path / "notes" / f"{number}.txt").write_text("mine")
    assert main(["train", "xor", "--out", "notes"]) == 1
    told = capsys.readouterr().err
    assert (
        "expected: a directory that is new, or empty" in told and "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more" in told
    )
    assert "such as --out notes/xor" in told and len(list((tmp_path / "notes").iterdir())) == 7


def test_what_a_run_that_was_killed_at_once_left_behind_is_no_obstacle(tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    for name in ("lock", "config.json", ".config.json.a1b2.tmp"):
        (tmp_path / "run" / name).write_text("{}")
    assert main(["train", "xor", "--out", str(tmp_path / "run"), "--max-steps", "1", "--no-report"]) == 0


def test_the_end_of_training_says_what_was_best_and_that_it_was_asked_to_stop_early(tmp_path, capsys):
    assert main(["train", "xor", "--out", str(tmp_path / "run"), "--max-steps", "2", "--no-report"]) == 0
    shown = capsys.readouterr().out
    assert "\nstops after 2 of 600 steps, as asked: 0.333 % of the plan\n" in shown
    assert re.search(r"\nthe best validation: loss 0\.\d+, at step 2\n", shown)


def test_commands_and_what_exists_only_in_python_are_shown_apart(capsys):
    assert main(["show", "xor"]) == 0
    shown = capsys.readouterr().out
    assert "\ncommands   train, eval, predict, graph\n" in shown
    assert "\nin Python  loaded.draw, loaded.stuck, after loaded = mg.zoo.load(DIR)\n" in shown
    for entry in mg.zoo.list():
        assert main(["show", entry.name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert set(found["commands"]) <= COMMANDS.keys() and set(found["methods"]).isdisjoint(COMMANDS)


def test_the_lines_of_a_graph_are_those_of_the_model_and_never_of_the_command(here, capsys):
    assert main(["graph", "runs/xor"]) == 0
    shown = capsys.readouterr().out
    assert set(re.findall(r"\((\S+):\d+\)$", shown, re.MULTILINE)) == {"model.py", "__init__.py"}


def test_a_run_directory_that_cannot_be_made_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["train", "xor", "--out", str(tmp_path / "file" / "run")]) == 1
    errors = capsys.readouterr().err
    assert f"cannot be a run directory: {str(tmp_path / 'file')!r} is a file" in errors and "fix:" in errors


def test_data_that_is_not_there_is_told_and_nothing_is_left(tmp_path, capsys):
    assert main(["train", "word2vec", "--out", str(tmp_path / "run"), "--data", str(tmp_path / "none.txt")]) == 1
    assert f"there is no {str(tmp_path / 'none.txt')!r}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@with_mpi
def test_several_ranks_train_and_the_first_alone_trains_what_it_is_compared_with(tmp_path):
    words = ["train", "digits", "images=60", "held_out=20", "channels=2", "--max-steps", "2", "--out", "run"]
    command = [MPIEXEC, "-n", "2", sys.executable, "-m", "minigrad", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=surroundings())
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("a linear softmax, trained alike") == 1
