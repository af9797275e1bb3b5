"""From a model's next-token scores to text: sampling, greedy decoding and beam search.

All of them work on a `Continuation`: something that is given new tokens, and says what may come next.
"""

from .beam import Branch, Hypothesis, beam_search
from .continuing import Continuation, LanguageModel
from .sampling import Sampling, generate, greedy
from .streaming import TextStream, continue_text

__all__ = [
    "Branch", "Continuation", "Hypothesis", "LanguageModel", "Sampling", "TextStream", "beam_search", "continue_text",
    "generate", "greedy",
]  # fmt: skip
