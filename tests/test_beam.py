"""Beam search against a search of everything, and against greedy decoding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from minigrad import kernels
from minigrad.decode import beam_search, greedy
from minigrad.decode.beam import length_penalty
from minigrad.decode.candidates import candidates
from minigrad.errors import ArgumentError, NonFiniteError

VOCABULARY, END = 5, 0
SCORES = np.random.default_rng(0).standard_normal((VOCABULARY, VOCABULARY, VOCABULARY))


class Chain:
    """What comes next depends on the last two tokens."""

    def __init__(self) -> None:
        self.seen: np.ndarray | None = None

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        self.seen = tokens if self.seen is None else np.concatenate([self.seen, tokens], axis=1)
        before = self.seen[:, -2] if self.seen.shape[1] > 1 else np.zeros(len(tokens), int)
        return SCORES[before, self.seen[:, -1]]

    def select(self, rows: np.ndarray) -> None:
        assert self.seen is not None
        self.seen = self.seen[rows]


def everything(
    before: int, last: int, length: int, tokens: list[int], score: float
) -> Iterator[tuple[float, list[int]]]:
    """Every sequence that ends, or is as long as it may be, with the logarithm of its probability."""
    if tokens and tokens[-1] == END or len(tokens) == length:
        yield score, tokens
        return
    scores = SCORES[before, last]
    logs = scores - np.log(np.exp(scores).sum())
    for token in range(VOCABULARY):
        yield from everything(last, token, length, [*tokens, token], score + logs[token])


@pytest.mark.parametrize("start", range(1, VOCABULARY))
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_of_all(start, alpha):
    ranked = [
        (score / length_penalty(len(tokens), alpha), tokens) for score, tokens in everything(0, start, 4, [], 0.0)
    ]
    best, tokens = max(ranked)
    (found, *_), *_ = beam_search(Chain(), np.array([[start]]), beams=500, length=4, end=END, alpha=alpha)
    assert found.score == pytest.approx(best)
    assert found.tokens == [token for token in tokens if token != END]


def test_one_beam_is_greedy_decoding():
    prompts = np.array([[1], [2], [3], [4]])
    wanted = greedy(Chain(), prompts, length=9, end=END)
    assert [found[0].tokens for found in beam_search(Chain(), prompts, beams=1, length=9, end=END)] == wanted
    assert len({len(tokens) for tokens in wanted}) > 1  # some end early and some do not


@pytest.mark.parametrize("beams", [2, 3])
def test_sequences_side_by_side_are_found_as_if_alone(beams):
    together = beam_search(Chain(), np.array([[1], [2], [3]]), beams=beams, length=6, end=END)
    for start, found in zip((1, 2, 3), together):
        (alone,) = beam_search(Chain(), np.array([[start]]), beams=beams, length=6, end=END)
        assert [h.tokens for h in found] == [h.tokens for h in alone]
        assert [h.score for h in found] == pytest.approx([h.score for h in alone])
        assert len(found) == beams


def test_the_tree_holds_what_was_looked_at():
    ((best, *_),) = beam_search(Chain(), np.array([[1]]), beams=3, length=5, end=END)
    root = best.branch
    while root.parent is not None:
        assert root in root.parent.children and root.is_kept
        root = root.parent
    assert root.tokens() == []
    assert len(root.children) == VOCABULARY  # of the first step: all there are, since 2 · 3 are more
    assert [*sorted((child.score for child in root.children), reverse=True)] == [child.score for child in root.children]
    assert np.exp([child.score for child in root.children]).sum() == pytest.approx(1)


class Sure:
    """Says 1, 2, 3, 4, 1, 2, … seven times and then ends, and is almost sure of it; all else is equally unlikely."""

    def __init__(self) -> None:
        self.length = 0

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        scores = np.zeros((len(tokens), VOCABULARY))
        scores[:, END if self.length == 7 else 1 + self.length % 4] = 6
        self.length += 1
        return scores

    def select(self, rows: np.ndarray) -> None:
        pass


@pytest.mark.parametrize("beams", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_bad_ones_that_end_early_do_not_end_the_search(beams, alpha):
    """After each token the end is as likely as any mistake, so that five sentences are finished before the right one."""
    ((best, *_),) = beam_search(Sure(), np.array([[1]]), beams=beams, length=20, end=END, alpha=alpha)
    assert best.tokens == [1, 2, 3, 4, 1, 2, 3]


def test_each_sequence_has_its_own_greatest_length():
    found = beam_search(Sure(), np.array([[1], [1], [1]]), beams=2, length=[2, 20, 5], end=END)
    assert [len(hypotheses[0].tokens) for hypotheses in found] == [2, 7, 5]


@pytest.mark.parametrize("alpha", [-1.0, 1000.0, np.nan])
def test_a_length_penalty_that_no_search_can_be_made_with_is_refused(alpha):
    """The thousandth power of (5 + 20) / 6 is more than a float can be."""
    with pytest.raises(ArgumentError, match="from 0 to 10"):
        beam_search(Sure(), np.array([[1]]), beams=2, length=20, end=END, alpha=alpha)


@pytest.mark.parametrize("wrong", [np.nan, -np.inf])
def test_scores_that_are_not_finite_are_explained(wrong):
    class Broken(Chain):
        def __call__(self, tokens: np.ndarray) -> np.ndarray:
            return np.full((len(tokens), VOCABULARY), wrong)

    with pytest.raises(NonFiniteError, match="no token can be chosen"):
        beam_search(Broken(), np.array([[1]]), beams=2, length=3, end=END)


@pytest.mark.parametrize("size", [64, 65, 100, 8191])
def test_compiled_and_plain_code_find_the_same_best_tokens(size):
    pytest.importorskip("numba")
    scores = (3 * np.random.default_rng(0).standard_normal((37, size))).astype("float32")
    scores[:, [0, 3]] = -np.inf
    scores[5] = np.round(scores[5])  # many are equal, and the first of them counts
    with kernels.use("numba"):
        tokens, logs = candidates(scores, 10)
    with kernels.use("numpy"):
        wanted = candidates(scores, 10)
    np.testing.assert_array_equal(tokens, wanted[0])
    whole = scores.astype("float64") - np.log(np.exp(scores.astype("float64")).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(logs, np.take_along_axis(whole, tokens, axis=1), atol=1e-5)
    for bad in (np.nan, np.inf):
        scores[1, size - 1] = bad
        with kernels.use("numba"), pytest.raises(NonFiniteError, match="not finite"):
            candidates(scores, 10)
