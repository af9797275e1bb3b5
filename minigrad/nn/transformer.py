"""The transformer: one block, and stacks of it, from which GPT, BERT and the translator are made.

GPT is `Encoder(…, causal=True)`, BERT is `Encoder(…)`, a translator is an `Encoder` and a `Decoder` that looks at what
the encoder made, its memory. B is the batch, L the length, S the length of the memory, C the width.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from ..engine.tensor import Tensor
from ..errors import ArgumentError, CallError, nearest
from .attention import KVCache, MultiHeadAttention
from .containers import ModuleList
from .dropouts import Dropout
from .layers import check_sizes
from .mlp import MLP
from .module import Module
from .normalization import LayerNorm, RMSNorm

__all__ = ["Decoder", "Encoder", "StackCache", "TransformerBlock"]


class BlockCache:
    """The key-value caches of one block: of the positions before, and of the memory."""

    def __init__(self) -> None:
        self.own, self.memory = KVCache(), KVCache()


class StackCache:
    """The key-value caches of a whole stack, made by `new_cache()` and handed to each call while generating."""

    def __init__(self, depth: int) -> None:
        self.blocks = [BlockCache() for _ in range(depth)]

    @property
    def length(self) -> int:
        """How many positions have been seen: the number of the next one."""
        return self.blocks[0].own.length

    def select(self, rows: Any) -> None:
        """Keep these rows of the batch, in this order, as a beam search does."""
        for block in self.blocks:
            block.own.select(rows)
            block.memory.select(rows)


def make_norm(kind: str, dim: int, eps: float | None, bias: bool, dtype: Any, device: str | None) -> Module:
    """A "layer" or "rms" norm over the width; eps is the norm's own default unless given."""
    if kind == "layer":
        return LayerNorm(dim, 1e-5 if eps is None else eps, bias=bias, dtype=dtype, device=device)
    if kind == "rms":
        return RMSNorm(dim, eps, dtype=dtype, device=device)
    raise ArgumentError(f"unknown norm {kind!r}", "'layer' or 'rms'", fix=nearest(kind, ["layer", "rms"]))


class TransformerBlock(Module):
    """Self-attention, cross-attention to a memory if `cross`, and an MLP, each added to what it was given.

    Pre-norm (`norm_first`) computes `x + part(norm(x))`, post-norm `norm(x + part(x))`. Dropout is where PyTorch has
    it: on attention weights, inside the MLP, and on what each part adds; `inner_dropout` is that of the first two where it
    is to differ, as in fairseq, which has none there. `hidden` is 4·dim unless given.

    >>> import minigrad as mg
    >>> block = mg.nn.TransformerBlock(8, heads=2, causal=True)
    >>> block(mg.randn(4, 5, 8)).shape
    (4, 5, 8)
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        hidden: int | None = None,
        *,
        activation: str = "gelu",
        dropout: float = 0.0,
        inner_dropout: float | None = None,
        norm_first: bool = True,
        norm: str = "layer",
        eps: float | None = None,
        causal: bool = False,
        cross: bool = False,
        memory_dim: int | None = None,
        rotary: Module | None = None,
        bias: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        place: dict[str, Any] = {"dtype": dtype, "device": device}
        inner = dropout if inner_dropout is None else inner_dropout
        self.norm_first, self.causal = norm_first, causal
        self.new_norm = partial(make_norm, norm, dim, eps, bias, dtype, device)
        self.attention_norm = self.new_norm()
        self.attention = MultiHeadAttention(dim, heads, bias=bias, dropout=inner, rotary=rotary, **place)
        self.cross_norm = self.new_norm() if cross else None
        self.cross_attention = None
        if cross:
            self.cross_attention = MultiHeadAttention(
                dim, heads, key_dim=memory_dim, value_dim=memory_dim, bias=bias, dropout=inner, **place
            )
        self.mlp_norm = self.new_norm()
        self.mlp = MLP(dim, 4 * dim if hidden is None else hidden, activation, bias, inner, **place)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Any,
        memory: Any = None,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        cache: BlockCache | None = None,
    ) -> Tensor:
        """(B, L, C), memory (B, S, C) -> (B, L, C). Masks broadcast to (B, h, L, L) and (B, h, L, S), True = may attend."""
        if (memory is None) != (self.cross_attention is None):
            wanted = "needs a memory to look at" if memory is None else "was made without cross-attention"
            raise ArgumentError(f"TransformerBlock: this block {wanted}", fix="give memory if and only if cross=True")
        own, remembered = (None, None) if cache is None else (cache.own, cache.memory)
        x = self._add(x, self.attention, self.attention_norm, mask=mask, is_causal=self.causal, cache=own)  # (B, L, C)
        if self.cross_attention is not None:  # (B, L, C), (B, S, C) -> (B, L, C)
            x = self._add(x, self.cross_attention, self.cross_norm, key=memory, mask=memory_mask, cache=remembered)
        return self._add(x, self.mlp, self.mlp_norm)  # (B, L, C) -> (B, L, hidden) -> (B, L, C)

    def _add(self, x: Any, part: Module, norm: Module | None, **given: Any) -> Tensor:
        """What a part makes of x, added to x, normalised before or after."""
        assert norm is not None
        if self.norm_first:
            return x + self.dropout(part(norm(x), **given))
        return norm(x + self.dropout(part(x, **given)))

    def extra_repr(self) -> str:
        return ("pre-norm" if self.norm_first else "post-norm") + (", causal" if self.causal else "")


class _Stack(Module):
    """Blocks one after the other, and a last norm if they are pre-norm, whose sum has not been normalised yet."""

    def __init__(self, depth: int, dim: int, heads: int, hidden: int | None, **options: Any):
        check_sizes(self, depth=depth, dim=dim, heads=heads)
        known = inspect.signature(TransformerBlock.__init__).parameters
        for option in options:
            if option not in known:
                raise CallError(f"{type(self).__name__} has no option {option!r}", fix=nearest(option, [*known][4:]))
        self.blocks = ModuleList(TransformerBlock(dim, heads, hidden, **options) for _ in range(depth))
        first = self.blocks[0]
        self.norm = first.new_norm() if first.norm_first else None

    def new_cache(self) -> StackCache:
        """An empty cache for generating position by position."""
        return StackCache(len(self.blocks))

    def _run(self, x: Any, cache: StackCache | None, **given: Any) -> Tensor:
        caches = [None] * len(self.blocks) if cache is None else cache.blocks
        for block, kept in zip(self.blocks, caches):
            x = block(x, cache=kept, **given)  # (B, L, C)
        return x if self.norm is None else self.norm(x)


class Encoder(_Stack):
    """A stack of blocks with self-attention: (B, L, C) -> (B, L, C). With `causal=True` it is GPT's.

    The options are TransformerBlock's. A pre-norm stack ends in a norm of its own, so that none is needed after it.
    With a cache, made by `new_cache()`, x holds only the positions that the cache has not seen.

    >>> import minigrad as mg
    >>> encoder = mg.nn.Encoder(2, dim=8, heads=2, norm_first=False)
    >>> encoder(mg.randn(4, 5, 8), mask=mg.nn.padding_mask([5, 3, 4, 1])).shape
    (4, 5, 8)
    """

    def __init__(self, depth: int, dim: int, heads: int, hidden: int | None = None, **options: Any):
        super().__init__(depth, dim, heads, hidden, **options)

    def forward(self, x: Any, *, mask: Any = None, cache: StackCache | None = None) -> Tensor:
        return self._run(x, cache, mask=mask)


class Decoder(_Stack):
    """A stack of causal blocks that also look at a memory: (B, L, C), (B, S, C) -> (B, L, C).

    As in Encoder, a pre-norm stack ends in a norm, and `new_cache()` makes a cache for generating.

    >>> import minigrad as mg
    >>> decoder = mg.nn.Decoder(2, dim=8, heads=2)
    >>> memory, seen = mg.randn(4, 6, 8), mg.nn.padding_mask([6, 3, 4, 1])
    >>> decoder(mg.randn(4, 5, 8), memory, memory_mask=seen).shape
    (4, 5, 8)
    """

    def __init__(
        self, depth: int, dim: int, heads: int, hidden: int | None = None, *, causal: bool = True, **options: Any
    ):
        super().__init__(depth, dim, heads, hidden, causal=causal, cross=True, **options)

    def forward(
        self, x: Any, memory: Any, *, mask: Any = None, memory_mask: Any = None, cache: StackCache | None = None
    ) -> Tensor:
        return self._run(x, cache, memory=memory, mask=mask, memory_mask=memory_mask)
