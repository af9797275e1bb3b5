"""The numbers worked in the source document, as data: where a tutorial must show each, and to how many digits.

What the document has right is entered as it prints it, what it has wrong as it should be, with what it says instead. A name
says "as in the document" where a tutorial computes the document's own variant, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["NUMBERS", "Number", "differences"]


@dataclass(frozen=True)
class Number:
    """A value or array that a tutorial shows under a name, with so many digits after the point."""

    tutorial: str  # its number, or "errata"
    name: str
    value: Any
    digits: int
    document: Any = None  # what the document says, where that is something else

    def fits(self, ours: Any) -> bool:
        """Whether ours has the same shape, and is the same when it is rounded to the printed digits."""
        ours, printed = np.asarray(ours, float), np.asarray(self.value, float)
        half = 0.5000001 * 10.0**-self.digits  # what lies exactly between two digits may be rounded either way
        return ours.shape == printed.shape and bool((np.abs(ours - printed) <= half).all())

    def quoted(self, shown: Any) -> bool:
        """Whether what is shown as the document's is what it says. Words are taken as they are."""
        return isinstance(shown, str) or np.array_equal(shown, self.value if self.document is None else self.document)


POSITION_1 = [0.84147, 0.54030, 0.01000, 0.99995]
POSITION_2 = [0.90930, -0.41615, 0.02000, 0.99980]
WRONG_POSITION_1 = [0.8415, 0.99995, 0.0001, 1]
WRONG_POSITION_2 = [0.9093, 0.9998, 0.0002, 1]

X_PLUS_POSITIONS = [[0.1, 1.2, -0.1, 1.4], [0.5415, 1.49995, 0.1001, 0.8], [1.3093, 0.6998, 0.2002, 1.1]]
Y_PLUS_POSITIONS = [[0.0, 1.0, 0.0, 1.0], [0.6415, 1.39995, 0.3001, 1.1], [1.4093, 0.8998, -0.3998, 1.3]]
Q_OF_X = [[1.5, 1.1, 2.6, 0.0], [1.3415, 1.60005, 2.29995, 0.6416], [2.4093, 0.9, 1.7998, 1.5095]]
Q_OF_X_WITH_ALL_DIGITS = [
    [1.5, 1.1, 2.6, 0.0],
    [1.34147098, 1.59995001, 2.29995, 0.64147099],
    [2.40929743, 0.89980003, 1.79980001, 1.50929745],
]
K_OF_X = [[1.1, 1.5, 0.0, 2.6], [1.60005, 1.3415, 0.6416, 2.29995], [0.9, 2.4093, 1.5095, 1.7998]]
V_OF_X = [[1.5, 0.0, 1.1, 2.6], [1.3415, 0.6416, 1.60005, 2.29995], [2.4093, 1.5095, 0.9, 1.7998]]
Q_OF_Y = [[1.0, 1.0, 2.0, 0.0], [1.7415, 1.70005, 2.49995, 0.9416], [2.7093, 0.5, 2.1998, 1.0095]]
K_OF_Y = [[1.0, 1.0, 0.0, 2.0], [1.70005, 1.7415, 0.9416, 2.49995], [0.5, 2.7093, 1.0095, 2.1998]]
V_OF_Y = [[1.0, 0.0, 1.0, 2.0], [1.7415, 0.9416, 1.70005, 2.49995], [2.7093, 1.0095, 0.5, 2.1998]]
# In its text the document prints four digits, and under the heading of K it prints Q.
Q_IN_THE_TEXT = [[1.5, 1.1, 2.6, 0], [1.3415, 1.6, 2.3, 0.6415], [2.4093, 0.8998, 1.7998, 1.5093]]
V_IN_THE_TEXT = [[1.5, 0, 1.1, 2.6], [1.3415, 0.6416, 1.6001, 2.3], [2.4093, 1.5095, 0.9, 1.7998]]
# Here the columns of V come in another order: the second W_V is the first with its columns exchanged.
V_BY_THE_SECOND = [[2.6, 1.1, 1.5, 0.0], [2.29995, 1.60005, 1.3415, 0.6416], [1.7998, 0.9, 2.4093, 1.5095]]
ATTENTION_WEIGHTS = [
    [0.07057112, 0.21671075, 0.71271813],
    [0.08861574, 0.2073653, 0.70401897],
    [0.16858447, 0.40724309, 0.42417243],
]
ATTENTION_OUTPUT = [
    [2.11372594, 1.21488963, 1.06582258, 1.96465889],
    [2.10729705, 1.1957622, 1.06288922, 1.97442407],
    [1.82115196, 0.90157546, 1.21880742, 2.13838393],
]
SECOND_HEAD = [[1.5, 0.8, 1.2, 2.0], [1.6, 0.9, 1.1, 2.1], [1.4, 0.7, 1.3, 1.9]]
HEADS_TIMES_W_O = [
    [4.42554033, 5.589241, 6.99844643, 4.79288192],
    [4.55176485, 5.6122494, 7.09923364, 4.82144704],
    [4.21254506, 5.31988824, 6.84520426, 4.79017392],
]
# The document's own code divides by √(variance + ε), but what it prints was divided by (deviation + ε).
NORM_AFTER_ATTENTION = [
    [-1.03927142, 0.13949668, 1.56694829, -0.66717355],
    [-0.97825977, 0.09190721, 1.59246789, -0.70611533],
    [-1.10306273, 0.02854757, 1.58729045, -0.51277529],
]
RIGHT_NORM_AFTER_ATTENTION = [
    [-1.03927194, 0.13949675, 1.56694907, -0.66717388],
    [-0.97826025, 0.09190725, 1.59246868, -0.70611568],
    [-1.10306328, 0.02854758, 1.58729125, -0.51277555],
]
FFN_OUTPUT = [
    [1.70355949, 4.58680433, 7.47004916, 10.353294],
    [1.56070622, 4.19905974, 6.83741326, 9.47576678],
    [2.19865128, 5.93062489, 9.66259851, 13.39457212],
]
NORM_AFTER_FFN = [
    [-1.34164072, -0.44721357, 0.44721357, 1.34164072],
    [-1.34164071, -0.44721357, 0.44721357, 1.34164071],
    [-1.34164075, -0.44721358, 0.44721358, 1.34164075],
]
DECODER_AS_IN_DOCUMENT = [
    [2.82896639, 2.49151229, 3.27935978, 3.36785616],
    [2.93697775, 2.57919015, 3.42996786, 3.49210994],
    [2.95810782, 2.60399936, 3.43836135, 3.51718943],
]
DECODER = [
    [1.48356448, 1.24013147, 1.84159274, 1.80408131],
    [2.66305949, 2.30318387, 3.19566415, 3.17159148],
    [2.87001205, 2.53321333, 3.3135269, 3.41591922],
]
DECODER_NORM_AS_IN_DOCUMENT = [
    [-0.46049196, -1.4140849, 0.81224991, 1.06232694],
    [-0.46121408, -1.41736871, 0.85625689, 1.02232591],
    [-0.46146504, -1.41536061, 0.83223948, 1.04458616],
]
DECODER_NORM = [
    [-0.46049142, -1.41408325, 0.81224896, 1.06232571],
    [-0.46121367, -1.41736744, 0.85625612, 1.02232499],
    [-0.46146461, -1.41535929, 0.83223871, 1.04458519],
]
ENCODER_DECODER_AS_IN_DOCUMENT = [[-1.7888543, 1.7888543, 0, 0]] * 3
ENCODER_DECODER = [[0, -0.89442715, 0, 0.89442715]] * 3
ONE_STEP = [0.11396, 0.10312, 0.10312, 0.67980]
ONE_STEP_IN_DOCUMENT = [0.19, 0.09, 0.09, 0.63]

NUMBERS = [
    Number("04", "XOR by hand, sigmoid", [0.00004544, 0.99995452, 0.99995452, 0.00004544], 8),
    Number("04", "XOR by hand, ReLU", [0, 0.5, 0.5, 0], 8),
    Number("06", "softmax of 2, 1, 0.2", [0.65, 0.24, 0.11], 2),
    Number("06", "cross-entropy of 0.7", 0.357, 3),
    Number("06", "cross-entropy of 0.1", 2.303, 3),
    Number("06", "gradients P - y", [-0.9, 0.1, 0.1, 0.7], 6),
    Number("06", "probabilities at the start", [0.20737772, 0.20737772, 0.20737772, 0.37786684], 8),
    Number("06", "logits after 1 step", [0.10792622, 0.09792622, 0.09792622, 0.69622133], 8),
    Number("06", "probabilities after 1,990 steps", [0.95742224, 0.0132765, 0.0132765, 0.01602477], 8),
    Number("06", "logits after 1,991 steps", [3.41207767, -0.86673008, -0.86673008, -0.6786175], 8),
    Number("06", "probabilities after 2,000 steps", [0.95765298, 0.01320591, 0.01320591, 0.0159352], 8),
    Number("06", "one step on the logits", ONE_STEP, 5, ONE_STEP_IN_DOCUMENT),
    Number("09", "position 1", POSITION_1, 5, WRONG_POSITION_1),
    Number("09", "position 2", POSITION_2, 5, WRONG_POSITION_2),
    Number("errata", "X plus positions", X_PLUS_POSITIONS, 5),
    Number("errata", "Y plus positions", Y_PLUS_POSITIONS, 5),
    Number("errata", "Q of X", Q_OF_X, 5),
    Number("errata", "Q of X with all digits", Q_OF_X_WITH_ALL_DIGITS, 8),
    Number("errata", "K of X in its program", K_OF_X, 5),
    Number("errata", "V of X in its program", V_OF_X, 5),
    Number("errata", "Q of Y", Q_OF_Y, 5),
    Number("errata", "K of Y", K_OF_Y, 5),
    Number("errata", "V of Y", V_OF_Y, 5),
    Number("errata", "attention weights", ATTENTION_WEIGHTS, 8),
    Number("errata", "attention output", ATTENTION_OUTPUT, 8),
    Number("11", "heads times W_O", HEADS_TIMES_W_O, 8),
    Number("11", "layer norm after attention", NORM_AFTER_ATTENTION, 8),
    Number("11", "FFN output", FFN_OUTPUT, 8),
    Number("11", "layer norm after the FFN", NORM_AFTER_FFN, 8),
    Number("errata", "decoder self-attention as in the document", DECODER_AS_IN_DOCUMENT, 8),
    Number("errata", "decoder layer norm as in the document", DECODER_NORM_AS_IN_DOCUMENT, 8),
    Number("errata", "encoder-decoder weights as in the document", [[0.33333333, 0.33333333, 0.33333334]] * 3, 8),
    Number("errata", "encoder-decoder attention as in the document", ENCODER_DECODER_AS_IN_DOCUMENT, 8),
    Number("14", "h0 of I, love and AI", [[0.14, 0.91], [0.59, 0.39], [0.79, 0.60]], 6),
    Number("14", "h1 of love", [0.545, 0.442], 6, [0.155, 0.458]),
    Number("14", "h2 of love", [0.2858, 0.3845], 6, [0.1753, 0.309]),
    Number("errata", "position 1", POSITION_1, 5, WRONG_POSITION_1),
    Number("errata", "position 2", POSITION_2, 5, WRONG_POSITION_2),
    Number("errata", "Q[1,3] and Q[1,4] by hand", [2.6, 0.0], 8, [1.2, 0]),
    Number("errata", "K of X", K_OF_X, 5, Q_IN_THE_TEXT),
    Number("errata", "V of X", V_OF_X, 5, V_IN_THE_TEXT),
    Number("errata", "V by the second W_V", V_BY_THE_SECOND, 5, V_IN_THE_TEXT),
    Number("errata", "heads times W_O", HEADS_TIMES_W_O, 8, np.hstack([ATTENTION_OUTPUT, SECOND_HEAD])),
    Number("errata", "scores of 1,000 words over those of 500", 4, 8, 1),
    Number("errata", "layer norm after attention", RIGHT_NORM_AFTER_ATTENTION, 8, NORM_AFTER_ATTENTION),
    Number("errata", "decoder self-attention, scaled and causal", DECODER, 8, DECODER_AS_IN_DOCUMENT),
    Number("errata", "decoder layer norm", DECODER_NORM, 8, DECODER_NORM_AS_IN_DOCUMENT),
    Number("errata", "encoder-decoder attention", ENCODER_DECODER, 8, ENCODER_DECODER_AS_IN_DOCUMENT),
    Number("errata", "one step on the logits", ONE_STEP, 5, ONE_STEP_IN_DOCUMENT),
    Number("errata", "longest chain of ops, 30 words over 3", 1, 8),
    Number("errata", "h1 of love", [0.545, 0.442], 6, [0.155, 0.458]),
    Number("errata", "h2 of love", [0.2858, 0.3845], 6, [0.1753, 0.309]),
    Number("errata", "GPT-3, billions of parameters", 175, 0),
    Number("errata", "the first GPT, millions of parameters", 117, 0, 150),
]


def differences(tutorial: str, compared: dict[str, Any]) -> list[str]:
    """What a tutorial showed otherwise than the table has it, did not show, or showed without being in the table.

    By its name, `compared` has of each number what minigrad computed, and what was shown as the document's.
    """
    wanted = {number.name: number for number in NUMBERS if number.tutorial == tutorial}
    problems = [f"{name}: not shown" for name in wanted if name not in compared]
    for name, (ours, document) in compared.items():
        if name not in wanted:
            problems.append(f"{name}: not in the table")
            continue
        number = wanted[name]
        if not number.fits(ours):
            problems.append(f"{name}: {ours} instead of {number.value} to {number.digits} digits")
        if not number.quoted(document):
            problems.append(f"{name}: the document does not say {document}")
    return problems
