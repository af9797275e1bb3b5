"""`minigrad serve`: a trained or imported model over HTTP."""

from __future__ import annotations

import os
import secrets
import sys
from argparse import Namespace

from .console import printable
from .parser import Command, Parser, Usage, count, flag_threads, use_threads, whole_number

__all__ = ["SERVE"]

HOST, PORT, PLACES, QUEUE, TOKENS = "127.0.0.1", 8000, 16, 64, 1024
SHORTEST = 16  # characters of a token that is chosen by hand
VARIABLE = "MINIGRAD_TOKEN"


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "run_directory",
        metavar="DIR",
        help="a run's directory, a checkpoint file, an exported folder, or an imported model",
    )
    parser.add_argument(
        "--host", default=HOST, metavar="H", help=f"the address to listen at; others than this machine's own are open to a network (default: {HOST})"
    )  # fmt: skip
    parser.add_argument("--port", type=whole_number, default=PORT, metavar="N", help=f"0 takes any (default: {PORT})")
    parser.add_argument(
        "--no-token", action="store_true",
        help=f"answer everybody on this machine; else a token is drawn, or taken from the variable {VARIABLE}",
    )  # fmt: skip
    parser.add_argument(
        "--places", type=count, default=PLACES, metavar="N", help=f"texts that are written at once (default: {PLACES})"
    )
    parser.add_argument(
        "--queue", type=count, default=QUEUE, metavar="N", help=f"requests that wait; more are told to come back (default: {QUEUE})"
    )  # fmt: skip
    parser.add_argument(
        "--tokens", type=count, default=TOKENS, metavar="N", help=f"tokens of an answer, at most (default: {TOKENS:,})"
    )
    flag_threads(parser)


def _serve(options: Namespace) -> int:
    from ..serve import run
    from ..serve.app import is_loopback
    from ..zoo import load

    token = os.environ.get(VARIABLE) or None
    if token is not None and not (len(token) >= SHORTEST and token.isascii() and token.replace("-", "").isalnum()):
        raise Usage(f"{VARIABLE} has to be {SHORTEST} or more letters, digits and -")
    if options.no_token:
        if token is not None:
            raise Usage(f"--no-token and {VARIABLE} exclude each other: give one of them")
        if not is_loopback(options.host):
            raise Usage(
                f"--no-token is for this machine alone, and {options.host} is open to a network: leave out one of them"
            )
    elif token is None:
        token = secrets.token_hex(16)
    if options.port > 65_535:
        raise Usage(f"there is no port {options.port}: give one up to 65535, or 0 for any")
    use_threads(options.threads)
    loaded = load(options.run_directory)

    def ready(address: str) -> None:
        lines = [f"{loaded.spec.name} answers at {address}"]
        if token is not None:
            lines.append(f"for programs: {address.rpartition(token)[0]}v1 or /api, with the token {token}")
        print(printable("\n".join([*lines, "Ctrl-C stops it"])), flush=True)
        if not is_loopback(options.host):
            print("minigrad: this address is open to a network, and nothing is encrypted", file=sys.stderr, flush=True)

    limits = {"places": options.places, "queue": options.queue, "tokens": options.tokens}
    run(loaded, host=options.host, port=options.port, token=token, ready=ready, **limits)
    return 0


SERVE = Command(
    "serve a model: a page, JSON, and OpenAI's interface", "minigrad serve runs/gpt --port 8000", _arguments, _serve
)
