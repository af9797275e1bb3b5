"""A run that 0.1.0 wrote is read and resumed: tests/support/run_of_0.1.0 holds one of xor, stopped at step 100.

Beside it is `resumed.safetensors`, the checkpoint that 0.1.0 itself wrote at step 200. On one machine the two are equal to
the bit; a processor with other vector instructions rounds otherwise, so here weights may differ in the last digits.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from minigrad import zoo
from minigrad.cli import main
from minigrad.train import find_checkpoint, read_checkpoint

OLD = Path(__file__).parent / "support" / "run_of_0.1.0"
ROUNDING = {"rtol": 1e-5, "atol": 1e-7}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD, folder, ignore=shutil.ignore_patterns("resumed.safetensors"))
    return folder


def test_a_run_of_the_first_version_is_resumed_as_that_version_did(run):
    assert main(["resume", str(run), "--max-steps", "200", "--no-report"]) == 0
    here, there = read_checkpoint(find_checkpoint(run, "latest")), read_checkpoint(OLD / "resumed.safetensors")
    for group in here.state["optimizer"]["groups"]:  # options that came later
        assert (group.pop("maximize"), group.pop("decoupled_weight_decay")) == (False, True)
    for part in ("step", "optimizer", "schedule", "data", "best_step"):
        assert here.state[part] == there.state[part], part
    assert here.tensors.keys() == there.tensors.keys()
    for name, value in there.tensors.items():
        if np.issubdtype(value.dtype, np.floating):
            np.testing.assert_allclose(here.tensors[name], value, **ROUNDING, err_msg=name)
        else:
            np.testing.assert_array_equal(here.tensors[name], value, err_msg=name)


def test_a_run_of_the_first_version_is_loaded_evaluated_and_asked(run, capsys):
    loaded = zoo.load(run)
    assert (loaded.step, loaded.arguments["package"]) == (100, "minigrad 0.1.0")
    assert main(["eval", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == 1 and found["loss"] == pytest.approx(0.0018763289554044604, rel=1e-4)
    assert main(["predict", str(run), "1 0", "--json"]) == 0
