"""Training that cannot lose work: the Trainer, run directories, checkpoints and what is made of them."""

from typing import TYPE_CHECKING

from ..errors import public
from .averaging import average_checkpoints
from .callbacks import Callback
from .checkpoint import Checkpoint, read_checkpoint, read_state, write_checkpoint
from .progress import Progress
from .run import Run, RunError, find_checkpoint, load_model
from .samplers import ArrayBatches, ListBatches
from .trainer import Trainer, TrainResult

__all__ = [
    "ArrayBatches",
    "Callback",
    "Checkpoint",
    "ListBatches",
    "Progress",
    "Run",
    "RunError",
    "TrainResult",
    "Trainer",
    "average_checkpoints",
    "find_checkpoint",
    "load_model",
    "read_checkpoint",
    "read_state",
    "write_checkpoint",
]

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__)
