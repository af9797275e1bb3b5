"""A batch that is divided among threads gives the gradients of the whole batch, the same bits every time, and no surprises."""

import os
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import zoo
from minigrad.kernels import implementation, use
from minigrad.nn import functional as F
from minigrad.random import next_key, shard_of_step
from minigrad.runtime import threads as pool
from minigrad.train import data_parallel
from minigrad.train.accumulation import accumulate_gradients
from minigrad.train.train_step import TrainStep
from minigrad.zoo.config import configure

B, T, C, V = 7, 6, 8, 11  # a batch that does not divide evenly


def shards_of(net, of, given, threads):
    return data_parallel.thread_shards(net, of, data_parallel.Shard(given, 0, len(given[0])), threads)


def model(dropout=0.0, dtype="float64"):
    mg.manual_seed(0)
    return mg.nn.Sequential(
        mg.nn.Embedding(V, C, dtype=dtype),
        mg.nn.Encoder(2, C, 2, dropout=dropout, causal=True, dtype=dtype),
        mg.nn.Linear(C, V, dtype=dtype),
    )


def batch(rows=B):
    rng = np.random.default_rng(1)
    tokens, labels = rng.integers(0, V, (rows, T)), rng.integers(0, V, (rows, T))
    labels[1::2, T // 2 :] = -100  # ragged: the shards count unlike many tokens
    return tokens, labels


def loss(net, pair):
    tokens, labels = pair
    logits = net(mg.tensor(tokens)).reshape(-1, V)
    return {
        "loss": (F.cross_entropy(logits, mg.tensor(labels).reshape(-1), reduction="sum"), int((labels != -100).sum()))
    }


def two_terms(net, pair):
    terms = loss(net, pair)
    return {**terms, "size": (net(mg.tensor(pair[0])).square().sum(), len(pair[0]))}


def gradients(threads, of=loss, dropout=0.0, rows=B, dtype="float64", batches=1):
    net = model(dropout, dtype)
    mg.manual_seed(5)
    totals, divisors = accumulate_gradients(of, net, [batch(rows)] * batches, mg.Tensor.backward, threads)
    factor = divisors.remaining(totals)
    return {name: p.grad.numpy() * factor for name, p in net.named_parameters()}, totals.means()


def assert_near(one, many, bound):
    for name, g in one.items():
        np.testing.assert_allclose(many[name], g, rtol=0, atol=bound * max(1.0, abs(g).max()), err_msg=name)


@pytest.mark.parametrize("threads", [2, 3, 7, 20])
@pytest.mark.parametrize("dropout", [0.0, 0.4], ids=["plain", "dropout"])
@pytest.mark.parametrize("of", [loss, two_terms])
def test_threads_give_the_gradients_of_the_whole_batch(threads, dropout, of):
    one, value = gradients(1, of, dropout)
    many, values = gradients(threads, of, dropout)
    assert_near(one, many, 1e-13)
    assert values == pytest.approx(value, rel=1e-13)
    assert max(abs(g).max() for g in one.values()) > 1e-3


def test_dropout_is_really_drawn_anew_for_each_row_and_step():
    net = model(dropout=0.4)
    same = np.zeros((B, T), int)
    shards = data_parallel.shard_batch((same,), 3)
    mg.manual_seed(0)
    out = np.concatenate(
        [x.numpy() for x in data_parallel.forward_shards(lambda part: net(mg.tensor(part[0])), shards)]
    )
    rows = {row.tobytes() for row in out}
    again = np.concatenate(
        [x.numpy() for x in data_parallel.forward_shards(lambda part: net(mg.tensor(part[0])), shards)]
    )
    assert len(rows) == B and not np.array_equal(out, again)
    mg.manual_seed(0)
    whole = data_parallel.forward_shards(lambda part: net(mg.tensor(part[0])), data_parallel.shard_batch((same,), 1))[
        0
    ].numpy()
    np.testing.assert_allclose(whole, out, rtol=1e-12, atol=1e-12)


def test_float32_differs_by_rounding_only_and_repeats_bit_for_bit():
    one, _ = gradients(1, dropout=0.4, dtype="float32")
    runs = [gradients(3, dropout=0.4, dtype="float32")[0] for _ in range(3)]
    assert_near(one, runs[0], 2e-6)
    for other in runs[1:]:
        assert all(runs[0][name].tobytes() == other[name].tobytes() for name in one)


def test_batches_are_accumulated_over_shares():
    one, _ = gradients(1, batches=3)
    many, _ = gradients(4, batches=3)
    assert_near(one, many, 1e-13)


def test_a_share_in_which_nothing_counts_adds_nothing():
    def only_the_first_row(net, pair):
        labels = pair[1].copy()
        labels[pair[0][:, 0] != batch()[0][0, 0]] = -100
        return loss(net, (pair[0], labels))

    one, _ = gradients(1, only_the_first_row)
    assert_near(one, gradients(7, only_the_first_row)[0], 1e-13)


def test_a_whole_training_run_on_threads_equals_one_alone_to_rounding():
    def trained(threads):
        net = model(dropout=0.2)
        stepper = TrainStep(net, loss, mg.optim.AdamW(net.parameters(), lr=1e-2), None, 1.0, threads)
        mg.manual_seed(3)
        losses = [stepper.step([batch()], i).totals.means()["loss"] for i in range(10)]
        return losses, {name: p.numpy().copy() for name, p in net.named_parameters()}

    (alone, one), (together, many) = trained(1), trained(3)
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    assert_near(one, many, 1e-9)
    assert alone[-1] < alone[0]


@pytest.mark.parametrize("name", ["bert", "gpt", "translator"])
def test_a_transformer_of_the_zoo_learns_the_same_on_threads(name):
    spec = zoo.find(name)

    def trained(threads):
        mg.manual_seed(0)
        given = spec.data(configure(spec, None, {**spec.tiny, "dropout": 0.2}), None)
        net = spec.build(given.config).to(dtype="float64")
        stepper = TrainStep(net, spec.loss, spec.optimizer(net, given.config), None, 1.0, threads)
        totals = [stepper.step([given.train.batch(0, i)], i).totals for i in range(4)]
        return [sums.means()["loss"] for sums in totals], {key: p.numpy().copy() for key, p in net.named_parameters()}

    (alone, one), (together, many) = trained(1), trained(3)
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    assert_near(one, many, 1e-9)


@pytest.mark.parametrize(
    "given",
    [
        (np.zeros((6, 2)), np.zeros(6)),
        {"x": np.zeros((6, 2)), "more": (np.zeros((6, 1)),)},
        mg.zeros(6, 3),
        mg.data.Padded.of([[1], [2, 3], [4], [5], [6], [7]]),
        [np.zeros((6, 2))],
    ],
    ids=["tuple", "dict", "tensor", "batch", "list"],
)
def test_every_kind_of_batch_is_cut_into_rows(given):
    shards = data_parallel.shard_batch(given, 4)
    assert [shard.rows for shard in shards] == [1, 2, 1, 2] and [shard.first for shard in shards] == [0, 1, 3, 4]
    assert all(type(shard.batch) is type(given) for shard in shards)
    assert [data_parallel.row_count(shard.batch) for shard in shards] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "given",
    [
        (np.zeros((6, 2)), np.zeros(5)),
        (np.zeros(6), 3),
        object(),
        mg.tensor(1.0),
        ["alpha", "omega"],
        {"x": np.zeros((5, 2)), "name": "gamma"},
    ],
    ids=["ragged", "number", "object", "scalar", "texts", "name"],
)
def test_what_cannot_be_cut_stays_whole(given):
    (shard,) = data_parallel.shard_batch(given, 4)
    assert shard.batch is given


def test_what_couples_the_examples_of_a_batch_is_not_divided():
    norm = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.BatchNorm1d(4))
    plain = mg.nn.Sequential(mg.nn.Linear(3, 4))
    given = (np.zeros((8, 3)),)

    def coupled(net, pair): ...

    coupled.couples_batch = True
    assert len(shards_of(plain, loss, given, 2)) == 2
    assert len(shards_of(norm, loss, given, 2)) == 1
    assert len(shards_of(plain, coupled, given, 2)) == 1
    with mg.debug():
        assert len(shards_of(plain, loss, given, 2)) == 1
    plain[0].weight.register_hook(lambda g: None)
    assert len(shards_of(plain, loss, given, 2)) == 1


def test_small_work_is_not_divided_unless_asked_for():
    given, small, large = (np.zeros((8, 3)),), mg.nn.Linear(3, 4), mg.nn.Linear(1000, 1000)
    assert len(shards_of(small, loss, given, None)) == 1
    assert len(shards_of(large, loss, given, None)) == min(pool.thread_count(), 8)


def test_an_error_in_one_share_is_raised_after_the_others_are_done():
    done, all_began = [], threading.Barrier(3)

    def compute(part):
        all_began.wait(20)
        if (part[0] == 0).all():
            raise ZeroDivisionError("the first shard")
        time.sleep(0.05)
        done.append(len(part[0]))

    rows = (np.arange(9) > 2).astype(int)
    with pytest.raises(ZeroDivisionError, match="the first shard"):
        data_parallel.forward_shards(compute, data_parallel.shard_batch((rows,), 3))
    assert done == [3, 3]


def test_keys_depend_on_the_step_and_the_place_alone():
    with shard_of_step(1, 0, 4):
        first = [next_key((40,)), next_key((40,))]
    with shard_of_step(1, 4, 2):
        assert [next_key((20,)), next_key((20,))] == [(key, 40) for key, _ in first]
    with shard_of_step(2, 0, 4):
        assert next_key((40,))[0] not in {key for key, _ in first}
    mg.manual_seed(1)
    a, _ = next_key((40,))
    mg.manual_seed(1)
    assert next_key((7,)) == (a, 0)


def test_a_recomputed_part_draws_the_same_in_a_share():
    x = np.random.default_rng(0).standard_normal((4, 6))

    def of(function):
        t = mg.tensor(x, requires_grad=True)
        with shard_of_step(9, 2, 4):
            y = function(lambda z: F.dropout(z * z, 0.5))(t)
        y.sum().backward()
        return t.grad.numpy()

    np.testing.assert_array_equal(of(lambda f: f), of(mg.recompute))
    assert (of(mg.recompute) == 0).any()


def test_a_blas_that_cannot_be_limited_is_left_alone_with_one_warning(monkeypatch):
    import threadpoolctl

    class Deaf(threadpoolctl.ThreadpoolController):
        def select(self, **_):
            return type("None found", (), {"lib_controllers": []})()

    monkeypatch.setattr(pool, "_controller", None)
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Deaf)
    large, given = mg.nn.Linear(1000, 1000), (np.zeros((8, 3)),)
    with pytest.warns(RuntimeWarning, match="BLAS cannot be limited") as seen:
        assert len(shards_of(large, loss, given, None)) == 1
        assert len(shards_of(large, loss, given, 2)) == 1
    assert len(seen) == 1


def test_blas_has_its_threads_back_afterwards(monkeypatch):
    from threadpoolctl import threadpool_info

    monkeypatch.setattr(pool, "_controller", None)  # another test may have loaded SciPy's BLAS beside NumPy's
    before = threadpool_info()
    inside = []
    with pool.single_threaded_blas(), pool.single_threaded_blas():
        inside = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert set(inside) == {1} and threadpool_info() == before


def test_one_core_or_a_number_of_threads_in_the_environment(monkeypatch):
    monkeypatch.setenv("MINIGRAD_THREADS", "1")
    large, given = mg.nn.Linear(1000, 1000), (np.zeros((8, 3)),)
    assert pool.thread_count() == 1 and len(shards_of(large, loss, given, None)) == 1
    monkeypatch.setenv("MINIGRAD_THREADS", "3")
    assert len(shards_of(large, loss, given, None)) == 3
    monkeypatch.setenv("MINIGRAD_THREADS", "")  # as good as unset
    assert pool.thread_count() >= 1
    for wrong in ("0", "many", "-2"):
        monkeypatch.setenv("MINIGRAD_THREADS", wrong)
        with pytest.raises(mg.MinigradError, match="whole number from 1"):
            pool.thread_count()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_starts_threads_of_its_own():
    gradients(3)  # the parent has threads now
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python's, about forking beside threads: that is what is tried
        child = os.fork()
    if child == 0:
        status = 1
        try:
            one, _ = gradients(1)
            assert_near(one, gradients(3)[0], 1e-13)
            status = 0
        finally:
            os._exit(status)
    deadline = threading.Timer(60, lambda: os.kill(child, 9))
    deadline.start()
    _, status = os.waitpid(child, 0)
    deadline.cancel()
    assert status == 0, "the child hung or failed"
    sys.stdout.flush()


def test_jobs_may_divide_their_own_work():
    def inner():
        return sum(pool.run_parallel([lambda: 1, lambda: 2, lambda: 3]))

    results = []
    thread = threading.Thread(target=lambda: results.extend(pool.run_parallel([inner] * 5)), daemon=True)
    thread.start()
    thread.join(20)
    assert results == [6] * 5


def test_jobs_that_nobody_began_are_left_when_one_fails():
    def fail():
        raise ValueError("the last job")

    begun, let_go = threading.Event(), threading.Event()
    blockers = [pool._workers(1).submit(lambda: (begun.set(), let_go.wait(20))) for _ in range(pool._pool._max_workers)]
    begun.wait(20)
    done = []
    with pytest.raises(ValueError, match="the last job"):
        pool.run_parallel([lambda: done.append(1), fail])
    let_go.set()
    assert [blocker.result()[1] for blocker in blockers] == [True] * len(blockers) and not done


def test_threads_that_leave_in_another_order_undo_the_limit_of_blas():
    class Library:
        threads = 2

        def limit(self, limits):
            before, self.threads = self.threads, limits
            return type("Limit", (), {"restore_original_limits": lambda _: setattr(self, "threads", before)})()

        lib_controllers = [object()]

    library = Library()
    before, pool._controller = pool._controller, library
    try:
        first, second = pool.single_threaded_blas(), pool.single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert library.threads == 1  # the second is still at work
        second.__exit__(None, None, None)
        assert library.threads == 2
    finally:
        pool._controller = before


def test_kernels_chosen_in_one_thread_are_used_by_its_jobs_and_by_no_other_thread():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with use("numpy"):
            entered.set()
            leave.wait(20)

    usual = implementation()
    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(20)
    assert implementation() == usual
    with use("definitions"):
        leave.set()
        thread.join()
        assert pool.run_parallel([implementation] * 3) == ["definitions"] * 3
    assert implementation() == usual
