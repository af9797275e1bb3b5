"""What one new position goes through in a stack of blocks, written down as a program of compiled jobs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...kernels import Packed
from ..layers.containers import ModuleList
from ..layers.dropout import Dropout
from ..layers.linear import Linear
from ..layers.mlp import MLP
from ..layers.normalization import LayerNorm, RMSNorm
from .attention import MultiHeadAttention
from .rotary import RotaryPositions
from .ssru import SSRU

__all__ = ["StepProgram", "Unusual"]

SINGLE = np.dtype("float32")
LANES = 16  # a head has whole vectors of so many numbers
GATES = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh", "reglu": "relu"}
PARTS = (MultiHeadAttention, ModuleList, Dropout, Linear, MLP, LayerNorm, RMSNorm, SSRU, RotaryPositions)


class Unusual(Exception):
    """Something that is left to the modules."""


class StepProgram:
    """The jobs of a stack, the memory between them, and which of them look at the cache of each block."""

    def __init__(self, stack: Any, rows: int):
        kernels = import_module("minigrad.kernels.numba.job_list")
        self.jobs, self.most_rows = kernels.JobList(rows), rows
        self.most_positions = kernels.ROOM
        self.weights: list[tuple[Any, Any]] = []  # tensors, and the arrays that they had
        self.turns: list[tuple[RotaryPositions, np.ndarray]] = []  # and where their cosines and sines go
        self.own: list[tuple[int, ...]] = []  # jobs of each block that write to and look at its cache
        self.memory: list[tuple[int, ...]] = []  # jobs of each block that look at the memory
        for module in stack.modules():
            _check(module, stack)
        self._write(stack)
        self.jobs.finish()

    def _write(self, stack: Any) -> None:
        self.width = stack.blocks[0].mlp.down.out_features
        self.x, self.normal, self.other = (self.jobs.room(name, self.width) for name in ("x", "normal", "other"))
        for block in stack.blocks:
            if block.parallel:
                self._norm(self.x, block.mlp_norm, self.other)
            own = self._recurrence if type(block.attention) is SSRU else self._attention
            self._part(block, block.attention_norm, block.attention_post_norm, own, block.attention)
            if block.cross_attention is not None:
                self._part(block, block.cross_norm, block.cross_post_norm, self._cross_attention, block.cross_attention)
            if block.parallel:
                self._mlp(block.mlp, self.other, self.x, True)
            else:
                self._part(block, block.mlp_norm, block.mlp_post_norm, self._mlp, block.mlp)
        self.out = self.x if stack.norm is None else self.normal
        if stack.norm is not None:
            self._norm(self.x, stack.norm, self.normal)

    def _part(self, block: Any, norm: Any, after: Any, write: Any, part: Any) -> None:
        """`x + part(norm(x))`, `x + after(part(norm(x)))`, or `norm(x + part(x))`."""
        if not block.norm_first:
            write(part, self.x, self.x, True)
            self._norm(self.x, norm, self.x)
        elif after is None:
            self._norm(self.x, norm, self.normal)
            write(part, self.normal, self.x, True)
        else:
            self._norm(self.x, norm, self.normal)
            write(part, self.normal, self.other, False)
            self._norm(self.other, after, self.x, adds=True)

    def _array(self, tensor: Any) -> Any:
        """The memory of a parameter; None for one that is not there."""
        if tensor is None:
            return None
        data = tensor.data
        if (
            type(data) is not np.ndarray
            or data.dtype != SINGLE
            or not data.flags.c_contiguous
            or not data.flags.aligned
        ):
            raise Unusual
        self.weights.append((tensor, data))
        return data

    def _weight(self, weight: Any) -> Any:
        if not isinstance(weight, Packed):
            return self._array(weight)
        if type(weight.data) is not np.ndarray or weight.data.strides[1] != 1:
            raise Unusual
        return weight

    def _linear(self, x: np.ndarray, layer: Linear, out: np.ndarray, adds: bool = False) -> None:
        self.jobs.linear(x, self._weight(layer.weight), self._array(layer.bias), out, adds)

    def _norm(self, x: np.ndarray, norm: Any, out: np.ndarray, adds: bool = False) -> None:
        weight, bias = self._array(norm.weight), self._array(norm.bias) if type(norm) is LayerNorm else None
        self.jobs.norm(x, norm.normalized_shape[0], weight, bias, _eps(norm), type(norm) is RMSNorm, out, adds)

    def _mlp(self, mlp: MLP, x: np.ndarray, out: np.ndarray, adds: bool) -> None:
        size = mlp.down.in_features
        wide, narrow = self.jobs.room("wide", mlp.up.out_features), self.jobs.room("narrow", size)
        self._linear(x, mlp.up, wide)
        self.jobs.activation(GATES.get(mlp.activation, mlp.activation), mlp.is_gated, wide, size, narrow)
        self._linear(narrow, mlp.down, out, adds)

    def _attention(self, part: MultiHeadAttention, x: np.ndarray, out: np.ndarray, adds: bool) -> None:
        sizes = part.heads, part.kv_heads, part.head_dim
        rows = part.heads * part.head_dim
        together = self.jobs.room("together", rows + 2 * part.kv_heads * part.head_dim)
        seen = self.jobs.room("seen", rows)
        self.jobs.linear(x, self._weight(part.in_proj_weight), self._array(part.in_proj_bias), together)
        norms = [(None, 0.0) if n is None else (self._array(n.weight), _eps(n)) for n in (part.q_norm, part.k_norm)]
        written = self.jobs.positions(together, *sizes, *self._turned(part.rotary), norms)
        window = 0 if part.window is None else part.window
        looking = self.jobs.attention(together, *sizes, part.scale, window, self.jobs.seen_at, seen)
        self.own.append((written, looking))
        self._limit(*sizes)
        self._linear(seen, part.out_proj, out, adds)

    def _turned(self, rotary: Any) -> tuple[np.ndarray | None, int, bool]:
        """Memory for the cosines and sines of a position, how many columns they turn, and whether pairs are halves apart."""
        if rotary is None:
            return None, 0, False
        found = next((memory for known, memory in self.turns if known is rotary), None)
        if found is None:
            found = self.jobs.room(f"turns {len(self.turns)}", 2 * rotary.rotary_dim)
            self.turns.append((rotary, found))
        return found, rotary.rotary_dim, rotary.style == "half"

    def _cross_attention(self, part: MultiHeadAttention, x: np.ndarray, out: np.ndarray, adds: bool) -> None:
        sizes, rows = (part.heads, part.kv_heads, part.head_dim), part.heads * part.head_dim
        queries, seen = self.jobs.room("queries", rows), self.jobs.room("seen", rows)
        fused = getattr(part, "in_proj_weight", None)
        weight, bias = self._weight(part.q_proj_weight if fused is None else fused), self._array(part.in_proj_bias)
        self.jobs.linear(x, weight[:rows], None if bias is None else bias[:rows], queries)
        self.memory.append((self.jobs.attention(queries, *sizes, part.scale, 0, self.jobs.memory_at, seen),))
        self._limit(*sizes)
        self._linear(seen, part.out_proj, out, adds)

    def _recurrence(self, part: SSRU, x: np.ndarray, out: np.ndarray, adds: bool) -> None:
        candidates, gates = self.jobs.room("candidates", part.dim), self.jobs.room("gates", part.dim)
        self._linear(x, part.candidate, candidates)
        self._linear(x, part.forget, gates)
        self.own.append((self.jobs.state(candidates, gates, part.dim, out, adds),))

    def _limit(self, heads: int, shared: int, width: int) -> None:
        """What the heads that share keys compute must fit into a thread's room."""
        self.most_positions = min(self.most_positions, self.jobs.most_positions(heads // shared, width))


def _check(module: Any, stack: Any) -> None:
    """Refuse what a program does not know."""
    is_known = type(module) in PARTS or module is stack or any(module is block for block in stack.blocks)
    if not is_known or module.has_hooks():
        raise Unusual
    if type(module) is Dropout and module.training and module.p:
        raise Unusual
    if type(module) in (LayerNorm, RMSNorm) and len(module.normalized_shape) != 1:
        raise Unusual
    if type(module) is MultiHeadAttention:
        is_dropped = module.dropout and module.training
        if is_dropped or module.watchers or module.softcap is not None or module.head_dim % LANES:
            raise Unusual


def _eps(norm: Any) -> float:
    return float(np.finfo(SINGLE).eps) if norm.eps is None else norm.eps
