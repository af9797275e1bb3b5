"""Each implementation of each fused operation computes what its definition says: values, gradients, NaN and infinities.

Results in float32 are compared with the definition in float64. They may differ by ULPS units in the last place of the
largest number of the result, or of 1: sums are taken in another order, and numbers that cancel are not small by themselves.
"""

import importlib.util
import sys
import tracemalloc

import numpy as np
import pytest
from support.kernel_samples import DROPOUT, NO_DROPOUT, SAMPLES, normal, some

import minigrad as mg
from minigrad import kernels
from minigrad.check import gradcheck
from minigrad.compile import fused as generated
from minigrad.kernels import FUSED, Kernel, fused, use

ULPS = 16
EPS = float(np.finfo(np.float32).eps)
NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba: pip install -e '.[fast]'")
IMPLEMENTATIONS = ["numpy", pytest.param("numba", marks=NUMBA)]
CASES = [pytest.param(n, i, id=f"{n}-{i}") for n, samples in SAMPLES.items() for i in range(len(samples))]
FIRST = [pytest.param(n, 0 if n in ("gelu", "silu") else 1, id=n) for n in SAMPLES]


def is_real(x):
    return x is not None and x.dtype.kind == "f"


def cast(inputs, dtype):
    return [x.astype(dtype) if is_real(x) else x for x in inputs]


def compute(op, inputs, attrs, g=None):
    """The value and the gradients of a call with Tensors, as arrays; `g` is the gradient of the value, or all ones."""
    args = [None if x is None else mg.tensor(x, requires_grad=is_real(x)) for x in inputs]
    with np.errstate(all="ignore"):
        out = op(*args, **attrs)
        wanted = [x for x in args if x is not None and x.requires_grad]
        g = np.ones(out.shape, out.dtype) if g is None else g.astype(out.dtype)
        grads = mg.autograd.grad(out, wanted, mg.tensor(g))
    return [x.detach().numpy() for x in (out, *grads)]


def by_definition(name, inputs, attrs, g=None):
    with use("definitions"):
        return compute(FUSED[name], inputs, attrs, g)


def slopes(name, inputs, attrs):
    with use("definitions"):
        shape = FUSED[name](*[None if x is None else mg.tensor(x) for x in inputs], **attrs).shape
    return np.random.default_rng(1).standard_normal(shape)


def run(kernel, inputs, attrs, g, needs=None):
    """The same straight from a kernel, which must take these arrays."""
    needs = needs or tuple(is_real(x) for x in inputs)
    assert kernel.accepts(*inputs, **attrs)
    out, kept = kernel.forward(*inputs, **attrs)
    with np.errstate(all="ignore"):  # as the engine's sweep does
        grads = kernel.backward(g, kept, needs, *inputs, **attrs)
    assert len(grads) == len(inputs)
    return [out, *[grad for grad, need in zip(grads, needs) if need]]


def check_close(results, wanted):
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted):
        assert got.shape == want.shape and got.dtype == np.float32
        if want.size:
            scale = max(np.abs(want[np.isfinite(want)]).max(initial=0), 1)
            np.testing.assert_allclose(got, want, rtol=0, atol=ULPS * EPS * scale)


def kernel_of(implementation, name):
    if implementation == "numpy" and "numpy" not in FUSED[name].kernels:
        pytest.skip(f"the definition of {name} computes it with NumPy")
    with use(implementation):
        return FUSED[name].kernels[implementation]


def test_every_fused_op_has_samples():
    assert set(FUSED) == set(SAMPLES)


@NUMBA
def test_every_fused_op_has_a_compiled_kernel():
    with use("numba"):
        assert {name for name, op in FUSED.items() if "numba" not in op.kernels} == set()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("name, number", CASES)
def test_values_and_gradients_are_those_of_the_definition(name, number, implementation):
    inputs, attrs = SAMPLES[name][number]
    g = slopes(name, inputs, attrs)
    exact = by_definition(name, cast(cast(inputs, "float32"), "float64"), attrs, g.astype("float32"))
    single = cast(inputs, "float32")
    before = [None if x is None else x.copy() for x in single]
    check_close(run(kernel_of(implementation, name), single, attrs, g.astype("float32")), exact)
    for x, copy in zip(single, before):
        np.testing.assert_array_equal(x, copy, "an input was written to")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("name, number", FIRST)
def test_each_gradient_can_be_asked_for_alone(name, number, implementation):
    inputs, attrs = SAMPLES[name][number]
    kernel, single = kernel_of(implementation, name), cast(inputs, "float32")
    g = slopes(name, inputs, attrs).astype("float32")
    _, *together = run(kernel, single, attrs, g)
    real = [i for i, x in enumerate(single) if is_real(x)]
    for position, i in enumerate(real):
        _, alone = run(kernel, single, attrs, g, tuple(j == i for j in range(len(single))))
        np.testing.assert_allclose(alone, together[position], rtol=2e-6, atol=1e-6)  # sums in another order


def read_only(x):
    x = x.copy()
    x.setflags(write=False)
    return x


def unaligned(x):
    room = np.empty(x.nbytes + 1, np.uint8)[1:]
    moved = room.view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


LAYOUTS = {
    "read-only": read_only,
    "Fortran order": lambda x: np.asfortranarray(x) if x.ndim > 1 else x,
    "every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "unaligned": unaligned,
}


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name, number", FIRST)
def test_how_arrays_lie_in_memory_does_not_matter(name, number, layout, implementation):
    inputs, attrs = SAMPLES[name][number]
    kernel, single = kernel_of(implementation, name), cast(inputs, "float32")
    g = slopes(name, inputs, attrs).astype("float32")
    laid = [None if x is None else LAYOUTS[layout](x) for x in single]
    check_close(run(kernel, laid, attrs, LAYOUTS[layout](g)), run(kernel, single, attrs, g))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name, number", FIRST)
def test_infinities_and_nan_come_out_where_the_definition_has_them(name, number, value, implementation):
    inputs, attrs = SAMPLES[name][number]
    single = cast(inputs, "float32")
    single[0].reshape(-1)[single[0].size // 2] = value
    g = slopes(name, inputs, attrs).astype("float32")
    wanted = by_definition(name, single, attrs, g)
    with np.errstate(all="ignore"):
        results = run(kernel_of(implementation, name), single, attrs, g)
    check_close(results, wanted)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_rows_that_are_ignored_give_no_gradient_whatever_they_hold(implementation):
    logits = np.float32([[1, np.nan, 3], [np.inf, 2, 1], [1, 2, 3]])
    attrs = {"ignore_index": -100, "smoothing": 0.1}
    with np.errstate(all="ignore"):
        kernel = kernel_of(implementation, "cross_entropy")
        losses, g = run(kernel, [logits, np.array([-100, -100, 0])], attrs, np.ones(3, np.float32))
    assert np.isfinite(losses).all() and losses[2] > 0 and np.isfinite(g).all()
    assert not losses[:2].any() and not g[:2].any() and g[2].all()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_large_logits_loses_nothing(implementation, smoothing):
    logits = (normal(4, 7) * 3 + 1e4).astype("float32")
    inputs, attrs = [logits, np.array([1, 2, -100, 3])], {"ignore_index": -100, "smoothing": smoothing}
    wanted = by_definition("cross_entropy", [logits.astype("float64"), inputs[1]], attrs)
    check_close(run(kernel_of(implementation, "cross_entropy"), inputs, attrs, np.ones(4, np.float32)), wanted)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length, size", [(37, 60), (60, 37)])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_attention_in_pieces_is_the_same(implementation, causal, length, size, heads, monkeypatch):
    """A few queries at a time, a few heads, and a few examples."""
    inputs = [normal(3, 4, length, 5), normal(3, heads, size, 5), normal(3, heads, size, 6), some(3, 1, length, size)]
    single = [inputs[0].astype("float32"), inputs[1].astype("float32"), inputs[2].astype("float32"), inputs[3]]
    attrs = {"causal": causal, "scale": 0.5, "softcap": None, **DROPOUT}
    g = slopes("attention", inputs, attrs)
    wanted = by_definition("attention", inputs, attrs, g)
    kernel = kernel_of(implementation, "attention")
    for scores in (10 * size, 2 * length * size, 8 * length * size):
        monkeypatch.setattr(sys.modules[kernel.forward.__module__], "SCORES", scores)
        check_close(run(kernel, single, attrs, g.astype("float32")), wanted)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_long_attention_takes_memory_for_its_rows_and_not_for_all_scores(implementation):
    x = [mg.tensor(normal(1, 2, 1024, 16).astype("float32"), requires_grad=True) for _ in range(3)]
    with use(implementation):
        for _ in range(2):  # the second time nothing is compiled
            tracemalloc.start()
            mg.nn.functional.scaled_dot_product_attention(*x, is_causal=True).sum().backward()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert peak < 30 * x[0].data.nbytes < 1024 * 1024 * 4  # less than one head's scores


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("shape", [(3, 1, 5, 6), (2, 1, 1, 5, 6)])
def test_a_mask_that_makes_the_scores_larger_is_left_to_the_definition(shape, implementation):
    inputs = cast([normal(1, 2, 5, 4), normal(1, 2, 6, 4), normal(1, 2, 6, 4)], "float32") + [some(*shape)]
    attrs = {"causal": False, "scale": 0.5, "softcap": None, **NO_DROPOUT}
    with use(implementation):
        results = compute(FUSED["attention"], inputs, attrs)
    check_close(results, by_definition("attention", inputs, attrs))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("name, number", FIRST)
def test_an_empty_batch_gives_an_empty_result_and_gradients(name, number, implementation):
    inputs, attrs = SAMPLES[name][number]
    alone = ("linear", "linear_gelu", "packed_linear", "layer_norm", "rms_norm", "convolution", "max_pool", "avg_pool")
    batched = 1 if name in alone else 3 if name == "attention" else len(inputs)
    single = cast(inputs, "float32")
    if name in ("rnn", "gru", "lstm"):  # a batch of no rows, and as many steps
        single = [single[0][:, :0], *single[1:5], *[x[:0] for x in single[5:]]]
        batched = 0
    for i in range(batched):
        if name != "embedding" or i == 1:
            single[i] = None if single[i] is None else single[i][:0]
    with use(implementation):
        results = compute(FUSED[name], single, attrs)
    check_close(results, by_definition(name, single, attrs))
    assert results[0].size == 0


@pytest.mark.parametrize("name, number", FIRST)
def test_derivatives_to_the_second_order_are_right(name, number):
    inputs, attrs = SAMPLES[name][number]
    small = [
        None if x is None else x[tuple(slice(9) for _ in x.shape)] if name in ("gelu", "silu") else x for x in inputs
    ]
    given = [x for x in small if x is not None]

    def call(*tensors):
        left = iter(tensors)
        return FUSED[name](*[None if x is None else next(left) for x in small], **attrs)

    with use("numpy"):
        assert gradcheck(call, given)


@NUMBA
@pytest.mark.parametrize("name, number", FIRST)
def test_compiled_kernels_do_not_lose_the_second_derivative(name, number):
    inputs, attrs = SAMPLES[name][number]
    g = slopes(name, inputs, attrs)

    def second(dtype):
        args = [None if x is None else mg.tensor(x, requires_grad=is_real(x)) for x in cast(inputs, dtype)]
        wanted = [x for x in args if x is not None and x.requires_grad]
        out = FUSED[name](*args, **attrs)
        first = mg.autograd.grad(mg.sum(out * out * g.astype(dtype)), wanted, create_graph=True)
        penalty = sum(mg.sum(g * g) for g in first)
        return [g.numpy() for g in mg.autograd.grad(penalty, wanted)]

    with use("numba"):
        results = second("float32")
    with use("definitions"):
        wanted = second("float64")
    for got, want in zip(results, wanted, strict=True):
        assert np.abs(want).max() > 0
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())


@NUMBA
@pytest.mark.parametrize(
    "softmax",
    [FUSED["softmax"], mg.Tensor.softmax, lambda x: x.softmax(axis=-1), mg.nn.functional.softmax],
    ids=["fused", "method", "method with an axis", "function"],
)
def test_the_kernels_that_were_asked_for_are_used(softmax, monkeypatch):
    x = mg.tensor(normal(100, 100).astype("float32"))
    with use("numba"):
        assert kernels.implementation() == "numba"

    def refuse(*inputs, **attrs):
        raise AssertionError("numba's kernel was called")

    monkeypatch.setitem(FUSED["softmax"].kernels, "numba", Kernel(refuse, None, lambda x, axis: True))
    with use("numpy"):
        softmax(x)
        assert kernels.implementation() == "numpy"
    with use("numba"), pytest.raises(AssertionError, match="was called"):
        softmax(x)


def test_a_backward_that_needs_an_overwritten_output_names_it():
    x = mg.tensor(normal(3, 5), requires_grad=True)
    y = FUSED["softmax"](x)
    with mg.no_grad():
        y *= 2
    with pytest.raises(mg.MinigradError, match="softmax: its backward needs 'out', which was overwritten"):
        y.sum().backward()


@NUMBA
@pytest.mark.parametrize("name, number", FIRST)
def test_numbers_in_another_byte_order_are_not_taken_for_native_ones(name, number):
    inputs, attrs = SAMPLES[name][number]
    g = slopes(name, inputs, attrs).astype("float32")
    with use("numba"):
        native = compute(FUSED[name], cast(inputs, "float32"), attrs, g)
        swapped = compute(FUSED[name], cast(inputs, np.dtype("float32").newbyteorder()), attrs, g)
    for got, want in zip(swapped, native):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@NUMBA
def test_attributes_may_come_in_any_order():
    logits, labels = normal(4, 3).astype("float32"), np.array([0, 1, 2, 1])
    for attrs in ({"ignore_index": 0, "smoothing": 1}, {"smoothing": 0, "ignore_index": 1}):
        with use("numba"):
            got = compute(FUSED["cross_entropy"], [logits, labels], attrs)
        for made, wanted in zip(got, by_definition("cross_entropy", [logits, labels], attrs)):
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 3), (3,), ()])
def test_rows_that_are_to_be_broadcast_are_left_to_the_definition(shape, monkeypatch):
    def product(x, y):
        """`x * y`."""
        return x * y

    op = fused(product, rows=("x", "y"))
    del FUSED["product"]
    monkeypatch.setattr(generated, "FUSED", {"product": op})
    monkeypatch.setattr(generated, "STEPS", {})
    generated.register("numba")
    x = np.ones((4, 3), np.float32)
    assert op.kernels["numba"].accepts(x, x) and not op.kernels["numba"].accepts(x, np.ones(shape, np.float32))


def narrowed(inputs):
    """The inputs again and again, each time with one of them cut to its first place along one axis."""
    for which, array in enumerate(inputs):
        for axis, size in enumerate(np.shape(array)):
            if size > 1:
                yield [*inputs[:which], np.take(array, [0], axis), *inputs[which + 1 :]]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("name", [name for name, samples in SAMPLES.items() if len(samples[0][0]) > 1])
def test_an_input_that_is_to_be_broadcast_gives_what_the_definition_gives(name, implementation):
    tried = 0
    for inputs, attrs in SAMPLES[name]:
        for given in narrowed(inputs):
            try:
                g = slopes(name, given, attrs)
            except mg.MinigradError:
                continue  # there is nothing to give
            given = cast(given, "float32")  # for both, since sums over what was broadcast cancel, and round alike
            with use(implementation):
                found = compute(FUSED[name], given, attrs, g)
            check_close(found, by_definition(name, given, attrs, g))
            tried += 1
    assert tried
