"""Neural networks: modules and layers, with their functions in `minigrad.nn.functional`."""

from typing import TYPE_CHECKING, Any

from ..engine.errors import nearest
from . import functional as functional
from . import init as init
from .activations import (
    ELU,
    GELU,
    SELU,
    Hardsigmoid,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
)
from .attention import KVCache, MultiHeadAttention, causal_mask, padding_mask, watch_attention
from .convolutions import AvgPool2d, Conv1d, Conv2d, MaxPool2d
from .layers import Dropout, Embedding, Flatten, Identity, Linear
from .mlp import MLP
from .module import Module, ModuleList, Parameter, Sequential, StateError
from .norms import BatchNorm1d, BatchNorm2d, LayerNorm, RMSNorm
from .positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from .quant import compare_quantized, quantized
from .transformer import Decoder, Encoder, StackCache, TransformerBlock
from .word_vectors import WordVectors, WordVectorsError, read_word_vectors

__all__ = [
    "ELU",
    "GELU",
    "MLP",
    "SELU",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "Decoder",
    "Dropout",
    "Embedding",
    "Encoder",
    "Flatten",
    "Hardsigmoid",
    "Hardtanh",
    "Identity",
    "KVCache",
    "LayerNorm",
    "LeakyReLU",
    "LearnedPositions",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleList",
    "MultiHeadAttention",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "RotaryPositions",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SinusoidalPositions",
    "Softmax",
    "Softplus",
    "Softsign",
    "StackCache",
    "StateError",
    "Tanh",
    "TransformerBlock",
    "WordVectors",
    "WordVectorsError",
    "causal_mask",
    "compare_quantized",
    "functional",
    "init",
    "padding_mask",
    "quantized",
    "read_word_vectors",
    "watch_attention",
]

_ELSEWHERE = {
    "CrossEntropyLoss": "functional.cross_entropy",
    "NLLLoss": "functional.nll_loss",
    "MSELoss": "functional.mse_loss",
    "L1Loss": "functional.l1_loss",
    "HuberLoss": "functional.huber_loss",
    "BCEWithLogitsLoss": "functional.binary_cross_entropy_with_logits",
    "KLDivLoss": "functional.kl_div",
    "TransformerEncoder": "Encoder",
    "TransformerDecoder": "Decoder",
    "TransformerEncoderLayer": "TransformerBlock",
    "TransformerDecoderLayer": "TransformerBlock(…, cross=True)",
    "MultiheadAttention": "MultiHeadAttention",
}

if not TYPE_CHECKING:  # a type checker knows what is here

    def __getattr__(name: str) -> Any:
        fix = f"minigrad calls it {_ELSEWHERE[name]}" if name in _ELSEWHERE else nearest(name, __all__)
        raise AttributeError(f"module 'minigrad.nn' has no attribute {name!r}: {fix}")
