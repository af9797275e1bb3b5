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
from .normalisation import normalise
from .readers import ReadReport, read_pairs, read_text
from .splits import Split, split_pairs, split_text
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
    "Padded",
    "PairBatch",
    "PairBatches",
    "ReadReport",
    "Sampler",
    "SequenceBatches",
    "Split",
    "Tokenizer",
    "WordTokenizer",
    "cache_directory",
    "encode_pairs",
    "fetch",
    "local_copy",
    "normalise",
    "read_pairs",
    "read_text",
    "split_pairs",
    "split_text",
]
