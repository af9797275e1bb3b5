"""The base that `minigrad.ops` hangs operators and methods on; `methods.pyi` beside this file lists them for type checkers."""


class Methods:
    """Empty until `minigrad.ops` is imported."""

    __slots__ = ()
