"""The live page: served on loopback alone, to who knows the token, and only to be read."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import pytest

from minigrad import zoo
from minigrad.errors import ArgumentError
from minigrad.train import Run, find_checkpoint, read_checkpoint
from minigrad.viz.runs.live import serve
from minigrad.web import server
from minigrad.web.server import MAX_CLIENTS


@pytest.fixture
def folder(tmp_path):
    with Run(tmp_path / "run") as run:
        run.write_config(
            {"config": {"model": "tiny"}, "training": {"max_steps": 100, "metric": "loss", "maximize": False}}
        )
        for step in (10, 20, 30):
            run.metrics.add({"step": step, "loss": 1 / step})
        run.write_text("samples/step-00000010.txt", "a sample\n")
        run.write_text("frames/step-00000010.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="5" height="5"/>')
    return tmp_path / "run"


@pytest.fixture
def address(folder):
    with serve(folder) as found:
        yield urlsplit(found)


def ask(address, method="GET", path=None, headers=None, body=None):
    """The status, the headers and the content of an answer."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.request(method, address.path if path is None else path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def raw(address, content: bytes) -> bytes:
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(content)
        found = b""
        try:
            while part := connection.recv(4096):
                found += part
        except ConnectionResetError:  # it was cut off with some of the request unread
            pass
        return found


def test_the_page_and_its_news_are_given_to_who_has_the_token(address):
    assert re.fullmatch(r"/[\w-]{43}/", address.path) and address.hostname == "127.0.0.1"
    status, headers, content = ask(address)
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8" and b"<!doctype html>" in content
    assert b"connect-src 'self'" in content and b"default-src 'none'" in content
    status, headers, content = ask(address, path=address.path + "data.json?since=0")
    assert status == 200 and headers["Content-Type"] == "application/json"
    found = json.loads(content)
    assert found["curves"]["loss"] == [[10, 20, 30], [1 / 10, 1 / 20, 1 / 30]]
    assert found["samples"] == {"steps": [10], "texts": {"10": "a sample\n"}} and found["ended"] is False


def test_every_answer_may_neither_be_kept_nor_framed_nor_read_by_others(address):
    for path in (address.path, address.path + "data.json?since=0", "/nothing"):
        _, headers, _ = ask(address, path=path, headers={"Origin": "http://evil.example"})
        assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        assert (
            headers["Content-Security-Policy"] == "frame-ancestors 'none'"
            and headers["Referrer-Policy"] == "no-referrer"
        )
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert "python" not in str(headers).lower()


@pytest.mark.parametrize(
    "method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "X" * 50]
)
def test_only_get_is_answered(address, method):
    status, _, content = ask(address, method, body=b"x" if method == "POST" else None)
    assert (status, content) == (405, b"")


def paths(token):
    data = "data.json?since=0"
    wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
    return [
        "/", "", "//", f"/{token}", f"/{wrong}/", f"/{token}x/", f"/{token[:-1]}/", f"/{token.swapcase()}/", f"//{token}/",
        f"/{wrong}/{data}", f"/{data}", f"/{token}/data.json", f"/{token}/data.json?since=-1", f"/{token}/data.json?since=1x",
        f"/{token}/data.json?since={'9' * 16}", f"/{token}/?x=1", f"/{token}/config.json", f"/{token}/../{token}/",
        f"/{token}/metrics.csv", f"/{token}/frames/step-00000010.svg", f"/{token}/%2e%2e/%2e%2e/etc/passwd",
        f"/{token}/../../../etc/passwd", "/etc/passwd", "/../../etc/passwd", f"/%{ord(token[0]):02x}{token[1:]}/", f"/{token}/#x",
        f"http://127.0.0.1/{token}/",
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(27))
def test_every_other_path_is_not_found_and_nothing_is_said(address, number):
    token = address.path.strip("/")
    path = paths(token)[number]
    answer = raw(address, f"GET {path or '-'} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
    assert re.match(rb"HTTP/1\.0 404 Not Found\r\n", answer), answer
    assert answer.endswith(b"\r\n\r\n") and b"root:" not in answer


def test_the_paths_above_are_all_tried():
    assert len(paths("t" * 43)) == 27


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", "", "127.0.0.1:{port}, x"]
)
def test_a_name_that_another_page_could_have_brought_is_refused(address, host):
    host = host.format(port=address.port)
    assert ask(address, headers={"Host": host})[0] == 403
    assert ask(address, headers={"Host": f"localhost:{address.port}"})[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"GET {path} HTTP/1.0\r\n\r\n",
        b"GET {path} HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
        b"GET {path} HTTP/1.1\r\nHost: evil.example\r\nHost: {host}\r\n\r\n",
        b"GET {path}\r\n\r\n",
        b"GET {path} HTTP/9.9\r\nHost: {host}\r\n\r\n",
        b"GET\r\n\r\n",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
        b"GET {path} HTTP/1.1\r\nHost: {host}\r\n" + b"X: y\r\n" * 2000 + b"\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
        b"GET {path} HTTP/1.1\r\nHost: {host}\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
)
def test_requests_that_are_malformed_or_too_long_get_nothing(address, request_):
    content = request_.replace(b"{path}", address.path.encode()).replace(b"{host}", address.netloc.encode())
    answer = raw(address, content)
    assert b" 200 " not in answer and b"doctype" not in answer and b"Traceback" not in answer
    assert ask(address)[0] == 200  # it still serves others


def test_it_listens_on_loopback_alone(address):
    own = set()
    with contextlib.suppress(socket.gaierror):  # a name that nobody knows
        own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses the address that would be sent from
            own.add(probe.getsockname()[0])
        except OSError:
            pass
    others = {host for host in own if not host.startswith("127.")}
    if not others:
        pytest.skip("this machine has no other address")
    for host in others:
        with pytest.raises(OSError), socket.create_connection((host, address.port), timeout=3):
            pass


def test_who_is_slow_is_cut_off_and_does_not_keep_others_waiting(folder, monkeypatch):
    monkeypatch.setattr(server, "TIMEOUT", 0.5)
    with serve(folder) as found:
        address = urlsplit(found)
        slow = [socket.create_connection((address.hostname, address.port)) for _ in range(server.MAX_CLIENTS - 1)]
        for connection in slow:
            connection.sendall(b"GET /")
        assert ask(address)[0] == 200
        for connection in slow:
            connection.settimeout(10)
            assert connection.recv(100) == b""
            connection.close()


def test_more_clients_than_it_takes_are_turned_away_and_come_back(folder, monkeypatch):
    monkeypatch.setattr(server, "TIMEOUT", 1.0)
    with serve(folder) as found:
        address = urlsplit(found)
        held = [socket.create_connection((address.hostname, address.port)) for _ in range(3 * server.MAX_CLIENTS)]
        threads = sum(
            thread.name.startswith("Thread-") and "process_request" in thread.name for thread in threading.enumerate()
        )
        assert threads <= server.MAX_CLIENTS
        for connection in held:
            connection.close()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                assert ask(address)[0] == 200
                break
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
        else:
            pytest.fail("it never answered again")


def test_it_ends_with_the_training_and_leaves_no_thread(folder):
    before = threading.active_count()
    with serve(folder) as found:
        address = urlsplit(found)
        assert ask(address)[0] == 200
    with pytest.raises(OSError):
        ask(address)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threading.active_count() <= before


def test_two_servers_have_two_tokens(folder):
    with serve(folder) as one, serve(folder) as two:
        assert urlsplit(one).path != urlsplit(two).path


def test_only_what_is_new_is_told(folder):
    def news(since):
        return json.loads(ask(address, path=f"{address.path}data.json?since={since}")[2])

    with serve(folder) as found, Run(folder) as run:
        address = urlsplit(found)
        first = news(0)
        assert first["frames"]["steps"] == [10] and list(first["frames"]["texts"]) == ["10"]
        second = news(first["version"])
        assert "curves" not in second and second["frames"] == {"steps": [10], "texts": {}}
        run.rewind(20)
        run.metrics.add({"step": 40, "loss": 0.5})
        run.write_text("frames/step-00000040.svg", "<svg/>")
        run.write_text("samples/step-00000010.txt", "changed\n")
        deadline = time.monotonic() + 20
        while "curves" not in (third := news(first["version"])) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert third["curves"]["loss"][0] == [10, 20, 40]
        assert third["frames"] == {"steps": [10, 40], "texts": {"40": "<svg/>"}}
        assert third["samples"]["texts"] == {"10": "changed\n"}


def test_a_run_that_has_not_begun_is_served_too(tmp_path):
    with serve(tmp_path / "later") as found:
        status, _, content = ask(urlsplit(found))
        assert status == 200 and b"nothing is written yet" in content
    assert not (tmp_path / "later").exists()


def test_the_page_follows_the_training_in_a_browser(folder, browser):
    context = browser.new_context()
    complaints: list[str] = []
    with serve(folder) as found, Run(folder) as run:
        run.rewind(30)
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(found) else complaints.append(request.url))
        page.goto(found)
        assert page.locator("figure").count() == 1 and page.locator("#status").inner_text() == "training"
        run.metrics.add({"step": 40, "loss": 0.125, "accuracy": 1.0})
        run.write_text("samples/step-00000040.txt", "<b>a later sample</b>\n")
        page.locator("figure[data-panel=accuracy]").wait_for()
        page.locator("#samples .where", has_text="step 40 ").wait_for()
        assert page.locator("figure").count() == 2
        assert page.locator("#samples pre:visible").inner_text().strip() == "<b>a later sample</b>"
        assert page.locator("#progress").is_hidden()  # nothing tells yet how fast it is
        for step in (40, 50):
            run.timing.add({"step": step, "seconds": step / 5, "units_per_second": 1234.5})
        run.metrics.add({"step": 50, "loss": 0.1})
        page.locator("#progress span", has_text="step 50 of 100 · 1,234 units/s · 10s left").wait_for()
        assert page.locator("progress").evaluate("bar => bar.position") == 0.5
        page.locator("figure").first.focus()
        page.locator("figure").first.press("ArrowLeft")
        assert page.locator("figure span").first.get_attribute("data-exact") == "0.1"
    page.locator("#status", has_text="training has ended").wait_for()
    assert complaints == []
    context.close()


def test_train_with_live_says_the_address_once_and_serves_while_it_trains(tmp_path):
    command = [sys.executable, "-m", "minigrad", "train", "xor", "steps=1000000", "--live", "--out", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line = ""
        while "http" not in line:
            line = process.stdout.readline()
            assert line, "it ended without an address"
        address = urlsplit(line.partition("see it live: ")[2].strip())
        deadline = time.monotonic() + 40
        rows: list[int] = []
        while len(rows) < 2 and time.monotonic() < deadline:
            _, _, content = ask(address, path=address.path + "data.json?since=0")
            rows = json.loads(content)["curves"].get("loss", [[]])[0]
            time.sleep(0.05)
        assert len(rows) >= 2
        _, _, content = ask(address)
        assert b'<section id="graph">' in content and b'"how many hidden units"' in content
    finally:
        process.terminate()
        shown, _ = process.communicate(timeout=40)
    assert shown.count("http://") == 0 and "Traceback" not in shown
    with pytest.raises(OSError):
        ask(address)


def test_a_page_that_follows_changes_nothing_that_is_learned_and_needs_a_run_to_follow(tmp_path, capsys):
    for is_live in (False, True):
        zoo.train("xor", tmp_path / str(is_live), max_steps=30, live=is_live)
    assert capsys.readouterr().out.count("see it live: http://127.0.0.1:") == 1
    runs = [tmp_path / str(is_live) for is_live in (False, True)]
    without, followed = (read_checkpoint(find_checkpoint(run)).tensors for run in runs)
    assert {name: array.tobytes() for name, array in without.items()} == {
        name: array.tobytes() for name, array in followed.items()
    }
    assert len({(run / "metrics.csv").read_text() for run in runs}) == 1
    with pytest.raises(ArgumentError, match="out="):
        zoo.train("xor", live=True)


def test_a_client_that_gets_no_thread_takes_no_place(folder, monkeypatch):
    with serve(folder) as address:
        start = threading.Thread.start
        for _ in range(MAX_CLIENTS + 1):
            refused = threading.Event()

            def fail(thread, refused=refused):
                refused.set()
                raise RuntimeError("can't start new thread")

            monkeypatch.setattr(threading.Thread, "start", fail)
            with socket.create_connection(("127.0.0.1", urlsplit(address).port), timeout=10) as client:
                assert refused.wait(10) and client.recv(1) == b""
        monkeypatch.setattr(threading.Thread, "start", start)
        assert ask(urlsplit(address))[0] == 200
