"""The toy model of superposition, and the sparse autoencoder that looks into it."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F


class Toy(nn.Module):
    """Squeeze features through fewer dimensions and get them back: x (N, features) -> relu(x W Wᵀ + b).

    Row i of W, (features, dims), is the direction in which feature i is stored; feature i matters decay^i.
    """

    def __init__(self, features: int, dims: int, decay: float):
        self.register_buffer("importance", mg.tensor([decay**i for i in range(features)]), persistent=False)
        self.W, self.b = nn.Parameter(mg.zeros(features, dims)), nn.Parameter(mg.zeros(features))
        nn.init.xavier_normal_(self.W)

    def hidden(self, x: Any) -> mg.Tensor:
        """What is left of the features in between: (N, features) -> (N, dims)."""
        return x @ self.W

    def forward(self, x: Any) -> mg.Tensor:
        return F.relu(self.hidden(x) @ self.W.T + self.b)  # (N, dims) -> (N, features)


class SparseAutoencoder(nn.Module):
    """h (N, dims) -> code (N, latents), of which few are to be above zero -> h again.

    Row i of the decoder is what latent i stands for. Only its direction counts, so that codes cannot become small by a
    decoder that becomes large. `start`, (latents, dims), is what both encoder and decoder begin from.
    """

    def __init__(self, start: Any):
        self.decoder = nn.Parameter(mg.tensor(start))
        self.encoder = nn.Parameter(mg.tensor(self.directions().numpy().T.copy()))
        self.b = nn.Parameter(mg.zeros(len(start)))

    def directions(self) -> mg.Tensor:
        """What each latent stands for, with length 1: (latents, dims)."""
        return self.decoder / (self.decoder * self.decoder).sum(1, keepdims=True).sqrt()

    def forward(self, h: Any) -> tuple[mg.Tensor, mg.Tensor]:
        """The code, and what is made of it."""
        code = F.relu(h @ self.encoder + self.b)  # (N, dims) -> (N, latents)
        return code, code @ self.directions()  # (N, latents) -> (N, dims)
