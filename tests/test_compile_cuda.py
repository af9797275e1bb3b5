"""Loops in CUDA C compute what the ops say. Without a card they are compiled by NVRTC, and run as g++ compiles them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.cuda_cases import (
    CASES,
    KEY,
    STEP_CASES,
    TOLERANCES,
    Case,
    StepCase,
    assert_alike,
    by_definition,
    by_kernel,
    by_loops,
    gradient_for,
    take_steps,
    take_steps_by_kernel,
)
from support.cuda_on_cpu import GPP, LoopsOnCpu, signatures
from support.cupy_names import CUPY_IS_INSTALLED, InstalledNames, misuse
from support.fake_array import FakeArray
from support.graphs import Build
from support.nvrtc import ARCHITECTURES, compile_by_nvrtc, needs_nvrtc
from test_compile_loops import (  # noqa: F401  (the same statements as of numba's loops)
    test_a_row_gathered_and_scattered,
    test_arrays_in_any_layout,
    test_dropout_draws_as_without_a_compiler,
    test_every_function_of_one_number,
    test_every_function_of_two_numbers,
    test_nan_and_infinities_in_reductions,
    test_numbers_are_read_at_each_run,
    test_numbers_take_the_dtype_of_the_array,
    test_odd_shapes,
    test_one_element_of_a_long_array_is_gathered,
    test_places_along_any_axis,
    test_powers,
    test_random_compositions,
    test_reductions_over_any_axes,
    test_views_are_index_maps,
    test_where_takes_any_condition,
)

import minigrad as mg
from minigrad.compile import cuda
from minigrad.compile.cuda import PRELUDE
from minigrad.compile.fused import register
from minigrad.compile.plan import Plan
from minigrad.kernels import FUSED, registry, selection
from minigrad.kernels.registry import STEPS
from minigrad.random import hashed

pytestmark = pytest.mark.skipif(GPP is None, reason="g++ is not installed: apt install g++")
CHARS = ("f", "d")
STEPWISE = {"gated_scan", "rnn", "gru", "lstm"}
WINDOWED = {"convolution", "max_pool", "avg_pool"}
BY_DEFINITION = {"attention", "packed_attention", "embedding", "packed_linear", *STEPWISE, *WINDOWED}
WITHOUT_LOOPS = {
    "linear",
    "packed_linear",
    "embedding",
    *STEPWISE,
    *WINDOWED,
}  # products, a lookup, what goes step by step
plan_module = sys.modules[Plan.__module__]


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> LoopsOnCpu:
    return LoopsOnCpu(tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module", autouse=True)
def kernels() -> Iterator[None]:
    """The kernels for CuPy's arrays, as they are registered when the first one comes."""
    register("cuda")
    yield
    for known in (STEPS, *[op.kernels for op in FUSED.values()]):
        known.pop("cuda", None)


@pytest.fixture(autouse=True)
def on_cpu(request: Any, loops: LoopsOnCpu, monkeypatch: pytest.MonkeyPatch) -> LoopsOnCpu:
    """Plans run on arrays of NumPy and of the fake device as on CuPy's, with more rows and elements than blocks can take at once."""
    if request.node.get_closest_marker("gpu"):
        return loops
    monkeypatch.setattr(cuda, "compiled", loops)
    for name, few in {"BLOCKS": 5, "KEEPING": 2, "SUMMING": 3, "THREADS": 64}.items():
        monkeypatch.setattr(cuda, name, few)
    monkeypatch.setattr(plan_module, "is_cupy", lambda array: True)
    monkeypatch.setattr(plan_module, "implementation", lambda: "numba")
    monkeypatch.setattr(Plan, "_compile", lambda plan: None)
    monkeypatch.setattr(registry, "candidates", lambda kind, size: ("cuda",) if kind is FakeArray else ())
    loops.called.clear()
    return loops


def test_every_fused_op_has_a_case_and_a_kernel_unless_its_definition_is_as_good() -> None:
    assert FUSED.keys() == {case.name for case in CASES}
    assert FUSED.keys() - {name for name, op in FUSED.items() if "cuda" in op.kernels} == BY_DEFINITION


@pytest.mark.parametrize("way", [by_kernel, by_loops])
@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fused_op_computes_what_its_definition_says(case: Case, char: str, way: Any, on_cpu: LoopsOnCpu) -> None:
    g = gradient_for(case)
    assert_alike(way(case, case.arrays(char), g.astype(char)), by_definition(case, case.arrays("d"), g), char)
    assert on_cpu.called or case.name in WITHOUT_LOOPS


@pytest.mark.parametrize("compiled", [False, True], ids=["kernel", "compiled"])
@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("case", STEP_CASES, ids=str)
def test_steps_change_the_weights_as_the_optimisers_do(
    case: StepCase, char: str, compiled: bool, on_cpu: LoopsOnCpu
) -> None:
    changed = take_steps_by_kernel(case, char, compiled)
    np.testing.assert_allclose(changed, take_steps(case, "d"), *TOLERANCES[char])
    assert on_cpu.called


@pytest.mark.parametrize("case", [c for c in CASES if FUSED[c.name].kernels.rows and c.inputs[0].ndim > 1], ids=str)
def test_one_trace_serves_every_number_of_rows(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    op = FUSED[case.name]
    monkeypatch.delitem(op.kernels, "cuda")
    register("cuda")
    for rows in (5, 1, 3, 2, 5):
        given = zip(op.signature.inputs, case.inputs)
        inputs = [np.resize(a, (rows, *a.shape[1:])) if name in op.kernels.rows else a for name, a in given]
        here = Case(case.name, inputs, case.attributes)
        g = gradient_for(here)
        assert_alike(by_kernel(here, inputs, g), by_definition(here, inputs, g), "d")
    assert len(op.kernels["cuda"].forward.__self__.derived) == 1


def with_gaps(array: Any) -> Any:
    return array if array is None else mg.tensor(np.repeat(array, 2, axis=-1), device="fake").data[..., ::2]


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in BY_DEFINITION], ids=str)
def test_inputs_and_gradients_may_have_gaps(case: Case) -> None:
    kernel, g = FUSED[case.name].kernels["cuda"], gradient_for(case)
    arrays = [with_gaps(a) for a in case.arrays("d")]
    assert kernel.accepts(*arrays, **case.attributes) and kernel.backward is not None
    out, kept = kernel.forward(*arrays, **case.attributes)
    grads = kernel.backward(with_gaps(g), kept, case.needs(), *arrays, **case.attributes)
    got = [x if x is None else x.get() for x in (out, *grads)]
    assert_alike(got, by_definition(case, case.arrays("d"), g), "d")


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 20.0, -20.0, 90.0, -90.0, 200.0, -200.0])


@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize(
    "case",
    [
        Case("gelu", [SPECIAL], {"approximate": "none"}, "none"),
        Case("gelu", [SPECIAL], {"approximate": "tanh"}, "tanh"),
        Case("silu", [SPECIAL]),
        Case("swiglu", [np.stack([np.concatenate([SPECIAL, np.roll(SPECIAL, k)]) for k in range(12)])]),
        Case("dropout", [np.tile(SPECIAL, 4)], {"p": 0.5, "key": KEY, "start": 0}),
    ],
    ids=str,
)
def test_special_numbers_give_what_the_definition_gives(case: Case, char: str) -> None:
    arrays = case.arrays(char)
    g = np.ones(by_definition(case, arrays)[0].shape, char)
    assert_alike(by_kernel(case, arrays, g), by_definition(case, arrays, g), char)


ROWS = np.random.default_rng(0).standard_normal((6, 40))
ROWS[0, 3], ROWS[1, 39], ROWS[2, 0] = np.nan, np.inf, -np.inf
ROWS[3], ROWS[4] = -np.inf, 0


@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize(
    "case",
    [
        Case("softmax", [ROWS], {"axis": -1}),
        Case("_masked_softmax", [ROWS, np.arange(40) != 39], {"axis": -1}),
        Case("cross_entropy", [ROWS, np.arange(6)], {"ignore_index": -100, "smoothing": 0.0}),
        Case("cross_entropy", [ROWS, np.arange(6)], {"ignore_index": -100, "smoothing": 0.1}, "smooth"),
        Case("layer_norm", [ROWS, np.ones(40), None], {"eps": 1e-5}),
        Case("rms_norm", [ROWS, np.ones(40)], {"eps": 1e-5}),
    ],
    ids=str,
)
def test_rows_with_special_numbers_give_what_the_definition_gives(case: Case, char: str) -> None:
    arrays = case.arrays(char)
    g = np.ones(by_definition(case, arrays)[0].shape, char)
    out, grad, *_ = by_kernel(case, arrays, g)
    wanted, wanted_grad, *_ = by_definition(case, arrays, g)
    np.testing.assert_allclose(out, wanted, *TOLERANCES[char])
    tame = np.isfinite(wanted_grad).all(-1)
    assert tame.any()
    np.testing.assert_allclose(grad[tame], wanted_grad[tame], *TOLERANCES[char])
    assert not np.isfinite(grad[~tame]).all(-1).any()


def test_an_ignored_label_gives_no_gradient_whatever_its_logits() -> None:
    case = Case("cross_entropy", [ROWS, np.full(6, 7)], {"ignore_index": 7, "smoothing": 0.1})
    losses, grad, _ = by_kernel(case, case.inputs, np.ones(6))
    assert not losses.any() and not grad.any()


@pytest.mark.parametrize("label", [40, -41])
def test_a_label_that_is_no_class_is_refused(label: int) -> None:
    case = Case("cross_entropy", [ROWS, np.full(6, label)], {"ignore_index": -100, "smoothing": 0.0})
    with pytest.raises(IndexError, match="6 of them"):
        by_kernel(case, case.inputs, np.ones(6))


@pytest.mark.parametrize("way", [by_kernel, by_loops])
@pytest.mark.parametrize("start", [0, 2**32 - 7, 2**40 + 3])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.999, 1.0, int(hashed(np, np.array([200], "uint32"), KEY)[0]) / 2**32])
def test_dropout_drops_the_same_elements_bit_for_bit(p: float, start: int, way: Any) -> None:
    case = Case("dropout", [np.ones(2000)], {"p": p, "key": KEY, "start": start})
    (ones,) = case.arrays("d")
    out, grad = way(case, [ones], ones)
    np.testing.assert_array_equal(out, by_definition(case, [ones])[0])
    np.testing.assert_array_equal(grad, out)


def test_what_kernels_do_not_take_is_left_to_the_definition() -> None:
    def accepts(name: str, *arrays: Any, **attributes: Any) -> bool:
        return FUSED[name].kernels["cuda"].accepts(*arrays, **attributes)

    assert not accepts("silu", np.ones((2, 4), "float16"))
    assert not accepts("softmax", np.empty((0, 3)), axis=-1)
    assert not accepts("layer_norm", np.ones((2, 4)), np.ones(4, "f"), None, eps=1e-5)


def test_kernels_are_loaded_when_the_first_cupy_array_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[str] = []
    monkeypatch.setattr(selection, "import_module", lambda name: SimpleNamespace(register=registered.append))
    selection._load_cuda.cache_clear()
    array_type = type("ndarray", (), {"__module__": "cupy"})
    assert [selection.candidates(array_type, 1) for _ in range(2)] == [("cuda",), ("cuda",)]
    assert registered == ["cuda"]
    with selection.use("definitions"):
        assert selection.candidates(array_type, 1) == ()
    selection._load_cuda.cache_clear()


def test_sums_of_many_rows_are_the_same_each_time_and_exact_enough() -> None:
    x = np.random.default_rng(0).random((500, 301), np.float32)
    b = Build(x)
    (v,) = b.inputs
    plan = b.check(b.sum(v), b.sum(v, axis=0), b.sum(v, axis=1), rtol=1e-5)
    first, again = plan.run([x]), plan.run([x])
    assert all((a == c).all() for a, c in zip(first, again))
    np.testing.assert_allclose(first[1], x.sum(0, dtype=np.float64), 1e-6)


def test_wrong_indices_are_counted_once_for_each_row() -> None:
    x, indices = np.ones((6, 200), np.float32), np.array([[0], [200], [-200], [-201], [199], [7]])
    b = Build(x, indices * 0)
    v, i = b.inputs
    plan = Plan(b.graph(b._take_along(b.exp(v), indices=i, axis=1)))
    with pytest.raises(IndexError, match="2 of them"):
        plan.run([x, indices])


def test_several_values_of_a_row_are_kept_apart() -> None:
    b = Build(np.random.default_rng(0).normal(size=(9, 70)).astype("float32"))
    (x,) = b.inputs
    first, second = b.exp(x), b.sigmoid(x)
    total = b.add(b.sum(first, axis=1, keepdims=True), b.sum(second, axis=1, keepdims=True))
    b.check(b.subtract(b.divide(first, total), b.multiply(second, total)), rtol=1e-5)


def test_another_size_compiles_nothing_new(on_cpu: LoopsOnCpu) -> None:
    counts = []
    for rows in (300, 500):
        b = Build(np.random.default_rng(rows).normal(size=(rows, 64)).astype("float32"))
        (x,) = b.inputs
        b.check(b.softmax(x), b.mean(x, axis=0), rtol=2e-5)
        counts.append(len(on_cpu.made))
    assert counts[0] == counts[1]


def test_the_source_of_a_plan_that_ran_there_can_be_read() -> None:
    b = Build(np.ones((3, 40), np.float32))
    text = b.check(b.softmax(b.inputs[0])).source()
    assert "// Here over [3, 40], with float32[3, 40]" in text and "m::over_block<f4, m::plus>" in text


def test_a_loop_that_cannot_be_compiled_runs_op_by_op(monkeypatch: pytest.MonkeyPatch) -> None:
    class CompileException(Exception):
        pass

    def refuse(source: str) -> Any:
        raise CompileException("no")

    monkeypatch.setattr(cuda, "compiled", refuse)
    b = Build(np.ones((3, 40), np.float32))
    with pytest.warns(RuntimeWarning, match="could not be compiled"):
        b.check(b.softmax(b.exp(b.inputs[0])))


@pytest.fixture
def texts(on_cpu: LoopsOnCpu) -> dict[str, list[str]]:
    """Every loop of the fused ops and of the steps, by dtype."""
    found = {}
    for char in CHARS:
        on_cpu.called.clear()
        for case in CASES:
            for way in (by_kernel, by_loops):
                way(case, case.arrays(char), gradient_for(case).astype(char))
        for step in STEP_CASES:
            for compiled in (False, True):
                take_steps_by_kernel(step, char, compiled)
        found[char] = [source.removeprefix(PRELUDE) for source in on_cpu.called]
    return found


def as_one(texts: list[str]) -> str:
    return PRELUDE + "\n".join([text.replace("void loop(", f"void loop_{k}(") for k, text in enumerate(texts)])


@needs_nvrtc
def test_every_loop_compiles_without_a_warning(texts: dict[str, list[str]]) -> None:
    text = as_one([*texts["f"], *texts["d"]])
    names = list(signatures(text))
    assert len(names) > 100
    for architecture in ARCHITECTURES:
        code = compile_by_nvrtc(text, architecture)
        assert [name for name in names if f".text.{name}\0" not in code] == []


@needs_nvrtc
def test_float32_loops_compute_nothing_in_float64(texts: dict[str, list[str]]) -> None:
    """Where a card is many times slower; but for the share of a dropout, which is a double everywhere."""
    ptx = compile_by_nvrtc(as_one(texts["f"]), "compute_75")
    found = re.findall(r"\.entry (\w+)\((?:.*?)\)(.*?\n})", ptx, re.DOTALL)
    used = {name: set(re.findall(r"\b[a-z][a-z0-9.]*\.f64\b", text)) for name, text in found}
    drops = {f"loop_{k}" for k, text in enumerate(texts["f"]) if "m::kept(" in text}
    assert drops >= {name for name, instructions in used.items() if instructions} != set()
    assert set().union(*used.values()) <= {"ld.param.f64", "mov.f64", "mul.f64", "cvt.rzi.s64.f64"}


@pytest.mark.skipif(not CUPY_IS_INSTALLED, reason="CuPy is not installed: pip install -e '.[test-cuda]'")
def test_cupy_has_what_kernels_are_started_with() -> None:
    names = InstalledNames()
    assert misuse(names["RawModule"], 0, ("code",)) is None
    assert misuse(names["RawModule.get_function"], 1, ()) is None
    assert misuse(names["RawKernel.__call__"], 3, ()) is None


@pytest.mark.gpu
@pytest.mark.parametrize("way", [by_kernel, by_loops])
@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_card_computes_what_the_definition_says(case: Case, char: str, way: Any) -> None:
    g = gradient_for(case)
    got = way(case, case.arrays(char), g.astype(char), device="cuda")
    assert_alike(got, by_definition(case, case.arrays("d"), g), char)


@pytest.mark.gpu
@pytest.mark.parametrize("compiled", [False, True], ids=["kernel", "compiled"])
@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("case", STEP_CASES, ids=str)
def test_a_card_changes_weights_as_the_optimisers_do(case: StepCase, char: str, compiled: bool) -> None:
    got = take_steps_by_kernel(case, char, compiled, device="cuda")
    np.testing.assert_allclose(got, take_steps(case, "d"), *TOLERANCES[char])
