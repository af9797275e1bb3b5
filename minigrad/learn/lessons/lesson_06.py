"""Softmax and cross-entropy: probabilities from scores, and how the loss pulls at them."""

import numpy as np

from ..exercise import exercise


def _one_by_one(z):
    return np.array([1 / np.exp(z - score).sum() for score in z])


@exercise(
    cases=[
        (np.array([2.0, 1.0, 0.2]),),
        (np.array([0.0, 0.0]),),
        (np.array([1000.0, 999.0]),),
        (np.array([-2000.0, 3.0, 3.0]),),
    ],
    oracle=_one_by_one,
    hint="e^1000 is too large for any number here; softmax stays the same if every score is lowered by as much",
)
def softmax(z):
    """e^z for each score, as a share of their sum: (n,) -> (n,). Scores of 1000 are no problem.

    >>> softmax(np.array([2.0, 1.0, 0.2])).round(2).tolist()
    [0.65, 0.24, 0.11]
    """
    raised = np.exp(z - z.max())
    return raised / raised.sum()


def _loss(z, y):
    return (y * (np.logaddexp.reduce(z) - z)).sum()


def _nudged(loss, x, *more):
    """The gradient of a loss along an array, by nudges."""
    gradient, h = np.zeros_like(x), 1e-5
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += h
        down[index] -= h
        gradient[index] = (loss(up, *more) - loss(down, *more)) / (2 * h)
    return gradient


@exercise(
    cases=[
        (np.array([0.1, 0.7, -0.4]), np.array([0.0, 1.0, 0.0])),
        (np.array([0.5, -1.0, 2.0, 0.0]), np.array([0.5, 0.5, 0.0, 0.0])),
        (np.array([3.0, 1.0]), np.array([0.9, 0.1])),
        (np.array([1000.0, 999.0, -900.0]), np.array([0.0, 1.0, 0.0])),
    ],
    oracle=lambda z, y: _nudged(_loss, z, y),
    hint="what was said, minus what is true: is that still so if the truth is shared among several?",
)
def pull(z, y):
    """The gradient of the cross-entropy, -sum(y · log softmax(z)), along the scores z; the shares y add up to 1.

    Scores of 1000 are no problem here, either.

    >>> pull(np.zeros(2), np.array([1.0, 0.0])).tolist()
    [-0.5, 0.5]
    """
    raised = np.exp(z - z.max())
    return raised / raised.sum() - y


def _mean_loss(W, x, labels):
    scores = x @ W
    return np.mean([_loss(row, np.eye(W.shape[1])[label]) for row, label in zip(scores, labels)])


@exercise(
    cases=[
        (np.random.default_rng(0).normal(size=(1, 3)), np.random.default_rng(1).normal(size=(3, 4)), np.array([2])),
        (
            np.random.default_rng(2).normal(size=(5, 3)),
            np.random.default_rng(3).normal(size=(3, 4)),
            np.array([0, 3, 3, 1, 2]),
        ),
        (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[900.0, 899.0], [-900.0, 900.0]]), np.array([1, 0])),
    ],
    oracle=lambda x, W, labels: _nudged(_mean_loss, W, x, labels),
    hint="first the gradient along the scores, row by row; W[i, j] reaches score j by x[i]; and the loss is a mean",
)
def weight_gradient(x, W, labels):
    """The gradient along W of the mean cross-entropy of the scores x @ W: (N, I), (I, K), (N,) -> (I, K).

    `labels` holds the number of the right score of each row. Scores may be large.

    >>> weight_gradient(np.array([[2.0]]), np.zeros((1, 2)), np.array([0])).tolist()
    [[-1.0, 1.0]]
    """
    scores = x @ W  # (N, K)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = raised / raised.sum(axis=1, keepdims=True)
    probabilities[np.arange(len(labels)), labels] -= 1
    return x.T @ probabilities / len(labels)
