"""The GPT of `gpt_torch.py` writing token by token as its users would have it: with a cache, and without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .gpt import Config
from .gpt_torch import GPT, Attention, apart, torch_name


class Allocated:
    """The keys and values of one layer, (1, h, T, C/h), in memory for a whole context."""

    def __init__(self, config: Config):
        shape = (1, config.heads, config.length, config.dim // config.heads)
        self.keys, self.values = torch.empty(shape), torch.empty(shape)
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add those of new tokens; returns all."""
        start, self.length = self.length, self.length + keys.shape[2]
        self.keys[:, :, start : self.length] = keys
        self.values[:, :, start : self.length] = values
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


class Joined:
    """The same, joined anew with each token."""

    def __init__(self, config: Config):
        self.keys = self.values = torch.empty(1, config.heads, 0, config.dim // config.heads)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add those of new tokens; returns all."""
        self.keys, self.values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        return self.keys, self.values


CACHES = {"allocated": Allocated, "joined": Joined}


def attend(attention: Attention, x: Tensor, cache: Allocated | Joined) -> Tensor:
    """Causal self-attention of new tokens, either the first ones or a single one: (1, T, C) -> (1, T, C)."""
    q, k, v = (apart(part, attention.heads) for part in attention.in_proj(x).chunk(3, dim=2))  # (1, h, T, C/h)
    seen = F.scaled_dot_product_attention(q, *cache.append(k, v), is_causal=x.shape[1] > 1)
    return attention.out_proj(seen.transpose(1, 2).flatten(2))  # (1, h, T, C/h) -> (1, T, C)


@torch.inference_mode()
def best_next(model: GPT, tokens: Tensor, start: int, caches: Sequence[Allocated | Joined]) -> Tensor:
    """The likeliest token after these, of which the first stands at `start`: (1, T) -> (1, 1)."""
    x = model.tokens(tokens) + model.positions.weight[start : start + tokens.shape[1]]  # (1, T) -> (1, T, C)
    for block, cache in zip(model.encoder.blocks, caches):
        x = x + attend(block.attention, block.attention_norm(x), cache)
        x = x + block.mlp(block.mlp_norm(x))
    last = model.encoder.norm(x[:, -1])  # (1, T, C) -> (1, C)
    return F.linear(last, model.tokens.weight).argmax(1, keepdim=True)


def torch_tokens(
    config: Config, weights: Mapping[str, np.ndarray], prompt: Sequence[int], length: int, cache: str, threads: int
) -> Callable[[], Tensor]:
    """A function that returns the next token, (1, 1); after `length` of them the prompt is continued anew."""
    torch.set_num_threads(threads)
    model = GPT(config).eval()
    model.load_state_dict({torch_name(name): torch.tensor(array) for name, array in weights.items()})

    def written() -> Iterator[Tensor]:
        while True:
            caches = [CACHES[cache](config) for _ in range(config.layers)]
            tokens, start = torch.tensor([prompt]), 0
            for _ in range(length):
                new = best_next(model, tokens, start, caches)
                yield new
                tokens, start = new, start + tokens.shape[1]

    return written().__next__
