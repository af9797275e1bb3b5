"""Small parameters that take their step side by side behave in every way like parameters that do not."""

from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

import minigrad as mg
from minigrad.optim import optimizer as module

OPTIMIZERS = {
    "SGD": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "RMSprop": lambda p: mg.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "AdamW": lambda p: mg.optim.AdamW(p, lr=0.01),
    "NAdam": lambda p: mg.optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: mg.optim.RAdam(p, lr=0.01),
    "Rprop": lambda p: mg.optim.Rprop(p, lr=0.01),
}


def parameters(count=3, dtype="float64"):
    rng = np.random.default_rng(0)
    return [mg.tensor(rng.standard_normal((i + 1, 3)), dtype=dtype, requires_grad=True) for i in range(count)]


def is_flat(optimizer, group=0):
    """Whether the group's parameters took the last step side by side."""
    flat = optimizer._flats.get(group)
    params = optimizer.param_groups[group]["params"]
    return flat is not None and flat.holds(params, optimizer.state, optimizer.buffers(optimizer.param_groups[group]))


def train(optimizer, params, steps=4):
    for i in range(steps):
        optimizer.zero_grad()
        sum((p * p * (i + 1)).sum() for p in params).backward()
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_together_is_bit_for_bit_the_step_apart(name, monkeypatch):
    inside, outside = parameters(dtype="float32"), parameters(dtype="float32")
    optimizer = OPTIMIZERS[name](inside)
    train(optimizer, inside, 6)
    assert is_flat(optimizer)
    monkeypatch.setattr(module, "SMALL", 0)
    optimizer = OPTIMIZERS[name](outside)
    train(optimizer, outside, 6)
    assert not is_flat(optimizer)
    for a, b in zip(inside, outside):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_parameters_stay_where_they_are():
    params = parameters()
    memory, alias, view = [p.data for p in params], params[0].detach(), params[1].data[0]
    optimizer = mg.optim.SGD(params, lr=0.1)
    train(optimizer, params)
    assert is_flat(optimizer) and all(p.data is array for p, array in zip(params, memory))
    assert (alias.numpy() == params[0].numpy()).all() and (view == params[1].numpy()[0]).all()


def test_large_and_small_parameters_of_one_group_take_the_same_step():
    """A group beyond BLOCK elements is stepped by compiled kernels, if there are any: then the small ones too."""
    sizes = (5, 7, module.BLOCK)
    params = [mg.tensor(np.full(n, 0.5, "float32"), requires_grad=True) for n in sizes]
    optimizer = mg.optim.AdamW(params, lr=0.01)
    train(optimizer, params)
    assert len({p.numpy()[0].item() for p in params}) == 1 and all(len(set(p.numpy().tolist())) == 1 for p in params)


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
    assert seen == weights


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
    assert is_flat(optimizer)
    kept = [p.grad for p in params]
    before = [g.numpy().copy() for g in kept]
    train(optimizer, params)
    for g, b in zip(kept, before):
        np.testing.assert_array_equal(g.numpy(), b)


@pytest.mark.parametrize("how", ["cleared", "replaced", "counted anew"])
def test_a_state_that_was_changed_by_hand_is_used(how, monkeypatch):
    """What follows is compared with an optimiser that steps each parameter apart."""
    results = []
    for separate in (False, True):
        if separate:
            monkeypatch.setattr(module, "SMALL", 0)
        params = parameters()
        optimizer = mg.optim.AdamW(params, lr=0.01)
        train(optimizer, params)
        assert is_flat(optimizer) is not separate
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
def test_frozen_unused_and_reassigned_parameters_are_noticed(name, monkeypatch):
    """What the optimiser does is compared with one that steps each parameter apart."""
    results = []
    for separate in (False, True):
        if separate:
            monkeypatch.setattr(module, "SMALL", 0)
        params = parameters()
        optimizer = OPTIMIZERS[name](params)
        train(optimizer, params)
        assert is_flat(optimizer) is not separate
        optimizer.zero_grad()
        (params[0] * params[2]).sum().backward() if params[0].shape == params[2].shape else params[0].sum().backward()
        optimizer.step()  # the others have no gradient
        params[1].requires_grad_(False)  # frozen
        train(optimizer, [params[0], params[2]])
        params[1].requires_grad_()
        params[0].data = params[0].data * 2  # other memory, with other values
        train(optimizer, params)
        results.append([p.numpy().copy() for p in params])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def test_a_late_group_is_stepped_together_too():
    params = parameters(5)
    optimizer = mg.optim.SGD(params[:2], lr=0.1)
    train(optimizer, params[:2])
    optimizer.add_param_group({"params": params[2:], "lr": 0.01})
    train(optimizer, params)
    assert is_flat(optimizer, 0) and is_flat(optimizer, 1)


def test_a_write_into_one_parameter_is_not_taken_for_a_write_into_its_neighbour():
    params = parameters()
    optimizer = mg.optim.SGD(params, lr=0.1)
    train(optimizer, params)
    assert is_flat(optimizer)
    loss = (params[0] * params[0]).sum()
    with mg.no_grad():
        params[1] *= 2
    loss.backward()  # needs params[0] only
    loss = (params[0] * params[0]).sum()
    with mg.no_grad():
        params[0] *= 2
    with pytest.raises(mg.MinigradError, match="overwritten"):
        loss.backward()


def test_a_state_saved_from_a_flat_array_is_loaded_into_a_fresh_optimiser():
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
            first.step(scale=scale)
            for p in two:
                p.grad = p.grad * scale
            second.step()
        for a, b in zip(one, two):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_parameters_that_share_memory_lose_no_update(monkeypatch):
    results = []
    for small in (module.SMALL, 0):
        monkeypatch.setattr(module, "SMALL", small)
        first, second = (mg.tensor(np.ones(2), requires_grad=True) for _ in range(2))
        second.data = first.data
        optimizer = mg.optim.SGD([first, second], lr=0.1)
        (first.sum() + 10 * second.sum()).backward()
        optimizer.step()
        results.append(first.numpy().tolist())
    assert results[0] == results[1]
    np.testing.assert_allclose(results[0], 1 - 0.1 * 11)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_loaded_state_takes_the_step_that_would_have_been_taken(order):
    """Small and large parameters of a group that compiled kernels step: whatever came before, the bits are the same."""

    def fresh():
        rng = np.random.default_rng(1)
        arrays = [rng.standard_normal(shape).astype("float32") for shape in ((5, 7), (3, 4), (300, 200))]
        made = [mg.tensor(array, requires_grad=True) for array in arrays]
        for p in made:
            p.data = np.asarray(p.data, order=order)
        return made

    whole, halves = fresh(), fresh()
    optimizer = mg.optim.AdamW(whole, lr=0.01)
    train(optimizer, whole, 3)
    train(optimizer, whole, 3)
    first = mg.optim.AdamW(halves, lr=0.01)
    train(first, halves, 3)
    second = mg.optim.AdamW(halves, lr=0.01)
    second.load_state_dict(first.state_dict())
    train(second, halves, 3)
    for a, b in zip(whole, halves):
        assert a.numpy().tobytes() == b.numpy().tobytes()
