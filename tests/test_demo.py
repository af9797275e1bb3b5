"""`minigrad demo` in a short form: it trains, evaluates, shows and says honestly how far it came."""

from __future__ import annotations

import re
import sys

import pytest
from minigrad_models.corpora import phrasebook
from minigrad_models.translator import evaluation

from minigrad.cli import main
from minigrad.errors import install_hint

SMALL = ["pairs=300", "depth=1", "dim=16", "evaluated=12", "steps=3"]


def test_a_demo_that_has_not_learned_shows_everything_and_says_so(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["demo", *SMALL, "--out", str(out)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("A translator learns English to Spanish from nothing")
    assert "step 3 | valid: loss" in shown
    assert re.search(r"  you are welcome -> ", shown, re.IGNORECASE)
    assert re.search(r"Failure: \d+ of 12 phrases are exact, and \d+\.\d % of 12 sentences it never saw", shown)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page and str(out / "report.html") in shown
    translator = (out / "translator.html").read_text(encoding="utf-8")
    assert 'id="input"' in translator and f"try it:      {out / 'translator.html'}" in shown
    assert list((out / "frames").glob("*.svg"))  # where the words of a translation look, as it learns


def test_a_demo_of_fewer_steps_that_were_asked_for_is_no_failure(tmp_path, capsys):
    assert main(["demo", *SMALL[:-1], "--max-steps", "3", "--out", str(tmp_path / "run")]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.match(r"Stopped after 3 of [\d,]{2,} steps, as asked: \d+ of 12 phrases are exact", last)


@pytest.mark.parametrize(
    ("book", "held", "code"), [(100.0, 97.0, 0), (100.0, 96.9, 1), (100 * 560 / 561, 99.0, 1)], ids=str
)
def test_success_means_every_phrase_and_97_percent_of_the_rest(book, held, code, tmp_path, monkeypatch, capsys):
    scores = {"sentences": 1000, "exact_match": held, "phrasebook_sentences": 561, "phrasebook_exact_match": book}
    monkeypatch.setattr(evaluation, "evaluate", lambda loaded, path: scores)
    assert main(["demo", *SMALL, "--out", str(tmp_path / "run")]) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Success" if code == 0 else "Failure")
    assert f"{561 if book == 100 else 560} of 561 phrases" in last


def test_a_demo_goes_into_a_directory_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        main(["demo", *SMALL])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["demo", "demo-2"]


def test_a_wrong_setting_is_named_before_anything_is_trained(tmp_path, capsys):
    assert main(["demo", "dpeth=1", "--out", str(tmp_path / "run")]) == 2
    assert "depth" in capsys.readouterr().err
    assert main(["demo", "corpus=reverse", "--out", str(tmp_path / "run")]) == 2
    assert "corpus is fixed in the demo" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_sentence_of_the_source_is_in_the_phrasebook():
    assert ("You are welcome", "de nada") in [(source.rstrip("."), target) for source, target in phrasebook()]


def test_a_demo_needs_no_extra_and_says_once_which_scores_are_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    evaluation._warn_once.cache_clear()
    assert main(["demo", *SMALL, "--out", str(tmp_path / "run")]) == 1
    shown = capsys.readouterr()
    assert re.search(r"Failure: \d+ of 12 phrases are exact", shown.out)
    assert shown.err.count(install_hint("metrics")) == 1
    assert main(["eval", str(tmp_path / "run"), "--json"]) == 0
    assert "exact_match" in capsys.readouterr().out


def test_a_model_without_a_demo_says_which_has_one(capsys):
    assert main(["demo", "xor"]) == 2
    assert "xor has no demo: translator has one" in capsys.readouterr().err
