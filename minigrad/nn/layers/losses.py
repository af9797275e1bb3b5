"""Losses as modules, under PyTorch's names; the functions themselves, with their formulas, are in `minigrad.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...engine.tensor import Tensor
from ...ops.creation import tensor
from .. import functional as F
from ..module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """A loss function as a module: its options are attributes, its weights buffers."""

    function: ClassVar[Callable[..., Tensor]]
    options: tuple[str, ...]

    def __init__(self, *, reduction: str = "mean"):
        self._keep(reduction=reduction)

    def _keep(self, **options: Any) -> None:
        """Keep the options, which the function is called with."""
        self.options = tuple(options)
        for name, value in options.items():
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value if value is None else tensor(value))
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Any) -> Tensor:
        """What the function gives for these inputs, in its order: the prediction first, then the target."""
        return type(self).function(*inputs, **{name: getattr(self, name) for name in self.options})

    def extra_repr(self) -> str:
        shown = [name for name in self.options if not isinstance(getattr(self, name), (Tensor, type(None)))]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)


class MSELoss(_Loss):
    """`(input - target)²`: `mse_loss` as a module."""

    function = staticmethod(F.mse_loss)


class L1Loss(_Loss):
    """`|input - target|`: `l1_loss` as a module."""

    function = staticmethod(F.l1_loss)


class HuberLoss(_Loss):
    """Squared near the target, straight beyond `delta`: `huber_loss` as a module."""

    function = staticmethod(F.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        self._keep(reduction=reduction, delta=delta)


class SmoothL1Loss(_Loss):
    """Squared near the target, `|d| - beta / 2` beyond `beta`: `smooth_l1_loss` as a module."""

    function = staticmethod(F.smooth_l1_loss)

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0):
        self._keep(reduction=reduction, beta=beta)


class CrossEntropyLoss(_Loss):
    """`-log(softmax(input))` at the target, labels or probabilities: `cross_entropy` as a module.

    >>> import minigrad as mg
    >>> loss = mg.nn.CrossEntropyLoss()
    >>> round(loss(mg.tensor([[0.0, 0.0]]), mg.tensor([1])).item(), 4)
    0.6931
    """

    function = staticmethod(F.cross_entropy)

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ):
        self._keep(weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


class NLLLoss(_Loss):
    """`-input[label]` of log-probabilities: `nll_loss` as a module."""

    function = staticmethod(F.nll_loss)

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"):
        self._keep(weight=weight, ignore_index=ignore_index, reduction=reduction)


class BCELoss(_Loss):
    """The cross entropy of probabilities of yes and no: `binary_cross_entropy` as a module."""

    function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Any = None, *, reduction: str = "mean"):
        self._keep(weight=weight, reduction=reduction)


class BCEWithLogitsLoss(_Loss):
    """The cross entropy of yes and no, from logits: `binary_cross_entropy_with_logits` as a module."""

    function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None):
        self._keep(weight=weight, reduction=reduction, pos_weight=pos_weight)


class KLDivLoss(_Loss):
    """The divergence of log-probabilities from probabilities: `kl_div` as a module."""

    function = staticmethod(F.kl_div)

    def __init__(self, *, reduction: str = "mean", log_target: bool = False):
        self._keep(reduction=reduction, log_target=log_target)


class GaussianNLLLoss(_Loss):
    """`(log(var) + (input - target)² / var) / 2`, called with input, target and var: `gaussian_nll_loss` as a module."""

    function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        self._keep(full=full, eps=eps, reduction=reduction)


class PoissonNLLLoss(_Loss):
    """`exp(input) - target · input`: `poisson_nll_loss` as a module."""

    function = staticmethod(F.poisson_nll_loss)

    def __init__(self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"):
        self._keep(log_input=log_input, full=full, eps=eps, reduction=reduction)


class CTCLoss(_Loss):
    """The loss of labels over all their alignments, called with log_probs, targets and both lengths: `ctc_loss` as a module."""

    function = staticmethod(F.ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        self._keep(blank=blank, reduction=reduction, zero_infinity=zero_infinity)


class HingeEmbeddingLoss(_Loss):
    """Distances small for target 1, above `margin` for -1: `hinge_embedding_loss` as a module."""

    function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean"):
        self._keep(margin=margin, reduction=reduction)


class SoftMarginLoss(_Loss):
    """`log(1 + exp(-target · input))`: `soft_margin_loss` as a module."""

    function = staticmethod(F.soft_margin_loss)


class MarginRankingLoss(_Loss):
    """The first of two scores higher for target 1, lower for -1: `margin_ranking_loss` as a module."""

    function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean"):
        self._keep(margin=margin, reduction=reduction)


class CosineEmbeddingLoss(_Loss):
    """Vectors alike for target 1, unlike for -1: `cosine_embedding_loss` as a module."""

    function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean"):
        self._keep(margin=margin, reduction=reduction)


class TripletMarginLoss(_Loss):
    """An anchor nearer to its positive than to its negative: `triplet_margin_loss` as a module."""

    function = staticmethod(F.triplet_margin_loss)

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, *, reduction: str = "mean"
    ):
        self._keep(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """The same with a distance of your own: `triplet_margin_with_distance_loss` as a module."""

    function = staticmethod(F.triplet_margin_with_distance_loss)

    def __init__(
        self,
        *,
        distance_function: Callable[[Any, Any], Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        self._keep(distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)


class MultiMarginLoss(_Loss):
    """The score of the label above all others by a margin: `multi_margin_loss` as a module."""

    function = staticmethod(F.multi_margin_loss)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean"):
        self._keep(p=p, margin=margin, weight=weight, reduction=reduction)


class MultiLabelMarginLoss(_Loss):
    """The scores of all labels of an example above those of other classes: `multilabel_margin_loss` as a module."""

    function = staticmethod(F.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_Loss):
    """The binary cross entropy of logits, averaged over classes: `multilabel_soft_margin_loss` as a module."""

    function = staticmethod(F.multilabel_soft_margin_loss)

    def __init__(self, weight: Any = None, *, reduction: str = "mean"):
        self._keep(weight=weight, reduction=reduction)
