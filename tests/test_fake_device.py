"""The fake device is as hard to please as CuPy: what would fail on a GPU fails on it, with or without cupy installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_array import Device, FakeArray
from support.fake_device import FakeBackend, xp

from minigrad.errors import install_hint

TESTS = Path(__file__).resolve().parent
HOST = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def a() -> Any:
    return xp.array(HOST)


@pytest.mark.parametrize(
    "use",
    [
        lambda a: np.asarray(a),
        lambda a: np.array(a),
        lambda a: np.exp(a),
        lambda a: np.sum(a),
        lambda a: np.concatenate([a, a]),
        lambda a: np.ndim(a),
        lambda a: a + HOST,
        lambda a: HOST + a,
        lambda a: HOST @ a.T,
        lambda a: a == HOST,
        lambda a: a.__iadd__(HOST),
        lambda a: a + np.array(1.0),
        lambda a: xp.add(a, HOST),
        lambda a: xp.where(a > 0, a, HOST),
        lambda a: xp.concatenate([a, HOST]),
        lambda a: xp.sum(HOST),
        lambda a: a.dot(HOST.T),
        lambda a: a[np.array([0])],
        lambda a: a[[0]],
        lambda a: a.__setitem__(0, HOST[0]),
        lambda a: xp.add.at(a, 0, HOST[0]),
        lambda a: a.take(np.array([0])),
        lambda a: memoryview(a),
        lambda a: bytes(a.data),
        lambda a: np.from_dlpack(a),
        lambda a: range(a[0, 0].astype("int64")),
    ],
)
def test_host_and_device_do_not_mix(a: Any, use: Any) -> None:
    with pytest.raises((TypeError, BufferError)):
        use(a)


@pytest.mark.parametrize(
    "use",
    [
        lambda a: xp.sum(a, where=a > 0),
        lambda a: xp.sum(a, initial=0),
        lambda a: a.max(initial=0),
        lambda a: xp.exp(a, where=a > 0),
        lambda a: a.sum(where=a > 0),
        lambda a: xp.einsum("ij->i", a, order="C"),
        lambda a: xp.concatenate([a], dim=0),
        lambda a: xp.squeeze(a, 0, 1),
        lambda a: xp.where(True, a, 0),
        lambda a: xp.clip(1.0, a, a),
        lambda a: a @ 2,
        lambda a: xp.add.at(a.astype("int64"), 0, 1),
        lambda a: float(a),
        lambda a: len(a.sum()),
    ],
)
def test_arguments_that_cupy_does_not_take_are_refused(a: Any, use: Any) -> None:
    with pytest.raises(TypeError):
        use(a)


@pytest.mark.parametrize(
    "use",
    [
        lambda a: xp.nonexistent,
        lambda a: xp.unstack,
        lambda a: xp.linalg.nonexistent,
        lambda a: a.nonexistent,
        lambda a: a.__array_interface__,
        lambda a: a.flags.writeable,
        lambda a: xp.add.nonexistent,
        lambda a: xp.random.Generator(xp.random.Philox4x3210(0)).normal,
        lambda a: xp.random.Generator(xp.random.Philox4x3210(0)).permutation,
    ],
)
def test_names_that_cupy_does_not_have_are_missing(a: Any, use: Any) -> None:
    with pytest.raises(AttributeError):
        use(a)


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a.sum(),
        lambda a: a[0, 0],
        lambda a: a[0],
        lambda a: xp.exp(1.0),
        lambda a: a * 2,
        lambda a: np.float32(2) * a,
        lambda a: a > np.float64(1),
        lambda a: -a,
        lambda a: a.T,
        lambda a: xp.linalg.slogdet(a @ a.T)[1],
        lambda a: xp.split(a, 2)[0],
        lambda a: next(iter(a)),
        lambda a: xp.full((), 3.0),
        lambda a: a.argmax(),
    ],
)
def test_results_are_device_arrays(a: Any, use: Any) -> None:
    assert type(use(a)) is FakeArray


def test_an_element_is_a_view(a: Any) -> None:
    element = a[1, 2]
    a[1, 2] = 7
    assert element.item() == 7 and element.base is a and a.T[::-1].base is a and a.copy().base is None


def test_indices_out_of_range_wrap(a: Any) -> None:
    assert a[xp.array([2, -3])].tolist() == HOST[[0, 1]].tolist()
    with pytest.raises(IndexError):
        a[2]
    with pytest.raises(IndexError, match="boolean"):
        a[xp.array([True, False]), xp.array([True, False, True])]


def test_a_place_written_twice_does_not_keep_the_last_value(a: Any) -> None:
    a[xp.array([0, 0])] = xp.array([[1.0] * 3, [2.0] * 3])
    assert a[0].tolist() == [1, 1, 1]


def test_stretched_arrays_can_be_written_as_cupy_lets_them() -> None:
    wide = xp.broadcast_to(xp.zeros(1), (3,))
    wide[0] = 1
    assert wide.tolist() == [1, 1, 1]


def test_only_arrays_of_the_current_device_can_be_computed_with(a: Any) -> None:
    with Device(1):
        b = a.copy()
        assert b.device.id == 1 and (b + 1).device.id == 1 and a[0].device.id == 0
        with pytest.raises(ValueError, match="current device"):
            a + 1
    with pytest.raises(ValueError, match="current device"):
        a + b


def test_linear_algebra_is_silent_about_singular_matrices_unless_told_otherwise() -> None:
    singular = xp.zeros((2, 2))
    assert type(xp.linalg.inv(singular)) is FakeArray
    with FakeBackend(xp, FakeArray).strict(), pytest.raises(np.linalg.LinAlgError):
        xp.linalg.inv(singular)
    with pytest.raises(ValueError, match="shape"):
        xp.linalg.solve(xp.eye(2), xp.ones((3, 2, 1)))


def test_without_cupy_the_frozen_names_serve() -> None:
    program = (
        "import minigrad as mg\n"
        "from support import cupy_names, fake_device\n"
        "assert not cupy_names.CUPY_IS_INSTALLED\n"
        "x = mg.randn(3, 3, device='fake', requires_grad=True)\n"
        "(mg.nn.functional.softmax(x @ x.T)[[0, 0, 2]].sum() + mg.slogdet(x)[1]).backward()\n"
        "print(x.grad.device, hasattr(fake_device.xp, 'unstack'), hasattr(x.data, 'partial'))\n"
    )
    assert without_cupy(program) == "fake False False\n"


def without_cupy(program: str, code: int = 0) -> str:
    """What a program prints where CuPy is not installed."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['cupy'] = None\n{program}"],
        cwd=TESTS, env={**os.environ, "PYTHONPATH": str(TESTS.parent)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("forward", "name"), [("xp.radians(a)", "radians"), ("xp.linalg.tensorinv(a)", "linalg.tensorinv"), ("a.partial()", "ndarray.partial")]
)  # fmt: skip
def test_an_op_with_a_function_that_the_frozen_list_lacks_is_told_how_to_refresh_it(forward: str, name: str) -> None:
    program = (
        "import minigrad as mg\n"
        "from support import fake_device\n"
        f"@mg.op\ndef forward(xp, a): return {forward}\n"
        "try:\n"
        "    forward(mg.ones(3, 3, device='fake'))\n"
        "except mg.MinigradError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    told = without_cupy(program)
    assert told.startswith(f"MissingName the fake device does not know {name!r}: its list of CuPy's names lacks it\n")
    assert "tests/support/cupy_names.json" in told and f"cupy.{name}\n" in told
    assert "python -m tests.support.cupy_names" in told and "[test-cuda]" in told


def test_refreshing_the_list_without_cupy_says_what_to_install() -> None:
    program = "import runpy; runpy.run_module('tests.support.cupy_names', run_name='__main__')"
    told = without_cupy(program, code=1)
    assert "CuPy, which is not installed" in told and install_hint("test-cuda") in told and "Traceback" not in told
