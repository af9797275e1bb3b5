"""Functions of numba's that are written as LLVM's instructions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import types
from numba.extending import intrinsic


def instructions(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare one by its types and by what builds it: `@instructions(types.int64(types.int64))`, `def name(builder, x): …`"""

    def decorate(build: Callable[..., Any]) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = build(builder, *args)
            return context.get_dummy_value() if signature.return_type is types.void else made

        @wraps(build)
        def typed(context: Any, *args: Any) -> Any:
            return signature, generate

        typed.__signature__ = inspect.signature(build)  # type: ignore[attr-defined]  # numba reads the number of arguments there
        return intrinsic(typed)

    return decorate
