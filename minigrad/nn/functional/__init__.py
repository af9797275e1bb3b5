"""The functions of neural networks, with PyTorch's signatures, defaults and results (`axis` instead of `dim`)."""

from typing import TYPE_CHECKING

from ...errors import public
from ...functions import (
    elu,
    gelu,
    hardsigmoid,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    one_hot,
    relu,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    tanh,
)
from . import (
    activations,
    attention,
    conv,
    ctc,
    dropouts,
    embeddings,
    grid_sampling,
    images,
    likelihood_losses,
    losses,
    margin_losses,
    norms,
    pooling,
    products,
)
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .conv import *  # noqa: F403
from .ctc import *  # noqa: F403
from .dropouts import *  # noqa: F403
from .embeddings import *  # noqa: F403
from .grid_sampling import *  # noqa: F403
from .images import *  # noqa: F403
from .likelihood_losses import *  # noqa: F403
from .losses import *  # noqa: F403
from .margin_losses import *  # noqa: F403
from .norms import *  # noqa: F403
from .pooling import *  # noqa: F403
from .products import *  # noqa: F403

__all__ = [
    "elu",
    "gelu",
    "hardsigmoid",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "one_hot",
    "relu",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
]
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += conv.__all__
__all__ += ctc.__all__
__all__ += dropouts.__all__
__all__ += embeddings.__all__
__all__ += grid_sampling.__all__
__all__ += images.__all__
__all__ += likelihood_losses.__all__
__all__ += losses.__all__
__all__ += margin_losses.__all__
__all__ += norms.__all__
__all__ += pooling.__all__
__all__ += products.__all__

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "functions")
