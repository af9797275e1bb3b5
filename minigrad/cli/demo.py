"""`minigrad demo`: a translator that learns the shipped phrasebook from nothing, is judged, and shown in a report."""

from __future__ import annotations

from argparse import Namespace

from .catalogue import configured, looked_up
from .parsing import Command, Parser, Usage, check_environment, counting, flag_threads, use_threads, whole_number
from .telling import as_command, plain
from .training import free_directory, reported

__all__ = ["DEMO"]

SHOWN = ("You are welcome", "Where is the library?", "How much does it cost?", "I do not look for the blue map")
HELD_OUT = 97.0  # per cent of sentences that training never showed, to be exactly right


def _arguments(parser: Parser) -> None:
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the model translator")
    parser.add_argument("--seed", type=whole_number, default=0, help="where the random weights start (default: 0)")
    parser.add_argument(
        "--steps",
        type=counting,
        metavar="N",
        help="stop after so many steps (default: as many as the phrasebook needs)",
    )
    parser.add_argument("--out", metavar="DIR", help="the run's directory (default: runs/demo)")
    flag_threads(parser)


def _demo(options: Namespace) -> int:
    """Train it, and say how much of the phrasebook and of what it never saw is exactly right; success means enough of both."""
    from .. import zoo

    if any(setting.startswith("corpus=") for setting in options.settings):
        raise Usage("the demo learns the phrasebook: for another corpus, use minigrad train translator corpus=…")
    spec, preset = looked_up("translator")
    _, settings = configured(spec, preset, options.settings)
    use_threads(options.threads)
    check_environment()
    out = free_directory(options.out, "demo")
    print(plain(f"A translator learns English to Spanish from nothing, into {out} (seed {options.seed})"), flush=True)
    options.trained = out
    result = zoo.train("translator", out, seed=options.seed, max_steps=options.steps, **settings)
    if result.reason == "interrupted":
        return 130
    print("\njudging: the whole phrasebook, and sentences that it was never shown", flush=True)
    loaded = zoo.load(out)
    scores = loaded.evaluate()
    for found in loaded.translate(SHOWN):
        print(f"  {found.source} -> {found.text}")
    page = reported(out)
    print(plain(f"\nsee it:      {page}" if page else ""))
    print(plain(f"ask it:      {as_command('translate', 'Where is the station?', '--run', out)}"))
    print(plain(f"look inside: {as_command('translate', 'You are welcome', '--run', out, '--attention', 'seen.html')}"))
    book, held = scores["phrasebook_exact_match"], scores["exact_match"]
    is_learned = book == 100 and held >= HELD_OUT
    right = round(book * scores["phrasebook_sentences"] / 100)
    print(
        f"\n{'Success' if is_learned else 'Failure'}: {right} of {scores['phrasebook_sentences']} phrases are exact, "
        f"and {held:.1f} % of {scores['sentences']:,} sentences it never saw"
        + ("." if is_learned else f" (wanted: all, and {HELD_OUT:g} %).")
    )
    return 0 if is_learned else 1


DEMO = Command(
    "train a translator on the shipped phrasebook, and show what it learned",
    "minigrad demo --seed 1",
    _arguments,
    _demo,
)
