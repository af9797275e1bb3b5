"""The translator of `translator_torch.py` translating as its users would have it: with a cache, and without gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .gpt_torch import Attention, apart
from .translator import PAD
from .translator_torch import CrossAttention, Translator, torch_state

LONGEST = 512


def translator(state: Mapping[str, np.ndarray], heads: int) -> Translator:
    """The model with minigrad's weights."""
    vocabulary, dim = state["embedding.weight"].shape
    hidden = len(state["encoder.blocks.0.mlp.up.bias"])
    depth = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("decoder.blocks."))
    model = Translator(vocabulary, dim, heads, hidden, depth, LONGEST).float().eval()
    own = model.state_dict()
    model.load_state_dict({name: value for name, value in torch_state(state).items() if name in own})  # a tied one once
    return model


class Continuation:
    """Translations of a batch that are being written, as `minigrad.decode` searches them; the tokens of `never` do not come.

    C is the width, E that of a head.
    """

    @torch.inference_mode()
    def __init__(self, model: Translator, never: Sequence[int], sources: Sequence[Sequence[int]]):
        self.model, self.never, self.length = model, [*never], 0
        longest = max(map(len, sources))
        source = torch.tensor([[*some, *[PAD] * (longest - len(some))] for some in sources])  # (N, S)
        self.mask = (source != PAD)[:, None, None, :]
        memory = model.encoder(model.embedded(source), self.mask)  # (N, S, C)
        self.memories = [self._memory(block.cross_attention, memory) for block in model.decoder.blocks]
        self.caches: list[list[Tensor]] = [[] for _ in model.decoder.blocks]  # keys and values of each block
        self.sources = np.arange(len(sources))  # that each row translates

    def _memory(self, attention: CrossAttention, memory: Tensor) -> list[Tensor]:
        """Keys and values, each (N, h, S, E)."""
        return [apart(part, attention.heads) for part in attention.kv_proj(memory).chunk(2, dim=2)]

    @torch.inference_mode()
    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """The scores of what follows these tokens: (B, 1) -> (B, V)."""
        model = self.model
        x = model.embedding(torch.from_numpy(tokens)) * model.scale + model.positions[self.length : self.length + 1]
        self.length += 1
        for block, cache, memory in zip(model.decoder.blocks, self.caches, self.memories):
            x = x + self._attend(block.attention, block.attention_norm(x), cache)
            x = x + self._look(block.cross_attention, block.cross_norm(x), memory)
            x = x + block.mlp(block.mlp_norm(x))
        scores = F.linear(model.decoder.norm(x[:, -1]), model.embedding.weight)  # (B, C) -> (B, V)
        scores[:, self.never] = -torch.inf
        return scores.numpy()

    def _attend(self, attention: Attention, x: Tensor, cache: list[Tensor]) -> Tensor:
        q, *new = (apart(part, attention.heads) for part in attention.in_proj(x).chunk(3, dim=2))  # (B, h, 1, E)
        cache[:] = [torch.cat(pair, dim=2) for pair in zip(cache, new)] if cache else new  # (B, h, T, E)
        seen = F.scaled_dot_product_attention(q, *cache)
        return attention.out_proj(seen.transpose(1, 2).flatten(2))

    def _look(self, attention: CrossAttention, x: Tensor, memory: list[Tensor]) -> Tensor:
        seen = F.scaled_dot_product_attention(apart(attention.q_proj(x), attention.heads), *memory, self.mask)
        return attention.out_proj(seen.transpose(1, 2).flatten(2))

    def select(self, rows: np.ndarray) -> None:
        """Go on with these rows, in this order."""
        chosen, sources = torch.from_numpy(rows), self.sources[rows]
        for cache in self.caches:
            cache[:] = [part[chosen] for part in cache]
        if not np.array_equal(sources, self.sources):  # a sentence's beams have one memory
            self.mask = self.mask[chosen]
            for memory in self.memories:
                memory[:] = [part[chosen] for part in memory]
        self.sources = sources
