"""Multi-head attention, its masks, its key-value cache, and a way to watch what it computes.

A mask is boolean, True = may attend, or floating and added to the scores. B is the batch, h the heads, L the queries, S the keys, C the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import kernels
from ..engine.backend import on_device_of
from ..engine.modes import no_grad
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError, GradientError, ShapeError
from ..ops.arithmetic import where
from ..ops.creation import arange, empty, eye
from ..ops.joining import _unstack
from ..random import next_key
from . import functional as F
from . import init
from .declaration import as_tensor
from .layers import Linear, check_sizes, new_parameter
from .module import Module

__all__ = ["AttentionCall", "KVCache", "MultiHeadAttention", "causal_mask", "padding_mask", "watch_attention"]


def causal_mask(size: int, past: int = 0, device: str | None = None) -> Tensor:
    """Which keys each query may attend to if none may look ahead: booleans (size, past + size), True = may attend.

    >>> import minigrad as mg
    >>> mg.nn.causal_mask(3).astype("int64")
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]])
    """
    keys = arange(past + size, device=device)
    return keys <= keys[past:].reshape(size, 1)


def padding_mask(given: Any, pad: int | None = None, *, size: int | None = None) -> Tensor:
    """Which keys are tokens and not padding: booleans (B, 1, 1, S), which fit any attention; True = may attend.

    `given` is either token numbers (B, S), with the number `pad` of the padding; or lengths (B,), with the padded
    `size` S, the greatest length unless given; or booleans (B, S), such as the mask of a `data.Padded`. Padding gets
    weight 0 and gradient 0 exactly; how much of it there is can change the last bit of a result all the same, since
    longer sums are added up in another order.

    >>> import minigrad as mg
    >>> mg.nn.padding_mask([[5, 6, 0], [7, 0, 0]], pad=0).tolist()
    [[[[True, True, False]]], [[[True, False, False]]]]
    >>> mg.nn.padding_mask([2, 1], size=3).tolist()
    [[[[True, True, False]]], [[[True, False, False]]]]
    """
    x = as_tensor(given)
    if x.dtype.kind == "b" and x.ndim == 2 and pad is None and size is None:
        return x.reshape(x.shape[0], 1, 1, x.shape[1])
    if x.dtype.kind not in "iu" or x.ndim != (1 if pad is None else 2):
        expected = "whole numbers: token numbers (B, S) with pad=…, or lengths (B,) without; or booleans (B, S) alone"
        raise ShapeError("padding_mask: these are neither token numbers nor lengths", expected, f"{x.shape} {x.dtype}")
    if pad is not None:
        if size is not None:
            raise ArgumentError(
                "padding_mask: token numbers have their size already", fix="give size with lengths only"
            )
        return (x != pad).reshape(x.shape[0], 1, 1, x.shape[1])
    lengths = [int(n) for n in x.numpy()]
    size = max(lengths, default=0) if size is None else size
    for length in lengths:
        if not 0 <= length <= size:
            raise ArgumentError("padding_mask: this cannot be a length", f"0 to {size}, the padded size", length)
    return arange(size, device=x.device) < x.reshape(-1, 1, 1, 1)  # (S,) < (B, 1, 1, 1) -> (B, 1, 1, S)


class KVCache:
    """A key-value cache: what one attention has computed, so that a new token costs one row and not the whole past.

    In self-attention each call adds the rows of its tokens; in cross-attention the first call fills the cache, and
    later ones compute nothing. `keys` and `values` are (B, h, length, C/h), or None while the cache is empty.
    """

    def __init__(self) -> None:
        self.length = 0
        self._stores: list[Tensor] = []  # keys and values, (B, h, at least length, C/h)

    @property
    def keys(self) -> Tensor | None:
        """What queries are compared with: (B, h, length, C/h)."""
        return self._stores[0][:, :, : self.length] if self._stores else None

    @property
    def values(self) -> Tensor | None:
        """What is added up: (B, h, length, C/h)."""
        return self._stores[1][:, :, : self.length] if self._stores else None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the rows of new tokens, (B, h, new, C/h) each; returns all keys and all values."""
        if keys.requires_grad or values.requires_grad:
            raise GradientError(
                "KVCache: keys and values that are being recorded cannot be cached",
                fix="generate inside `with mg.no_grad():`",
            )
        if not self._stores:
            self._stores, self.length = [keys, values], keys.shape[2]
            return keys, values
        start, stop = self.length, self.length + keys.shape[2]
        stores = [_with_rows(old, new, start, stop) for old, new in zip(self._stores, (keys, values))]
        self._stores, self.length = stores, stop
        return wrap(stores[0].data[:, :, :stop]), wrap(stores[1].data[:, :, :stop])

    def select(self, rows: Any) -> None:
        """Keep these rows of the batch, in this order, as a beam search does; a row may come more than once."""
        self._stores = [store[rows] for store in self._stores]


def _with_rows(store: Tensor, new: Tensor, start: int, stop: int) -> Tensor:
    """The buffer with new rows written in place; a full one is doubled, so that appending a row costs the same on average.

    Only the cache knows the memory that is written to, and no graph does, so it is done without asking the engine.
    """
    batch, heads, room, width = store.shape
    if new.shape != (batch, heads, stop - start, width) or new.dtype != store.dtype:
        got = f"{new.shape} {new.dtype}"
        raise ShapeError("KVCache: new rows do not fit", f"({batch}, {heads}, new, {width}) {store.dtype}", got)
    if room < stop:
        larger = empty(batch, heads, 2 * stop, width, dtype=store.dtype, device=store.device)
        larger[:, :, :start] = store[:, :, :start]
        store = larger
    with on_device_of(store.data):
        store.data[:, :, start:stop] = new.data
    return store


class MultiHeadAttention(Module):
    """Every query looks at all keys it may attend to, with several heads that each see C/h of the width.

    Called with a query (B, L, C) alone it is self-attention. With key (B, S, key_dim) and value (B, S, value_dim; the
    key unless given) it is cross-attention. The result is (B, L, C).

    The three projections are rows of one matrix (3·C, C), under PyTorch's names, so that self-attention is one large
    product instead of three, and `load_state_dict` takes the state of `torch.nn.MultiheadAttention` as it is. Where
    `key_dim` or `value_dim` differ from `dim`, there are three matrices, as in PyTorch.

    >>> import minigrad as mg
    >>> attention = mg.nn.MultiHeadAttention(8, heads=2)
    >>> x = mg.randn(4, 5, 8)
    >>> attention(x, mask=mg.nn.padding_mask([5, 3, 4, 1]), is_causal=True).shape
    (4, 5, 8)
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary: Module | None = None,
        dtype: Any = None,
        device: str | None = None,
    ):
        key_dim, value_dim = dim if key_dim is None else key_dim, dim if value_dim is None else value_dim
        check_sizes(self, dim=dim, heads=heads, key_dim=key_dim, value_dim=value_dim)
        if dim % heads:
            raise ArgumentError(
                "MultiHeadAttention: the width does not divide among the heads", f"a multiple of {heads}", dim
            )
        if not 0 <= dropout <= 1:
            raise ArgumentError("MultiHeadAttention: dropout is a probability", "0 to 1", dropout)
        self.dim, self.heads, self.key_dim, self.value_dim, self.dropout = dim, heads, key_dim, value_dim, dropout
        self.rotary = rotary
        if key_dim == value_dim == dim:
            self.in_proj_weight = new_parameter((3 * dim, dim), dtype, device)
        else:
            self.q_proj_weight = new_parameter((dim, dim), dtype, device)
            self.k_proj_weight = new_parameter((dim, key_dim), dtype, device)
            self.v_proj_weight = new_parameter((dim, value_dim), dtype, device)
        self.in_proj_bias = new_parameter((3 * dim,), dtype, device) if bias else None
        self.out_proj = Linear(dim, dim, bias, dtype, device)
        self.watchers: tuple[Callable[[AttentionCall], None], ...] = ()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew as PyTorch does: Xavier's for the three projections, and no biases."""
        self.out_proj.reset_parameters()
        for name, parameter in self.named_parameters():
            if name.endswith("proj_weight"):
                init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                init.zeros_(parameter)

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        mask: Any = None,
        is_causal: bool = False,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Attend; `is_causal` forbids looking ahead.

        `mask` is (L, S) or broadcasts to (B, h, L, S): boolean, or floating and added to the scores.
        """
        key = query if key is None else key
        value = key if value is None else value
        is_own = key is query and value is query
        if is_own:
            query = key = value = as_tensor(query)
        else:
            tensors = {id(x): as_tensor(x) for x in (query, key, value)}  # what was one object stays one
            query, key, value = (tensors[id(x)] for x in (query, key, value))
        mask = as_tensor(mask)
        self._check(query, key, value, mask, is_own, is_causal)
        dropped = self.dropout if self.training else 0.0
        is_learned = mask is not None and mask.requires_grad
        if is_own and self._is_fused and self.rotary is None and cache is None and not is_learned:
            return self.out_proj(self._attend_to_itself(query, mask, is_causal, dropped))
        past = cache.length if cache is not None and is_own else 0
        queries, keys, values = self._heads(query, key, value, is_own, cache, past)
        if is_causal and past:  # the plain function takes the first query for the first position
            is_causal = False
            if query.shape[1] > 1:  # a single one may look at everything there is
                ahead = causal_mask(query.shape[1], past, queries.device)
                mask = ahead if mask is None else where(ahead, mask, False if mask.dtype.kind == "b" else -math.inf)
        if self.watchers:
            self._show(queries, keys, values, mask, is_causal)
        seen = F.scaled_dot_product_attention(queries, keys, values, mask, is_causal=is_causal, dropout_p=dropped)
        together = seen.transpose(0, 2, 1, 3).reshape(*query.shape)  # (B, h, L, C/h) -> (B, L, C)
        return self.out_proj(together)

    def _attend_to_itself(self, x: Tensor, mask: Any, is_causal: bool, dropped: float) -> Tensor:
        """The usual case without parting the heads in memory: (B, L, C) -> (B, L, 3·C) -> (B, L, C)."""
        batch, length, _ = x.shape
        packed = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        if mask is not None:
            F.check_mask("MultiHeadAttention", mask, (batch, self.heads, length, length))
        if self.watchers:
            heads = packed.detach().reshape(batch, length, 3, self.heads, self.dim // self.heads)
            queries, keys, values = heads.transpose(2, 0, 3, 1, 4)  # each (B, h, L, C/h)
            self._show(queries, keys, values, mask, is_causal)
        draw, start = next_key(batch * self.heads * length * length) if dropped else (0, 0)
        options = {"heads": self.heads, "causal": is_causal, "scale": (self.dim // self.heads) ** -0.5}
        return kernels.packed_attention(packed, mask, **options, dropout_p=dropped, dropout_key=draw, start=start)

    def _heads(
        self, query: Any, key: Any, value: Any, is_own: bool, cache: KVCache | None, past: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The queries (B, h, L, C/h) of this call, and the keys and values (B, h, S, C/h) of this and earlier ones."""
        if is_own and self._is_fused:
            queries, keys, values = self._project(query, 0, 3)
        else:
            (queries,) = self._project(query, 0, 1)
            if not is_own and cache is not None and cache.keys is not None and cache.values is not None:
                return queries, cache.keys, cache.values
            if key is value and self._is_fused:
                keys, values = self._project(key, 1, 3)
            else:
                (keys,), (values,) = self._project(key, 1, 2), self._project(value, 2, 3)
        if self.rotary is not None:
            queries, keys = self.rotary(queries, keys, past)
        if cache is not None:
            keys, values = cache.append(keys, values)
        return queries, keys, values

    @property
    def _is_fused(self) -> bool:
        return hasattr(self, "in_proj_weight")

    def _project(self, x: Any, first: int, last: int) -> tuple[Tensor, ...]:
        """The projections from `first` to before `last` of query, key, value: (B, L, …) -> each (B, h, L, C/h)."""
        rows = slice(first * self.dim, last * self.dim)
        whole = last - first == 3
        if self._is_fused:
            weight: Tensor = self.in_proj_weight if whole else self.in_proj_weight[rows]
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[first]
        bias = self.in_proj_bias if whole or self.in_proj_bias is None else self.in_proj_bias[rows]
        projected = F.linear(x, weight, bias)  # (B, L, n·C)
        apart = projected.reshape(*projected.shape[:2], last - first, self.heads, self.dim // self.heads)
        return _unstack(apart.transpose(2, 0, 3, 1, 4), axis=0)  # (B, L, n, h, C/h) -> n × (B, h, L, C/h)

    def _show(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Any, is_causal: bool) -> None:
        """Give a call to the watchers. Its weights are the output of attention for an identity matrix as values."""
        with no_grad():
            identity = eye(keys.shape[-2], dtype=keys.dtype, device=keys.device)
            weights = F.scaled_dot_product_attention(queries, keys, identity, mask, is_causal=is_causal)
        scale = (self.dim // self.heads) ** -0.5
        call = AttentionCall(queries.detach(), keys.detach(), values.detach(), weights, mask, is_causal, scale)
        for watcher in self.watchers:
            watcher(call)

    def _check(self, query: Any, key: Any, value: Any, mask: Any, is_own: bool, is_causal: bool) -> None:
        sizes = {"query": (query, self.dim), "key": (key, self.key_dim), "value": (value, self.value_dim)}
        for name, (x, size) in sizes.items():
            if x.ndim != 3 or x.shape[-1] != size:
                raise ShapeError(f"MultiHeadAttention: the {name} does not fit", f"(batch, length, {size})", x.shape)
        if not is_own and (is_causal or self.rotary is not None):
            what = "is_causal" if is_causal else "rotary"
            raise ArgumentError(
                f"MultiHeadAttention: {what} is for self-attention, where queries and keys are the same positions",
                fix="leave key and value out" + (", or say with a mask what may be attended to" if is_causal else ""),
            )
        if mask is None:
            return
        if mask.ndim not in (2, 4):
            raise ShapeError(
                "MultiHeadAttention: it is not clear which axes this mask has",
                "(L, S), or (B, h, L, S) with 1 for axes that do not matter",
                mask.shape,
                "for (B, L, S) give mask[:, None]; for padding use nn.padding_mask, which makes (B, 1, 1, S)",
            )
        if mask.ndim == 2:
            _check_rows(mask, query.shape[0], query.shape[1])

    def extra_repr(self) -> str:
        cross = "" if self._is_fused else f", key_dim={self.key_dim}, value_dim={self.value_dim}"
        return f"{self.dim}, heads={self.heads}{cross}" + (f", dropout={self.dropout}" if self.dropout else "")


def _check_rows(mask: Tensor, batch: int, length: int) -> None:
    """Refuse a mask (B, S) where (L, S) is meant; where B = L, refuse what could be either, unless it looks causal."""
    rows, keys = mask.shape
    fix = "for padding, (B, S), give nn.padding_mask(mask), or mask[:, None, None, :]"
    if rows not in (1, length):
        raise ShapeError("MultiHeadAttention: a mask with two axes is (L, S)", f"({length}, S)", mask.shape, fix)
    if not 1 < rows == batch or not (mask != mask[:1]).any():
        return
    mask = mask if mask.dtype.kind == "b" else mask != -math.inf
    if keys < rows or (mask != causal_mask(rows, keys - rows, mask.device)).any():
        raise ShapeError(
            "MultiHeadAttention: with as many sentences as queries, this mask could be (L, S) or (B, S)",
            "(B, h, L, S) with 1 for axes that do not matter",
            mask.shape,
            f"{fix}; for (L, S) give mask[None, None]",
        )


@dataclass(frozen=True)
class AttentionCall:
    """What one call of an attention computed with, as constants: `weights = softmax(scale · queries @ keysᵀ)` where it may look.

    Queries are (B, h, L, C/h), keys and values (B, h, S, C/h), after rotary positions and with what a cache held;
    weights are (B, h, L, S), before dropout. The mask is None, or booleans (L, S) or broadcasting to (B, h, L, S).
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    weights: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float


@contextmanager
def watch_attention(model: Module, stages: bool = False) -> Iterator[dict[str, list[Any]]]:
    """Collect the attention weights of a model: {path of each attention: [weights (B, h, L, S) of each call]}.

    They are the weights before dropout, as constants. With `stages`, each call is an `AttentionCall`, which has the
    queries, keys, values and mask as well. Without a watcher nothing is kept or computed.

    >>> import minigrad as mg
    >>> attention = mg.nn.MultiHeadAttention(4, heads=2)
    >>> with mg.nn.watch_attention(mg.nn.Sequential(attention)) as seen:
    ...     _ = attention(mg.randn(1, 3, 4))
    >>> {path: [weights.shape for weights in calls] for path, calls in seen.items()}
    {'0': [(1, 2, 3, 3)]}
    """
    watched = {path: part for path, part in model.named_modules() if isinstance(part, MultiHeadAttention)}
    seen: dict[str, list[Any]] = {path: [] for path in watched}
    watchers = {path: _collector(seen[path], stages) for path in watched}
    for path, part in watched.items():
        part.watchers = (*part.watchers, watchers[path])
    try:
        yield seen
    finally:
        for path, part in watched.items():
            part.watchers = tuple(other for other in part.watchers if other is not watchers[path])


def _collector(calls: list[Any], stages: bool) -> Callable[[AttentionCall], None]:
    return lambda call: calls.append(call if stages else call.weights)
