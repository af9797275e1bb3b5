"""Programs that run in minigrad and in PyTorch, and the judgement whether both agree.

A program is a list of steps, each a line of code for either framework. The steps run side by side. PyTorch runs twice:
as it is, and under `Copying`, where nothing that a backward needs can be overwritten. The second gives the right
gradient where PyTorch itself refuses. minigrad must give the same values and gradients, or refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import kernels
from minigrad.errors import MinigradError

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of random programs, is not installed")
from torch.nn import functional as torch_functional  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

torch.set_num_threads(1)
NAME = re.compile(r"\b(?:[xvgkw]\d+|total)\b")
TOLERANCES = {"float64": 1e-7, "float32": 2e-3, "float16": 6e-2}
DTYPES = {
    "float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "int64": torch.int64, "bool": torch.bool,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One line of a program, for minigrad and for PyTorch. `kind` tells what the judge must know of it."""

    ours: str
    theirs: str
    kind: str = "op"  # op, leaf, view, write, hook, graph (what changes a graph), derivative

    @property
    def defines(self) -> set[str]:
        """The names that this line binds."""
        left, equals, _ = self.ours.partition(" = ")
        return set(NAME.findall(left)) if equals and "[" not in left and "(" not in left and "." not in left else set()

    @property
    def uses(self) -> set[str]:
        """The names that must exist before this line."""
        left, equals, right = self.ours.partition(" = ")
        return set(NAME.findall(right if self.defines else self.ours))


@dataclass(frozen=True)
class Program:
    """The steps, and the kernels that minigrad's fused operations use."""

    steps: tuple[Step, ...]
    kernels: str | None = None

    def code(self, framework: str = "both") -> str:
        """The program as it could be typed; `framework` is "ours", "theirs" or "both"."""
        if framework != "both":
            return "\n".join(getattr(step, framework) for step in self.steps)
        lines = [f"# kernels: {self.kernels or 'by size'}"]
        for step in self.steps:
            lines.append(step.ours if step.ours == step.theirs else f"{step.ours}  # torch: {step.theirs}")
        return "\n".join(lines)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is written in place and no hook or graph is treated specially, so that nothing may be refused."""
        *first, last = [step.kind for step in self.steps]
        return set(first) <= {"op", "leaf", "view"} and last != "write"

    @property
    def tolerance(self) -> float:
        """How far results may be apart, as a part of the largest."""
        text = self.code("ours")
        return max(tolerance for name, tolerance in TOLERANCES.items() if name in text or name == "float64")


@lru_cache(1000)
def numbers(seed: int, shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    """Numbers between -2 and 2, some of them at the kinks of functions; whole numbers from 0 to 3; or truths."""
    rng = np.random.default_rng(seed)
    if dtype == "int64":
        return rng.integers(0, 4, shape)
    values = np.where(rng.random(shape) < 0.1, rng.choice([0.0, 1.0, -1.0, 0.5], shape), rng.uniform(-2, 2, shape))
    return values > 0 if dtype == "bool" else values.astype(dtype)


def our_names() -> dict[str, Any]:
    """What the lines for minigrad refer to."""

    def score(value: Any, seed: int) -> Any:
        return (value.astype("float64") * mg.tensor(numbers(seed, value.shape))).sum()

    names: dict[str, Any] = {"mg": mg, "tensor": mg.tensor, "no_grad": mg.no_grad, "grad": mg.autograd.grad}
    return {**names, **_shared(), "F": mg.nn.functional, "swiglu": kernels.swiglu, "score": score}


def their_names() -> dict[str, Any]:
    """What the lines for PyTorch refer to."""

    def score(value: Any, seed: int) -> Any:
        return (value.to(torch.float64) * torch.tensor(numbers(seed, tuple(value.shape)))).sum()

    def grad(outputs: Any, inputs: Any, **options: Any) -> Any:
        found = torch.autograd.grad(outputs, inputs, **options)
        return [None if g is None else g.clone() for g in found]  # those of PyTorch may share memory

    def swiglu(x: Any) -> Any:
        gate, up = x.chunk(2, -1)
        return torch_functional.silu(gate) * up

    def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
        return torch.softmax(scores, -1) @ v

    names: dict[str, Any] = {"torch": torch, "tensor": torch.tensor, "no_grad": torch.no_grad, "grad": grad}
    own = {"F": torch_functional, "swiglu": swiglu, "attention": attention, "score": score, **DTYPES}
    return {**names, **_shared(), **own}


def _shared() -> dict[str, Any]:
    seen: dict[str, list[np.ndarray]] = {}

    def see(name: str) -> Callable[[Any], None]:
        """A hook that keeps the gradients of a tensor, in order; that of hooks of different tensors is nobody's promise."""
        return lambda g: seen.setdefault(name, []).append(np.array(g.tolist()))

    return {"np": np, "numbers": numbers, "seen": seen, "see": see}


VIEWS = {
    "__getitem__", "view", "transpose", "permute", "movedim", "squeeze", "unsqueeze", "expand", "split", "unbind", "chunk",
    "detach", "diagonal", "reshape", "flatten", "swapaxes",
}  # fmt: skip
UNTOUCHED = {
    "tensor", "__get__", "__set__", "backward", "grad", "register_hook", "retain_grad", "requires_grad_", "clone", "__setitem__",
    "dropout",
}  # fmt: skip
IN_PLACE = {"add_": torch.add, "sub_": torch.sub, "mul_": torch.mul, "div_": torch.div, "pow_": torch.pow}


class Copying(TorchFunctionMode):
    """Inside, each function gets copies and returns a copy, so that no write can reach what a backward needs."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        if name in VIEWS | UNTOUCHED:
            if name == "__setitem__":
                args = (args[0], args[1], self._copied(args[2]))
            return function(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            if name in IN_PLACE:
                target, other = args
                return target.copy_(IN_PLACE[name](target.clone(), self._copied(other)))
            return self._copied(function(*self._copied(args), **self._copied(kwargs)))

    def _copied(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.clone()
        if isinstance(value, dict):
            return {key: self._copied(item) for key, item in value.items()}
        return type(value)(map(self._copied, value)) if type(value) in (list, tuple) else value


# Patterns of what PyTorch refuses and minigrad does not, with the row of docs/differences.md that says so.
ALLOWED_HERE = {
    "one of the variables needed for gradient computation has been modified by an inplace": "a *= b with b in the graph",
}
FUSED = "attention|cross_entropy|dropout|embedding|gelu|layer_norm|linear|linear_gelu|masked_softmax|rms_norm|silu|softmax|swiglu"
# Patterns of what minigrad refuses and PyTorch does not, with the row of docs/differences.md that says so.
REFUSED_HERE = {
    "shares memory with a tensor that was written to in place": "writing through a view of a tensor in the graph",
    "memory was already written through another tensor": "writing through a view of a tensor in the graph",
    "a leaf that requires a gradient, or a view of one": "writing into a reshape of a leaf that had to copy",
    rf"({FUSED}|matmul): its backward needs .* overwritten": "writing into what a fused op or matmul was given",
    "was freed by an earlier backward": "a second backward through ops that keep nothing",
    "is a read-only view": "writing into what broadcast_to gives",
}


@dataclass(frozen=True)
class Verdict:
    """What came out: agreed, both refused, refused (by minigrad only), listed (right here, refused by PyTorch), layout, failed."""

    outcome: str
    why: str = ""
    at: int = 0  # the step that ended the program

    @property
    def reason(self) -> str:
        """Why, without the names of ops and operands: the row of docs/differences.md if there is one."""
        rows = REFUSED_HERE if self.outcome == "refused" else {}
        listed = next((row for pattern, row in rows.items() if re.search(pattern, self.why)), None)
        return listed or re.sub(r"^.*?: |'\w+'", "", self.why).partition(" after ")[0].strip()


@lru_cache(1000)
def _compiled(line: str) -> Any:
    return compile(line, "<program>", "exec")


def execute(line: str, names: dict[str, Any]) -> Exception | None:
    """Run one line; what it raised, or None."""
    try:
        exec(_compiled(line), names)
    except Exception as error:
        return error
    return None


def judge(program: Program) -> Verdict:
    """Run a program in both frameworks, step by step, until it ends or one of them refuses."""
    with np.errstate(all="ignore"), kernels.use(program.kernels):
        return _judge(program)


def _judge(program: Program) -> Verdict:
    ours, plain, copying = our_names(), their_names(), their_names()
    right_here = ""  # the row of docs/differences.md, once PyTorch refused what is right here
    hooked = any(step.kind == "hook" for step in program.steps)
    for at, step in enumerate(program.steps):
        mine = execute(step.ours, ours)
        if mine is not None and not isinstance(mine, MinigradError):
            return Verdict("failed", f"raised {type(mine).__name__}: {mine}", at)
        if mine is not None:
            only = hooked and step.kind == "derivative"  # a hook may have written before the refusal
            if wrong := differences(ours, copying if right_here else plain, program.tolerance, gradients_only=only):
                return Verdict("failed", f"refused ({_kind(mine)}), but before that {wrong}", at)
        theirs = None if right_here else execute(step.theirs, plain)
        if mine is not None:
            return _refused(program, mine, at) if theirs is None else Verdict("both refused", _kind(mine), at)
        if theirs is not None:
            right_here = _listed(theirs)
            if not right_here or step.kind != "derivative":
                outcome = "listed" if right_here else "failed"
                return Verdict(outcome, f"PyTorch refuses: {_first_line(theirs)}", at)
        with Copying():
            error = execute(step.theirs, copying)
        if error is not None:
            return Verdict("failed", f"the oracle raised {type(error).__name__}: {error}", at)
        _refresh(plain)
        if step.kind == "view" and _shares(ours) != _shares(plain):
            copied = step.ours.endswith(".detach()")
            row = "detach() of a tensor that was written to inside the graph" if copied else "a reshape that copies"
            return Verdict("listed" if copied else "layout", row, at)
    last = len(program.steps) - 1
    if wrong := differences(ours, copying if right_here else plain, program.tolerance):
        if _is_dropped_hook(program, wrong):
            return Verdict("listed", "a hook on a view of a leaf that is written to", last)
        return Verdict("failed", wrong, last)
    # A hook on a copy is not met again where a second derivative goes through what the copy was made of.
    if not right_here and not hooked and (wrong := differences(plain, copying, program.tolerance)):
        return Verdict("failed", f"PyTorch and the oracle differ: {wrong}", last)
    return Verdict("listed", right_here, last) if right_here else Verdict("agreed", "", last)


def _refresh(names: dict[str, Any]) -> None:
    """Let PyTorch tell its views of writes into their bases: until their grad_fn is asked for, some are taken for leaves."""
    for value in tensors(names).values():
        value.grad_fn  # noqa: B018


def _is_dropped_hook(program: Program, wrong: str) -> bool:
    """Whether PyTorch forgot a hook on a view, as it does when the leaf behind it is written to inside no_grad()."""
    counts = re.match(r"hooks of \w+ ran (\d+) times, expected (\d+)$", wrong)
    written = any(step.ours.startswith("with no_grad():") for step in program.steps)
    return counts is not None and written and int(counts[1]) > int(counts[2])


def _refused(program: Program, error: Exception, at: int) -> Verdict:
    if program.is_plain:
        return Verdict("failed", f"refused without any write, hook or second backward: {error}", at)
    converted = "overwritten" in str(error) and ".to(" in program.code(
        "theirs"
    )  # PyTorch keeps what it was converted to
    constant = "no graph" in str(error) and re.match(
        r"(score\()?g\d", program.steps[at].ours
    )  # a derivative of relu, say
    # PyTorch was given a copy of an operand that shares memory with the tensor that is written to.
    shared = "overwritten" in str(error) and re.search(r"[-+*/]= \w+\.clone\(\)", program.code("theirs"))
    known_here = any(re.search(known, str(error)) for known in REFUSED_HERE)
    if not converted and not constant and not shared and not known_here:
        return Verdict("failed", f"refused for a reason that is not listed: {error}", at)
    return Verdict("refused", _kind(error), at)


def _listed(error: Exception) -> str:
    return next((row for known, row in ALLOWED_HERE.items() if re.search(known, str(error))), "")


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]


def _kind(error: Exception) -> str:
    return re.sub(r"\(.*?\)|\d+", "…", _first_line(error))


def _shares(names: dict[str, Any]) -> list[tuple[str, str]]:
    """Which of the named tensors share memory."""
    arrays = {n: v.detach().numpy() if isinstance(v, torch.Tensor) else v.data for n, v in tensors(names).items()}
    found = sorted((n, a) for n, a in arrays.items() if a.size)
    return [(n, m) for i, (n, a) in enumerate(found) for m, b in found[:i] if np.may_share_memory(a, b)]


def tensors(names: dict[str, Any]) -> dict[str, Any]:
    """The named tensors of a program."""
    return {n: v for n, v in names.items() if NAME.fullmatch(n) and isinstance(v, (mg.Tensor, torch.Tensor))}


def differences(ours: dict[str, Any], theirs: dict[str, Any], tolerance: float, gradients_only: bool = False) -> str:
    """How the values, the gradients and what hooks saw differ; "" if they do not."""
    mine, right = tensors(ours), tensors(theirs)
    for name in sorted(right):
        if name not in mine:
            return f"{name} is missing"
        if not gradients_only and (wrong := _apart(_plain(mine[name]), _plain(right[name]), tolerance)):
            return f"{name} is {wrong}"
    for name in sorted(right):
        a, b = _gradient(mine[name]), _gradient(right[name])
        if a is None and b is None:
            continue
        a = np.zeros_like(b) if a is None else a
        b = np.zeros_like(a) if b is None else b
        if wrong := _apart(a, b, tolerance):
            return f"{name}.grad is {wrong}"
    if gradients_only:
        return ""
    for name in ours["seen"] | theirs["seen"]:
        mine, right = ours["seen"].get(name, []), theirs["seen"].get(name, [])
        if len(mine) != len(right):
            return f"hooks of {name} ran {len(mine)} times, expected {len(right)}"
        for a, b in zip(mine, right):
            if wrong := _apart(a, b, tolerance):
                return f"a hook of {name} saw {wrong}"
    return ""


def _plain(value: Any) -> np.ndarray:
    return value.detach().numpy(force=True) if isinstance(value, torch.Tensor) else value.detach().numpy()


def _gradient(value: Any) -> np.ndarray | None:
    if isinstance(value, torch.Tensor) and not (value.is_leaf or value.retains_grad):
        return None  # PyTorch warns
    return None if value.grad is None else _plain(value.grad)


def _apart(a: np.ndarray, b: np.ndarray, tolerance: float) -> str:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.shape} {a.dtype}, expected {b.shape} {b.dtype}"
    if a.dtype.kind != "f":
        return "" if np.array_equal(a, b) else f"{a.tolist()}, expected {b.tolist()}"
    finite = np.isfinite(b)
    scale = max(1.0, float(np.abs(b[finite]).max(initial=0)))
    if np.allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=True):
        return ""
    wide = np.asarray(a, "float64"), np.asarray(b, "float64")
    return "{}, expected {}".format(*[np.round(values, 6).tolist() for values in wide])


def shrunk(program: Program, fails: Callable[[Program], bool] | None = None) -> Program:
    """The program without the steps that its failure does not need."""
    fails = fails or (lambda candidate: judge(candidate).outcome == "failed")
    again = True
    while again:
        again = False
        for i in reversed(range(len(program.steps))):
            candidate = Program(without(program.steps, i), program.kernels)
            if fails(candidate):
                program, again = candidate, True
                break
    if program.kernels is not None and fails(Program(program.steps)):
        program = Program(program.steps)
    return program


def without(steps: tuple[Step, ...], dropped: int) -> tuple[Step, ...]:
    """The steps but for one, and but for those that need what it defines."""
    known: set[str] = set()
    kept = []
    for i, step in enumerate(steps):
        if i != dropped and step.uses <= known:
            kept.append(step)
            known |= step.defines
    return tuple(kept)
