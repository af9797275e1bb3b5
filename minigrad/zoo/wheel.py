"""The installed minigrad as a wheel, so that a folder that is given away can be used where there is no network."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["write_wheel"]

WHEEL = "Wheel-Version: 1.0\nGenerator: minigrad\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
LEFT_OUT = {"__pycache__"}
# By name, and what a checkout that was installed calls it.
KEPT = {"METADATA": "PKG-INFO", "entry_points.txt": "entry_points.txt", "top_level.txt": "top_level.txt"}


def write_wheel(folder: Path) -> Path | None:
    """Write `minigrad-VERSION-py3-none-any.whl`; None where minigrad was not installed, and so has no metadata."""
    try:
        installed = distribution("minigrad")
    except PackageNotFoundError:
        return None
    name = f"minigrad-{installed.version}"
    rows = []
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in _contents(installed, f"{name}.dist-info"):
            archive.writestr(zipfile.ZipInfo(inside), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            rows.append(f"{inside},sha256={digest},{len(content)}\n")
        record = f"{name}.dist-info/RECORD"
        archive.writestr(zipfile.ZipInfo(record), "".join([*rows, f"{record},,\n"]), zipfile.ZIP_DEFLATED)
    return path


def _contents(installed: Distribution, info: str) -> Iterator[tuple[str, bytes]]:
    """The files of its packages, wherever they lie, and what installing has to know."""
    for package in sorted((installed.read_text("top_level.txt") or "minigrad").split()):
        found = importlib.util.find_spec(package)
        for place in (found.submodule_search_locations or ()) if found is not None else ():
            for path in sorted(Path(place).rglob("*")):
                if path.is_file() and path.suffix != ".pyc" and not LEFT_OUT.intersection(path.parts):
                    yield f"{package}/{path.relative_to(place).as_posix()}", path.read_bytes()
    for name, otherwise in KEPT.items():
        if (text := installed.read_text(name) or installed.read_text(otherwise)) is not None:
            yield f"{info}/{name}", text.encode()
    if (licence := installed.read_text("licenses/LICENSE")) is not None:
        yield f"{info}/licenses/LICENSE", licence.encode()
    yield f"{info}/WHEEL", WHEEL.encode()
