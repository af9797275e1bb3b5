"""The task "language model": `sample` continues a text, token by token, `chat` answers in a conversation."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, printable
from .chat import CHAT, chat
from .task import Task, TaskCommand, utf8_text, whole_number

if TYPE_CHECKING:
    from ...decode import Sampling

__all__ = ["LANGUAGE_MODEL"]

TOKENS, TEMPERATURE = 200, 0.8


def sample(loaded: Any, prompt: str = "", **options: Any) -> Iterator[str]:
    """Continue a prompt, in pieces as they come; the options are those of `minigrad.decode.continue_text`.

    The model is called `model(tokens, cache=cache)`, has `new_cache()` and `context`, and comes with a tokenizer.
    """
    from ...decode import continue_text

    for what, is_there in {
        "a tokenizer in its Data": loaded.tokenizer is not None,
        "`context` and `new_cache()` in its model": hasattr(loaded.model, "context")
        and hasattr(loaded.model, "new_cache"),
    }.items():
        if not is_there:
            raise ArgumentError(
                f"{loaded.spec.name} cannot sample", what, "none", "add it, or a verb `sample` to the spec"
            )
    return continue_text(loaded.model, loaded.tokenizer, prompt, **options)


def logits(loaded: Any, ids: Any, mask: Any = None) -> Any:
    """The logits of the token after each, as an array: token numbers (B, T) -> (B, T, vocabulary).

    `mask` (B, T) is False for padding, before or after the tokens.
    """
    from ...engine.modes import no_grad
    from ...ops.creation import tensor

    with no_grad():
        given = {} if mask is None else {"mask": mask}
        return loaded.model(tensor(ids), **given).numpy()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="a run's directory, a checkpoint file, or an exported folder"
    )
    parser.add_argument(
        "prompt", nargs="?", default="", type=utf8_text, metavar="PROMPT",
        help="the text to continue (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--tokens", type=whole_number, default=TOKENS, metavar="N", help=f"tokens to write, at most (default: {TOKENS})"
    )
    parser.add_argument(
        "--temperature", type=float, metavar="T",
        help=f"below 1 likely tokens are drawn more often, above 1 less; 0 is --greedy (default: {TEMPERATURE})",
    )  # fmt: skip
    parser.add_argument("--greedy", action="store_true", help="always take the most likely token")
    parser.add_argument("--top-k", type=int, metavar="K", help="draw from the K most likely tokens only")
    parser.add_argument(
        "--top-p", type=float, metavar="P", help="draw from the fewest tokens whose probabilities sum to P"
    )
    parser.add_argument(
        "--repetition-penalty", type=float, default=1.0, metavar="R", help="above 1 it repeats itself less (default: 1)"
    )
    parser.add_argument(
        "--stop", action="append", default=[], type=utf8_text, metavar="TEXT",
        help="end before this text; may be given more than once",
    )  # fmt: skip
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("--no-cache", action="store_true", help="use no key-value cache: slower, with the same result")


def _sampling(options: Namespace) -> Sampling:
    from ...decode import Sampling

    temperature = TEMPERATURE if options.temperature is None else options.temperature
    return Sampling(0.0 if options.greedy else temperature, options.top_k, options.top_p, options.repetition_penalty)


def _check(options: Namespace) -> None:
    if options.greedy and options.temperature is not None:
        raise ArgumentError("--greedy and --temperature exclude each other", fix="give one of them")
    if "" in options.stop:
        raise ArgumentError("--stop needs a text that is not empty")
    _sampling(options)


def _run(loaded: Any, options: Namespace) -> None:
    pieces = loaded.sample(
        options.prompt, tokens=options.tokens, sampling=_sampling(options), stop=options.stop, seed=options.seed,
        cached=not options.no_cache, notice=_notice,
    )  # fmt: skip
    try:
        _show(options.prompt)
        for piece in pieces:
            _show(piece)
    finally:  # an interrupted text, too, ends its line
        _show("\n")


def _show(text: str) -> None:
    sys.stdout.write(printable(text))
    sys.stdout.flush()


def _notice(text: str) -> None:
    print(printable(f"minigrad: {text}"), file=sys.stderr, flush=True)


LANGUAGE_MODEL = Task(
    "language model",
    verbs={"sample": sample, "chat": chat, "logits": logits},
    commands={
        "sample": TaskCommand(
            "continue a text with a trained language model",
            "minigrad sample runs/gpt 'Once upon a time' --tokens 300 --top-p 0.9 --seed 1",
            _arguments,
            _run,
            _check,
        ),
        "chat": CHAT,
    },
    first_use=lambda run, text: ["sample", run, text],
)
