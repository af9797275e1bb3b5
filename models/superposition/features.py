"""Sparse features, how a model stores them, and the search for their directions in its hidden numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from minigrad.data import Sampler
from minigrad.optim import AdamW, Cosine

from .model import SparseAutoencoder

STORED = 0.5  # a feature whose direction is at least so long counts as stored
FOUND = 0.9  # a direction whose cosine with it is at least this much counts as found
IN_USE = 1e-3  # a latent that is above zero in a greater share of the rows is in use
ROWS = 8192  # to look at what a model does


class SparseFeatures(Sampler):
    """Rows of features, each there with probability `density` and then anything from 0 to 1: `(x,)` with x (B, features)."""

    def __init__(self, features: int, density: float, batch: int, batches: int = 100, seed: int = 0):
        super().__init__(seed)
        self.features, self.density, self.batch_size, self.batches = features, density, batch, batches

    def __len__(self) -> int:
        return self.batches

    def batch(self, epoch: int, index: int) -> tuple[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch, index])
        shape = self.batch_size, self.features
        there = random.random(shape) < self.density
        return ((there * random.random(shape)).astype(np.float32),)

    def _identity(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("features", "density", "batch_size", "batches")}


def lengths(W: np.ndarray) -> np.ndarray:
    """How long the direction of each feature is: about 1 if it is stored, about 0 if it was given up."""
    return np.linalg.norm(W, axis=1)


def unit(W: np.ndarray) -> np.ndarray:
    """Rows with length 1."""
    return W / np.maximum(lengths(W), 1e-12)[:, None]


def interference(W: np.ndarray) -> np.ndarray:
    """How much of the other features is read where a feature is: Σ_j≠i (ŵᵢ · wⱼ)², 0 if its direction is its own."""
    overlaps = (unit(W) @ W.T) ** 2  # (features, features)
    return overlaps.sum(axis=1) - np.diag(overlaps)


def cosines(directions: np.ndarray, found: np.ndarray) -> np.ndarray:
    """For each direction, the cosine of the nearest that was found."""
    return (unit(directions) @ unit(found).T).max(axis=1)


def principal(h: np.ndarray) -> np.ndarray:
    """The principal components of hidden numbers (N, dims), each both ways, since a feature has a sign: (2 dims, dims)."""
    axes = np.linalg.svd(h - h.mean(axis=0), full_matrices=False)[2]
    return np.concatenate([axes, -axes])


def found_at_random(directions: np.ndarray, latents: int, draws: int = 100) -> float:
    """How many of the directions are found, in the mean, by as many random ones as there are latents."""
    random = np.random.default_rng(0)
    shape = latents, directions.shape[1]
    counts = [(cosines(directions, random.standard_normal(shape)) >= FOUND).sum() for _ in range(draws)]
    return float(np.mean(counts))


def hidden_of(W: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The hidden numbers that an autoencoder is shown: scaled so that their mean square length is 1 for any model."""
    h = x @ W
    return h / max(float(np.sqrt((h**2).sum(axis=1).mean())), 1e-12)


def autoencoder(W: np.ndarray, config: Any, seed: int) -> SparseAutoencoder:
    """A sparse autoencoder, trained on nothing but hidden numbers; the same seed gives the same one."""
    rows = SparseFeatures(config.features, config.density, config.batch, seed=seed)
    random = np.random.default_rng([seed, 0, 0, 1])  # no stream that the rows are drawn from
    made = SparseAutoencoder(random.standard_normal((config.latents, config.dims)).astype(np.float32))
    optimizer = AdamW(made.parameters(), lr=config.sae_lr, weight_decay=0.0)
    schedule = Cosine(optimizer, total=config.sae_steps)
    with mg.enable_grad():
        for _, (x,) in zip(range(config.sae_steps), rows.forever()):
            h = mg.tensor(hidden_of(W, x))
            optimizer.zero_grad()
            code, again = made(h)
            (((h - again) ** 2).sum() / len(x) + config.sparsity * code.sum() / len(x)).backward()
            optimizer.step()
            schedule.step()
    return made


def report(W: np.ndarray, config: Any, seed: int) -> dict[str, float]:
    """What a model stores, and how much of it an autoencoder finds, beside principal components and random directions."""
    (x,) = SparseFeatures(config.features, config.density, ROWS, seed=seed + 1).batch(0, 0)
    h = hidden_of(W, x)
    sae = autoencoder(W, config, seed)
    with mg.no_grad():
        code, latents = sae(mg.tensor(h))[0].numpy(), sae.directions().numpy()
    stored = lengths(W) >= STORED
    directions = W[stored]
    in_use = latents[(code > 0).mean(axis=0) > IN_USE]
    return {
        "stored": int(stored.sum()),
        "interference": float(interference(W)[stored].mean()) if stored.any() else 0.0,
        "found_by_autoencoder": _count(directions, in_use),
        "found_by_pca": _count(directions, principal(h)),
        "found_at_random": found_at_random(directions, config.latents) if stored.any() else 0.0,
        "latents_in_use": len(in_use),
        "latents_that_are_features": _count(in_use, directions),
    }


def _count(directions: np.ndarray, found: np.ndarray) -> int:
    return int((cosines(directions, found) >= FOUND).sum()) if len(directions) and len(found) else 0
