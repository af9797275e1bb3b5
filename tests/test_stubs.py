"""The stubs for editors and type checkers say what the package really offers."""

import pytest

from minigrad.ops.stubs import PACKAGE, STUBS


@pytest.mark.parametrize("name", STUBS)
def test_the_stub_is_current(name):
    assert (PACKAGE / name).read_text(encoding="utf-8") == STUBS[name](), "run python -m minigrad.ops.stubs"
