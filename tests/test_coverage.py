"""The names of NumPy, PyTorch and JAX: each is here, called otherwise or refused for a reason, and what is said of it is true."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest
from support.documents import ROOT

import minigrad as mg
from minigrad.foreign_names import CALLED, hint

sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there
from docs import coverage  # noqa: E402

KINDS = {
    "arrays": mg, "functions": mg.nn.functional, "layers": mg.nn, "optimisers": mg.optim, "tensors": mg.Tensor,
    "autograd": mg.autograd, "initialisers": mg.nn.init, "data": mg.data, "utilities": mg.nn.utils, "random": mg.random,
}  # fmt: skip


def test_every_public_name_has_its_place_and_the_page_is_what_the_command_writes():
    command = [sys.executable, "-m", "docs.coverage", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["torch.optim.lr_scheduler"]["not_here"] == 0
    names = json.loads(coverage.NAMES.read_text())
    tables = {library: coverage.rows(names[library], kind, places) for library, _, kind, places in coverage.LIBRARIES}
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(tables)


def test_a_name_in_no_group_fails():
    table = coverage.rows(["exp", "no_such_name"], "arrays", ("minigrad",))
    assert coverage.problems("numpy", table) == ["numpy: in no group: no_such_name"]


@pytest.mark.parametrize(("library", "asked"), [(library, asked) for library, asked, *_ in coverage.LIBRARIES])
def test_the_names_are_those_of_the_library(library, asked):
    try:
        installed = version(library.partition(".")[0])
    except PackageNotFoundError:
        pytest.skip(f"{library} is not installed")
    if installed.partition("+")[0] != asked:
        pytest.skip(f"{library} is {installed}, and the names are of {asked}")
    assert coverage.public_names(library) == json.loads(coverage.NAMES.read_text())[library]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_name_is_called_here_exists(kind):
    words = set()
    for text in CALLED[kind].values():
        words |= {
            word
            for part in text.split(" or ")
            if (word := part.partition("(")[0].removeprefix("mg.")).replace(".", "").isidentifier()
        }
    places = (KINDS[kind], mg, mg.Tensor, mg.nn.Module)
    assert {w for w in words if not any(_reaches(place, w) for place in places)} - {
        "None",
        "Step",
        "bool",
        "isinstance",
    } == set()


def _reaches(owner, dotted):
    if dotted.partition(".")[0] in ("numpy", "x"):
        return True
    for name in dotted.split("."):
        if not hasattr(owner, name):
            return False
        owner = getattr(owner, name)
    return True


def test_hints_say_what_it_is_called_or_why_it_is_missing():
    assert hint("arrays", "unsqueeze") == "minigrad calls it expand_dims"
    assert hint("layers", "LazyLinear") == "it is not offered: layers that wait for their sizes: give the sizes"
    assert hint("arrays", "nobody_has_this") is None
