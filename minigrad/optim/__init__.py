"""Optimisers, learning-rate schedules, gradient clipping and mixed precision, with PyTorch's names and numbers."""

from typing import TYPE_CHECKING, Any

from ..errors import nearest
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

_PYTORCH_NAMES = {
    "lr_scheduler": "Step, Cosine, … in minigrad.optim itself",
    "CosineAnnealingLR": "Cosine",
    "StepLR": "Step",
    "ConstantLR": "Constant",
    "OneCycleLR": "OneCycle",
    "ReduceLROnPlateau": "Plateau",
    "LambdaLR": "a subclass of Schedule with at(step, base)",
    "GradScaler": "MixedPrecision",
}

if not TYPE_CHECKING:  # a type checker knows what is here

    def __getattr__(name: str) -> Any:
        fix = f"minigrad calls it {_PYTORCH_NAMES[name]}" if name in _PYTORCH_NAMES else nearest(name, __all__)
        raise AttributeError(f"module 'minigrad.optim' has no attribute {name!r}: {fix}")
