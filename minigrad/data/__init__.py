"""Text for models: tokenizers, batches that can be resumed, splits that do not leak, readers and downloads."""

from .batching import (
    Batch,
    BatchReport,
    BlockBatch,
    BlockBatches,
    Padded,
    PairBatch,
    PairBatches,
    Sampler,
    SequenceBatches,
    encode_pairs,
)
from .bpe import BPETokenizer
from .download import KNOWN, Download, cache_directory, fetch, local_copy
from .errors import DataError
from .grammar import Example, grammar_examples, grammar_pairs, grammar_size, is_held_out
from .phrasebook import normalise, phrasebook, phrasebook_sections, spellings
from .readers import ReadReport, read_pairs, read_text
from .splits import Split, split_pairs, split_text
from .stories import Story, sentence_pairs, stories, story_text
from .tokenizers import BOS, EOS, MASK, PAD, SPECIALS, UNK, CharTokenizer, Tokenizer, WordTokenizer

__all__ = [
    "BOS",
    "EOS",
    "KNOWN",
    "MASK",
    "PAD",
    "SPECIALS",
    "UNK",
    "BPETokenizer",
    "Batch",
    "BatchReport",
    "BlockBatch",
    "BlockBatches",
    "CharTokenizer",
    "DataError",
    "Download",
    "Example",
    "Padded",
    "PairBatch",
    "PairBatches",
    "ReadReport",
    "Sampler",
    "SequenceBatches",
    "Split",
    "Story",
    "Tokenizer",
    "WordTokenizer",
    "cache_directory",
    "encode_pairs",
    "fetch",
    "grammar_examples",
    "grammar_pairs",
    "grammar_size",
    "is_held_out",
    "local_copy",
    "normalise",
    "phrasebook",
    "phrasebook_sections",
    "read_pairs",
    "read_text",
    "sentence_pairs",
    "spellings",
    "split_pairs",
    "split_text",
    "stories",
    "story_text",
]
