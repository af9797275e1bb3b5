"""What one step of each optimiser takes, beside PyTorch's: all parameters of a GPT have gradients, nothing else is done.

    python -m benchmarks.optim [--quick] [--json] [--alone] [--size SIZE …]

The parameters are those of the GPTs in `SIZES`, in float32. PyTorch is measured as it comes and, where it has that, with
`fused=True`. All run in one process, since minigrad's rules use no threads that PyTorch's could disturb, and each takes
a step before its time is taken, while PyTorch's threads fall asleep. Weights that differ in the end make the command fail.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .measure import alternate, arguments, describe, machine, progress, ratio, summary, table, timed

MILLI = 1e3
SIZES = {"small": (4, 128, 65, 64), "large": (6, 384, 65, 256)}  # layers, width, vocabulary, positions
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 1e-3}),
    "SGD with momentum": ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    "RMSprop": ("RMSprop", {"lr": 1e-4}),
    "Adam": ("Adam", {"lr": 1e-4}),
    "AdamW": ("AdamW", {"lr": 1e-4}),
    "LAMB": ("LAMB", {"lr": 1e-4}),
}
PEERS: dict[str, dict[str, bool]] = {
    "minigrad": {},
    "PyTorch": {},
    "PyTorch, fused": {"fused": True},
}


def shapes(size: str) -> Iterator[tuple[int, ...]]:
    """The shapes of all parameters of a GPT with tied embeddings."""
    layers, d, vocabulary, positions = SIZES[size]
    yield from ((vocabulary, d), (positions, d))
    for _ in range(layers):
        yield from ((d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,))
        yield from ((d,), (d,), (4 * d, d), (4 * d,), (d, 4 * d), (d,))
    yield from ((d,), (d,))


def make(peer: str, optimizer: str, size: str) -> tuple[Callable[[], Any], list[Any]]:
    """One step of an optimiser in a library, and the weights that it changes."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes(size)]
    grads = [rng.standard_normal(shape, np.float32) for shape in shapes(size)]
    name, options = OPTIMIZERS[optimizer]
    if peer == "minigrad":
        import minigrad as mg
        from minigrad import optim

        params = [mg.tensor(a, requires_grad=True) for a in arrays]
        for p, g in zip(params, grads):
            p.grad = mg.tensor(g)
        return getattr(optim, name)(params, **options).step, params
    import torch

    others = [torch.tensor(a, requires_grad=True) for a in arrays]
    for other, g in zip(others, grads):
        other.grad = torch.tensor(g)
    return getattr(torch.optim, name)(others, **options, **PEERS[peer]).step, others


def candidates(optimizer: str, alone: bool) -> list[str]:
    """PyTorch has no LAMB, and no fused RMSprop."""
    without = {"LAMB": set(PEERS) - {"minigrad"}, "RMSprop": {"PyTorch, fused"}}.get(optimizer, set())
    return ["minigrad"] if alone else [peer for peer in PEERS if peer not in without]


def measure(optimizer: str, size: str, alone: bool, rounds: int, steps: int) -> dict[str, Any]:
    """Milliseconds a step, and how they compare."""
    made, missing = {}, {}
    for name in candidates(optimizer, alone):
        try:
            made[name] = make(name, optimizer, size)
        except ImportError as error:
            missing[name] = str(error)

    def run(step: Callable[[], Any]) -> float:
        step()
        return timed(step, steps)

    turns = {name: partial(run, step) for name, (step, _) in made.items()}
    seconds = alternate(turns, rounds, f"{optimizer}, {size}")
    weights = {name: [p.detach().numpy() for p in params] for name, (_, params) in made.items()}
    pairs = [pair for arrays in weights.values() for pair in zip(arrays, weights["minigrad"])]
    return {
        "peers": {name: summary(s, MILLI / steps) for name, s in seconds.items()},
        "ratios": {name: ratio(seconds["minigrad"], s) for name, s in seconds.items() if name != "minigrad"},
        "missing": missing,
        "same_weights": all(np.allclose(a, b, rtol=0, atol=1e-4) for a, b in pairs),
    }


def show(result: dict[str, Any]) -> None:
    """The result for people."""
    print(describe(result["machine"]))
    for size, measured in result["steps"].items():
        count = sum(math.prod(shape) for shape in shapes(size))
        tensors = sum(1 for _ in shapes(size))
        print(f"\nMilliseconds a step, {count:,} float32 parameters in {tensors} tensors\n")
        rows = [
            [
                optimizer if peer == "minigrad" else "",
                peer,
                f"{times['median']:.3f}",
                f"{times['minimum']:.3f}",
                f"{m['ratios'][peer]:.2f} x" if peer in m["ratios"] else "",
            ]
            for optimizer, m in measured.items()
            for peer, times in m["peers"].items()
        ]
        print(table(("optimiser", "library", "median", "minimum", "minigrad takes"), rows))
    different = [name for m in result["steps"].values() for name, one in m.items() if not one["same_weights"]]
    print("\nthe weights agree" if not different else f"\nTHE WEIGHTS DIFFER: {', '.join(different)}")
    missing = {f"{k}: {v}" for m in result["steps"].values() for one in m.values() for k, v in one["missing"].items()}
    for line in sorted(missing):
        print(f"left out: {line}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--alone", action="store_true", help="leave out PyTorch")
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES), help="which GPT's parameters")
    options = parser.parse_args()
    rounds = 2 if options.quick else 15
    steps = {size: (2 if options.quick else {"small": 20, "large": 3}[size]) for size in options.size}
    result = {
        "benchmark": "optim",
        "quick": options.quick,
        "machine": machine(),
        "steps": {
            size: {name: measure(name, size, options.alone, rounds, steps[size]) for name in OPTIMIZERS}
            for size in options.size
        },
    }
    progress("")
    show(result)
    if options.json:
        print(json.dumps(result))
    return 0 if all(one["same_weights"] for m in result["steps"].values() for one in m.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
