"""The helpers in tests/support can be imported on any machine, as the README's test command does to look for doctests."""

import subprocess
import sys
from pathlib import Path

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
    skipped = dict(line.split(": ") for line in found.stdout.splitlines())
    assert {"support.torch_oracle", "support.programs", "support.program_generator"} <= skipped.keys()
    assert all(reason.startswith("PyTorch") and reason.endswith("is not installed") for reason in skipped.values())
