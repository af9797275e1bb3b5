"""English to Spanish in a few minutes: the English-Portuguese student trained further with the command, beside a translator from scratch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from minigrad import zoo
from minigrad.saving import write_atomically
from minigrad.train import find_checkpoint, read_state
from minigrad.train.run import holds_a_run

from ..measure import ROOT, progress
from .packages import student

MINUTES = 5.0
SCORES = ("bleu", "chrf", "exact_match", "perplexity")
# It stops when the time is over, so the rate must not depend on the number of steps; nothing is validated on the way.
UNTIL_STOPPED = [
    "steps=1000000", "valid_every=1000000", "schedule=inverse-sqrt", "beams=5", "evaluated=300",
]  # fmt: skip
FINE_TUNED, FROM_SCRATCH = "fine-tuned from English-Portuguese", "from scratch, as translator:tatoeba"
SETTINGS = {
    FINE_TUNED: ["translator", "corpus=tatoeba", "batch=1000", "lr=0.0005", "warmup=20"],
    FROM_SCRATCH: ["translator:tatoeba"],
}


def trained_for(minutes: float, folder: Path) -> dict[str, dict[str, Any]]:
    """Scores of both on sentences held out, with the seconds and steps that each was trained; a run that is there is taken."""
    imported = folder / "student-en-pt"
    if not (imported / "config.json").exists():
        _minigrad("import", str(student("en-pt")), "--out", str(imported))
    found = {}
    for name, settings in SETTINGS.items():
        progress(f"spanish: {name}")
        out = folder / f"spanish-{'scratch' if name == FROM_SCRATCH else 'tuned'}-{minutes:g}"
        begun = [f"init={imported}"] if name == FINE_TUNED else []
        if not holds_a_run(out):
            _for_some_time([*settings, *begun, *UNTIL_STOPPED, "--out", str(out), "--no-report"], 60 * minutes)
        found[name] = _scored(out)
    progress("")
    return found


def _minigrad(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "minigrad", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _for_some_time(arguments: list[str], seconds: float) -> None:
    """A training by the command line, interrupted as by Ctrl-C so long after the data is ready; what it has learned is then saved."""
    command = [sys.executable, "-u", "-m", "minigrad", "train", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("batches:"):
                threading.Timer(seconds, process.send_signal, [signal.SIGINT]).start()
        if process.wait() not in (0, 130, -signal.SIGINT):
            raise RuntimeError("".join(said[-20:]))


def _scored(out: Path) -> dict[str, Any]:
    """The scores of a run, computed once and kept beside it."""
    kept = out.with_name(f"{out.name}-scores.json")
    if not kept.exists():
        scores = zoo.load(out).evaluate()
        state = read_state(find_checkpoint(out, "latest"))
        said = {key: scores[key] for key in (*SCORES, "sentences", "bleu_signature")}
        write_atomically(kept, json.dumps({**said, "steps": state["step"], "seconds": state["seconds"]}).encode())
    return json.loads(kept.read_text())
