"""The helpers in tests/support can be imported on any machine, as the README's test command does to look for doctests.

Those that stand in for a card refuse what a card would choke on.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.cuda_on_cpu import GPP, LoopsOnCpu, build
from support.nvrtc import compile_by_nvrtc, needs_nvrtc

from minigrad.compile.cuda import PRELUDE

needs_gpp = pytest.mark.skipif(GPP is None, reason="g++ is not installed: apt install g++")
TESTS = Path(__file__).resolve().parent
WITHOUT_TORCH = """
import importlib, pkgutil, sys
import pytest

sys.modules["torch"] = None  # as if it were not installed
import support

for module in pkgutil.walk_packages(support.__path__, "support."):
    try:
        importlib.import_module(module.name)
    except pytest.skip.Exception as reason:
        print(f"{module.name}: {reason}")
"""


def test_every_helper_can_be_imported_without_pytorch_or_skips_with_the_reason():
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], cwd=TESTS, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    skipped = dict(line.split(": ", 1) for line in found.stdout.splitlines())
    assert {"support.torch_oracle", "support.programs", "support.program_generator"} <= skipped.keys()
    assert all("is not installed" in reason for reason in skipped.values())


SOURCE = """extern "C" __global__ void loop(const f4* x, f4* out, i8 n) {
    for (i8 j = threadIdx.x; j < n; j += blockDim.x) out[j] = m::exp(x[j]);
}"""


@needs_nvrtc
@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [("m::exp(", "m::exq(", 'has no member "exq"'), ("(x[j]);", "(x[j])", 'expected a ";"')],
)
def test_nvrtc_refuses_a_source_with_a_mistake(right, wrong, complaint):
    with pytest.raises(SyntaxError, match=re.escape(complaint)):
        compile_by_nvrtc(PRELUDE + SOURCE.replace(right, wrong), "compute_75")


@needs_gpp
def test_gpp_refuses_a_source_with_a_mistake(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(PRELUDE + SOURCE.replace("m::exp(", "m::exq("), tmp_path)
    assert "exq" in caught.value.stderr


@needs_gpp
@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones(3, "f"), np.ones(3, "f")),
        (np.ones(3, "f"), np.ones(3), np.int64(3)),
        (np.ones(3, "f"), np.ones(6, "f")[::2], np.int64(3)),
        (np.ones(3, "f"), np.ones(3, "f"), 3),
    ],
    ids=["too few", "dtype", "gaps", "number"],
)
def test_a_call_that_would_read_wrong_memory_on_a_card_is_refused(arguments, tmp_path):
    with pytest.raises(AssertionError, match="loop"):
        LoopsOnCpu(tmp_path)(PRELUDE + SOURCE)((1,), (32,), arguments)
