"""Every name of `xp` that minigrad uses exists in CuPy and takes the arguments it is given. CuPy imports without a GPU."""

from __future__ import annotations

import pytest
from support.cupy_names import CUPY_IS_INSTALLED, InstalledNames, frozen_names
from support.cupy_usage import Use, all_files, collect, names_in_use

pytestmark = pytest.mark.skipif(not CUPY_IS_INSTALLED, reason="CuPy is not installed: pip install -e '.[test-cuda]'")


def problems_in(source: str) -> list[str]:
    installed = InstalledNames()
    return sorted(problem for use in collect(source, "snippet.py").uses if (problem := use.problem(installed)))


def test_every_name_in_use_exists_in_cupy_with_a_signature_that_fits() -> None:
    installed = InstalledNames()
    uses = {use for file in all_files() for use in file.uses}
    assert len({use.name for use in uses}) > 80
    assert sorted(problem for use in uses if (problem := use.problem(installed))) == []


def test_no_name_is_looked_up_in_a_way_that_escapes_the_search() -> None:
    assert [place for file in all_files() for place in file.unresolved] == []


def test_the_frozen_list_holds_what_is_in_use_and_nothing_that_cupy_has_dropped() -> None:
    installed, frozen = InstalledNames(), frozen_names()
    assert names_in_use() <= frozen.keys(), "run: python -m tests.support.cupy_names"
    dropped = {name: set(parameters or ()) - set(installed[name] or ()) for name, parameters in frozen.items()}
    assert [name for name, gone in dropped.items() if gone] == [], "run: python -m tests.support.cupy_names"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("xp.nonexistent(a)", "snippet.py:1: cupy has no nonexistent"),
        ("xp.linalg.nonexistent", "snippet.py:1: cupy has no linalg.nonexistent"),
        ("self.xp.sum(a, where=mask)", "snippet.py:1: cupy.sum() got an unexpected keyword argument 'where'"),
        (
            "backend_of(a).xp.prod(a, initial=1)",
            "snippet.py:1: cupy.prod() got an unexpected keyword argument 'initial'",
        ),
        ("xp.add.at(a, i, b, c)", "snippet.py:1: cupy.add.at() takes 3 positional arguments, not 4"),
        ("xp.exp(a, where=mask)", "snippet.py:1: cupy.exp() got an unexpected keyword argument 'where'"),
        ("random = xp.random\nrandom.Generator.normal(0)", "snippet.py:2: cupy has no random.Generator.normal"),
        (
            "@op\ndef f(xp, a):\n    return a.sum(where=True)",
            "snippet.py:3: cupy.ndarray.sum() got an unexpected keyword argument 'where'",
        ),
        (
            "@op\ndef f(xp, a):\n    b = -xp.abs(a)\n    return (b + 1).partial()",
            "snippet.py:4: cupy has no ndarray.partial",
        ),
        ("def make(name):\n    return getattr(xp, name)\nmake('nonsense')", "snippet.py:3: cupy has no nonsense"),
    ],
)
def test_the_search_finds_what_cupy_would_refuse(source: str, problem: str) -> None:
    assert problem in problems_in(source)


@pytest.mark.parametrize(
    "source",
    [
        "xp.sum(a, axis=0, keepdims=True)",
        "xp.linalg.svd(a, full_matrices=False)",
        "xp.add.at(a, i, b)",
        "xp.einsum('ij,jk', a, b, c, optimize=True)",
        "xp.pad(a, 1, mode='constant', constant_values=0)",
        "numpy.nonexistent(a)",
        "@op\ndef f(xp, a):\n    return a.reshape(2, 3).astype('float32', copy=False)",
    ],
)
def test_the_search_accepts_what_cupy_accepts(source: str) -> None:
    assert problems_in(source) == []


def test_a_lookup_by_a_computed_name_is_reported() -> None:
    assert collect("def f(name):\n    return getattr(xp, name + '2')", "snippet.py").unresolved == ["snippet.py:2"]
    assert Use("exp", "snippet.py:1", 1, ()).problem(InstalledNames()) is None
