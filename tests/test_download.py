"""Downloads: only the pinned bytes ever get a name, and a machine without a network says what to do."""

import hashlib
import http.server
import io
import sys
import threading
import urllib.error
from pathlib import Path

import pytest

from minigrad.data import KNOWN, DataError, Download, cache_directory, download, fetch, local_copy
from minigrad.errors import MinigradError

CONTENT = b"Go.\tVe.\n" * 20_000
URL = "https://example.org/pairs.tsv"


def pinned(content=CONTENT, **changes):
    values = {"name": "corpus/pairs.tsv", "url": URL, "sha256": hashlib.sha256(content).hexdigest(), "max_bytes": 10**6}
    return Download(**{**values, **changes})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MINIGRAD_DATA", raising=False)
    return tmp_path / "cache" / "minigrad"


class Server:
    """Stands in for the network, and counts how often it is asked."""

    def __init__(self, content=CONTENT, error=None):
        self.content, self.error, self.asked = content, error, []

    def __call__(self, url):
        self.asked.append(url)
        if self.error is not None:
            raise self.error
        return io.BytesIO(self.content)


def files_below(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_file_is_downloaded_once_and_then_comes_from_the_cache(cache):
    server = Server()
    path = fetch(pinned(), server)
    assert path == cache / "corpus" / "pairs.tsv" and path.read_bytes() == CONTENT
    assert fetch(pinned(), server) == path
    assert server.asked == [URL]
    assert files_below(cache) == ["pairs.tsv"]


@pytest.mark.parametrize(
    "damage", [b"", CONTENT[:-1], b"x" + CONTENT[1:], CONTENT * 9], ids=["empty", "short", "changed", "long"]
)
def test_a_damaged_cached_file_is_downloaded_again(cache, damage):
    path = fetch(pinned(), Server())
    path.write_bytes(damage)
    assert fetch(pinned(), Server()).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "sent", [b"", CONTENT[:-1], CONTENT[:100_000], b"x" + CONTENT[1:]], ids=["nothing", "short", "part", "changed"]
)
def test_other_bytes_than_the_pinned_ones_are_never_kept(cache, sent):
    with pytest.raises(DataError, match="not the file that was pinned(.|\n)*SHA-256"):
        fetch(pinned(), Server(sent))
    assert files_below(cache) == []


def test_a_file_that_is_too_large_is_stopped(cache):
    with pytest.raises(DataError, match="too large(.|\n)*at most 1,000 bytes"):
        fetch(pinned(max_bytes=1000), Server())
    assert files_below(cache) == []


@pytest.mark.parametrize(
    "error", [urllib.error.URLError("Name or service not known"), TimeoutError("timed out"), ConnectionResetError()]
)
def test_offline_the_message_says_what_to_do(cache, error):
    with pytest.raises(
        DataError, match=r"corpus/pairs.tsv could not be downloaded(.|\n)*example.org(.|\n)*offline(.|\n)*MINIGRAD_DATA"
    ):
        fetch(pinned(), Server(error=error))
    assert files_below(cache) == []


def test_an_interruption_leaves_nothing_behind(cache):
    with pytest.raises(KeyboardInterrupt):
        fetch(pinned(), Server(error=KeyboardInterrupt()))
    assert files_below(cache) == []


def test_a_failed_download_leaves_what_was_there(cache):
    path = fetch(pinned(), Server())
    other = pinned(b"another version")
    with pytest.raises(DataError):
        fetch(other, Server(b"neither"))
    assert path.read_bytes() == CONTENT and files_below(cache) == ["pairs.tsv"]


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "ftp://example.org/x", "file:///etc/passwd", "HTTP://x", "x", ""]
)
def test_only_https_is_used(url):
    server = Server()
    with pytest.raises(DataError, match="only secure connections"):
        fetch(pinned(url=url), server)
    assert server.asked == []


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "a/../../b", "a//b", "", ".", "..", "a\\..\\b", "c:x", ".hidden", "a\0b", "a\n"]
)
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(MinigradError, match="plain file name"):
        pinned(name=name)


@pytest.mark.parametrize("sha256", ["", "abc", "G" * 64, "A" * 64, "a" * 64 + "\n"])
def test_a_download_without_a_proper_checksum_is_refused(sha256):
    with pytest.raises(MinigradError, match="SHA-256"):
        pinned(sha256=sha256)


def test_a_local_copy_is_looked_up_first_and_taken_as_it_is(tmp_path, monkeypatch):
    own = tmp_path / "own" / "corpus" / "pairs.tsv"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"my own version")
    monkeypatch.setenv("MINIGRAD_DATA", str(tmp_path / "own"))
    server = Server()
    assert fetch(pinned(), server) == own == local_copy("corpus/pairs.tsv")
    assert server.asked == []
    assert fetch(pinned(name="corpus/other.tsv"), server).read_bytes() == CONTENT


def test_an_unknown_name_gets_the_nearest_known_ones():
    with pytest.raises(MinigradError, match="did you mean 'tinyshakespeare.txt'"):
        fetch("tinyshakespear.txt")
    assert all(known.url.startswith("https://") for known in KNOWN.values())


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    expected = {
        "linux": ".cache/minigrad",
        "darwin": "Library/Caches/minigrad",
        "win32": "AppData/Local/minigrad/Cache",
    }
    for platform, folder in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_directory() == tmp_path / folder


def test_a_cache_that_cannot_be_written_is_explained(cache):
    cache.parent.mkdir()
    cache.write_text("a file where the directory should be")
    with pytest.raises(DataError, match="cannot be written(.|\n)*MINIGRAD_DATA"):
        fetch(pinned(), Server())


class Handler(http.server.BaseHTTPRequestHandler):
    """A small web server: content, a truncated answer, an error, and redirections that stay or lead away."""

    def do_GET(self):
        places = {"/moved": "/good", "/away": "ftp://127.0.0.1/x"}
        if self.path in places:
            self.send_response(302)
            self.send_header("Location", places[self.path])
            self.end_headers()
            return
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:1000] if self.path == "/cut" else CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(download, "SCHEMES", ("http",))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_real_connection_works_and_follows_a_redirection(site, cache):
    assert fetch(pinned(url=f"{site}/good")).read_bytes() == CONTENT
    assert fetch(pinned(url=f"{site}/moved", name="moved.tsv")).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("page", "match"),
    [
        ("cut", "pinned|could not be downloaded"),
        ("missing", "404(.|\n)*MINIGRAD_DATA"),
        ("away", "only secure connections"),
    ],
)
def test_a_real_connection_that_fails_leaves_nothing(site, cache, page, match):
    with pytest.raises(DataError, match=match):
        fetch(pinned(url=f"{site}/{page}"))
    assert files_below(cache) == []
