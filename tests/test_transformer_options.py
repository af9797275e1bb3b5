"""The options that pretrained models need: nothing sees the future, a cache changes nothing, left padding changes nothing, gradients are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.functional_oracle import normal

import minigrad as mg
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, CallError, IndexingError, ShapeError
from minigrad.nn import (
    SSRU,
    Decoder,
    Encoder,
    MultiHeadAttention,
    RelativePositions,
    RotaryPositions,
    TransformerBlock,
    causal_mask,
    padding_mask,
    watch_attention,
)

B, L, S, C, H, HIDDEN = 3, 6, 5, 8, 4, 12
HALVES: dict[str, Any] = {"norm": "rms", "activation": "swiglu", "bias": False}
OPTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "grouped": lambda: {"kv_heads": 2, "rotary": RotaryPositions(2, style="half"), **HALVES},
    "multi-query": lambda: {"kv_heads": 1, "head_dim": 6},
    "normed": lambda: {"kv_heads": 2, "head_dim": 4, "qk_norm": "rms", "rotary": RotaryPositions(4), **HALVES},
    "parallel": lambda: {"parallel": True, "rotary": RotaryPositions(2, style="half", rotary_dim=2)},
    "partly rotated": lambda: {"head_dim": 6, "rotary": RotaryPositions(6, style="half", rotary_dim=4)},
    "window": lambda: {"window": 3},
    "windows": lambda: {"window": [None, 2], "kv_heads": 2, "rotary": RotaryPositions(2)},
    "capped": lambda: {"softcap": 2.0, "sandwich": True, "scale": 0.7, "activation": "geglu_tanh", **HALVES, "bias": True},
    "relative": lambda: {"relative": relative(), "scale": 1.0, **HALVES, "activation": "geglu_tanh"},
    "biases": lambda: {"bias": False, "attention_bias": True, "out_bias": False, "mlp_bias": True},
    "recurrent": lambda: {"recurrence": "ssru", "norm_first": False, "activation": "relu"},
    "post-norm with a last one": lambda: {"norm_first": False, "final_norm": True},
}  # fmt: skip
SEEING = [name for name in OPTIONS if name != "recurrent"]  # with self-attention, which takes masks
EVERY = pytest.mark.parametrize("name", OPTIONS)


def relative() -> RelativePositions:
    return RelativePositions(H, 8, 16, bidirectional=False, dtype="float64")


def filled(model: Any) -> Any:
    """The model with weights that are the same each time, and large enough to matter."""
    for i, parameter in enumerate(model.parameters()):
        with mg.no_grad():
            values = mg.tensor(normal(*parameter.shape, seed=i) / 2, device=parameter.device)
            parameter[...] = values + (1 if parameter.ndim == 1 else 0)
    return model


def stack(name: str, kind: Any = Encoder, device: str = "cpu", **more: Any) -> Any:
    options = {**OPTIONS[name](), **more}
    if options.get("relative") is not None:
        options["relative"].to(device)
    return filled(kind(2, C, H, HIDDEN, causal=True, dtype="float64", device=device, **options))


def near(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-9)


@EVERY
def test_no_position_sees_the_future(name: str) -> None:
    model, x = stack(name), normal(B, L, C)
    before = model(mg.tensor(x)).numpy()
    for t in range(1, L):
        changed = x.copy()
        changed[:, t:] = normal(B, L - t, C, seed=t) * 100
        after = model(mg.tensor(changed)).numpy()
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert (after[:, t] != before[:, t]).any()


@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.parametrize("pieces", [[1] * L, [3, 1, 2]], ids=str)
@EVERY
def test_with_a_cache_the_result_is_the_same(name: str, kind: Any, pieces: list[int], device: str) -> None:
    if name == "parallel" and kind is Decoder:
        return
    model, x = stack(name, kind, device), mg.tensor(normal(B, L, C), device=device)
    memory = [mg.tensor(normal(B, S, C, seed=1), device=device)] if kind is Decoder else []
    whole, edges = model(x, *memory), np.cumsum([0, *pieces])
    for room in (0, 4, 100):
        cache = model.new_cache(room)
        with mg.no_grad():
            parts = [model(x[:, a:b], *memory, cache=cache) for a, b in zip(edges, edges[1:])]
        near(mg.concatenate(parts, axis=1), whole)
        assert cache.length == L


@EVERY
def test_rows_of_a_cache_can_be_chosen(name: str, device: str) -> None:
    model, x = stack(name, device=device), mg.tensor(normal(B, L, C), device=device)
    cache, rows = model.new_cache(), mg.tensor([2, 2, 0, 1], device=device)
    with mg.no_grad():
        model(x[:, :3], cache=cache)
        cache.select(rows)
        last = [model(x[rows][:, t : t + 1], cache=cache) for t in range(3, L)]
    near(mg.concatenate(last, axis=1), model(x)[rows][:, 3:])


@pytest.mark.parametrize("name", SEEING)
@pytest.mark.parametrize("cached", [False, True], ids=["at once", "cached"])
def test_rows_that_are_padded_on_the_left_give_what_they_give_alone(name: str, cached: bool) -> None:
    model, lengths, x = stack(name), [6, 2, 4], normal(B, L, C)
    begins = L - np.array(lengths)[:, None]
    real = np.arange(L) >= begins  # (B, L)
    positions = np.maximum(np.arange(L) - begins, 0)
    given = np.where(real[..., None], x, 1e3 * x)
    with mg.no_grad():
        if not cached:
            padded = model(mg.tensor(given), mask=padding_mask(real), positions=positions)
        else:
            cache, parts = model.new_cache(), []
            for a, b in ((0, 4), (4, 5), (5, 6)):
                seen = padding_mask(real[:, :b])
                parts.append(model(mg.tensor(given[:, a:b]), mask=seen, positions=positions[:, a:b], cache=cache))
            padded = mg.concatenate(parts, axis=1)
        for row, length in enumerate(lengths):
            near(padded[row : row + 1, L - length :], model(mg.tensor(x[row : row + 1, L - length :])))


@EVERY
def test_second_derivatives_are_right(name: str) -> None:
    options = {**OPTIONS[name](), "causal": True, "dtype": "float64"}
    if isinstance(options.get("window"), list):
        options["window"] = 2
    assert gradcheck(filled(Encoder(1, C, H, 2, **options)), mg.tensor(normal(1, 3, C)), order=2)


@EVERY
def test_the_same_on_the_device_and_on_the_cpu(name: str) -> None:
    def run(device: str) -> list[np.ndarray]:
        model, x = stack(name, device=device), mg.tensor(normal(B, L, C), device=device)
        out = model(x)
        (out * out).sum().backward()
        assert out.device == device
        return [out.numpy(), *(p.grad.numpy() for p in model.parameters() if p.grad is not None)]

    for on_cpu, on_device in zip(run("cpu"), run("fake:1"), strict=True):
        np.testing.assert_allclose(on_device, on_cpu, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_grouped_heads_are_repeated_ones(heads: int) -> None:
    """The rows of keys and values repeated for every query head give an attention of the usual kind."""
    options: dict[str, Any] = {"rotary": RotaryPositions(2), "dtype": "float64"}
    grouped, plain = filled(MultiHeadAttention(C, H, kv_heads=heads, **options)), MultiHeadAttention(C, H, **options)
    state = {name: p.numpy() for name, p in grouped.named_parameters()}
    for name in ("in_proj_weight", "in_proj_bias"):
        parts = np.split(state[name], [C, C + 2 * heads])
        again = [np.repeat(p.reshape(heads, 2, *p.shape[1:]), H // heads, axis=0) for p in parts[1:]]
        state[name] = np.concatenate([parts[0], *[p.reshape(C, *p.shape[2:]) for p in again]])
    plain.load_state_dict(state)
    x = mg.tensor(normal(B, L, C))
    near(grouped(x, is_causal=True), plain(x, is_causal=True))
    with watch_attention(grouped) as few, watch_attention(plain) as many:
        grouped(x), plain(x)
    near(few[""][0], many[""][0])
    cache = grouped.new_cache()
    with mg.no_grad():
        grouped(x, cache=cache)
    assert cache.keys.shape == (B, heads, L, 2)


def test_a_window_is_its_mask() -> None:
    plain, limited = (filled(MultiHeadAttention(C, H, window=w, dtype="float64")) for w in (None, 3))
    x = mg.tensor(normal(B, L, C))
    band = np.tri(L, dtype=bool) & ~np.tri(L, k=-3, dtype=bool)
    np.testing.assert_array_equal(causal_mask(L, window=3).numpy(), band)
    near(limited(x, is_causal=True), plain(x, mask=band[None, None]))
    with watch_attention(limited) as seen, mg.no_grad():
        cache = limited.new_cache()
        limited(x[:, :5], is_causal=True, cache=cache)
        limited(x[:, 5:], is_causal=True, cache=cache)
    np.testing.assert_array_equal(seen[""][1].numpy()[:, :, 0] > 0, np.broadcast_to(band[5], (B, H, L)))


def test_a_recurrence_is_its_formula() -> None:
    made, x = filled(SSRU(C, dtype="float64")), normal(B, L, C)
    w, wf, bf = (p.numpy() for p in (made.candidate.weight, made.forget.weight, made.forget.bias))
    state, expected = np.zeros((B, C)), []
    for t in range(L):
        f = 1 / (1 + np.exp(-(x[:, t] @ wf.T + bf)))
        state = f * state + (1 - f) * (x[:, t] @ w.T)
        expected.append(np.maximum(state, 0))
    np.testing.assert_allclose(made(mg.tensor(x)).numpy(), np.stack(expected, axis=1), rtol=1e-12, atol=1e-12)


def test_a_floating_mask_and_relative_positions_add_up() -> None:
    model, x, added = stack("relative"), mg.tensor(normal(B, L, C)), mg.tensor(normal(1, 1, L, L, seed=3))
    plain = stack("relative", relative=None)
    both = added + model.relative(L, L)
    plain.load_state_dict({name: p for name, p in model.state_dict().items() if name != "relative.weight"})
    near(model(x, mask=added), plain(x, mask=both))


X = mg.ones(B, L, C)
MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "groups": (ArgumentError, "a divisor of 4", lambda: MultiHeadAttention(C, H, kv_heads=3)),
    "width": (ArgumentError, "a multiple of 3", lambda: MultiHeadAttention(C, 3)),
    "qk_norm": (ArgumentError, "'rms'", lambda: MultiHeadAttention(C, H, qk_norm="layer")),
    "softcap": (ArgumentError, "softcap", lambda: MultiHeadAttention(C, H, softcap=0.0)),
    "window": (ArgumentError, "window", lambda: MultiHeadAttention(C, H, window=0)),
    "window both ways": (ArgumentError, "is_causal=True", lambda: MultiHeadAttention(C, H, window=2)(X)),
    "windows": (ArgumentError, "one for each block", lambda: Encoder(2, C, H, window=[1], causal=True)),
    "recurrence": (ArgumentError, "'ssru'", lambda: TransformerBlock(C, H, recurrence="lstm", causal=True)),
    "recurrence both ways": (ArgumentError, "causal=True", lambda: TransformerBlock(C, H, recurrence="ssru")),
    "masked recurrence": (ArgumentError, "leave mask out", lambda: stack("recurrent")(X, mask=padding_mask([6, 2, 3]))),
    "recurrence of another batch": (ShapeError, "another batch", lambda: _twice(stack("recurrent"))),
    "sandwich": (ArgumentError, "norm_first=True", lambda: TransformerBlock(C, H, sandwich=True, norm_first=False)),
    "parallel": (ArgumentError, "cross-attention", lambda: TransformerBlock(C, H, parallel=True, cross=True)),
    "option": (CallError, "kv_heads", lambda: Encoder(1, C, H, kv_head=2)),
    "positions": (ShapeError, "whole numbers", lambda: stack("grouped")(X, positions=np.zeros((B, L)))),
    "short positions": (ShapeError, r"\(3 or 1, 6\)", lambda: stack("grouped")(X, positions=[[0, 1]])),
    "positions below 0": (IndexingError, "from 0 up", lambda: stack("grouped")(X, positions=[[-1, 0, 1, 2, 3, 4]])),
    "buckets": (ArgumentError, "buckets", lambda: RelativePositions(H, 2)),
}


def _twice(model: Any) -> None:
    with mg.no_grad():
        cache = model.new_cache()
        model(mg.tensor(normal(B, 1, C)), cache=cache)
        model(mg.tensor(normal(1, 1, C)), cache=cache)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    error, words, call = MISTAKES[mistake]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kv_heads", [2, 1])
def test_an_empty_batch_gives_an_empty_result_of_cross_attention(kv_heads):
    attention = MultiHeadAttention(8, heads=2, kv_heads=kv_heads)
    assert attention(mg.zeros(0, 3, 8), mg.zeros(0, 5, 8)).shape == (0, 3, 8)
