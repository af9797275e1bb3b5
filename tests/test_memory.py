"""Memory is freed by counting alone: no cycles, nothing kept longer than a backward needs it, and a long training stays flat."""

import gc
import os
import subprocess
import sys
import textwrap
import types
import weakref
from contextlib import suppress

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.graph import Node
from minigrad.engine.tensor import Tensor
from minigrad.engine.writes import writes

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def leaf(*shape, seed=0):
    return mg.tensor(np.random.default_rng(seed).uniform(0.5, 1.5, shape), requires_grad=True)


@pytest.fixture
def without_collector():
    """With the collector off, whatever is freed is freed by counting. It need not look at what was there before."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()
    gc.unfreeze()


def is_ours(thing):
    if isinstance(thing, (Tensor, Node, np.ndarray)):
        return True
    owner = thing if isinstance(thing, types.FunctionType) else type(thing)
    return getattr(owner, "__module__", None) is not None and str(owner.__module__).partition(".")[0] == "minigrad"


def found_by_the_collector():
    """What of ours only the collector could free."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    return [type(thing).__name__ for thing in gc.garbage if is_ours(thing)]


def alive(*kinds):
    return sum(isinstance(thing, kinds) for thing in gc.get_objects())


TRAINING = """
import gc
import sys
from pathlib import Path

import numpy as np
import minigrad as mg

rng = np.random.default_rng(0)
x, y = mg.tensor(rng.normal(size=(4, 2)).astype("float32")), mg.tensor(rng.normal(size=(4, 1)).astype("float32"))
weights = [mg.tensor(rng.normal(size=s).astype("float32"), requires_grad=True) for s in ((2, 8), (8,), (8, 1), (1,))]


def step():
    w1, b1, w2, b2 = weights
    error = (x @ w1 + b1).tanh() @ w2 + b2 - y
    (error * error).mean().backward()
    with mg.no_grad():
        for w in weights:
            w -= 0.01 * w.grad
            w.grad = None


def pages():
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) if statm.exists() else 0


gc.disable()
for _ in range(500):
    step()
before = sys.getallocatedblocks(), pages()
for _ in range(10_000):
    step()
print(sys.getallocatedblocks() - before[0], pages() - before[1])
"""


def test_ten_thousand_training_steps_leave_memory_flat():
    """In a process of its own: what other tests left behind moves the resident pages of this one."""
    result = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True, timeout=120, check=True)
    blocks, pages = map(int, result.stdout.split())
    assert blocks < 500
    assert pages * PAGE < 2_000_000


def test_training_steps_leave_no_nodes_and_no_dates_of_writes(without_collector):
    x, w = leaf(4, 2), leaf(2, 1, seed=1)

    def step():
        (x @ w).tanh().mean().backward()
        with mg.no_grad():
            w[...] = w - 0.01 * w.grad
            w.grad = None

    step()
    before = alive(Node, Tensor), len(writes._by_owner)
    for _ in range(100):
        step()
    assert (alive(Node, Tensor), len(writes._by_owner)) == before
    assert found_by_the_collector() == []


def use_hooks():
    x = leaf(3)
    y = x * 2
    y.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: None)
    y.retain_grad()
    y.sum().backward()


def create_graphs():
    x = leaf(3)
    (first,) = mg.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), x, create_graph=True)
    second.sum().backward()


def write_in_place():
    x = leaf(3)
    y = x * 1
    y[0] = y[1].clone() * 2
    y += x
    y[mg.tensor([True, False, True])] = x[:2]
    y.sum().backward()


def use_several_outputs():
    x = leaf(4, 3)
    a, b = mg.split(x, 2)
    q, r = mg.qr(x)
    values, _ = mg.topk(x, 2)
    (a.sum() + r.sum() + values.sum()).backward()


def recompute_a_part():
    x, w = leaf(3), leaf(3, seed=1)
    mg.recompute(lambda v: (v * w).exp().sin())(x).sum().backward()


def recompute_without_a_backward():
    x, w = leaf(3), leaf(3, seed=1)
    kept = mg.recompute(lambda v: (v * w).exp())(x)
    assert kept.requires_grad


def transform_functions():
    x = leaf(3)
    mg.grad(mg.grad(lambda v: v**3))(2.0)
    mg.hessian(lambda v: (v**3).sum())(x.detach())
    mg.jvp(lambda v: v.exp(), (x,), (mg.ones(3, dtype="float64"),))
    _, pull = mg.vjp(lambda v: v.exp(), x)
    pull(mg.ones(3, dtype="float64"))
    mg.jacobian(lambda v: v * x)(x)


def fail_in_ops():
    x = leaf(3)
    for attempt in (
        lambda: x + leaf(4),
        lambda: x @ leaf(2, 2),
        lambda: x[9],
        lambda: x.sum(axis=3),
        lambda: mg.topk(x, 7),
        lambda: x.backward(),
        lambda: x.view(3),
    ):
        with suppress(mg.MinigradError, AttributeError):
            attempt()


def fail_in_a_backward():
    x = leaf(3)
    y = x * 2

    def hook(g):
        raise KeyError("from the hook")

    y.register_hook(hook)
    for mode in (mg.enable_grad(), mg.debug()):
        with suppress(KeyError), mode:
            (y * 3).sum().backward()
    with suppress(mg.MinigradError), mg.debug(), np.errstate(divide="ignore"):
        (x - x).log().sum().backward()


def train_without_backward():
    x = leaf(3)
    for _ in range(3):
        y = x.exp() * x
    assert y.requires_grad


@pytest.mark.parametrize(
    "scenario",
    [
        use_hooks,
        create_graphs,
        write_in_place,
        use_several_outputs,
        recompute_a_part,
        recompute_without_a_backward,
        transform_functions,
        fail_in_ops,
        fail_in_a_backward,
        train_without_backward,
    ],
    ids=lambda f: f.__name__,
)
def test_nothing_is_left_to_the_collector(scenario, without_collector):
    scenario()
    gc.collect()
    before = alive(Node, Tensor)
    scenario()
    assert alive(Node, Tensor) == before
    assert found_by_the_collector() == []


def test_a_saved_value_dies_as_the_sweep_passes(without_collector):
    x = leaf(1000)
    first = x * 1
    middle = first * 1
    late = middle.exp()
    saved = weakref.ref(late.data)
    seen = []
    first.register_hook(lambda g: seen.append(saved() is None))
    loss = late.sum()
    del late, middle
    assert saved() is not None
    loss.backward()
    assert seen == [True]
    assert loss.requires_grad and saved() is None


def test_retain_graph_keeps_saved_values_and_the_last_backward_drops_them(without_collector):
    x = leaf(1000)
    y = x.exp()
    saved, loss = weakref.ref(y.data), y.sum()
    del y
    loss.backward(retain_graph=True)
    assert saved() is not None
    loss.backward()
    assert saved() is None


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt", "relu", "reciprocal"])
def test_a_rule_that_needs_only_the_output_lets_the_input_go(name, without_collector):
    y = leaf(1000) * 1
    data = weakref.ref(y.data)
    z = getattr(y, name)()
    del y
    assert data() is None
    z.sum().backward()


@pytest.mark.parametrize(
    "name, op",
    [
        ("sum", lambda y: y.sum(axis=0)),
        ("mean", lambda y: y.mean()),
        ("add", lambda y: y + 1),
        ("negative", lambda y: -y),
        ("multiply by a number", lambda y: y * 3),
        ("getitem of an array", lambda y: y[[0, 1]]),
        ("concatenate", lambda y: mg.concatenate([y, y])),
        ("repeat", lambda y: mg.repeat(y, 2, axis=0)),
        ("astype", lambda y: y.astype("float32")),
    ],
)
def test_shape_stand_ins_keep_no_data_alive(name, op, without_collector):
    y = leaf(10, 10) * 1
    data = weakref.ref(y.data)
    z = op(y)
    del y
    assert data() is None
    z.sum().backward()


def test_only_what_the_wanted_gradients_need_is_saved(without_collector):
    x, constant = leaf(1000), mg.tensor(np.ones(1000))
    y = x * 1
    data = weakref.ref(y.data)
    z = y * constant  # the gradient of y needs the constant; nobody needs y
    del y
    assert data() is None
    z.sum().backward()


def test_a_graph_keeps_no_tensor_alive(without_collector):
    x = leaf(3)
    y = x.exp()
    tensor, z = weakref.ref(y), y.sum()
    del y
    assert tensor() is None
    z.backward()


def test_no_grad_keeps_nothing(without_collector):
    x = leaf(1000)
    with mg.no_grad():
        y = x * 1
        data, z = weakref.ref(y.data), y.exp()
    del y
    assert data() is None and not z.requires_grad


def test_gradients_of_results_are_dropped_during_the_sweep(without_collector):
    x = leaf(1000)
    y = x
    seen, grads = [], []

    def watch(g):
        grads.append(weakref.ref(g.data))
        seen.append(sum(r() is not None for r in grads))

    for _ in range(20):
        y = y.sin()
        y.register_hook(watch)
    y.sum().backward()
    assert len(seen) == 20 and max(seen) <= 3


def test_a_removed_tensor_frees_its_gradient(without_collector):
    x = leaf(1000)
    (x * x).sum().backward()
    gradient = weakref.ref(x.grad.data)
    assert gradient() is not None
    x.grad = None
    assert gradient() is None


def run_in_small_stack(body):
    """Run a script in a thread whose C stack is so small that any recursion along the graph would kill the process."""
    script = "import threading\nimport minigrad as mg\n\ndef main():\n" + textwrap.indent(textwrap.dedent(body), "    ")
    script += "\n    print('done')\n\nthreading.stack_size(256 * 1024)\nthread = threading.Thread(target=main)\nthread.start()\nthread.join()\n"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stdout.strip() == "done", result.stderr[-2000:]


def test_a_chain_of_100000_ops_runs_backward_and_is_freed():
    run_in_small_stack("""
        x = mg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(50_000):
            y = (y + 1.0) * 1.0
        y.backward()
        assert x.grad.item() == 1.0
        del y
    """)


def test_a_chain_of_100000_ops_is_freed_without_a_backward():
    run_in_small_stack("""
        x = mg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(50_000):
            y = (y + 1.0) * 1.0
        del y
    """)


def test_a_long_chain_with_several_outputs_is_freed_without_recursion():
    run_in_small_stack("""
        x = mg.ones(2, requires_grad=True)
        for use in (True, False):
            y = x
            for _ in range(4_000):
                a, b = mg.split(y, 2)
                y = mg.concatenate([b, a])
            if use:
                y.sum().backward()
            del y, a, b
        assert x.grad.tolist() == [1.0, 1.0]
    """)
