"""Networks with a memory: a state that goes along, the gates of an LSTM, and a look back by attention."""

import math

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _number_by_number(x, W, U, b):
    states, state = [], [0.0] * len(b)
    for row in x:
        state = [
            math.tanh(b[i] + sum(w * a for w, a in zip(W[i], row)) + sum(u * h for u, h in zip(U[i], state)))
            for i in range(len(b))
        ]
        states.append(state)
    return np.array(states)


@exercise(
    cases=[
        (_draw(4, 3), _draw(2, 3, seed=1), _draw(2, 2, seed=2), _draw(2, seed=3)),
        (_draw(1, 2, seed=4), _draw(3, 2, seed=5), _draw(3, 3, seed=6), _draw(3, seed=7)),
        (_draw(7, 1, seed=8), _draw(1, 1, seed=9), _draw(1, 1, seed=10), _draw(1, seed=11)),
    ],
    oracle=_number_by_number,
    hint="keep the state in a variable that every step replaces; before the first step it is all zeros",
)
def states_of(x, W, U, b):
    """All states of a recurrent network, h_t = tanh(W x_t + U h_(t-1) + b), from a state of zeros: (T, I) -> (T, H).

    `W` is (H, I), `U` is (H, H), `b` is (H,).

    >>> states_of(np.array([[0.5], [0.0]]), np.array([[2.0]]), np.array([[1.0]]), np.array([0.0])).round(4).tolist()
    [[0.7616], [0.642]]
    """
    h, states = np.zeros(len(b)), []
    for row in x:
        h = np.tanh(W @ row + U @ h + b)
        states.append(h)
    return np.array(states)


def _cell_by_cell(gates, cell):
    hidden, new = np.zeros_like(cell), np.zeros_like(cell)
    count, size = cell.shape
    for n in range(count):
        for j in range(size):
            i, f, g, o = (float(gates[n, part * size + j]) for part in range(4))
            new[n, j] = cell[n, j] / (1 + math.exp(-f)) + math.tanh(g) / (1 + math.exp(-i))
            hidden[n, j] = math.tanh(new[n, j]) / (1 + math.exp(-o))
    return hidden, new


@exercise(
    cases=[
        (_draw(2, 12), _draw(2, 3, seed=1)),
        (_draw(1, 4, seed=2), _draw(1, 1, seed=3)),
        (3 * _draw(4, 8, seed=4), 2 * _draw(4, 2, seed=5)),
    ],
    oracle=_cell_by_cell,
    hint="three of the four parts go through a sigmoid, 1 / (1 + exp(-x)), and one, what could be written down, through a tanh",
)
def lstm_step(gates, cell):
    """The next hidden state and the next cell of an LSTM, from the gates before their nonlinearities: (N, 4 · H), (N, H) -> (N, H), (N, H).

    The parts of `gates` are those of i (write), f (keep), g (what is written) and o (show), in this order.

    >>> hidden, new = lstm_step(np.array([[0.0, 0.0, 0.0, 0.0]]), np.array([[2.0]]))
    >>> new.tolist(), hidden.round(4).tolist()
    ([[1.0]], [[0.3808]])
    """
    i, f, g, o = np.split(gates, 4, axis=1)
    new = cell / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
    return np.tanh(new) / (1 + np.exp(-o)), new


def _place_by_place(state, memory, W, U, v):
    scores = []
    for place in memory:
        inner = [math.tanh(float(np.dot(W[k], state)) + float(np.dot(U[k], place))) for k in range(len(v))]
        scores.append(sum(a * b for a, b in zip(v, inner)))
    whole = sum(math.exp(score) for score in scores)
    weights = [math.exp(score) / whole for score in scores]
    return sum(weight * place for weight, place in zip(weights, memory)), np.array(weights)


@exercise(
    cases=[
        (_draw(3), _draw(5, 2, seed=1), _draw(4, 3, seed=2), _draw(4, 2, seed=3), _draw(4, seed=4)),
        (_draw(2, seed=5), _draw(3, 3, seed=6), _draw(2, 2, seed=7), _draw(2, 3, seed=8), 3 * _draw(2, seed=9)),
        (_draw(1, seed=10), _draw(1, 2, seed=11), _draw(3, 1, seed=12), _draw(3, 2, seed=13), _draw(3, seed=14)),
    ],
    oracle=_place_by_place,
    hint="each place of the memory gets one score, and the softmax goes over the places",
)
def look_back(state, memory, W, U, v):
    """What a writer takes from what was read, and the weights, by e_j = v · tanh(W state + U memory_j): (H,), (S, M) -> (M,), (S,).

    `W` is (A, H), `U` is (A, M), `v` is (A,). The weights are the softmax of the scores e, and what is taken is the mean of
    the memory by them.

    >>> taken, weights = look_back(np.array([1.0]), np.array([[0.0], [4.0]]), np.eye(1), np.eye(1), np.array([0.0]))
    >>> taken.tolist(), weights.tolist()
    ([2.0], [0.5, 0.5])
    """
    scores = np.tanh(W @ state + memory @ U.T) @ v
    weights = np.exp(scores) / np.exp(scores).sum()
    return weights @ memory, weights
