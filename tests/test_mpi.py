"""Processes that train one model together do what one process does. Real ranks, started by mpiexec."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import rank_training

from minigrad.errors import install_hint
from minigrad.runtime.process_group import LAUNCHERS, ProcessGroup
from minigrad.runtime.threads import available_cores
from minigrad.train import find_checkpoint, read_checkpoint
from minigrad.train.data_parallel import Shard, shard_of_rank, thread_shards

HERE = Path(__file__).resolve().parent
PROGRAM = [sys.executable, "-m", rank_training.__name__]
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
ALIKE = {
    "mlp": {"model": "mlp"},
    "translator": {"model": "translator"},
    "few_rows": {"model": "few"},
    "unused_weights": {"model": "unused"},
    "accumulated": {"model": "mlp", "accumulate": 3},
    "translator_accumulated": {"model": "translator", "accumulate": 2},
    "translator_on_threads": {"model": "translator", "threads": 2},
    "unlike_at_first": {"model": "mlp", "unlike": True},
    "compiled": {"model": "mlp", "compile": "on"},
}
OTHERS = {
    "stopped": {"model": "mlp", "how": "stop"},
    "interrupted": {"model": "mlp", "how": "interrupt"},
    "out_of_time": {"model": "mlp", "max_minutes": 1e-9},
    "mixed": {"model": "mlp", "mixed": True},
    "sums_cpu": {"device": "cpu"},
    "sums_fake": {"device": "fake"},
}
with_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py and mpiexec are not installed: pip install -e '.[mpi]'",
)


def surroundings(**changes):
    without = ("MINIGRAD_THREADS", *(name for pair in LAUNCHERS for name in pair))
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **changes}


def launch(count, folder, jobs, **changes):
    """Run the jobs on so many ranks; a job that does not end in time is an error."""
    folder.mkdir(exist_ok=True)
    command = [MPIEXEC, "-n", str(count), *PROGRAM, str(folder), json.dumps(jobs)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=HERE, env=surroundings(**changes))


def told(folder, name, rank=0):
    return json.loads((folder / f"{name}-{rank}.json").read_text())


def assert_same_training(one, other, tolerance=1e-9):
    np.testing.assert_allclose(one["losses"], other["losses"], rtol=0, atol=tolerance)
    np.testing.assert_allclose(one["best"], other["best"], rtol=0, atol=tolerance)
    assert one["weights"].keys() == other["weights"].keys()
    for name, weight in one["weights"].items():
        np.testing.assert_allclose(weight, other["weights"][name], rtol=0, atol=tolerance, err_msg=name)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process makes of a job, each computed once."""
    folder, known = tmp_path_factory.mktemp("alone"), {}

    def train(name):
        if name not in known:
            job = {key: value for key, value in {**ALIKE, **OTHERS}[name].items() if key != "threads"}
            known[name] = rank_training.train(folder, name, **job)
        return known[name]

    return train


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The folder in which so many ranks did all jobs, and what they printed."""
    known = {}

    def launched(count):
        if count not in known:
            folder = tmp_path_factory.mktemp(f"ranks-{count}")
            done = launch(count, folder, ALIKE | OTHERS if count == 4 else ALIKE)
            assert done.returncode == 0, done.stderr
            known[count] = folder, done
        return known[count]

    return launched


@with_mpi
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("name", ALIKE)
def test_ranks_train_as_one_process_does(alone, together, name, count):
    folder, _ = together(count)
    assert len(alone(name)["losses"]) == 12
    for rank in range(count):
        assert_same_training(told(folder, name, rank), alone(name))


@with_mpi
@pytest.mark.parametrize("name", [*ALIKE, "mixed"])
def test_the_weights_of_all_ranks_have_the_same_bits(together, name):
    folder, _ = together(4)
    assert all(told(folder, name, rank)["weights"] == told(folder, name)["weights"] for rank in range(1, 4))


@with_mpi
def test_a_compiled_loss_trains_ranks_as_the_loss_itself_does(alone, together):
    folder, _ = together(2)
    for rank in range(2):
        assert_same_training(told(folder, "compiled", rank), alone("mlp"))


def test_the_examples_are_as_hard_as_they_claim(alone):
    """Dropout matters, one weight is used now and then, one never."""
    weights = alone("unused_weights")["weights"]
    assert weights["never"] == [1.0] and weights["sometimes"] != [1.0]
    assert alone("mlp")["losses"] != alone("accumulated")["losses"]
    rows = [len(batch[0]) for batch in rank_training.MODELS["few"]()[2]]
    assert min(rows) == 1 and 3 in rows and max(rows) > 4


@with_mpi
def test_half_precision_learns_on_ranks_as_alone(alone, together):
    """Sums in float16 round otherwise in another order, by up to 1e-3, and each further step makes more of it."""
    folder, _ = together(4)
    losses, expected = told(folder, "mixed")["losses"], alone("mixed")["losses"]
    np.testing.assert_allclose(losses[:6], expected[:6], atol=1e-3)
    assert min(losses[6:]) < 0.7 * losses[0] and min(expected[6:]) < 0.7 * expected[0]


@with_mpi
def test_only_the_first_rank_writes_and_prints(together):
    folder, done = together(4)
    assert "saved by rank 0" in done.stdout
    assert not any(f"saved by rank {rank}" in done.stdout for rank in (1, 2, 3))
    assert done.stdout.count("stopped at step 12 (max_steps)") == len(ALIKE) + 1
    lines = (folder / "mlp" / "metrics.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["step", *map(str, range(1, 13))]
    assert read_checkpoint(find_checkpoint(folder / "mlp")).state["step"] == 12
    assert len(list((folder / "mlp" / "samples").iterdir())) == 3


@with_mpi
@pytest.mark.parametrize(
    ("name", "step", "reason"),
    [("stopped", 6, "rank 1 has seen enough"), ("interrupted", 6, "interrupted"), ("out_of_time", 0, "max_minutes")],
)
def test_what_makes_one_rank_stop_stops_all_after_the_same_step(together, name, step, reason):
    folder, _ = together(4)
    assert [(told(folder, name, rank)["step"], told(folder, name, rank)["reason"]) for rank in range(4)] == [
        (step, reason)
    ] * 4
    assert read_checkpoint(find_checkpoint(folder / name)).state["step"] == step


@with_mpi
def test_ranks_on_one_machine_share_its_cores(together):
    for count in (1, 2, 4):
        folder, _ = together(count)
        assert told(folder, "mlp")["cores"] == max(len(available_cores()) // count, 1)


@with_mpi
@pytest.mark.parametrize("device", ["cpu", "fake", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_arrays_of_every_kind_are_added_up(together, tmp_path, device):
    name = f"sums_{device}"
    folder = tmp_path if device == "cuda" else together(4)[0]
    if device == "cuda":
        assert launch(4, folder, {name: {"device": device}}).returncode == 0
    mine = [[10.0, 20.0], [30.0, 40.0]]
    for rank in range(4):
        result = told(folder, name, rank)
        assert result["sums"] == [mine, mine, mine, 10.0, []]
        assert result["dtypes"] == ["float16", "float32", "float64", "float64", "float64"]
        assert result["gathered"] == ["é" * 400 * other for other in range(4)]
        assert result["first"]["rank"] == 0 and np.isnan(result["first"]["nan"])
        assert result["copied"] == [[False] * 3, [0] * 3]


@with_mpi
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "ZeroDivisionError: on purpose"),
        ("leave", "SystemExit: 3"),
        ("early", "ZeroDivisionError: on purpose"),
    ],
)
def test_an_error_on_one_rank_ends_the_job_with_its_message(tmp_path, how, message):
    done = launch(4, tmp_path, {"job": {"model": "mlp", "how": how}})
    assert done.returncode != 0
    assert done.stderr.count("rank 1 of 4 failed, which ends the job") == 1 and message in done.stderr
    assert "rank 0 of 4" not in done.stderr
    if how != "early":
        assert read_checkpoint(find_checkpoint(tmp_path / "job")).state["step"] == 5


@with_mpi
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_run_whose_rank_was_killed_goes_on_under_any_number_of_ranks(alone, tmp_path):
    assert launch(4, tmp_path, {"job": {"model": "translator", "how": "die"}}).returncode != 0
    assert not (tmp_path / "job-0.json").exists()
    shutil.copytree(tmp_path / "job", tmp_path / "2" / "job")
    shutil.copytree(tmp_path / "job", tmp_path / "4" / "job")
    whole = alone("translator")
    for count in (2, 4):
        done = launch(count, tmp_path / str(count), {"job": {"model": "translator", "again": True}})
        assert done.stdout.count("going on from step 5") == 1
        assert ("ranks was 4, is 2" in done.stdout) == (count == 2)
        assert_same_training(told(tmp_path / str(count), "job"), {**whole, "losses": whole["losses"][5:]})


@with_mpi
@pytest.mark.parametrize(
    ("job", "messages"),
    [
        ({"model": "coupled"}, ["BatchNorm1d '1' needs whole batches, and 2 ranks would divide them", "LayerNorm"]),
        ({"model": "mlp", "other_data": True}, ["rank 1 would not train the same as rank 0", "other data"]),
        (
            {"model": "mlp", "other_config": True},
            ["rank 1 would not train the same", "expected: config.depth 2\n", "got:      config.depth 3\n"],
        ),
        ({"model": "mlp", "other_version": True}, ["rank 1 would not train the same", "version of minigrad '9.9'"]),
        ({"model": "broken", "valid_every": None}, ["step 3: the loss or its gradient is not finite", "linear"]),
    ],
    ids=["batch norm", "other data", "other config", "other version", "not finite"],
)
def test_what_cannot_be_trained_on_ranks_is_refused(tmp_path, job, messages):
    done = launch(2, tmp_path, {"job": job})
    assert done.returncode != 0
    assert all(message in done.stderr for message in messages), done.stderr


@with_mpi
def test_a_directory_that_holds_a_run_is_refused_by_every_rank(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "metrics.csv").write_text("step\n1\n")
    done = launch(2, tmp_path, {"job": {"model": "mlp"}})
    assert done.returncode != 0 and "already holds a run" in done.stderr
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["metrics.csv"]


@pytest.mark.parametrize(
    ("module", "launcher", "reason"),
    [
        ("raise ImportError('No module named mpi4py')", "PMI", "mpi4py cannot be used"),
        ("raise RuntimeError('cannot load MPI library')", "OMPI_COMM_WORLD", "cannot load MPI library"),
        ("class COMM_WORLD: size = 1", "PMI", "mpi4py uses another MPI than the mpiexec that started them"),
    ],
    ids=["no mpi4py", "no MPI library", "another MPI"],
)
def test_without_a_usable_mpi_the_first_process_trains_alone_and_says_so(alone, tmp_path, module, launcher, reason):
    stand_in = tmp_path / "stand_in" / "mpi4py"
    stand_in.mkdir(parents=True)
    (stand_in / "__init__.py").touch()
    (stand_in / "MPI.py").write_text(module)
    path = os.pathsep.join([str(stand_in.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [*PROGRAM, str(tmp_path), json.dumps({"job": {"model": "mlp"}})]
    started = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=HERE,
            env=surroundings(**{f"{launcher}_RANK": str(rank), f"{launcher}_SIZE": "2", "PYTHONPATH": path}),
        )
        for rank in range(2)
    ]
    (_, warned), other = (process.communicate(timeout=60) for process in started)
    assert [process.returncode for process in started] == [0, 0], warned
    assert other == ("", "")
    assert warned.count("RuntimeWarning: 2 processes were started, but ") == 1
    assert reason in warned and install_hint("mpi") in warned
    assert_same_training(told(tmp_path, "job"), alone("mlp"))
    assert not (tmp_path / "job-1.json").exists()


def of(rank, size):
    group = ProcessGroup()
    group.rank, group.size = rank, size
    return group


def test_each_row_is_computed_by_one_rank_and_the_rest_counts_for_nothing():
    batch = {"x": np.arange(3), "y": np.arange(3) * 10}
    shares = [shard_of_rank(batch, of(rank, 5)) for rank in range(5)]
    assert [(share.first, share.rows, share.counts) for share in shares[:3]] == [(i, 1, True) for i in range(3)]
    assert [share.batch["y"].tolist() for share in shares[:3]] == [[0], [10], [20]]
    assert [(share.counts, share.batch["x"].tolist()) for share in shares[3:]] == [(False, [0])] * 2


def test_a_batch_without_rows_to_divide_is_counted_once():
    with pytest.warns(RuntimeWarning, match="computed by every rank"):
        shares = [shard_of_rank({"x": np.arange(3), "y": np.arange(2)}, of(rank, 3)) for rank in range(3)]
    assert [share.counts for share in shares] == [True, False, False]


def test_threads_of_a_rank_know_where_in_the_whole_batch_their_rows_are():
    model, loss, _ = rank_training.MODELS["mlp"]()
    share = Shard((np.zeros((5, 4)), np.zeros((5, 1))), 10, 5)
    assert [(part.first, part.rows) for part in thread_shards(model, loss, share, 2)] == [(10, 2), (12, 3)]
