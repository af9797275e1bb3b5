"""From a model's next-token scores to text: sampling, greedy decoding and beam search.

All of them work on a `Continuation`: something that is given new tokens, and says what may come next.
"""

from .beam import Branch, Hypothesis, beam_search
from .continuing import Continuation, LanguageModel
from .sampling import Sampling, generate, greedy

__all__ = [
    "Branch", "Continuation", "Hypothesis", "LanguageModel", "Sampling", "beam_search", "generate", "greedy",
]  # fmt: skip
