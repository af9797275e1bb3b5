"""Random programs agree with PyTorch or are refused; `python -m benchmarks.programs` runs many more."""

from __future__ import annotations

import pytest
from support.program_generator import generate
from support.programs import Program, Step, judge, shrunk, without

pytestmark = pytest.mark.torch
COUNT, BATCH = 300, 25
MADE = "x1 = tensor(numbers(1, (2, 3), 'float64'), requires_grad=True)"
LEAF = Step(MADE, MADE, "leaf")
END = Step("score(v2, 3).backward()", "score(v2, 3).backward()", "derivative")


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_programs_agree_with_pytorch_or_are_refused(first: int) -> None:
    for seed in range(first, first + BATCH):
        program = generate(seed)
        verdict = judge(program)
        if verdict.outcome == "failed":
            small = shrunk(program)
            pytest.fail(f"program {seed}: {verdict.why}\n{small.code()}\n{judge(small).why}")


def test_the_same_number_gives_the_same_program() -> None:
    assert generate(7) == generate(7) != generate(8)


def test_a_wrong_gradient_is_found_and_shrunk_to_the_steps_that_it_needs() -> None:
    idle = Step("v3 = x1 + 1", "v3 = x1 + 1")
    wrong = Step("v2 = mg.sin(x1)", "v2 = torch.sin(x1).detach() + 0 * x1")
    program = Program((LEAF, idle, wrong, END))
    assert "x1.grad" in judge(program).why
    assert shrunk(program).steps == (LEAF, wrong, END)


def test_a_wrong_value_is_found() -> None:
    assert "v2 is" in judge(Program((LEAF, Step("v2 = x1 * 2", "v2 = x1 * 3"), END))).why


def test_a_refusal_without_a_reason_fails() -> None:
    refused = Step("v2 = x1.reshape((7,))", "v2 = x1.sum()")
    assert "refused without" in judge(Program((LEAF, refused, END))).why


def test_another_exception_than_minigrads_fails() -> None:
    assert "raised AttributeError" in judge(Program((LEAF, Step("v2 = x1.permute(1, 0)", "v2 = x1.T"), END))).why


def test_what_only_pytorch_refuses_fails_unless_it_is_listed() -> None:
    assert "PyTorch refuses" in judge(Program((LEAF, Step("v2 = x1 * 2", "v2 = x1.reshape(7)"), END))).why
    lines = "v2 = x1 * 2", "v2 *= x1", "score(v2, 3).backward()"
    steps = [Step(line, line, kind) for line, kind in zip(lines, ("op", "write", "derivative"))]
    assert judge(Program((LEAF, *steps))).outcome == "agreed"


def test_dropping_a_step_drops_what_needs_it() -> None:
    assert without((LEAF, Step("v2 = x1 * 2", "v2 = x1 * 2"), END), 0) == ()
