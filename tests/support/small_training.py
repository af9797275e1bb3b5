"""Training that takes a moment: a straight line, and what the tests of the Trainer look at."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import functional as F
from minigrad.train import ListBatches, Trainer


def classify(model: Any, batch: Any) -> dict[str, Any]:
    x, y = (mg.tensor(part, device=next(model.parameters()).device) for part in batch)
    return {"loss": (F.cross_entropy(model(x), y, reduction="sum"), len(batch[1]))}


def line(model: Any, batch: Any) -> dict[str, Any]:
    """A straight line through ragged batches: rows of x, and their sum as what is to be found."""
    return {"loss": (((model(mg.tensor(batch)) - mg.tensor(batch.sum(axis=1, keepdims=True))) ** 2).sum(), len(batch))}


def small(data: Any = None, loss: Any = line, lr: float = 0.05, resume: bool = False, **options: Any) -> Trainer:
    """A trainer of a straight line, or one that goes on."""
    mg.manual_seed(0)
    model = options.pop("model", None) or nn.Linear(3, 1)
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    sampler = ListBatches([rows[:4], rows[4:]], shuffle=False) if data is None else data
    optimizer = options.pop("optimizer", optim.SGD)(model.parameters(), lr=lr)
    make = Trainer.resume if resume else Trainer
    return make(model, loss, sampler, optimizer, **{"max_steps": 5, "progress": False, **options})


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / "metrics.csv").read_text())))
