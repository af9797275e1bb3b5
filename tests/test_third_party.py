"""A stranger's package, built and pip-installed into a fresh environment, has every verb by one line in its setup.cfg."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
THIRD_PARTY = ROOT / "tests" / "third_party"
NEEDED = (
    "numpy",
    "safetensors",
    "threadpoolctl",
    "tqdm",
)  # what minigrad requires; taken from here, so that no network is needed
NO_BYTECODE = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")


class Place:
    """A fresh environment with minigrad and the stranger's package, and a folder of wheels."""

    def __init__(self, folder):
        self.folder, self.wheels = folder, folder / "wheels"
        venv.create(folder / "venv", with_pip=False)
        self.scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.scripts / Path(sys.executable).name
        site = self.run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
        Path(site, "borrowed.pth").write_text(str(borrowed(folder / "borrowed")), encoding="utf-8")

    def run(self, *command, code=0):
        """Run a command away from the checkout; its exit code must be as expected."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MINIGRAD"))}
        command = [str(word) for word in command]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=120
        )
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def minigrad(self, *words, code=0):
        return self.run(self.scripts / "minigrad", *words, code=code)

    def pip(self, *words):
        return self.run(sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check", *words)

    def install(self, *projects):
        """Build wheels of projects, and install them with all that they require."""
        options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
        before = set(self.wheels.glob("*.whl"))
        self.run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", self.wheels, *projects)
        built = set(self.wheels.glob("*.whl")) - before
        assert len(built) == len(projects)
        self.pip("install", "--quiet", "--no-index", *built)

    def listed(self):
        return {entry["name"]: entry for entry in json.loads(self.minigrad("list", "--json").stdout)}


def borrowed(folder):
    """The packages that minigrad requires, linked from this environment, with what pip knows of them."""
    folder.mkdir()
    for name in NEEDED:
        package = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(package.locate_file(top)))
            try:
                (folder / top).symlink_to(source, target_is_directory=source.is_dir())
            except OSError:  # Windows lets only some users make links
                (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / top)
    return folder


def variant(folder, name, source=None):
    """The stranger's project again as another package that has the same model, or one of other source."""
    shutil.copytree(THIRD_PARTY, folder, ignore=NO_BYTECODE)
    (folder / "strides").rename(folder / name)
    settings = (folder / "setup.cfg").read_text(encoding="utf-8")
    settings = settings.replace("name = strides", f"name = {name}").replace("packages = strides", f"packages = {name}")
    model = "strides" if source is None else name
    settings = settings.replace("strides = strides:spec", f"{model} = {name}:spec")
    (folder / "setup.cfg").write_text(settings, encoding="utf-8")
    if source is not None:
        (folder / name / "__init__.py").write_text(source, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stranger")
    made = Place(folder)
    tree = folder / "minigrad"
    tree.mkdir()
    for name in ("minigrad", "models"):
        shutil.copytree(ROOT / name, tree / name, ignore=NO_BYTECODE)
    for name in ("setup.cfg", "pyproject.toml", "build_backend.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(THIRD_PARTY, folder / "project", ignore=NO_BYTECODE)
    made.install(tree, folder / "project")
    shutil.rmtree(tree)
    shutil.rmtree(folder / "project")
    return made


@pytest.fixture(scope="module")
def run(place):
    """A run directory of the stranger's model, trained in two parts."""
    told = place.minigrad("train", "strides", "lr=0.02", "--out", "run", "--seed", "3", "--max-steps", "20")
    assert "20" in told.stdout + told.stderr
    place.minigrad("resume", "run", "--max-steps", "200")
    return "run"


def test_what_is_imported_is_installed_in_the_environment_and_not_the_checkout(place):
    shown = place.run(place.python, "-c", "import minigrad, strides; print(minigrad.__file__, strides.__file__)").stdout
    assert all(Path(path).is_relative_to(place.folder / "venv") for path in shown.split())


def test_the_strangers_model_is_listed_beside_those_of_minigrad_with_its_package(place):
    listed = place.listed()
    assert listed["strides"]["package"] == "strides 1.0" and listed["strides"]["error"] is None
    assert listed["strides"]["task"] == "lm" and listed["strides"]["presets"] == ["deep"]
    assert listed["xor"]["package"].startswith("minigrad ")
    shown = place.minigrad("show", "strides").stdout
    assert "counts in strides" in shown and "size of the vectors" in shown and "strides 1.0" in shown


def test_it_is_trained_resumed_and_judged_by_the_command(place, run):
    found = json.loads(place.minigrad("eval", run, "--json").stdout)
    assert found["accuracy"] > 0.9  # chance is 0.1
    metrics = (place.folder / run / "metrics.csv").read_text(encoding="utf-8").splitlines()
    assert metrics[-1].startswith("200,")


def test_it_answers_on_the_command_line_and_in_python_and_as_exported(place, run):
    (answer,) = json.loads(place.minigrad("predict", run, "2 5 8", "--json").stdout)
    assert answer == {"input": "2 5 8", "next": 1}
    code = (
        "import minigrad as mg; loaded = mg.zoo.load('run')\n"
        "print(loaded.next_digit('2 5 8'), sum(p.size for p in loaded.model.state_dict().values()), loaded.step)"
    )
    digit, weights, step = place.run(place.python, "-c", code).stdout.split()
    assert digit == "1" and weights == "3770" and 20 < int(step) <= 200
    place.minigrad("export", run, "-o", "shared")
    assert json.loads(place.minigrad("predict", "shared", "2 5 8", "--json").stdout) == [answer]


def test_a_mistake_is_one_message_without_a_traceback(place, run):
    told = place.minigrad("train", "stride", "--out", "other", code=2).stderr
    assert "strides" in told
    assert "'widht'" in place.minigrad("train", "strides", "widht=3", "--out", "other", code=2).stderr
    wrong = place.minigrad("predict", run, "two five", code=1).stderr
    assert "'strides' of strides 1.0" in wrong and "ValueError" in wrong
    assert not (place.folder / "other").exists()


def test_it_passes_every_line_of_the_conformance_suite(place):
    found = json.loads(place.minigrad("check", "strides", "--json").stdout)
    assert {verdict["name"]: verdict["detail"] for verdict in found["verdicts"] if not verdict["ok"]} == {}


def test_others_of_the_same_name_or_broken_are_named_and_what_is_uninstalled_is_gone(place, run, tmp_path):
    broken = variant(tmp_path / "broken", "broken_one", "raise RuntimeError('out of order')\n")
    place.install(variant(tmp_path / "again", "strides_again"), broken)
    try:
        listed = place.listed()
        assert "strides 1.0 and strides_again 1.0" in listed["strides"]["error"].replace("-", "_")
        assert "RuntimeError: out of order" in listed["broken_one"]["error"] and listed["xor"]["error"] is None
        told = place.minigrad("train", "strides", "--out", "other", code=1).stderr.replace("-", "_")
        assert "strides 1.0 and strides_again 1.0" in told
        assert "out of order" in place.minigrad("show", "broken_one", code=1).stderr
    finally:
        place.pip("uninstall", "--quiet", "--yes", "strides_again", "broken_one")
    assert place.listed()["strides"]["error"] is None
    place.pip("uninstall", "--quiet", "--yes", "strides")
    try:
        assert "strides" not in place.listed()
        assert "install strides 1.0" in place.minigrad("predict", run, "2 5 8", code=1).stderr
    finally:
        place.pip("install", "--quiet", "--no-index", "--find-links", place.wheels, "strides")
