"""Which parts minigrad has, what each may import, and the picture of what it does import:

python -m docs.architecture               # writes docs/pictures/architecture.svg
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from minigrad.viz.drawing.scene import Group, Line, Rect, Scene, Text, text_width
from minigrad.viz.graph.layout import POINTS, lay_out

__all__ = [
    "FILES",
    "LAYERS",
    "LEVEL",
    "ROOT",
    "edges",
    "imported_modules",
    "main",
    "module_parts",
    "picture",
    "unimplied",
]

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "minigrad").rglob("*.py"))
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"

# Each part may import from its own line and from those above; `minigrad` is the package's own __init__.py.
LAYERS = [
    {
        "errors": "what went wrong, and the fix",
        "foreign_names": "what others call it",
        "foreign_arrays": "arrays of others",
        "signature": "arguments of a function",
        "tree": "nested structures",
        "numel": "x.size and x.size(0)",
        "changes": "what is new",
    },
    {"engine": "tensors, the graph, devices"},
    {
        "tracer": "who watches the ops",
        "random": "keys for random numbers",
        "debug": "the first NaN",
        "hooks": "on gradients",
        "runtime": "threads, processes",
        "maths": "exp, log … for numba",
    },
    {"ops": "each op and its derivative", "kernels": "fused ops"},
    {
        "functions": "ops as mg.NAME",
        "ir": "the traced graph",
        "compile": "loops written from ops",
        "linalg": "linear algebra by name",
        "fft": "Fourier transforms",
        "interop": "NumPy's protocols, DLPack",
        "autograd": "gradients as in PyTorch",
        "transforms": "gradients as in JAX",
        "formats": "weights of others",
        "saving": "safetensors",
    },
    {
        "array_api": "the array API standard",
        "onnx": "graphs as ONNX",
        "web": "pages: runtime and server",
        "check": "gradients, numerically",
        "nn": "modules and layers",
        "optim": "optimisers, schedules",
    },
    {"minigrad": "import minigrad as mg", "parallel": "models on several ranks"},
    {
        "data": "tokenizers, batches",
        "tokenizers": "of pretrained models",
        "decode": "sampling, beam search",
        "metrics": "BLEU, chrF",
        "train": "the Trainer, runs",
        "viz": "pictures and pages",
    },
    {"zoo": "what a plugin is", "hub": "pretrained models of others", "learn": "the course"},
    {"serve": "models over HTTP"},
    {"cli": "the command minigrad"},
    {"__main__": "python -m minigrad"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
MODELS = {"models": "plugins, found by name"}
COLORS = (
    "parameter",
    "parameter",
    "parameter",
    "parameter",
    "parameter",
    "input",
    "constant",
    "group",
    "output",
    "output",
    "output",
)
SIZES = (12.0, 10.0)  # of a part's name, and of what it is for
HIGH, MARGIN = 40.0, 16.0


def module_parts(path: Path) -> list[str]:
    """`minigrad/ops/layout/shape.py` -> ["minigrad", "ops", "layout", "shape"]; a package's own file ends in "__init__"."""
    return list(path.relative_to(ROOT).with_suffix("").parts)


def imported_modules(path: Path) -> Iterator[str]:
    """The absolute dotted name of everything a file imports, at its top or inside a function, but not for types alone."""
    package = module_parts(path)[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = [*base, *(node.module.split(".") if node.module else [])]
            yield from (".".join([*stem, name.name]) for name in node.names)


def part_of(module: str) -> str:
    """Which part of minigrad an imported name belongs to: `minigrad.ops.shape.stack` -> "ops", `minigrad.Tensor` -> "minigrad"."""
    names = module.split(".")
    if len(names) > 1 and ((ROOT / "minigrad" / names[1]).is_dir() or (ROOT / "minigrad" / f"{names[1]}.py").is_file()):
        return names[1]
    return "minigrad"


def edges(files: Sequence[Path] = FILES) -> set[tuple[str, str, str]]:
    """(file, the part it is in, a part of minigrad it imports); a file of models is in the part "models"."""
    found = set()
    for path in files:
        package, name, *_ = module_parts(path)
        own = package if name == "__init__" or package != "minigrad" else name
        for module in imported_modules(path):
            if module.split(".")[0] == "minigrad" and part_of(module) != own:
                found.add((path.relative_to(ROOT).as_posix(), own, part_of(module)))
    return found


def unimplied(imports: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that do not follow from the others: a -> c is left out where there are a -> b and b -> … -> c."""

    def reached(part: str) -> set[str]:
        near = imports.get(part, set())
        return near.union(*[reached(other) for other in near])

    return sorted(
        (part, other)
        for part, others in imports.items()
        for other in others
        if not any(other in reached(between) for between in others)
    )


def picture() -> Scene:
    """A box for each part, and for the models; an arrow from a part to one that it imports, unless others imply it."""
    texts = {part: (part, what) for parts in (*LAYERS[:-1], MODELS) for part, what in parts.items()}
    imports: dict[str, set[str]] = {}
    for _, part, imported in edges([*FILES, *sorted((ROOT / "models").rglob("*.py"))]):
        if part in texts:
            imports.setdefault(part, set()).add(imported)
    wide = {part: max(map(text_width, pair, SIZES)) + 20 for part, pair in texts.items()}
    lines = [f"{part} [width={wide[part] / POINTS:.3f} height={HIGH / POINTS:.3f}];" for part in texts]
    lines += [f"{part} -> {other};" for part, other in unimplied(imports)]
    place = lay_out('digraph G { node [shape=box fixedsize=true label=""]; ' + " ".join(lines) + " }")
    shapes: list[Any] = []
    for (part, other), points in sorted(place.edges.items()):
        moved = [(x + MARGIN, y + MARGIN) for x, y in points]
        shapes.append(Group([Line(moved, curved=True, arrow=True)], "edge", data={"from": part, "to": other}))
    for part, (name, what) in texts.items():
        x, y = place.boxes[part][0] + MARGIN, place.boxes[part][1] + MARGIN
        color = COLORS[LEVEL.get(part, -1)]
        box = [
            Rect(x - wide[part] / 2, y - HIGH / 2, wide[part], HIGH, color, f"{color}-line", 5, part in MODELS),
            Text(x, y - 3, name, SIZES[0], anchor="middle", bold=True),
            Text(x, y + 12, what, SIZES[1], "faint", "middle"),
        ]
        shapes.append(Group(box, "box", data={"key": part}))
    return Scene(
        place.width + 2 * MARGIN, place.height + 2 * MARGIN, shapes, "The parts of minigrad: what imports what"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the picture."""
    parser = argparse.ArgumentParser(prog="python -m docs.architecture", description="Draw minigrad's own imports.")
    parser.add_argument("-o", "--out", type=Path, default=PICTURE, help="the picture (default: %(default)s)")
    target = parser.parse_args(arguments).out
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"wrote {picture().write(target)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
