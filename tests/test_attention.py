"""Attention: the same numbers as PyTorch's, masks that hide completely, a cache that changes nothing, and weights to look at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.functional_oracle import normal

import minigrad as mg
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, DtypeError, GradientError, ShapeError
from minigrad.nn import KVCache, MultiHeadAttention, RotaryPositions, causal_mask, padding_mask, watch_attention

B, L, S, C, H = 3, 5, 7, 8, 2
EPS = float(np.finfo("float64").eps)
OWN = {"none": None, "padding": padding_mask([5, 2, 3])}
MEMORY = {"none": None, "padding": padding_mask([7, 2, 4])}
POSITIONS: dict[str, Callable[[], Any]] = {"plain": lambda: None, "rotary": lambda: RotaryPositions(C // H)}


def attention(rotary: str = "plain", **options: Any) -> MultiHeadAttention:
    """An attention with weights that are large enough for the heads to differ."""
    made = MultiHeadAttention(C, H, rotary=POSITIONS[rotary](), dtype="float64", **options)
    for i, parameter in enumerate(made.parameters()):
        with mg.no_grad():
            parameter[...] = mg.tensor(normal(*parameter.shape, seed=i) / 2, device=parameter.device)
    return made


def near(ours: Any, theirs: Any) -> None:
    expected = theirs.detach().numpy() if hasattr(theirs, "detach") else theirs
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9, atol=1e-9)


def as_torch(options: dict[str, Any], arrays: list[np.ndarray], mask: Any, is_causal: bool) -> None:
    """Copy PyTorch's weights as they are; compare outputs, weights of the heads, and all gradients."""
    import torch

    names = {"key_dim": "kdim", "value_dim": "vdim", "bias": "bias"}
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(
        C, H, batch_first=True, dtype=torch.float64, **{names[name]: value for name, value in options.items()}
    )
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours = MultiHeadAttention(C, H, dtype="float64", **options)
    ours.load_state_dict({name: value.detach().numpy() for name, value in theirs.state_dict().items()})
    their_inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
    our_inputs = [mg.tensor(a, requires_grad=True) for a in arrays]
    query, key, value = (their_inputs * 3 if len(arrays) == 1 else [*their_inputs, their_inputs[-1]])[:3]
    expected, expected_weights = theirs(
        query,
        key,
        value,
        key_padding_mask=None if mask is None else torch.tensor(~mask.numpy()[:, 0, 0]),
        attn_mask=torch.tensor(~causal_mask(L).numpy()) if is_causal else None,
        average_attn_weights=False,
    )
    with watch_attention(ours) as seen:
        got = ours(*our_inputs, mask=mask, is_causal=is_causal)
    near(got, expected)
    near(seen[""][0], expected_weights)
    direction = normal(B, L, C, seed=9)
    (expected * torch.tensor(direction)).sum().backward()
    (got * mg.tensor(direction)).sum().backward()
    pairs = [*zip(our_inputs, their_inputs), *zip(ours.parameters(), theirs.parameters())]
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    for ours_, theirs_ in pairs:
        near(ours_.grad, theirs_.grad)


@pytest.mark.torch
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", OWN)
def test_self_attention_is_pytorchs(mask: str, is_causal: bool, bias: bool) -> None:
    as_torch({"bias": bias}, [normal(B, L, C)], OWN[mask], is_causal)


@pytest.mark.torch
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", MEMORY)
def test_cross_attention_is_pytorchs(mask: str, bias: bool) -> None:
    as_torch({"bias": bias}, [normal(B, L, C), normal(B, S, C, seed=1)], MEMORY[mask], False)
    as_torch({"bias": bias}, [normal(B, L, C), normal(B, S, C, seed=1), normal(B, S, C, seed=2)], MEMORY[mask], False)


@pytest.mark.torch
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", MEMORY)
def test_cross_attention_with_keys_and_values_of_other_sizes_is_pytorchs(mask: str, bias: bool) -> None:
    arrays = [normal(B, L, C), normal(B, S, 4, seed=1), normal(B, S, 6, seed=2)]
    as_torch({"key_dim": 4, "value_dim": 6, "bias": bias}, arrays, MEMORY[mask], False)


@pytest.mark.parametrize("sizes", [{}, {"key_dim": 4, "value_dim": 6}])
def test_start_values_are_xaviers_without_biases(sizes: dict[str, int]) -> None:
    made = MultiHeadAttention(64, 4, **sizes)
    for name, parameter in made.named_parameters():
        top = float(mg.abs(parameter).max())
        if name.endswith("bias"):
            assert top == 0
        else:
            bound = 1 / 8 if name == "out_proj.weight" else (6 / sum(parameter.shape)) ** 0.5
            assert 0.9 * bound < top <= bound


def test_a_mask_that_means_the_same_either_way_is_taken_with_as_many_sentences_as_queries() -> None:
    made, x = attention(), normal(3, 3, C)
    for mask in (np.tri(3, dtype=bool), np.array([[True, True, False]] * 3)):
        np.testing.assert_array_equal(made(x, mask=mask).numpy(), made(x, mask=mask[None, None]).numpy())


def test_causal_mask_allows_the_past_and_oneself() -> None:
    np.testing.assert_array_equal(causal_mask(4).numpy(), np.tri(4, dtype=bool))
    np.testing.assert_array_equal(causal_mask(2, past=3).numpy(), np.tri(5, dtype=bool)[3:])


def test_padding_mask_from_tokens_equals_that_from_lengths(device: str) -> None:
    tokens = mg.tensor([[4, 5, 0, 0], [6, 0, 0, 0], [7, 8, 9, 4]], device=device)
    lengths = mg.tensor([2, 1, 4], device=device)
    masks = [padding_mask(tokens, 0), padding_mask(lengths), padding_mask(lengths, size=4)]
    for mask in masks:
        assert mask.device == device and mask.shape == (3, 1, 1, 4)
        np.testing.assert_array_equal(mask.numpy()[:, 0, 0], tokens.numpy() != 0)
    assert padding_mask(lengths, size=6).shape == (3, 1, 1, 6)
    np.testing.assert_array_equal(padding_mask(tokens != 0).numpy(), masks[0].numpy())


@pytest.mark.parametrize("rotary", POSITIONS)
def test_no_position_sees_the_future(rotary: str) -> None:
    made = attention(rotary)
    x = normal(B, L, C)
    before = made(mg.tensor(x), is_causal=True).numpy()
    for t in range(1, L):
        changed = x.copy()
        changed[:, t:] = normal(B, L - t, C, seed=t) * 100
        np.testing.assert_array_equal(made(mg.tensor(changed), is_causal=True).numpy()[:, :t], before[:, :t])


@pytest.mark.parametrize("rotary", POSITIONS)
def test_what_stands_in_the_padding_does_not_matter(rotary: str) -> None:
    made, lengths, x = attention(rotary), [5, 2, 3], normal(B, L, C)
    mask = padding_mask(lengths)
    changed = x.copy()
    for row, length in enumerate(lengths):
        changed[row, length:] = normal(L - length, C, seed=row) * 100
    before, after = (made(mg.tensor(a), mask=mask).numpy() for a in (x, changed))
    for row, length in enumerate(lengths):
        np.testing.assert_array_equal(after[row, :length], before[row, :length])


def with_padding(made: MultiHeadAttention, x: np.ndarray, padding: np.ndarray, is_causal: bool) -> list[np.ndarray]:
    """What attention makes of x followed by padding: output and gradient of x, of the weights, and all of the padding."""
    whole = mg.tensor(np.concatenate([x, padding], axis=1), requires_grad=True)
    length, size = x.shape[1], x.shape[1] + padding.shape[1]
    mask = padding_mask([length] * len(x), size=size) if size > length else None
    with watch_attention(made) as seen:
        out = made(whole, mask=mask, is_causal=is_causal)[:, :length]
    direction = np.random.default_rng(9).integers(1, 9, out.shape).astype("float64")
    grads = mg.autograd.grad(out, [whole, *made.parameters()], mg.tensor(direction))
    of_x, *of_parameters = [g.numpy() for g in grads]
    weights = seen[""][0].numpy()[:, :, :length]  # (B, h, length, size)
    assert not weights[..., length:].any() and not of_x[:, length:].any(), "padding has weight 0 and gradient 0"
    return [weights[..., :length], out.numpy(), of_x[:, :length], *of_parameters]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("added", [1, 6, 32])
def test_added_padding_has_no_weight_and_no_gradient_and_changes_nothing_but_the_order_of_sums(
    is_causal: bool, added: int
) -> None:
    """BLAS and NumPy add up a longer row in another order: what can differ is the last bit of a sum, and does."""
    made, x = attention(), normal(B, L, C)
    plain = with_padding(made, x, np.zeros((B, 0, C)), is_causal)
    padded = with_padding(made, x, normal(B, added, C, seed=1) * 100, is_causal)
    for with_pads, without in zip(padded, plain):
        np.testing.assert_allclose(with_pads, without, rtol=0, atol=8 * EPS * np.abs(without).max())


@pytest.mark.parametrize("is_causal", [False, True])
def test_added_padding_changes_no_bit_where_no_sum_rounds(is_causal: bool) -> None:
    """With whole numbers, and scores so far apart that every weight is 0 or 1, all sums are exact in any order."""
    made, rng = attention(), np.random.default_rng(0)
    with mg.no_grad():
        for parameter in made.parameters():
            parameter[...] = mg.tensor(rng.integers(-9, 10, parameter.shape).astype("float64"))
        made.in_proj_weight[:C] *= 1000
    x, padding = (rng.integers(-9, 10, (B, n, C)).astype("float64") for n in (L, 6))
    plain, padded = (with_padding(made, x, pads, is_causal) for pads in (padding[:, :0], padding))
    assert set(np.unique(plain[0])) == {0.0, 1.0}
    for with_pads, without in zip(padded, plain):
        np.testing.assert_array_equal(with_pads, without)


def test_lists_and_arrays_are_taken_as_tensors_are() -> None:
    made, x, mask = attention("rotary"), normal(B, L, C), np.tri(L, dtype=bool)
    expected = made(mg.tensor(x), mask=mg.tensor(mask), is_causal=True).numpy()
    for allowed in (mask, mask.tolist()):
        np.testing.assert_array_equal(made(x, mask=allowed, is_causal=True).numpy(), expected)
    np.testing.assert_array_equal(made(x, x, x, is_causal=True).numpy(), expected)  # still seen to be its own
    assert made(x.tolist()).shape == (B, L, C)


def test_a_row_that_may_attend_to_nothing_is_finite_and_leaves_the_others_alone() -> None:
    made, x = attention(), mg.tensor(normal(B, L, C), requires_grad=True)
    out = made(x, mask=padding_mask([5, 0, 3]))
    alone = made(x, mask=padding_mask([5, 4, 3]))
    np.testing.assert_array_equal(out[1].numpy(), np.broadcast_to(made.out_proj.bias.numpy(), (L, C)))
    np.testing.assert_array_equal(out[[0, 2]].numpy(), alone[[0, 2]].numpy())
    (out * out).sum().backward()
    assert x.grad is not None and np.isfinite(x.grad.numpy()).all() and not x.grad[1].numpy().any()
    assert all(np.isfinite(p.grad.numpy()).all() for p in made.parameters() if p.grad is not None)


@pytest.mark.parametrize("pieces", [[1] * 9, [4, 1, 1, 3], [2, 7], [9]])
@pytest.mark.parametrize("rotary", POSITIONS)
def test_with_a_cache_the_result_is_the_same(rotary: str, pieces: list[int], device: str) -> None:
    made = attention(rotary, device=device)
    x = mg.tensor(normal(B, 9, C), device=device)
    mask = padding_mask(mg.tensor([9, 4, 6], device=device))
    cuts = np.cumsum([0, *pieces]).tolist()
    for given in (None, mask):
        whole, cache = made(x, mask=given, is_causal=True), KVCache()
        with mg.no_grad():
            parts = [
                made(x[:, a:b], mask=None if given is None else given[..., :b], is_causal=True, cache=cache)
                for a, b in zip(cuts, cuts[1:])
            ]
        near(mg.concatenate(parts, axis=1), whole.numpy())
    assert cache.length == 9 and cache.keys is not None and cache.values is not None
    assert cache.keys.shape == cache.values.shape == (B, H, 9, C // H)


def test_the_cache_of_cross_attention_is_filled_once() -> None:
    made, cache = attention(), KVCache()
    x, memory = mg.tensor(normal(B, L, C)), mg.tensor(normal(B, S, C, seed=1))
    mask = MEMORY["padding"]
    whole = made(x, memory, mask=mask)
    with mg.no_grad():
        parts = [made(x[:, :2], memory, mask=mask, cache=cache)]
        parts += [made(x[:, t : t + 1], memory * float("nan"), mask=mask, cache=cache) for t in range(2, L)]
    near(mg.concatenate(parts, axis=1), whole.numpy())
    assert cache.length == S


def test_rows_of_a_cache_can_be_chosen(device: str) -> None:
    made, cache = attention(device=device), KVCache()
    x = mg.tensor(normal(B, L, C), device=device)
    rows = mg.tensor([2, 2, 0, 1], device=device)
    with mg.no_grad():
        for t in range(3):
            made(x[:, t : t + 1], is_causal=True, cache=cache)
        cache.select(rows)
        last = [made(x[rows][:, t : t + 1], is_causal=True, cache=cache) for t in range(3, L)]
    near(mg.concatenate(last, axis=1), made(x, is_causal=True)[rows][:, 3:].numpy())


@pytest.mark.parametrize("rows", [B + 1, 1])
def test_a_cache_that_refuses_rows_stays_as_it_was(rows: int) -> None:
    made, cache = attention(), KVCache()
    with mg.no_grad():
        made(mg.tensor(normal(B, 2, C)), cache=cache)
        with pytest.raises(mg.MinigradError, match="do not fit"):
            made(mg.tensor(normal(rows, 2, C)), cache=cache)
    assert cache.length == 2 and cache.keys is not None and cache.keys.shape == (B, H, 2, C // H)


def test_what_is_recorded_is_not_cached() -> None:
    with pytest.raises(GradientError, match="no_grad"):
        attention()(mg.tensor(normal(B, L, C)), cache=KVCache())


def test_watching_changes_nothing_and_shows_weights_that_add_up_to_one(device: str) -> None:
    made = attention(device=device, dropout=0.5).eval()
    model = mg.nn.Sequential(made)
    x = mg.tensor(normal(B, L, C), device=device)
    mask = padding_mask(mg.tensor([5, 2, 3], device=device))
    plain = made(x, mask=mask, is_causal=True)
    with watch_attention(model) as outer, watch_attention(made) as inner:
        watched = made(x, mask=mask, is_causal=True)
        made(x)
    made(x)
    np.testing.assert_array_equal(watched.numpy(), plain.numpy())
    assert outer.keys() == {"0"} and inner.keys() == {""}
    assert len(outer["0"]) == len(inner[""]) == 2
    weights = outer["0"][0]
    assert weights.shape == (B, H, L, L) and weights.device == device and not weights.requires_grad
    np.testing.assert_allclose(weights.numpy().sum(-1), 1, rtol=1e-12)
    allowed = np.broadcast_to(mask.numpy() & np.tri(L, dtype=bool), weights.shape)
    assert not weights.numpy()[~allowed].any() and weights.numpy()[allowed].all()


def test_while_nobody_watches_attention_is_computed_once_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made, x, calls = attention(), mg.tensor(normal(B, L, C)), []
    plain = mg.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        mg.nn.functional, "scaled_dot_product_attention", lambda *a, **k: calls.append(1) or plain(*a, **k)
    )
    made(x, x + 0)
    assert len(calls) == 1
    with pytest.raises(ZeroDivisionError), watch_attention(made):
        made(x, x + 0)
        raise ZeroDivisionError
    assert len(calls) == 3
    made(x)  # to itself, which is one fused operation
    assert len(calls) == 3
    with watch_attention(made):
        made(x)
    assert len(calls) == 4
    made(x)
    assert len(calls) == 4 and made.watchers == ()


def test_weights_are_dropped_in_training_only() -> None:
    made, x = attention(dropout=1.0), mg.tensor(normal(B, L, C))
    np.testing.assert_array_equal(made(x).numpy(), np.broadcast_to(made.out_proj.bias.numpy(), (B, L, C)))
    near(made.eval()(x), attention()(x).numpy())


class Masked(mg.nn.Module):
    """Causal attention over a batch whose second row is nothing but padding."""

    def __init__(self, rotary: str) -> None:
        self.inner = MultiHeadAttention(
            4, 2, rotary=RotaryPositions(2) if rotary == "rotary" else None, dtype="float64"
        )

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return self.inner(x, mask=padding_mask([3, 0]), is_causal=True)


@pytest.mark.parametrize("rotary", POSITIONS)
def test_gradients_of_attention_are_right(rotary: str) -> None:
    assert gradcheck(Masked(rotary), mg.tensor(normal(2, 3, 4)))


def test_attention_on_the_device_equals_attention_on_the_cpu() -> None:
    def run(device: str) -> list[np.ndarray]:
        made = attention("rotary", device=device)
        x = mg.tensor(normal(B, L, C), device=device, requires_grad=True)
        out = made(x, mask=padding_mask(mg.tensor([5, 2, 0], device=device)), is_causal=True)
        (out * out).sum().backward()
        assert out.device == device
        return [out.numpy(), *(p.grad.numpy() for p in (x, *made.parameters()) if p.grad is not None)]

    for on_cpu, on_device in zip(run("cpu"), run("fake:1"), strict=True):
        np.testing.assert_allclose(on_device, on_cpu, rtol=1e-12, atol=1e-12)


X = mg.tensor(normal(B, L, C))
MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "heads": (ArgumentError, "a multiple of 3", lambda: MultiHeadAttention(8, 3)),
    "no heads": (ArgumentError, "heads", lambda: MultiHeadAttention(8, 0)),
    "dropout": (ArgumentError, "probability", lambda: MultiHeadAttention(8, 2, dropout=2.0)),
    "axes": (ShapeError, "the query", lambda: attention()(X[0])),
    "width": (ShapeError, "the key", lambda: attention()(X, X[..., :4])),
    "mask of whole numbers": (
        DtypeError,
        "True: may attend",
        lambda: attention()(X, mask=mg.zeros(L, L, dtype="int64")),
    ),
    "unclear mask": (ShapeError, r"mask\[:, None\]", lambda: attention()(X, mask=mg.ones(B, L, L, dtype="bool"))),
    "padding as it is": (
        ShapeError,
        r"mask\[:, None, None, :\]",
        lambda: attention()(X, mask=padding_mask([5, 2, 3]).reshape(B, L)),
    ),
    "padding of as many sentences as tokens": (
        ShapeError,
        r"could be \(L, S\) or \(B, S\)",
        lambda: attention()(normal(3, 3, C), mask=padding_mask([3, 2, 2]).reshape(3, 3)),
    ),
    "short mask": (ShapeError, "broadcasts to", lambda: attention()(X, mask=padding_mask([1, 2, 3]))),
    "causal cross": (ArgumentError, "is_causal", lambda: attention()(X, X * 1, is_causal=True)),
    "rotary cross": (ArgumentError, "rotary", lambda: attention("rotary")(X, X * 1)),
    "tokens without pad": (ShapeError, "with pad=", lambda: padding_mask([[1, 0]])),
    "lengths with pad": (ShapeError, "without", lambda: padding_mask([1, 2], 0)),
    "tokens with size": (ArgumentError, "lengths only", lambda: padding_mask([[1, 0]], 0, size=2)),
    "length": (ArgumentError, "0 to 2", lambda: padding_mask([3], size=2)),
    "negative length": (ArgumentError, "0 to 2.*\n.*-1", lambda: padding_mask([2, -1])),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    error, words, call = MISTAKES[mistake]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(L, L), (B, H, L, L)], ids=str)
@pytest.mark.parametrize("learned", [False, True])
def test_a_floating_mask_is_added_to_the_scores_as_in_pytorch(shape: tuple[int, ...], learned: bool) -> None:
    import torch

    added = normal(*shape, seed=4)
    added[..., 0, 1:] = -np.inf
    ours, mask = attention(), mg.tensor(added, requires_grad=learned)
    theirs = torch.nn.MultiheadAttention(C, H, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict({name: torch.tensor(p.numpy()) for name, p in ours.named_parameters()})
    x, their_mask = torch.tensor(normal(B, L, C)), torch.tensor(added, requires_grad=learned)
    expected, _ = theirs(x, x, x, attn_mask=their_mask.reshape(-1, *shape[-2:]) if len(shape) == 4 else their_mask)
    got = ours(mg.tensor(normal(B, L, C)), mask=mask)
    near(got, expected)
    (expected**2).sum().backward()
    (got**2).sum().backward()
    near(ours.in_proj_weight.grad, theirs.in_proj_weight.grad)
    if learned:
        near(mask.grad, torch.nan_to_num(their_mask.grad))


def test_a_floating_mask_with_a_cache_is_the_mask_without() -> None:
    ours, x, mask = attention(), mg.tensor(normal(B, L, C)), mg.tensor(normal(L, L, seed=4))
    with mg.no_grad():
        whole, cache = ours(x, mask=mask, is_causal=True), KVCache()
        parts = [ours(x[:, :2], mask=mask[:2, :2], is_causal=True, cache=cache)]
        parts.append(ours(x[:, 2:], mask=mask[None, None, 2:], is_causal=True, cache=cache))
    near(mg.concatenate(parts, axis=1), whole)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_mask_of_another_dtype_does_not_change_that_of_the_result(dtype: str) -> None:
    x = mg.tensor(normal(1, 1, 3, 4).astype(dtype))
    for learned in (False, True):
        mask = mg.tensor(normal(3, 3), requires_grad=learned)
        assert mg.nn.functional.scaled_dot_product_attention(x, x, x, mask).dtype == dtype


@pytest.mark.torch
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("implementation", ["definitions", "numpy", "numba"])
def test_grouped_heads_are_pytorchs(heads: int, masked: bool, implementation: str) -> None:
    import torch

    arrays = [normal(2, 6, 5, 4), normal(2, heads, 7, 4, seed=1), normal(2, heads, 7, 3, seed=2)]
    mask = np.random.default_rng(0).random((2, 1, 5, 7)) < 0.7 if masked else None
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [mg.tensor(a, requires_grad=True) for a in arrays]
    expected = torch.nn.functional.scaled_dot_product_attention(
        *theirs, attn_mask=None if mask is None else torch.tensor(mask), enable_gqa=True, scale=0.7
    )
    with mg.kernels.use(implementation):
        got = mg.nn.functional.scaled_dot_product_attention(*ours, mask, enable_gqa=True, scale=0.7)
        (got * got).sum().backward()
    near(got, expected)
    (expected * expected).sum().backward()
    for x, y in zip(ours, theirs):
        near(x.grad, y.grad)


def test_without_saying_so_heads_are_not_grouped() -> None:
    with pytest.raises(ShapeError, match="enable_gqa=True"):
        mg.nn.functional.scaled_dot_product_attention(mg.ones(1, 4, 3, 2), mg.ones(1, 2, 3, 2), mg.ones(1, 2, 3, 2))


@pytest.mark.parametrize("implementation", ["definitions", "numpy"])
def test_a_soft_cap_bends_the_scores(implementation: str) -> None:
    q, k, v = (normal(2, 2, 5, 4, seed=i) for i in range(3))
    scores = 3 * np.tanh(2.0 * q @ k.swapaxes(-1, -2) / 3)
    powers = np.exp(scores)
    with mg.kernels.use(implementation):
        attend = partial(mg.nn.functional.scaled_dot_product_attention, scale=2.0, softcap=3.0)
        near(attend(mg.tensor(q), mg.tensor(k), mg.tensor(v)), powers / powers.sum(-1, keepdims=True) @ v)
        assert gradcheck(attend, [mg.tensor(x) for x in (q, k, v)])
