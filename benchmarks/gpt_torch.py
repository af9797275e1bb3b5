"""The GPT of `gpt.py` in PyTorch, as its users write it, and one step of its training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .gpt import ADAMW, MAX_NORM, Config, batches, weights


class Attention(nn.Module):
    """Causal self-attention: (B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.in_proj = nn.Linear(config.dim, 3 * config.dim)
        self.out_proj = nn.Linear(config.dim, config.dim)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        parts = self.in_proj(x).split(c, dim=2)  # (B, T, 3 C) -> 3 × (B, T, C)
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in parts)  # (B, h, T, C/h)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(seen.transpose(1, 2).reshape(b, t, c))  # (B, h, T, C/h) -> (B, T, C)


class MLP(nn.Module):
    """(B, T, C) -> (B, T, 4 C) -> (B, T, C)."""

    def __init__(self, config: Config):
        super().__init__()
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.activation = nn.GELU(approximate="tanh")
        self.down = nn.Linear(4 * config.dim, config.dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each after a norm and added to what it was given."""

    def __init__(self, config: Config):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.dim)
        self.attention = Attention(config)
        self.mlp_norm = nn.LayerNorm(config.dim)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Encoder(nn.Module):
    """The blocks, and a last norm."""

    def __init__(self, config: Config):
        super().__init__()
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class GPT(nn.Module):
    """Tokens (B, T) -> logits (B, T, vocabulary)."""

    def __init__(self, config: Config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.dim)
        self.positions = nn.Embedding(config.length, config.dim)
        self.encoder = Encoder(config)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))  # (B, T) -> (B, T, C)
        return F.linear(self.encoder(x), self.tokens.weight)  # (B, T, C) -> (B, T, vocabulary)


def torch_name(name: str) -> str:
    """What PyTorch's twin calls a parameter of minigrad's: its input projection is a Linear."""
    return name.replace("in_proj_", "in_proj.")


def new_model(config: Config) -> GPT:
    """The GPT with the common weights."""
    model = GPT(config).to(getattr(torch, config.dtype))
    model.load_state_dict({torch_name(name): torch.tensor(array) for name, array in weights(config).items()})
    return model


def loss_of(model: GPT, tokens: Any, targets: Any) -> Tensor:
    """The mean cross-entropy of one batch, (B, T) each."""
    logits = model(torch.from_numpy(tokens))
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), torch.from_numpy(targets).view(-1))


def torch_step(config: Config, fused: bool | None = None) -> Callable[[], Tensor]:
    """One step of training: the next batch, backward, clipping, AdamW; it returns the loss before the step."""
    model, data = new_model(config), batches(config)
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused, **ADAMW)

    def step() -> Tensor:
        loss = loss_of(model, *next(data))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        return loss

    return step
