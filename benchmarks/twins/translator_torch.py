"""The translator of `translator.py` in PyTorch, as its users write it, and one step of its training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .gpt import ADAMW
from .gpt_torch import Block, Stack, apart, torch_name, training_step
from .translator import PAD, Config, batches, weights


class CrossAttention(nn.Module):
    """Attention to a memory: (B, T, C), (B, S, C) -> (B, T, C)."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(dim, dim)
        self.kv_proj = nn.Linear(dim, 2 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        q = apart(self.q_proj(x), self.heads)  # (B, T, C) -> (B, h, T, C/h)
        parts = self.kv_proj(memory).chunk(2, dim=2)  # (B, S, C) -> 2 × (B, S, C)
        k, v = (apart(part, self.heads) for part in parts)  # (B, h, S, C/h)
        seen = F.scaled_dot_product_attention(q, k, v, mask)
        return self.out_proj(seen.transpose(1, 2).flatten(2))  # (B, h, T, C/h) -> (B, T, C)


class DecoderBlock(Block):
    """A causal block that also looks at a memory, between its attention and its MLP."""

    def __init__(self, dim: int, heads: int, hidden: int, activation: nn.Module):
        super().__init__(dim, heads, hidden, activation, causal=True)
        self.cross_norm = nn.LayerNorm(dim)
        self.cross_attention = CrossAttention(dim, heads)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        x = x + self.attention(self.attention_norm(x))
        x = x + self.cross_attention(self.cross_norm(x), memory, mask)
        return x + self.mlp(self.mlp_norm(x))


def sinusoids(length: int, dim: int) -> Tensor:
    """The positions of "Attention is all you need": (length, dim), sines in even and cosines in odd columns."""
    place, column = torch.arange(length, dtype=torch.float64), torch.arange(0, dim, 2, dtype=torch.float64)
    angles = place[:, None] / 10000 ** (column / dim)  # (length, dim/2)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)  # (length, dim/2, 2) -> (length, dim)


class Translator(nn.Module):
    """Sources (B, S) and targets so far (B, T) -> logits of the next target tokens (B, T, vocabulary)."""

    positions: Tensor

    def __init__(self, vocabulary: int, dim: int, heads: int, hidden: int, depth: int, longest: int):
        super().__init__()
        self.scale = dim**0.5
        self.embedding = nn.Embedding(vocabulary, dim)
        self.encoder = Stack(depth, dim, lambda: Block(dim, heads, hidden, nn.ReLU(), causal=False))
        self.decoder = Stack(depth, dim, lambda: DecoderBlock(dim, heads, hidden, nn.ReLU()))
        self.register_buffer("positions", sinusoids(longest, dim), persistent=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = (source != PAD)[:, None, None, :]  # (B, 1, 1, S), True where there is a token
        memory = self.encoder(self.embedded(source), mask)
        x = self.decoder(self.embedded(target), memory, mask)  # (B, T, C)
        return F.linear(x, self.embedding.weight)  # (B, T, C) -> (B, T, vocabulary)

    def embedded(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens) * self.scale + self.positions[: tokens.shape[1]]  # (B, T) -> (B, T, C)


def torch_state(state: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Minigrad's parameters under the names of the twin, whose cross-attention has two Linears for one matrix."""
    return dict(_renamed({name: torch.tensor(array) for name, array in state.items()}))


def _renamed(state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, array in state.items():
        place, cross, kind = name.partition("cross_attention.in_proj_")
        if cross:
            dim = len(array) // 3
            yield f"{place}cross_attention.q_proj.{kind}", array[:dim]
            yield f"{place}cross_attention.kv_proj.{kind}", array[dim:]
        else:
            yield torch_name(name), array


def new_model(config: Config) -> Translator:
    """The translator with the common weights."""
    sizes = config.vocabulary, config.dim, config.heads, config.hidden, config.depth, config.length
    model = Translator(*sizes).to(getattr(torch, config.dtype))
    model.load_state_dict(torch_state(weights(config)))
    return model


def loss_of(model: Translator, source: Any, target: Any, smoothing: float) -> Tensor:
    """The mean cross-entropy of each next token of one batch, padding left out: (B, S), (B, 1 + T)."""
    wanted = torch.from_numpy(target[:, 1:].reshape(-1))
    logits = model(torch.from_numpy(source), torch.from_numpy(target[:, :-1])).flatten(0, 1)  # (B·T, vocabulary)
    return F.cross_entropy(logits, wanted, ignore_index=PAD, label_smoothing=smoothing)


def torch_step(config: Config, fused: bool | None = None) -> Callable[[], Tensor]:
    """One step of training; it returns the loss before the step."""
    model, data = new_model(config), batches(config)
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused, **ADAMW)
    return training_step(optimizer, lambda: loss_of(model, *next(data), config.smoothing))
