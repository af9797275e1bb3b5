"""Threads that build and differentiate separate graphs at once do not disturb each other."""

import sys
import threading

import numpy as np
import pytest
from support.scopes import scope

import minigrad as mg
from minigrad.engine.modes import local
from minigrad.engine.writes import writes
from minigrad.errors import NonFiniteError


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*functions):
    """Run the functions at once, each in a thread, and return their results in order; the first error is raised here."""
    start = threading.Barrier(len(functions))
    results, errors = [None] * len(functions), []

    def run(i, function):
        try:
            start.wait()
            results[i] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i, f)) for i, f in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def train(seed, steps=60):
    """A small network trained on its own data, with views, in-place writes and an op with several outputs; returns all weights."""
    rng = np.random.default_rng(seed)
    x, y = mg.tensor(rng.normal(size=(8, 3))), mg.tensor(rng.normal(size=(8, 2)))
    w1, w2 = (mg.tensor(rng.normal(size=s), requires_grad=True) for s in ((3, 6), (6, 2)))
    for _ in range(steps):
        hidden = (x @ w1).tanh()
        left, right = mg.split(hidden, 2, axis=1)
        joined = mg.concatenate([right * 2, left.exp()], axis=1)
        joined[0] = joined[1].clone() * 0.5
        loss = ((joined @ w2 - y) ** 2).mean()
        grads = mg.autograd.grad(loss, [w1, w2])
        with mg.no_grad():
            for w, g in zip((w1, w2), grads):
                w -= 0.05 * g
    return np.concatenate([w1.numpy().ravel(), w2.numpy().ravel()])


@pytest.mark.parametrize("count", [2, 8])
def test_results_equal_those_of_one_thread(count):
    alone = [train(seed) for seed in range(count)]
    at_once = together(*[lambda seed=seed: train(seed) for seed in range(count)])
    for one, other in zip(alone, at_once):
        np.testing.assert_array_equal(one, other)


def test_gradients_accumulate_in_each_thread_alone():
    def accumulate(n):
        x = mg.tensor(np.full(3, float(n)), requires_grad=True)
        for _ in range(200):
            (x * x).sum().backward()
        return x.grad.numpy()

    for n, grad in enumerate(together(*[lambda n=n: accumulate(n) for n in range(4)])):
        np.testing.assert_array_equal(grad, np.full(3, 400.0 * n))


def test_modes_belong_to_their_thread():
    rounds = 300
    x = mg.tensor([1.0, 2.0], requires_grad=True)

    def quiet():
        with mg.no_grad():
            return all(not (x * 2).requires_grad for _ in range(rounds))

    def recording():
        return all((x * 2).requires_grad for _ in range(rounds))

    def watching():
        caught = 0
        with mg.debug(), np.errstate(divide="ignore"):
            for _ in range(rounds):
                try:
                    (x - x).log()
                except NonFiniteError:
                    caught += 1
        return caught == rounds

    def unwatched():
        with np.errstate(divide="ignore"):
            return all(np.isneginf((x - x).log().numpy()).all() for _ in range(rounds))

    def inside_a_module():
        with scope("block"):
            return all((x * 2).node.scope == "block" for _ in range(rounds))

    def outside():
        return all((x * 2).node.scope == "" for _ in range(rounds))

    assert together(quiet, recording, watching, unwatched, inside_a_module, outside) == [True] * 6
    assert local.mode.record and not local.mode.tracers


def test_a_thread_begins_with_recording_on_whatever_its_parent_does():
    with mg.no_grad():
        assert together(mg.is_grad_enabled) == [True]
        assert not mg.is_grad_enabled()


def test_the_backward_of_one_thread_does_not_stop_another_from_recording():
    done = threading.Event()
    x = mg.tensor(np.ones(50), requires_grad=True)

    def backwards():
        try:
            for _ in range(200):
                y = x
                for _ in range(10):
                    y = y * 1.01
                mg.autograd.grad(y.sum(), x)
        finally:
            done.set()
        return True

    def records():
        while not done.is_set():
            if not (x * 2).requires_grad:
                return False
        return True

    assert together(backwards, records) == [True, True]


def test_one_op_is_recorded_for_the_first_time_in_many_threads():
    for _ in range(20):

        @mg.op
        def fresh(xp, a, b, *, scale=2.0):
            return a * b * scale

        fresh.vjp(a=lambda g, b, scale: g * b * scale, b=lambda g, a, scale: g * a * scale)

        def use(fresh=fresh):
            a, b = mg.tensor(3.0, requires_grad=True), mg.tensor(5.0, requires_grad=True)
            fresh(a, b, scale=4.0).backward()
            return a.grad.item(), b.grad.item()

        assert together(*[use] * 6) == [(20.0, 12.0)] * 6


def test_the_record_of_writes_stays_exact():
    entries, recorded = len(writes._by_owner), len(writes._recorded)

    def write():
        for _ in range(300):
            x = mg.tensor(np.ones(3), requires_grad=True)
            y = x * 1
            y[0] = 2.0
            y += x
        return True

    assert all(together(*[write] * 8))
    assert len(writes._by_owner) == entries and len(writes._recorded) == recorded


@pytest.mark.parametrize("decorated", [True, False])
@pytest.mark.parametrize("ends_in_no_grad", [True, False])
def test_a_generator_may_go_on_and_end_in_another_thread(decorated, ends_in_no_grad):
    seen = []

    def modes():
        with mg.enable_grad():
            yield mg.is_grad_enabled()
        seen.append(mg.is_grad_enabled())
        with mg.no_grad():
            yield mg.is_grad_enabled()

    steps = (mg.no_grad(modes) if decorated else modes)()
    assert next(steps) and mg.is_grad_enabled()

    def elsewhere():
        with mg.no_grad() if ends_in_no_grad else mg.enable_grad():
            assert not next(steps)
            if decorated:
                assert mg.is_grad_enabled() != ends_in_no_grad
        assert mg.is_grad_enabled() or not decorated
        return True

    assert together(elsewhere) == [True]
    steps.close()
    assert mg.is_grad_enabled()
    if decorated:
        assert seen == [False]


def test_a_mode_object_that_threads_share_gives_each_its_own_mode_back():
    quiet = mg.no_grad()

    def within():
        for _ in range(300):
            with mg.enable_grad():
                with quiet:
                    assert not mg.is_grad_enabled()
                assert mg.is_grad_enabled()
        return True

    def without():
        with mg.no_grad():
            for _ in range(300):
                with quiet:
                    assert not mg.is_grad_enabled()
                assert not mg.is_grad_enabled()
        return True

    assert together(within, without, within) == [True] * 3


class Interrupting:
    """A lock that lets another write come in between, whenever it is entered from outside."""

    def __init__(self, between):
        self.between, self.depth, self.lock = between, 0, threading.RLock()

    def __enter__(self):
        self.depth += 1
        if self.depth == 1:
            self.between()
        return self.lock.__enter__()

    def __exit__(self, *error):
        self.depth -= 1
        return self.lock.__exit__(*error)


def test_the_date_of_the_last_recorded_write_never_goes_back(monkeypatch):
    x = mg.tensor(np.ones(3), requires_grad=True)
    y, other = x * 1, x * 2
    dates = []

    def between():
        writes.mark(other.data, (other * 1).node)
        dates.append((writes.since, writes.latest))

    monkeypatch.setattr(writes, "_changing", Interrupting(between))
    writes.mark(y.data, (y * 1).node)
    monkeypatch.undo()
    assert dates and writes.since > dates[0][0] and writes.latest > dates[0][1]
