"""What an op says of itself to the compiler: the formula of one element, read and checked.

`add` has "a + b": every element by itself. `sum` has "out + a": a reduction, since it mentions its own result. `_take_along` has
"a[indices]": a gather along one axis.

A formula is Python's grammar for numbers, restricted to what stands here; its text never reaches the generated source, which is
written anew from the checked tree.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import axes_of
from .graph import Number, Step, Value, broadcast
from .whole import WHOLE

DTYPES = {"float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8", "bool": "b1"}  # and their names in the source
SHORT = {np.dtype(name): short for name, short in DTYPES.items()}
# Which functions a formula may call, and the kinds of dtype that they are for.
_OF_FLOATS = (
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh ceil cos cosh erf exp expm1 floor hypot log log10 log1p log2 normal_cdf power "
    "sigmoid sin sinh sqrt tan tanh trunc kept"
)
VOCABULARY = {**dict.fromkeys(_OF_FLOATS.split(), "f"), **dict.fromkeys(("abs", "maximum", "minimum", "sign"), "fi")}
_NUMBERS = {"inf", "nan"}
PLACES = {"element", "position"}  # the number of an element in its array, and along the axis that the op names
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.And: "&", ast.Or: "|", ast.UAdd: "+", ast.USub: "-", ast.Invert: "~",
}  # fmt: skip
_TERMS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Name, ast.Constant, ast.Subscript)
_NODES = (*_TERMS, *SIGNS, ast.Not, ast.Load)
_COUNTED = (ast.operator, ast.cmpop, ast.IfExp)  # additions, and what costs as much
COSTS = {"abs": 1, "maximum": 1, "minimum": 1, "sign": 2, "sqrt": 6, "floor": 1, "ceil": 1, "trunc": 1, "exp": 12}


class Reduction(NamedTuple):
    """How a total is made of elements."""

    function: str  # from the total so far and one more to the total, in minigrad.maths
    join: str  # from several totals to one, a method of arrays
    first: dict[str, Any]  # what a total begins with, by the kind of dtype; a bound of the integers if it is not there


REDUCTIONS = {
    "out + a": Reduction("plus", "sum", dict.fromkeys("bif", 0)),
    "out * a": Reduction("times", "prod", dict.fromkeys("bif", 1)),
    "maximum(out, a)": Reduction("maximum", "max", {"b": False, "f": -np.inf}),
    "minimum(out, a)": Reduction("minimum", "min", {"b": True, "f": np.inf}),
    "out or a": Reduction("maximum", "any", {"b": False}),
    "out and a": Reduction("minimum", "all", {"b": True}),
}


class NoLoweringError(Exception):
    """A step that the compiler leaves to the op itself; the text says why."""


@dataclass(frozen=True)
class Formula:
    """The checked formula of an op: its tree, what it mentions, and what kind of loop it needs."""

    tree: ast.expr
    names: frozenset[str]
    kind: str  # "elementwise", "reduction" or "gather"
    dtypes: str  # the kinds of dtype that it can be computed in
    cost: int  # of one element, in additions


@cache
def formula_of(text: str) -> Formula:
    """Read a formula; one that is made of anything else than numbers, names and known functions is refused."""
    tree = ast.parse(text, mode="eval").body
    nodes = list(ast.walk(tree))
    for node in nodes:
        if not isinstance(node, _NODES) or isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise NoLoweringError(f"the formula {text!r} has something else than numbers, names and functions in it")
        if isinstance(node, ast.Call) and (getattr(node.func, "id", "") not in VOCABULARY or node.keywords):
            raise NoLoweringError(f"the formula {text!r} calls a function that is not known")
        if isinstance(node, ast.Compare) and len(node.ops) != 1:
            raise NoLoweringError(f"the formula {text!r} compares more than two numbers at once")
    words = [node.id for node in nodes if isinstance(node, ast.Name)]
    called = [word for word in words if word in VOCABULARY]
    names = frozenset(words) - {*called, *_NUMBERS, "out"}
    of_floats = any(isinstance(node, ast.Div) for node in nodes) or not _NUMBERS.isdisjoint(words)
    dtypes = "f" if of_floats else min([VOCABULARY[f] for f in called], key=len, default="bif")
    cost = sum([COSTS.get(f, 20) for f in called])
    cost += sum([4 if isinstance(node, ast.Div) else isinstance(node, _COUNTED) for node in nodes])
    gathers = any(isinstance(node, ast.Subscript) for node in nodes)
    kind = "gather" if gathers else "reduction" if "out" in words else "elementwise"
    if kind == "reduction" and text not in REDUCTIONS:
        raise NoLoweringError(f"the formula {text!r} is no reduction; there are {', '.join(REDUCTIONS)}")
    return Formula(tree, names, kind, dtypes, cost)


def operands(step: Step) -> dict[str, Any]:
    """What the names in a step's formula stand for: Values, Numbers and plain numbers."""
    signature = step.op.signature
    given = {**signature.defaults, **step.attrs, **dict(zip(signature.inputs, step.inputs))}
    return {name: given.get(name) for name in sorted(formula_of(step.op.lowering).names - PLACES)}


def sample(x: Any) -> Any:
    """Something that NumPy's rules for dtypes treat as they would treat `x`."""
    return x.dtype if isinstance(x, Value) else (1.5 if x.kind is float else 1) if isinstance(x, Number) else x


def loop_kind(op: Any) -> str:
    """What kind of loop the formula of an op needs: elementwise, reduction or gather; empty for an op without formula."""
    return formula_of(op.lowering).kind if isinstance(op.lowering, str) else ""


def result_of(op: Any, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype that an elementwise op or a reduction gives for arrays, Values and numbers."""
    arrays = [x for x in inputs if hasattr(x, "shape")]
    if "shape" in attrs:
        return tuple(attrs["shape"]), arrays[0].dtype
    ones = [np.ones((1,) * x.ndim, x.dtype) if hasattr(x, "shape") else sample(x) for x in inputs]
    shape, dtype = broadcast([x.shape for x in arrays]), np.asarray(op.forward(np, *ones, **attrs)).dtype
    if loop_kind(op) == "reduction":
        axis, keepdims = attrs.get("axis"), attrs.get("keepdims")
        gone = range(len(shape)) if axis is None else [i % len(shape) for i in axes_of(axis)]
        shape = tuple([1 if i in gone else n for i, n in enumerate(shape) if keepdims or i not in gone])
    return shape, dtype


def work_dtype(step: Step) -> np.dtype:
    """The dtype that the elements of a step are computed in."""
    if step.out.dtype != np.bool_:
        return step.out.dtype
    given = [x for name, x in operands(step).items() if name != "condition" and x is not None]
    return np.result_type(*map(sample, given)) if given else np.dtype(bool)


def formula(step: Step) -> Formula:
    """The formula of a step that can be compiled; else NoLoweringError says why it cannot."""
    op = step.op
    if not isinstance(op.lowering, str) or op.lowering == WHOLE:
        raise NoLoweringError(f"{op.name} has no formula for one element")
    found = formula_of(op.lowering)
    given = operands(step)
    for x in (*given.values(), step.out):
        if isinstance(x, Value):
            if x.dtype not in SHORT or not x.size:
                raise NoLoweringError(f"{op.name} of {x.dtype}{list(x.shape)} is left to NumPy")
        elif not isinstance(x, (Number, bool, int, float, np.bool_, np.integer, np.floating)):
            raise NoLoweringError(f"{op.name}: {type(x).__name__} is no number")
    work = work_dtype(step)
    if work not in SHORT or work.kind not in found.dtypes:
        raise NoLoweringError(f"{op.name} of {work} is left to NumPy")
    shape = getattr(given.get("indices"), "shape", ())
    if "indices" in given and (len(shape) != step.out.ndim or shape[step.attrs["axis"]] != 1):
        raise NoLoweringError(f"{op.name} with more than one index for each row")
    return found
