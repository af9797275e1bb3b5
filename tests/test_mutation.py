"""The proof that the registry's tests bite: every backward rule is broken in many small ways, and the checker must notice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import test_kinks
from support.mutants import Mutant, controls_of, mutants_of
from support.samples import SAMPLES, Sample
from test_registry import BUILT_ELSEWHERE, as_function, is_differentiable

from minigrad.check import gradcheck
from minigrad.engine.op import OPS, Op
from minigrad.engine.tensor import wrap
from minigrad.errors import MinigradError

pytestmark = pytest.mark.usefixtures("ordinary_ops")
FLAT = {
    f"{op}.a: {change}": "the gradient is 0 everywhere, and 0 is what this leaves"
    for op in ("sign", "floor", "ceil", "trunc", "round", "imag", "angle")
    for change in (
        "result: scale by 1.01",
        "result: flip the sign",
        "result: drop",
        "g: scale by 1.1",
        "g: drop",
        "g: hide from the second derivative",
    )
}
ONLY_COMPARED = {
    f"{rule}: {name}: hide from the second derivative": "the rule only compares or rounds this value, and that has no derivative"
    for rule, names in {
        "abs.a": "a",
        "maximum.a": "a b",
        "maximum.b": "a b",
        "minimum.a": "a b",
        "minimum.b": "a b",
        "clip.a": "a min max",
        "clip.min": "a min max",
        "clip.max": "a min max",
        "relu.a": "out",
        "leaky_relu.a": "a",
        "hardtanh.a": "a",
        "max.a": "a out",
        "min.a": "a out",
        "power.b": "b",
        "remainder.b": "a b",
        "where.a": "condition",
        "where.b": "condition",
        "_extreme_along.inputs": "a values out",
        "fmod.b": "a b",
        "fmax.a": "a b",
        "fmax.b": "a b",
        "fmin.a": "a b",
        "fmin.b": "a b",
        "copysign.a": "a b",
        "ldexp.a": "b",
        "frexp.a": "out[0] out[1]",
        "_largest.inputs": "out[0] out[1]",
        "_spread.a": "winner",
        "_pick.a": "winner",
        "xlogy.a": "a",
        "xlog1py.a": "a",
    }.items()
    for name in names.split()
}
SIGN_ONLY = {
    f"{change}: scale by 1.1": "only the sign of this value matters, which a positive factor keeps"
    for change in (
        "abs.a: a",
        "relu.a: out",
        "leaky_relu.a: a",
        "power.b: b",
        "copysign.a: a",
        "copysign.a: b",
        "xlogy.a: a",
        "xlog1py.a: a",
    )  # fmt: skip
}
TIED = ("maximum.a", "maximum.b", "minimum.a", "minimum.b")
WINNERS = "where(winners, _keep(g, a.shape, axis), 0) / sum(winners, axis=axis, keepdims=True)"
AT_KINKS = {  # these are caught by test_kinks.py, which a test below makes sure of
    **{f"{rule}: drop the second factor in `g / 2`": "it acts only where both are equal" for rule in TIED},
    **{
        f"{name}.a: drop the second factor in `{WINNERS}`": "it acts only where the extreme is reached twice"
        for name in ("max", "min")
    },
    "_extreme_along.inputs: drop the second factor in `g / where(winners == 0, 1, winners)`": "it acts only where the extreme is reached twice",
    **{
        f"arctan2.{name}: _squared_radius: drop the second term in `total + (total == 0)`": "it acts only at the origin"
        for name in "ab"
    },
    "logsumexp.a: flip the sign in `-math.inf`": "it acts only where every element is -inf, which no finite difference reaches",
    **{
        f"mean.a: drop the second factor in `{part}`": "this is how float16 is divided, which no finite difference reaches"
        for part in ("g * (1 / count)", "1 / count")
    },
    **{
        f"{name}.a: a: drop": f"it acts only where {where}, and the slope is infinite"
        for name, where in (("xlogy", "b is 0 and a is not"), ("xlog1py", "b is -1 and a is not 0"))
    },
    "power.b: b: drop": "it acts only where the base is 0 and b is negative, and the slope is infinite",
    "copysign.a: swap a and b": "the product of two signs is the same the other way round, but at 0",
    "det.a: out: drop": "the way by cofactors is right for every matrix, but is not taken for large ones",
    "cholesky.a: flip the sign in `-1` (3)": "it only makes the gradient symmetric, and the samples vary symmetric matrices only",
}
ANY_NUMBER = {
    f"arctan2.{name}: _squared_radius: {change} the second term in `total + (total == 0)`": "at the origin 0 is divided by it, whatever it is"
    for name in "ab"
    for change in ("flip", "double")
}
UNUSED = {
    f"_slogdet.a: g[0]: {change}": "the sign of a determinant has gradient 0, so the rule does not look at this"
    for change in ("scale by 1.1", "drop", "hide from the second derivative")
} | {
    f"{part}: {change}": "the rule does not look at this: places have no gradient, and the values are not needed"
    for part in ("frexp.a: g[1]", "frexp.a: out[0]", "_largest.inputs: g[1]", "_largest.inputs: out[0]")
    for change in ("scale by 1.1", "drop", "hide from the second derivative")
}
ZERO_TERM = {
    f"det.a: _cofactors: {change} the first term in `a * 0 + 1`": "the term is 0 and only gives the number 1 a shape"
    for change in ("drop", "double")
}
EQUIVALENT = (
    FLAT
    | ONLY_COMPARED
    | SIGN_ONLY
    | AT_KINKS
    | ANY_NUMBER
    | UNUSED
    | ZERO_TERM
    | {
        "copysign.a: b: drop": "what is left, -0.0 or 0.0, has the sign of b, which is all that matters",
        "_fold.a: drop the first term in `len(a_shape) - count`": "a slice that begins at -n is one that begins at the length - n",
        "_resample.a: transposed: drop the second term in `np.cumsum(counts) - counts`": "places are filled from the last one, in any order",
    }
)


DIFFERENTIABLE = [op for name, op in OPS.items() if op.mask and name not in BUILT_ELSEWHERE]


def samples_of(op: Op) -> list[Sample]:
    """The samples with derivatives, small ones first."""
    return sorted(
        [s for s in SAMPLES[op.name] if is_differentiable(op.name, s)],
        key=lambda s: sum(leaf.size for leaf in s.leaves),
    )


def survives(mutant: Mutant, samples: list[Sample], order: int) -> bool:
    """Whether the checker finds nothing wrong on any sample; a broken rule that raises an error is noticed, too."""
    with mutant.active(), np.errstate(all="ignore"):
        for sample in samples:
            try:
                gradcheck(as_function(mutant.op.name, sample), [wrap(leaf) for leaf in sample.leaves], order=order)
            except Exception:
                return False
    return True


def test_the_checker_catches_at_least_99_percent_of_broken_rules(capsys: pytest.CaptureFixture[str]) -> None:
    caught: list[str] = []
    survivors: list[str] = []
    for op in DIFFERENTIABLE:
        samples = samples_of(op)
        for mutant in mutants_of(op):
            alive = survives(mutant, samples, order=1) and survives(mutant, samples, order=2)
            (survivors if alive else caught).append(str(mutant))
    escaped = [name for name in survivors if name not in EQUIVALENT]
    share = len(caught) / (len(caught) + len(escaped))
    report = [
        f"{len(caught)} of {len(caught) + len(escaped)} mutants caught ({share:.2%}); {len(survivors) - len(escaped)} more cannot be, since:"
    ]
    reasons = {name: EQUIVALENT.get(name, "escaped: write a sample that catches it") for name in survivors}
    for reason in dict.fromkeys(reasons.values()):
        report += [f"  {reason}:", *(f"    {name}" for name in survivors if reasons[name] == reason)]
    with capsys.disabled():
        print("", *report, sep="\n")
    assert len(caught) > 1000, "too few mutants to prove anything"
    assert share >= 0.99, "\n".join(escaped)
    assert set(EQUIVALENT) <= set(survivors), (
        f"caught after all, or rewritten, so mend the list: {sorted(set(EQUIVALENT) - set(survivors))}"
    )


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=[op.name for op in DIFFERENTIABLE])
def test_rules_that_are_rebuilt_but_not_broken_survive(op: Op) -> None:
    for control in controls_of(op):
        assert survives(control, samples_of(op)[:3], order=1), str(control)


@pytest.mark.parametrize("name", sorted(AT_KINKS))
def test_what_acts_only_at_kinks_is_caught_by_their_own_tests(name: str) -> None:
    op = OPS[name.partition(".")[0]]
    mutant = next((mutant for mutant in mutants_of(op) if str(mutant) == name), None)
    assert mutant, "there is no such mutant any more: the rule was rewritten, so mend the list"
    with mutant.active():
        assert not all(passes(check) for check in test_kinks.CHECKS)
    assert all(passes(check) for check in test_kinks.CHECKS)


def passes(check: Callable[[], None]) -> bool:
    try:
        check()
    except (AssertionError, MinigradError):
        return False
    return True


def test_the_rules_are_whole_again_afterwards() -> None:
    op, sample = OPS["multiply"], SAMPLES["multiply"][0]
    before = op.rules
    for mutant in mutants_of(op):
        with mutant.active():
            assert op.rules is not before
    assert op.rules is before and gradcheck(as_function("multiply", sample), [wrap(leaf) for leaf in sample.leaves])
