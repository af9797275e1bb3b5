"""Low-rank adapters (LoRA): a few per cent of the weights are trained, the others stay as they are, packed if they are."""

from __future__ import annotations

from typing import Any

from ...engine.modes import no_grad
from ...errors import ArgumentError, is_whole
from ...kernels import Packed
from .. import init
from ..layers.linear import Linear, new_parameter
from ..module import Module, Parameter
from ..transformer.attention import MultiHeadAttention
from .low_rank import LowRank

__all__ = ["LoRA", "add_lora", "lora_state_dict", "merge_lora"]


class LoRA(Module, LowRank):
    """A low-rank adapter in the place of a weight (out, in): `a` (r, in) and `b` (out, r) are trained, `base` is not.

    `b` begins at 0, so that nothing changes at first. What it adds counts `alpha / rank` times.
    """

    def __init__(self, base: Any, rank: int, alpha: float):
        place = {"dtype": base.dtype, "device": base.device}
        out, inputs = base.shape
        if isinstance(base, Packed):
            self.base = base
        else:
            self.register_buffer("base", base.detach())
        self.a = new_parameter((rank, inputs), place["dtype"], place["device"])
        self.b = new_parameter((out, rank), place["dtype"], place["device"])
        self.rank, self.scale = rank, alpha / rank
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw `a` as a Linear layer does; `b` is 0."""
        init.kaiming_uniform_(self.a, a=5**0.5)
        init.zeros_(self.b)

    def extra_repr(self) -> str:
        return f"{self.shape[1]}, {self.shape[0]}, rank={self.rank}"


def add_lora(model: Module, rank: int, alpha: float | None = None) -> Module:
    """Put low-rank adapters on the projections of every attention and on every Linear of a model, in place; returns it.

    Everything else stops being trained. `alpha` is 2 · rank unless given.

    >>> import minigrad as mg
    >>> model = mg.nn.add_lora(mg.nn.TransformerBlock(64, heads=4), rank=4)
    >>> trained = sum(p.size for p in model.parameters())
    >>> whole = sum(p.size for p in model.buffers()) + trained
    >>> round(100 * trained / whole)
    8
    """
    if not is_whole(rank) or rank < 1:
        raise ArgumentError("add_lora: the rank is a whole number from 1 up", "such as 8", repr(rank))
    alpha = 2.0 * rank if alpha is None else alpha
    targets = {
        Linear: ("weight",),
        MultiHeadAttention: ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"),
    }
    adapted = {
        (module, name): LoRA(getattr(module, name), rank, alpha)
        for module in [*model.modules()]
        for name in targets.get(type(module), ())
        if hasattr(module, name)
    }
    if not adapted:
        raise ArgumentError(
            "add_lora: there is nothing to adapt", "a model with Linear layers or attention", repr(model)
        )
    for module in [*model.modules()]:
        for name, value in [*module._parts()]:
            if isinstance(value, Parameter) and (module, name) not in adapted:
                delattr(module, name)
                module.register_buffer(name, value.detach())
    for (module, name), adapter in adapted.items():
        delattr(module, name)
        setattr(module, name, adapter)
    return model


def lora_state_dict(model: Module) -> dict[str, Any]:
    """What the adapters of a model learned, and nothing else; `model.load_state_dict(state, strict=False)` takes it.

    >>> import minigrad as mg
    >>> list(mg.nn.lora_state_dict(mg.nn.add_lora(mg.nn.Sequential(mg.nn.Linear(8, 4)), rank=2)))
    ['0.weight.a', '0.weight.b']
    """
    paths = {path for path, module in model.named_modules() if isinstance(module, LoRA)}
    learned = {f"{path}.{leaf}" for path in paths for leaf in "ab"}
    return {name: value for name, value in model.state_dict().items() if name in learned}


def merge_lora(model: Module) -> Module:
    """Add what was learned to the weights, in place, so that the model is as it was built; returns it."""
    with no_grad():
        for module in [*model.modules()]:
            for name, value in [*module._parts()]:
                if isinstance(value, LoRA):
                    merged = Parameter(value.merged())
                    delattr(module, name)
                    setattr(module, name, merged)
    return model
