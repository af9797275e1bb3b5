"""What minigrad adds to NumPy: per op, in a training step so small that nothing else counts, and at import.

    python -m benchmarks.overhead [--quick] [--json]

The training step is the one in `benchmarks/twins/xor.py`, in every library that is installed, each in its own process;
a library that reaches another loss than the others makes the command fail.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from .measure import (
    ROOT,
    Worker,
    alternate,
    arguments,
    describe,
    excess,
    machine,
    progress,
    ratio,
    serve,
    summary,
    table,
    timed,
    verdict,
)
from .twins.xor import PEERS

MICRO = 1e6


def measure_step(names: Iterable[str], rounds: int, steps: int) -> dict[str, Any]:
    """The XOR step of those libraries that are installed, each in its own process."""
    with ExitStack() as stack:
        progress("XOR step: starting every library")
        workers = [stack.enter_context(Worker("benchmarks.overhead", name)) for name in names]
        missing = {w.name: reason for w in workers if (reason := w.missing())}
        present = {w.name: w for w in workers if w.name not in missing}
        seconds = alternate(
            {name: partial(w.run, steps, warm=steps // 10) for name, w in present.items()}, rounds, "XOR step"
        )
        losses = {name: w.value for name, w in present.items()}
    rounding = 1e-5  # of float32, after many steps
    agree = all(math.isclose(loss, losses["NumPy by hand"], rel_tol=rounding) for loss in losses.values())
    torches = [name for name in present if name.startswith("PyTorch")]
    return {
        "peers": {name: {**summary(s, MICRO / steps), "loss": losses[name]} for name, s in seconds.items()},
        "missing": missing,
        "steps": rounds * (steps + steps // 10),
        "same_loss": agree,
        "ratios": {name: ratio(seconds["minigrad"], s) for name, s in seconds.items() if name != "minigrad"},
        "pytorch": min(torches, key=lambda name: summary(seconds[name])["median"], default=None),
    }


# For each op: minigrad's expression, NumPy's, and what a hand-written forward and backward computes for the gradient g.
OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, lambda g, a, b: (a + b, g, g)),
    "multiply": (lambda a, b: a * b, lambda a, b: a * b, lambda g, a, b: (a * b, g * b, g * a)),
    "matmul": (lambda a, b: a @ b, lambda a, b: a @ b, lambda g, a, b: (a @ b, g @ b.T, a.T @ g)),
    "exp": (lambda a: a.exp(), lambda a: np.exp(a), lambda g, a: ((out := np.exp(a)), g * out)),
    "tanh": (lambda a: a.tanh(), lambda a: np.tanh(a), lambda g, a: ((out := np.tanh(a)), g * (1 - out * out))),
    "sum": (lambda a: a.sum(), lambda a: a.sum(), lambda g, a: (a.sum(), np.full(a.shape, g))),
    "mean": (lambda a: a.mean(), lambda a: a.mean(), lambda g, a: (a.mean(), np.full(a.shape, g / a.size))),
    "reshape": (lambda a: a.reshape(8, 4), lambda a: a.reshape(8, 4), lambda g, a: (a.reshape(8, 4), g.reshape(4, 8))),
    "getitem": (lambda a: a[1:3], lambda a: a[1:3], lambda g, a: (a[1:3], _put(np.zeros_like(a), g))),
    "relu": (lambda a: a.relu(), lambda a: np.maximum(a, 0), lambda g, a: ((out := np.maximum(a, 0)), g * (out > 0))),
}


def _put(zeros: np.ndarray, g: np.ndarray) -> np.ndarray:
    zeros[1:3] = g
    return zeros


def measure_op(name: str, rounds: int, loops: int) -> dict[str, Any]:
    """Microseconds of one op on 4x8 arrays (matmul: 4x8 by 8x4), in NumPy, and how many more in minigrad."""
    import minigrad as mg

    ours, raw, by_hand = OPS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((4, 8), np.float32) for _ in range(raw.__code__.co_argcount)]
    if name == "matmul":
        arrays[1] = arrays[1].T.copy()
    tensors = [mg.tensor(a, requires_grad=True) for a in arrays]
    g = np.ones_like(raw(*arrays))
    seed = mg.tensor(g)

    def both_ways() -> None:
        ours(*tensors).backward(seed)
        for t in tensors:
            t.grad = None

    def unrecorded() -> float:
        with mg.no_grad():
            return timed(lambda: ours(*tensors), loops)

    seconds = alternate(
        {
            "NumPy": lambda: timed(lambda: raw(*arrays), loops),
            "minigrad": lambda: timed(lambda: ours(*tensors), loops),
            "minigrad, no grad": unrecorded,
            "NumPy with backward": lambda: timed(lambda: by_hand(g, *arrays), loops),
            "minigrad with backward": lambda: timed(both_ways, loops),
        },
        rounds,
        name,
    )
    scale = MICRO / loops
    return {
        "numpy": summary(seconds["NumPy"], scale),
        "numpy_with_backward": summary(seconds["NumPy with backward"], scale),
        "recorded": excess(seconds["minigrad"], seconds["NumPy"], scale),
        "no_grad": excess(seconds["minigrad, no grad"], seconds["NumPy"], scale),
        "with_backward": excess(seconds["minigrad with backward"], seconds["NumPy with backward"], scale),
    }


IMPORT = (
    "from time import perf_counter as now; a = now(); import numpy; b = now(); import minigrad; print(b - a, now() - b)"
)


def measure_import(rounds: int) -> dict[str, Any]:
    """Seconds of `import numpy` and, in the same fresh process, of `import minigrad` after it, both already compiled."""
    rows = []
    with tempfile.TemporaryDirectory() as compiled:
        surroundings = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
        for i in range(rounds + 1):  # the first only compiles the files
            progress(f"import: round {i} of {rounds}")
            command = [sys.executable, "-c", IMPORT]
            done = subprocess.run(command, cwd=ROOT, env=surroundings, text=True, capture_output=True, check=True)
            rows.append([float(word) for word in done.stdout.split()])
    numpy, minigrad = zip(*rows[1:])
    return {"numpy": summary(numpy), "minigrad": summary(minigrad)}


def show(result: dict[str, Any]) -> None:
    """The result for people."""
    print(describe(result["machine"]))
    print("\nMicroseconds on 4x8 float32 arrays: NumPy's own, and what minigrad adds (medians)\n")
    show_ops(result["ops"])
    steps = result["xor_step"]["steps"]
    print(f"\nOne SGD step on XOR, microseconds (2-8-1, batch 4, float32; loss after {steps} steps)\n")
    show_step(result["xor_step"])
    numpy, minigrad = result["import"]["numpy"], result["import"]["minigrad"]
    print(f"\nimport numpy: median {numpy['median']:.3f} s, minimum {numpy['minimum']:.3f} s")
    reached = verdict(minigrad["median"], 0.15, " s")
    print(f"import minigrad after it: minimum {minigrad['minimum']:.3f} s, median {reached}")


def show_ops(ops: dict[str, Any]) -> None:
    columns = ("numpy", "recorded", "no_grad", "numpy_with_backward", "with_backward")
    head = ("op", "NumPy", "+ recorded", "+ no_grad", "NumPy with backward", "+ with backward")
    print(table(head, ([name, *(f"{times[c]['median']:.2f}" for c in columns)] for name, times in ops.items())))


def show_step(step: dict[str, Any]) -> None:
    ratios, rows = step["ratios"], []
    for name, peer in sorted(step["peers"].items(), key=lambda item: item[1]["median"]):
        times = f"{ratios[name]:.2f} x" if name in ratios else ""
        rows.append([name, f"{peer['median']:.1f}", f"{peer['minimum']:.1f}", times, f"{peer['loss']:.7g}"])
    print(table(("library", "median", "minimum", "minigrad takes", "loss"), rows))
    for name, reason in step["missing"].items():
        print(f"{name}: left out ({reason})")
    print("the losses agree" if step["same_loss"] else "THE LOSSES DIFFER: the libraries did not run the same training")
    if step["pytorch"]:
        print(f"minigrad / {step['pytorch']} (the faster setting): {verdict(ratios[step['pytorch']], 0.6)}")
    for name in ("MyGrad", "HIPS autograd"):
        if name in ratios:
            print(f"minigrad / {name}: {verdict(ratios[name], 1)}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument(
        "--alone", action="store_true", help="leave out the other libraries: only minigrad and NumPy by hand"
    )
    options = parser.parse_args()
    if options.worker:
        serve(PEERS[options.worker])
        return 0
    rounds, steps, loops = (2, 50, 50) if options.quick else (15, 1000, 1000)
    names = ["minigrad", "NumPy by hand"] if options.alone else list(PEERS)
    result = {
        "benchmark": "overhead",
        "quick": options.quick,
        "machine": machine(),
        "ops": {name: measure_op(name, rounds, loops) for name in OPS},
        "xor_step": measure_step(names, rounds, steps),
        "import": measure_import(rounds),
    }
    progress("")
    show(result)
    if options.json:
        print(json.dumps(result))
    return 0 if result["xor_step"]["same_loss"] else 1


if __name__ == "__main__":
    sys.exit(main())
