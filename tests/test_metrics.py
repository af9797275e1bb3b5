"""Scores of texts: that BLEU and chrF are sacreBLEU's whatever the references, and that what cannot be scored is refused."""

import math
import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.errors import ArgumentError, CallError, MissingExtraError, install_hint
from minigrad.metrics import corpus_bleu, corpus_chrf, exact_match, perplexity, sentence_bleu

WORDS = [
    "the",
    "The",
    "cat",
    "sat",
    "mat.",
    "3.5",
    "1,000",
    "x-1",
    "7-8",
    "(a)",
    "it's",
    "&quot;no&quot;",
    "ñu",
    "東京。",
    "…",
]
MARKS = "abAB .,-'\"&;<>()0123456789\n\tñß€%東。\u00a0"
# Unicode grows, and sacreBLEU brings its own copy of it: what the two may disagree on is left out.
ANY = st.characters(exclude_categories=["Cs", "Cn", "Co"]).filter(lambda c: unicodedata.ucd_3_2_0.category(c) != "Cn")
TEXTS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    st.text(st.sampled_from(MARKS), max_size=25),
    st.text(ANY, max_size=15),
    st.just(""),
)
# How many references each hypothesis has, then the texts themselves.
CORPORA = st.integers(1, 3).flatmap(
    lambda n: st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=n, max_size=n)), min_size=1, max_size=4)
)


@pytest.fixture(scope="module")
def oracle():
    return pytest.importorskip("sacrebleu", reason="sacreBLEU, the oracle of these tests, is not installed")


def judged(metric, corpus):
    """sacreBLEU's score and signature without the version; it takes the first references of all, the second of all, …"""
    hypotheses, references = zip(*corpus)
    found = metric.corpus_score(list(hypotheses), [list(column) for column in zip(*references)])
    return found, str(metric.get_signature()).partition("|version")[0]


def own(function, corpus, **options):
    hypotheses, references = zip(*corpus)
    score = function(list(hypotheses), list(references), **options)
    return score, score.signature.partition("|version")[0]


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
@settings(deadline=None, max_examples=150)
@given(
    corpus=CORPORA, lowercase=st.booleans(), smooth=st.sampled_from(["exp", "floor", "none"]), effective=st.booleans()
)
def test_bleu_equals_sacrebleu(oracle, tokenize, corpus, lowercase, smooth, effective):
    metric = oracle.BLEU(lowercase, True, tokenize, smooth, effective_order=effective)
    expected, signature = judged(metric, corpus)
    score, without = own(
        corpus_bleu, corpus, tokenize=tokenize, lowercase=lowercase, smooth=smooth, effective_order=effective
    )
    assert score.score == pytest.approx(expected.score, abs=1e-9)
    assert score.precisions == pytest.approx(expected.precisions, abs=1e-9)
    assert score.brevity_penalty == pytest.approx(expected.bp, abs=1e-12)
    assert (list(score.matches), list(score.totals)) == (expected.counts, expected.totals)
    assert (score.hypothesis_length, score.reference_length) == (expected.sys_len, expected.ref_len)
    assert without == signature
    assert str(score) == expected.format(signature=score.signature)


@pytest.mark.parametrize("word_order", [0, 2])
@settings(deadline=None, max_examples=150)
@given(corpus=CORPORA, lowercase=st.booleans())
def test_chrf_equals_sacrebleu(oracle, word_order, corpus, lowercase):
    expected, signature = judged(oracle.CHRF(word_order=word_order, lowercase=lowercase), corpus)
    score, without = own(corpus_chrf, corpus, word_order=word_order, lowercase=lowercase)
    assert score.score == pytest.approx(expected.score, abs=1e-9)
    assert without == signature
    assert str(score) == expected.format(signature=score.signature)


@settings(deadline=None, max_examples=100)
@given(text=TEXTS, references=st.lists(TEXTS, min_size=1, max_size=4), beta=st.integers(1, 3), order=st.integers(1, 7))
def test_single_sentences_equal_sacrebleu(oracle, text, references, beta, order):
    expected = oracle.sentence_bleu(text, references).score
    assert sentence_bleu(text, references).score == pytest.approx(expected, abs=1e-9)
    assert sentence_bleu(text, references[0]).score == sentence_bleu(text, references[:1]).score
    expected = oracle.sentence_chrf(text, references, char_order=order, beta=beta).score
    assert corpus_chrf([text], [references], char_order=order, beta=beta).score == pytest.approx(expected, abs=1e-9)


def test_the_number_of_references_may_vary(oracle):
    hypotheses = ["the cat sat on the mat", "no dog ran in the park"]
    references = [["a cat sat on the mat", "the cat sat there"], ["no dog ran to the park"]]
    columns = [["a cat sat on the mat", "no dog ran to the park"], ["the cat sat there", None]]
    for function, metric in ((corpus_bleu, oracle.BLEU()), (corpus_chrf, oracle.CHRF())):
        score = function(hypotheses, references)
        assert score.score == pytest.approx(metric.corpus_score(hypotheses, columns).score, abs=1e-9)
        assert score.signature.startswith("nrefs:var|")


def test_bleu_is_what_its_formula_says():
    """Computed by hand: 5 of 6 words, 3 of 5 pairs, 1 of 4 triples and none of 3 fours, which count as half of one."""
    score = corpus_bleu(["the cat sat on the mat"], ["the cat lay on the mat"], tokenize="none")
    assert score.matches == (5, 3, 1, 0) and score.totals == (6, 5, 4, 3)
    assert score.score == pytest.approx(100 * (5 / 6 * 3 / 5 * 1 / 4 * 0.5 / 3) ** 0.25)
    short = corpus_bleu(["the cat sat on"], ["the cat sat on the mat"], tokenize="none")
    assert short.score == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ArgumentError, match="as many references as hypotheses(.|\n)*2 hypotheses and 1 references"):
        corpus_bleu(["a", "b"], ["a"])
    with pytest.raises(ArgumentError, match="at least one"):
        corpus_chrf([], [])
    with pytest.raises(CallError, match="hypotheses are not a list(.|\n)*sentence_bleu"):
        corpus_bleu("one text", ["one text"])
    with pytest.raises(CallError, match="a text is not one, at place 1"):
        corpus_bleu(["a", None], ["a", "b"])
    with pytest.raises(ArgumentError, match="place 1 has no reference"):
        exact_match(["a", "b"], [["a"], []])
    with pytest.raises(ArgumentError, match="no such tokenization(.|\n)*'13a'"):
        corpus_bleu(["a"], ["a"], tokenize="14")
    with pytest.raises(ArgumentError, match="no such smoothing"):
        corpus_bleu(["a"], ["a"], smooth="much")
    with pytest.raises(ArgumentError, match="orders"):
        corpus_chrf(["a"], ["a"], char_order=0)


def test_exact_match_and_perplexity():
    assert exact_match([" de nada", "hola", ""], [["de nada", "x"], "Hola", ""]) == pytest.approx(200 / 3)
    assert perplexity(0.0) == 1.0 and perplexity(1e9) == math.inf and math.isnan(perplexity(math.nan))


def test_without_sacrebleu_scores_name_the_extra_and_the_others_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    for score in (corpus_bleu, corpus_chrf):
        with pytest.raises(MissingExtraError, match=re.escape(install_hint("metrics"))):
            score(["a"], ["a"])
    assert exact_match(["a"], ["a"]) == 100
