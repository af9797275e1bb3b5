"""Neural networks: modules and layers, with their functions in `minigrad.nn.functional`."""

from typing import TYPE_CHECKING

from ..errors import public
from . import (
    activations,
    attention,
    caches,
    containers,
    convolutions,
    dropouts,
    functional_calls,
    images,
    layers,
    lora,
    loss_layers,
    masks,
    mlp,
    module,
    normalization,
    pooling,
    positions,
    quant,
    recurrence,
    rotary,
    transformer,
    word_vectors,
)
from . import functional as functional
from . import init as init
from . import utils as utils
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .caches import *  # noqa: F403
from .containers import *  # noqa: F403
from .convolutions import *  # noqa: F403
from .dropouts import *  # noqa: F403
from .functional_calls import *  # noqa: F403
from .images import *  # noqa: F403
from .layers import *  # noqa: F403
from .lora import *  # noqa: F403
from .loss_layers import *  # noqa: F403
from .masks import *  # noqa: F403
from .mlp import *  # noqa: F403
from .module import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .positions import *  # noqa: F403
from .quant import *  # noqa: F403
from .recurrence import *  # noqa: F403
from .rotary import *  # noqa: F403
from .transformer import *  # noqa: F403
from .word_vectors import *  # noqa: F403

__all__ = ["functional", "init", "utils"]
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += caches.__all__
__all__ += containers.__all__
__all__ += convolutions.__all__
__all__ += dropouts.__all__
__all__ += images.__all__
__all__ += functional_calls.__all__
__all__ += layers.__all__
__all__ += lora.__all__
__all__ += loss_layers.__all__
__all__ += masks.__all__
__all__ += mlp.__all__
__all__ += module.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += positions.__all__
__all__ += quant.__all__
__all__ += recurrence.__all__
__all__ += rotary.__all__
__all__ += transformer.__all__
__all__ += word_vectors.__all__

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "layers")
