"""Inputs for every fused op and every step of an optimiser, and ways to compute them: by generated kernels, and as defined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import trace
from minigrad.compile.program import Program
from minigrad.kernels import FUSED, registry

from .kernel_samples import SAMPLES

TOLERANCES = {"f": (1e-5, 2e-5), "d": (1e-12, 1e-12)}  # relative and absolute, by dtype
KEY = 0xDEADBEEF12345678


@dataclass
class Case:
    """A fused op with inputs: arrays, or None for one that was left out; floating ones get a gradient."""

    name: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    def arrays(self, char: str) -> list[Any]:
        return [a.astype(char) if a is not None and a.dtype.kind == "f" else a for a in self.inputs]

    def needs(self) -> tuple[bool, ...]:
        return tuple(a is not None and a.dtype.kind == "f" for a in self.inputs)

    def __str__(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(5)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    for bias in (None, normal(7)):
        yield Case("linear", [normal(2, 5, 3), normal(7, 3), bias], label="plain" if bias is None else "bias")
    for approximate in ("none", "tanh"):
        yield Case("gelu", [4 * normal(3, 301)], {"approximate": approximate}, approximate)
        for bias in (None, normal(7)):
            inputs, label = [normal(2, 5, 3), normal(7, 3), bias], "plain" if bias is None else "bias"
            yield Case("linear_gelu", inputs, {"approximate": approximate}, f"{approximate}-{label}")
    yield Case("swiglu", [normal(3, 4, 2 * 33)])
    for p, start in ((0.3, 0), (0.5, 2**32 - 100), (0.0, 5), (1.0, 0)):
        yield Case("dropout", [normal(4, 333)], {"p": p, "key": KEY, "start": start}, f"{p}-{start}")
    for width in (1, 7, 33, 700):
        shape, parameters = (3, 4, width), [1 + normal(width), normal(width)]
        yield Case("layer_norm", [normal(*shape) + 3, *parameters], {"eps": 1e-5}, str(width))
        yield Case("rms_norm", [normal(*shape) + 3, parameters[0]], {"eps": 1e-6}, str(width))
        yield Case("softmax", [5 * normal(*shape)], {"axis": -1}, str(width))
        allowed = rng.random((4, width)) < 0.5
        allowed[1] = False
        yield Case("_masked_softmax", [5 * normal(*shape), allowed], {"axis": 2}, str(width))
    yield Case("layer_norm", [normal(100, 40), None, None], {"eps": 1e-5}, "bare")
    yield Case("layer_norm", [normal(700, 5), normal(5), normal(5)], {"eps": 1e-5}, "tall")
    yield Case("rms_norm", [normal(100, 40), None], {"eps": 1e-5}, "bare")
    for smoothing in (0.0, 0.1):
        labels = rng.integers(0, 133, 9)
        labels[[2, 5]] = -100
        attributes = {"ignore_index": -100, "smoothing": smoothing}
        yield Case("cross_entropy", [5 * normal(9, 133), labels], attributes, f"{smoothing}")
        yield Case("cross_entropy", [normal(3, 5), np.array([1, 4, 1], "uint8")], attributes, f"{smoothing}-uint8")
    for padding in (None, 3):
        index = rng.integers(0, 11, (5, 7)).astype("int32")
        yield Case("embedding", [normal(11, 6), index], {"padding_idx": padding}, f"{padding}")
    mask = rng.random((2, 1, 5, 9)) < 0.6
    mask[0, 0, 2] = False
    settings = {"scale": 0.3, "softcap": None, "dropout_p": 0.0, "dropout_key": KEY, "start": 17}
    for label, m, causal, p in [("plain", None, False, 0), ("causal", None, True, 0.4), ("mask", mask, True, 0.2)]:
        arrays = [normal(2, 3, 5, 4), normal(2, 3, 9, 4), normal(2, 3, 9, 6), m]
        yield Case("attention", arrays, {**settings, "causal": causal, "dropout_p": p}, label)
        square = None if m is None else np.ascontiguousarray(m[..., :5])
        packed = {**settings, "heads": 2, "causal": causal, "dropout_p": p}
        yield Case("packed_attention", [normal(2, 5, 3 * 8), square], packed, label)


CASES = list(cases())
CASES += [  # a fused op without cases of its own
    Case(name, inputs, attributes, str(number))
    for name, samples in SAMPLES.items()
    if name not in {case.name for case in CASES}
    for number, (inputs, attributes) in enumerate(samples)
]


def _tensors(case: Case, arrays: list[Any], device: str) -> list[Any]:
    given = zip(arrays, case.needs())
    return [None if a is None else mg.tensor(a, device=device, requires_grad=need) for a, need in given]


def by_kernel(case: Case, arrays: list[Any], g: Any, device: str = "fake") -> list[Any]:
    """The output and the gradients, of inputs that are not there or not floating None, by the kernels of the op on a device."""
    tensors = _tensors(case, arrays, device)
    out = FUSED[case.name](*tensors, **case.attributes)
    out.backward(mg.tensor(g, device=device))
    return [out.numpy(), *[t.grad.numpy() if need else None for t, need in zip(tensors, case.needs())]]


def by_loops(case: Case, arrays: list[Any], g: Any, device: str = "fake") -> list[Any]:
    """The same by a function that is compiled, of which the definition is a part."""
    tensors = _tensors(case, arrays, device)
    there = [i for i, a in enumerate(arrays) if a is not None]

    def definition(*given: Any) -> Any:
        known = dict(zip(there, given))
        return FUSED[case.name].define([known.get(i) for i in range(len(arrays))], case.attributes)

    given = [tensors[i] for i in there]
    program = Program(trace(definition, *given), (), case.name)
    (out,) = program(given, {number: number.read() for number in program.graph.numbers()})
    out.backward(mg.tensor(g, device=device))
    return [out.numpy(), *[t.grad.numpy() if need else None for t, need in zip(tensors, case.needs())]]


def by_definition(case: Case, arrays: list[Any], g: np.ndarray | None = None) -> list[Any]:
    """The same by the definition, and by no kernel at all."""
    tensors: list[Any] = [mg.tensor(a, requires_grad=n) if n else a for a, n in zip(arrays, case.needs())]
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(registry, "candidates", lambda *_: ())
        out = FUSED[case.name].define(tensors, case.attributes)
        if g is None:
            return [out.data]
        out.backward(g)
    return [out.data, *[t.grad.data if n else None for t, n in zip(tensors, case.needs())]]


def gradient_for(case: Case) -> np.ndarray:
    (out,) = by_definition(case, case.arrays("d"))
    return np.random.default_rng(7).standard_normal(out.shape)


def assert_alike(got: list[Any], wanted: list[Any], char: str) -> None:
    assert [x is None for x in got] == [x is None for x in wanted]
    for a, b in zip(got, wanted):
        if b is not None:
            assert a.dtype == char and a.shape == b.shape
            np.testing.assert_allclose(a, b, *TOLERANCES[char])


@dataclass
class StepCase:
    """An optimiser, by the name of its rule, and its options."""

    optimizer: type[mg.optim.Optimizer]
    options: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.optimizer.__name__, *[f"{k}={v}" for k, v in self.options.items() if k != "lr"]])


STEP_CASES = [
    StepCase(mg.optim.SGD, {"lr": 0.1, "weight_decay": 0.01}),
    StepCase(mg.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    StepCase(mg.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    StepCase(mg.optim.RMSprop, {"lr": 0.01, "weight_decay": 0.01}),
    StepCase(mg.optim.RMSprop, {"lr": 0.01, "momentum": 0.9, "centered": True}),
    StepCase(mg.optim.Adam, {"lr": 0.01, "weight_decay": 0.01}),
    StepCase(mg.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    StepCase(mg.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    StepCase(mg.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    StepCase(mg.optim.Adadelta, {"lr": 1.0, "weight_decay": 0.01}),
    StepCase(mg.optim.Adamax, {"lr": 0.01, "weight_decay": 0.01}),
    StepCase(mg.optim.Rprop, {"lr": 0.01}),
    StepCase(mg.optim.Lion, {"lr": 0.01, "weight_decay": 0.1}),
]


def take_steps(case: StepCase, char: str) -> np.ndarray:
    """The weights after four steps whose gradients are clipped to half, by the optimiser's own rule on NumPy's arrays."""
    rng = np.random.default_rng(1)
    p = rng.standard_normal(1000).astype(char)
    optimizer = case.optimizer([mg.tensor(np.zeros(1), requires_grad=True)], **case.options)
    group = optimizer.param_groups[0]
    state: dict[str, Any] = {name: np.zeros_like(p) for name in optimizer.buffers(group)}
    for step in range(1, 5):
        g = rng.standard_normal(1000).astype(char)
        state["step"] = step
        optimizer.update(np, p, g * p.dtype.type(0.5), state, group)
    return p


def take_steps_by_kernel(case: StepCase, char: str, compiled: bool, device: str = "fake") -> np.ndarray:
    """The same by the optimiser on a device, its step a kernel, or part of a compiled function."""
    rng = np.random.default_rng(1)
    p = mg.tensor(rng.standard_normal(1000).astype(char), device=device, requires_grad=True)
    optimizer = case.optimizer([p], **case.options)

    def step(g: mg.Tensor) -> mg.Tensor:
        optimizer.zero_grad()
        loss = (p * g).sum()  # whose gradient is g
        loss.backward()
        optimizer.step(scale=0.5)
        return loss

    take = mg.compile(step) if compiled else step
    for _ in range(4):
        take(mg.tensor(rng.standard_normal(1000).astype(char), device=device))
    return p.numpy()
