"""Ranks that divide a model train it as one process does. Real ranks, started by mpiexec, once for all that they do."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support import parallel_ranks
from support.parallel_ranks import COUNTED, FAMILIES, LAYOUTS, WITH_EXPERTS, trained

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import ArgumentError
from minigrad.parallel import Layout, Mesh
from minigrad.parallel.partition_spec import PartitionSpec
from minigrad.parallel.pipeline import balanced, schedule
from minigrad.parallel.placement import placements
from minigrad.parallel.settings import fitting, layout_from
from minigrad.parallel.sharded import check_elementwise
from minigrad.random import part_of_draws, shard_of_step
from minigrad.runtime.process_group import LAUNCHERS, ProcessGroup

HERE = Path(__file__).resolve().parent
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
with_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py and mpiexec are not installed: pip install -e '.[mpi]'",
)


def launch(count, *command, **changes):
    without = ("MINIGRAD_THREADS", *(name for pair in LAUNCHERS for name in pair))
    kept = {name: value for name, value in os.environ.items() if name not in without}
    env = {**kept, "OPENBLAS_NUM_THREADS": "1", "MINIGRAD_TIMEOUT": "30", **changes}
    return subprocess.run(
        [MPIEXEC, "-n", str(count), sys.executable, *map(str, command)],
        capture_output=True, text=True, timeout=200, cwd=HERE, env=env,
    )  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What three and four ranks did."""
    found = {"runs": {}}
    for count in (3, 4):
        folder = tmp_path_factory.mktemp("ranks")
        done = launch(count, "-m", parallel_ranks.__name__, folder)
        assert done.returncode == 0, done.stderr
        one = json.loads((folder / f"told-{count}.json").read_text())
        found = {**found, **one, "runs": {**one["runs"], **found["runs"]}}
    return found


@pytest.fixture(scope="module")
def alone():
    """What one process makes of each model, computed once."""
    known = {}

    def train(name, **options):
        if name not in known:
            known[name] = trained(name, **options)
        return known[name]

    return train


def assert_same(weights, expected):
    assert weights.keys() == expected.keys()
    for name, weight in weights.items():
        np.testing.assert_allclose(weight, expected[name], rtol=0, atol=1e-10, err_msg=name)


@with_mpi
@pytest.mark.parametrize(("name", "layout"), LAYOUTS, ids=lambda value: str(value))
def test_a_divided_model_trains_as_a_whole_one(told, alone, name, layout):
    seen, weights = told["runs"][f"{name} {layout}"]
    losses, expected, _ = alone(name)
    np.testing.assert_allclose(seen, losses, rtol=0, atol=1e-10)
    assert_same(weights, expected)


@with_mpi
def test_a_divided_model_trains_on_a_device_that_is_as_strict_as_cupy(told, alone):
    seen, weights = told["device"]
    losses, expected, _ = alone("bert")
    np.testing.assert_allclose(seen, losses, rtol=0, atol=1e-10)
    assert_same(weights, expected)


@with_mpi
@pytest.mark.parametrize("number", range(len(WITH_EXPERTS)), ids=[str(layout) for layout in WITH_EXPERTS])
def test_experts_are_held_and_their_positions_sent_as_the_formulas_say(told, number):
    """What a rank sends back depends on what it was given: of all-to-all, the formula holds for a tensor group as a whole."""
    ranks, tensor = told["experts"][number], WITH_EXPERTS[number]["tensor"]
    for start in range(0, 4, tensor):
        group = ranks[start : start + tensor]
        sent = [one["step"]["tensor"].pop("all_to_all") for one in group]
        assert sum(sent) == sum(one["expected"]["traffic"]["tensor"].pop("all_to_all") for one in group) > 0
    for one in ranks:
        assert (one["step"], one["held"]) == (one["expected"]["traffic"], one["expected"]["memory"])


@with_mpi
def test_the_gradient_of_each_collective_is_its_adjoint(told):
    assert told["adjoints"].keys() >= {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"}
    assert max(told["adjoints"].values()) < 1e-12


@with_mpi
def test_collectives_by_nccl_give_what_those_over_the_host_give(told):
    calls = {"allGather", "allReduce", "broadcast", "recv", "reduce", "reduceScatter", "send"}
    for rank in told["cards"]:
        assert rank["nccl"] == rank["host"] and set(rank["calls"]) == calls
    first = told["cards"][0]["nccl"]
    assert first["all_gather float32 [3, 0, 1, 2]"] == [0, 1, 2, 20, 30, 31]
    assert first["reduce_scatter float64 [2, 2, 2, 2]"] == [0, 10] and first["all_reduce float32 [3, 0, 1, 2]"][1] == 10


@with_mpi
@pytest.mark.parametrize("number", range(len(COUNTED)), ids=[str(layout) for layout in COUNTED])
def test_bytes_and_memory_are_those_of_the_cost_model(told, number):
    for rank in told["counted"][number]:
        assert rank["step"] == rank["expected"]["traffic"], rank["layout"]
        assert rank["held"] == rank["expected"]["memory"], rank["layout"]


@with_mpi
def test_sharding_everything_leaves_each_rank_its_share(told):
    of_shards = told["counted"][COUNTED.index({"shard": 3})]
    for rank in of_shards:
        assert sum(rank["held"].values()) <= 1.15 / 4 * 3 * rank["whole"]


@with_mpi
def test_a_run_goes_on_in_another_layout(told):
    assert_same(told["resumed"], trained("gpt", seed=5)[1])


@with_mpi
def test_a_rank_that_never_starts_ends_the_job_with_a_message():
    program = (
        "import os, sys\nif os.environ.get('PMI_RANK') == '1': sys.exit(3)\n"
        "from minigrad.runtime import process_group\nprocess_group()"
    )
    done = launch(2, "-c", program, MINIGRAD_TIMEOUT="3")
    assert done.returncode != 0
    assert "rank 0 of 2 waited 3 seconds for the other ranks to start, in vain" in done.stderr
    assert "MINIGRAD_TIMEOUT" in done.stderr


@with_mpi
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("from minigrad.train import Trainer\nif rank == 1: raise ImportError('no such plugin')", "no such plugin"),
        (
            "from minigrad.cli import main\n"
            "main(['train', 'gpt', '--out', sys.argv[1], *(['--data', 'nowhere.txt'] if rank else [])])",
            "nowhere.txt",
        ),
    ],
    ids=["an import", "data that are not there"],
)
def test_a_rank_that_fails_before_training_ends_the_job_at_once(tmp_path, program, message):
    begin = time.monotonic()
    start = "import os, sys\nrank = int(os.environ['PMI_RANK'])\n"
    done = launch(
        2, "-c", f"{start}{program}\nfrom minigrad.runtime import process_group\nprocess_group()", tmp_path / "a"
    )
    assert done.returncode != 0 and time.monotonic() - begin < 25  # it would wait for 30
    assert done.stderr.count("rank 1 of 2 failed, which ends the job") == 1 and message in done.stderr


@with_mpi
def test_ranks_of_which_only_some_divide_the_model_are_refused():
    program = (
        "import numpy as np\nfrom minigrad import nn, optim\nfrom minigrad.parallel import Layout\n"
        "from minigrad.runtime import process_group\nfrom minigrad.train import Trainer\n"
        "layout = Layout(tensor=2) if process_group().rank else None\nmodel = nn.Linear(2, 2)\n"
        "adam = optim.Adam(model.parameters())\n"
        "Trainer(model, lambda m, b: m(b).sum(), [np.ones((2, 2))], adam, max_steps=1, parallel=layout)"
    )
    done = launch(2, "-c", program)
    assert done.returncode != 0 and "rank 1 has another layout than rank 0" in done.stderr


class Ranks(ProcessGroup):
    """Some ranks of which only one is here, and the others give the same."""

    def __init__(self, size, others=None):
        super().__init__()
        self.size, self.others = size, others

    def all_gather(self, value):
        return [value, *[value if self.others is None else self.others] * (self.size - 1)]


def test_a_wrong_factorisation_says_what_would_fit():
    with pytest.raises(ArgumentError, match="tensor=3 x pipeline=1 does not divide the ranks") as caught:
        Mesh(Layout(tensor=3), Ranks(4))
    assert "a multiple of 3 ranks" in str(caught.value) and "-n 3" in str(caught.value)


def test_ranks_that_disagree_are_refused():
    with pytest.raises(ArgumentError, match="rank 1 has another layout than rank 0") as caught:
        Mesh(Layout(tensor=2), Ranks(2, others={**vars(Layout()), "pipeline": 2}))
    assert "tensor 1, pipeline 2" in str(caught.value)


def test_an_optimiser_of_whole_matrices_is_refused():
    model = nn.Linear(4, 4, bias=False)
    with pytest.raises(ArgumentError, match="Muon changes a matrix as a whole"):
        check_elementwise(optim.Muon(model.parameters()), "tensor=2")


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("adapters", "in_proj_weight: this weight cannot be sharded over tensor-parallel ranks"),
        ("multi-query", "its key-value heads do not divide among 2 tensor-parallel ranks"),
        ("normalised", "up.weight: this weight cannot be sharded"),
    ],
)
def test_what_tensor_parallel_ranks_cannot_shard_is_refused(family, message):
    _, sizes = FAMILIES["adapters" if family == "adapters" else "llama"]
    block = {"block": {"kv_heads": 1}} if family == "multi-query" else {}
    model = mg.zoo.create("gpt", **{**sizes, "vocab": 300, "tokenizer": "bpe", **block})
    if family == "normalised":
        nn.utils.weight_norm(model.encoder.blocks[0].mlp.up)
    with pytest.raises(ArgumentError, match=message):
        placements(model, Mesh.imagined(Layout(tensor=2), 2, 0), (2,), {})


def test_places_go_through_tensors_first():
    mesh = Mesh.__new__(Mesh)
    mesh.layout = Layout(tensor=2, pipeline=3)
    assert [mesh.place(rank) for rank in (0, 1, 2, 5, 6)] == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 2, 1), (1, 0, 0)]


def test_stages_are_balanced_by_cost():
    assert balanced([1.0] * 7, 3) in {(3, 2, 2), (2, 3, 2), (2, 2, 3)}
    assert balanced([4, 1, 1, 1, 1], 2) == (1, 4)
    with pytest.raises(ArgumentError, match="fewer blocks than stages"):
        balanced([1.0], 2)


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "pieces"), [(1, 1), (2, 5), (4, 3), (3, 8)])
def test_a_schedule_computes_each_microbatch_once_and_without_deadlock(kind, stages, pieces):
    orders = [schedule(kind, stages, stage, pieces) for stage in range(stages)]
    done, places = set(), [0] * stages
    while any(place < 2 * pieces for place in places):
        before = list(places)
        for stage, order in enumerate(orders):
            if places[stage] == len(order):
                continue
            what, index = order[places[stage]]
            needs = ("forward", index, stage - 1) if what == "forward" else ("backward", index, stage + 1)
            own = what == "forward" or ("forward", index, stage) in done
            if own and (not 0 <= needs[2] < stages or needs in done):
                done.add((what, index, stage))
                places[stage] += 1
        assert places != before, "deadlock"
    for stage, order in enumerate(orders):
        ahead = [sum(1 if what == "forward" else -1 for what, _ in order[: i + 1]) for i in range(len(order))]
        assert max(ahead) == (pieces if kind == "gpipe" else min(stages - stage, pieces))


def test_shards_are_put_together_again():
    whole, spec = np.arange(24.0).reshape(6, 4), PartitionSpec(0, [[(0, 1), (3, 5)], [(1, 3), (5, 6)]])
    again = np.zeros_like(whole)
    for rank in range(2):
        part = spec.shard(whole, rank)
        assert part.shape == spec.local_shape(whole.shape, rank)
        spec.write(again, part, rank)
    assert (again == whole).all()


def test_dropout_of_a_part_is_that_part_of_the_dropout():
    x = np.ones((4, 6, 5))
    with shard_of_step(7, 0, 4):
        whole = nn.functional.dropout(x, 0.5).numpy()
    for axis, (first, last) in ((1, (2, 5)), (2, (3, 5)), (-1, (0, 2))):
        place = [slice(None)] * 3
        place[axis] = slice(first, last)
        with shard_of_step(7, 2, 2), part_of_draws(axis, first, x.shape[axis]):
            rows = x[2:][tuple(place)]
            assert (nn.functional.dropout(rows, 0.5).numpy() == whole[2:][tuple(place)]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_dropout_of_some_heads_is_that_of_all(dtype):
    random = np.random.default_rng(0)
    query, key, value = (random.normal(size=(3, 4, 17, 8)).astype(dtype) for _ in range(3))
    with shard_of_step(7, 0, 3):
        whole = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.3).numpy()
    with shard_of_step(7, 1, 2), part_of_draws(1, 1, 4):
        some = nn.functional.scaled_dot_product_attention(*(x[1:, 1:3] for x in (query, key, value)), dropout_p=0.3)
    np.testing.assert_allclose(some.numpy(), whole[1:, 1:3], atol=1e-5 if dtype == "float32" else 1e-12)


def test_layouts_as_settings():
    assert layout_from({"tensor": "2", "shard": "3", "recompute": "true"}) == Layout(tensor=2, shard=3, recompute=True)
    with pytest.raises(ArgumentError, match="tensor=two cannot be used"):
        layout_from({"tensor": "two"})
    assert fitting(Layout(tensor=2, pipeline=2), 4) == Layout(tensor=2, pipeline=2)
    assert fitting(Layout(tensor=2, pipeline=2, shard=1), 2) == Layout(shard=1)
    assert fitting(Layout(tensor=2), 1) == Layout()
