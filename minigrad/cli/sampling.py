"""`minigrad sample`: a trained language model writes on, and what it writes is shown as it comes."""

from __future__ import annotations

import sys
from argparse import Namespace

from .parsing import Command, Parser, Usage, calling, flag_threads, readable, use_threads, whole_number
from .telling import plain

__all__ = ["SAMPLE"]

LENGTH, TEMPERATURE = 200, 0.8


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="a run's directory, a checkpoint file, or an exported folder"
    )
    parser.add_argument(
        "prompt", nargs="?", default="", type=readable, metavar="PROMPT",
        help="what it writes on after (default: nothing)",
    )  # fmt: skip
    parser.add_argument(
        "--length", type=whole_number, default=LENGTH, metavar="N", help=f"tokens to write, at most (default: {LENGTH})"
    )
    parser.add_argument(
        "--temperature", type=float, metavar="T",
        help=f"below 1 it takes fewer risks, above 1 more; 0 is --greedy (default: {TEMPERATURE})",
    )  # fmt: skip
    parser.add_argument("--greedy", action="store_true", help="always the most likely token")
    parser.add_argument("--top-k", type=int, metavar="K", help="only from the K most likely tokens")
    parser.add_argument("--top-p", type=float, metavar="P", help="only from the fewest that are together so likely")
    parser.add_argument(
        "--repetition-penalty", type=float, default=1.0, metavar="R", help="above 1 it repeats itself less (default: 1)"
    )
    parser.add_argument(
        "--stop", action="append", default=[], type=readable, metavar="TEXT",
        help="end before this text; may be given more than once",
    )  # fmt: skip
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="of what is drawn (default: 0)")
    parser.add_argument(
        "--no-cache", action="store_true", help="compute everything anew for each token: slower, the same"
    )
    flag_threads(parser)


def _sample(options: Namespace) -> int:
    from ..decode import Sampling
    from ..zoo import load

    if options.greedy and options.temperature is not None:
        raise Usage("--greedy and --temperature exclude each other: give one of them")
    if "" in options.stop:
        raise Usage("--stop needs a text that is not empty")
    temperature = TEMPERATURE if options.temperature is None else options.temperature
    with calling():
        sampling = Sampling(
            0.0 if options.greedy else temperature, options.top_k, options.top_p, options.repetition_penalty
        )
    use_threads(options.threads)
    loaded = load(options.run_directory)
    if "sample" not in loaded.spec.verbs:
        raise Usage(f"{loaded.spec.name} writes no text: it can {', '.join(loaded.verbs)}")
    pieces = loaded.sample(
        options.prompt, length=options.length, sampling=sampling, stop=options.stop, seed=options.seed,
        cached=not options.no_cache, notice=_notice,
    )  # fmt: skip
    try:
        _show(options.prompt)
        for piece in pieces:
            _show(piece)
    finally:  # whoever interrupts it gets a whole line
        _show("\n")
    return 0


def _show(text: str) -> None:
    sys.stdout.write(plain(text))
    sys.stdout.flush()


def _notice(text: str) -> None:
    print(plain(f"minigrad: {text}"), file=sys.stderr, flush=True)


SAMPLE = Command(
    "let a trained language model write on",
    "minigrad sample runs/gpt 'Once upon a time' --length 300 --top-p 0.9 --seed 1",
    _arguments,
    _sample,
)
