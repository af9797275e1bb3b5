"""Every op, on every sample, gives on the fake device what it gives on the CPU: values in every dtype, first and second derivatives.

The device is the second one, so that whatever is not done on the device of its arrays, but on the current one, fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.fake_array import FakeArray
from support.samples import SAMPLES, Sample

import minigrad as mg
from minigrad.engine.op import OPS
from minigrad.ops.composite import COMPOSITES

pytestmark = pytest.mark.usefixtures("ordinary_ops")
ELSEWHERE = {"to_device"}  # its samples move to the CPU; test_device.py tries every way
TOLERANCE = {"as given": 1e-12, "float64": 1e-12, "float32": 1e-6, "float16": 1e-3}
CASES = [
    pytest.param(name, sample, id=f"{name}-{i}-{sample.label}")
    for name, samples in SAMPLES.items()
    if name not in ELSEWHERE
    for i, sample in enumerate(samples)
]


def evaluate(name: str, sample: Sample, dtype: str, device: str) -> list[mg.Tensor]:
    """The outputs of the op and, except in narrow dtypes, the first and second derivatives of a weighted sum of them."""
    wanted = None if dtype == "as given" else dtype
    leaves = [mg.tensor(leaf, wanted, device, requires_grad=True) for leaf in sample.leaves]
    result = sample.call(OPS.get(name) or COMPOSITES[name], leaves, lambda array: mg.tensor(array, device=device))
    outputs = [out for out in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(out, mg.Tensor)]
    found = list(outputs)
    for _ in range(2):
        outputs = [out for out in outputs if out.requires_grad]
        if dtype in ("float32", "float16") or not sample.gradient or not outputs:
            break
        gradients = mg.autograd.grad(weighted_sum(outputs), leaves, create_graph=True, allow_unused=True)
        outputs = [g for g in gradients if g is not None]
        found += outputs
    return found


def weighted_sum(tensors: list[mg.Tensor]) -> Any:
    """A number that depends on every element, and on each in another way."""
    random = np.random.default_rng(0)
    return sum(
        (t * mg.tensor(random.uniform(0.5, 1.5, t.shape), dtype=t.dtype, device=t.device)).sum() for t in tensors
    )


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_op_on_the_device_agrees_with_the_cpu(name: str, sample: Sample) -> None:
    for dtype in sample.dtypes:
        tolerance = TOLERANCE[dtype] * sample.tolerance
        with np.errstate(all="ignore"):
            expected, got = (evaluate(name, sample, dtype, device) for device in ("cpu", "fake:1"))
        assert len(got) == len(expected) > 0
        for ours, theirs in zip(got, expected):
            assert type(ours.data) is FakeArray and ours.device == "fake:1"
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), tolerance, tolerance, err_msg=dtype)
