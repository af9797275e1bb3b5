"""Pictures and sound: patches, there and back, and what is lost where one is covered."""

import numpy as np

from ..exercise import exercise


def _pictures(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _pixel_by_pixel(pictures, patch):
    count, channels, high, wide = pictures.shape
    across = wide // patch
    patches = np.zeros((count, (high // patch) * across, channels * patch * patch))
    for n, c, y, x in np.ndindex(pictures.shape):
        number = (y // patch) * across + x // patch
        patches[n, number, (c * patch + y % patch) * patch + x % patch] = pictures[n, c, y, x]
    return patches


@exercise(
    cases=[(_pictures(2, 3, 4, 6), 2), (_pictures(1, 1, 6, 6, seed=1), 3), (_pictures(3, 2, 2, 4, seed=2), 1)],
    oracle=_pixel_by_pixel,
    hint="cut each of the two sides into (how many, patch); then bring both counts to the front, and only then join what is left",
)
def patches_of(pictures, patch):
    """The patches of each picture, row by row, each with its colours one after the other: (N, C, H, W) -> (N, P, C · p · p).

    >>> patches_of(np.arange(8.0).reshape(1, 1, 2, 4), 2).tolist()
    [[[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]]
    """
    count, channels, high, wide = pictures.shape
    apart = pictures.reshape(count, channels, high // patch, patch, wide // patch, patch)
    return apart.transpose(0, 2, 4, 1, 3, 5).reshape(count, -1, channels * patch * patch)


def _looked_up(patches, patch, high, wide):
    channels = patches.shape[2] // patch**2
    whole = np.zeros((len(patches), channels, high, wide))
    for n, c, y, x in np.ndindex(whole.shape):
        number = (y // patch) * (wide // patch) + x // patch
        whole[n, c, y, x] = patches[n, number, (c * patch + y % patch) * patch + x % patch]
    return whole


@exercise(
    cases=[
        (_pictures(2, 6, 12), 2, 4, 6),
        (_pictures(1, 4, 9, seed=1), 3, 6, 6),
        (_pictures(2, 2, 8, seed=2), 2, 2, 4),
    ],
    oracle=_looked_up,
    hint="the way back: take apart into six axes what was joined, exchange them the other way round, and join the sides",
)
def joined(patches, patch, high, wide):
    """The pictures that patches were cut from: (N, P, C · p · p) -> (N, C, H, W).

    >>> joined(np.array([[[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]]), 2, 2, 4).tolist()
    [[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]]]
    """
    apart = patches.reshape(len(patches), high // patch, wide // patch, -1, patch, patch)
    return apart.transpose(0, 3, 1, 4, 2, 5).reshape(len(patches), -1, high, wide)


_WEIGHTS = _pictures(6, 6, seed=3)


def _chance(picture):
    return float((picture * _WEIGHTS[: picture.shape[0], : picture.shape[1]]).sum())


def _what_it_adds(chance, picture, patch):
    weighed = picture * _WEIGHTS[: picture.shape[0], : picture.shape[1]]
    rows, columns = (side // patch for side in picture.shape)
    return np.array(
        [
            [weighed[i * patch : (i + 1) * patch, j * patch : (j + 1) * patch].sum() for j in range(columns)]
            for i in range(rows)
        ]
    )


@exercise(
    cases=[
        (_chance, _pictures(6, 6, seed=4), 2),
        (_chance, _pictures(4, 6, seed=5), 2),
        (_chance, _pictures(3, 3, seed=6), 3),
    ],
    oracle=_what_it_adds,
    hint="cover one patch of a fresh copy each time; what is lost is what it was before less what it is then",
)
def lost(chance, picture, patch):
    """How much chance(picture) falls where one patch after the other is covered with 0: (H, W) -> (H / p, W / p).

    >>> lost(lambda picture: picture.sum(), np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    rows, columns = picture.shape[0] // patch, picture.shape[1] // patch
    falls = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            covered = picture.copy()
            covered[i * patch : (i + 1) * patch, j * patch : (j + 1) * patch] = 0
            falls[i, j] = chance(picture) - chance(covered)
    return falls
