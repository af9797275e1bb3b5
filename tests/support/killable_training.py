"""A training run to be killed and resumed: `python killable_training.py FOLDER OPTIMIZER SCHEDULE SAMPLER [--slow]`.

Run again it goes on where it was. The model has dropout, a tied weight and batch norm's running means, the loss two terms.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.data import DataLoader, IterableDataset, TensorDataset
from minigrad.data.batching import BlockBatches, PairBatches, SequenceBatches
from minigrad.data.tokenizers import CharTokenizer
from minigrad.nn import functional as F
from minigrad.train import ArrayBatches, ListBatches, Trainer

STEPS, WORDS, WIDTH = 45, 12, 8

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adam": lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "lamb": lambda p: optim.LAMB(p, lr=0.01),
    "mixed": lambda p: optim.AdamW(p, lr=0.01),
}
SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "none": lambda o: None,
    "constant": optim.Constant,
    "step": lambda o: optim.Step(o, size=7, gamma=0.5),
    "cosine": lambda o: optim.Cosine(o, total=STEPS, warmup=5),
    "inverse_sqrt": lambda o: optim.InverseSqrt(o, warmup=5),
    "noam": lambda o: optim.Noam(o, dim=WIDTH, warmup=5),
    "one_cycle": lambda o: optim.OneCycle(o, total=STEPS),
    "plateau": lambda o: optim.Plateau(o, patience=0, factor=0.5),
}
_rows = np.random.default_rng(5)
_sentences = [_rows.integers(1, WORDS, _rows.integers(1, 7)).tolist() for _ in range(40)]
_block = _rows.integers(1, WORDS, (40, 4))


class Stream(IterableDataset):
    """Rows one after the other, as from a file."""

    def __iter__(self) -> Any:
        return iter(_block)


def _rows_of(examples: list[Any]) -> np.ndarray:
    return np.stack([row.numpy() for (row,) in examples])


SAMPLERS: dict[str, Callable[[], Any]] = {
    "list": lambda: ListBatches([_block[i : i + 4] for i in range(0, 40, 4)], seed=3),
    "arrays": lambda: ArrayBatches((_block,), batch_size=7, seed=3),
    "sequences": lambda: SequenceBatches(_sentences, max_tokens=24, seed=3),
    "pairs": lambda: PairBatches(list(zip(_sentences, _sentences[1:])), max_tokens=24, seed=3),
    "blocks": lambda: BlockBatches(_block.ravel(), block=5, batch_size=3, seed=3),
    "sequential": lambda: BlockBatches(_block.ravel(), block=5, batch_size=3, seed=3, order="sequential"),
    "loader": lambda: DataLoader(TensorDataset(_block), batch_size=7, shuffle=True, collate_fn=_rows_of),
    "workers": lambda: DataLoader(_block, 6, shuffle=True, seed=3, num_workers=2, collate_fn=np.stack),
    "stream": lambda: DataLoader(Stream(), batch_size=7, num_workers=1, collate_fn=np.stack),
}


class Model(nn.Module):
    """Guesses every word from the one before it, and the length of the row from all of them."""

    def __init__(self, norm: Callable[[int], Any] = nn.BatchNorm1d) -> None:
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.norm = norm(WIDTH)
        self.length = nn.Linear(WIDTH, 1)

    def forward(self, ids: Any) -> tuple[Any, Any]:
        hidden = self.dropout(self.embedding(ids))  # (B, T) -> (B, T, C)
        hidden = self.norm(hidden.reshape(-1, WIDTH)).reshape(*hidden.shape)  # statistics over B and T
        return hidden @ self.embedding.weight.T, self.length(hidden.mean(axis=1))


class Loss:
    """Two terms with units of their own."""

    unit = "tokens"

    def ids(self, batch: Any) -> np.ndarray:
        for name in ("inputs", "ids"):
            if hasattr(batch, name):
                return getattr(batch, name)
        if hasattr(batch, "source"):
            return batch.source.ids
        return batch[0] if isinstance(batch, tuple) else batch

    def units(self, batch: Any) -> dict[str, int]:
        ids = self.ids(batch)
        return {"words": ids.shape[0] * ids.shape[1], "rows": ids.shape[0]}

    def __call__(self, model: Any, batch: Any) -> dict[str, Any]:
        ids, units = self.ids(batch), self.units(batch)
        logits, length = model(mg.tensor(ids))
        noise = random.random() + np.random.random()  # noqa: NPY002  (as a user's own code might draw)
        words = F.cross_entropy(logits.reshape(-1, WORDS), mg.tensor(np.roll(ids, -1, axis=1).ravel()), reduction="sum")
        target = mg.tensor((ids > 0).sum(axis=1, keepdims=True).astype("float32") / 5)
        return {
            "words": (words, units["words"]),
            "rows": (F.mse_loss(length, target + noise, reduction="sum"), units["rows"]),
        }


class LossOfOps(Loss):
    """Two terms that can be compiled."""

    def __call__(self, model: Any, batch: Any) -> dict[str, Any]:
        ids, units = mg.tensor(self.ids(batch)), self.units(batch)
        logits, length = model(ids)
        words = F.cross_entropy(logits[:, :-1].reshape(-1, WORDS), ids[:, 1:].reshape(-1), reduction="sum")
        return {"words": (words, units["words"]), "rows": ((length**2).sum(), units["rows"])}


def trainer(folder: str | Path, optimizer: str, schedule: str, sampler: str, **changes: Any) -> Trainer:
    mg.manual_seed(11)
    random.seed(12)
    np.random.seed(13)  # noqa: NPY002  (to see that the old global state is resumed as well)
    compiled = changes.get("compile") == "on"
    model = Model(nn.LayerNorm) if compiled else Model()
    made = OPTIMIZERS[optimizer](model.parameters())
    return Trainer.resume(
        model,
        LossOfOps() if compiled else Loss(),
        SAMPLERS[sampler](),
        made,
        out=folder,
        schedule=SCHEDULES[schedule](made),
        valid=SAMPLERS[sampler](),
        tokenizer=CharTokenizer("abc"),
        config={"optimizer": optimizer, "schedule": schedule, "sampler": sampler},
        seed=1,
        accumulate=2,
        clip_norm=1.0,
        scaler=optim.MixedPrecision(model, made) if optimizer == "mixed" else None,
        samples=lambda model: f"a number: {mg.rand(1).item()}",
        **{"max_steps": STEPS, "log_every": 3, "valid_every": 7, "save_every": 4, "progress": False, **changes},
    )


def main() -> None:
    folder, optimizer, schedule, sampler, *options = sys.argv[1:]
    compiled = {"compile": "on"} if "--compiled" in options else {}
    training = trainer(folder, optimizer, schedule, sampler, progress="--shown" in options, **compiled)
    training.on("step", lambda _, info: print("step", info["step"], flush=True))  # from here on signals are heard
    pause = {"--slow": 0.02, "--stuck": 60.0}
    training.on("step", lambda *_: time.sleep(sum(pause.get(option, 0) for option in options)))
    print("training", flush=True)
    training.train()
    if "--doomed" in options:  # a machine so busy that the killer comes late finds it here
        time.sleep(600)


if __name__ == "__main__":
    main()
