"""What a person meets at the keyboard every day: bounds of settings, units of scores, times, completion, colours, broken plugins."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from time import monotonic

import pytest

import minigrad as mg
from minigrad.cli import COMMANDS, main
from minigrad.cli.console import styled
from minigrad.metrics import spelled
from minigrad.zoo import registry
from minigrad.zoo.size import check_size

PLUGIN = """
[options.entry_points]
minigrad.models =
    {name} = {module}:{attribute}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["digits", "images=1000000000000"], "images cannot be 1000000000000: give 1,000,000 or less"),
        (["gpt", "batch=10000000"], "batch cannot be 10000000: give 100,000 or less"),
        (["translator", "beams=10000000"], "beams cannot be 10000000: give 1,000 or less"),
        (["xor", "hidden=100000000000"], "xor is too large for this machine: with hidden=100000000000 it takes"),
        (["gpt", "layers=1000000"], "layers cannot be 1000000: give 1,000 or less"),
        (["translator", "depth=1000000"], "depth cannot be 1000000: give 1,000 or less"),
        (["digits", "channels=1000"], "channels cannot be 1000: give 256 or less"),
    ],
)
def test_what_no_memory_can_hold_is_refused_by_the_name_of_the_setting(words, said, here, capsys):
    start = monotonic()
    assert main(["train", *words, "--out", "run"]) != 0
    assert said in capsys.readouterr().err and not (here / "run").exists()
    assert monotonic() - start < 20  # nothing of that size was made


def test_a_model_is_measured_by_its_weights_gradients_and_moments(monkeypatch):
    spec = registry.find("xor")
    config = mg.zoo.config.configure(spec, None, {"hidden": 1000})
    count = sum(p.size for p in spec.build(config).parameters())
    monkeypatch.setattr("minigrad.zoo.size._memory", lambda: 4 * 4 * count)
    check_size(spec, config)
    monkeypatch.setattr("minigrad.zoo.size._memory", lambda: 4 * 4 * count - 1)
    with pytest.raises(mg.errors.ArgumentError, match="with hidden=1000 it takes"):
        check_size(spec, config)


def test_a_loss_that_grew_is_said_to_have_grown(capsys):
    assert main(["train", "xor", "lr=1e9", "--max-steps", "20", "--out", "wild", "--no-report"]) == 0
    assert "the loss grew, from 0.69" in capsys.readouterr().out
    assert main(["train", "xor", "--max-steps", "20", "--out", "tame", "--no-report"]) == 0
    assert "grew" not in capsys.readouterr().out


def test_scores_are_in_per_cent_and_spelled_out(capsys):
    assert main(["train", "xor", "--out", "run", "--no-report"]) == 0
    assert "valid: loss 0.0" in (shown := capsys.readouterr().out) and "accuracy 100.00 %" in shown
    assert main(["eval", "run"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["accuracy", "100.00", "%"]
    assert spelled("phrasebook_exact_match", 0.53) == "0.53 %" and spelled("exact", 0.0053) == "0.53 %"
    assert spelled("perplexity", 1.157772) == "1.1578" and spelled("loss", 1.4e8) == "1.4e+08"


def test_one_file_is_not_two(here, capsys):
    for name in "ab":
        (here / f"{name}.txt").write_text("some text\n")
    assert main(["train", "gpt", "--data", "a.txt,b.txt", "--out", "run"]) == 1
    assert "gpt reads one file" in capsys.readouterr().err


def test_a_table_in_which_few_lines_fit_is_refused_with_the_lines(here, capsys):
    (here / "few.csv").write_text("hello,hola\nthanks,gracias\na,b\n" + "one, two, three\n" * 3 + "x,,\n" * 2)
    assert main(["train", "translator", "--data", "few.csv", "--out", "run"]) == 1
    said = capsys.readouterr().err
    assert "few.csv" in said and "3 columns between commas in 5 lines, but not in lines 1, 2, 3" in said
    fitting = "".join(f"one {i},uno {i}\n" for i in range(90)) + "".join(f"{i},\n" for i in range(95))
    (here / "most.csv").write_text(fitting)
    assert main(["train", "translator", "--data", "most.csv", "--out", "run"]) == 1
    assert "only 90 of 185 lines of most.csv are pairs" in (said := capsys.readouterr().err) and "lines 91, 92" in said


def test_a_time_gives_the_number_of_steps_and_the_schedule_ends_with_them(here, monkeypatch, capsys):
    monkeypatch.setattr("minigrad.zoo.budget.PROBE", 0.5)
    start = monotonic()
    assert main(["train", "xor", "--max-minutes", "0.12", "--out", "run", "--no-report"]) == 0
    seconds, shown = monotonic() - start, capsys.readouterr().out
    steps = json.loads((here / "run/config.json").read_text())["config"]["config"]["steps"]
    assert f"in 0.12 minutes, {steps:,} steps of" in shown and f"step {steps:,}" in shown
    assert steps > 600 and seconds < 30
    assert main(["train", "xor", "--max-minutes", "1", "--max-steps", "3"]) == 2
    assert main(["train", "xor", "--fit-model"]) == 2
    assert main(["train", "xor", "--max-minutes", "nan"]) == 2
    assert main(["train", "xor", "--max-minutes", "1", "--fit-model", "--out", "other"]) == 1
    assert "xor has one size only" in capsys.readouterr().err


def test_the_largest_size_that_fits_is_chosen_to_the_time(monkeypatch, capsys):
    spec = dataclasses.replace(registry.find("xor"), sizes={"few": {"hidden": 2}, "many": {"hidden": 8}})
    monkeypatch.setattr("minigrad.zoo.budget.named", lambda name: (spec, None))
    monkeypatch.setattr("minigrad.zoo.budget.PROBE", 0.3)
    assert main(["train", "xor", "--max-minutes", "0.5", "--fit-model", "--out", "run", "--no-report"]) == 0
    assert "the size 'many': 600 steps" in capsys.readouterr().out
    assert mg.zoo.load("run").config.hidden == 8


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_models(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = 'COMP_WORDS=(minigrad {}); COMP_CWORD={}; _minigrad; echo "${{COMPREPLY[@]}}"\n'
    lines = "".join(asked.format(words, words.count(" ") + 1) for words in ("tr", "train --max-s", "show x", "eval x"))
    done = subprocess.run(["bash", "-c", script + lines], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["train translate", "--max-steps", "xor", ""]


def test_every_command_is_in_the_scripts_of_the_other_shells(capsys):
    for shell in ("zsh", "fish"):
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert all(name in script for name in COMMANDS)
    assert "complete -c minigrad -n '__fish_seen_subcommand_from train' -l max-minutes" in script


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert styled("no", "bad", Terminal()) == "\x1b[31mno\x1b[0m"
    assert styled("no", "bad", io.StringIO()) == "no"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("no", "bad", Terminal()) == "no"


def test_a_plugin_that_raises_what_is_no_exception_is_broken_and_harms_no_other(here, monkeypatch, capsys):
    (here / "skipping.py").write_text("import pytest\npytest.skip('not here', allow_module_level=True)\n")
    monkeypatch.syspath_prepend(here)
    point = EntryPoint("skipping", "skipping:spec", registry.GROUP)
    points = registry._points()
    monkeypatch.setattr(registry, "_points", lambda: {**points, "skipping": {"a package 1": point}})
    assert main(["list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("skipping") and "BROKEN" in row and "Skipped: not here" in row for row in rows)
    assert any(row.startswith("xor") for row in rows)


def test_a_folder_with_a_plugin_is_checked_as_its_setup_says_and_named_when_it_is_not_installed(here, capsys):
    assert main(["new", "my_model"]) == 0
    folder = here / "my_model"
    assert main(["train", "my_model", "--out", "run"]) == 2
    assert "pip install -e my_model" in capsys.readouterr().err
    source = folder / "src" / "my_model"
    (source / "__init__.py").rename(source / "parts.py")
    (source / "__init__.py").write_text("")
    (folder / "setup.cfg").write_text(PLUGIN.format(name="my_model", module="my_model.parts", attribute="spec"))
    assert main(["check", "my_model/"]) == 0
    assert "my_model: " in capsys.readouterr().out
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_model"]:
        del sys.modules[name]
    (folder / "setup.cfg").write_text(PLUGIN.format(name="my_model", module="gone", attribute="spec"))
    assert main(["check", "my_model/"]) == 1
    assert "names the module 'gone', which is not there" in capsys.readouterr().err


def test_a_preset_is_checked_by_its_name(capsys):
    assert main(["check", "xor:bare"]) == 0
    assert "\nxor:bare: " in capsys.readouterr().out
    assert main(["check", "xor:nothing"]) == 2


def test_evaluation_prediction_and_checks_take_a_device(capsys):
    assert main(["train", "xor", "--max-steps", "5", "--out", "run", "--no-report"]) == 0
    assert main(["eval", "run", "--device", "cpu"]) == 0
    for words in (["eval", "run"], ["predict", "run", "1 0"], ["check", "xor"]):
        assert main([*words, "--device", "gpu"]) == 2
        assert "unknown device 'gpu'" in capsys.readouterr().err


def test_what_is_printed_at_the_end_is_what_one_types(here, capsys):
    (here / "text.txt").write_text("the cat sat on the mat. " * 40)
    settings = ["layers=1", "dim=8", "heads=1", "context=8", "--max-steps", "2", "--no-report"]
    assert main(["train", "gpt", "--data", "text.txt", "--out", "written", *settings]) == 0
    assert "use it: minigrad sample written" in capsys.readouterr().out
    assert main(["translate", "hello", "--run", "written"]) == 2
    assert "cannot translate: use minigrad sample written" in capsys.readouterr().err


def test_the_doctor_says_what_each_missing_part_would_bring(monkeypatch, capsys):
    monkeypatch.setattr("minigrad.cli.doctor._version", lambda package: None)
    monkeypatch.setattr("minigrad.cli.doctor.shutil.which", lambda *words, **more: None)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for gain in ("2 to 4 times as fast", "several machines", "PNG and PDF", "BLEU and chrF"):
        assert gain in shown
    assert "minigrad doctor --speed" in shown


def test_the_list_of_models_fits_the_terminal_and_keeps_a_line_each_where_there_is_none(monkeypatch, capsys):
    assert main(["list"]) == 0
    piped = capsys.readouterr().out
    assert len(piped.splitlines()) == 1 + len(mg.zoo.list())
    for columns in (80, 100, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout", shown := Terminal())
        assert main(["list"]) == 0
        assert max(map(len, shown.getvalue().splitlines())) <= columns
        assert shown.getvalue().split() == piped.split()  # nothing is cut off


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["xor", "learning_rate=0.1"], "xor has no setting 'learning_rate': it is called lr here: lr=0.1"),
        (["gpt", "n_layer=3"], "it is called layers here: layers=3"),
        (["translator", "num_layers=2"], "it is called depth here: depth=2"),
        (["xor", "d_model=3"], "xor has no setting 'd_model': "),  # which has no dim
    ],
)
def test_a_setting_by_the_name_of_another_library_is_answered_with_ours(words, said, capsys):
    assert main(["train", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_overview_fits_a_terminal_and_a_lesson_by_its_number_is_answered(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with monkeypatch.context() as there:
        there.setattr("sys.stdout", shown := Terminal())
        assert main([]) == 0
    assert max(map(len, shown.getvalue().splitlines())) <= 80 and "\n  translate " in shown.getvalue()
    assert main(["learn", "3"]) == 2
    assert "there is no action '3': to begin, minigrad learn start 3" in capsys.readouterr().err
    assert main(["learn", "start", "3"]) == 0 and main(["learn", "check", "3"]) == 1
    assert "0 of 3 right" in capsys.readouterr().out


def test_a_report_of_an_exported_folder_says_what_it_can_show(here, capsys):
    assert main(["train", "xor", "--max-steps", "5", "--out", "run", "--no-report"]) == 0
    assert main(["export", "run", "given"]) == 0
    capsys.readouterr()
    assert main(["report", "run"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["report", "given"]) == 0
    said = "this is an exported model: its settings and its graph are shown; curves and samples stay in its run"
    assert said in capsys.readouterr().out and said in (here / "given/report.html").read_text()


@pytest.mark.parametrize("model", ["gpt", "translator"])
def test_a_path_in_a_setting_that_does_not_exist_needs_no_line_of_source(model, capsys):
    assert main(["train", model, "init=3", "--out", "run"]) == 1
    said = capsys.readouterr().err
    assert f"{model}: init='3' cannot be begun from: '3' does not exist" in said and "where:" not in said


def test_one_attention_of_one_head_is_not_called_several(here, capsys):
    (here / "text.txt").write_text("the cat sat on the mat. " * 40)
    settings = ["layers=1", "dim=8", "heads=1", "context=8", "--max-steps", "2", "--no-report"]
    assert main(["train", "gpt", "--data", "text.txt", "--out", "written", *settings]) == 0
    assert main(["attention", "written", "the cat", "-o", "seen.html"]) == 0
    assert "wrote seen.html: 1 attention, 1 head\n" in capsys.readouterr().out
