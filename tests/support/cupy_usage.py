"""Which of CuPy's names minigrad uses, and how it calls them, read from the source.

Found are chains that start at `xp` (also `self.xp`, `backend_of(a).xp` and a variable that holds one, as in
`random = self.xp.random`), names given to a function that says `getattr(xp, name)`, and, in the forward of an op,
methods called on its inputs and on what was computed from them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cupy_names import InstalledNames, misuse

ROOT = Path(__file__).parents[2]
ALSO_NEEDED = ("linalg", "random", "random.Generator", "cuda", "ndarray", "lib", "lib.stride_tricks")


@dataclass(frozen=True)
class Use:
    """A name of CuPy in the source; `keywords` is None where it is not called."""

    name: str
    place: str
    positional: int = 0
    keywords: tuple[str, ...] | None = None

    def problem(self, names: InstalledNames) -> str | None:
        if self.name not in names:
            return f"{self.place}: cupy has no {self.name}"
        wrong = misuse(names[self.name], self.positional, self.keywords) if self.keywords is not None else None
        return f"{self.place}: cupy.{self.name}() {wrong}" if wrong else None


class Collector(ast.NodeVisitor):
    """Walks one file. `aliases` are variables that hold a part of xp, `arrays` those that hold device arrays."""

    def __init__(self, tree: ast.Module, path: str):
        self.path, self.uses, self.unresolved = path, set[Use](), list[str]()
        self.aliases: dict[str, str] = {}
        self.arrays: set[str] = set()
        self.tree = tree
        self.visit(tree)

    def chain(self, node: ast.expr) -> str | None:
        """ "linalg.inv" for `xp.linalg.inv`, "" for `xp` itself, None for anything else."""
        if isinstance(node, ast.Name):
            return "" if node.id == "xp" else self.aliases.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        before = self.chain(node.value)
        if before is not None:
            return f"{before}.{node.attr}".lstrip(".")
        return "" if node.attr == "xp" else None

    def is_array(self, node: ast.expr) -> bool:
        """Whether it is known that the expression gives an array on the device."""
        if isinstance(node, ast.Name):
            return node.id in self.arrays
        if isinstance(node, ast.BinOp):
            return self.is_array(node.left) or self.is_array(node.right)
        if isinstance(node, (ast.UnaryOp, ast.Subscript)):
            return self.is_array(node.operand if isinstance(node, ast.UnaryOp) else node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return bool(self.chain(node.func)) or self.is_array(node.func.value)
        return False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = dict(self.aliases), set(self.arrays)
        arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if node.decorator_list and arguments[:1] == ["xp"]:
            self.arrays |= set(arguments[1:])
        self.generic_visit(node)
        self.aliases, self.arrays = outside

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            part = self.chain(node.value)
            if part:
                self.aliases[target.id] = part
            if self.is_array(node.value):
                self.arrays.add(target.id)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        place = f"{self.path}:{node.lineno}"
        keywords = tuple(k.arg for k in node.keywords if k.arg)
        positional = sum(not isinstance(a, ast.Starred) for a in node.args)
        if name := self.chain(function):
            self.uses.add(Use(name, place, positional, keywords))
        elif isinstance(function, ast.Attribute) and self.is_array(function.value):
            self.uses.add(Use(f"ndarray.{function.attr}", place, positional, keywords))
        elif isinstance(function, ast.Name) and function.id == "getattr" and self.chain(node.args[0]) is not None:
            self.look_up(node, place)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if name := self.chain(node):
            self.uses.add(Use(name, f"{self.path}:{node.lineno}"))
        self.generic_visit(node)

    def look_up(self, call: ast.Call, place: str) -> None:
        """`getattr(xp, name)` inside `def make(name, …)`: the names are those that `make` is called with."""
        wanted = call.args[1]
        if isinstance(wanted, ast.Constant):
            self.uses.add(Use(str(wanted.value), place))
            return
        makers: dict[str, int] = {}
        for f in self.tree.body:
            if isinstance(f, ast.FunctionDef) and isinstance(wanted, ast.Name) and call in ast.walk(f):
                parameters = [a.arg for a in f.args.args]
                makers |= {f.name: parameters.index(wanted.id)} if wanted.id in parameters else {}
        calls = [
            c
            for c in ast.walk(self.tree)
            if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id in makers
        ]
        given = [c.args[makers[c.func.id]] for c in calls if isinstance(c.func, ast.Name)]
        self.uses |= {Use(str(a.value), f"{self.path}:{a.lineno}") for a in given if isinstance(a, ast.Constant)}
        if not given or not all(isinstance(a, ast.Constant) for a in given):
            self.unresolved.append(place)


def collect(source: str, path: str) -> Collector:
    return Collector(ast.parse(source), path)


def all_files() -> Iterator[Collector]:
    for path in sorted(path for folder in ("minigrad", "models") for path in (ROOT / folder).rglob("*.py")):
        yield collect(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def names_in_use() -> set[str]:
    """What the frozen list must hold: the names in use, all that lies on the way to them, and the methods of arrays and generators.

    The tests of the fake device use some more, and some that CuPy does not have.
    """
    installed = InstalledNames()
    tried = collect((ROOT / "tests" / "test_fake_device.py").read_text(encoding="utf-8"), "test_fake_device.py").uses
    used = {use.name for file in all_files() for use in file.uses} | set(ALSO_NEEDED)
    used |= {use.name for use in tried if use.name in installed}
    return used | set(installed.below("ndarray")) | set(installed.below("random.Generator"))
