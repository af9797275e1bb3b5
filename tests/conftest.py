"""Tests that take `device` run on the CPU and on the fake GPU. Those that need PyTorch or a real GPU are skipped where it is missing, and say so."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from functools import cache

import pytest
from support import fake_device  # noqa: F401  (it makes the devices "fake" and "fake:1" known)
from support.browser import browser, open_page  # noqa: F401  (fixtures for every test)

from minigrad.errors import MissingExtraError

# As an oracle PyTorch must give the same on every machine: its AVX-512 ELU has a gradient at NaN. See also torch_oracle.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
# SciPy, and scikit-learn with it, take arrays of other libraries only if this is set before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A script that runs `pytest &` makes it deaf to Ctrl-C, and so would be all processes that the tests start to interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["cpu", "fake"])
def device(request: pytest.FixtureRequest) -> str:
    """The name of a device: the CPU's, and that of the fake device, which is as strict as CuPy."""
    return str(request.param)


@pytest.fixture
def ordinary_ops() -> Iterator[None]:
    """Fused operations are computed by their definitions, so that the rules of every op are tried and none is passed over."""
    from minigrad.kernels import use

    with use("definitions"):
        yield


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are numbered, not shown: a compressed file holds the time it was made, and every worker must collect the same names."""
    return argname if isinstance(val, bytes) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: pip install torch==2.13.0")
    if item.get_closest_marker("transformers") and importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed: pip install transformers")
    if item.get_closest_marker("graphviz") and (problem := _graphviz_problem()):
        pytest.skip(problem)
    if item.get_closest_marker("gpu") and not _gpu_is_available():
        pytest.skip("needs a CUDA card and CuPy: pip install -e '.[cuda12]'")


@cache
def _graphviz_problem() -> str:
    """Why no graph can be laid out, if so; the wheel of pygraphviz needs a library that the barest systems lack."""
    from minigrad.viz.graph.layout import lay_out

    try:
        lay_out("digraph { a }")
    except MissingExtraError as error:
        return str(error)
    return ""


def _gpu_is_available() -> bool:
    """CuPy can be imported without a card, so importing it proves nothing."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.cuda.is_available())
