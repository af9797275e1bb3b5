"""Optimisers, learning-rate schedules, gradient clipping and mixed precision, with PyTorch's names and numbers."""

from typing import TYPE_CHECKING

from ..errors import public
from .adam import Adam, AdamW
from .clipping import clip_grad_norm_, clip_grad_value_
from .lamb import LAMB
from .mixed_precision import LossScaler, MixedPrecision
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .schedules import Constant, Cosine, InverseSqrt, Noam, OneCycle, Plateau, Schedule, Step
from .sgd import SGD

__all__ = [
    "LAMB",
    "SGD",
    "Adam",
    "AdamW",
    "Constant",
    "Cosine",
    "InverseSqrt",
    "LossScaler",
    "MixedPrecision",
    "Noam",
    "OneCycle",
    "Optimizer",
    "Plateau",
    "RMSprop",
    "Schedule",
    "Step",
    "clip_grad_norm_",
    "clip_grad_value_",
]

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "optimisers")
