"""Recurrent networks: PyTorch's numbers with lengths and first states, no step that padding can change, and truncated gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import kernels, nn
from minigrad.errors import ArgumentError, CallError, IndexingError, ShapeError

KINDS = ("RNN", "GRU", "LSTM")
LENGTHS = [5, 2, 4]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def flat(out: Any) -> list[Any]:
    """The outputs of a layer and its last states."""
    first, last = out
    return [first, *(last if isinstance(last, tuple) else (last,))]


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", ["numpy", "definitions"])
def test_lengths_and_first_states_give_what_packed_sequences_give_in_pytorch(kind: str, use: str):
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    theirs = getattr(torch.nn, kind)(4, 3, 2, bidirectional=True, batch_first=True).double()
    ours = getattr(nn, kind)(4, 3, 2, bidirectional=True, batch_first=True, dtype="float64")
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    count = 2 if kind == "LSTM" else 1
    values = [normal(3, 5, 4), *[normal(4, 3, 3, seed=i + 1) for i in range(count)]]
    x, *states = [mg.tensor(v, requires_grad=True) for v in values]
    y, *others = [torch.tensor(v, requires_grad=True) for v in values]
    with kernels.use(use):
        mine = flat(ours(x, tuple(states) if count == 2 else states[0], lengths=LENGTHS))
    packed = pack_padded_sequence(y, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    out, last = theirs(packed, tuple(others) if count == 2 else others[0])
    wanted = flat((pad_packed_sequence(out, batch_first=True)[0], last))
    for a, b in zip(mine, wanted):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)
    weights = [normal(*a.shape, seed=7) for a in mine]
    with kernels.use(use):
        sum((a * mg.tensor(w)).sum() for a, w in zip(mine, weights)).backward()
    sum((b * torch.tensor(w)).sum() for b, w in zip(wanted, weights)).backward()
    named = dict(theirs.named_parameters())
    pairs = [*zip((x, *states), (y, *others)), *[(p, named[key]) for key, p in ours.named_parameters()]]
    for a, b in pairs:
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("use", ["numba", "numpy", "definitions"])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_padding_holds_changes_nothing(kind: str, use: str):
    if use == "numba":
        pytest.importorskip("numba")
    layer = getattr(nn, kind)(4, 32, bidirectional=True)
    seen = []
    for padding in (0.0, float("nan")):
        x = normal(5, 3, 4).astype("float32")
        for row, length in enumerate(LENGTHS):
            x[length:, row] = padding
        layer.zero_grad()
        with kernels.use(use):
            given = mg.tensor(x, requires_grad=True)
            out = flat(layer(given, lengths=LENGTHS))
            sum(part.sum() for part in out).backward()
        seen.append([*out, given.grad, *[p.grad for p in layer.parameters()]])
        assert not given.grad.numpy()[4, 1:].any()
    for a, b in zip(*seen):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_in_pieces_gives_the_same_and_gradients_end_where_states_are_detached(kind: str):
    layer, x = getattr(nn, kind)(4, 3, dtype="float64"), mg.tensor(normal(6, 2, 4), requires_grad=True)
    whole = layer(x)[0]
    first, state = layer(x[:3])
    rest, _ = layer(x[3:], state)
    np.testing.assert_allclose(mg.concatenate([first, rest]).numpy(), whole.numpy(), rtol=1e-12)
    (through,) = mg.autograd.grad(rest.sum(), [x])
    assert through.numpy()[:3].all()
    cut = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
    (truncated,) = mg.autograd.grad(layer(x[3:], cut)[0].sum(), [x])
    assert not truncated.numpy()[:3].any()
    np.testing.assert_allclose(truncated.numpy()[3:], through.numpy()[3:], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_one_step_of_the_layer(kind: str):
    layer, cell = getattr(nn, kind)(4, 3), getattr(nn, f"{kind}Cell")(4, 3)
    cell.load_state_dict({key.removesuffix("_l0"): value for key, value in layer.state_dict().items()})
    x, state = mg.tensor(normal(5, 2, 4).astype("float32")), None
    for step in range(5):
        state = cell(x[step], state)
    hidden = state[0] if kind == "LSTM" else state
    np.testing.assert_allclose(hidden.numpy(), layer(x)[0][-1].numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(flat((cell(x[0, 0]), ()))[0][0].numpy() if kind == "LSTM" else cell(x[0, 0]).numpy(),
                               layer(x[:1])[0][0, 0].numpy(), rtol=1e-5, atol=1e-6)  # fmt: skip


def test_a_single_sequence_needs_no_axis_for_the_batch():
    layer, x = nn.LSTM(4, 3, 2, bidirectional=True), mg.tensor(normal(5, 4).astype("float32"))
    out, (hidden, cell) = layer(x)
    batched, (first, _) = layer(x[:, None])
    assert (out.shape, hidden.shape, cell.shape) == ((5, 6), (4, 3), (4, 3))
    np.testing.assert_array_equal(out.numpy(), batched.numpy()[:, 0])
    np.testing.assert_array_equal(hidden.numpy(), first.numpy()[:, 0])
    np.testing.assert_array_equal(layer(x, (hidden, cell))[0].numpy().shape, (5, 6))


def test_dropout_lies_between_layers_and_only_in_training():
    x = mg.tensor(normal(5, 2, 4).astype("float32"))
    one, two = nn.GRU(4, 3, 1, dropout=0.5), nn.GRU(4, 3, 2, dropout=0.5)
    assert (one(x)[0] == one(x)[0]).all() and not (two(x)[0] == two(x)[0]).all()
    two.eval()
    assert (two(x)[0] == two(x)[0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_writing_into_the_outputs_does_not_spoil_the_gradients_silently(kind: str):
    layer, x = getattr(nn, kind)(4, 3), mg.tensor(normal(5, 2, 4).astype("float32"), requires_grad=True)
    (wanted,) = mg.autograd.grad(layer(x)[0].sum() * 2, [x])
    out, _ = layer(x)
    out *= 2
    try:
        (got,) = mg.autograd.grad(out.sum(), [x])
    except mg.errors.GradientError:
        return
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        (lambda: nn.RNN(4, 3)(mg.ones(5, 2, 3)), ShapeError, r"RNN: the input does not fit"),
        (lambda: nn.RNN(4, 3)(mg.ones(0, 2, 4)), ShapeError, "one step or more"),
        (lambda: nn.GRU(4, 3)(mg.ones(5, 2, 4), mg.ones(1, 3, 3)), ShapeError, r"GRU: a first state does not fit"),
        (lambda: nn.LSTM(4, 3)(mg.ones(5, 2, 4), mg.ones(1, 2, 3)), CallError, r"\(hidden, cell\)"),
        (lambda: nn.LSTM(4, 3)(mg.ones(5, 2, 4), lengths=[6, 1]), IndexingError, "1 to 5 steps"),
        (lambda: nn.LSTM(4, 3)(mg.ones(5, 2, 4), lengths=[5]), ShapeError, "the lengths do not fit"),
        (lambda: nn.LSTM(4, 3, proj_size=2), ArgumentError, "put an nn.Linear behind"),
        (lambda: nn.RNN(4, 3, nonlinearity="relu"), ArgumentError, "'tanh'"),
        (lambda: nn.LSTMCell(4, 3)(mg.ones(2, 5)), ShapeError, "LSTMCell: the input does not fit"),
    ],
)
def test_mistakes_are_named(wrong: Any, error: type[Exception], told: str):
    with pytest.raises(error, match=told):
        wrong()


def test_layers_and_cells_are_made_with_a_dtype_and_on_a_device():
    for layer in (nn.LSTM(3, 2, dtype="float64", device="fake"), nn.GRUCell(3, 2, dtype="float64", device="fake")):
        assert all(p.device == "fake" and p.dtype == np.float64 for p in layer.parameters())
