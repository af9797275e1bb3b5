"""A trained model with all that belongs to it: `Loaded`, which evaluates, predicts, and has the verbs of its spec and task."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine.modes import enable_grad
from ..errors import ArgumentError, MinigradError, nearest
from ..nn.init import skip
from ..random import seed_everything
from ..train.evaluation import evaluate as mean_loss
from ..train.evaluation import evaluation_mode
from ..train.loss_terms import checked_terms
from ..train.samplers import as_sampler
from .data import CHECK_PATH, check_paths, data_of, with_batches_on
from .registry import blamed
from .run_arguments import config_of, other_version
from .spec import ModelSpec
from .tasks import verbs_of

__all__ = ["Loaded", "assembled"]


@dataclasses.dataclass(frozen=True, repr=False)
class Loaded:
    """A trained model with its config, tokenizer and arguments; the verbs of its task and spec are methods of it."""

    spec: ModelSpec
    config: Any
    model: Any
    tokenizer: Any
    arguments: Mapping[str, Any]  # of the training: model, preset, config, data, seed, device, max_steps
    step: int
    path: Path

    def __repr__(self) -> str:
        return f"<{self.spec.name} of {os.fspath(self.path)!r}, step {self.step:,}: {', '.join(self.verbs)}>"

    @property
    def device(self) -> str:
        """Where its parameters are."""
        return next((parameter.device for parameter in self.model.parameters()), "cpu")

    def to(self, device: str) -> Loaded:
        """The same with its model on another device."""
        return dataclasses.replace(self, model=self.model.to(device))

    def predict(self, *inputs: str) -> list[Any]:
        """The model's answers to inputs, which are strings as on the command line."""
        if self.spec.predict is None:
            raise ArgumentError(f"{self.spec.name} cannot predict", fix=f"it can {', '.join(self.verbs)}")
        with evaluation_mode(self.model), blamed(self.spec, "predicting"):
            return self.spec.predict(self, list(inputs))

    def evaluate(self, data: str | None = None) -> dict[str, Any]:
        """Named scores: those of its spec, or its loss on the validation data."""
        path = self.arguments["data"] if data is None else data
        gone = "put it back where it was in training, or give other data: --data PATH"
        check_paths(self.spec, path, gone if data is None else CHECK_PATH)
        with evaluation_mode(self.model), blamed(self.spec, "evaluating"):
            if self.spec.evaluate is not None:
                return self.spec.evaluate(self, path)
            seed_everything(self.arguments["seed"])
            given = data_of(self.spec, self.config, path)
            valid = given.train if given.valid is None else given.valid
            valid = valid if callable(valid) else as_sampler("valid", valid, self.arguments["seed"])
            metrics = () if callable(valid) else self._metrics(next(iter(valid)))
            loss = self.spec.loss if self.device == "cpu" else with_batches_on(self.device, self.spec.loss)
            return mean_loss(self.model, loss, valid, metrics)

    def draw(self) -> Any:
        """A picture of what it does, as its spec draws it: a minigrad.viz.Scene."""
        if self.spec.draw is None:
            raise ArgumentError(f"{self.spec.name} has no picture", fix=f"it can {', '.join(self.verbs)}")
        with evaluation_mode(self.model), blamed(self.spec, "drawing"):
            return self.spec.draw(self)

    def _metrics(self, batch: Any) -> list[str]:
        """The terms of the loss without a gradient, which are metrics."""
        with enable_grad():
            terms = checked_terms(self.spec.loss(self.model, batch), batch)
        return [name for name, (amount, _) in terms.items() if not amount.requires_grad]

    @property
    def verbs(self) -> list[str]:
        """What it can do: evaluate, predict and draw where its spec says how, the verbs of its task, and its own."""
        own = {"predict": self.spec.predict, "draw": self.spec.draw}
        return ["evaluate", *[name for name, function in own.items() if function is not None], *verbs_of(self.spec)]

    def __getattr__(self, name: str) -> Any:
        verbs = verbs_of(vars(self)["spec"]) if "spec" in vars(self) else {}
        if name in verbs:
            return lambda *args, **options: self._do(name, *args, **options)
        raise AttributeError(f"a loaded model has no {name!r}: {nearest(name, [*vars(self), *verbs])}")

    def _do(self, verb: str, *args: Any, **options: Any) -> Any:
        with blamed(self.spec, f"running its verb {verb}"):
            return verbs_of(self.spec)[verb](self, *args, **options)


def assembled(
    spec: ModelSpec, arguments: Mapping[str, Any], weights: Mapping[str, Any], tokenizer: Any, step: int, path: Path
) -> Loaded:
    """A model built by the arguments of its run, with these weights; weights of another version are refused."""
    config = config_of(spec, arguments)
    with blamed(spec, "building the model"), skip():
        model = spec.build(config)
    try:
        model.load_state_dict(weights)
    except MinigradError as error:
        raise other_version(spec, arguments, error) from error
    model.eval()
    return Loaded(spec, config, model, tokenizer, arguments, step, path)
