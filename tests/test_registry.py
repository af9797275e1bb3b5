"""Every op and composite of the registry on every sample: values, layouts, dtypes, first and second derivatives, modes, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.samples import SAMPLES, Sample

import minigrad as mg
import minigrad.nn.functional  # noqa: F401  (its functions are in the registry once it is imported)
from minigrad.check import gradcheck
from minigrad.engine.op import OPS, Op
from minigrad.engine.tensor import Tensor, wrap
from minigrad.errors import MinigradError
from minigrad.ops.composite import COMPOSITES, Composite

pytestmark = pytest.mark.usefixtures("ordinary_ops")
FUNCTIONS: dict[str, Op | Composite] = {**OPS, **COMPOSITES}
BUILT_ELSEWHERE = {
    "_recompute": "it cannot be called: mg.recompute builds its node, which test_gradcheck.py checks",
    "_custom": "it cannot be called: custom_vjp and fixed_point build its node, which test_custom_derivatives.py checks",
}
LAYOUTS = ("contiguous", "fortran", "strided", "reversed", "read-only")
TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-11}
# NumPy's own functions of these work on complex numbers, which gives derivatives without any differences.
HOLOMORPHIC = """
    exp expm1 log log1p log2 log10 sqrt _safe_sqrt rsqrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh
    tanh arcsinh arctanh negative positive add subtract multiply divide power sum mean prod cumsum cumprod _cumsum
    _cumprod matmul einsum tensordot outer inv det solve trace sigmoid silu reshape transpose concatenate getitem
    setitem take _put_along _add_along"""
CASES = [(name, sample) for name, samples in SAMPLES.items() for sample in samples]


def cases(*, gradient: bool = False, names: Any = None) -> Any:
    """A parametrisation over the samples, each named after its op and label."""
    chosen = [(n, s) for n, s in CASES if (not gradient or is_differentiable(n, s)) and (names is None or n in names)]
    return pytest.mark.parametrize(("name", "sample"), chosen, ids=[f"{n}-{s.label or 'plain'}" for n, s in chosen])


def is_differentiable(name: str, sample: Sample) -> bool:
    """Whether derivatives are to be checked on this sample."""
    function = FUNCTIONS.get(name)
    return (
        sample.gradient
        and "float64" in sample.dtypes
        and (isinstance(function, Composite) or isinstance(function, Op) and function.mask != 0)
    )


def several(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same numbers, otherwise in memory."""
    if layout == "fortran":
        return np.array(array, order="F")
    if layout == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    array = array.copy()
    array.flags.writeable = layout != "read-only"
    return array


def check_values(name: str, sample: Sample, dtype: str, layout: str) -> None:
    cast = [leaf if dtype == "as given" else leaf.astype(dtype) for leaf in sample.leaves]
    with np.errstate(all="ignore"):
        typed = several(sample.call(sample.reference, cast))
        exact = several(sample.call(sample.reference, [leaf.astype("float64") for leaf in cast]))
        tensors = [wrap(laid_out(leaf, layout)) for leaf in cast]
        results = several(sample.call(FUNCTIONS[name], tensors, lambda a: wrap(laid_out(a, layout))))
    assert len(results) == len(exact)
    for result, like, value in zip(results, typed, exact):
        assert isinstance(result, Tensor)
        wanted = np.asarray(like).dtype if sample.dtype_as_reference or not cast else np.result_type(*cast)
        assert result.dtype == wanted, f"dtype {result.dtype} instead of {wanted} for {dtype}, {layout}"
        assert result.shape == np.shape(value)
        coarse = min([*(leaf.dtype for leaf in cast), result.dtype], key=lambda d: d.itemsize if d.kind == "f" else 8)
        bound = TOLERANCE.get(coarse.name, 1e-11) * sample.tolerance
        np.testing.assert_allclose(
            result.numpy().astype(value.dtype), value, rtol=bound, atol=bound, err_msg=f"{dtype}, {layout}"
        )


@cases()
def test_value_equals_the_reference_in_every_dtype_and_layout(name: str, sample: Sample) -> None:
    for dtype in sample.dtypes:
        for layout in LAYOUTS:
            check_values(name, sample, dtype, layout)


def as_function(name: str, sample: Sample) -> Any:
    """The op as a function of its floating arguments alone."""

    def function(*leaves: Tensor) -> Any:
        return sample.call(FUNCTIONS[name], list(leaves if sample.via is None else sample.via(*leaves)), wrap)

    return function


@cases(gradient=True)
def test_first_and_second_derivative_agree_with_finite_differences(name: str, sample: Sample) -> None:
    assert gradcheck(as_function(name, sample), [wrap(leaf) for leaf in sample.leaves])


def first_gradients(name: str, sample: Sample, dtype: str) -> tuple[list[Tensor], list[Tensor], list[np.ndarray]]:
    """The floating inputs in `dtype`, their gradients, and the weights of the outputs that these belong to."""
    leaves = [wrap(leaf.astype(dtype)).requires_grad_() for leaf in sample.leaves]
    outs = [y for y in several(as_function(name, sample)(*leaves)) if y.dtype.kind == "f"]
    weights = [np.random.default_rng(i).standard_normal(y.shape) for i, y in enumerate(outs)]
    seeds = [wrap(w.astype(y.dtype)) for w, y in zip(weights, outs)]
    found = mg.autograd.grad(outs, leaves, seeds, allow_unused=True)
    return leaves, [wrap(np.zeros(x.shape, x.dtype)) if g is None else g for g, x in zip(found, leaves)], weights


@cases(gradient=True)
def test_float32_gradient_has_the_dtype_and_shape_of_its_input(name: str, sample: Sample) -> None:
    if "float32" not in sample.dtypes:
        pytest.skip("this sample is for float64 only")
    _, exact, _ = first_gradients(name, sample, "float64")
    for x, g, expected in zip(*first_gradients(name, sample, "float32")[:2], exact):
        assert (g.shape, g.dtype) == (x.shape, np.float32)
        np.testing.assert_allclose(
            g.numpy(),
            expected.numpy(),
            rtol=2e-4 * sample.tolerance,
            atol=2e-4 * (1 + abs(expected.numpy()).max(initial=0)),
        )


@cases(gradient=True, names=HOLOMORPHIC.split())
def test_gradient_agrees_with_the_complex_step(name: str, sample: Sample) -> None:
    if sample.label == "far out":
        pytest.skip("its reference, logaddexp, does not take complex numbers")
    if "dtype" in sample.kwargs:
        pytest.skip("its result is of a real dtype")
    _, gradients, weights = first_gradients(name, sample, "float64")
    for i, g in enumerate(gradients):
        numeric = np.zeros(g.shape)
        for element in np.ndindex(g.shape):
            moved = [leaf.astype(complex) for leaf in sample.leaves]
            moved[i][element] += 1e-30j
            values = several(sample.call(sample.reference, moved))
            numeric[element] = sum(float((w * np.imag(v)).sum()) for w, v in zip(weights, values)) / 1e-30
        np.testing.assert_allclose(g.numpy(), numeric, rtol=1e-9 * sample.tolerance, atol=1e-10 * sample.tolerance)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_op_has_samples_that_exercise_every_rule(name: str) -> None:
    if name in BUILT_ELSEWHERE:
        assert name not in SAMPLES, BUILT_ELSEWHERE[name]
        return
    function = FUNCTIONS[name]
    assert name in SAMPLES, f"write samples for {name} in tests/support/samples"
    if isinstance(function, Op) and function.mask == 0:
        return
    exercised, recorded = 0, 0
    for sample in SAMPLES[name]:
        if is_differentiable(name, sample):
            result = several(as_function(name, sample)(*[wrap(leaf).requires_grad_() for leaf in sample.leaves]))
            nodes = [y.node for y in result if y.node is not None]
            recorded += len(nodes)
            made = [n.parents[0] if function.several else n for n in nodes] if isinstance(function, Op) else []
            exercised |= sum(
                {1 << i for n in made if n.plan.op is function for i, needed in enumerate(n.plan.needs) if needed}
            )
    floating = any(
        y.dtype.kind == "f"
        for s in SAMPLES[name]
        if s.leaves
        for y in several(as_function(name, s)(*[wrap(leaf) for leaf in s.leaves]))
    )
    assert recorded or not floating, f"no sample of {name} is differentiated"
    if isinstance(function, Op) and function.joint is None:
        assert exercised == function.mask, f"some rule of {name} is never used by its samples"


def test_no_sample_is_for_an_op_that_does_not_exist() -> None:
    assert set(SAMPLES) <= set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(n for n, f in OPS.items() if f.mask == 0))
def test_op_without_rules_gives_tensors_without_a_graph(name: str) -> None:
    for sample in SAMPLES[name]:
        result = sample.call(FUNCTIONS[name], [wrap(leaf).requires_grad_() for leaf in sample.leaves], wrap)
        assert all(isinstance(y, Tensor) and y.node is None for y in several(result))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_nothing_is_recorded_inside_no_grad(name: str) -> None:
    for sample in SAMPLES[name]:
        leaves = [wrap(leaf).requires_grad_() for leaf in sample.leaves]
        with mg.no_grad(), np.errstate(all="ignore"):
            result = sample.call(FUNCTIONS[name], leaves, wrap)
        assert all(y.node is None or any(y is leaf for leaf in leaves) for y in several(result))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_inputs_are_left_as_they_were_also_by_a_call_that_fails(name: str) -> None:
    bad_calls: list[dict[str, Any]] = [{"no_such_argument": 1}]
    if not name.startswith("_") and "axis" in FUNCTIONS[name].signature.defaults:
        bad_calls.append({"axis": 99})
    for sample in SAMPLES[name]:
        leaves = [wrap(leaf.copy()).requires_grad_() for leaf in sample.leaves]
        others: list[np.ndarray] = []
        before = [(x.node, x.data) for x in leaves]
        with np.errstate(all="ignore"):
            sample.call(FUNCTIONS[name], leaves, lambda a, seen=others: seen.append(a.copy()) or wrap(seen[-1]))
            for bad in bad_calls:
                with pytest.raises(MinigradError):
                    sample.call(
                        lambda *args, bad=bad, **kwargs: FUNCTIONS[name](*args, **{**kwargs, **bad}), leaves, wrap
                    )
        for x, leaf, (node, data) in zip(leaves, sample.leaves, before):
            assert x.node is node and x.data is data and x.grad is None
            np.testing.assert_array_equal(x.numpy(), leaf)


PUBLIC = {
    "elementwise": """
        add subtract multiply divide floor_divide remainder power negative positive abs sign exp expm1 log log1p log2 log10 sqrt
        rsqrt square reciprocal sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh hypot logaddexp
        erf erfc erfinv lgamma digamma polygamma sinc logit xlogy exp2 cbrt lerp fmod nan_to_num isclose
        maximum minimum clip where floor ceil round trunc isnan isinf isfinite equal not_equal less less_equal greater
        greater_equal logical_and logical_or logical_xor logical_not sigmoid relu leaky_relu elu selu gelu silu softplus mish
        hardtanh hardsigmoid logsigmoid softsign""",
    "reductions": """
        sum mean var std prod max min argmax argmin any all logsumexp norm cumsum cumprod sort argsort topk median
        nansum nanmean nanmax nanmin nanvar nanstd logcumsumexp cummax cummin diff searchsorted bincount histogram unique
        bucketize isin count_nonzero""",
    "shape": """
        reshape ravel flatten transpose permute_dims swapaxes moveaxis expand_dims squeeze broadcast_to concatenate stack split
        unstack tile repeat flip roll pad tril triu diag diagonal meshgrid hstack vstack dstack column_stack block_diag atleast_1d
        atleast_2d atleast_3d unflatten rot90 diag_embed diagflat tril_indices triu_indices
        array_split hsplit vsplit dsplit append flipud fliplr broadcast_arrays""",
    "indexing": """
        take take_along_axis put_along_axis scatter_add masked_fill nonzero one_hot gather scatter scatter_reduce index_add
        index_copy index_fill index_put masked_select masked_scatter""",
    "statistics": "quantile percentile average cov corrcoef interp trapezoid cumulative_trapezoid cdist pdist",
    "linear algebra": """
        matmul dot vecdot outer tensordot einsum trace inv solve det slogdet cholesky qr svd inner kron cross multi_dot
        logdet solve_triangular cholesky_solve tensorinv tensorsolve svdvals eigh eigvalsh lu lu_factor lu_solve matrix_power
        matrix_exp pinv lstsq matrix_rank cond vander""",
}
NEURAL = """
    softmax log_softmax cross_entropy nll_loss binary_cross_entropy_with_logits mse_loss l1_loss huber_loss kl_div layer_norm
    rms_norm batch_norm dropout embedding linear conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d interpolate pad grid_sample
    unfold fold pixel_shuffle scaled_dot_product_attention
    cosine_similarity"""
# Those that numpy.ndarray or torch.Tensor has; `power` is the operator **.
METHODS = """
    add subtract multiply divide floor_divide remainder negative positive abs sign exp expm1 log log1p log2 log10 sqrt rsqrt
    square reciprocal sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh hypot logaddexp erf maximum
    minimum clip where floor ceil round trunc isnan isinf isfinite equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor logical_not sigmoid relu sum mean var std prod max min argmax argmin any all logsumexp norm
    cumsum cumprod sort argsort topk median reshape ravel flatten transpose swapaxes moveaxis squeeze broadcast_to split tile
    repeat flip roll tril triu diag diagonal take scatter_add masked_fill nonzero matmul dot outer trace det slogdet cholesky qr
    svd"""
OPERATORS = """
    __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__
    __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __matmul__ __rmatmul__ __neg__ __pos__ __abs__ __eq__ __ne__
    __lt__ __le__ __gt__ __ge__ __and__ __or__ __xor__ __lshift__ __rlshift__ __ilshift__ __rshift__
     __invert__ __getitem__ __setitem__"""


@pytest.mark.parametrize("name", [n for group in PUBLIC.values() for n in group.split()])
def test_function_is_public_and_documented(name: str) -> None:
    assert callable(getattr(mg, name)) and getattr(mg, name).__doc__
    assert name in mg.__all__


@pytest.mark.parametrize("name", NEURAL.split())
def test_neural_function_is_public_and_documented(name: str) -> None:
    assert callable(getattr(mg.nn.functional, name)) and getattr(mg.nn.functional, name).__doc__


@pytest.mark.parametrize("name", METHODS.split() + OPERATORS.split())
def test_tensor_has_the_method_that_numpy_or_pytorch_has(name: str) -> None:
    assert callable(vars(Tensor).get(name)), f"Tensor.{name} is missing"
