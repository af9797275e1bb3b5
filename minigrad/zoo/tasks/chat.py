"""The verb `chat` of language models: a conversation at the keyboard, or line by line from a pipe."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, printable
from .task import TaskCommand, utf8_text, whole_number

if TYPE_CHECKING:
    from ...decode.chat import Chat

__all__ = ["CHAT", "chat"]

TOKENS, TEMPERATURE, TOP_P = 512, 0.7, 0.95
HELP = "type a text and press Enter; Ctrl-C stops an answer, /new forgets the conversation, an empty line ends it"


def chat(loaded: Any, system: str | None = None, **options: Any) -> Chat:
    """A conversation with a model, which has the turns so far: `"".join(loaded.chat().say("Hello!"))`."""
    from ...decode.chat import Chat

    return Chat(loaded.model, loaded.tokenizer, system, **options)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="an imported model with a chat template, or a run trained from one"
    )
    parser.add_argument(
        "--system", type=utf8_text, metavar="TEXT", help="what the model is told before the conversation"
    )
    parser.add_argument(
        "--tokens",
        type=whole_number,
        default=TOKENS,
        metavar="N",
        help=f"tokens of an answer, at most (default: {TOKENS})",
    )
    parser.add_argument(
        "--temperature", type=float, default=TEMPERATURE, metavar="T",
        help=f"0 always takes the most likely token (default: {TEMPERATURE})",
    )  # fmt: skip
    parser.add_argument(
        "--top-p", type=float, default=TOP_P, metavar="P",
        help=f"draw from the fewest tokens whose probabilities sum to P (default: {TOP_P})",
    )  # fmt: skip
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="random seed (default: 0)")


def _sampling(options: Namespace) -> Any:
    from ...decode import Sampling

    return Sampling(options.temperature, top_p=options.top_p if options.temperature else None)


def _run(loaded: Any, options: Namespace) -> None:
    is_person = sys.stdin.isatty()
    conversation = loaded.chat(options.system, notice=_notice)
    if is_person:
        print(HELP)
    turn = 0
    while True:
        try:
            line = input("> " if is_person else "").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            return
        if not line:
            if is_person:
                return
            continue
        if line == "/new":
            conversation = loaded.chat(options.system, notice=_notice)
            continue
        _answer(conversation, line, options, options.seed + turn)
        turn += 1


def _answer(conversation: Chat, line: str, options: Namespace, seed: int) -> None:
    """Print an answer as it comes; Ctrl-C stops it, and the conversation goes on."""
    pieces = conversation.say(line, tokens=options.tokens, sampling=_sampling(options), seed=seed)
    try:
        for piece in pieces:
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stdout.write(" …")
    finally:
        pieces.close()  # type: ignore[attr-defined]  # what was said so far is part of the conversation
        sys.stdout.write("\n")
        sys.stdout.flush()


def _check(options: Namespace) -> None:
    if options.system is not None and not options.system.strip():
        raise ArgumentError("--system needs a text that is not empty")
    _sampling(options)


def _notice(text: str) -> None:
    print(printable(f"minigrad: {text}"), file=sys.stderr, flush=True)


CHAT = TaskCommand(
    "talk with a language model", "minigrad chat smollm --system 'Answer in one sentence.'", _arguments, _run, _check
)
