"""The text that the models learn from when no `--data` is given: a phrasebook, a grammar of English and Spanish, and stories.

>>> from minigrad_models.corpora import phrasebook
>>> dict(phrasebook())["You are welcome."]
'de nada'
"""

from .grammar import Example, grammar_examples, grammar_pairs, grammar_size, is_held_out
from .phrasebook import phrasebook, phrasebook_sections, spellings
from .stories import Story, sentence_pairs, stories, story_text

__all__ = [
    "Example", "Story", "grammar_examples", "grammar_pairs", "grammar_size", "is_held_out", "phrasebook",
    "phrasebook_sections", "sentence_pairs", "spellings", "stories", "story_text",
]  # fmt: skip
