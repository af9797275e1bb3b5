"""Writes stubs for editors and type checkers of what `attach` adds at import: `python -m minigrad.ops.stubs`."""

from __future__ import annotations

import inspect
from pathlib import Path

from ..engine.op import OPS
from ..engine.tensor import Tensor
from . import FUNCTIONS as PUBLIC
from .attach import COMPARISONS, OPERATORS, UNARY, shown
from .composite import COMPOSITES

PACKAGE = Path(__file__).resolve().parent.parent
PROTOCOLS = """    def __new__(cls, data: Any = (), dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Self: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, value: Any) -> bool: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Any: ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle: ...
    def numpy(self) -> np.ndarray: ...
    def item(self, *index: Any) -> Any: ...
    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def tolist(self) -> Any: ...
    def cpu(self) -> Tensor: ...
    def cuda(self) -> Tensor: ...
    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
"""
HEAD = '"""{}. Written by `python -m minigrad.ops.stubs`."""\n\nfrom collections.abc import Callable, Iterator\nfrom typing import Any\n\n{}\n'


def _line(name: str, indent: str, method: bool) -> str:
    function = OPS.get(name) or COMPOSITES[name]
    parts = []
    for i, p in enumerate(shown(function.signature).parameters.values()):
        if method and i == 0:
            parts.append("self")
        elif p.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"*{p.name}: Any")
        else:
            parts.append(f"{p.name}: Any" + ("" if p.default is p.empty else f" = {p.default!r}"))
    result = "tuple[Tensor, ...]" if function.several is True else "Tensor"
    if isinstance(function.several, type):  # a NamedTuple
        result = f"results.{function.several.__name__}"
    return f"{indent}def {name}({', '.join(parts)}) -> {result}: ...\n"


def functions_stub() -> str:
    """The text of `functions.pyi`."""
    lines = [_line(name, "", method=False) for name in sorted(PUBLIC)]
    names = ", ".join(f'"{name}"' for name in sorted(PUBLIC))
    return (
        HEAD.format("The ops as functions", "from .engine.tensor import Tensor\nfrom .ops import results")
        + f"\n__all__ = [{names}]\n\n"
        + "".join(lines)
    )


def methods_stub() -> str:
    """The text of `engine/methods.pyi`."""
    text = (
        HEAD.format(
            "What every Tensor can do because an op of that name exists, or a protocol asks for it",
            "from typing_extensions import Self\n\nimport numpy as np\n\nfrom ..hooks import HookHandle\n"
            "from ..ops import results\nfrom .tensor import Tensor",
        )
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
    text += PROTOCOLS
    text += "".join(f"    @property\n    def {name}(self) -> Tensor: ...\n" for name in ("T", "mT", "real", "imag"))
    text += "    def reshape(self, *shape: Any) -> Tensor: ...\n    def transpose(self, *axes: Any) -> Tensor: ...\n"
    text += "    def where(self, condition: Any, other: Any) -> Tensor: ...\n"
    text += "    def to(self, target: Any = None, *, dtype: Any = None, device: str | None = None) -> Tensor: ...\n"
    return text + "".join(
        _line(name, "    ", method=True)
        for name in sorted(PUBLIC)
        if name not in ("reshape", "transpose", "where", "real", "imag") and hasattr(Tensor, name)
    )


STUBS = {"functions.pyi": functions_stub, "engine/methods.pyi": methods_stub}


def main() -> None:
    for name, text in STUBS.items():
        (PACKAGE / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
