"""Training that is run by itself or by mpiexec: `python -m support.rank_training FOLDER '{"name": {"model": "mlp", …}, …}'`.

It uses the Trainer as any script does. FOLDER/name-RANK.json gets what a rank saw of each step, and of the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.data import PairBatches
from minigrad.nn import functional as F
from minigrad.runtime.process_group import process_group
from minigrad.runtime.threads import thread_count
from minigrad.train import ArrayBatches, ListBatches, Trainer, data_parallel, snapshot

from . import fake_device  # noqa: F401  (it makes the device "fake" known)

WORDS, WIDTH = 11, 8
Made = tuple[Any, Any, Any]


class Translator(nn.Module):
    """A transformer with one layer on each side, and dropout everywhere."""

    def __init__(self) -> None:
        place: dict[str, Any] = {"dropout": 0.2, "dtype": "float64"}
        self.embedding = nn.Embedding(WORDS, WIDTH, dtype="float64")
        self.encoder = nn.TransformerBlock(WIDTH, 2, 16, **place)
        self.decoder = nn.TransformerBlock(WIDTH, 2, 16, causal=True, cross=True, **place)

    def forward(self, batch: Any) -> Any:
        source, target = batch.source, batch.target
        seen = mg.tensor(source.mask[:, None, None, :])  # (B, S) -> (B, 1, 1, S)
        memory = self.encoder(self.embedding(mg.tensor(source.ids)), mask=seen)  # (B, S) -> (B, S, C)
        hidden = self.decoder(self.embedding(mg.tensor(target.ids)), memory, memory_mask=seen)  # (B, T) -> (B, T, C)
        return hidden @ self.embedding.weight.T  # (B, T, C) -> (B, T, WORDS)


class TokenLoss:
    """The mean over all tokens that are not padding, and a second term over sentences, with units of its own."""

    def units(self, batch: Any) -> dict[str, int]:
        return {"words": int(batch.target.mask.sum()), "sentences": len(batch)}

    def __call__(self, model: Any, batch: Any) -> dict[str, Any]:
        ids, mask = batch.target.ids, mg.tensor(batch.target.mask.astype("float64"))
        logits = model(batch)
        each = F.cross_entropy(logits.reshape(-1, WORDS), mg.tensor(ids.ravel()), reduction="none")
        units = self.units(batch)
        words = (each.reshape(*ids.shape) * mask).sum()
        return {"words": (words, units["words"]), "sentences": (0.01 * (logits**2).mean(axis=(1, 2)).sum(), len(batch))}


def squares(model: Any, batch: Any) -> dict[str, Any]:
    x, y = (mg.tensor(part) for part in batch)
    return {"loss": (((model(x) - y) ** 2).sum(), len(batch[0]))}


def mlp(batches: Callable[[Any, Any], Any], *between: Any) -> Made:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(23, 4)), rng.normal(size=(23, 1))
    layers = [nn.Linear(4, 6, dtype="float64"), *between, nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 1, dtype="float64")]
    return nn.Sequential(*layers), squares, batches(x, y)


def unused(batches: Callable[[Any, Any], Any]) -> Made:
    """A weight that only some rows use, and one that none does."""
    model, _, data = mlp(batches)
    model.sometimes, model.never = (nn.Parameter(mg.ones(1, dtype="float64")) for _ in range(2))

    def loss(model: Any, batch: Any) -> dict[str, Any]:
        amount, units = squares(model, batch)["loss"]
        chosen = int((batch[0][:, 0] > 0.5).sum())
        return {"loss": (amount + chosen * model.sometimes.sum() if chosen else amount, units)}

    return model, loss, data


def translator() -> Made:
    rng = np.random.default_rng(2)
    pairs = [tuple(rng.integers(5, WORDS, rng.integers(1, 7)).tolist() for _ in range(2)) for _ in range(30)]
    return Translator(), TokenLoss(), PairBatches(pairs, max_tokens=24, seed=3)


def arrays(x: Any, y: Any) -> Any:
    return ArrayBatches((x, y), batch_size=9, seed=3)  # the last of an epoch has five rows


def few(x: Any, y: Any) -> Any:
    """Batches with fewer rows than there are ranks."""
    return ListBatches([(x[a:b], y[a:b]) for a, b in ((0, 1), (1, 4), (4, 6), (6, 23))], seed=3)


MODELS: dict[str, Callable[[], Made]] = {
    "mlp": lambda: mlp(arrays),
    "few": lambda: mlp(few),
    "unused": lambda: unused(few),
    "translator": translator,
    "coupled": lambda: mlp(arrays, nn.BatchNorm1d(6, dtype="float64")),
    "broken": lambda: mlp(lambda x, y: arrays(np.where(np.arange(23)[:, None] == 7, np.nan, x), y)),
}


def rank() -> int:
    return int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))


def misbehave(how: str) -> Callable[[Any, Any], None]:
    """What rank 1 does after the sixth step, unless it is well."""

    def act(trainer: Any, info: Any) -> None:
        if rank() != 1 or info["step"] != 6:
            return
        if how == "raise":
            raise ZeroDivisionError("on purpose")
        if how == "leave":
            sys.exit(3)
        if how == "stop":
            trainer.stop("rank 1 has seen enough")
        if how == "interrupt":
            signal.raise_signal(signal.SIGTERM)
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)

    return act


@contextmanager
def divided_among(threads: int | None) -> Iterator[None]:
    """Inside, each rank divides even small batches among so many threads; None leaves it to minigrad."""
    before = data_parallel.MIN_WORK
    if threads is not None:
        os.environ["MINIGRAD_THREADS"], data_parallel.MIN_WORK = str(threads), 0
    try:
        yield
    finally:
        os.environ.pop("MINIGRAD_THREADS", None)
        data_parallel.MIN_WORK = before


def train(folder: Path, name: str, model: str, how: str = "", **options: Any) -> dict[str, Any]:
    """Train, or go on, and tell what came of it; with `unlike` and `other_…` the ranks do not begin alike."""
    if options.pop("other_version", False) and rank() == 1:
        snapshot.__version__ = "9.9"
    if options.pop("other_config", False):
        options["config"] = {"config": {"width": 6, "depth": 2 + rank()}}
    mg.manual_seed(7 + (100 * rank() if options.pop("unlike", False) else 0))
    module, loss, data = MODELS[model]()
    if options.pop("other_data", False) and rank() == 1:
        data = ArrayBatches((np.ones((23, 4)), np.ones((23, 1))), batch_size=9, seed=3)
    optimizer = optim.AdamW(module.parameters(), lr=0.02)
    scaler = optim.MixedPrecision(module, optimizer) if options.pop("mixed", False) else None
    make = Trainer.resume if options.pop("again", False) else Trainer
    losses: list[float] = []
    settings = {"max_steps": 12, "valid_every": 5, "save_every": 4, "log_every": 1, "clip_norm": 0.7, **options}
    trainer = make(
        module, loss, data, optimizer, out=folder / name, valid=data, scaler=scaler, samples=lambda _: "ok", **settings
    )
    trainer.on("step", lambda _, info: losses.append(info["loss"]))
    trainer.on("step", misbehave(how))
    trainer.on("save", lambda _, info: print("saved by rank", rank(), flush=True))
    if how == "early" and rank() == 1:
        raise ZeroDivisionError("on purpose")
    result = trainer.train()
    weights = {key: value.numpy().tolist() for key, value in module.state_dict().items()}
    ended = {"best": result.best, "step": result.step, "reason": result.reason}
    return {"losses": losses, "weights": weights, "cores": thread_count(), **ended}


def sums(device: str) -> dict[str, Any]:
    """What the ranks make of arrays and values of each: kinds that Allreduce knows, and kinds that it does not."""
    ranks = process_group()
    mine = np.array([[1.0, 2.0], [3.0, 4.0]]) * (ranks.rank + 1)
    kinds = [mine.astype(dtype) for dtype in ("float16", "float32", "float64")] + [mine[0, 0], mine[:0]]
    tensors = [mg.tensor(array, device=device) for array in kinds]
    ranks.all_reduce([tensor.data for tensor in tensors])
    copied = [np.full(3, ranks.rank, dtype) for dtype in ("bool", "int64")]
    ranks.broadcast_arrays(copied)
    return {
        "sums": [tensor.numpy().tolist() for tensor in tensors],
        "dtypes": [tensor.dtype.name for tensor in tensors],
        "gathered": ranks.all_gather("é" * 400 * ranks.rank),
        "first": ranks.broadcast({"rank": ranks.rank, "nan": float("nan")}),
        "copied": [array.tolist() for array in copied],
    }


def main() -> None:
    folder, jobs = Path(sys.argv[1]), json.loads(sys.argv[2])
    for name, job in jobs.items():
        with divided_among(job.pop("threads", None)):
            told = sums(**job) if "device" in job else train(folder, name, **job)
        (folder / f"{name}-{rank()}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
