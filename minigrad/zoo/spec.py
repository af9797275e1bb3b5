"""The contract of a model that can be plugged in: one `ModelSpec`, from which every verb follows.

A plugin is a package with a line in its setup.cfg,

    [options.entry_points]
    minigrad.models =
        mine = my_package:spec

and a `spec` that says how to make the data, the model and the loss. It is imported for every `minigrad list`, so what
only `build`, `data` and the others need is imported inside of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine.errors import ArgumentError, nearest

__all__ = ["Config", "Data", "ModelSpec", "option"]

# What `train(…)` takes besides settings, and what a loaded model has besides verbs.
_TAKEN = {"name", "out", "data", "seed", "max_steps", "device", "progress", "live"}
_LOADED = {"spec", "config", "model", "tokenizer", "story", "step", "path", "verbs", "predict", "evaluate", "draw"}


def option(default: Any, help: str, choices: Sequence[Any] = (), least: float | None = None) -> Any:
    """A field of a config, with the line that `--help` shows for it, and what it may be: one of some, or at least so much."""
    known = {"help": help, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata=known if least is None else {**known, "least": least})


@dataclasses.dataclass(frozen=True)
class Config:
    """How a model is trained; a plugin's own config extends it by what the model needs, and may change defaults.

    A field that it declares again keeps what it may be at least.
    """

    steps: int = option(1000, "how many steps to train", least=1)
    batch: int = option(32, "how many examples in a batch", least=1)
    lr: float = option(1e-2, "learning rate", least=0)
    weight_decay: float = option(0.0, "how much weights shrink, times the learning rate", least=0)
    clip: float = option(1.0, "greatest norm of the gradient; 0 for any", least=0)
    valid_every: int = option(100, "steps between validations", least=1)
    save_every: int = option(0, "steps between checkpoints; 0 for five minutes between them", least=0)
    keep: int = option(3, "how many of the newest checkpoints stay", least=1)


@dataclasses.dataclass(frozen=True)
class Data:
    """What a model learns from: a sampler (or a list of batches), what it is judged by, and the tokenizer of its text.

    `valid` is a sampler, or a function of the model that returns named numbers, one of them "loss". `config` is the
    config again, with what only the data could tell, such as the size of the vocabulary.
    """

    train: Any
    valid: Any = None
    config: Any = None
    tokenizer: Any = None


@dataclasses.dataclass(frozen=True, repr=False)
class ModelSpec:
    """A model as the zoo knows it.

    `data(config, path)` reads the file or folder that the user named, or makes its own data if `path` is None, as it
    always is where `takes_data` is False: then `--data` is refused;
    `build(config)` makes the model; `loss(model, batch)` returns terms, `{"loss": (sum, units)}`; `example(config)` is a
    tiny batch for checks. `predict(loaded, inputs)` answers a list of strings from the command line with one printable,
    JSON-able answer each. `evaluate(loaded, path)` returns named numbers. `optimizer(model, config)` and
    `schedule(optimizer, config)` replace AdamW and a constant rate. `verbs` become methods of what `load` returns:
    each takes the loaded model first. `after(loaded, folder)` runs when training ends, to show or draw what was learned,
    and returns text. While it trains, `samples(loaded)` gives text to show at each validation, and `draw(loaded)` a
    picture of what the model does right then, a minigrad.viz.Scene or None. `attend(loaded, text)` says what
    the model is called with to see its attention: {"inputs": what `model(*inputs)` takes, "tokens": one for each position
    of the sentence}, and if there are, "keys": the tokens of the source that cross-attention looks at, "options": {…}
    for the call, "vocabulary": the names of the tokens that its result is logits of, and "logits" where the result is
    none itself; `minigrad attention RUN text` shows it. `tiny` is a preset for quick checks, and `example_inputs` are
    strings that `predict` answers, or a function of the config that returns them.
    """

    name: str
    task: str
    summary: str
    config: type
    data: Callable[[Any, str | None], Data]
    build: Callable[[Any], Any]
    loss: Callable[[Any, Any], Any]
    example: Callable[[Any], Any]
    predict: Callable[[Any, list[str]], list[Any]] | None = None
    evaluate: Callable[[Any, str | None], dict[str, Any]] | None = None
    optimizer: Callable[[Any, Any], Any] | None = None
    schedule: Callable[[Any, Any], Any] | None = None
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    tiny: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    verbs: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)
    after: Callable[[Any, Any], str] | None = None
    samples: Callable[[Any], str] | None = None
    draw: Callable[[Any], Any] | None = None
    attend: Callable[[Any, str], dict[str, Any]] | None = None
    metric: str = "loss"  # which number of a validation says what is best
    maximize: bool = False
    example_inputs: Sequence[str] | Callable[[Any], Sequence[str]] = ()
    takes_data: bool = True
    estimates_gradients: str = ""  # why gradients are not the derivatives of the loss, if so: rounding, sampling, …

    def __repr__(self) -> str:
        return f"<ModelSpec {self.name}: {self.summary}>"

    def inputs_for(self, config: Any) -> list[str]:
        """Strings that `predict` of a model of this config answers."""
        return list(self.example_inputs(config) if callable(self.example_inputs) else self.example_inputs)

    def __post_init__(self) -> None:
        if not self.name.replace("-", "_").isidentifier() or ":" in self.name:
            raise ArgumentError("ModelSpec: this cannot be a name", "letters, digits, - and _", repr(self.name))
        if not (dataclasses.is_dataclass(self.config) and issubclass(self.config, Config)):
            raise ArgumentError(
                f"ModelSpec {self.name!r}: its config cannot be used",
                "a dataclass that extends minigrad.zoo.Config",
                repr(self.config),
            )
        fields = {field.name for field in dataclasses.fields(self.config)}
        self._refuse("a setting", fields & _TAKEN)
        self._refuse("a verb", _LOADED.intersection(self.verbs))
        self._refuse("a preset", {"default"}.intersection(self.presets))
        for name, given in {**self.presets, "tiny": self.tiny}.items():
            for unknown in sorted(given.keys() - fields):
                raise ArgumentError(
                    f"ModelSpec {self.name!r}: preset {name!r} has a setting {unknown!r}, which the config has not",
                    fix=nearest(unknown, sorted(fields)),
                )

    def _refuse(self, what: str, names: set[str]) -> None:
        for name in sorted(names):
            raise ArgumentError(
                f"ModelSpec {self.name!r}: {what} cannot be called {name!r}, which means something else",
                fix="choose another name",
            )
