"""The command line as a user meets it: how it is called, and what it says to a wrong call."""

import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest

import minigrad
from minigrad.cli import COMMANDS, main

UP = os.path.join(os.pardir, os.pardir)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "minigrad", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert (end.value.code, capsys.readouterr().out) == (0, f"minigrad {minigrad.__version__}\n")


def test_every_verb_is_listed_with_what_it_does():
    assert list(COMMANDS) == [
        "list", "show", "new", "train", "resume", "eval", "predict", "sample", "chat", "embed", "translate", "paint", "plot", "report", "graph",
        "attention", "serve", "average", "export", "quantize", "import", "check", "doctor", "plan", "demo", "learn", "completion",
    ]  # fmt: skip
    for arguments in ((), ("--help",)):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        for name, command in COMMANDS.items():
            assert re.search(rf"^  {name} +{re.escape(command.summary)}$", done.stdout, re.MULTILINE)
        assert "example:\n  minigrad train" in done.stdout


def test_help_is_a_command_too(capsys):
    assert main(["help"]) == 0
    assert capsys.readouterr().out.startswith("usage: minigrad COMMAND [options]\n")
    assert main(["help", "train"]) == 0
    assert capsys.readouterr().out.startswith("usage: minigrad train ")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_an_example_that_can_be_called_so(name, capsys):
    try:
        code = main([name, "--help"])
    except SystemExit as end:
        code = end.code
    assert code == 0
    (example,) = re.findall(r"^example:\n  minigrad (.*)$", capsys.readouterr().out, re.MULTILINE)
    first, *rest = shlex.split(example)
    assert first == name
    COMMANDS[name].parser(name).parse(rest)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["dmo"], "no command 'dmo': did you mean 'demo'?"),
        (["xyzzy"], "no command 'xyzzy': choose one of list, show"),
        (["demo", "--seed", "many"], "expected a whole number from 0 up, got 'many'"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--max-steps", "1.5"], "expected a whole number from 1 up, got '1.5'"),
        (["demo", "--sed", "1"], "unrecognized arguments: --sed: did you mean '--seed'"),
        (["--bogus"], "unrecognized arguments: --bogus"),
        (["train"], "which model? `minigrad list` shows them"),
        (["train", "xro"], "there is no model 'xro': did you mean 'xor'?"),
        (["train", "XOR"], "there is no model 'XOR': did you mean 'xor'?"),
        (["train", "xor", "--hidden", "3"], "hidden is a setting of xor: write hidden=3"),
        (["train", "xor:bare", "--valid-every=5"], "valid_every is a setting of xor: write valid_every=5"),
        (["graph", "xor", "--hidden", "--dark"], "hidden is a setting of xor: write hidden=…"),
        (["demo", "--depth", "1"], "depth is a setting of translator: write depth=1"),
        (["help", "trian"], "no command 'trian': did you mean 'train'"),
        (["train", "xor:bear"], "xor has no preset 'bear': did you mean 'bare'"),
        (["train", "xor", "hiden=3"], "xor has no setting 'hiden': did you mean 'hidden'?"),
        (["train", "xor", "hidden=many"], "hidden cannot be 'many': expected a whole number"),
        (["train", "xor", "activation=tan"], "activation cannot be 'tan': did you mean 'tanh'?"),
        (["train", "xor", "fast"], "'fast' is not a setting: write key=value, as in lr=0.01"),
        (["train", "xor", "seed=3"], "seed is no setting of the model but an option: --seed 3"),
        (["train", "xor", "--max-steps", "0"], "expected a whole number from 1 up, got '0'"),
        (["train", "xor", "--device", "gpu"], "unknown device 'gpu': use 'cuda'"),
        (["show", "xro"], "did you mean 'xor'?"),
        (["check", "xro"], "did you mean 'xor'?"),
        (["list", "--task", "embeding"], "did you mean 'embedding'?"),
        (["new", "xor"], "there is a model 'xor' already, of minigrad"),
        (["new", "My-Model"], "'My-Model' cannot be the name of a plugin: for instance my_model"),
        (["new", "numpy"], "another Python package: for instance my_numpy"),
        (["plot", "runs/x", "-o", "curves.gif"], "end its name in .svg, .png or .pdf"),
        (["graph", os.path.join("rusn", "xor")], "does not exist: give the directory of a run, or a model"),
        (["predict", "runs/x"], "required: INPUT"),
        (["predict", "runs/x", "caf\udce9"], r"INPUT: expected text in UTF-8, got 'caf\udce9'"),
        (["sample", "runs/x", "caf\udce9"], r"PROMPT: expected text in UTF-8, got 'caf\udce9'"),
        (["translate", "caf\udce9"], r"TEXT: expected text in UTF-8, got 'caf\udce9'"),
        (["attention", "runs/x", "caf\udce9"], r"TEXT: expected text in UTF-8, got 'caf\udce9'"),
        (["export", "runs/x"], "minigrad export RUN page.html"),
        (["export", "runs/x", "x.onnx"], "minigrad export runs/x FOLDER --to onnx"),
        (["export", "runs/x", "x.gguf"], "minigrad export runs/x x.gguf --to gguf"),
        (["export", "runs/x", "x.npz"], "minigrad export runs/x FOLDER --to numpy"),
        (["export", "runs/x", "x.zip"], "minigrad export runs/x FOLDER, or a page: minigrad export runs/x page.html"),
        (["export", "runs/x", "x.pdf", "--to", "gguf"], "minigrad export runs/x x.gguf --to gguf"),
        (["export", "runs/x", "x.html", "--to", "hf"], "minigrad export runs/x FOLDER --to hf"),
        (
            ["train", "xor", os.pardir],
            f"'{os.pardir}' is no setting but a path: to train on it, write --data {os.pardir}",
        ),
        (["translate", UP, "hello"], f"to ask that run, write --run {UP}"),
        (["sample", "hello", "--run", "runs/gpt"], "the run comes first: minigrad sample runs/gpt [PROMPT]"),
        (["paint", "a circle", "--run", "runs/paint"], "the run comes first: minigrad paint runs/paint TEXT"),
    ],
)
def test_a_wrong_call_gets_one_line_and_exit_code_2(arguments, part, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown, errors = capsys.readouterr()
    assert shown == ""
    assert errors.count("\n") == 1
    assert errors.startswith("minigrad: error: ")
    assert part in errors
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_call_ends_the_process_with_code_2_and_no_traceback():
    done = run("train", "xro")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "minigrad: error: there is no model 'xro': did you mean 'xor'?\n"


def test_options_and_settings_may_come_in_any_order():
    parser = COMMANDS["train"].parser("train")
    for words in ("xor lr=1 hidden=2 --seed 3", "--seed 3 xor lr=1 hidden=2", "xor --seed 3 lr=1 --debug hidden=2"):
        options = parser.parse(words.split())
        assert (options.model, options.settings, options.seed) == ("xor", ["lr=1", "hidden=2"], 3)


def test_a_reader_that_leaves_early_gets_no_traceback():
    command = [sys.executable, "-u", "-m", "minigrad", "check", "xor"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert errors == ""


def test_listing_models_loads_nothing_heavy():
    code = "import sys; from minigrad.cli import main; main(['list', '--json']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "minigrad.zoo.registry" in loaded and '"name": "xor"' in done.stdout
    heavy = {
        "minigrad.train",
        "minigrad.viz",
        "torch",
        "cupy",
        "matplotlib",
        "numba",
        "scipy",
        "mpi4py",
        "safetensors",
        "threadpoolctl",
        "tqdm",
        "pandas",
    }
    assert loaded & heavy == set()


def test_a_warning_is_one_line_without_a_place_in_a_file(monkeypatch, capsys):
    def run(options):
        warnings.warn("two lines were left out", stacklevel=1)
        return 0

    monkeypatch.setitem(COMMANDS, "list", replace(COMMANDS["list"], run=run))
    assert main(["list"]) == 0
    assert capsys.readouterr() == ("", "minigrad: warning: two lines were left out\n")
