"""Listing, describing, beginning and checking models; and what is said when a plugin's own code fails."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.cli import main
from minigrad.cli.doctor import Finding
from minigrad.errors import install_hint
from minigrad.kernels import implementation
from minigrad.zoo.config import configure, parse_overrides
from minigrad.zoo.skeleton import write_skeleton

NAME = "circle_of_tests"


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory) -> Path:
    """What `minigrad new` writes."""
    folder = tmp_path_factory.mktemp("new")
    done = subprocess.run(
        [sys.executable, "-m", "minigrad", "new", NAME], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"minigrad check {NAME}" in done.stdout
    return folder / NAME


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a plugin as pip would, its files changed by `changes` from one text to another."""

    def install(name: str, **changes: tuple[str, str]) -> Path:
        write_skeleton(name, tmp_path / "source")
        package = tmp_path / "site" / name
        package.parent.mkdir()
        (tmp_path / "source" / "src" / name).rename(package)
        for module, (old, new) in changes.items():
            path = package / f"{module}.py"
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        information = package.parent / f"{name}-1.5.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        setup = (tmp_path / "source" / "setup.cfg").read_text()
        (line,) = re.findall(rf"^ +({name} = .*)$", setup, re.MULTILINE)
        (information / "entry_points.txt").write_text(f"[minigrad.models]\n{line}\n")
        monkeypatch.syspath_prepend(str(package.parent))
        monkeypatch.chdir(tmp_path)
        return package

    yield install
    for name in [module for module in sys.modules if module.startswith("plugin_")]:
        del sys.modules[name]


def test_models_are_listed_for_people_and_for_programs(capsys):
    assert main(["list"]) == 0
    assert re.search(
        r"^xor +classification +exclusive or.*presets: bare, bare-relu", capsys.readouterr().out, re.MULTILINE
    )
    assert main(["list", "x?r", "--task", "classification", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    spec = mg.zoo.find("xor")
    assert (entry["name"], entry["task"], entry["summary"]) == ("xor", spec.task, spec.summary)
    assert (entry["presets"], entry["error"]) == (list(spec.presets), None)
    assert entry["package"] == f"minigrad {mg.__version__}"


def test_a_pattern_that_nothing_fits_is_told(capsys):
    assert main(["list", "zzz*", "--json"]) == 1
    shown, errors = capsys.readouterr()
    assert json.loads(shown) == [] and errors.startswith("minigrad: no model fits 'zzz*': choose one of bert, ")
    assert main(["list", "translater"]) == 1
    assert capsys.readouterr().err == "minigrad: no model fits 'translater': did you mean 'translator'?\n"


@pytest.mark.parametrize("arguments", [["show", "xor:bare"], ["train", "xor:bare", "--help"]])
def test_every_setting_is_shown_with_its_value_and_its_help(arguments, capsys):
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    spec = mg.zoo.find("xor")
    config = mg.zoo.configure(spec, "bare")
    for name, field in spec.config.__dataclass_fields__.items():
        line = rf"^  {name}={getattr(config, name)} +\w+ +{re.escape(field.metadata['help'])}"
        assert re.search(line, shown, re.MULTILINE), name
    assert "(tanh, sigmoid, relu)" in shown


def test_a_preset_is_shown_as_settings_that_can_be_given(capsys):
    assert main(["show", "bitmlp"]) == 0
    (shown,) = (line.split()[1:] for line in capsys.readouterr().out.splitlines() if "bitmlp:wide" in line)
    spec = mg.zoo.find("bitmlp")
    assert configure(spec, None, parse_overrides(shown)) == configure(spec, "wide")


def test_what_is_shown_can_be_read_by_programs(capsys):
    assert main(["show", "xor:bare", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    spec = mg.zoo.find("xor")
    assert shown["presets"] == {name: dict(changes) for name, changes in spec.presets.items()}
    settings = {setting["name"]: setting for setting in shown["settings"]}
    assert settings["hidden"]["value"] == 2 and settings["hidden"]["type"] == "int"
    assert settings["activation"]["choices"] == ["tanh", "sigmoid", "relu"]


def test_a_new_plugin_passes_the_check_at_once(skeleton):
    pytest.importorskip("minigrad.zoo.conformance", reason="there is no conformance suite yet")
    done = subprocess.run(
        [sys.executable, "-m", "minigrad", "check", str(skeleton), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["model"] == NAME and result["ok"] is True
    verdicts = [verdict["ok"] for verdict in result["verdicts"]]
    assert verdicts.count(True) >= 5 and False not in verdicts


def test_verdicts_are_shown_a_line_each_and_one_failure_is_exit_code_1(capsys, monkeypatch):
    conformance = pytest.importorskip("minigrad.zoo.conformance", reason="there is no conformance suite yet")
    made = [
        conformance.Verdict("builds", True, "33 parameters", 0.01),
        conformance.Verdict("predicts", None, "it does not", 0.0),
        conformance.Verdict("learns", False, "the loss\x1b[2J rose", 1.26),
    ]
    monkeypatch.setattr(conformance, "check", lambda spec, device, preset: iter(made))
    assert main(["check", "xor"]) == 1
    shown = capsys.readouterr().out
    assert [line.split()[:2] for line in shown.splitlines()[:3]] == [
        ["ok", "builds"], ["n/a", "predicts"], ["FAILED", "learns"],
    ]  # fmt: skip
    assert shown.endswith("\nxor: 1 passed, 1 failed: learns\n")
    assert "\x1b" not in shown and r"\x1b[2J" in shown
    monkeypatch.setattr(conformance, "check", lambda spec, device, preset: iter(made[:2]))
    assert main(["check", "xor"]) == 0


def test_new_overwrites_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin_mine").mkdir()
    (tmp_path / "plugin_mine" / "work.py").write_text("work")
    assert main(["new", "plugin_mine"]) == 1
    assert "'plugin_mine' is taken" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "plugin_mine").iterdir()] == ["work.py"]


def test_one_entry_point_gives_a_new_plugin_every_verb(installed, capsys):
    installed("plugin_whole")
    assert main(["list", "plugin_*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["package"] == "plugin_whole 1.5"
    assert main(["train", "plugin_whole", "--max-steps", "300"]) == 0
    assert main(["resume", "runs/plugin_whole", "--max-steps", "301"]) == 0
    capsys.readouterr()
    assert main(["eval", "runs/plugin_whole", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9
    assert main(["predict", "runs/plugin_whole", "0 0", "0.9 0.9", "--json"]) == 0
    inside, outside = json.loads(capsys.readouterr().out)
    assert inside["inside"] > 0.5 > outside["inside"]


def test_a_plugin_that_cannot_be_imported_is_listed_as_broken_and_told(installed, capsys):
    package = installed("plugin_import", __init__=("from dataclasses import", "1 / 0\nfrom dataclasses import"))
    assert main(["list", "plugin_*"]) == 0
    assert re.search(r"^plugin_import +BROKEN +.*ZeroDivisionError", capsys.readouterr().out, re.MULTILINE)
    assert main(["train", "plugin_import"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("minigrad: error: the model 'plugin_import' of plugin_import 1.5 is broken")
    line = 1 + (package / "__init__.py").read_text().split("\n").index("1 / 0")
    assert f"where:    {package / '__init__.py'}:{line}" in errors
    assert main(["doctor", "--json"]) == 0
    assert "plugin_import" in json.loads(capsys.readouterr().out)["models"]["detail"]


def test_a_plugin_that_fails_to_build_is_named_with_the_error_and_the_line(installed, capsys):
    package = installed(
        "plugin_build", model=("self.hidden, self.output =", "1 / 0\n        self.hidden, self.output =")
    )
    assert main(["train", "plugin_build"]) == 1
    errors = capsys.readouterr().err
    assert "'plugin_build' of plugin_build 1.5 failed while building the model: ZeroDivisionError" in errors
    line = 1 + [text.strip() for text in (package / "model.py").read_text().split("\n")].index("1 / 0")
    assert f"where:    {package / 'model.py'}:{line}, in __init__" in errors
    assert "Traceback" not in errors and "mistake in minigrad" not in errors


def test_a_mistake_in_a_plugin_that_minigrad_finds_names_the_line_too(installed, capsys):
    package = installed("plugin_shape", model=("nn.Linear(2, hidden)", "nn.Linear(3, hidden)"))
    assert main(["train", "plugin_shape"]) == 1
    errors = capsys.readouterr().err
    line = 1 + next(n for n, text in enumerate((package / "model.py").read_text().split("\n")) if "return self" in text)
    assert f"where:    {package / 'model.py'}:{line}, in forward" in errors
    assert "(32, 2)" in errors


def test_a_plugin_that_fails_while_training_loses_nothing(installed, capsys):
    counted = "    loss.calls = getattr(loss, 'calls', 0) + 1\n    1 / (25 - loss.calls)\n    x, y ="
    package = installed("plugin_late", __init__=("    x, y = (mg", counted + " (mg"))
    assert main(["train", "plugin_late", "valid_every=10", "--out", "run"]) == 1
    errors = capsys.readouterr().err
    assert "'plugin_late' of plugin_late 1.5 failed while training: ZeroDivisionError: division by zero" in errors
    assert "minigrad resume run" in errors and f"where:    {package / '__init__.py'}:" in errors
    path = package / "__init__.py"
    path.write_text(path.read_text().replace("1 / (25 - loss.calls)", "pass"))
    for name in [module for module in sys.modules if module.startswith("plugin_late")]:
        del sys.modules[name]
    assert main(["resume", "run", "--max-steps", "30"]) == 0
    assert "going on from step" in capsys.readouterr().out


def test_what_a_plugin_says_to_its_user_is_not_blamed_on_it(installed, capsys):
    installed("plugin_polite")
    assert main(["train", "plugin_polite", "--max-steps", "1", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["predict", "run", "somewhere"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("minigrad: error: 'somewhere' is no point\n") and "where:" not in errors


@pytest.mark.parametrize("how", ["option", "environment"])
def test_debugging_shows_the_traceback(how, installed, capsys, monkeypatch):
    installed("plugin_debug", model=("self.hidden, self.output =", "1 / 0\n        self.hidden, self.output ="))
    if how == "environment":
        monkeypatch.setenv("MINIGRAD_DEBUG", "1")
    assert main(["train", "plugin_debug", *(["--debug"] if how == "option" else [])]) == 1
    errors = capsys.readouterr().err
    assert "Traceback (most recent call last)" in errors and "in __init__\n    1 / 0" in errors


def test_a_mistake_of_minigrads_own_says_so(capsys, monkeypatch):
    monkeypatch.setattr("minigrad.zoo.registry.list_models", int)
    assert main(["list"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("minigrad: error: TypeError: ") and "mistake in minigrad" in errors


def test_the_doctor_knows_versions_and_what_to_install(capsys, monkeypatch):
    import numpy

    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "python", "minigrad", "numpy", "blas", "cores", "kernels", "numba", "cuda", "mpi", "matplotlib", "graphviz",
        "sacrebleu", "cache", "models",
    ]  # fmt: skip
    assert found["numpy"]["detail"] == numpy.__version__
    assert found["python"]["detail"].startswith(".".join(map(str, sys.version_info[:3])))
    assert found["cache"]["detail"].startswith(str(mg.data.cache_directory()))
    assert found["kernels"]["detail"].split()[0] == implementation()
    missing = {"found": False, "detail": "missing", "install": install_hint("fast"), "wrong": False}
    monkeypatch.setattr("minigrad.cli.doctor._version", lambda package: None)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["numba"] == missing
    assert found["matplotlib"]["install"] == install_hint("viz")
    assert found["mpi"]["install"] == install_hint("mpi")
    assert found["sacrebleu"]["install"] == install_hint("metrics")
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"\n  numba +kernels compiled .*\n +" + re.escape(install_hint("fast")) + "\n", shown)


def test_a_library_that_breaks_while_it_is_looked_at_is_told_and_the_rest_goes_on(capsys, monkeypatch):
    def broken(name: str) -> Finding:
        raise RuntimeError("its library is gone\nsecond line")

    monkeypatch.setitem(sys.modules["minigrad.cli.doctor"]._LOOKS, "mpi", broken)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mpi"] == {
        "found": False, "detail": "RuntimeError: its library is gone", "install": None, "wrong": False
    }  # fmt: skip
    assert found["numpy"]["found"]


def test_the_doctor_finds_the_mpiexec_beside_python(tmp_path, monkeypatch):
    import minigrad.cli.doctor as doctor

    beside = tmp_path / "bin" / ("mpiexec.exe" if sys.platform == "win32" else "mpiexec")
    beside.parent.mkdir()
    beside.write_text("")
    beside.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._mpiexec() == f", started by {beside}"
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert doctor._mpiexec() == ""
    beside.unlink()
    assert doctor._mpiexec() == ", but there is no mpiexec on the PATH"


def test_text_that_a_terminal_lacks_is_spelt_out():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    code = "import sys; from minigrad.cli import main; sys.exit(main(['train', 'n\u00e9t\x1b']))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert r"there is no model 'n\xe9t\x1b'" in done.stderr
