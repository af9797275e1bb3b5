"""CUDA kernels compute what the definitions say. Without a card they are compiled by NVRTC, and run as g++ compiles them."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
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
    gradient_for,
    take_steps,
)
from support.cuda_on_cpu import GPP, KernelsOnCpu, build, signatures
from support.cupy_names import CUPY_IS_INSTALLED, InstalledNames, misuse

import minigrad as mg
from minigrad.errors import ArgumentError
from minigrad.kernels import FUSED, cuda, registry, selection
from minigrad.kernels.cuda import attention as cuda_attention
from minigrad.kernels.cuda import launching
from minigrad.kernels.cuda.launching import REALS, source
from minigrad.random import hashed

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


def nvrtc_is_missing() -> str | None:
    if not CUPY_IS_INSTALLED:
        return "CuPy is not installed: pip install -e '.[test-cuda]'"
    from cupy_backends.cuda.libs import nvrtc

    try:
        nvrtc.getVersion()
    except Exception as error:
        return f"NVRTC is not installed: pip install -e '.[test-cuda]' ({type(error).__name__})"
    return None


MISSING = nvrtc_is_missing()
needs_nvrtc = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
needs_gpp = pytest.mark.skipif(GPP is None, reason="g++ is not installed: apt install g++")


def compile_by_nvrtc(text: str, architecture: str) -> str:
    """The machine code, or for "compute_…" the PTX; what does not compile is an error with the compiler's words."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"--gpu-architecture={architecture}",))
        made = nvrtc.getPTX(program) if architecture.startswith("compute") else nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        raise SyntaxError(nvrtc.getProgramLog(program)) from None
    finally:
        log = nvrtc.getProgramLog(program)
        nvrtc.destroyProgram(program)
    assert not log.strip("\0\n "), log
    return made if isinstance(made, str) else made.decode("latin-1")


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("char", REALS)
def test_every_kernel_compiles_without_a_warning(char: str, architecture: str) -> None:
    code = compile_by_nvrtc(source(char), architecture)
    assert len(signatures(source(char))) > 20
    assert [name for name in signatures(source(char)) if f".text.{name}\0" not in code] == []


@needs_nvrtc
@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("erfc(", "erfq(", 'identifier "erfq" is undefined'),
        ("top = block_max(top);", "top = block_max(top)", 'expected a ";"'),
    ],
)
def test_a_source_with_a_mistake_is_refused(right: str, wrong: str, complaint: str) -> None:
    assert right in source("f")
    with pytest.raises(SyntaxError, match=re.escape(complaint)):
        compile_by_nvrtc(source("f").replace(right, wrong), "compute_75")


@needs_nvrtc
def test_float32_kernels_compute_nothing_in_float64() -> None:
    """Where a card is many times slower; scalars come as doubles, and are compared with 0 or made float at once."""
    ptx = compile_by_nvrtc(source("f"), "compute_75")
    assert "fma.rn.f32" in ptx
    instructions = set(re.findall(r"\b[a-z][a-z0-9.]*\.f64\b", ptx))
    assert instructions <= {"ld.param.f64", "cvt.rn.f32.f64", "setp.eq.f64", "setp.neu.f64", "mov.f64"}


@pytest.mark.skipif(not CUPY_IS_INSTALLED, reason="CuPy is not installed: pip install -e '.[test-cuda]'")
def test_cupy_has_what_kernels_are_started_with() -> None:
    names = InstalledNames()
    assert misuse(names["RawModule"], 0, ("code",)) is None
    assert misuse(names["RawModule.get_function"], 1, ()) is None
    assert misuse(names["RawKernel.__call__"], 3, ()) is None
    methods = ("reshape", "astype", "swapaxes", "transpose", "sum", "T", "flags", "__matmul__", "__mod__")
    assert [name for name in methods if f"ndarray.{name}" not in names] == []


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> KernelsOnCpu:
    return KernelsOnCpu({char: source(char) for char in REALS}, tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def on_cpu(kernels: KernelsOnCpu, monkeypatch: pytest.MonkeyPatch) -> KernelsOnCpu:
    """Kernels that are started run on the CPU, and rows and elements are more than blocks can take at once."""
    monkeypatch.setattr(launching, "compiled", kernels)
    monkeypatch.setattr(launching, "BLOCKS", 3)
    return kernels


def test_every_fused_op_has_a_cuda_kernel_and_a_case() -> None:
    assert {name for name, op in FUSED.items() if "cuda" in op.kernels} == FUSED.keys() == {c.name for c in CASES}


@needs_gpp
@pytest.mark.parametrize("char", REALS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kernel_computes_what_the_definition_says(case: Case, char: str, on_cpu: KernelsOnCpu) -> None:
    g = gradient_for(case)
    wanted = by_definition(case, case.arrays("d"), g)
    assert_alike(by_kernel(case, case.arrays(char), g.astype(char)), wanted, char)


@needs_gpp
@pytest.mark.parametrize("case", CASES, ids=str)
def test_inputs_may_have_gaps_and_be_read_only(case: Case, on_cpu: KernelsOnCpu) -> None:
    def with_gaps(a: Any) -> Any:
        if a is None:
            return None
        spread = np.repeat(a, 2, axis=-1)[..., ::2]
        spread.flags.writeable = False
        return spread

    g = gradient_for(case)
    wanted = by_kernel(case, case.arrays("d"), g)
    assert_alike(by_kernel(case, [with_gaps(a) for a in case.arrays("d")], with_gaps(g)), wanted, "d")


@needs_gpp
def test_every_kernel_is_run_by_some_case(on_cpu: KernelsOnCpu) -> None:
    on_cpu.called.clear()
    for case in CASES:
        by_kernel(case, case.arrays("f"), gradient_for(case).astype("f"))
    for step in STEP_CASES:
        take_steps(step, "f", by_kernel=True)
    assert on_cpu.called == signatures(source("f")).keys()


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 20.0, -20.0, 90.0, -90.0, 200.0, -200.0])


@needs_gpp
@pytest.mark.parametrize("char", REALS)
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
def test_special_numbers_give_what_the_definition_gives(case: Case, char: str, on_cpu: KernelsOnCpu) -> None:
    arrays = case.arrays(char)
    g = np.ones(by_definition(case, arrays)[0].shape, char)
    assert_alike(by_kernel(case, arrays, g), by_definition(case, arrays, g), char)


ROWS = np.random.default_rng(0).standard_normal((6, 40))
ROWS[0, 3], ROWS[1, 39], ROWS[2, 0] = np.nan, np.inf, -np.inf
ROWS[3], ROWS[4] = -np.inf, 0


@needs_gpp
@pytest.mark.parametrize("char", REALS)
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
def test_rows_with_special_numbers_give_what_the_definition_gives(case: Case, char: str, on_cpu: KernelsOnCpu) -> None:
    arrays = case.arrays(char)
    g = np.ones(by_definition(case, arrays)[0].shape, char)
    out, grad, *_ = by_kernel(case, arrays, g)
    wanted, wanted_grad, *_ = by_definition(case, arrays, g)
    np.testing.assert_allclose(out, wanted, *TOLERANCES[char])
    tame = np.isfinite(wanted_grad).all(-1)
    assert tame.any()
    np.testing.assert_allclose(grad[tame], wanted_grad[tame], *TOLERANCES[char])
    assert not np.isfinite(grad[~tame]).all(-1).any()


@needs_gpp
def test_scores_of_minus_infinity_without_a_mask_are_nan_as_in_a_softmax(on_cpu: KernelsOnCpu) -> None:
    query, key = np.ones((1, 1, 2, 1)), np.full((1, 1, 3, 1), -np.inf)
    attributes = {"causal": False, "scale": 1.0, "dropout_p": 0.0, "dropout_key": 0, "start": 0}
    case = Case("attention", [query, key, np.ones((1, 1, 3, 2)), None], attributes)
    (wanted,) = by_definition(case, case.inputs)
    assert np.isnan(wanted).all()
    np.testing.assert_array_equal(by_kernel(case, case.inputs, np.ones((1, 1, 2, 2)))[0], wanted)


@needs_gpp
def test_an_ignored_label_gives_no_gradient_whatever_its_logits(on_cpu: KernelsOnCpu) -> None:
    case = Case("cross_entropy", [ROWS, np.full(6, 7)], {"ignore_index": 7, "smoothing": 0.1})
    losses, grad, _ = by_kernel(case, case.inputs, np.ones(6))
    assert not losses.any() and not grad.any()


@needs_gpp
@pytest.mark.parametrize("start", [0, 123, 2**32 - 7, 2**40 + 3])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999, 1.0, int(hashed(np, np.array([200], "uint32"), KEY)[0]) / 2**32])
def test_dropout_drops_the_same_elements_bit_for_bit(p: float, start: int, on_cpu: KernelsOnCpu) -> None:
    case = Case("dropout", [np.ones(2000)], {"p": p, "key": KEY, "start": start})
    ones = case.arrays("f")
    out, grad = by_kernel(case, ones, ones[0])
    np.testing.assert_array_equal(out, by_definition(case, ones)[0])
    np.testing.assert_array_equal(grad, out)


@needs_gpp
@pytest.mark.parametrize("case", [c for c in CASES if "attention" in c.name], ids=str)
def test_attention_by_a_head_at_a_time_gives_the_same(
    case: Case, on_cpu: KernelsOnCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = gradient_for(case)
    wanted = by_kernel(case, case.arrays("d"), g)
    monkeypatch.setattr(cuda_attention, "SCORES", 2 * 5 * 9)
    assert_alike(by_kernel(case, case.arrays("d"), g), wanted, "d")


EMPTY: list[tuple[str, dict[str, Any]]] = [
    ("silu", {}),
    ("gelu", {"approximate": "tanh"}),
    ("dropout", {"p": 0.5, "key": 1, "start": 0}),
]


@needs_gpp
def test_empty_arrays_start_no_kernel(on_cpu: KernelsOnCpu) -> None:
    on_cpu.called.clear()
    for name, attributes in EMPTY:
        case = Case(name, [np.empty((0, 3))], attributes)
        assert [x.shape for x in by_kernel(case, case.inputs, np.empty((0, 3)))] == [(0, 3), (0, 3)]
    assert on_cpu.called == set()
    assert not FUSED["softmax"].kernels["cuda"].accepts(np.empty((0, 3)), axis=-1)


def test_float16_is_left_to_the_definition() -> None:
    half = np.ones((2, 4), "float16")
    assert not FUSED["silu"].kernels["cuda"].accepts(half)
    assert not FUSED["layer_norm"].kernels["cuda"].accepts(np.ones((2, 4)), np.ones(4, "f"), None, eps=1e-5)


@needs_gpp
def test_a_transformer_learns_the_same_through_the_kernels(
    on_cpu: KernelsOnCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    table, packed, out = rng.standard_normal((11, 8)), rng.standard_normal((24, 8)), rng.standard_normal((11, 8))
    index, labels = rng.integers(0, 11, (2, 5)), rng.integers(0, 11, 10)

    def gradients() -> list[np.ndarray]:
        weights: list[Any] = [mg.tensor(w, requires_grad=True) for w in (table, packed, out)]
        x = FUSED["embedding"](weights[0], index, padding_idx=None)
        qkv = FUSED["linear"](FUSED["layer_norm"](x, None, None, eps=1e-5), weights[1], None)
        attributes = {"heads": 2, "causal": True, "scale": 0.5, "dropout_p": 0.1, "dropout_key": KEY, "start": 0}
        x = x + FUSED["packed_attention"](qkv, None, **attributes)
        logits = FUSED["linear"](FUSED["gelu"](x, approximate="tanh"), weights[2], None).reshape(10, 11)
        FUSED["cross_entropy"](logits, labels, ignore_index=-100, smoothing=0.1).sum().backward()
        return [w.grad.data for w in weights]

    monkeypatch.setattr(registry, "candidates", lambda *_: ())
    wanted = gradients()
    on_cpu.called.clear()
    monkeypatch.setattr(registry, "candidates", lambda *_: ("cuda",))
    assert_alike(gradients(), wanted, "d")
    assert len(on_cpu.called) > 7


@needs_gpp
@pytest.mark.parametrize("char", REALS)
@pytest.mark.parametrize("case", STEP_CASES, ids=str)
def test_steps_change_the_weights_as_the_optimisers_do(case: StepCase, char: str, on_cpu: KernelsOnCpu) -> None:
    wanted = take_steps(case, "d", by_kernel=False)
    np.testing.assert_allclose(take_steps(case, char, by_kernel=True), wanted, *TOLERANCES[char])


@pytest.mark.parametrize(
    ("g", "velocity"),
    [
        (np.zeros(5, "f"), None),
        (np.zeros(4), None),
        (np.zeros(4, "f"), np.zeros(8, "f")[::2]),
    ],
    ids=["a longer gradient", "a gradient in float64", "a velocity with gaps"],
)
def test_a_step_refuses_arrays_that_do_not_fit(g: np.ndarray, velocity: np.ndarray | None) -> None:
    with pytest.raises(ArgumentError, match="sgd_step: an array does not fit the parameters"):
        cuda.sgd_step(np.zeros(4, "f"), g, velocity, lr=0.1)


@needs_gpp
def test_a_gradient_may_have_gaps(on_cpu: KernelsOnCpu) -> None:
    p, g = np.zeros((2, 3), "f"), np.arange(6, dtype="f").reshape(3, 2).T
    cuda.sgd_step(p, g, None, lr=1.0, clip=0.5)
    np.testing.assert_array_equal(p, -0.5 * g)


@needs_gpp
@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones(3, "f"), np.ones(3, "f")),
        (np.ones(3, "f"), np.ones(3), 3),
        (np.ones(3, "f"), np.ones(6, "f")[::2], 3),
        (np.ones(3, "f"), np.ones(3, "f"), 3.0),
    ],
    ids=["too few", "dtype", "gaps", "number"],
)
def test_a_kernel_that_would_read_wrong_memory_on_a_card_is_refused(arguments: Any, on_cpu: KernelsOnCpu) -> None:
    with pytest.raises(AssertionError, match="silu_forward"):
        launching.start("silu_forward", "f", (1,), 32, *arguments)


@needs_gpp
def test_gpp_refuses_a_source_with_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(source("f").replace("erfc(", "erfq("), tmp_path)
    assert "erfq" in caught.value.stderr


def test_kernels_are_loaded_when_the_first_cupy_array_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(selection, "import_module", loaded.append)
    selection._load_cuda.cache_clear()
    array_type = type("ndarray", (), {"__module__": "cupy"})
    assert [selection.candidates(array_type, 1) for _ in range(2)] == [("cuda",), ("cuda",)]
    assert loaded == ["minigrad.kernels.cuda"]
    with selection.use("definitions"):
        assert selection.candidates(array_type, 1) == ()
    selection._load_cuda.cache_clear()


@cache
def cupy() -> Any:
    import cupy

    return cupy


def to_card(a: Any) -> Any:
    return None if a is None else cupy().asarray(a)


def from_card(a: Any) -> Any:
    return None if a is None else cupy().asnumpy(a)


@pytest.mark.gpu
@pytest.mark.parametrize("char", REALS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_card_computes_what_the_definition_says(case: Case, char: str) -> None:
    g = gradient_for(case)
    got = by_kernel(case, [to_card(a) for a in case.arrays(char)], to_card(g.astype(char)))
    assert_alike([from_card(a) for a in got], by_definition(case, case.arrays("d"), g), char)


@pytest.mark.gpu
@pytest.mark.parametrize("char", REALS)
@pytest.mark.parametrize("case", STEP_CASES, ids=str)
def test_a_card_changes_weights_as_the_optimisers_do(case: StepCase, char: str) -> None:
    wanted = take_steps(case, "d", by_kernel=False)
    got = from_card(take_steps(case, char, by_kernel=True, xp=cupy()))
    np.testing.assert_allclose(got, wanted, *TOLERANCES[char])
