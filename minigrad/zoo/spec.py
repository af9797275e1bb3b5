"""The contract of a plugin: one `ModelSpec`, from which every verb follows.

A plugin is a package with a line in its setup.cfg,

    [options.entry_points]
    minigrad.models =
        mine = my_package:spec

and a `spec` that says how to make the data, the model and the loss. Every `minigrad list` imports it, so imports that
only `build`, `data` and the others need belong inside of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, nearest
from .page import Page

__all__ = ["Config", "Data", "Demo", "DemoResult", "ModelSpec", "option"]

# Names that `train(…)` takes besides settings, and names that a loaded model has besides verbs.
_TAKEN = {"name", "out", "data", "seed", "max_steps", "device", "compile", "progress", "live"}
_LOADED = {"spec", "config", "model", "tokenizer", "arguments", "step", "path", "verbs", "predict", "evaluate", "draw"}


def option(
    default: Any,
    help: str,
    choices: Sequence[Any] = (),
    least: float | None = None,
    most: float | None = None,
    formerly: str | None = None,
) -> Any:
    """A field of a config, with its help, and the values it may have: one of `choices`, or from `least` to `most`.

    `formerly` is the name of the setting in runs of older versions. The default may be a dict, of further options by name.
    """
    known = {"help": help, "choices": tuple(choices), "formerly": formerly}
    bounds = {name: bound for name, bound in (("least", least), ("most", most)) if bound is not None}
    metadata = {**known, **bounds}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Config:
    """How a model is trained. A plugin's config extends it by the model's own settings, and may change defaults.

    A field that is declared again keeps its bounds.
    """

    steps: int = option(1000, "how many steps to train", least=1)
    batch: int = option(32, "how many examples in a batch", least=1, most=1_000_000)
    lr: float = option(1e-2, "learning rate", least=0)
    weight_decay: float = option(0.0, "how much weights shrink, times the learning rate", least=0)
    clip: float = option(1.0, "greatest norm of the gradient; 0 for any", least=0)
    valid_every: int = option(100, "steps between validations", least=1)
    save_every: int = option(0, "steps between checkpoints; 0 for five minutes between them", least=0)
    keep: int = option(3, "how many of the newest checkpoints stay", least=1)


@dataclasses.dataclass(frozen=True)
class Data:
    """The training data (a sampler or a list of batches), the validation data, and the tokenizer of the text.

    `valid` is a sampler, or a function of the model that returns named numbers, one of them "loss". `config` is the
    config with the settings that follow from the data, such as the size of the vocabulary.
    """

    train: Any
    valid: Any = None
    config: Any = None
    tokenizer: Any = None


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """What a demo showed: whether the model learned enough, a closing sentence, text to show, and commands to try next.

    `commands` are the words after `minigrad`, by a label: {"ask it": ["predict", folder, "1 0"]}. The report shows `scores`.
    """

    is_success: bool
    verdict: str
    shown: str = ""
    commands: Mapping[str, Sequence[object]] = dataclasses.field(default_factory=dict)
    scores: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Demo:
    """How `minigrad demo` shows a model: it trains the model, then calls `evaluate(loaded, folder)`.

    `title` is its first line, `evaluating` says what the model is evaluated on. Settings that are `fixed` cannot be changed.
    """

    title: str
    evaluating: str
    evaluate: Callable[[Any, Any], DemoResult]
    fixed: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, repr=False)
class ModelSpec:
    """A model as the zoo knows it.

    Needed:
    `task` says what it is for; a model has the verbs of its task (minigrad.zoo.tasks).
    `data(config, path)` reads the file or folder `path`, or makes its own data where it is None.
    `build(config)` makes the model.
    `loss(model, batch)` returns terms, `{"loss": (sum, units)}`.
    `example(config)` is a tiny batch for checks.

    Optional, of training:
    `optimizer(model, config)` and `schedule(optimizer, config)` replace AdamW and a constant rate.
    `metric` names the number of a validation by which a checkpoint is the best, the least unless `maximize`.
    `samples(loaded)` returns text to show at each validation, `draw(loaded)` a minigrad.viz.Scene, or None.
    `after(loaded, folder)` runs when training ends, and returns text to print.
    `takes_data=False` refuses `--data`, and `most_files=1` several files. `estimates_gradients` says why gradients are not
    the derivatives of the loss.

    Optional, of use:
    `predict(loaded, inputs)` answers a list of strings with one printable, JSON-able answer each. If it takes an input for
    the path of a file, `plain_inputs` is the pattern of those that are none: clients of `minigrad serve` then send no path.
    `evaluate(loaded, path)` returns named numbers.
    `verbs` become methods of what `load` returns; each takes the loaded model first.
    `attend(loaded, text)` returns what the model is called with to show its attention: "inputs", what `model(*inputs)`
    takes, and "tokens", one for each position; and if there are, "keys" (the tokens that cross-attention looks at),
    "chosen" (the token that is chosen at each position), "sentences" (what was read, and what was written),
    "options" of the call, "vocabulary" (the names of the tokens that the logits are of), "logits", and "row".
    `demo` is what `minigrad demo` shows. `page(loaded)` is a zoo.Page, with names and ranges for the exported page.
    `quantizable` says that its weights may be packed: that nothing of the plugin
    reads those of its Linear, attention and embedding layers but these layers themselves.

    Optional, of checks:
    `tiny` are settings for quick checks. `example_inputs` are strings that `predict` answers, or a function of the
    config that returns them. `presets` are named settings, `sizes` those of the network alone, from small to large.
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
    plain_inputs: str | None = None
    evaluate: Callable[[Any, str | None], dict[str, Any]] | None = None
    optimizer: Callable[[Any, Any], Any] | None = None
    schedule: Callable[[Any, Any], Any] | None = None
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    tiny: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    sizes: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    verbs: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)
    after: Callable[[Any, Any], str] | None = None
    samples: Callable[[Any], str] | None = None
    draw: Callable[[Any], Any] | None = None
    attend: Callable[[Any, str], dict[str, Any]] | None = None
    demo: Demo | None = None
    page: Callable[[Any], Page] | None = None
    metric: str = "loss"  # which number of a validation says what is best
    maximize: bool = False
    example_inputs: Sequence[str] | Callable[[Any], Sequence[str]] = ()
    takes_data: bool = True
    quantizable: bool = False
    most_files: int | None = None
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
        for name, given in {**self.presets, **self.sizes, "tiny": self.tiny}.items():
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
