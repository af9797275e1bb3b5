"""Broken variants of backward rules: scaled, negated and dropped results and terms, scaled, dropped and swapped arguments.

A rule is broken from outside, by changing what goes into it or comes out of it, and from inside, by rewriting one
term of its source. The rewritten source is compiled to a code object that replaces the rule's own.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

from minigrad.engine.op import Op
from minigrad.engine.tensor import Tensor
from minigrad.ops.elementwise.arithmetic import logical_not

Rule = Callable[..., Any]
OUTPUTS = {"_svd": 3}  # how many outputs an op has that has more than two


@dataclass(frozen=True)
class Mutant:
    """One way to break the rule of one input of an op (of all inputs, where they share a rule)."""

    op: Op
    input: str
    change: str
    function: Rule  # the broken rule, or the broken helper of the rule
    helper: str = ""  # the name of that helper

    def __str__(self) -> str:
        return f"{self.op.name}.{self.input}: {self.change}"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside, the op has the broken rule."""
        op, space = self.op, self.function.__globals__ if self.helper else {}
        before = op.rules, op.joint, space.get(self.helper)
        if self.helper:
            space[self.helper] = self.function
        elif op.joint is not None:
            op.joint = self.function
        else:
            op.rules = {**op.rules, self.input: self.function}
        op.plans.clear()
        try:
            yield
        finally:
            op.rules, op.joint = before[:2]
            if self.helper:
                space[self.helper] = before[2]
            op.plans.clear()


def mutants_of(op: Op) -> Iterator[Mutant]:
    for name, rule in {"inputs": op.joint}.items() if op.joint else op.rules.items():
        for change, function in itertools.chain(_outside(op, rule), _inside(rule)):
            yield Mutant(op, name, change, function)
        for helper, source in _helpers(rule).items():
            for change, function in _inside(source):
                yield Mutant(op, name, f"{helper}: {change}", function, helper)


def controls_of(op: Op) -> Iterator[Mutant]:
    """Rules that went through the same machinery, unharmed: whatever finds them wrong finds fault with the machinery."""
    for name, rule in {"inputs": op.joint}.items() if op.joint else op.rules.items():
        yield Mutant(op, name, "result unchanged", _after(rule, 1, 0))
        for position in range(len(inspect.signature(rule).parameters)):
            yield Mutant(op, name, f"argument {position} unchanged", _before(rule, position, None, lambda value: value))
        for helper, function in {"": rule, **_helpers(rule)}.items():
            tree = _tree_of(function)
            if tree is not None:
                yield Mutant(op, name, f"{helper} compiled again", _compiled(tree, function), helper)


def _outside(op: Op, rule: Rule) -> Iterator[tuple[str, Rule]]:
    for change, (factor, offset) in {
        "scale by 1.01": (1.01, 0),
        "flip the sign": (-1, 0),
        "drop": (0, 0),
        "add 0.01": (1, 0.01),
    }.items():
        yield f"result: {change}", _after(rule, factor, offset)
    names = list(inspect.signature(rule).parameters)
    values = [name for name in names if name in ("g", "out", *op.signature.inputs)]
    several = {
        name: range(OUTPUTS.get(op.name, 2)) if op.several and name in ("g", "out") else (None,) for name in values
    }
    for name in values:
        for part in several[name]:
            label = name if part is None else f"{name}[{part}]"
            changes = {"scale by 1.1": _scale, "drop": _drop, "hide from the second derivative": _hide}
            for change, alter in changes.items():
                yield f"{label}: {change}", _before(rule, names.index(name), part, alter)
    for first, second in itertools.combinations([name for name in values if name != "g"], 2):
        yield f"swap {first} and {second}", _swapped(rule, names.index(first), names.index(second))


def _after(rule: Rule, factor: float, offset: float) -> Rule:
    @wraps(rule)
    def broken(*args: Any) -> Any:
        result = rule(*args)
        if isinstance(result, (list, tuple)):
            return [part if part is None else part * factor + offset for part in result]
        return result * factor + offset

    return broken


def _before(rule: Rule, position: int, part: int | None, alter: Callable[[Any], Any]) -> Rule:
    """The rule with one of its arguments, or one element of a tuple of them, altered."""

    @wraps(rule)
    def broken(*args: Any) -> Any:
        changed = list(args)
        value = changed[position]
        if isinstance(value, (tuple, list)):
            changed[position] = tuple(alter(v) if part in (None, i) else v for i, v in enumerate(value))
        else:
            changed[position] = alter(value)
        return rule(*changed)

    return broken


def _scale(value: Any) -> Any:
    if hasattr(value, "dtype") and value.dtype.kind == "b":
        return logical_not(value)
    return value if value is None else value * 1.1


def _drop(value: Any) -> Any:
    return value if value is None else value * 0


def _hide(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _swapped(rule: Rule, first: int, second: int) -> Rule:
    @wraps(rule)
    def broken(*args: Any) -> Any:
        changed = list(args)
        changed[first], changed[second] = args[second], args[first]
        return rule(*changed)

    return broken


def _inside(function: Rule) -> Iterator[tuple[str, Rule]]:
    """The function with one term of its source dropped, doubled or of the other sign."""
    tree = _tree_of(function)
    seen: Counter[str] = Counter()
    for index, node in enumerate(ast.walk(tree) if tree is not None else ()):
        for change, rewrite in _rewrites(node):
            broken = copy.deepcopy(tree)
            target = next(itertools.islice(ast.walk(broken), index, None))
            label = f"{change} in `{ast.unparse(node)}`"
            seen[label] += 1
            _replace(broken, target, rewrite(target))
            yield label if seen[label] == 1 else f"{label} ({seen[label]})", _compiled(broken, function)


def _compiled(tree: ast.AST, original: Rule) -> Rule:
    return types.FunctionType(
        _code_of(tree, original.__code__.co_filename), original.__globals__, original.__name__, original.__defaults__
    )


def _rewrites(node: ast.AST) -> list[tuple[str, Callable[[Any], ast.expr]]]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [("flip the sign", lambda n: n.operand)]
    if not isinstance(node, ast.BinOp):
        return []
    if isinstance(node.op, (ast.Mult, ast.Div)) and not isinstance(node.left, ast.Tuple):
        return [("drop the second factor", lambda n: n.left)]
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return []
    minus = isinstance(node.op, ast.Sub)
    return [
        ("drop the first term", lambda n: ast.UnaryOp(ast.USub(), n.right) if minus else n.right),
        ("drop the second term", lambda n: n.left),
        ("flip the second term", lambda n: ast.BinOp(n.left, ast.Add() if minus else ast.Sub(), n.right)),
        ("double the first term", lambda n: ast.BinOp(ast.BinOp(ast.Constant(2), ast.Mult(), n.left), n.op, n.right)),
        ("double the second term", lambda n: ast.BinOp(n.left, n.op, ast.BinOp(ast.Constant(2), ast.Mult(), n.right))),
    ]


def _replace(tree: ast.AST, target: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(item is target for item in value):
                setattr(parent, field, [new if item is target else item for item in value])
    ast.fix_missing_locations(tree)


@cache
def _parsed(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def _tree_of(function: Rule) -> ast.AST | None:
    """The lambda or definition in the source that compiles to the function's code; None for a closure, which cannot be compiled alone."""
    code = function.__code__
    if code.co_freevars:
        return None
    for node in ast.walk(_parsed(code.co_filename)):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            if start == code.co_firstlineno and _shape(_code_of(node, code.co_filename)) == _shape(code):
                return node
    raise AssertionError(f"{code.co_filename}:{code.co_firstlineno} is not what was imported: was it edited meanwhile?")


def _shape(code: types.CodeType) -> tuple[Any, ...]:
    return (
        code.co_code,
        code.co_names,
        code.co_varnames,
        [c for c in code.co_consts if not isinstance(c, types.CodeType)],
    )


def _code_of(node: Any, path: str) -> types.CodeType:
    """The code of one lambda or definition of a file, compiled beside the imports of that file, which change how calls are compiled."""
    imports = [statement for statement in _parsed(path).body if isinstance(statement, (ast.Import, ast.ImportFrom))]
    if isinstance(node, ast.Lambda):
        body: ast.stmt = ast.Expr(node)
    else:
        body = ast.FunctionDef(**{**dict(ast.iter_fields(node)), "decorator_list": []})
    module = ast.fix_missing_locations(ast.Module([*imports, ast.copy_location(body, node)], []))
    return next(c for c in compile(module, path, "exec", dont_inherit=True).co_consts if isinstance(c, types.CodeType))


def _helpers(rule: Rule) -> dict[str, Rule]:
    """The plain functions beside the rule that it calls, directly or through each other."""
    found: dict[str, Rule] = {}
    waiting = [rule]
    while waiting:
        function = waiting.pop()
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if (
                isinstance(value, types.FunctionType)
                and value.__globals__ is rule.__globals__
                and name not in found
                and value is not rule
            ):
                found[name] = value
                waiting.append(value)
    return found
