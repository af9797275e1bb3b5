"""What compiled loops compute, against the ops themselves."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from support.graphs import Build, close

from minigrad.compile.plan import Plan
from minigrad.engine.backend import backend_named, to_numpy
from minigrad.engine.op import OPS
from minigrad.ir.graph import Graph, Number, Step, Value
from minigrad.ir.lowering import NoLoweringError, formula_of
from minigrad.kernels.definitions import _dropout_factors

pytest.importorskip("numba")

ELEMENTWISE = [op for op in OPS.values() if op.elementwise and isinstance(op.lowering, str)]
REDUCTIONS = [op for op in OPS.values() if isinstance(op.lowering, str) and formula_of(op.lowering).kind == "reduction"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1.0, -1.0, 0.5, 2.0]
UNARY = [op for op in ELEMENTWISE if len(op.signature.inputs) == 1]
BINARY = [op for op in ELEMENTWISE if op.signature.inputs == ["a", "b"]]
rng = np.random.default_rng(0)


def named(ops):
    return pytest.mark.parametrize("op", ops, ids=[op.name for op in ops])


def numbers(shape, dtype):
    """Random numbers of a dtype, with some special ones among them."""
    size = int(np.prod(shape))
    x = rng.normal(size=size) * rng.choice([0.1, 1, 10], size)
    if np.dtype(dtype).kind == "f" and size > 30:
        x[: len(SPECIAL)] = SPECIAL
    return (x > 0 if dtype == "bool" else x.astype(dtype)).reshape(shape)


def fits(op, *arrays):
    try:
        with np.errstate(all="ignore"):
            op.forward(np, *arrays)
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_every_function_of_one_number(dtype):
    x = numbers((7, 13), dtype)
    b = Build(x)
    (v,) = b.inputs
    made = [getattr(b, op.name)(v) for op in UNARY if fits(op, x)]
    b.check(*made)


@pytest.mark.parametrize(
    "dtypes", ["float32 float32", "float64 float64", "float32 bool", "int64 float32", "int32 int64", "bool bool"]
)
def test_every_function_of_two_numbers(dtypes):
    first, second = dtypes.split()
    x, y = numbers((5, 11), first), numbers((5, 1), second)
    b = Build(x, y)
    made = [getattr(b, op.name)(*b.inputs) for op in BINARY if fits(op, x, y) and op.name != "power"]
    b.check(*made)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, 0.5, 1.7, -2])
def test_powers(exponent):
    for dtype in ("float32", "float64"):
        b = Build(np.abs(numbers((40, 3), dtype)))
        b.check(b.power(b.inputs[0], exponent))


def test_numbers_take_the_dtype_of_the_array():
    for dtype in ("float32", "float64", "int64"):
        b = Build(numbers((9, 4), dtype))
        (x,) = b.inputs
        b.check(
            b.add(x, 1),
            b.multiply(2.5, x),
            b.greater(x, 0.5),
            b.where(b.less(x, 0), x, 7),
            b.subtract(x, np.float64(0.1)),
        )


def test_where_takes_any_condition():
    b = Build(numbers((6, 8), "float32"), numbers((6, 1), "int32"), numbers((8,), "float64"))
    x, i, f = b.inputs
    b.check(b.where(i, x, 0), b.where(f, x, -x.size), b.where(b.isnan(x), 0.0, x))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@named(REDUCTIONS)
def test_reductions_over_any_axes(op, axis, keepdims):
    for dtype in ("float32", "int32"):
        x = rng.normal(size=(3, 4, 37)) * 2
        b = Build(x.astype(dtype))
        (v,) = b.inputs
        b.check(
            # By 0.9, so that products of many neither overflow nor vanish, in whatever order they are taken.
            getattr(b, op.name)(b.multiply(v, 0.9) if dtype == "float32" else v, axis=axis, keepdims=keepdims),
            rtol=2e-5,
        )


@pytest.mark.parametrize("name", ["max", "min", "sum"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_and_infinities_in_reductions(name, dtype):
    x = numbers((8, 40), dtype)
    x[1, 5], x[2, :] = -np.nan, -np.inf
    x[3, 2], x[4, 7] = np.inf, -np.inf
    x[0], x[5] = 1, np.inf
    b = Build(x)
    for axis in (0, 1, None):
        b.check(getattr(b, name)(b.inputs[0], axis=axis))


def test_a_sum_of_many_numbers_is_exact_enough():
    x = rng.random((1000, 1003), np.float32)
    b = Build(x)
    (v,) = b.inputs
    plan = b.check(b.sum(v), b.sum(v, axis=0), b.sum(v, axis=1), rtol=1e-5)
    made = plan.run([x])
    assert abs(float(made[0]) / x.sum(dtype=np.float64) - 1) < 2e-7


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 7), (7, 1), (0,), (0, 5), (5, 0), (1025,), (4097,), (3, 1, 5)])
def test_odd_shapes(shape):
    b = Build(numbers(shape, "float32"), numbers(shape[-1:], "float32"))
    x, w = b.inputs
    y = b.exp(b.multiply(b.add(x, w), 0.1))
    outs = [y, b.tanh(y), b.sum(y)]
    if shape and 0 not in shape:
        outs += [b.softmax(x), b.subtract(x, b.mean(x, axis=-1, keepdims=True))]
    b.check(*outs)


def test_arrays_in_any_layout():
    base = numbers((12, 10), "float32")
    for x in (base.T, base[::2, ::-1], np.asfortranarray(base), np.broadcast_to(base[0], (4, 10))):
        b = Build(x)
        (v,) = b.inputs
        b.check(b.exp(b.minimum(v, 3.0)), b.sum(v, axis=1))
    locked = base.copy()
    locked.flags.writeable = False
    b = Build(locked)
    b.check(b.sin(b.inputs[0]))


def test_views_are_index_maps():
    b = Build(numbers((6, 8), "float32"), numbers((8, 6), "float32"))
    x, y = b.inputs
    t = b.transpose(x)
    plan = b.check(
        b.add(t, y), b.transpose(b.exp(y)), b.multiply(b.getitem(x, index=(slice(1, 5), slice(None, None, 2))), 2.0)
    )
    assert not [entry for entry in plan.schedule if isinstance(entry, Step)]
    b = Build(numbers((4, 6), "float32"))
    (x,) = b.inputs
    a, c = b.getitem(x, index=(Ellipsis, slice(0, 3))), b.getitem(x, index=(Ellipsis, slice(3, 6)))
    b.check(b.multiply(b.silu(a), c), b.flip(b.exp(x), axis=0), b.reshape(b.exp(x), shape=(2, 12)))


def test_a_row_gathered_and_scattered():
    x, labels = numbers((9, 21), "float64"), rng.integers(-21, 21, (9, 1))
    b = Build(x, labels)
    v, i = b.inputs
    scores = b.log_softmax(b.minimum(b.where(b.isfinite(v), v, 0.0), 5.0))
    at = b._take_along(scores, indices=i, axis=-1)
    back = b._add_along(b._zeros(at, shape=(9, 21)), at, indices=i, axis=1)
    plan = b.check(
        at, b._take_along(v, indices=i, axis=1), back, b._put_along(scores, 0.5, indices=i, axis=1), b.exp(at)
    )
    assert len(plan.schedule) == 1
    with pytest.raises(IndexError):
        plan.run([x, labels * 0 + 21])


def test_one_element_of_a_long_array_is_gathered():
    b = Build(rng.normal(size=50_000).astype("float32"), np.array([4321]))
    x, i = b.inputs
    y = b.exp(x)
    b.check(y, b._take_along(y, indices=i, axis=0), b._take_along(x, indices=i, axis=0))


def test_dropout_draws_as_without_a_compiler():
    key = Number(lambda: 2**63 + 12345, int, 1)
    x = numbers((40, 50), "float32")
    for shape in ((40, 50), (2000,), (4, 10, 50)):
        value, out = Value(shape, "float32"), Value(shape, "float32")
        attrs = {"p": 0.3, "key": key, "start": 2**32 - 100}
        made = Value(shape, "float32")
        graph = Graph(
            [value],
            [Step(_dropout_factors, (value,), attrs, (out,)), Step(OPS["multiply"], (value, out), {}, (made,))],
            [made],
        )
        y = x.reshape(shape)
        with np.errstate(invalid="ignore"):
            expected = y * _dropout_factors(y, p=0.3, key=2**63 + 12345, start=2**32 - 100)
        plan = Plan(graph)
        close(plan.run([y])[0], expected)
        assert len(plan.schedule) == 1


def test_numbers_are_read_at_each_run():
    rate = [0.5]
    number = Number(lambda: rate[0], float, 0.5)
    x, out = Value((3, 4), "float32"), Value((3, 4), "float32")
    plan = Plan(Graph([x], [Step(OPS["multiply"], (x, number), {}, (out,))], [out]))
    ones = np.ones((3, 4), np.float32)
    assert plan.run([ones])[0][0, 0] == 0.5
    rate[0] = 0.25
    assert plan.run([ones])[0][0, 0] == 0.25 and plan.run([ones], {number: 2.0})[0][0, 0] == 2


def test_threads_run_one_plan_at_once():
    b = Build(rng.normal(size=(300, 400)).astype("float32"))
    (x,) = b.inputs
    outs = b.softmax(x), b.sum(b.exp(x), axis=0), b.sum(x)
    plan = b.check(*outs, rtol=1e-5)
    wrong = []

    def work(seed):
        y = np.random.default_rng(seed).normal(size=(300, 400)).astype("float32")
        expected = np.exp(y - y.max(1, keepdims=True))
        expected /= expected.sum(1, keepdims=True)
        for _ in range(20):
            made = plan.run([y])
            if not np.allclose(made[0], expected, 1e-5) or not np.allclose(made[1], np.exp(y).sum(0), 1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_another_batch_size_compiles_nothing_new():
    texts = set()
    for rows in (300, 500):
        b = Build(rng.normal(size=(rows, 64)).astype("float32"))
        (x,) = b.inputs
        plan = b.check(b.softmax(x), b.mean(x, axis=0), rtol=2e-5)
        texts.update(call.text for call in plan.calls.values())
    assert len(texts) == len(plan.calls)


@pytest.mark.parametrize(
    "text", ["__import__('os')", "a.b", "open(a)", "[a]", "lambda: a", "'x'", "a < b < a", "exp(a=1)"]
)
def test_a_formula_is_numbers_names_and_known_functions(text):
    with pytest.raises(NoLoweringError):
        formula_of(text)


SHAPES = [(6, 5), (6, 1), (1, 5), (5,), (), (3, 6, 5), (3, 1, 5), (3, 6, 1)]
BOUNDED = ["tanh", "sigmoid", "sin", "cos", "arctan", "_softplus", "relu", "abs", "negative", "erf", "silu", "square"]


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=strategies.data())
def test_random_compositions(data):
    draw = data.draw
    dtype = draw(strategies.sampled_from(["float32", "float64"]))
    b = Build(
        *[
            rng.normal(size=shape).astype(dtype)
            for shape in draw(strategies.lists(strategies.sampled_from(SHAPES), min_size=1, max_size=3))
        ]
    )
    made = list(b.inputs)
    for _ in range(draw(strategies.integers(1, 12))):
        x, y = (draw(strategies.sampled_from(made)) for _ in range(2))
        kind = draw(strategies.sampled_from(["unary", "binary", "sum", "max", "view", "where", "rows"]))
        if kind == "unary":
            out = getattr(b, draw(strategies.sampled_from(BOUNDED)))(x)
        elif kind in ("binary", "where"):
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                continue
            name = draw(strategies.sampled_from(["add", "subtract", "multiply", "maximum"]))
            out = b.where(b.less(x, y), x, y) if kind == "where" else getattr(b, name)(x, y)
        elif kind in ("sum", "max"):
            axes = draw(strategies.lists(strategies.integers(0, max(x.ndim - 1, 0)), unique=True, max_size=x.ndim))
            name = draw(strategies.sampled_from(["mean", "max", "min"]))
            out = getattr(b, name)(x, axis=tuple(axes), keepdims=draw(strategies.booleans()))
        elif kind == "rows":
            if not x.ndim:
                continue
            out = getattr(b, draw(strategies.sampled_from(["softmax", "log_softmax"])))(
                x, axis=draw(strategies.integers(0, x.ndim - 1))
            )
        elif draw(strategies.booleans()):
            out = b.transpose(x)
        else:
            out = b.reshape(x, shape=draw(strategies.sampled_from([(-1,), (x.size,), (1, *x.shape), (*x.shape, 1)])))
        if out.size < 5000:
            made.append(out)
    outputs = [v for v in made[len(b.inputs) :] if draw(strategies.booleans())] or made[-1:]
    scale = max(float(np.abs(b.known[v]).max()) for v in made)
    if scale < 1e6:
        b.check(*outputs, rtol=2e-4 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_places_along_any_axis(axis):
    x = numbers((3, 4, 37), "float32")
    indices = rng.integers(0, x.shape[axis], [1 if i == axis else n for i, n in enumerate(x.shape)])
    b = Build(x, indices)
    v, i = b.inputs
    y = b.minimum(v, 2.0)
    b.check(
        b._put_along(y, 1.5, indices=i, axis=axis),
        b._add_along(y, 1.0, indices=i, axis=axis),
        b._take_along(y, indices=i, axis=axis),
    )


def test_arrays_of_another_device_are_computed_there_op_by_op():
    backend = backend_named("fake")
    b = Build(numbers((40, 30), "float32"))
    (x,) = b.inputs
    out = b.add(b.softmax(b.sin(b.where(b.isfinite(x), x, 0))), b.constant(numbers((30,), "float32").clip(-1, 1)))
    plan = b.check(out)
    (made,) = plan.run([backend.place(b.arrays[0], "fake")])
    assert type(made) is not np.ndarray
    close(to_numpy(made), b.known[out])


def test_without_numba_the_steps_run_one_by_one(monkeypatch):
    monkeypatch.setattr(sys.modules[Plan.__module__], "implementation", lambda: "numpy")
    b = Build(numbers((40, 30), "float32"))
    (x,) = b.inputs
    t = b.transpose(x)
    plan = b.check(b.softmax(b.sin(b.where(b.isfinite(x), x, 0))), t, x, b.exp(b.minimum(t, 1)))
    assert plan.source() == "" and "numba is missing" in plan.explain()


def test_what_an_input_or_another_output_is_comes_in_memory_of_its_own():
    b = Build(rng.normal(size=(4, 3)).astype("float32"))
    (x,) = b.inputs
    y = b.exp(x)
    plan = b.check(
        x,
        y,
        y,
        b.transpose(y),
        b.reshape(y, shape=(12,)),
        b.transpose(x),
        b.constant(np.ones(2)),
        b.getitem(y, index=0),
    )
    made = plan.run(b.arrays)
    for i, one in enumerate(made):
        assert one.flags.c_contiguous and one.flags.writeable
        assert not any(np.shares_memory(one, other) for other in [*made[:i], *plan.constants.values()])


def test_source_that_was_compiled_is_not_compiled_again(tmp_path):
    script = (
        "import numpy as np, minigrad as mg, time\n"
        "from minigrad.compile import trace\nfrom minigrad.compile.plan import Plan\n"
        "plan = Plan(trace(lambda x: mg.exp(x) * 3 + x.sum(axis=1, keepdims=True), mg.ones(5, 7)))\n"
        "print(plan.run([np.zeros((5, 7), np.float32)])[0].sum())\n"
    )
    said = []
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.stdout == "105.0\n", done.stderr
        said.append("compiling kernels that are new here" in done.stderr)
    assert said == [True, False]


def test_a_loop_that_numba_refuses_runs_op_by_op(monkeypatch):
    from numba.core.errors import TypingError

    def refuse(source):
        raise TypingError("no")

    monkeypatch.setattr(sys.modules["minigrad.compile.numba_call"], "load", refuse)
    b = Build(numbers((40, 30), "float32"), numbers((30, 4), "float32"))
    x, w = b.inputs
    y = b.transpose(b.tanh(x))
    with pytest.warns(RuntimeWarning, match="could not be compiled"):
        b.check(b.sum(y, axis=0), b.exp(b.matmul(b.tanh(x), b.tanh(w))), rtol=1e-5)
