"""Neural networks: modules and layers, with their functions in `minigrad.nn.functional`."""

from typing import TYPE_CHECKING

from ..errors import public
from . import functional as functional
from . import functional_calls, module, quant
from . import init as init
from . import utils as utils
from .functional_calls import *  # noqa: F403
from .layers import (
    activations,
    containers,
    convolutions,
    dropout,
    experts,
    images,
    linear,
    losses,
    mlp,
    normalization,
    pooling,
    recurrent,
    vocabulary,
)
from .layers.activations import *  # noqa: F403
from .layers.containers import *  # noqa: F403
from .layers.convolutions import *  # noqa: F403
from .layers.dropout import *  # noqa: F403
from .layers.experts import *  # noqa: F403
from .layers.images import *  # noqa: F403
from .layers.linear import *  # noqa: F403
from .layers.losses import *  # noqa: F403
from .layers.mlp import *  # noqa: F403
from .layers.normalization import *  # noqa: F403
from .layers.pooling import *  # noqa: F403
from .layers.recurrent import *  # noqa: F403
from .layers.vocabulary import *  # noqa: F403
from .module import *  # noqa: F403
from .quant import *  # noqa: F403
from .transformer import attention, blocks, caches, masks, positions, rotary, ssru
from .transformer.attention import *  # noqa: F403
from .transformer.blocks import *  # noqa: F403
from .transformer.caches import *  # noqa: F403
from .transformer.masks import *  # noqa: F403
from .transformer.positions import *  # noqa: F403
from .transformer.rotary import *  # noqa: F403
from .transformer.ssru import *  # noqa: F403
from .weights import lora, word_vectors
from .weights.lora import *  # noqa: F403
from .weights.word_vectors import *  # noqa: F403

__all__ = ["functional", "init", "utils"]
__all__ += functional_calls.__all__
__all__ += activations.__all__
__all__ += containers.__all__
__all__ += convolutions.__all__
__all__ += dropout.__all__
__all__ += experts.__all__
__all__ += images.__all__
__all__ += linear.__all__
__all__ += losses.__all__
__all__ += mlp.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += recurrent.__all__
__all__ += vocabulary.__all__
__all__ += module.__all__
__all__ += quant.__all__
__all__ += attention.__all__
__all__ += blocks.__all__
__all__ += caches.__all__
__all__ += masks.__all__
__all__ += positions.__all__
__all__ += rotary.__all__
__all__ += ssru.__all__
__all__ += lora.__all__
__all__ += word_vectors.__all__

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "layers")
