"""Multi-head attention, and a way to watch what it computes.

B is the batch, h the heads, L the queries, S the keys, C the width, E that of one head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ... import kernels
from ...engine.modes import no_grad
from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.creation import eye
from ...ops.layout.joining import _unstack, split
from ...ops.layout.shape import broadcast_to
from ...random import next_key
from .. import functional as F
from .. import init
from ..functional.attention import check_mask
from ..functional.declaration import as_tensor
from ..layers.linear import Linear, check_sizes, new_parameter
from ..layers.normalization import RMSNorm
from ..module import Module
from .caches import KVCache
from .masks import causal_mask, check_rows, restricted

__all__ = ["AttentionCall", "MultiHeadAttention", "watch_attention"]


class MultiHeadAttention(Module):
    """Every query looks at all keys it may attend to, with several heads that each see a part of the width.

    Called with a query (B, L, C) alone it is self-attention. With key (B, S, key_dim) and value (B, S, value_dim; the
    key unless given) it is cross-attention. The result is (B, L, C).

    The three projections are rows of one matrix (3·C, C), under PyTorch's names, so that self-attention is one large
    product instead of three, and `load_state_dict` takes the state of `torch.nn.MultiheadAttention` as it is. Where
    `key_dim` or `value_dim` differ from `dim`, there are three matrices, as in PyTorch.

    A head is `head_dim` wide, C / heads unless given. With fewer `kv_heads` than heads, each key and value is shared by
    neighbouring query heads, and the cache is smaller: the rows of the matrix are `heads · head_dim` of queries, then
    `kv_heads · head_dim` each of keys and of values. Scores are multiplied by `scale`, 1 / √head_dim unless given;
    a `softcap` c then makes them `c · tanh(x / c)`. With `qk_norm="rms"` queries and keys are normalised, each by its own
    RMSNorm, before `rotary` turns them. With a `window`, a causal position sees itself and the `window - 1` before it.

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
        kv_heads: int | None = None,
        head_dim: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        bias: bool = True,
        out_bias: bool | None = None,
        dropout: float = 0.0,
        rotary: Module | None = None,
        scale: float | None = None,
        qk_norm: str | None = None,
        eps: float | None = None,
        window: int | None = None,
        softcap: float | None = None,
        dtype: Any = None,
        device: str | None = None,
    ):
        key_dim, value_dim = dim if key_dim is None else key_dim, dim if value_dim is None else value_dim
        kv_heads = heads if kv_heads is None else kv_heads
        check_sizes(self, dim=dim, heads=heads, kv_heads=kv_heads, key_dim=key_dim, value_dim=value_dim)
        _check_options(dim, heads, kv_heads, head_dim, dropout, qk_norm, softcap)
        head_dim = dim // heads if head_dim is None else head_dim
        check_sizes(self, head_dim=head_dim, window=1 if window is None else window)
        self.dim, self.heads, self.key_dim, self.value_dim, self.dropout = dim, heads, key_dim, value_dim, dropout
        self.kv_heads, self.head_dim, self.window, self.softcap = kv_heads, head_dim, window, softcap
        self.scale = head_dim**-0.5 if scale is None else scale
        self.rotary = rotary
        own, shared = heads * head_dim, kv_heads * head_dim  # rows of queries, and of keys or values
        if key_dim == value_dim == dim:
            self.in_proj_weight = new_parameter((own + 2 * shared, dim), dtype, device)
        else:
            self.q_proj_weight = new_parameter((own, dim), dtype, device)
            self.k_proj_weight = new_parameter((shared, key_dim), dtype, device)
            self.v_proj_weight = new_parameter((shared, value_dim), dtype, device)
        self.in_proj_bias = new_parameter((own + 2 * shared,), dtype, device) if bias else None
        self.out_proj = Linear(own, dim, bias if out_bias is None else out_bias, dtype, device)
        self.q_norm = RMSNorm(head_dim, eps, dtype=dtype, device=device) if qk_norm else None
        self.k_norm = RMSNorm(head_dim, eps, dtype=dtype, device=device) if qk_norm else None
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

    def new_cache(self, room: int = 0) -> KVCache:
        """An empty cache, with room for so many positions, for generating position by position."""
        return KVCache(room)

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        mask: Any = None,
        is_causal: bool = False,
        cache: KVCache | None = None,
        positions: Any = None,
    ) -> Tensor:
        """Attend; `is_causal` forbids looking ahead.

        `mask` is (L, S) or broadcasts to (B, h, L, S): boolean, or floating and added to the scores. `positions` are the
        places of the tokens for `rotary`, whole numbers (B, L); those after what the cache holds unless given.
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
        past = cache.length if cache is not None and is_own else 0
        if is_causal:
            mask, is_causal = self._restricted(mask, query, past), not past
        dropped = self.dropout if self.training else 0.0
        is_learned = mask is not None and mask.requires_grad
        if is_own and cache is None and self._is_plain and not is_learned:
            return self.out_proj(self._attend_to_itself(query, mask, is_causal, dropped))
        queries, keys, values = self._heads(query, key, value, is_own, cache, past, positions)
        if (
            self.window is not None and past and query.shape[1] == 1 and not self.watchers
        ):  # what it sees is in one piece
            keys, values = keys[:, :, -self.window :], values[:, :, -self.window :]
            mask = mask if mask is None or mask.shape[-1] == 1 else mask[..., -self.window :]
        if self.watchers:
            self._show(queries, keys, values, mask, is_causal)
        seen = F.scaled_dot_product_attention(
            queries, keys, values, mask, is_causal=is_causal, dropout_p=dropped, **self._options
        )
        size = self.heads * self.head_dim
        together = seen.transpose(0, 2, 1, 3).reshape(*query.shape[:2], size)  # (B, h, L, E) -> (B, L, h·E)
        return self.out_proj(together)

    def _restricted(self, mask: Tensor | None, query: Tensor, past: int) -> Tensor | None:
        """The mask with what plain causal attention does not know: what was before the first query, and the window."""
        length = query.shape[1]
        is_limited = self.window is not None and past + length > self.window
        if (past and length > 1) or (is_limited and (length > 1 or self.watchers)):
            return restricted(mask, causal_mask(length, past, query.device, window=self.window))
        return mask

    @property
    def _options(self) -> dict[str, Any]:
        return {"scale": self.scale, "softcap": self.softcap, "enable_gqa": self.kv_heads != self.heads}

    @property
    def _is_plain(self) -> bool:
        """Whether queries, keys and values can be used just as one product makes them."""
        return self._is_fused and self.kv_heads == self.heads and self.rotary is None and self.q_norm is None

    def _attend_to_itself(self, x: Tensor, mask: Any, is_causal: bool, dropped: float) -> Tensor:
        """The usual case without parting the heads in memory: (B, L, C) -> (B, L, 3·h·E) -> (B, L, h·E)."""
        batch, length, _ = x.shape
        packed = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        if mask is not None:
            check_mask("MultiHeadAttention", mask, (batch, self.heads, length, length))
        if self.watchers:
            heads = packed.detach().reshape(batch, length, 3, self.heads, self.head_dim)
            queries, keys, values = heads.transpose(2, 0, 3, 1, 4)  # each (B, h, L, E)
            self._show(queries, keys, values, mask, is_causal)
        draw, start = next_key((batch, self.heads, length, length)) if dropped else (0, 0)
        options = {"heads": self.heads, "causal": is_causal, "scale": self.scale, "softcap": self.softcap}
        return kernels.packed_attention(packed, mask, **options, dropout_p=dropped, dropout_key=draw, start=start)

    def _heads(
        self, query: Any, key: Any, value: Any, is_own: bool, cache: KVCache | None, past: int, positions: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The queries (B, h, L, E) of this call, and the keys and values (B, kv_heads, S, E) of this and earlier ones."""
        if is_own and self._is_fused:
            queries, keys, values = self._project(query, 0, 3)
        else:
            (queries,) = self._project(query, 0, 1)
            if not is_own and cache is not None and cache.keys is not None and cache.values is not None:
                return queries if self.q_norm is None else self.q_norm(queries), cache.keys, cache.values
            if key is value and self._is_fused:
                keys, values = self._project(key, 1, 3)
            else:
                (keys,), (values,) = self._project(key, 1, 2), self._project(value, 2, 3)
        if self.q_norm is not None and self.k_norm is not None:
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        if self.rotary is not None:
            given = {} if positions is None else {"positions": positions}
            queries, keys = self.rotary(queries, keys, past, **given)
        if cache is not None:
            keys, values = cache.append(keys, values)
        return queries, keys, values

    @property
    def _is_fused(self) -> bool:
        return hasattr(self, "in_proj_weight")

    def _project(self, x: Any, first: int, last: int) -> tuple[Tensor, ...]:
        """The projections from `first` to before `last` of query, key, value: (B, L, …) -> each (B, heads of it, L, E)."""
        edges = [0, self.heads, self.heads + self.kv_heads, self.heads + 2 * self.kv_heads]
        rows = slice(edges[first] * self.head_dim, edges[last] * self.head_dim)
        whole = last - first == 3
        if self._is_fused:
            weight: Tensor = self.in_proj_weight if whole else self.in_proj_weight[rows]
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[first]
        bias = self.in_proj_bias if whole or self.in_proj_bias is None else self.in_proj_bias[rows]
        projected = F.linear(x, weight, bias)  # (B, L, heads of all · E)
        if self.kv_heads == self.heads:
            apart = projected.reshape(*projected.shape[:2], last - first, self.heads, self.head_dim)
            return _unstack(apart.transpose(2, 0, 3, 1, 4), axis=0)  # (B, L, n, h, E) -> n × (B, h, L, E)
        apart = projected.reshape(*projected.shape[:2], edges[last] - edges[first], self.head_dim)
        heads = apart.transpose(0, 2, 1, 3)  # (B, heads of all, L, E)
        cuts = [edge - edges[first] for edge in edges[first + 1 : last]]
        return split(heads, indices_or_sections=cuts, axis=1) if cuts else (heads,)

    def _show(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Any, is_causal: bool) -> None:
        """Give a call to the watchers. Its weights are the output of attention for an identity matrix as values."""
        size = keys.shape[-2]
        with no_grad():
            identity = eye(size, dtype=keys.dtype, device=keys.device)
            identity = broadcast_to(identity, shape=(*keys.shape[:2], size, size))
            weights = F.scaled_dot_product_attention(
                queries, keys, identity, mask, is_causal=is_causal, **self._options
            )
        constants = queries.detach(), keys.detach(), values.detach()
        call = AttentionCall(*constants, weights, mask, is_causal, self.scale, self.softcap)
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
        if self.window is not None and not is_causal:
            raise ArgumentError("MultiHeadAttention: a window is for causal attention", fix="give is_causal=True")
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
            check_rows(mask, query.shape[0], query.shape[1])

    def extra_repr(self) -> str:
        said = f"{self.dim}, heads={self.heads}"
        said += f", kv_heads={self.kv_heads}" if self.kv_heads != self.heads else ""
        said += f", head_dim={self.head_dim}" if self.head_dim * self.heads != self.dim else ""
        said += "" if self._is_fused else f", key_dim={self.key_dim}, value_dim={self.value_dim}"
        said += f", window={self.window}" if self.window is not None else ""
        return said + (f", dropout={self.dropout}" if self.dropout else "")


def _check_options(
    dim: int, heads: int, kv_heads: int, head_dim: int | None, dropout: float, qk_norm: Any, softcap: float | None
) -> None:
    if head_dim is None and dim % heads:
        raise ArgumentError(
            "MultiHeadAttention: the width does not divide among the heads", f"a multiple of {heads}", dim
        )
    if heads % kv_heads:
        raise ArgumentError(
            "MultiHeadAttention: the heads do not divide among the key-value heads", f"a divisor of {heads}", kv_heads
        )
    if not 0 <= dropout <= 1:
        raise ArgumentError("MultiHeadAttention: dropout is a probability", "0 to 1", dropout)
    if qk_norm not in (None, "rms"):
        raise ArgumentError(f"MultiHeadAttention: unknown qk_norm {qk_norm!r}", "None or 'rms'")
    if softcap is not None and not softcap > 0:
        raise ArgumentError("MultiHeadAttention: softcap is a positive number, or None", "such as 50.0", softcap)


@dataclass(frozen=True)
class AttentionCall:
    """What one call of an attention computed with, as constants: `weights = softmax(scale · queries @ keysᵀ)` where it may look.

    Queries are (B, h, L, E), keys and values (B, kv_heads, S, E), after norms and rotary positions and with what a cache
    held; query head i reads key head `i // (h / kv_heads)`. Weights are (B, h, L, S), before dropout. The mask is None, or
    broadcasts to (B, h, L, S). With a `softcap`, scores x were `softcap · tanh(x / softcap)` before the mask.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    weights: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float
    softcap: float | None = None


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
