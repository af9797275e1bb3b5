"""Parameters that lie side by side in memory behave in every way like parameters that do not."""

from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

import minigrad as mg
from minigrad.optim.arena import Arena

OPTIMIZERS = {
    "SGD": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "RMSprop": lambda p: mg.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "AdamW": lambda p: mg.optim.AdamW(p, lr=0.01),
}


def parameters(count=3, dtype="float64"):
    rng = np.random.default_rng(0)
    return [mg.tensor(rng.standard_normal((i + 1, 3)), dtype=dtype, requires_grad=True) for i in range(count)]


def arena_of(optimizer, group=0):
    found = optimizer._arenas.get(group)
    return found if isinstance(found, Arena) else None


def train(optimizer, params, steps=4):
    for i in range(steps):
        optimizer.zero_grad()
        sum((p * p * (i + 1)).sum() for p in params).backward()
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_in_an_arena_is_bit_for_bit_the_step_outside(name, monkeypatch):
    inside, outside = parameters(dtype="float32"), parameters(dtype="float32")
    optimizer = OPTIMIZERS[name](inside)
    train(optimizer, inside, 6)
    assert arena_of(optimizer) is not None
    monkeypatch.setattr("minigrad.optim.optimizer.can_move", lambda *given: False)
    optimizer = OPTIMIZERS[name](outside)
    train(optimizer, outside, 6)
    assert arena_of(optimizer) is None
    for a, b in zip(inside, outside):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_the_weights_are_windows_of_one_array_and_still_the_same_tensors():
    params = parameters()
    optimizer = mg.optim.Adam(params)
    train(optimizer, params)
    arena = arena_of(optimizer)
    assert all(np.shares_memory(arena.p, p.data) for p in params)
    arena.p[:] = 7
    assert all((p.numpy() == 7).all() for p in params)


def test_a_parameter_that_somebody_else_looks_at_is_not_moved_away_from_them():
    params = parameters()
    alias = params[0].detach()
    optimizer = mg.optim.SGD(params, lr=0.1)
    train(optimizer, params)
    assert arena_of(optimizer) is None
    assert (alias.numpy() == params[0].numpy()).all()
    del alias
    view = params[1].data[0]
    train(optimizer, params)
    assert arena_of(optimizer) is None and (view == params[1].numpy()[0]).all()
    del view
    train(optimizer, params)
    assert arena_of(optimizer) is not None


def test_an_alias_taken_later_keeps_seeing_the_weights():
    params = parameters()
    optimizer = mg.optim.SGD(params, lr=0.1)
    train(optimizer, params)
    alias = params[0].detach()
    train(optimizer, params)
    assert (alias.numpy() == params[0].numpy()).all()


def test_memory_that_another_process_may_share_is_not_left():
    params = parameters()
    blocks = [SharedMemory(create=True, size=p.data.nbytes) for p in params]
    for p, block in zip(params, blocks):
        p.data = np.frombuffer(block.buf, p.dtype, p.size).reshape(p.shape)
    optimizer = mg.optim.SGD(params, lr=0.1)
    for p in params:
        p.data[...] = 1
    train(optimizer, params)
    seen = [np.frombuffer(block.buf, p.dtype, p.size).tolist() for p, block in zip(params, blocks)]
    weights = [p.numpy().ravel().tolist() for p in params]
    for p, block in zip(params, blocks):
        p.data = np.zeros(p.shape)
        block.close()
        block.unlink()
    assert seen == weights and arena_of(optimizer) is None


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_state_of_the_optimiser_keeps_seeing_its_buffers(steps):
    params = parameters()
    optimizer = mg.optim.SGD(params, lr=0.1, momentum=0.9)
    train(optimizer, params, steps)
    saved = optimizer.state_dict()["arrays"]
    train(optimizer, params)
    for i, p in enumerate(params):
        np.testing.assert_array_equal(saved[f"{i}.momentum_buffer"].numpy(), optimizer.state[p]["momentum_buffer"])


def test_a_gradient_that_somebody_kept_after_a_step_stays_as_it_was():
    params = parameters()
    optimizer = mg.optim.SGD(params, lr=0.1)
    train(optimizer, params)
    assert arena_of(optimizer) is not None
    kept = [p.grad for p in params]
    before = [g.numpy().copy() for g in kept]
    train(optimizer, params)
    for g, b in zip(kept, before):
        np.testing.assert_array_equal(g.numpy(), b)


@pytest.mark.parametrize("how", ["cleared", "replaced", "counted anew"])
def test_a_state_that_was_changed_by_hand_is_used(how):
    """What follows is compared with an optimiser that never makes an arena."""
    results = []
    for separate in (False, True):
        params = parameters()
        keep = [p.detach() for p in params] if separate else None
        optimizer = mg.optim.AdamW(params, lr=0.01)
        train(optimizer, params)
        assert (arena_of(optimizer) is None) is (keep is not None)
        if how == "cleared":
            optimizer.state.clear()
        elif how == "replaced":
            optimizer.state[params[1]]["exp_avg"] = np.ones(params[1].shape)
        else:
            optimizer.state[params[1]]["step"] = 1
        train(optimizer, params)
        results.append([p.numpy().copy() for p in params])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_frozen_unused_and_reassigned_parameters_are_noticed(name):
    """What the optimiser does is compared with one that never makes an arena."""
    results = []
    for separate in (False, True):
        params = parameters()
        keep = [p.detach() for p in params] if separate else None
        optimizer = OPTIMIZERS[name](params)
        train(optimizer, params)
        assert (arena_of(optimizer) is None) is separate
        optimizer.zero_grad()
        (params[0] * params[2]).sum().backward() if params[0].shape == params[2].shape else params[0].sum().backward()
        optimizer.step()  # the others have no gradient
        params[1].requires_grad_(False)  # frozen
        train(optimizer, [params[0], params[2]])
        params[1].requires_grad_()
        params[0].data = params[0].data * 2  # other memory, with other values
        train(optimizer, params)
        assert separate == (keep is not None)
        results.append([p.numpy().copy() for p in params])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def test_an_arena_is_made_again_after_one_fell_apart():
    params = parameters()
    optimizer = mg.optim.Adam(params)
    train(optimizer, params)
    assert arena_of(optimizer) is not None
    optimizer.zero_grad()
    params[0].sum().backward()
    optimizer.step()
    assert arena_of(optimizer) is None
    other = mg.optim.SGD(params, lr=0.1)
    train(other, params)
    assert arena_of(other) is not None
    assert all(np.shares_memory(arena_of(other).p, p.data) for p in params)


def test_a_late_group_gets_an_arena_of_its_own():
    params = parameters(5)
    optimizer = mg.optim.SGD(params[:2], lr=0.1)
    train(optimizer, params[:2])
    optimizer.add_param_group({"params": params[2:], "lr": 0.01})
    train(optimizer, params)
    assert arena_of(optimizer, 0) is not None and arena_of(optimizer, 1) is not None


def test_a_write_into_one_parameter_is_not_taken_for_a_write_into_its_neighbour():
    params = parameters()
    optimizer = mg.optim.SGD(params, lr=0.1)
    train(optimizer, params)
    assert arena_of(optimizer) is not None
    loss = (params[0] * params[0]).sum()
    with mg.no_grad():
        params[1] *= 2
    loss.backward()  # needs params[0] only
    loss = (params[0] * params[0]).sum()
    with mg.no_grad():
        params[0] *= 2
    with pytest.raises(mg.MinigradError, match="overwritten"):
        loss.backward()


def test_a_state_saved_from_an_arena_is_loaded_into_a_fresh_optimiser():
    params = parameters()
    optimizer = mg.optim.AdamW(params)
    train(optimizer, params)
    copies = [mg.tensor(p.numpy().copy(), requires_grad=True) for p in params]
    fresh = mg.optim.AdamW(copies)
    fresh.load_state_dict(optimizer.state_dict())
    train(optimizer, params)
    train(fresh, copies)
    for a, b in zip(params, copies):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_scaling_on_the_way_is_scaling_before():
    for scale in (0.5, 0.3):
        one, two = parameters(), parameters()
        first, second = mg.optim.AdamW(one), mg.optim.AdamW(two)
        for _ in range(4):
            for params, optimizer in ((one, first), (two, second)):
                optimizer.zero_grad()
                sum((p * p).sum() for p in params).backward()
            first.step(scale)
            for p in two:
                p.grad = p.grad * scale
            second.step()
        for a, b in zip(one, two):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
