"""Optimisers, learning-rate schedules, gradient clipping and mixed precision, with PyTorch's names and numbers."""

from typing import TYPE_CHECKING

from ..errors import public
from ..nn.clipping import clip_grad_norm_, clip_grad_value_
from . import lr_scheduler, swa_utils
from .lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)
from .mixed_precision import LossScaler, MixedPrecision
from .optimizer import Optimizer
from .rules.adafactor import Adafactor
from .rules.adagrad import Adadelta, Adagrad
from .rules.adam import Adam, AdamW
from .rules.adam_variants import Adamax, NAdam, RAdam
from .rules.asgd import ASGD
from .rules.lamb import LAMB
from .rules.lbfgs import LBFGS
from .rules.muon import Muon
from .rules.rmsprop import RMSprop
from .rules.sgd import SGD
from .rules.signs import Lion, Rprop
from .schedules import Constant, Cosine, InverseSqrt, Noam, OneCycle, Plateau, Schedule, Step
from .swa_utils import EMA

__all__ = [
    "ASGD",
    "LBFGS",
    "Adafactor",
    "Muon",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "lr_scheduler",
    "EMA",
    "swa_utils",
    "Adadelta",
    "Adagrad",
    "Adamax",
    "Lion",
    "NAdam",
    "RAdam",
    "Rprop",
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
