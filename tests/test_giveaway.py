"""A folder that is given away: what its README.md says is measured, and it works where nothing else of minigrad is."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.zoo.giveaway import give_away

RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The folder of a model that was trained for a moment, and its run."""
    place = tmp_path_factory.mktemp("private-place")
    assert main(["train", "xor", "--out", str(place / "run"), "--max-steps", "20", "--no-report"]) == 0
    assert main(["export", str(place / "run"), str(place / "out")]) == 0
    return place / "out", place


def test_all_of_it_is_there_and_nothing_names_a_place_of_this_machine(given):
    folder, place = given
    wheel = f"minigrad-{mg.__version__}-py3-none-any.whl"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["README.md", "config.json", wheel, "model.safetensors", "page.html"]
    )
    private = [str(place).encode(), place.name.encode(), str(Path.home()).encode()]
    for path in folder.iterdir():
        content = path.read_bytes()
        if path.name == wheel:
            with zipfile.ZipFile(path) as archive:
                content = b"".join(archive.read(name) for name in archive.namelist() if "minigrad_models/xor" in name)
        assert not [name for name in private if name in content], path.name


def test_the_scores_of_its_card_are_those_of_the_run(given, capsys):
    folder, place = given
    card = (folder / "README.md").read_text()
    assert main(["eval", str(place / "run")]) == 0
    shown = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in capsys.readouterr().out.splitlines())
    rows = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", card.partition("## Scores")[2].partition("## ")[0], re.MULTILINE))
    assert rows == shown and "accuracy" in rows
    assert "| steps of training | 20 |" in card and "| seed | 0 |" in card


def test_the_commands_of_its_card_work(given, capsys):
    folder, _ = given
    (command,) = re.findall(r"^minigrad (predict .*)$", (folder / "README.md").read_text(), re.MULTILINE)
    words = [str(folder) if word == "." else word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]
    assert main(words) == 0
    assert "probability" in capsys.readouterr().out


def test_its_wheel_can_be_installed_and_opens_the_model(given, tmp_path):
    folder, _ = given
    (wheel,) = folder.glob("*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path),
        str(wheel),
    ]
    subprocess.run(pip, check=True, timeout=120)
    code = f"import json, minigrad as mg; print(mg.__file__); print(json.dumps(mg.zoo.load({str(folder)!r}).predict('1 0')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    file, answer = done.stdout.splitlines()
    assert Path(file).is_relative_to(tmp_path)
    assert json.loads(answer) == zoo.load(folder).predict("1 0")


def test_a_task_names_its_own_command_and_what_cannot_be_there_is_said(tmp_path, capsys):
    assert main(["export", str(RUNS / "translator"), str(tmp_path / "out"), "--no-scores"]) == 0
    assert f"use it: minigrad translate 'You are welcome' --run {tmp_path / 'out'}" in capsys.readouterr().out
    card = (tmp_path / "out" / "README.md").read_text()
    assert "minigrad translate 'You are welcome' --run ." in card and "They were not measured." in card
    samples = card.partition("## Samples")[2].partition("## ")[0]
    assert samples.count(" -> ") > 2 and "wanted: " in samples  # wrong ones, too
    size = sum(
        tensor.data.nbytes
        for tensor in {id(t.data): t for t in zoo.load(RUNS / "translator").model.state_dict().values()}.values()
    )
    assert (tmp_path / "out" / "model.safetensors").stat().st_size < 1.05 * size + 4000  # the tied matrix once


def test_a_card_is_markdown_whatever_a_plugin_calls_itself(tmp_path):
    import dataclasses

    loaded = zoo.load(RUNS / "gpt")
    hostile = "a | b <script>alert(1)</script>\n# title `x`"
    odd = dataclasses.replace(loaded, spec=dataclasses.replace(loaded.spec, summary=hostile))
    card = (give_away(odd, tmp_path / "out", scores=False) / "README.md").read_text()
    assert "A \\| b \\<script\\>alert(1)\\</script\\> \\# title \\`x\\`." in card
