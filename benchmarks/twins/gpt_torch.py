"""The GPT of `gpt.py` in PyTorch, as its users write it, and one step of its training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .gpt import ADAMW, MAX_NORM, Config, batches, weights


def apart(x: Tensor, heads: int) -> Tensor:
    """(B, T, C) -> (B, h, T, C/h)."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


class Attention(nn.Module):
    """Self-attention: (B, T, C) -> (B, T, C)."""

    def __init__(self, dim: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.in_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        parts = self.in_proj(x).chunk(3, dim=2)  # (B, T, C) -> 3 × (B, T, C)
        q, k, v = (apart(part, self.heads) for part in parts)  # (B, h, T, C/h)
        seen = F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)
        return self.out_proj(seen.transpose(1, 2).flatten(2))  # (B, h, T, C/h) -> (B, T, C)


class MLP(nn.Module):
    """(B, T, C) -> (B, T, hidden) -> (B, T, C)."""

    def __init__(self, dim: int, hidden: int, activation: nn.Module):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.activation = activation
        self.down = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each after a norm and added to what it was given."""

    def __init__(self, dim: int, heads: int, hidden: int, activation: nn.Module, causal: bool):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, causal)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = MLP(dim, hidden, activation)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), mask)
        return x + self.mlp(self.mlp_norm(x))


class Stack(nn.Module):
    """The blocks, and a last norm."""

    def __init__(self, depth: int, dim: int, make: Callable[[], nn.Module]):
        super().__init__()
        self.blocks = nn.ModuleList(make() for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor, *given: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, *given)
        return self.norm(x)


class GPT(nn.Module):
    """Tokens (B, T) -> logits (B, T, vocabulary)."""

    def __init__(self, config: Config):
        super().__init__()
        d = config.dim
        self.tokens = nn.Embedding(config.vocabulary, d)
        self.positions = nn.Embedding(config.length, d)
        self.encoder = Stack(
            config.layers, d, lambda: Block(d, config.heads, 4 * d, nn.GELU(approximate="tanh"), causal=True)
        )

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
    """One step of training; it returns the loss before the step."""
    model, data = new_model(config), batches(config)
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused, **ADAMW)
    return training_step(optimizer, lambda: loss_of(model, *next(data)))


def training_step(optimizer: torch.optim.Optimizer, next_loss: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """A step: the loss of the next batch, backward, clipping, the optimizer; it returns the loss before the step."""
    params = [p for group in optimizer.param_groups for p in group["params"]]

    def step() -> Tensor:
        loss = next_loss()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, MAX_NORM)
        optimizer.step()
        return loss

    return step
