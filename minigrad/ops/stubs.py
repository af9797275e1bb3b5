"""Writes the stubs that tell editors and type checkers what `attach` adds at import: `python -m minigrad.ops.stubs`."""

from __future__ import annotations

import inspect
from pathlib import Path

from ..engine.op import COMPOSITES, OPS, Op
from ..engine.tensor import Tensor
from . import FUNCTIONS as PUBLIC
from .attach import COMPARISONS, OPERATORS, UNARY

PACKAGE = Path(__file__).resolve().parent.parent
SEVERAL = {"meshgrid", "qr", "split", "topk", "unstack"}  # composites that return a tuple
HEAD = '"""{}. Written by `python -m minigrad.ops.stubs`."""\n\nfrom typing import Any\n\n{}\n'


def _line(name: str, indent: str, method: bool) -> str:
    function = OPS.get(name) or COMPOSITES[name]
    several = isinstance(function, Op) and function.several or name in SEVERAL
    shown = []
    for i, p in enumerate(function.signature.shown.parameters.values()):
        if method and i == 0:
            shown.append("self")
        elif p.kind is inspect.Parameter.VAR_POSITIONAL:
            shown.append(f"*{p.name}: Any")
        else:
            shown.append(f"{p.name}: Any" + ("" if p.default is p.empty else f" = {p.default!r}"))
    return f"{indent}def {name}({', '.join(shown)}) -> {'tuple[Tensor, ...]' if several else 'Tensor'}: ...\n"


def functions_stub() -> str:
    """The text of `functions.pyi`."""
    lines = [_line(name, "", method=False) for name in sorted(PUBLIC)]
    names = ", ".join(f'"{name}"' for name in sorted(PUBLIC))
    return (
        HEAD.format("The ops as functions", "from .engine.tensor import Tensor")
        + f"\n__all__ = [{names}]\n\n"
        + "".join(lines)
    )


def methods_stub() -> str:
    """The text of `engine/methods.pyi`."""
    text = (
        HEAD.format("What every Tensor can do because an op of that name exists", "from .tensor import Tensor")
        + "\nclass Methods:\n    __slots__ = ()\n"
    )
    for name in sorted(OPERATORS):
        text += "".join(f"    def __{prefix}{name}__(self, other: Any) -> Tensor: ...\n" for prefix in ("", "r", "i"))
    text += "".join(
        f"    def __{name}__(self, other: Any) -> Tensor: ...{'  # type: ignore[override]' * (name in ('eq', 'ne'))}\n"
        for name in sorted(COMPARISONS)
    )
    text += "".join(f"    def __{name}__(self) -> Tensor: ...\n" for name in sorted(UNARY))
    text += "    def __getitem__(self, index: Any) -> Tensor: ...\n    def __setitem__(self, index: Any, value: Any) -> None: ...\n"
    text += "    @property\n    def T(self) -> Tensor: ...\n    @property\n    def mT(self) -> Tensor: ...\n"
    text += "    def reshape(self, *shape: Any) -> Tensor: ...\n    def transpose(self, *axes: Any) -> Tensor: ...\n"
    text += "    def where(self, condition: Any, other: Any) -> Tensor: ...\n"
    text += "    def to(self, target: Any = None, *, dtype: Any = None, device: str | None = None) -> Tensor: ...\n"
    return text + "".join(
        _line(name, "    ", method=True)
        for name in sorted(PUBLIC)
        if name not in ("reshape", "transpose", "where") and hasattr(Tensor, name)
    )


STUBS = {"functions.pyi": functions_stub, "engine/methods.pyi": methods_stub}


def main() -> None:
    for name, text in STUBS.items():
        (PACKAGE / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
