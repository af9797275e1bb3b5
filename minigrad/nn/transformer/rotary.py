"""Rotary position embeddings (RoPE), in both conventions, of some or all columns, and scaled to longer contexts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, nearest
from ...ops.layout.joining import concatenate
from ...ops.layout.shape import flip
from .positions import Angles, sequence

__all__ = ["RotaryPositions"]

STYLES = ("interleaved", "half")


class RotaryPositions(Angles):
    """Rotates pairs of columns of queries and keys by the angle `position / base^(2i / rotary_dim)`: (…, T, dim) -> the same.

    A pair is columns 2i and 2i + 1 if the style is "interleaved", as in the paper, and i and i + rotary_dim / 2 if it is
    "half", as in Hugging Face's models. `rotary_dim` is how many columns are rotated, the first ones; all unless given.
    `scaling` is Hugging Face's `rope_scaling`, of the types linear, llama3 and yarn.

    The product of a rotated query and a rotated key depends only on how far apart they stand.
    """

    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        *,
        style: str = "interleaved",
        rotary_dim: int | None = None,
        scaling: Mapping[str, Any] | None = None,
    ):
        super().__init__(dim, base)
        self.style, self.rotary_dim = style, dim if rotary_dim is None else rotary_dim
        if style not in STYLES:
            raise ArgumentError(f"RotaryPositions: unknown style {style!r}", " or ".join(map(repr, STYLES)))
        if self.rotary_dim % 2 or not 0 < self.rotary_dim <= dim:
            name = "dim" if rotary_dim is None else f"rotary_dim up to {dim}"
            raise ArgumentError("RotaryPositions: columns are rotated in pairs", f"an even {name}", self.rotary_dim)
        self.scaling = dict(scaling) if scaling else None
        self._periods, self._factor = _scaled(base, self.rotary_dim, self.scaling or {"rope_type": "default"})

    def periods(self) -> np.ndarray:
        return self._periods

    def _columns(self, angles: np.ndarray) -> np.ndarray:
        """Cosines and sines for each column of a pair: (…, pairs) -> (…, 2 rotary_dim); the first column of a pair gets minus the second."""
        cos, sin = self._factor * np.cos(angles), self._factor * np.sin(angles)
        axis = -2 if self.style == "half" else -1
        both = [
            np.stack(pair, axis=axis).reshape(*angles.shape[:-1], self.rotary_dim) for pair in ((cos, cos), (-sin, sin))
        ]
        return np.concatenate(both, axis=-1)

    def forward(self, query: Any, key: Any, start: int = 0, positions: Any = None) -> tuple[Tensor, Tensor]:
        """Query and key, whose first tokens stand at position `start`, or whose tokens stand at `positions` (B, T), both rotated."""
        return self._rotated(query, start, positions), self._rotated(key, start, positions)

    def _rotated(self, input: Any, start: int, positions: Any) -> Tensor:
        x = sequence(self, input, self.dim)
        rows, size = self.rows(start, x.shape[-2], positions, x), self.rotary_dim
        if positions is not None and x.ndim > 3:
            rows = rows.reshape(rows.shape[0], *[1] * (x.ndim - 3), *rows.shape[1:])  # (B, T, …) -> (B, 1, T, …)
        if size == self.dim:
            return self._turned(x, rows)
        return concatenate([self._turned(x[..., :size], rows), x[..., size:]], axis=-1)

    def _turned(self, x: Tensor, rows: Tensor) -> Tensor:
        """`x · cos + (the other column of its pair) · sin`: (…, T, rotary_dim) -> the same."""
        size, axis = self.rotary_dim, -2 if self.style == "half" else -1
        shape = (2, size // 2) if self.style == "half" else (size // 2, 2)
        pairs = x.reshape(*x.shape[:-1], *shape)
        cos, sin = (part.reshape(*part.shape[:-1], *shape) for part in (rows[..., :size], rows[..., size:]))
        turned: Tensor = pairs * cos + flip(pairs, axis=axis) * sin
        return turned.reshape(*x.shape)

    def extra_repr(self) -> str:
        said = f"{self.dim}, base={self.base}"
        said += "" if self.style == "interleaved" else f", style={self.style!r}"
        said += "" if self.rotary_dim == self.dim else f", rotary_dim={self.rotary_dim}"
        return said + ("" if self.scaling is None else f", scaling={self.scaling}")


def _scaled(base: float, dim: int, scaling: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    """The periods (pairs,) after scaling, and what cosines and sines are multiplied with."""
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind not in SCALINGS:
        raise ArgumentError(
            f"RotaryPositions: unknown scaling {kind!r}", ", ".join(SCALINGS), fix=nearest(str(kind), [*SCALINGS])
        )
    try:
        return SCALINGS[kind](base ** (2 * np.arange(dim // 2) / dim), base, dim, scaling)
    except KeyError as error:
        raise ArgumentError(f"RotaryPositions: scaling {kind!r} needs {error}", str(error), dict(scaling)) from None


def _unscaled(periods: np.ndarray, base: float, dim: int, given: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    return periods, 1.0


def _linear(periods: np.ndarray, base: float, dim: int, given: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    """Positions are pressed together by `factor`."""
    return periods * given["factor"], 1.0


def _llama3(periods: np.ndarray, base: float, dim: int, given: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    """Long waves are stretched by `factor`, short ones are kept, and between there is a ramp."""
    low, high = given["low_freq_factor"], given["high_freq_factor"]
    turns = given["original_max_position_embeddings"] / (2 * math.pi * periods)  # within the original context
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return periods / (kept + (1 - kept) / given["factor"]), 1.0


def _yarn(periods: np.ndarray, base: float, dim: int, given: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    """As llama3's, but the ramp goes by the number of the pair; and scores are sharpened by a factor."""
    factor, context = given["factor"], given["original_max_position_embeddings"]
    edges = [
        dim * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (given.get("beta_fast") or 32, given.get("beta_slow") or 1)
    ]
    if given.get("truncate", True):
        edges = [math.floor(edges[0]), math.ceil(edges[1])]
    first, last = max(edges[0], 0), min(edges[1], dim - 1)
    stretched = np.clip((np.arange(dim // 2) - first) / (last - first if last != first else 0.001), 0, 1)
    return periods / (1 - stretched + stretched / factor), _yarn_attention(factor, given)


def _yarn_attention(factor: float, given: Mapping[str, Any]) -> float:
    def sharpened(scale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0

    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return sharpened(given["mscale"]) / sharpened(given["mscale_all_dim"])
    return sharpened(1.0)


SCALINGS: dict[str, Callable[..., tuple[np.ndarray, float]]] = {
    "default": _unscaled, "linear": _linear, "llama3": _llama3, "yarn": _yarn
}  # fmt: skip
