"""Arrays of other libraries beside Tensors: taken, with their dtype, or refused by name."""

from __future__ import annotations

import importlib
import operator
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DeviceError, DtypeError, GradientError


class Foreign:
    """An array that shows itself by NumPy's protocol alone."""

    dtype = "their own"

    def __init__(self, values: Any, device: int = 1):
        self.values, self.place = np.asarray(values), device

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place, 0


def test_an_array_with_numpys_protocol_is_an_operand_and_keeps_its_dtype() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * Foreign(np.array([3.0, 4.0]))
    assert y.tolist() == [3.0, 8.0] and y.dtype == np.float64
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 4.0]
    assert mg.tensor(Foreign(np.array([1.0]))).dtype == np.float64
    assert mg.exp(Foreign(np.zeros(2, np.float32))).tolist() == [1.0, 1.0]
    assert (x == Foreign([1.0, 3.0])).tolist() == [True, False]


def test_an_array_on_another_device_is_refused_by_name() -> None:
    with pytest.raises(
        DeviceError, match=r"add: an array of another library is not on the CPU[\s\S]*Foreign[\s\S]*from_dlpack"
    ):
        mg.ones(2) + Foreign([1.0, 2.0], device=2)


def test_what_is_no_array_is_refused_by_name_and_equal_to_nothing() -> None:
    with pytest.raises(DtypeError, match=r"add: an operand is not a number or an array[\s\S]*object"):
        mg.ones(2) + object()
    assert (mg.ones(2) == "text") is False


@pytest.mark.parametrize("dtype", ["bfloat16", type("dtype", (), {"__repr__": lambda self: "torch.bfloat16"})()])
def test_bfloat16_is_called_by_its_name(dtype: Any) -> None:
    with pytest.raises(
        DtypeError, match=r"bfloat16 cannot be stored in a Tensor[\s\S]*float32 holds every bfloat16 exactly"
    ):
        mg.ones(2).astype(dtype)


def test_a_file_in_bfloat16_is_read_as_float32(tmp_path: Any) -> None:
    import json
    import struct

    header = json.dumps(
        {
            "w": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]},
            "n": {"dtype": "I64", "shape": [1], "data_offsets": [4, 12]},
        }
    ).encode()
    numbers = np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16
    content = struct.pack("<Q", len(header)) + header + numbers.astype("<u2").tobytes() + struct.pack("<q", 7)
    (tmp_path / "half.safetensors").write_bytes(content)
    loaded = mg.load(tmp_path / "half.safetensors")
    assert loaded["w"].dtype == np.float32 and loaded["w"].tolist() == [[1.5], [-2.0]] and loaded["n"].tolist() == [7]


def test_ufuncs_of_scipy_are_differentiated_where_there_is_an_op_and_computed_where_there_is_none() -> None:
    pytest.importorskip("scipy.special", reason="SciPy is not installed")
    special = importlib.import_module(
        "scipy.special._ufuncs"
    )  # SCIPY_ARRAY_API puts other functions into scipy.special
    x = mg.tensor([0.3, -1.2], dtype="float64", requires_grad=True)
    for name in ("erf", "erfc", "expit", "gammaln", "psi", "log_expit"):
        y = getattr(special, name)(abs(x))
        np.testing.assert_allclose(y.numpy(), getattr(special, name)(abs(x.numpy())), rtol=1e-12)
        assert y.requires_grad
    np.testing.assert_array_equal(special.j0(x.detach()), special.j0(x.numpy()))
    with pytest.raises(GradientError, match="j0, which has no counterpart in minigrad"):
        special.j0(x)


def test_who_gives_scipy_a_tensor_without_its_switch_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)
    with pytest.raises(GradientError, match="SCIPY_ARRAY_API=1 is set before it is imported"):
        np.asarray(mg.ones(2, requires_grad=True))


def test_a_tensor_without_axes_is_a_complex_number() -> None:
    assert complex(mg.tensor(2.0)) == 2 + 0j and complex(mg.tensor(1 + 2j)) == 1 + 2j


@pytest.mark.torch
def test_tensors_of_pytorch_are_operands_on_either_side() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ours, theirs = mg.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    for compute in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.eq):
        for left, right in ((ours, theirs), (theirs, ours)):
            made = compute(left, right)
            assert isinstance(made, mg.Tensor)
            np.testing.assert_allclose(made.numpy(), compute(np.asarray(left), np.asarray(right)))
    assert (torch.ones(2, 2) @ ours).tolist() == [3.0, 3.0]
    with pytest.raises(GradientError, match="cut the graph of another library"):
        ours + theirs.requires_grad_()
    for take in (mg.tensor, mg.from_dlpack, lambda x: ours + x):
        with pytest.raises(DtypeError, match="bfloat16 cannot be stored"):
            take(torch.ones(2, dtype=torch.bfloat16))
