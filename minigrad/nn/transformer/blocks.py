"""The transformer: one block, and stacks of it, from which GPT, BERT and the translator are made.

GPT is `Encoder(…, causal=True)`, BERT is `Encoder(…)`, a translator is an `Encoder` and a `Decoder` that looks at what
the encoder made, its memory. B is the batch, L the length, S the length of the memory, C the width.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, CallError, nearest
from ..layers.containers import ModuleList
from ..layers.dropout import Dropout
from ..layers.experts import MixtureOfExperts
from ..layers.linear import check_sizes
from ..layers.mlp import MLP
from ..layers.normalization import LayerNorm, RMSNorm
from ..module import Module
from .attention import MultiHeadAttention
from .caches import BlockCache, StackCache
from .positions import RelativePositions
from .ssru import SSRU
from .stepping import step

__all__ = ["Decoder", "Encoder", "TransformerBlock"]


def make_norm(kind: str, dim: int, eps: float | None, bias: bool, dtype: Any, device: str | None) -> Module:
    """A "layer" or "rms" norm over the width; eps is the norm's own default unless given."""
    if kind == "layer":
        return LayerNorm(dim, 1e-5 if eps is None else eps, bias=bias, dtype=dtype, device=device)
    if kind == "rms":
        return RMSNorm(dim, eps, dtype=dtype, device=device)
    raise ArgumentError(f"unknown norm {kind!r}", "'layer' or 'rms'", fix=nearest(kind, ["layer", "rms"]))


class TransformerBlock(Module):
    """Self-attention, cross-attention to a memory if `cross`, and an MLP, each added to what it was given.

    Pre-norm (`norm_first`) computes `x + part(norm(x))`, post-norm `norm(x + part(x))`; with `sandwich` norms, a pre-norm
    block normalises what a part adds as well. With `parallel`, attention and MLP are given the same x, each through its own
    norm. Dropout is where PyTorch has it: on attention weights, inside the MLP, and on what each part adds; `inner_dropout`
    is that of the first two where it is to differ, as in fairseq, which has none there. `hidden` is 4·dim unless given.

    `attention_bias`, `out_bias` (of the last layer of an attention) and `mlp_bias` are `bias`, which is also that of the
    norms, unless given. With `recurrence="ssru"` an `nn.SSRU` takes the place of self-attention, with `experts` an
    `nn.MixtureOfExperts` that of the MLP, `active` of them for each position. The other options are those of
    `nn.MultiHeadAttention`.

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
        kv_heads: int | None = None,
        head_dim: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.0,
        inner_dropout: float | None = None,
        norm_first: bool = True,
        norm: str = "layer",
        eps: float | None = None,
        sandwich: bool = False,
        parallel: bool = False,
        causal: bool = False,
        cross: bool = False,
        memory_dim: int | None = None,
        rotary: Module | None = None,
        scale: float | None = None,
        qk_norm: str | None = None,
        window: int | None = None,
        softcap: float | None = None,
        recurrence: str | None = None,
        experts: int = 0,
        active: int = 2,
        bias: bool = True,
        attention_bias: bool | None = None,
        out_bias: bool | None = None,
        mlp_bias: bool | None = None,
        dtype: Any = None,
        device: str | None = None,
    ):
        _check_options(norm_first, sandwich, parallel, causal, cross, recurrence)
        place: dict[str, Any] = {"dtype": dtype, "device": device}
        inner = dropout if inner_dropout is None else inner_dropout
        self.dim = dim
        self.norm_first, self.causal, self.parallel = norm_first, causal, parallel
        self.new_norm = partial(make_norm, norm, dim, eps, bias, dtype, device)
        shared: dict[str, Any] = {
            "kv_heads": kv_heads, "head_dim": head_dim, "scale": scale, "dropout": inner, "out_bias": out_bias,
            "bias": bias if attention_bias is None else attention_bias, **place,
        }  # fmt: skip
        own: dict[str, Any] = {"rotary": rotary, "qk_norm": qk_norm, "eps": eps, "window": window, "softcap": softcap}
        self.attention_norm = self.new_norm()
        self.attention: Any = (
            SSRU(dim, **place) if recurrence else MultiHeadAttention(dim, heads, **own, **shared)
        )  # or what is in its place
        self.attention_post_norm = self.new_norm() if sandwich else None
        self.cross_norm = self.new_norm() if cross else None
        self.cross_attention = None
        if cross:
            self.cross_attention = MultiHeadAttention(dim, heads, key_dim=memory_dim, value_dim=memory_dim, **shared)
        self.cross_post_norm = self.new_norm() if sandwich and cross else None
        self.mlp_norm = self.new_norm()
        wide = bias if mlp_bias is None else mlp_bias
        hidden = 4 * dim if hidden is None else hidden
        self.mlp: Any = (
            MixtureOfExperts(dim, hidden, experts, active, activation, wide, **place)
            if experts
            else MLP(dim, hidden, activation, wide, inner, **place)
        )
        self.mlp_post_norm = self.new_norm() if sandwich else None
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Any,
        memory: Any = None,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        cache: BlockCache | None = None,
        positions: Any = None,
    ) -> Tensor:
        """(B, L, C), memory (B, S, C) -> (B, L, C). Masks broadcast to (B, h, L, L) and (B, h, L, S), True = may attend.

        `positions`, whole numbers (B, L), are for rotary positions; those after what the cache holds unless given.
        """
        if (memory is None) != (self.cross_attention is None):
            wanted = "needs a memory to look at" if memory is None else "was made without cross-attention"
            raise ArgumentError(f"TransformerBlock: this block {wanted}", fix="give memory if and only if cross=True")
        kept, remembered = (None, None) if cache is None else (cache.own, cache.memory)
        given: dict[str, Any] = {"cache": kept}
        if not isinstance(self.attention, SSRU):
            given |= {"mask": mask, "is_causal": self.causal, "positions": positions}
        elif mask is not None:
            raise ArgumentError(
                "TransformerBlock: a recurrence takes no mask",
                fix="pad after the tokens, where nothing of it reaches them, and leave mask out",
            )
        if self.parallel:
            attended = self._added(x, self.attention, self.attention_norm, self.attention_post_norm, **given)
            return x + attended + self._added(x, self.mlp, self.mlp_norm, self.mlp_post_norm)
        x = self._add(x, self.attention, self.attention_norm, self.attention_post_norm, **given)  # (B, L, C)
        if self.cross_attention is not None:  # (B, L, C), (B, S, C) -> (B, L, C)
            given = {"key": memory, "mask": memory_mask, "cache": remembered}
            x = self._add(x, self.cross_attention, self.cross_norm, self.cross_post_norm, **given)
        return self._add(x, self.mlp, self.mlp_norm, self.mlp_post_norm)  # (B, L, C) -> (B, L, hidden) -> (B, L, C)

    def _add(self, x: Any, part: Module, norm: Module | None, after: Module | None, **given: Any) -> Tensor:
        """What a part makes of x, added to x, normalised before or after."""
        assert norm is not None
        if self.norm_first:
            return x + self._added(x, part, norm, after, **given)
        return norm(x + self.dropout(part(x, **given)))

    def _added(self, x: Any, part: Module, norm: Module, after: Module | None, **given: Any) -> Tensor:
        """What a pre-norm part adds to x."""
        made = part(norm(x), **given)
        return self.dropout(made if after is None else after(made))

    def extra_repr(self) -> str:
        said = "pre-norm" if self.norm_first else "post-norm"
        return said + (", parallel" if self.parallel else "") + (", causal" if self.causal else "")


def _check_options(
    norm_first: bool, sandwich: bool, parallel: bool, causal: bool, cross: bool, recurrence: str | None
) -> None:
    if recurrence not in (None, "ssru"):
        raise ArgumentError(f"TransformerBlock: unknown recurrence {recurrence!r}", "None or 'ssru'")
    if recurrence and not causal:
        raise ArgumentError("TransformerBlock: a recurrence sees no position after its own", fix="give causal=True")
    if (sandwich or parallel) and not norm_first:
        what = "sandwich norms are" if sandwich else "a parallel block is"
        raise ArgumentError(f"TransformerBlock: {what} pre-norm", fix="give norm_first=True")
    if parallel and cross:
        raise ArgumentError("TransformerBlock: a parallel block has no cross-attention", fix="give parallel=False")


class _Stack(Module):
    """Blocks one after the other, and a last norm: unless told otherwise if they are pre-norm, whose sum has not been normalised yet."""

    def __init__(
        self,
        depth: int,
        dim: int,
        heads: int,
        hidden: int | None,
        relative: RelativePositions | None,
        final_norm: bool | None,
        options: dict[str, Any],
    ):
        check_sizes(self, depth=depth, dim=dim, heads=heads)
        known = inspect.signature(TransformerBlock.__init__).parameters
        for option in options:
            if option not in known:
                raise CallError(f"{type(self).__name__} has no option {option!r}", fix=nearest(option, [*known][4:]))
        self.blocks = ModuleList(
            TransformerBlock(dim, heads, hidden, **{**options, "window": window})
            for window in _windows(options.get("window"), depth)
        )
        first = self.blocks[0]
        self.relative = relative
        self.norm = first.new_norm() if (first.norm_first if final_norm is None else final_norm) else None

    def new_cache(self, room: int = 0) -> StackCache:
        """An empty cache for generating position by position, with room for so many; it grows where they are more."""
        return StackCache([block.attention.new_cache(room) for block in self.blocks])

    def _run(self, x: Any, cache: StackCache | None, mask: Any, **given: Any) -> Tensor:
        if cache is not None and (next_one := step(self, x, cache, mask, **given)) is not None:
            return next_one
        if self.relative is not None:
            past = 0 if cache is None else cache.length
            mask = self.relative.added(mask, x.shape[-2], past)
        caches = [None] * len(self.blocks) if cache is None else cache.blocks
        for block, kept in zip(self.blocks, caches):
            x = block(x, cache=kept, mask=mask, **given)  # (B, L, C)
        return x if self.norm is None else self.norm(x)


def _windows(given: Any, depth: int) -> list[int | None]:
    """The window of each block: one for all, or a list with one for each."""
    if not isinstance(given, (list, tuple)):
        return [given] * depth
    if len(given) != depth:
        raise ArgumentError("a list of windows has one for each block", f"{depth}", f"{len(given)}")
    return [*given]


class Encoder(_Stack):
    """A stack of blocks with self-attention: (B, L, C) -> (B, L, C). With `causal=True` it is GPT's.

    The options are TransformerBlock's; `window` may be a list with one for each block. A pre-norm stack ends in a norm of
    its own, so that none is needed after it; `final_norm` says otherwise. `relative` positions are added to the scores of
    every self-attention. With a cache, made by `new_cache()`, x holds only the positions that the cache has not seen.

    For rows that are padded on the left, give a mask of their tokens, and `positions` (B, L) that begin with each row's first token.

    >>> import minigrad as mg
    >>> encoder = mg.nn.Encoder(2, dim=8, heads=2, norm_first=False)
    >>> encoder(mg.randn(4, 5, 8), mask=mg.nn.padding_mask([5, 3, 4, 1])).shape
    (4, 5, 8)
    """

    def __init__(
        self,
        depth: int,
        dim: int,
        heads: int,
        hidden: int | None = None,
        *,
        relative: RelativePositions | None = None,
        final_norm: bool | None = None,
        **options: Any,
    ):
        super().__init__(depth, dim, heads, hidden, relative, final_norm, options)

    def forward(self, x: Any, *, mask: Any = None, cache: StackCache | None = None, positions: Any = None) -> Tensor:
        return self._run(x, cache, mask, positions=positions)


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
        self,
        depth: int,
        dim: int,
        heads: int,
        hidden: int | None = None,
        *,
        causal: bool = True,
        relative: RelativePositions | None = None,
        final_norm: bool | None = None,
        **options: Any,
    ):
        super().__init__(depth, dim, heads, hidden, relative, final_norm, {"causal": causal, "cross": True, **options})

    def forward(
        self,
        x: Any,
        memory: Any,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        cache: StackCache | None = None,
        positions: Any = None,
    ) -> Tensor:
        return self._run(x, cache, mask, memory=memory, memory_mask=memory_mask, positions=positions)
