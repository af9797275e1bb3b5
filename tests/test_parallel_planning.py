"""Forecasts for layouts are what formulas say, and pictures of ranks show what they are given."""

import json
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.cli import main
from minigrad.parallel import Layout, Mesh
from minigrad.parallel.cost_model import memory
from minigrad.parallel.patches import Patches
from minigrad.parallel.pipeline import schedule
from minigrad.parallel.placement import placements
from minigrad.parallel.planning import Cluster, layouts_for, simulated
from minigrad.parallel.profiling import profile_blocks
from minigrad.zoo.plan_picture import plan_picture
from minigrad.zoo.planning import fits, plan

SMALL = {"layers": 4, "dim": 32, "heads": 4, "context": 16, "vocab": 300}


def small():
    return mg.zoo.create("gpt", **SMALL)


def test_memory_of_all_ranks_of_a_layout_adds_up_to_the_whole():
    model = small()
    whole = sum(p.data.nbytes for p in model.parameters())
    layout = Layout(tensor=2, pipeline=2, shard=3)
    uses = {"tokens.weight": [0], "positions.weight": [0]}  # not tied: each weight is in one place
    alike = [p for name, p in model.named_parameters() if p.ndim == 1 and "bias" not in name]
    total = 0
    for rank in range(8):
        mesh = Mesh.imagined(layout, 8, rank)
        placed = placements(model, mesh, (2, 2), uses)
        total += memory(placed, mesh)["parameters"]
    norms = sum(h.p.data.nbytes for h in placed if h.spec is None and h.only is None)
    assert total == whole + norms and len(alike) == 9  # norms are on both tensor-parallel ranks


def test_a_ring_takes_the_time_of_its_messages():
    cluster = Cluster(4, 8, 1e9, network=1e9, latency=1e-3)
    assert cluster.seconds("all_reduce", 4e6, 4, 1) == pytest.approx(6 * (1e-3 + 1e6 / 1e9))
    assert cluster.seconds("all_gather", 4e6, 4, 1) == pytest.approx(3 * (1e-3 + 1e6 / 1e9))
    assert cluster.seconds("all_reduce", 4e6, 1, 1) == 0


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "pieces"), [(2, 4), (4, 8), (3, 7)])
def test_a_simulated_pipeline_has_the_bubble_of_the_formula(kind, stages, pieces):
    order = [schedule(kind, stages, stage, pieces) for stage in range(stages)]
    spans = simulated([(1.0, 2.0)] * stages, order, hop=0.0)
    end = max(own[-1][3] for own in spans)
    assert math.isclose(1 - 3 * pieces / end, (stages - 1) / (pieces + stages - 1))
    assert all(a[3] <= b[2] for own in spans for a, b in zip(own, own[1:]))


def test_a_pass_shows_where_parameters_are_used_and_changes_no_gradient():
    model = small()
    spec = mg.zoo.list("gpt")[0].spec
    batch = spec.example(spec.config(**SMALL))
    costs, uses = profile_blocks(model, spec.loss, batch)
    assert len(costs) == 4 and min(costs) > 0
    assert uses["tokens.weight"] == [0, 4] and uses["positions.weight"] == [0]
    assert uses["encoder.norm.weight"] == [4]
    assert all(p.grad is None for p in model.parameters())


def test_layouts_are_those_that_divide_heads_and_blocks():
    found = {(one.tensor, one.pipeline) for one in layouts_for(small(), 12)}
    assert found == {(t, p) for t in (1, 2, 4) for p in (1, 2, 3, 4) if 12 % (t * p) == 0}


def test_a_plan_puts_the_fastest_that_fits_first():
    roomy = plan("gpt", Cluster(4, 2, 1e12), 16, SMALL)
    assert [one.seconds for one in roomy] == sorted(one.seconds for one in roomy)
    assert all(0 < one.efficiency <= 1 for one in roomy)
    tight = Cluster(4, 2, min(one.bytes for one in roomy) * 1.01)
    assert [fits(one, tight) for one in plan("gpt", tight, 16, SMALL)][:2] == [True, False]


def test_the_command_recommends_a_layout(capsys):
    words = [f"{key}={value}" for key, value in SMALL.items()]
    assert main(["plan", "gpt", *words, "--machines", "2", "--cores", "4", "--memory", "1G", "--scale"]) == 0
    printed = capsys.readouterr().out
    assert "take: mpiexec -n 2 minigrad train gpt " in printed and "1024 ranks: " in printed
    assert main(["plan", "gpt", *words, "--machines", "2", "--memory", "1k", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["fits"] for one in told["layouts"]} == {False}


def test_a_plan_is_drawn(tmp_path, capsys):
    words = [f"{key}={value}" for key, value in SMALL.items()]
    picture = tmp_path / "plan.svg"
    assert main(["plan", "gpt", *words, "--machines", "2", "--cores", "4", "-o", str(picture)]) == 0
    assert f"wrote {picture}" in capsys.readouterr().out
    svg = picture.read_text()
    found = plan("gpt", Cluster(2, 4, 16e9), 64, SMALL)
    assert svg.count('class="bar"') == 2 * len(found)
    one = next(one for one in found if one.layout == Layout(pipeline=2))
    drawn = plan_picture([one, *found], ["pipeline=2", *["other"] * len(found)]).svg()
    assert drawn.count('class="span"') == 2 * (2 * one.pieces + 1) and ">stage 1<" in drawn
    assert main(["plan", "gpt", *words, "-o", str(tmp_path / "plan.xyz")]) == 2
    assert "choose one of .svg, .png, .pdf" in capsys.readouterr().err


def test_stages_that_wait_leave_their_cores_to_the_others():
    alone = Cluster(1, 2, 1e9, boost=1.5, threads=1)
    assert (alone.ranks, alone.speedup(2), alone.speedup(1)) == (2, 1.0, 1.5)
    shared = Cluster(1, 2, 1e9, threads=0.5)  # four ranks on two cores
    assert (shared.ranks, shared.speedup(4), shared.speedup(2), shared.speedup(1)) == (4, 1.0, 2.0, 2.0)
    plans = [plan("gpt", Cluster(1, 2, 1e12, threads=each, efficiency=1.0), 16, SMALL) for each in (1, 0.5)]
    two, four = ([one for one in found if one.layout == Layout(pipeline=2)][0] for found in plans)
    assert two.pieces == four.pieces == 4 and two.bubble == four.bubble == 1 / 5
    assert four.computing == pytest.approx(4 / 5 * two.computing)  # two pairs of stages fill each other's bubbles


def test_a_schedule_is_drawn_with_its_waiting():
    spans = [[("forward", 0, 1.0, 1.2, 0.0), ("backward", 0, 1.3, 1.9, 0.3)], [("forward", 0, 1.2, 1.3, 0.2)]]
    svg = mg.viz.pipeline_schedule(spans, ["a", "b"]).svg()
    assert svg.count('class="span"') == 3 and ">F0<" in svg and ">B0<" in svg
    assert "backward 0: 600.0 ms, of which 300.0 waiting" in svg


def test_slices_are_drawn_where_they_are():
    model, layout = small(), Layout(tensor=2, pipeline=2)
    placed = placements(model, Mesh.imagined(layout, 4, 0), (3, 1), {"tokens.weight": [0, 4]})
    svg = mg.viz.holders(placed, layout).svg()
    matrices = [h for h in placed if len(h.shape) == 2]
    assert svg.count('class="matrix"') == 4 * len(matrices)
    assert "encoder.blocks.0.attention.in_proj_weight: (48, 32) of (96, 32)" in svg
    assert svg.count("on other ranks") == 2 * (len(matrices) - 1)


def test_edits_are_undone():
    layer = nn.Linear(3, 2, dtype="float64")
    x = mg.ones(1, 3, dtype="float64")
    before = layer(x).numpy()
    patches = Patches()
    patches.wrap(layer, lambda forward, x: forward(x) * 2)
    patches.set(layer, "bias", None)
    patches.apply()
    assert layer.bias is None
    np.testing.assert_allclose(layer(x).numpy(), 2 * (before - patches._done[1][2].numpy()))
    patches.undo()
    assert layer(x).numpy().tolist() == before.tolist() and "forward" not in vars(layer)
    assert optim.SGD(layer.parameters(), lr=1.0).param_groups[0]["params"] == [layer.weight, layer.bias]
