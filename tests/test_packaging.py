"""What is installed: the built wheel against the tree, and the metadata against the rules of the house."""

import configparser
import os
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy
import pytest

import minigrad

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"minigrad": "minigrad", "models": "minigrad_models"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel made through a source archive, so that both are known to be whole."""
    copy = tmp_path_factory.mktemp("build") / "tree"
    copytree(ROOT, copy, ignore=ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info"))
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", str(copy)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def test_the_wheel_holds_exactly_the_source_files_of_the_tree(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    tree = {
        (Path(package) / path.relative_to(ROOT / folder)).as_posix()
        for folder, package in SOURCES.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {"minigrad/__init__.py", "minigrad/py.typed", "minigrad_models/__init__.py"} <= tree
    assert packed == tree


def test_the_wheel_puts_nothing_but_two_packages_into_site_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"minigrad", "minigrad_models", f"minigrad-{minigrad.__version__}.dist-info"}


def test_the_installed_wheel_works_away_from_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, timeout=120)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import minigrad as a, minigrad_models as b; print(a.__file__, b.__file__, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(site)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(site / name / "__init__.py") for name in ("minigrad", "minigrad_models")]


def test_the_wheel_declares_its_version_python_licence_and_command(wheel, metadata):
    assert metadata["Version"] == minigrad.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "MIT"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (entries,) = (n for n in names if n.endswith("entry_points.txt"))
        assert "minigrad = minigrad.cli:main" in archive.read(entries).decode()
    assert any(name.endswith("LICENSE") for name in names)


def test_only_small_packages_are_required_and_the_broken_safetensors_is_not(metadata):
    required = [r for r in metadata.get_all("Requires-Dist", []) if "extra ==" not in r]
    assert sorted(required) == ["numpy>=2.0", "safetensors>=0.7", "threadpoolctl>=3.1", "tqdm>=4.62"]


def test_every_extra_exists_and_all_leaves_out_the_cuda_ones(metadata):
    extras = set(metadata.get_all("Provides-Extra", []))
    assert extras == {
        "fast",
        "viz",
        "mpi",
        "metrics",
        "hub",
        "images",
        "onnx",
        "docs",
        "cuda12",
        "cuda13",
        "test",
        "test-cuda",
        "all",
    }
    (everything,) = (r for r in metadata.get_all("Requires-Dist", []) if 'extra == "all"' in r)
    named = everything.partition("[")[2].partition("]")[0].split(",")
    assert {name.strip() for name in named} == {e for e in extras if "cuda" not in e and e != "all"}


def test_pyproject_holds_the_build_system_and_setup_cfg_all_the_rest():
    tables = [line.strip() for line in (ROOT / "pyproject.toml").read_text().splitlines() if line.startswith("[")]
    assert tables == ["[build-system]"]
    assert not (ROOT / "setup.py").exists()
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["name"] == "minigrad"
    assert config["metadata"]["version"] == minigrad.__version__
    assert f"\nversion: {minigrad.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_a_script_beside_a_checkout_called_minigrad_finds_the_package(tmp_path):
    checkout, site = tmp_path / "minigrad", tmp_path / "venv"
    copytree(
        ROOT, checkout, ignore=ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "tests", "docs")
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(site)], check=True, timeout=60)
    code = "import build_backend, sys; print(build_backend.build_editable(sys.argv[1]))"
    build = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(build, cwd=checkout, check=True, timeout=120, capture_output=True)
    python = next(p for p in (site / "bin" / "python", site / "Scripts" / "python.exe") if p.exists())
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", where], check=True, capture_output=True, text=True).stdout.strip())
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        archive.extractall(packages)
    (packages / "others.pth").write_text(f"{Path(numpy.__file__).parents[1]}\n")  # what minigrad depends on
    (tmp_path / "script.py").write_text(
        "import minigrad, minigrad_models\nprint(minigrad.__file__)\nprint(minigrad.ones(2).tolist())"
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=clean)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(checkout / "minigrad" / "__init__.py"), "[1.0, 1.0]"]
