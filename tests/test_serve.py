"""A served model answers what Python answers, to many clients at once, and nothing to those who may not ask."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.serving import TOKEN, served

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.decode import LanguageModel, Sampling, greedy
from minigrad.decode.rows import Rows
from minigrad.serve.http import Limits
from minigrad.tree import jsonable
from minigrad.zoo.config import configure
from minigrad.zoo.loaded import Loaded

RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"
PROMPTS = ["Ana", "One day, Ben went to the", "The", "Leo had a dream: he wanted to become", "In the morning"]


@pytest.fixture(scope="module")
def gpt():
    return zoo.load(RUNS / "gpt")


@pytest.fixture(scope="module")
def server(gpt):
    with served(gpt) as found:
        yield found


def fresh(name):
    """A tiny model of the zoo that nobody trained, as if it had been loaded."""
    spec = zoo.find(name)
    config = configure(spec, None, spec.tiny)
    data = spec.data(config, None)
    config = config if data.config is None else data.config
    mg.manual_seed(0)
    return Loaded(spec, config, spec.build(config).eval(), data.tokenizer, {"data": None}, 0, Path(name))


def until(is_so, seconds=20.0):
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


# Rows of one batch


def alone(model, ids, count):
    return greedy(LanguageModel(model), np.array([ids]), length=count, end=-1)[0]


@pytest.mark.parametrize("name", ["gpt", "rnn"])
def test_texts_that_join_and_leave_a_batch_are_what_each_is_alone(name, gpt):
    loaded = gpt if name == "gpt" else fresh("rnn")
    prompts = [loaded.tokenizer.encode(text) for text in PROMPTS]
    prompts.append(prompts[1] * 6)  # longer than all that the cache has seen when it comes
    counts = [40, 9, 25, 31, 3, 12]
    rows, going, texts = Rows(loaded.model), [], [[] for _ in prompts]
    for turn in range(120):
        if turn % 5 == 0 and turn // 5 < len(prompts):
            number, reader = turn // 5, LanguageModel(loaded.model)
            texts[number].append(int(reader(np.array([prompts[number]]))[0].argmax()))
            rows.join(reader)
            going.append(number)
        if going:
            scores = rows.step([texts[number][-1] for number in going])
            for number, row in zip(going, scores):
                texts[number].append(int(row.argmax()))
            stays = [len(texts[number]) < counts[number] for number in going]
            if not all(stays):
                rows.select([row for row, kept in enumerate(stays) if kept])
                going = [number for number, kept in zip(going, stays) if kept]
    assert not going and not len(rows)
    assert texts == [alone(loaded.model, ids, count) for ids, count in zip(prompts, counts)]


def test_positions_that_no_row_has_any_more_are_forgotten(gpt):
    rows, ids = Rows(gpt.model), gpt.tokenizer.encode("Ana")
    said = []
    for text in range(4):  # one text after the other goes on, while a second one begins
        reader = LanguageModel(gpt.model)
        token = int(reader(np.array([ids]))[0].argmax())
        rows.join(reader)
        said = [*said[-1:], [token]]
        for _ in range(50):
            for one, row in zip(said, rows.step([one[-1] for one in said])):
                one.append(int(row.argmax()))
        if len(rows) == 2:
            rows.select([1])
            said = said[1:]
        assert rows._cache.length < 200, text
    assert said[0] == alone(gpt.model, ids, 51)


def test_a_model_without_masks_goes_on_row_by_row(gpt):
    class Plain:
        context, parameters, new_cache = gpt.model.context, gpt.model.parameters, gpt.model.new_cache

        def forward(self, tokens, cache=None):
            return gpt.model(tokens, cache=cache)

        __call__ = forward

    rows, texts = Rows(Plain()), []
    for text in PROMPTS[:2]:
        reader = LanguageModel(Plain())
        texts.append([int(reader(np.array([gpt.tokenizer.encode(text)]))[0].argmax())])
        rows.join(reader)
    for _ in range(9):
        for one, row in zip(texts, rows.step([one[-1] for one in texts])):
            one.append(int(row.argmax()))
    assert texts == [alone(gpt.model, gpt.tokenizer.encode(text), 10) for text in PROMPTS[:2]]


# Minigrad's own interface


def test_a_text_is_what_sample_writes_also_beyond_the_context(server, gpt):
    for prompt, count in (("Ana", 150), ("", 20), ("One day, Ben went to the", 5)):
        status, _, said = server.ask("/api/sample", {"prompt": prompt, "tokens": count, "temperature": 0})
        wanted = "".join(gpt.sample(prompt, tokens=count, sampling=Sampling(0)))
        assert (status, said["text"], said["reason"], said["tokens"]) == (200, wanted, "length", count)


def test_a_seed_draws_what_it_draws_alone(server, gpt):
    options = {"temperature": 0.9, "top_p": 0.9, "top_k": 40, "repetition_penalty": 1.2}
    _, _, said = server.ask("/api/sample", {"prompt": "Ana", "tokens": 40, "seed": 7, **options})
    assert said["text"] == "".join(gpt.sample("Ana", tokens=40, seed=7, sampling=Sampling(**options)))


def test_many_texts_at_once_are_what_each_is_alone(server, gpt):
    wanted = ["".join(gpt.sample(prompt, tokens=60, sampling=Sampling(0))) for prompt in PROMPTS]

    def said(number):
        content = {"prompt": PROMPTS[number % 5], "tokens": 60, "temperature": 0}
        return server.ask("/api/sample", content)[2]["text"] == wanted[number % 5]

    steps, written = (server.app.worker.counts[name] for name in ("steps", "written"))
    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(said, range(24)))
    steps, written = (server.app.worker.counts[n] - old for n, old in (("steps", steps), ("written", written)))
    assert written == 24 * 60 and steps < written / 2  # two rows and more at once, on average


def test_a_stream_has_the_parts_of_the_whole_with_what_might_have_come_instead(server, gpt):
    asked = {"prompt": "Ana", "tokens": 12, "temperature": 0, "chances": True}
    _, headers, text = server.ask("/api/sample", {**asked, "stream": True})
    assert headers.get_content_type() == "text/event-stream"
    parts = [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]
    whole = server.ask("/api/sample", asked)[2]
    assert "".join(part.get("text", "") for part in parts) == whole["text"]
    assert [part["chance"] for part in parts[:-1]] == whole["chances"] and len(whole["chances"]) == 12
    logits = gpt.logits([gpt.tokenizer.encode("Ana")])[0, -1]
    logits[list(gpt.tokenizer.unwritten)] = -np.inf
    likely = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    first = whole["chances"][0]["next"]
    np.testing.assert_allclose([one["chance"] for one in first], np.sort(likely)[::-1][:8], atol=1e-5)


OPENED: list[str] = []  # all paths that this process opens; a hook stays for ever, so it begins with the tests that ask
sys.addaudithook(lambda event, given: OPENED.append(str(given[0])) if event == "open" else None)


@pytest.mark.parametrize("name", [entry.name for entry in zoo.list() if entry.package.startswith("minigrad ")])
def test_predict_answers_what_python_answers_and_opens_no_file_that_a_client_names(name, tmp_path):
    loaded = fresh(name)
    named = [str(tmp_path / f"secret{suffix}") for suffix in (".png", ".wav", ".txt", "")]
    for path in named:
        Path(path).write_bytes(b"secret")
    OPENED.clear()
    inputs = loaded.spec.inputs_for(loaded.config)
    with served(loaded) as server:
        status, _, said = server.ask("/api/predict", {"inputs": inputs})
        page = server.ask("/")[2]
        for path in named:
            server.ask("/api/predict", {"inputs": [path]})
            server.ask("/api/predict", {"inputs": [f" {path}"]})
    assert not {path for path in OPENED if "secret" in path and "minigrad-" not in path}
    assert status == 200 and said["answers"] == jsonable(loaded.predict(*inputs))
    assert page.startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["caption", "vit"])
def test_a_picture_is_sent_as_what_is_in_it_and_never_as_a_path(name, tmp_path):
    from PIL import Image

    loaded = zoo.load(RUNS / name)
    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)).save(path)
    (wanted,) = loaded.predict(str(path))
    sent = {"base64": base64.b64encode(path.read_bytes()).decode(), "suffix": ".png"}
    with served(loaded) as server:
        (answer,) = server.ask("/api/predict", {"inputs": [sent]})[2]["answers"]
        assert {**answer, "input": 0} == {**jsonable(wanted), "input": 0}
        status, _, said = server.ask("/api/predict", {"inputs": [str(path)]})
        assert status == 400 and "minigrad-" not in str(said)
        for wrong in ({"base64": "?", "suffix": ".png"}, {"base64": "aGk=", "suffix": "/../x"}, {"suffix": ".png"}, 7):
            assert server.ask("/api/predict", {"inputs": [wrong]})[0] == 400


def test_a_drawing_is_sent_as_text(tmp_path):
    drawing = "...#...\n..##...\n...#...\n...#...\n..###.."
    (tmp_path / "one").write_text(drawing)
    loaded = fresh("digits")
    (wanted,) = loaded.predict(str(tmp_path / "one"))
    with served(loaded) as server:
        (said,) = server.ask("/api/predict", {"inputs": [drawing]})[2]["answers"]
        assert (said["probability"], said["input"]) == (wanted["probability"], drawing)
        status, _, said = server.ask("/api/predict", {"inputs": [str(Path(__file__).resolve())]})
        assert status == 400 and "the file" in said["error"]["message"]


def test_translations_are_those_of_python_with_where_each_word_looked():
    loaded = zoo.load(RUNS / "translator")
    texts = ["You are welcome", "Where is the library? Thank you!", "the house is big"]
    wanted = loaded.translate(texts)
    with served(loaded) as server:
        said = server.ask("/api/translate", {"texts": texts, "details": True})[2]["translations"]
        greedily = server.ask("/api/translate", {"texts": texts[0], "beams": 1})[2]["translations"]
        assert server.ask("/api/translate", {"texts": ["  "]})[0] == 400
        with ThreadPoolExecutor(8) as pool:
            many = [*pool.map(lambda i: server.ask("/api/translate", {"texts": [texts[i % 3]]})[2], range(24))]
    assert [one["text"] for one in said] == [one.text for one in wanted]
    assert [one["translations"][0]["text"] for one in many] == [wanted[i % 3].text for i in range(24)]
    assert greedily[0]["text"] == loaded.translate(texts[0], beams=1)[0].text
    np.testing.assert_allclose([one["confidence"] for one in said], [one.confidence for one in wanted], atol=1e-5)
    assert [one["doubtful"] for one in said] == [one.is_doubtful for one in wanted]
    (piece,) = said[0]["pieces"]
    assert np.exp(np.mean(np.log(piece["chances"]))) == pytest.approx(said[0]["confidence"], abs=1e-4)
    crosses = [layer for layer in loaded.attention(texts[0]).layers if layer.kind == "cross"]
    np.testing.assert_allclose(piece["seen"], crosses[-1].weights.mean(axis=0), atol=1e-4)


def test_a_wrong_input_harms_no_other():
    loaded = fresh("xor")
    with served(loaded) as server, ThreadPoolExecutor(8) as pool:
        asked = [["1 0"], ["what"], ["1 1"]] * 8
        said = [*pool.map(lambda inputs: server.ask("/api/predict", {"inputs": inputs}), asked)]
    assert [status for status, _, _ in said] == [200, 400, 200] * 8


# Who may ask, and how


def test_only_who_knows_the_token_is_answered(server):
    for path in ("/api", "/v1/models", "/metrics", "/", "/wrong-token/api"):
        status, headers, said = server.ask(path, Authorization="Bearer wrong")
        assert status == 401 and "token" in said["error"]["message"] and headers["WWW-Authenticate"] == "Bearer"
        assert server.ask(path, Authorization="")[0] == 401
    assert server.ask("/health", Authorization="")[::2] == (200, {"status": "ok", "model": "gpt"})
    assert server.ask(f"/{TOKEN}/api", Authorization="")[0] == 200
    assert server.ask(f"/{TOKEN}/", Authorization="")[2].startswith("<!doctype html>")


def test_no_other_page_and_no_other_name_reaches_it(server):
    for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{server.port}"}, {"Origin": "http://evil.example"},
                    {"Origin": "null"}, {"Host": ""}):  # fmt: skip
        assert server.ask("/api", **headers)[0] == 403
    assert server.ask("/api", Origin=server.address)[0] == 200
    assert server.ask("/api", Host=f"localhost:{server.port}")[0] == 200
    _, headers, _ = server.ask("/api")
    assert "Access-Control-Allow-Origin" not in headers and headers["X-Content-Type-Options"] == "nosniff"


HEAD = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /api HTTP/3.0\r\n\r\n", 505),
        (b"GET http://other/ HTTP/1.1\r\n\r\n", 400),
        (b"GET /api HTTP/1.1\r\nbroken\r\n\r\n", 400),
        (b"GET /api HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /api HTTP/1.1\r\nX: " + 20_000 * b"x" + b"\r\n\r\n", 431),
        (f"POST /api/sample HTTP/1.1\r\n{HEAD}\r\n".encode(), 411),
        (f"POST /api/sample HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(), 411),
        (f"POST /api/sample HTTP/1.1\r\n{HEAD}Content-Length: -1\r\n\r\n".encode(), 400),
        (f"POST /api/sample HTTP/1.1\r\n{HEAD}Content-Length: 99999999\r\n\r\n".encode(), 413),
        (f"DELETE /api HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n".encode(), 405),
        (f"GET /api/sample HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n".encode(), 405),
        (f"GET /../../etc/passwd HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n".encode(), 404),
        (f"GET /api HTTP/1.0\r\n{HEAD}\r\n".encode(), 200),
    ],
)
def test_what_cannot_be_read_is_refused(server, content, status):
    assert server.raw(content).split(b" ")[1] == str(status).encode()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{", "JSON"), (b"[1]", "object"), (b'{"tokens": NaN}', "NaN"), ({"prompt": 3}, "prompt"),
        ({"tokens": 0}, "tokens"), ({"tokens": 10**9}, "tokens"), ({"temperature": -1}, "temperature"),
        ({"tokens": True}, "tokens"), ({"temprature": 1}, "temperature"), ({"stop": [""]}, "stop"),
        ({"prompt": "\ud800"}, "surrogate"), (b'{"a":' * 40_000, "JSON"), ({"<script>": 1}, "field"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(server, content, named):
    status, headers, said = server.ask("/api/sample", content)
    assert status == 400 and named in said["error"]["message"]
    assert (
        headers.get_content_type() == "application/json"
    )  # what a client sent comes back as nothing that a browser runs


def test_slow_and_broken_clients_are_let_go(gpt):
    limits = Limits(sending=0.3, taking=0.5, idle=0.3, connections=8)
    with served(gpt, limits=limits) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        for connection in slow[1:]:
            connection.sendall(b"POST /api/sample HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n")
        until(lambda: len(server.app.server.connections) == 5)
        assert server.ask("/api")[0] == 200
        until(lambda: not server.app.server.connections)
        for connection in slow:
            connection.close()
        many = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
        until(lambda: len(server.app.server.connections) == 8)
        assert server.raw(b"").split(b" ")[1] == b"503"
        for connection in many:
            connection.close()


def test_a_text_that_nobody_waits_for_is_not_computed(gpt):
    with served(gpt, tokens=100_000) as server:
        for stream in (True, False):
            body = json.dumps({"prompt": "Ana", "tokens": 100_000, "stream": stream, "temperature": 0}).encode()
            head = f"POST /api/sample HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n".encode()
            before = server.app.worker.counts["cancelled"]
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(head + body)
                until(lambda: server.app.worker.state["writing"] == 1)
            until(lambda: server.app.worker.state["writing"] == 0)
            assert server.app.worker.counts["cancelled"] == before + 1
        written = server.app.worker.counts["written"]
        time.sleep(0.1)
        assert server.app.worker.counts["written"] == written


def test_who_does_not_take_the_answer_is_let_go(gpt):
    with served(gpt, tokens=100_000, limits=Limits(taking=0.3)) as server:
        body = json.dumps({"prompt": "Ana", "tokens": 100_000, "stream": True, "chances": True}).encode()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(
                f"POST /api/sample HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
            until(lambda: server.app.worker.state["writing"] == 1)
            until(lambda: server.app.worker.counts["cancelled"] == 1)
            until(lambda: server.app.worker.state["writing"] == 0)


def test_more_than_may_wait_are_told_to_come_back(gpt):
    with served(gpt, places=1, queue=2, tokens=100_000) as server:
        body = {"prompt": "Ana", "tokens": 300, "temperature": 0}
        with ThreadPoolExecutor(8) as pool:
            said = [*pool.map(lambda _: server.ask("/api/sample", body)[:2], range(8))]
        statuses = [status for status, _ in said]
        # One that came just before, and is not begun yet, is one of the two that wait.
        assert statuses.count(200) >= 2 and statuses.count(200) + statuses.count(429) == 8 and 429 in statuses
        assert all(headers["Retry-After"] == "1" for status, headers in said if status == 429)


def test_a_stop_lets_texts_end_and_refuses_the_others(gpt):
    with served(gpt, places=1, tokens=10_000) as server, ThreadPoolExecutor(3) as pool:
        first = pool.submit(server.ask, "/api/sample", {"prompt": "Ana", "tokens": 300})
        until(lambda: server.app.worker.state["writing"] == 1)
        second = pool.submit(server.ask, "/api/sample", {"prompt": "Ana", "tokens": 300})
        until(lambda: server.app.worker.state["waiting"] == 1)
        threading.Thread(target=server.app.worker.stop, args=(30,)).start()
        assert first.result(30)[0] == 200 and second.result(30)[0] == 503


def test_metrics_count_what_was_done(server):
    before = server.ask("/metrics")[2]
    server.ask("/api/sample", {"prompt": "Ana", "tokens": 7, "temperature": 0})
    after = server.ask("/metrics")[2]

    def value(text, name):
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(line.rpartition(" ")[2])

    assert value(after, "minigrad_tokens_written_total") == value(before, "minigrad_tokens_written_total") + 7
    until(lambda: value(server.ask("/metrics")[2], "minigrad_writing") == 0)


# The command


def started(*words, **environment):
    command = [sys.executable, "-m", "minigrad", "serve", str(RUNS / "gpt"), "--port", "0", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    return process, process.stdout.readline().rpartition(" ")[2].strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_stop(number):
    process, address = started(MINIGRAD_TOKEN="one-that-was-chosen", MINIGRAD_KERNELS="numpy")
    try:
        with urllib.request.urlopen(f"{address}api") as answer:
            assert json.load(answer)["model"] == "gpt" and "/one-that-was-chosen/" in address
        body = json.dumps({"prompt": "Ana", "tokens": 60, "temperature": 0}).encode()
        with ThreadPoolExecutor(1) as pool:
            text = pool.submit(lambda: urllib.request.urlopen(f"{address}api/sample", body).read())
            until(lambda: b"\nminigrad_writing 1" in urllib.request.urlopen(f"{address}metrics").read() or text.done())
            process.send_signal(number)
            assert len(json.loads(text.result(30))["text"]) > 60
        assert process.wait(30) == 0 and "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("words", "environment", "named"),
    [
        (["--host", "0.0.0.0", "--no-token"], {}, "--no-token is for this machine alone"),
        ([], {"MINIGRAD_TOKEN": "short"}, "16 or more"),
        (["--port", "70000"], {}, "no port 70000"),
        (["--host", "203.0.113.7"], {}, "cannot be listened at"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words, environment, named, capsys, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with ThreadPoolExecutor(1) as pool:  # a thread has no event loop yet; that of a browser's tests may run in this one
        assert pool.submit(main, ["serve", str(RUNS / "gpt"), *words]).result() in (1, 2)
    assert named in capsys.readouterr().err
