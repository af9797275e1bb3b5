"""Data for models: datasets and their loader, tokenizers, batches that can be resumed, splits, readers and downloads."""

from typing import TYPE_CHECKING

from ..errors import public
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
from .collation import default_collate
from .datasets import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split
from .download import KNOWN, Download, cache_directory, fetch, local_copy
from .errors import DataError
from .index_samplers import (
    BatchSampler,
    IndexSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .loader import DataLoader
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
    "BatchSampler",
    "BlockBatch",
    "BlockBatches",
    "CharTokenizer",
    "ConcatDataset",
    "DataError",
    "DataLoader",
    "Dataset",
    "Download",
    "IndexSampler",
    "IterableDataset",
    "Padded",
    "PairBatch",
    "PairBatches",
    "RandomSampler",
    "ReadReport",
    "Sampler",
    "SequenceBatches",
    "SequentialSampler",
    "Split",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "Tokenizer",
    "WeightedRandomSampler",
    "WordTokenizer",
    "cache_directory",
    "default_collate",
    "encode_pairs",
    "fetch",
    "local_copy",
    "normalise",
    "random_split",
    "read_pairs",
    "read_text",
    "split_pairs",
    "split_text",
]

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "data")
