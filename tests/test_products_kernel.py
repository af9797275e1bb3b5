"""Stacks of products by compiled kernels: right for every layout, the same whoever computes them, and no trouble for other threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.kernels import use
from minigrad.ops.linalg.products import matmul
from minigrad.runtime import threads

pytest.importorskip("numba")

SHAPES = [
    (1, 4, 8, 16),
    (3, 5, 9, 17),
    (48, 64, 32, 64),
    (512, 20, 32, 20),
    (64, 8, 20, 32),
    (7, 33, 65, 31),
    (2, 255, 64, 129),
]
CALL = """
import numpy as np, minigrad as mg
rng = np.random.default_rng(0)
a, b = rng.standard_normal((48, 64, 32), np.float32), rng.standard_normal((48, 32, 64), np.float32)
out = (mg.tensor(a) @ mg.tensor(b)).numpy()
assert abs(out - np.einsum("bij,bjk->bik", a.astype(float), b.astype(float))).max() < 1e-4
"""


@pytest.fixture(autouse=True)
def compiled():
    with use("numba"):
        yield


def product(a, b):
    """`a @ b` by the kernel that is chosen for it, or None."""
    kernel = matmul.kernels.choose((a, b), {})
    return None if kernel is None else kernel.forward(a, b)[0]


def drawn(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def check(a, b):
    """The kernel takes these, and agrees with float64."""
    before = a.copy(), b.copy()
    out = product(a, b)
    assert out is not None and out.dtype == np.float32 and out.flags.c_contiguous and out.flags.owndata
    exact = np.einsum("...ij,...jk->...ik", a.astype(float), b.astype(float))
    bound = np.einsum("...ij,...jk->...ik", abs(a.astype(float)), abs(b.astype(float)))
    assert (abs(out - exact) <= 2e-7 * a.shape[-1] * bound).all()
    assert (a == before[0]).all() and (b == before[1]).all()


@pytest.mark.parametrize("turned", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_agree_with_float64_for_any_sizes_and_transposed_views(shape, turned):
    count, rows, depth, columns = shape
    a = drawn(count, depth, rows).swapaxes(1, 2) if 0 in turned else drawn(count, rows, depth)
    b = drawn(count, columns, depth).swapaxes(1, 2) if 1 in turned else drawn(count, depth, columns)
    check(a, b)


def test_views_of_all_kinds():
    a, b = drawn(2, 10, 3, 24), drawn(2, 24, 3, 40)
    check(a.transpose(0, 2, 1, 3), b.transpose(0, 2, 1, 3))  # heads between rows
    check(a.transpose(0, 2, 1, 3)[:, :, ::-1, ::2], b.transpose(0, 2, 1, 3)[:, :, 12:])
    check(np.broadcast_to(a[0, :, 0], (5, 10, 24)), np.broadcast_to(b[0, :, 0], (5, 24, 40)))
    a.flags.writeable = b.flags.writeable = False
    check(a.transpose(0, 2, 1, 3), b.transpose(0, 2, 1, 3))


def test_nothing_beside_the_factors_and_the_result_is_used():
    wide = np.full((6, 20, 64), np.nan, np.float32)
    wide[:, :, 16:36] = drawn(6, 20, 20)
    check(drawn(6, 7, 20), wide[:, :, 16:36])
    check(drawn(6, 7, 20), wide[:, :, 16:36].swapaxes(1, 2))


@pytest.mark.parametrize(
    "a, b",
    [
        (drawn(1, 8, 16), drawn(3, 16, 32)),  # broadcast
        (drawn(8, 16), drawn(3, 16, 32)),
        (drawn(0, 8, 16), drawn(0, 16, 32)),
        (drawn(3, 8, 0), drawn(3, 0, 32)),
        (drawn(3, 8, 16), drawn(3, 16, 5)),
        (drawn(3, 8, 16).astype(float), drawn(3, 16, 32)),
        (drawn(3, 8, 16), drawn(3, 16, 64)[..., ::2]),
        (drawn(2, 2, 2, 8, 16), drawn(2, 2, 2, 16, 32)),
        (drawn(2, 400, 400), drawn(2, 400, 400)),
    ],
)
def test_what_the_kernel_does_not_take_is_left_to_numpy(a, b):
    assert product(a, b) is None
    np.testing.assert_allclose((mg.tensor(a) @ mg.tensor(b)).numpy(), a @ b, rtol=1e-3, atol=1e-5)


def test_factors_that_do_not_fit_are_explained():
    with pytest.raises(mg.MinigradError, match="matmul"):
        mg.tensor(drawn(3, 8, 16)) @ mg.tensor(drawn(3, 17, 32))


def test_nan_and_infinity_go_where_numpy_lets_them_go():
    a, b = drawn(4, 9, 20), drawn(4, 20, 33)
    a[0, 2, 3], a[1, 0, 0], b[2, 5, 32], b[3, 0, 1], b[3, 1, 1] = np.nan, np.inf, np.nan, np.inf, -np.inf
    a[3, 0, :2] = 1
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_allclose(product(a, b), expected, rtol=1e-4, atol=1e-5)


def test_the_choice_of_kernels_is_honoured():
    a, b = drawn(48, 64, 32), drawn(48, 32, 64)
    for name in ("numpy", "definitions"):
        with use(name):
            assert product(a, b) is None
    with use(None):
        assert product(a[:1, :4], b[:1, :, :16]) is None  # too small to load numba for
        assert product(a, b) is not None


def test_the_result_is_the_same_to_the_bit_whoever_computes_it():
    pairs = [(drawn(n, 24, 32), drawn(n, 32, 48)) for n in (5, 48, 200)]
    with threads.single_threaded_blas():
        alone = [product(a, b) for a, b in pairs]
    wrong, start = [], threading.Barrier(6)

    def many():
        with use("numba"):
            start.wait()
            for i in range(300):
                a, b = pairs[i % 3]
                if not np.array_equal(product(a, b), alone[i % 3]):
                    wrong.append(i)

    several = [threading.Thread(target=many) for _ in range(6)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_computes_without_its_parents_threads():
    a, b = drawn(48, 64, 32), drawn(48, 32, 64)
    expected = product(a, b)
    for _ in range(5):
        product(a, b)
        child = os.fork()
        if child == 0:
            os._exit(0 if all(np.array_equal(product(a, b), expected) for _ in range(20)) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("count", ["1", "2", "5"])
def test_the_interpreter_ends_right_after_a_product(count):
    names = "import threading; print(sum(t.name.startswith('minigrad') for t in threading.enumerate()))"
    surroundings = {**os.environ, "MINIGRAD_THREADS": count}
    done = subprocess.run(
        [sys.executable, "-c", CALL + names], env=surroundings, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    if sys.platform == "linux":
        assert done.stdout.split() == [str(int(count) - 1)]


def test_small_stacks_load_no_numba():
    code = "import sys, numpy as np, minigrad as mg; x = mg.tensor(np.ones((2, 8, 16), 'f')); x @ x.mT; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_first_and_second_derivatives_are_those_of_the_formula():
    arrays = drawn(6, 12, 20), drawn(6, 20, 18), drawn(6, 12, 18)
    a, b, g = (mg.tensor(x, requires_grad=True) for x in arrays)
    wrt_a, wrt_b = mg.autograd.grad(a @ b, [a, b], g, create_graph=True)
    x, y, z = (array.astype(float) for array in arrays)
    np.testing.assert_allclose(wrt_a.numpy(), z @ y.swapaxes(1, 2), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(wrt_b.numpy(), x.swapaxes(1, 2) @ z, rtol=1e-4, atol=1e-4)
    (second,) = mg.autograd.grad((wrt_a * wrt_a).sum(), [b])  # of |g @ bᵀ|²: 2 (g @ bᵀ)ᵀ @ g
    np.testing.assert_allclose(second.numpy(), 2 * y @ (z.swapaxes(1, 2) @ z), rtol=1e-3, atol=1e-2)
