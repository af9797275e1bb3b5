"""What ranks that divide a model do, run by mpiexec: `python -m support.parallel_ranks FOLDER [JOBS]`; rank 0 writes what came of it.

Without jobs it does what the tests look at; `benchmarks.parallel` gives jobs.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import optim
from minigrad.parallel import Layout, collectives
from minigrad.parallel.cost_model import Load, memory, traffic
from minigrad.parallel.mesh import part_sizes
from minigrad.runtime.process_group import process_group
from minigrad.train import Trainer
from minigrad.zoo.config import configure
from minigrad.zoo.data import data_of, with_batches_on
from minigrad.zoo.training import named

SIZES: dict[str, dict[str, Any]] = {
    "gpt": {"layers": 3, "heads": 4, "dim": 16, "context": 10, "batch": 6, "tokenizer": "char", "characters": 2000},
    "bert": {"layers": 4, "heads": 4, "dim": 16, "hidden": 24, "batch": 200, "examples": 60, "context": 32},
    "translator": {"corpus": "reverse", "pairs": 60, "depth": 2, "dim": 16, "heads": 4, "hidden": 24, "batch": 80},
}
LLAMA = {
    **SIZES["gpt"], "layers": 2, "norm": "rms", "activation": "swiglu", "positions": "rotary", "bias": False, "tied": False,
    "hidden": 24, "rotary": {"style": "half"}, "block": {"kv_heads": 2},
}  # fmt: skip
CAPPED = {"head_dim": 6, "kv_heads": 2, "scale": 0.4, "softcap": 5.0, "sandwich": True, "window": [4, None]}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {  # models as imported ones of these families are built
    "llama": ("gpt", LLAMA),
    "qwen3": ("gpt", {**LLAMA, "block": {"kv_heads": 2, "qk_norm": "rms", "head_dim": 8, "window": [4, None]}}),
    "gemma2": ("gpt", {**LLAMA, "tied": True, "scaled": True, "logit_softcap": 3.0, "block": CAPPED}),
    "neox": ("gpt", {**LLAMA, "norm": "layer", "activation": "gelu", "block": {"parallel": True}}),
    "bert-base": ("bert", {**SIZES["bert"], "layers": 2, "norm": "post", "positions": "learned"}),
    "marian": (
        "translator",
        {
            **SIZES["translator"], "norm_first": False, "head_bias": True, "activation": "silu",
            "decoder": {"recurrence": "ssru"},
        },
    ),
    "qwen2": ("gpt", {**LLAMA, "block": {"kv_heads": 2, "attention_bias": True, "out_bias": False}}),
    "bart": (
        "translator",
        {
            **SIZES["translator"], "norm_first": False, "positions": "learned", "position_options": {"max_length": 64}, "embedding_norm": True,
            "head_bias": True, "activation": "gelu",
        },
    ),
    "t5": (
        "translator",
        {
            **SIZES["translator"], "positions": "relative", "position_options": {"buckets": 8, "distance": 16}, "scaled": False,
            "separate": "head", "logit_scale": 0.25, "activation": "geglu_tanh",
            "block": {"norm": "rms", "bias": False, "head_dim": 6, "scale": 1.0},
        },
    ),
    "mixture": ("gpt", {**SIZES["gpt"], "experts": 5, "balance": 0.3, "activation": "swiglu", "hidden": 24}),
    "adapters": ("gpt", {**SIZES["gpt"], "layers": 2, "lora": 2}),
}  # fmt: skip
LAYOUTS: list[tuple[str, dict[str, Any]]] = [
    ("gpt", {"tensor": 2, "pipeline": 2}),
    ("gpt", {"tensor": 4, "sequence": False}),
    ("gpt", {"pipeline": 2, "shard": 3}),
    ("gpt", {"pipeline": 3, "schedule": "gpipe"}),  # on three ranks
    ("bert", {"tensor": 2, "shard": 2}),
    ("bert", {"pipeline": 4}),
    ("bert", {"shard": 3}),
    ("translator", {"tensor": 2, "pipeline": 2, "recompute": True}),
    ("translator", {"shard": 1}),
    ("translator", {"pipeline": 2, "shard": 2}),
    ("llama", {"tensor": 2, "shard": 3}),
    ("qwen3", {"tensor": 2, "pipeline": 2}),
    ("gemma2", {"tensor": 2, "pipeline": 2}),
    ("neox", {"tensor": 4}),
    ("bert-base", {"tensor": 2, "pipeline": 2}),
    ("marian", {"tensor": 2, "pipeline": 2}),
    ("qwen2", {"tensor": 2, "pipeline": 2}),
    ("bart", {"tensor": 2, "pipeline": 2}),
    ("t5", {"tensor": 2, "pipeline": 2}),
    ("t5", {"pipeline": 2, "shard": 3}),
    ("mixture", {"tensor": 2, "pipeline": 2}),
    ("mixture", {"tensor": 4, "sequence": False, "recompute": True}),
    ("mixture", {"tensor": 2, "shard": 3}),
    ("mixture", {"pipeline": 3, "schedule": "gpipe"}),  # on three ranks
    ("mixture", {"shard": 2}),
    ("adapters", {"pipeline": 2, "shard": 1}),
]
STEPS = 4


def trained(name: str, layout: Layout | None = None, steps: int = STEPS, dtype: str = "float64", **options: Any) -> Any:
    """Train a small model with dropout, clipping and accumulation; returns its losses and norms, weights, and trainer."""
    model_name, sizes = FAMILIES[name] if name in FAMILIES else (name, SIZES[name])
    spec, _ = named(model_name)
    config = configure(spec, None, {**sizes, "dropout": 0.2})
    mg.manual_seed(3)
    given = data_of(spec, config, None)
    config = given.config or config
    mg.manual_seed(3)
    device = options.pop("device", "cpu")
    model = spec.build(config).to(device=device, dtype=dtype)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    make = Trainer.resume if options.pop("again", False) else Trainer
    loss = spec.loss if device == "cpu" else with_batches_on(device, spec.loss)
    trainer = make(
        model, loss, given.train, optimizer, max_steps=steps, accumulate=2, clip_norm=0.5, parallel=layout,
        progress=False, compile="off", **options,
    )  # fmt: skip
    seen: list[list[float]] = []
    trainer.on("step", lambda _, info: seen.append([info["loss"], info["grad_norm"]]))
    trainer.train()
    return seen, {name: value.numpy() for name, value in model.state_dict().items()}, trainer


def adjoints() -> dict[str, float]:
    """⟨g, J x⟩ - ⟨Jᵀ g, x⟩, summed over ranks, of each collective: 0 if its gradient is right."""
    world = process_group()
    rank, size = world.rank, world.size
    random = np.random.default_rng(rank)
    given, got = [(rank + i) % 3 + 1 for i in range(size)], [(i + rank) % 3 + 1 for i in range(size)]
    c = collectives

    def ring(x: Any) -> Any:
        token = c.send(x, world, (rank + 1) % size)
        return c.receive((2, 2), "float64", world, (rank - 1) % size) + token

    cases = {
        "all_reduce": (lambda x: c.all_reduce(x, group=world), (3, 2)),
        "all_gather": (lambda x: c.all_gather(x, axis=1, group=world, whole=7), (3, part_sizes(7, size)[rank])),
        "reduce_scatter": (lambda x: c.reduce_scatter(x, axis=-1, group=world), (3, 7)),
        "broadcast": (lambda x: c.broadcast(x, root=1, group=world), (3,)),
        "all_to_all": (lambda x: c.all_to_all(x, group=world, given=given, got=got), (sum(given), 2)),
        "send and receive": (ring, (2, 2)),
    }
    found = {}
    for name, (function, shape) in cases.items():
        x = mg.tensor(random.normal(size=shape), requires_grad=True)
        y = function(x)
        g = random.normal(size=y.shape)
        (y * mg.tensor(g)).sum().backward()
        difference = np.array([(y.data * g).sum() - (x.grad.data * x.data).sum()])
        world.all_reduce([difference])
        found[name] = abs(float(difference[0]))
    return found


def on_cards(folder: Path) -> list[dict[str, Any]]:
    """What collectives make of arrays on a device of each rank, by NCCL and over the host, and what NCCL was called for."""
    from . import fake_device, fake_nccl

    xp = fake_device.xp
    found: dict[str, Any] = {}
    for way in ("host", "nccl"):
        communicator = fake_nccl.installed(process_group().rank, folder) if way == "nccl" else None
        group = process_group().split(0)
        rank, size = group.rank, group.size
        found[way] = results = {}
        for dtype in ("float16", "float32", "float64"):
            for counts in ([2] * size, [3, 0, 1, 2]):
                mine = np.arange(counts[rank]) + 10.0 * rank
                every = np.arange(sum(counts)) * (rank + 1.0)
                given, back = [(rank + i) % 3 for i in range(size)], [(i + rank) % 3 for i in range(size)]
                sent, summed = xp.asarray(every.astype(dtype)), xp.asarray(every.astype(dtype))
                group.all_reduce([summed])
                group.broadcast_arrays([sent], root=2)
                rows = np.concatenate([np.full(n, 10.0 * rank + to) for to, n in enumerate(given)])
                made = {
                    "all_reduce": summed,
                    "broadcast": sent,
                    "all_gather": group.all_gather_array(xp.asarray(mine.astype(dtype)), counts),
                    "reduce_scatter": group.reduce_scatter(xp.asarray(every.astype(dtype)), counts),
                    "all_to_all": group.all_to_all(xp.asarray(rows.astype(dtype)), given, back),
                }
                assert {one.dtype.name for one in made.values()} == {dtype}
                results |= {f"{name} {dtype} {counts}": one.get().tolist() for name, one in made.items()}
        results["traffic"] = dict(group.traffic)
        found["calls"] = sorted({*communicator.calls}) if communicator else []
    return list(process_group().all_gather(found))


def examine(folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Train each job on these ranks; how far it is from what one process made, in `MODEL-STEPS-DTYPE.npz` of the folder."""
    world, told = process_group(), []
    for job in jobs:
        made = Layout(**job["layout"])
        if world.size % made.model_size:
            continue
        begin = time.perf_counter()
        seen, weights, trainer = trained(job["model"], made, job["steps"], job["dtype"])
        name = "-".join(str(job[key]) for key in ("model", "steps", "dtype"))
        if world.size == 1:
            np.savez(folder / f"{name}.npz", __seen__=np.array(seen), **weights)
            continue
        known = np.load(folder / f"{name}.npz")
        error = max(float(np.abs(known[key] - weight).max()) for key, weight in weights.items())
        losses = float(np.abs(known["__seen__"] - np.array(seen)).max())
        told.append({**job, "error": error, "losses": losses, "seconds": time.perf_counter() - begin})
    return told


def killed(folder: Path, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Train, and resume if there is a run; rank `rank` kills itself after so many seconds of training, unless that is None."""
    made, world = Layout(**job["layout"]), process_group()

    def die() -> None:
        (folder / "died").write_text(str(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)

    if world.rank == job.get("rank") and job.get("after") is not None:
        threading.Timer(job["after"], die).start()
    begin = time.perf_counter()
    options = {"out": folder / job["out"], "save_every": job.get("save_every", 2), "seed": 5, "again": True}
    seen, weights, trainer = trained(job["model"], made, job["steps"], **options)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(weights[key]).tobytes() for key in sorted(weights)))
    seconds = time.perf_counter() - begin
    if world.rank == 0:
        np.savez(folder / f"{job['out']}.npz", **weights)
    return [{"digest": digest.hexdigest(), "began": trainer.step - len(seen), "seconds": seconds}]


def timed(sizes: dict[str, Any], batch: int, layout: dict[str, Any], steps: int) -> list[float]:
    """The seconds of each step of a gpt in float32."""
    spec, _ = named("gpt")
    config = configure(spec, None, sizes)
    mg.manual_seed(3)
    model = spec.build(config)
    rows = np.random.default_rng(0).integers(5, config.vocab, (batch, config.context + 1))
    batches = [type(spec.example(config))(rows[:, :-1], rows[:, 1:])]
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    trainer = Trainer(
        model, spec.loss, batches, optimizer, max_steps=steps, parallel=Layout(**layout), progress=False, compile="off"
    )
    moments: list[float] = []
    trainer.on("step", lambda _, info: moments.append(time.perf_counter()))
    trainer.train()
    return [after - before for before, after in zip(moments, moments[1:])]


def one_job(folder: Path, job: dict[str, Any]) -> Any:
    if "timed" in job:
        return timed(**job["timed"])
    if "network" in job:
        return all_gathered(job["network"])
    return counted(Layout(**job["counted"])) if "counted" in job else killed(folder, job)


def all_gathered(size: int, times: int = 20) -> float:
    """The seconds that an all-gather of so many numbers in float32 adds to products of matrices, which keep all cores busy."""
    world = process_group()
    counts = part_sizes(size, world.size)
    array = np.zeros(counts[world.rank], np.float32)
    a = np.random.default_rng(0).random((384, 384), np.float32)

    def loop(is_gathered: bool) -> float:
        world.all_gather(None)
        begin = time.perf_counter()
        for _ in range(times):
            a @ a
            if is_gathered:
                world.all_gather_array(array, counts)
        world.all_gather(None)
        return (time.perf_counter() - begin) / times

    return float(np.median([loop(True) - loop(False) for _ in range(9)]))


def main() -> None:
    folder = Path(sys.argv[1])
    world = process_group()
    told: Any
    if len(sys.argv) > 2:
        jobs = json.loads(sys.argv[2])
        if isinstance(jobs, list):
            told = examine(folder, jobs)
        else:
            told = one_job(folder, jobs)
    else:
        told = of_the_suite(folder)
    if world.rank == 0:
        (folder / f"told-{world.size}.json").write_text(json.dumps(told))


def counted(layout: Layout, experts: int = 0) -> list[dict[str, Any]]:
    """For each rank, what a step of gpt communicates and holds, as counted and by the formulas."""
    spec, _ = named("gpt")
    config = configure(spec, None, {**SIZES["gpt"], "layers": 8, "vocab": 64, "experts": experts})
    mg.manual_seed(3)
    model = spec.build(config)
    batch = spec.example(config)
    rows = np.random.default_rng(0).integers(5, 64, (8, 9))
    batches = [type(batch)(rows[:, :-1], rows[:, 1:])]
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    trainer = Trainer(model, spec.loss, batches, optimizer, max_steps=2, parallel=layout, progress=False)
    seen: list[dict[str, dict[str, int]]] = []
    held: dict[str, int] = {}
    trainer.on("step", lambda trainer, _: seen.append(trainer.mesh.traffic()))
    trainer.on("step", lambda trainer, _: held.update(trainer.distributed.memory()))
    whole = [p.data.nbytes for p in model.parameters()]
    expected: dict[str, Any] = {}

    def foresee(trainer: Any, _: Any) -> None:
        mesh, distributed = trainer.mesh, trainer.distributed
        load = Load(layout.pieces, 8 // mesh.shape[0] // layout.pieces, 8, config.dim, 4, experts, config.active)
        expected["traffic"] = traffic(distributed.placements, mesh, distributed.counts, load)
        expected["memory"] = memory(distributed.placements, mesh)

    trainer.on("step", foresee)
    trainer.train()
    step = {
        group: {kind: count - seen[0][group].get(kind, 0) for kind, count in kinds.items()}
        for group, kinds in seen[1].items()
    }
    step = {group: {kind: count for kind, count in kinds.items() if count} for group, kinds in step.items()}
    told = {"step": step, "held": held, "expected": expected, "whole": sum(whole), "layout": repr(layout)}
    return list(process_group().all_gather(told))


COUNTED = [
    {"tensor": 2, "pipeline": 2}, {"tensor": 2, "sequence": False, "recompute": True}, {"shard": 1}, {"shard": 2},
    {"shard": 3}, {"pipeline": 2, "shard": 3}, {"tensor": 2, "shard": 3}, {"tensor": 4}, {"pipeline": 4}, {"pipeline": 2},
]  # fmt: skip

WITH_EXPERTS = [{"tensor": 2, "pipeline": 2}, {"tensor": 4, "sequence": False}, {"tensor": 2, "shard": 3}]


def of_the_suite(folder: Path) -> dict[str, Any]:
    """What the tests look at."""
    world = process_group()
    told: dict[str, Any] = {"adjoints": adjoints(), "runs": {}}
    for name, layout in LAYOUTS:
        made = Layout(**layout)
        if world.size % made.model_size == 0:
            seen, weights, _ = trained(name, made)
            told["runs"][f"{name} {layout}"] = [seen, {key: value.tolist() for key, value in weights.items()}]
    if world.size == 4:
        told["cards"] = on_cards(folder)
        seen, weights, _ = trained("bert", Layout(tensor=2, pipeline=2), device="fake", out=folder / "device")
        told["device"] = [seen, {key: value.tolist() for key, value in weights.items()}]
        told["counted"] = [counted(Layout(**layout)) for layout in COUNTED]
        told["experts"] = [counted(Layout(**layout), experts=6) for layout in WITH_EXPERTS]
        trained("gpt", Layout(tensor=2, pipeline=2), steps=2, out=folder / "run", save_every=2, seed=5)
        _, weights, _ = trained("gpt", Layout(pipeline=2, shard=3), out=folder / "run", again=True, seed=5)
        told["resumed"] = {key: value.tolist() for key, value in weights.items()}
    return told


if __name__ == "__main__":
    main()
