"""The one error of this package that is about files and not about arguments."""

from ..errors import MinigradError


class DataError(MinigradError, ValueError):
    """A file of data, or of a tokenizer, is missing, damaged, too large, or not what it claims to be."""
