"""Files from the web: checked against a pinned SHA-256, bounded in size, over HTTPS only, and kept in a cache."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, nearest
from .errors import DataError

__all__ = ["KNOWN", "Download", "cache_directory", "fetch", "local_copy"]

SCHEMES = ("https",)
CHUNK = 2**16
TIMEOUT = 30  # seconds without any byte


@dataclass(frozen=True)
class Download:
    """A file on the web that is known by its content: `name` is where it is kept, below the cache directory."""

    name: str
    url: str
    sha256: str
    max_bytes: int

    def __post_init__(self) -> None:
        if not all(re.fullmatch(r"[\w-][\w.-]*", part, re.ASCII) for part in self.name.split("/")):
            raise ArgumentError(
                "Download: this is not a plain file name", "for instance 'corpus/train.en'", repr(self.name)
            )
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ArgumentError("Download: this is not a SHA-256", "64 digits in lower case", repr(self.sha256))


_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/tok/"

KNOWN = {
    download.name: download
    for download in (
        Download(
            "tinyshakespeare.txt",
            "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            2_000_000,
        ),
        *(
            Download(f"multi30k/{part}.{language}", f"{_MULTI30K}{part}.lc.norm.tok.{language}", sha256, 4_000_000)
            for part, language, sha256 in (
                ("train", "en", "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
                ("train", "de", "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
                ("val", "en", "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
                ("val", "de", "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
                ("test_2016_flickr", "en", "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
                ("test_2016_flickr", "de", "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
            )
        ),
    )
}


def fetch(wanted: str | Download, opener: Callable[[str], Any] | None = None) -> Path:
    """The path of a file: your own copy below `MINIGRAD_DATA`, else the cached one, else it is downloaded.

    Your own copy is taken as it is. A cached or downloaded one is used only if its SHA-256 is the pinned one.
    `wanted` is a name in `KNOWN`, or a Download of your own.
    """
    if isinstance(wanted, str):
        if wanted not in KNOWN:
            raise ArgumentError("fetch: no such file is known", got=repr(wanted), fix=nearest(wanted, KNOWN))
        wanted = KNOWN[wanted]
    own = local_copy(wanted.name)
    if own is not None:
        return own
    path = cache_directory().joinpath(*wanted.name.split("/"))
    if path.is_file() and _is_right(path, wanted):
        return path
    _check_scheme(wanted.url)
    _download(wanted, path, opener or _open)
    return path


def local_copy(name: str) -> Path | None:
    """The file of this name below the directory that the environment variable `MINIGRAD_DATA` names, if there is one."""
    folder = os.environ.get("MINIGRAD_DATA")
    path = Path(folder).joinpath(*name.split("/")) if folder else None
    return path if path is not None and path.is_file() else None


def cache_directory() -> Path:
    """Where downloads are kept: below `XDG_CACHE_HOME`, or where the system keeps caches."""
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):  # the specification says to ignore a relative one
        return Path(xdg) / "minigrad"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "minigrad" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "minigrad"


def _is_right(path: Path, wanted: Download) -> bool:
    if path.stat().st_size > wanted.max_bytes:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256


def _download(wanted: Download, path: Path, opener: Callable[[str], Any]) -> None:
    """Write to a temporary file, and give it its name only when every byte is proven right."""
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise _no_copy(wanted, f"{path.parent} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            found = _receive(wanted, file.write, opener)
            file.flush()
            os.fsync(file.fileno())
        if found != wanted.sha256:
            raise DataError(
                f"fetch: {wanted.url} is not the file that was pinned, so it is not used",
                f"SHA-256 {wanted.sha256}",
                found,
                "it was changed, or damaged on the way: try again, or check the source",
            )
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _receive(wanted: Download, write: Callable[[bytes], Any], opener: Callable[[str], Any]) -> str:
    """Pass on what the server sends, at most `max_bytes`; returns its SHA-256."""
    import http.client

    digest, received = hashlib.sha256(), 0
    try:
        with opener(wanted.url) as response:
            while chunk := response.read(CHUNK):
                received += len(chunk)
                if received > wanted.max_bytes:
                    raise DataError(f"fetch: {wanted.url} is too large", f"at most {wanted.max_bytes:,} bytes", "more")
                digest.update(chunk)
                write(chunk)
    except (OSError, http.client.HTTPException) as error:
        raise _no_copy(wanted, str(error) or type(error).__name__) from None
    return digest.hexdigest()


def _no_copy(wanted: Download, reason: str) -> DataError:
    folder = os.environ.get("MINIGRAD_DATA") or "a directory of your choice"
    return DataError(
        f"fetch: {wanted.name} could not be downloaded: {reason}"[:400],
        got=wanted.url,
        fix=f"if this machine is offline, download it on another, save it as {wanted.name} in {folder}, "
        "and set the environment variable MINIGRAD_DATA to that directory",
    )


def _check_scheme(url: str) -> None:
    if url.split(":", 1)[0].lower() not in SCHEMES:
        raise DataError("fetch: only secure connections are used", " or ".join(SCHEMES), url[:200])


def _open(url: str) -> Any:
    """Open a URL; a redirection that leaves HTTPS is refused, like an address that does not begin with it."""
    import urllib.request

    class Redirection(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            _check_scheme(newurl)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = urllib.request.build_opener(Redirection)
    return opener.open(urllib.request.Request(url, headers={"User-Agent": "minigrad"}), timeout=TIMEOUT)
