"""The GPT of `gpt.py` in minigrad as one would write it who has no fused ops: mean, exp, max, where, matmul."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import minigrad as mg

from .gpt import Config, batches, weights
from .gpt_minigrad import GPT, training_step

EPSILON = 1e-5


def linear(part: Any, x: mg.Tensor) -> mg.Tensor:
    """(…, in) -> (…, out)."""
    return x @ part.weight.T + part.bias


def layer_norm(part: Any, x: mg.Tensor) -> mg.Tensor:
    """Along the last axis: (B, T, C) -> (B, T, C)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    var = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / mg.sqrt(var + EPSILON) * part.weight + part.bias


def mlp(part: Any, x: mg.Tensor) -> mg.Tensor:
    """With GELU, by its formula with tanh: (B, T, C) -> (B, T, 4·C) -> (B, T, C)."""
    h = linear(part.up, x)
    return linear(part.down, 0.5 * h * (1 + mg.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3))))


def attention(part: Any, x: mg.Tensor, causal: mg.Tensor) -> mg.Tensor:
    """Self-attention of several heads: (B, T, C), (T, T) -> (B, T, C)."""
    batch, length, width = x.shape
    packed = x @ part.in_proj_weight.T + part.in_proj_bias  # (B, T, C) -> (B, T, 3·C)
    heads = packed.reshape(batch, length, 3, part.heads, width // part.heads).transpose(2, 0, 3, 1, 4)
    q, k, v = heads[0], heads[1], heads[2]  # each (B, h, T, C/h)
    scores = mg.where(causal, q @ k.swapaxes(-1, -2) / math.sqrt(width // part.heads), -math.inf)  # (B, h, T, T)
    e = mg.exp(scores - scores.max(axis=-1, keepdims=True))
    seen = (e / e.sum(axis=-1, keepdims=True)) @ v  # (B, h, T, T) @ (B, h, T, C/h) -> (B, h, T, C/h)
    return linear(part.out_proj, seen.transpose(0, 2, 1, 3).reshape(batch, length, width))


class PlainGPT(GPT):
    """The same parameters, and another forward: tokens (B, T) -> logits (B, T, vocabulary)."""

    def forward(self, tokens: mg.Tensor) -> mg.Tensor:
        causal = mg.tril(mg.ones(tokens.shape[1], tokens.shape[1])) > 0
        x = self.tokens.weight[tokens] + self.positions.weight[: tokens.shape[1]]  # (B, T) -> (B, T, C)
        for block in self.encoder.blocks:
            x = x + attention(block.attention, layer_norm(block.attention_norm, x), causal)
            x = x + mlp(block.mlp, layer_norm(block.mlp_norm, x))
        return layer_norm(self.encoder.norm, x) @ self.tokens.weight.T  # (B, T, C) -> (B, T, vocabulary)


def loss(model: PlainGPT, batch: tuple[Any, Any]) -> dict[str, tuple[mg.Tensor, int]]:
    """The cross-entropy of one batch of tokens and targets, (B, T) each, summed, and over how many tokens."""
    tokens, targets = batch
    logits = model(mg.tensor(tokens))
    low = logits - logits.max(axis=-1, keepdims=True)
    scores = low - mg.log(mg.exp(low).sum(axis=-1, keepdims=True))  # (B, T, vocabulary)
    picked = mg.take_along_axis(scores, mg.tensor(targets)[..., None], axis=-1)
    return {"loss": (-picked.sum(), targets.size)}


def minigrad_step(config: Config, wrap: Callable[[Any], Any]) -> Callable[[], mg.Tensor]:
    """One step as the Trainer takes it; `wrap` is `mg.compile`, or leaves the loss as it is."""
    model = PlainGPT(config)
    model.load_state_dict({name: mg.tensor(array) for name, array in weights(config).items()})
    return training_step(model, wrap(loss), batches(config))
