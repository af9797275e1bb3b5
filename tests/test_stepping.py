"""One position at a time through a stack by compiled jobs: what its modules compute, whatever the blocks and the caches are."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import kernels, nn
from minigrad.nn.transformer import blocks as transformer
from minigrad.nn.transformer import stepping

pytest.importorskip("numba")

WIDTH = 64
PAIRS: dict[str, dict[str, Any]] = {
    "plain": {},
    "post-norm": {"norm_first": False, "activation": "relu"},
    "without biases": {"bias": False, "norm": "rms", "activation": "swiglu", "hidden": 100},
    "parallel": {"parallel": True},
    "sandwich": {"sandwich": True, "norm": "rms", "activation": "geglu_tanh"},
    "rotary": {"rotary": nn.RotaryPositions(16)},
    "grouped heads": {"kv_heads": 2, "rotary": nn.RotaryPositions(16, style="half")},
    "wide heads": {"kv_heads": 1, "head_dim": 48, "qk_norm": "rms", "rotary": nn.RotaryPositions(48, rotary_dim=24)},
    "window": {"window": 4},
    "scale": {"scale": 0.3, "final_norm": False},
    "recurrence": {"recurrence": "ssru"},
    **{name: {"activation": name} for name in ("gelu", "gelu_tanh", "silu", "tanh", "geglu", "reglu")},
}


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    with kernels.use("numba"), mg.no_grad():
        yield


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each step that was asked for, whether jobs did it."""
    said: list[bool] = []

    def watched(*args: Any, **options: Any) -> Any:
        made = stepping.step(*args, **options)
        said.append(made is not None)
        return made

    monkeypatch.setattr(transformer, "step", watched)
    return said


def drawn(*shape: int, seed: int = 0) -> mg.Tensor:
    return mg.tensor(np.random.default_rng(seed).standard_normal(shape, np.float32))


def made(kind: type = nn.Encoder, **options: Any) -> Any:
    mg.manual_seed(0)
    stack = kind(2, WIDTH, 4, **{"causal": True, **options}).eval()
    for parameter in stack.parameters():  # norms and biases too
        parameter += 0.1 * mg.randn(*parameter.shape)
    return stack


def positions(stack: Any, x: mg.Tensor, *memory: Any, first: int = 3, **given: Any) -> np.ndarray:
    """The output of a prompt of `first` positions, then of one position after the other, with a cache."""
    cache = stack.new_cache()
    outs = [stack(x[:, :first], *memory, cache=cache, **given)]
    outs += [stack(x[:, i : i + 1], *memory, cache=cache, **given) for i in range(first, x.shape[1])]
    return np.concatenate([out.numpy() for out in outs], axis=1)


def by_modules(monkeypatch: pytest.MonkeyPatch, *args: Any, **given: Any) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(transformer, "step", lambda *_, **__: None)
        return positions(*args, **given)


@pytest.mark.parametrize("rows", [1, 3, 70])
@pytest.mark.parametrize("name", PAIRS)
def test_each_kind_of_block_gives_what_its_modules_give(name, rows, taken, monkeypatch):
    stack, x = made(**PAIRS[name]), drawn(rows, 12, WIDTH)
    wanted = by_modules(monkeypatch, stack, x)
    np.testing.assert_allclose(positions(stack, x), wanted, rtol=0, atol=1e-5)
    assert taken == [False] + [True] * 9


@pytest.mark.parametrize("format", ["f16", "bf16", "i8", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"])
def test_packed_weights_are_read_as_they_are(format, taken, monkeypatch):
    stack, x = made(kv_heads=2, activation="swiglu"), drawn(2, 8, WIDTH)
    state = stack.state_dict().items()
    stack.load_state_dict({k: nn.Packed.from_floats(v, format) if v.ndim == 2 else v for k, v in state})
    wanted = by_modules(monkeypatch, stack, x)
    np.testing.assert_allclose(positions(stack, x), wanted, rtol=0, atol=1e-5)
    assert all(taken[1:])


@pytest.mark.parametrize(
    "options", [{}, {"memory_dim": 40}, {"recurrence": "ssru", "norm_first": False}, {"kv_heads": 1}]
)
@pytest.mark.parametrize("masked", [False, True])
def test_a_decoder_looks_at_its_memory(options, masked, taken, monkeypatch):
    stack, x = made(nn.Decoder, **options), drawn(3, 9, WIDTH)
    memory = drawn(3, 7, options.get("memory_dim", WIDTH), seed=1)
    given = {"memory_mask": nn.padding_mask([7, 3, 5])} if masked else {}
    wanted = by_modules(monkeypatch, stack, x, memory, **given)
    np.testing.assert_allclose(positions(stack, x, memory, **given), wanted, rtol=0, atol=1e-5)
    assert all(taken[1:])


def test_padded_rows_have_masks_and_positions_of_their_own(taken, monkeypatch):
    stack, x = made(rotary=nn.RotaryPositions(16)), drawn(2, 7, WIDTH)
    tokens = np.array([[False, False, True, True, True, True, True], [True] * 7])
    places = np.clip(tokens.cumsum(axis=1) - 1, 0, None)

    def outputs() -> list[np.ndarray]:
        cache, outs = stack.new_cache(), []
        for begin, end in ((0, 4), (4, 5), (5, 6), (6, 7)):
            given = {"mask": nn.padding_mask(tokens[:, :end]), "positions": places[:, begin:end]}
            outs.append(stack(x[:, begin:end], cache=cache, **given).numpy())
        return outs

    got = outputs()
    assert taken == [False, True, True, True]
    monkeypatch.setattr(transformer, "step", lambda *_, **__: None)
    for one, wanted in zip(got, outputs()):
        np.testing.assert_allclose(one[tokens[:, -one.shape[1] :]], wanted[tokens[:, -one.shape[1] :]], atol=1e-5)


def test_rows_are_chosen_between_steps_as_a_beam_search_does(taken, monkeypatch):
    stack, x, memory = made(nn.Decoder), drawn(4, 5, WIDTH), drawn(4, 6, WIDTH, seed=1)

    def outputs() -> list[np.ndarray]:
        cache, outs = stack.new_cache(), []
        for i, rows in enumerate(([0, 1, 2, 3], [3, 3, 0, 1], [2, 0], [1, 1, 0, 0, 1], [4])):
            if i:
                cache.select(mg.tensor(rows))
            new = x[[row % 4 for row in rows], i : i + 1]
            outs.append(stack(new, memory[: len(rows)] if i == 0 else new, cache=cache).numpy())
        return outs

    got = outputs()
    assert taken == [False, True, True, True, True]
    monkeypatch.setattr(transformer, "step", lambda *_, **__: None)
    for one, wanted in zip(got, outputs()):
        np.testing.assert_allclose(one, wanted, atol=1e-5)


def test_a_long_text_outgrows_its_cache_many_times(taken, monkeypatch):
    stack, x = made(), drawn(1, 150, WIDTH)
    np.testing.assert_allclose(positions(stack, x), by_modules(monkeypatch, stack, x), rtol=0, atol=1e-5)
    assert all(taken[1:])


def test_a_step_writes_into_the_memory_of_its_cache_which_is_not_copied(taken):
    stack, x = made(), drawn(2, 30, WIDTH)
    cache = stack.new_cache(room=40)
    stack(x[:, :10], cache=cache)
    stores = [store.data for block in cache.blocks for store in block.own._stores]
    kept = [array[:, :, :10].copy() for array in stores]
    for place in range(10, 30):
        stack(x[:, place : place + 1], cache=cache)
    assert all(taken[1:])
    now = [store.data for block in cache.blocks for store in block.own._stores]
    for array, before, first in zip(now, stores, kept):
        assert array is before
        assert array[:, :, 10:30].any(axis=-1).all()  # the new positions are there
        np.testing.assert_array_equal(array[:, :, :10], first)


def test_texts_of_one_model_may_take_turns(monkeypatch):
    stack, first, second = made(), drawn(1, 8, WIDTH), drawn(2, 8, WIDTH, seed=1)
    wanted = [by_modules(monkeypatch, stack, x, first=1) for x in (first, second)]
    caches = [stack.new_cache(), stack.new_cache()]
    for i in range(8):
        for x, cache, want in zip((first, second), caches, wanted):
            np.testing.assert_allclose(stack(x[:, i : i + 1], cache=cache).numpy(), want[:, i : i + 1], atol=1e-5)


def test_texts_of_several_threads_do_not_mix(monkeypatch):
    stack = made()
    texts = [drawn(1, 30, WIDTH, seed=seed) for seed in range(4)]
    wanted = [by_modules(monkeypatch, stack, x) for x in texts]
    wrong: list[int] = []

    def write(i: int) -> None:
        with kernels.use("numba"), mg.no_grad():
            for _ in range(5):
                if np.abs(positions(stack, texts[i]) - wanted[i]).max() > 1e-5:
                    wrong.append(i)

    several = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert not wrong


def test_weights_that_change_are_the_ones_that_count(taken, monkeypatch):
    stack, x = made(), drawn(1, 6, WIDTH)
    for change in (
        lambda: stack.blocks[0].mlp.up.weight.__imul__(2),
        lambda: stack.load_state_dict({k: v * 1.5 for k, v in stack.state_dict().items()}),
        lambda: setattr(stack.blocks[1], "mlp", nn.MLP(WIDTH, 32)),
        lambda: stack.to("float64").to("float32"),
        lambda: setattr(
            stack.blocks[0].attention.out_proj, "weight", nn.Packed.from_floats(drawn(WIDTH, WIDTH), "q8_0")
        ),
    ):
        positions(stack, x)
        change()
        np.testing.assert_allclose(positions(stack, x), by_modules(monkeypatch, stack, x), rtol=0, atol=1e-5)
    assert taken.count(False) == 10  # the prompts


def test_what_is_unusual_is_left_to_the_modules(taken):
    x = drawn(1, 6, WIDTH)
    heard: list[Any] = []
    listened = made()
    listened.blocks[0].mlp.register_forward_hook(lambda *_: heard.append(1))
    positions(listened, x)
    assert heard == [1] * 4
    watched = made()
    with nn.watch_attention(watched) as seen:
        positions(watched, x)
    assert all(len(calls) == 4 for calls in seen.values())
    for stack in (
        made(dropout=0.1).train(),
        made(softcap=5.0),
        made(relative=nn.RelativePositions(4)),
        nn.Encoder(1, 60, 4, causal=True).eval(),  # heads of 15
        made().to("float64"),
    ):
        positions(stack, drawn(1, 6, stack.blocks[0].mlp.up.in_features).astype(stack.blocks[0].mlp.up.weight.dtype))
    positions(made(), drawn(257, 5, WIDTH))  # too many rows
    assert not any(taken)


def test_a_hook_that_comes_later_is_heard(taken):
    stack, x = made(), drawn(1, 6, WIDTH)
    positions(stack, x)
    heard: list[Any] = []
    handle = stack.blocks[1].attention.register_forward_pre_hook(lambda *_: heard.append(1))
    positions(stack, x)
    handle.remove()
    assert heard == [1] * 4 and taken == [False, True, True, True, False, False, False, False]


def test_recording_and_tracing_are_left_to_the_modules(taken):
    stack, x = made(), drawn(1, 6, WIDTH)
    cache = stack.new_cache()
    stack(x[:, :3], cache=cache)
    before = copy.deepcopy(cache)
    names: list[str] = []

    class Names(mg.tracer.Tracer):
        def called(self, op: Any, *_: Any) -> None:
            names.append(op.name)

    with mg.tracer.tracing(Names()):
        stack(x[:, 3:4], cache=cache)
    assert "attention" in names and taken == [False, False]
    with mg.enable_grad(), pytest.raises(mg.errors.GradientError):
        stack(x[:, 3:4], cache=before)


def test_a_model_is_forgotten_with_its_program():
    stack = made()
    positions(stack, drawn(1, 6, WIDTH))
    known = weakref.ref(stack)
    del stack
    gc.collect()
    assert known() is None


def test_choosing_rows_copies_no_keys_and_values(taken):
    stack, x, memory = made(nn.Decoder), drawn(6, 4, WIDTH), drawn(2, 5, WIDTH, seed=1)
    cache = stack.new_cache(room=8)
    stack(x[:2, :1], memory, cache=cache)
    cache.select([0, 0, 0, 1, 1, 1])
    stack(x[:, 1:2], memory, cache=cache)  # which makes room for as many rows
    kept = [store.data for block in cache.blocks for store in (*block.own._stores, *block.memory._stores)]
    assert {len(block.memory._stores[0]) for block in cache.blocks} == {2}  # one for all beams of a sentence
    for place, rows in ((2, [5, 5, 4, 0, 1, 2]), (3, [1, 0, 3])):
        cache.select(rows)
        stack(x[: len(rows), place : place + 1], memory, cache=cache)
    now = [store.data for block in cache.blocks for store in (*block.own._stores, *block.memory._stores)]
    assert all(a is b for a, b in zip(now, kept)) and all(taken[1:])
