"""From a model's next-token scores to text: sampling, greedy decoding, beam search, and translation by them.

All of them work on a `Continuation`: it takes new tokens and returns the scores of the next ones.
"""

from typing import TYPE_CHECKING

from ..errors import public
from .beam import Branch, Hypothesis, beam_search
from .continuation import Continuation, LanguageModel
from .encoder_decoder import EncoderDecoder, SpecialIds, greedy_all, search_all
from .sampling import Sampling, generate, greedy
from .text_stream import TextStream, continue_text
from .translation import Translation, translate

__all__ = [
    "Branch", "Continuation", "EncoderDecoder", "Hypothesis", "LanguageModel", "Sampling", "SpecialIds", "TextStream",
    "Translation", "beam_search", "continue_text", "generate", "greedy", "greedy_all", "search_all", "translate",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__)
