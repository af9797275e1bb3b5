"""Graphs for tests of the compiler, made by hand from ops, and comparisons of what a plan computes with the ops themselves."""

import numpy as np

from minigrad.compile.plan import Plan
from minigrad.engine.op import OPS
from minigrad.ir.graph import Graph, Step, Value


class Build:
    """A graph under construction: `b.exp(x)` adds a step. What each step makes is computed at once, for its shape and dtype."""

    def __init__(self, *arrays):
        self.arrays = list(arrays)
        self.inputs = [Value(a.shape, a.dtype) for a in arrays]
        self.known = dict(zip(self.inputs, arrays))
        self.steps, self.constants = [], {}

    def constant(self, array):
        value = Value(array.shape, array.dtype)
        self.constants[value] = self.known[value] = array
        return value

    def __getattr__(self, name):
        op = OPS[name]

        def call(*inputs, **attrs):
            given = [self.known[x] if isinstance(x, Value) else x for x in inputs]
            bound = {k: self.known[x] if isinstance(x, Value) else x for k, x in attrs.items()}
            with np.errstate(all="ignore"):
                made = np.asarray(op.forward(np, *given, **bound))
            out = Value(made.shape, made.dtype)
            self.known[out] = made
            self.steps.append(Step(op, inputs, attrs, (out,)))
            return out

        return call

    def graph(self, *outputs):
        return Graph(self.inputs, self.steps, list(outputs), self.constants)

    def check(self, *outputs, rtol=None):
        """Compile, run, and compare with what NumPy computed on the way; returns the plan."""
        plan = Plan(self.graph(*outputs))
        before = [a.copy() for a in self.arrays]
        made = plan.run(self.arrays)
        for out, array in zip(outputs, made):
            close(array, self.known[out], rtol)
        for a, b in zip(self.arrays, before):
            np.testing.assert_array_equal(a, b)
        assert not any(np.shares_memory(m, a) for m in made for a in self.arrays)
        return plan


def close(made, expected, rtol=None):
    """The same shape, dtype, infinities and NaN, and numbers that differ by rounding alone."""
    assert made.shape == expected.shape and made.dtype == expected.dtype
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(made, expected)
        return
    single = expected.dtype == np.float32
    rtol = rtol or (3e-6 if single else 1e-12)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(
        made, expected, rtol=rtol, atol=rtol * 1e-2 * min(scale, 1e30) + (2e-38 if single else 0)
    )
