"""The plugin `translator` and its twin in PyTorch learn the shipped phrasebook side by side: are their losses the same?

    python -m benchmarks.parity [--quick] [--json] [--write]

Both begin with the weights that the plugin draws, and see the batches that its sampler gives, padded as they are. AdamW,
its rate (up in a straight line, then down with the square root of the step), clipping and label smoothing are the same,
all in float64 and without dropout. Each has one thread: in a model this small, more would only wait for each other. A loss
that differs by more than 1e-6 in any of 200 steps makes the command fail. `--json` prints {"difference": the largest one,
"detail": …} last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice, repeat
from typing import Any

from .measure import arguments, machine, progress, table
from .results import add_write_option, conclude
from .train_step import largest_difference
from .twins.gpt import MAX_NORM

TITLE = "The translator beside its twin in PyTorch"
STEPS, QUICK_STEPS, EVERY = 200, 5, 20
LARGEST = 1e-6  # how far losses may be apart
ADAMW: dict[str, Any] = {"lr": 3e-3, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.01}
WARMUP = 50
PLUGIN: dict[str, Any] = {
    "corpus": "phrasebook", "pairs": 4000, "depth": 2, "dim": 64, "heads": 4, "hidden": 256, "dropout": 0.0,
    "smoothing": 0.1, "batch": 384,
}  # fmt: skip


def prepared() -> tuple[Any, Any]:
    """The model of the plugin with the weights it begins with, in float64, and its data."""
    from minigrad_models.translator import TranslatorConfig, spec

    import minigrad as mg

    mg.manual_seed(0)
    data = spec.data(TranslatorConfig(**PLUGIN), None)
    return spec.build(data.config).to(dtype="float64"), data


def minigrad_step(model: Any, batches: Iterator[Any]) -> Callable[[], float]:
    """A step as the Trainer takes it; it returns the loss before the step."""
    from minigrad_models.translator.model import translation_loss

    from minigrad.optim import AdamW, InverseSqrt
    from minigrad.runtime.threads import single_threaded_blas
    from minigrad.train.train_step import TrainStep

    optimizer = AdamW(model.parameters(), **ADAMW)
    schedule = InverseSqrt(optimizer, WARMUP)
    stepper = TrainStep(model, translation_loss, optimizer, scaler=None, clip_norm=MAX_NORM, threads=1)

    def step() -> float:
        with single_threaded_blas():
            outcome = stepper.step([next(batches)], schedule.steps + 1)
        schedule.step()
        return outcome.totals.means()["loss"]

    return step


def torch_step(model: Any, config: Any, batches: Iterator[Any]) -> Callable[[], float]:
    """The same step of the twin, which is given the weights of the model."""
    import torch

    from .twins.gpt_torch import training_step
    from .twins.translator_torch import Translator, loss_of, torch_state

    sizes = config.vocab, config.dim, config.heads, config.hidden, config.depth, config.max_length + 1
    torch.set_num_threads(1)
    twin = Translator(*sizes).double()
    twin.load_state_dict(torch_state({name: p.detach().numpy() for name, p in model.named_parameters()}))
    optimizer = torch.optim.AdamW(twin.parameters(), **ADAMW)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / WARMUP, (WARMUP / (n + 1)) ** 0.5))

    def next_loss() -> Any:
        batch = next(batches)
        return loss_of(twin, batch.source.ids, batch.target.ids, config.smoothing)

    advance = training_step(optimizer, next_loss)

    def step() -> float:
        loss = advance().item()
        schedule.step()
        return loss

    return step


def compare(steps: int) -> dict[str, Any]:
    """The losses of both in each step, and what they were computed from."""
    model, data = prepared()
    batches = list(islice((batch for epoch in repeat(data.train) for batch in epoch), steps))
    theirs = torch_step(model, data.config, iter(batches))  # first: it copies the weights before they are changed
    ours = minigrad_step(model, iter(batches))
    curves = {name: losses_of(name, step, steps) for name, step in (("minigrad", ours), ("PyTorch", theirs))}
    there = sum(side.tokens for batch in batches for side in (batch.source, batch.target))
    places = sum(side.ids.size for batch in batches for side in (batch.source, batch.target))
    return {"losses": curves, "padding": 1 - there / places, "vocabulary": data.config.vocab, "steps": steps}


def losses_of(name: str, step: Callable[[], float], steps: int) -> list[float]:
    """The loss of each step."""
    losses = []
    for number in range(1, steps + 1):
        progress(f"twin: step {number} of {steps}, {name}")
        losses.append(step())
    return losses


def report(one: Mapping[str, Any]) -> str:
    """The losses of some steps for people, and the largest difference of all."""
    steps, difference = one["steps"], largest_difference(one["losses"])
    rows = [
        [str(n), f"{ours:.9f}", f"{theirs:.9f}", f"{abs(ours - theirs):.1e}"]
        for n, ours, theirs in zip(count(1), *one["losses"].values())
        if n in (1, steps) or n % EVERY == 0
    ]
    p = PLUGIN
    sizes = f"{p['depth']}+{p['depth']} layers, d {p['dim']}, {p['heads']} heads, hidden {p['hidden']}"
    learned = f"vocabulary {one['vocabulary']}, float64; phrasebook and grammar, {one['padding']:.0%} padding"
    mark = "they are the same" if difference <= LARGEST else "THEY DIFFER"
    return "\n".join(
        [
            f"translator ({sizes}, {learned})",
            table(("step", "minigrad", "PyTorch", "difference"), rows),
            f"losses of {steps} steps: at most {difference:.1e} apart (to reach: at most {LARGEST:g}): {mark}",
        ]
    )


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    options = parser.parse_args()
    try:
        measured = compare(QUICK_STEPS if options.quick else STEPS)
    except ImportError as error:
        print(f"twin: nothing to compare: {error}", file=sys.stderr)
        return 1
    progress("")
    difference = largest_difference(measured["losses"])
    detail = {"benchmark": "twin", "quick": options.quick, "machine": machine(), **measured}
    conclude(options, TITLE, report(measured), {"difference": difference, "detail": detail})
    return 0 if difference <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
