"""Train over TCP among hosts that are network namespaces of this machine, lose one, and go on with the other.

    python -m benchmarks.hosts [--rate 100] [--quick] [--json] [--write]

Needs root and `ip` of iproute2. Two hosts with addresses of their own hang on a bridge, each behind a link of so many megabits a second (and of a
millisecond, where the system offers netem). Each has two ranks, which divide matrices; the hosts divide the blocks. After the run, the
weights are compared with those of one process. Then a second run loses a host: its cable is pulled. The job has to end with a message,
and the remaining host to finish the run with its two ranks, to the same weights.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .measure import arguments, machine
from .results import add_write_option, conclude
from .soak import helpers

HOSTS, NET, TIMEOUT = ("10.77.0.1", "10.77.0.2"), "10.77.0", 10
LAYOUT = {"tensor": 2, "pipeline": 2, "stages": (2, 1)}
TITLE = "Several hosts, as network namespaces"


def ip(*words: object) -> None:
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


@contextmanager
def hosts(rate: int, folder: Path) -> Iterator[tuple[Path, bool]]:
    """Two namespaces on a bridge; gives the program that starts a command on one of them, and whether links have a delay."""
    try:
        ip("link", "add", "mghosts", "type", "bridge")
        ip("address", "add", f"{NET}.254/24", "dev", "mghosts")
        ip("link", "set", "mghosts", "up")
        made = [_host(number, address, rate) for number, address in enumerate(HOSTS, 1)]
        delayed = all(made)
        launcher = folder / "launcher"
        launcher.write_text(
            '#!/bin/sh\n[ "$1" = -x ] && shift\nhost=$1; shift\nexec ip netns exec mghost${host##*.} sh -c "$*"\n'
        )
        launcher.chmod(0o700)
        yield launcher, delayed
    finally:
        ends = [("link", "del", f"mgcable{n}") for n in (1, 2)] + [("netns", "del", f"mghost{n}") for n in (1, 2)]
        for words in (*ends, ("link", "del", "mghosts")):
            subprocess.run(["ip", *words], capture_output=True)


def _host(number: int, address: str, rate: int) -> bool:
    name, cable = f"mghost{number}", f"mgcable{number}"
    ip("netns", "add", name)
    ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", cable, "master", "mghosts", "up")
    ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        ip("-n", name, "link", "set", device, "up")
    shape = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root"]
    slow = subprocess.run([*shape, "netem", "delay", "1ms", "rate", f"{rate}mbit"], capture_output=True)
    if slow.returncode:
        limits = ["tbf", "rate", f"{rate}mbit", "burst", "64kb", "latency", "400ms"]
        subprocess.run([*shape, *limits], check=True, capture_output=True)
    return slow.returncode == 0


def sent(number: int) -> int:
    """The bytes that a host has sent."""
    path = "/sys/class/net/eth0/statistics/tx_bytes"
    done = subprocess.run(
        ["ip", "netns", "exec", f"mghost{number}", "cat", path], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def start(folder: Path, job: dict[str, Any], launcher: Path | None, used: tuple[str, ...]) -> subprocess.Popen[str]:
    """A job, two ranks on each of the hosts; without a launcher, one process here."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    command = [sys.executable, "-m", "support.parallel_ranks", str(folder), json.dumps(job)]
    env = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "MINIGRAD_TIMEOUT": str(TIMEOUT),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    if launcher is not None:
        places = ["-n", str(2 * len(used)), "-ppn", "2", "-hosts", ",".join(used), "-iface", "mghosts"]
        env |= {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "MPIR_CVAR_NOLOCAL": "1"}  # or it would share memory
        command = [str(mpiexec), *places, "-launcher", "ssh", "-launcher-exec", str(launcher), *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finish(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(errors[-2000:])
    return out


def difference(folder: Path, one: str, other: str) -> float:
    first, second = (np.load(folder / f"{name}.npz") for name in (one, other))
    return max(float(np.abs(first[key] - second[key]).max()) for key in first.files)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rate", type=int, default=100, help="megabits a second of a link (default 100)")
    add_write_option(parser)
    options = parser.parse_args()
    if not hasattr(os, "geteuid") or os.geteuid() or shutil.which("ip") is None:
        print("skipped: network namespaces need root, and ip of iproute2")
        return 0
    helpers()
    folder, steps = Path(tempfile.mkdtemp()), 25 if options.quick else 50
    task = {"model": "gpt", "steps": steps, "save_every": 5}
    try:
        finish(start(folder, {**task, "layout": {}, "out": "alone"}, None, ()))
        with hosts(options.rate, folder) as (launcher, delayed):
            begin, before = time.monotonic(), sent(1)
            finish(start(folder, {**task, "layout": LAYOUT, "out": "together"}, launcher, HOSTS))
            seconds, bytes_ = time.monotonic() - begin, sent(1) - before
            run = start(folder, {**task, "layout": LAYOUT, "out": "lost"}, launcher, HOSTS)
            while run.poll() is None and not any((folder / "lost").glob("*/step-0000001*")):
                time.sleep(0.01)
            ip("link", "set", "mgcable2", "down")
            pulled = time.monotonic()
            _, errors = run.communicate(timeout=300)
            ended = time.monotonic() - pulled
            said = [line for line in errors.splitlines() if line.startswith(("rank ", "TimeoutError"))][:2]
            finish(start(folder, {**task, "layout": {"tensor": 2}, "out": "lost"}, launcher, HOSTS[:1]))
        errors_of = {name: difference(folder, "alone", name) for name in ("together", "lost")}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    link = f"{options.rate} Mbit/s" + (" and 1 ms" if delayed else "")
    lines = [
        f"2 hosts of 2 ranks, {link} between them, tensor=2 in a host, pipeline=2 between them: {steps} steps in {seconds:.1f} s",
        f"{bytes_:,} bytes sent by the first host; furthest from one process: {errors_of['together']:.0e}",
        f"a host lost in the run: the job ended after {ended:.1f} s with exit code {run.returncode}, and said",
        *(f"  {line.strip()}" for line in said),
        f"the other host finished the run with tensor=2; furthest from one process: {errors_of['lost']:.0e}",
    ]
    good = (
        max(errors_of.values()) < 1e-10
        and bytes_ > 100_000
        and run.returncode != 0
        and bool(said)
        and ended < TIMEOUT + 10
    )
    result = {"benchmark": "hosts", "good": good, "errors": errors_of, "ended": ended, "bytes": bytes_}
    conclude(options, TITLE, "\n".join(lines), {**result, "machine": machine(), "detail": {"machine": machine()}})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
