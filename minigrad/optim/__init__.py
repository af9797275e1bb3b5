"""Optimisers, learning-rate schedules, gradient clipping and mixed precision, with PyTorch's names and numbers."""

from typing import TYPE_CHECKING, Any

from ..engine.errors import nearest
from .adam import Adam, AdamW
from .clipping import clip_grad_norm_, clip_grad_value_
from .lamb import LAMB
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .scaling import LossScaler, MixedPrecision
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

_ELSEWHERE = {
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
        fix = f"minigrad calls it {_ELSEWHERE[name]}" if name in _ELSEWHERE else nearest(name, __all__)
        raise AttributeError(f"module 'minigrad.optim' has no attribute {name!r}: {fix}")
