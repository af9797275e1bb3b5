"""The idioms of docs/idioms.md: every cell of the tables runs, and what it gives is the same in all libraries that are installed."""

import ast
import importlib
import re
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import minimize
from support.documents import ROOT

import minigrad as mg
from minigrad.nn import functional

PAGE = (ROOT / "docs" / "idioms.md").read_text(encoding="utf-8")
LIBRARIES = ("torch", "numpy", "jax", "minigrad")
NONE = "—"
_draw = np.random.default_rng(0)
ARRAYS = {
    "x": _draw.normal(size=(4, 3)), "y": _draw.normal(size=(4, 3)), "t": _draw.normal(size=(2, 3, 4)), "w": _draw.normal(size=(3, 2)),
    "A": _draw.normal(size=(3, 3)), "v": _draw.normal(size=3), "s": _draw.normal(size=(2, 4, 3)),
}  # fmt: skip
OTHERS = {"m": _draw.random((4, 3)) < 0.5, "rows": np.array([2, 0]), "labels": np.array([1, 0, 2, 2])}


def idioms() -> dict[str, dict[str, str]]:
    """The code of each library, by the name of the idiom; the tables begin behind the one of imports."""
    rows = re.findall(r"^\| ([^|`]+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
    return {
        name: dict(zip(LIBRARIES, (cell.strip("`") for cell in cells)))
        for name, *cells in rows
        if cells[0] != "PyTorch"
    }


IDIOMS = idioms()


@cache
def names_of(library: str) -> dict:
    """What the cells of a column take for granted."""
    arrays = {**{name: array.astype("float32") for name, array in ARRAYS.items()}, **OTHERS}
    if library == "torch":
        torch = importlib.import_module("torch")
        made = {name: torch.tensor(array) for name, array in arrays.items()}
        made |= {"torch": torch, "F": importlib.import_module("torch.nn.functional")}
    elif library == "jax":
        jax = importlib.import_module("jax")
        made = {name: jax.numpy.asarray(array) for name, array in arrays.items()} | {"jax": jax, "jnp": jax.numpy}
    elif library == "minigrad":
        made = {name: mg.tensor(array) for name, array in arrays.items()} | {"mg": mg, "F": functional}
    else:
        made = {**arrays, "np": np}
    return made | {"f": lambda x: (x**3).sum(), "minimize": minimize, "start": np.zeros(2)}


def result_of(library: str, code: str) -> list[np.ndarray]:
    """What the last expression of a cell gives, as arrays."""
    *before, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    names = dict(names_of(library))
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    result = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    several = result if isinstance(result, tuple) else (result,)
    return [np.asarray(one.detach() if hasattr(one, "detach") else one) for one in several]


def test_there_are_forty_idioms_and_each_has_minigrad_and_another():
    assert len(IDIOMS) == 40
    for name, cells in IDIOMS.items():
        assert cells["minigrad"] != NONE and any(code != NONE for code in [*cells.values()][:3]), name
    (used,) = re.findall(r"`(minimize\(mg\.value_and_grad.*?)` \|", PAGE)
    assert used.endswith("start, jac=True).x")


def compared(library: str, name: str) -> None:
    code = IDIOMS[name][library]
    if code == NONE:
        return
    theirs, ours = result_of(library, code), result_of("minigrad", IDIOMS[name]["minigrad"])
    assert len(theirs) == len(ours)
    for their, our in zip(theirs, ours):
        assert their.shape == our.shape, name
        tolerance = 1e-2 if their.dtype == "float16" else 1e-5
        np.testing.assert_allclose(our, their, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_gives_what_numpy_gives(name):
    compared("numpy", name)


@pytest.mark.torch
@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_gives_what_pytorch_gives(name):
    pytest.importorskip("torch")
    compared("torch", name)


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_gives_what_jax_gives(name):
    compared("jax", name)
