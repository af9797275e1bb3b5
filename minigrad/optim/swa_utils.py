"""Averages of weights: the mean of the last ones (SWA), or one that forgets exponentially (EMA), with PyTorch's names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from ..nn.layers.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..nn.module import Module
from ..ops.creation import tensor
from .optimizer import Optimizer
from .schedules import Schedule, each_group, line, require, swing

__all__ = [
    "EMA",
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, int], Tensor]
ManyAverages = Callable[[Sequence[Tensor], Sequence[Tensor], int], None]


def get_swa_avg_fn() -> Average:
    """The function `average + (new - average) / (n + 1)`: the mean of all, after n."""
    return lambda average, new, count: average + (new - average) / (count + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function `decay · average + (1 - decay) · new`."""
    require("get_ema_avg_fn", 0 <= decay <= 1, "decay", "from 0 to 1", decay)
    return lambda average, new, count: decay * average + (1 - decay) * new


def get_swa_multi_avg_fn() -> ManyAverages:
    """As `get_swa_avg_fn`, for lists of tensors, of which the first is changed in place."""
    return _for_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> ManyAverages:
    """As `get_ema_avg_fn`, for lists of tensors, of which the first is changed in place."""
    return _for_lists(get_ema_avg_fn(decay))


def _for_lists(average: Average) -> ManyAverages:
    def change(averages: Sequence[Tensor], new: Sequence[Tensor], count: int) -> None:
        for one, other in zip(averages, new):
            one[...] = average(one, other, count)

    return change


class AveragedModel(Module):
    """A copy of a model whose weights are an average of the model's: `update_parameters(model)` adds the present ones.

    The first call copies them. Then `avg_fn(average, new, n)` gives the new average, or `multi_avg_fn` changes lists of
    tensors in place; without either it is the mean of all. Buffers are copied, or averaged as well with `use_buffers`.
    In `Trainer(…, callbacks=[average])` it is updated after each step and saved in every checkpoint.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(1, 1)
    >>> average = mg.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     model.weight.data[...] = value
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    def __init__(
        self,
        model: Module,
        device: str | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: ManyAverages | None = None,
        use_buffers: bool = False,
    ):
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError(
                f"{type(self).__name__}: there are two ways to average", "avg_fn or multi_avg_fn", "both"
            )
        self.module = copy.deepcopy(model) if device is None else copy.deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0, dtype="int64", device=device))
        self.average = _for_lists(avg_fn or get_swa_avg_fn()) if multi_avg_fn is None else multi_avg_fn
        self.use_buffers = use_buffers

    n_averaged: Tensor

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged copy gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the present weights of `model` to the average."""
        own: list[Tensor] = list(self.module.parameters())
        new: list[Tensor] = list(model.parameters())
        buffers = list(zip(self.module.buffers(), model.buffers()))
        if [p.shape for p in own] != [p.shape for p in new]:
            raise ArgumentError(
                f"{type(self).__name__}: this is another model than the averaged one",
                f"{len(own)} parameters of its shapes",
            )
        if self.use_buffers:
            own, new = own + [b for b, _ in buffers], new + [b for _, b in buffers]
        count = int(self.n_averaged.item())
        with no_grad():
            averages = [a.detach() for a in own]
            present = [b.detach().to(dtype=a.dtype, device=a.device) for a, b in zip(averages, new)]
            if count == 0:
                _copy(averages, present)
            else:
                self.average(averages, present, count)
            if not self.use_buffers:
                _copy(*([pair[i].detach() for pair in buffers] for i in range(2)))
            self.n_averaged[...] = count + 1

    def on_step(self, trainer: Any, info: dict[str, Any]) -> None:
        """Update the average after a step of a Trainer that changed the weights."""
        if info["taken"]:
            self.update_parameters(trainer.model)


def _copy(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    for target, source in zip(targets, sources):
        target[...] = source.to(device=target.device)


class EMA(AveragedModel):
    """The exponential moving average of a model's weights: average ← decay · average + (1 - decay) · weights.

    Call `update_parameters(model)` after each step, or give it to a Trainer: `callbacks=[EMA(model)]`. It is called as the
    model, and usually predicts a little better.
    """

    def __init__(self, model: Module, decay: float = 0.999, device: str | None = None, use_buffers: bool = False):
        require("EMA", 0 <= decay <= 1, "decay", "from 0 to 1", decay)
        self.decay = decay
        super().__init__(model, device, get_ema_avg_fn(decay), use_buffers=use_buffers)


class SWALR(Schedule):
    """From the rate at its first step to `swa_lr` within `anneal_epochs` steps, where it stays, as PyTorch's.

    Make it in the beginning, and step it in the place of the other schedule once the weights are averaged.
    """

    remembered = ("steps", "starts")

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        require("SWALR", anneal_strategy in ("cos", "linear"), "anneal_strategy", "'cos' or 'linear'", anneal_strategy)
        require(
            "SWALR", type(anneal_epochs) is int and anneal_epochs >= 0, "anneal_epochs", "at least 0", anneal_epochs
        )
        self.swa_lr = each_group("SWALR", "swa_lr", swa_lr, optimizer)
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        self.starts: list[float] = []  # the rates at the first step
        super().__init__(optimizer, last_epoch)

    def step(self) -> None:
        """Advance by one step."""
        if not self.starts:
            self.starts = self.get_last_lr()
        super().step()

    def rate(self, step: int, index: int, base: float) -> float:
        start = self.starts[index] if index < len(self.starts) else self.optimizer.param_groups[index]["lr"]
        done = min(step / self.anneal_epochs, 1.0) if self.anneal_epochs else 1.0
        return (swing if self.anneal_strategy == "cos" else line)(start, self.swa_lr[index], done)


def update_bn(loader: Iterable[Any], model: Module, device: str | None = None) -> None:
    """Compute the running means and variances of every BatchNorm anew, from the inputs in `loader`.

    A batch is the input, or a tuple or list that begins with it. Averaged weights have no statistics of their own.
    """
    norms = [
        m
        for m in model.modules()
        if isinstance(m, (BatchNorm1d, BatchNorm2d, BatchNorm3d)) and m.running_mean is not None
    ]
    if not norms:
        return
    modes, shares = {m: m.training for m in model.modules()}, [m.momentum for m in norms]
    with no_grad():
        for norm in norms:
            for buffer, value in ((norm.running_mean, 0), (norm.running_var, 1), (norm.num_batches_tracked, 0)):
                if buffer is not None:
                    buffer[...] = value
            norm.momentum = None  # the mean over all batches
        model.train()
        try:
            for batch in loader:
                given = batch[0] if isinstance(batch, (list, tuple)) else batch
                given = given if isinstance(given, Tensor) else tensor(given)
                model(given if device is None else given.to(device=device))
        finally:
            for module, training in modes.items():
                module.training = training
            for norm, share in zip(norms, shares):
                norm.momentum = share
