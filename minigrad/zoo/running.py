"""What can be done with any model of the zoo: make it, train it, go on training it, load it and use it."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shlex
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..data.batching import Batch
from ..engine.backend import is_array, seed_everything
from ..engine.convert import tensor
from ..engine.errors import ArgumentError, CheckpointError, MinigradError, nearest
from ..engine.modes import enable_grad
from ..engine.tensor import Tensor
from ..train import Checkpoint, RunError, Trainer, TrainResult, find_checkpoint, read_checkpoint
from ..train.gradients import checked_terms
from ..train.run import holds_a_run
from ..train.settings import as_sampler
from ..train.steps import evaluate as mean_loss
from ..train.steps import undisturbed
from ..train.world import alone, world
from .reading import CHECK_PATH, check_paths, data_of, paths_of
from .registry import blamed, find, package_of
from .settings import configure
from .spec import ModelSpec

__all__ = ["Loaded", "create", "load", "load_as", "newest_run", "resume", "train", "trainer_of"]

# What a run directory says of the model in it, and of which type each is.
_STORY: dict[str, Any] = {
    "model": str,
    "preset": (str, type(None)),
    "config": dict,
    "data": (str, type(None)),
    "seed": int,
    "device": str,
    "max_steps": int,
}


def named(name: str) -> tuple[ModelSpec, str | None]:
    """ "gpt:nano" -> the spec of gpt, and "nano"."""
    model, _, preset = name.partition(":")
    return find(model), preset or None


def create(name: str, **overrides: Any) -> Any:
    """A model that has not been trained: `create("gpt:nano", n_layer=2)`."""
    spec, preset = named(name)
    config = configure(spec, preset, overrides)
    with blamed(spec, "building the model"):
        return spec.build(config)


def train(
    name: str,
    out: str | os.PathLike[str] | None = None,
    *,
    data: str | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    device: str = "cpu",
    progress: bool = True,
    live: bool = False,
    **overrides: Any,
) -> TrainResult:
    """Train a model into a run directory: `train("xor", "runs/xor", seed=1, lr=0.1)`; `live` serves a page that follows it."""
    spec, preset = named(name)
    config = configure(spec, preset, overrides)
    trainer = trainer_of(
        spec, config, out, data=data, seed=seed, max_steps=max_steps, device=device, progress=progress, preset=preset
    )
    return _finished(trainer, spec, live)


def resume(
    out: str | os.PathLike[str], *, max_steps: int | None = None, progress: bool = True, live: bool = False
) -> TrainResult:
    """Go on with a run where it stopped; `live` serves a page that follows it."""
    story = story_of(out)
    spec = spec_of(story, out)
    check_paths(spec, story["data"], "put it back: a run goes on with what it began with")
    trainer = trainer_of(
        spec,
        config_of(spec, story),
        out,
        data=story["data"],
        seed=story["seed"],
        max_steps=story["max_steps"] if max_steps is None else max_steps,
        device=story["device"],
        preset=story["preset"],
        progress=progress,
        again=True,
    )
    if trainer.step > (trainer.max_steps or 0):
        raise ArgumentError(
            f"{os.fspath(out)!r} is already further than that", f"max_steps above {trainer.step}", trainer.max_steps
        )
    if trainer.step == trainer.max_steps:
        trainer.progress.say(f"it is at its last step, {trainer.step:,}, already: --max-steps N goes on")
    return _finished(trainer, spec, live)


def _finished(trainer: Trainer, spec: ModelSpec, live: bool) -> TrainResult:
    if not live:
        return _trained(trainer, spec)
    from .reporting import followed

    with followed(trainer, spec, config_of(spec, trainer.config)):
        return _trained(trainer, spec)


def _trained(trainer: Trainer, spec: ModelSpec) -> TrainResult:
    out = trainer.out
    saved = None if out is None else f"mend the plugin, and go on with: minigrad resume {os.fspath(out)}"
    with blamed(spec, "training", saved):
        result = trainer.train()
    if spec.after is not None and out is not None and result.reason != "interrupted" and trainer.world.rank == 0:
        lost = f"nothing is lost: the trained model is in {os.fspath(out)!r}"
        with alone(), blamed(spec, "showing what it learned", lost):  # the other ranks have left
            shown = spec.after(load_as(spec, out), Path(out))
        if shown:
            trainer.progress.say(shown)
    return result


def trainer_of(
    spec: ModelSpec,
    config: Any,
    out: str | os.PathLike[str] | None,
    *,
    data: str | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    device: str = "cpu",
    preset: str | None = None,
    progress: bool = True,
    again: bool = False,
) -> Trainer:
    """A Trainer for a model of the zoo; with `again`, one that goes on with the run in `out`."""
    if out is not None and not again:
        _refuse_unfit(out)
    seed_everything(seed)
    given = data_of(spec, config, data)
    config = given.config if given.config is not None else config
    seed_everything(seed)
    with blamed(spec, "building the model"):
        model = spec.build(config)
        model = model if device == "cpu" else model.to(device)
        optimizer = (spec.optimizer or adamw)(model, config)
        steps = config.steps if max_steps is None else max_steps
        planned = dataclasses.replace(config, steps=steps)  # a schedule ends where training ends
        schedule = None if spec.schedule is None else spec.schedule(optimizer, planned)
    story = {
        "model": spec.name,
        "package": package_of(spec),
        "preset": preset,
        "config": dataclasses.asdict(config),
        "data": None if data is None else ",".join(os.path.abspath(part) for part in paths_of(data)),
        "seed": seed,
        "device": device,
    }
    trainer = (Trainer.resume if again else Trainer)(
        model,
        spec.loss if device == "cpu" else _with_batches_on(device, spec.loss),
        given.train,
        optimizer,
        out=out,
        schedule=schedule,
        valid=given.valid,
        tokenizer=given.tokenizer,
        config=story,
        seed=seed,
        max_steps=steps,
        clip_norm=config.clip or None,
        valid_every=None if given.valid is None else config.valid_every,
        save_every=config.save_every or None if out else None,
        keep=config.keep,
        metric=spec.metric,
        maximize=spec.maximize,
        progress=progress,
    )
    trainer.way_on = f"minigrad resume {shlex.quote(os.fspath(out or ''))}"
    _let_see(trainer, Loaded(spec, config, model, given.tokenizer, {**story, "max_steps": steps}, 0, Path(out or "")))
    return trainer


def _let_see(trainer: Trainer, loaded: Loaded) -> None:
    """Let the trainer show samples and draw pictures, each of the model as it is then."""
    itself, spec = weakref.ref(trainer), loaded.spec

    def now(show: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda model: show(dataclasses.replace(loaded, step=getattr(itself(), "step", 0)))

    if spec.samples is not None and trainer.valid is not None:
        trainer.samples = now(spec.samples)
    if spec.draw is not None:
        trainer.draw = now(spec.draw)


def _with_batches_on(device: str, loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The loss, given batches whose arrays are Tensors on the model's device."""

    def placed(part: Any) -> Any:
        if isinstance(part, Batch):
            return part.to(device)
        if isinstance(part, Mapping):
            return {name: placed(value) for name, value in part.items()}
        if isinstance(part, (tuple, list)):
            return type(part)(placed(value) for value in part)
        return tensor(part, device=device) if is_array(part) or isinstance(part, Tensor) else part

    return functools.wraps(loss)(lambda model, batch: loss(model, placed(batch)))


def adamw(model: Any, config: Any) -> Any:
    """The optimiser of a model whose spec has none of its own."""
    from ..optim import AdamW

    return AdamW(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)


def _refuse_unfit(out: str | os.PathLike[str]) -> None:
    """A run is never overwritten and needs a place that can be written to, and that is said before time is spent on the data."""
    ranks, folder = world(), os.fspath(out)
    with ranks.bound():
        if ranks.from_first(ranks.rank == 0 and holds_a_run(out)):
            raise RunError(
                f"{folder!r} already holds a run",
                fix=f"go on with it: minigrad resume {folder}; or choose another --out",
            )
        place = Path(out).absolute()
        there = next(path for path in (place, *place.parents) if os.path.exists(path))
        if ranks.rank == 0 and not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            problem = "may not be written to" if there.is_dir() else "is a file"
            raise RunError(
                f"{folder!r} cannot be a run directory: {os.fspath(there)!r} {problem}", fix="choose another --out"
            )


@dataclasses.dataclass(frozen=True, repr=False)
class Loaded:
    """A trained model with all that belongs to it; the verbs of its spec are methods of it."""

    spec: ModelSpec
    config: Any
    model: Any
    tokenizer: Any
    story: Mapping[str, Any]  # what was asked for when it was trained
    step: int
    path: Path

    def __repr__(self) -> str:
        return f"<{self.spec.name} of {os.fspath(self.path)!r}, step {self.step:,}: {', '.join(self.verbs)}>"

    def predict(self, *inputs: str) -> list[Any]:
        """The model's answers to inputs as they are given on the command line."""
        if self.spec.predict is None:
            raise ArgumentError(f"{self.spec.name} has nothing to predict", fix=f"it can {', '.join(self.verbs)}")
        with undisturbed(self.model), blamed(self.spec, "predicting"):
            return self.spec.predict(self, list(inputs))

    def evaluate(self, data: str | None = None) -> dict[str, Any]:
        """How good it is, in named numbers: as its spec judges, or its loss on the validation data."""
        path = self.story["data"] if data is None else data
        gone = "put it back where it was in training, or give other data: --data PATH"
        check_paths(self.spec, path, gone if data is None else CHECK_PATH)
        with undisturbed(self.model), blamed(self.spec, "evaluating"):
            if self.spec.evaluate is not None:
                return self.spec.evaluate(self, path)
            seed_everything(self.story["seed"])
            given = data_of(self.spec, self.config, path)
            judge = given.train if given.valid is None else given.valid
            judge = judge if callable(judge) else as_sampler("valid", judge, self.story["seed"])
            metrics = () if callable(judge) else self._metrics(next(iter(judge)))
            return mean_loss(self.model, self.spec.loss, judge, metrics)

    def draw(self) -> Any:
        """A picture of what it does, as its spec draws it: a minigrad.viz.Scene."""
        if self.spec.draw is None:
            raise ArgumentError(f"{self.spec.name} has no picture", fix=f"it can {', '.join(self.verbs)}")
        with undisturbed(self.model), blamed(self.spec, "drawing"):
            return self.spec.draw(self)

    def _metrics(self, batch: Any) -> list[str]:
        """The terms of the loss that no parameter has a part in: they are shown, not added to it."""
        with enable_grad():
            terms = checked_terms(self.spec.loss(self.model, batch))
        return [name for name, (amount, _) in terms.items() if not amount.requires_grad]

    @property
    def verbs(self) -> list[str]:
        """What it can do besides: its own verbs."""
        own = {"predict": self.spec.predict, "draw": self.spec.draw}
        return ["evaluate", *[name for name, function in own.items() if function is not None], *self.spec.verbs]

    def __getattr__(self, name: str) -> Any:
        verbs = vars(self)["spec"].verbs if "spec" in vars(self) else {}
        if name in verbs:
            return lambda *args, **options: self._do(name, *args, **options)
        raise AttributeError(f"a loaded model has no {name!r}: {nearest(name, [*vars(self), *verbs])}")

    def _do(self, verb: str, *args: Any, **options: Any) -> Any:
        with blamed(self.spec, f"it was told to {verb}"):
            return self.spec.verbs[verb](self, *args, **options)


def load(run: str | os.PathLike[str], which: str = "best") -> Loaded:
    """The model of a run directory, of one checkpoint file, or of an exported folder, ready to be used."""
    from .export import is_exported, load_exported  # which is made of what is here

    if is_exported(run):
        return load_exported(run)
    checkpoint = read_checkpoint(_best_or_latest(run, which))
    return _loaded(spec_of(_checked_story(checkpoint.state, run), run), checkpoint, run)


def load_as(spec: ModelSpec, run: str | os.PathLike[str], which: str = "best") -> Loaded:
    """As `load`, of a spec that need not be installed."""
    return _loaded(spec, read_checkpoint(_best_or_latest(run, which)), run)


def _loaded(spec: ModelSpec, checkpoint: Checkpoint, run: str | os.PathLike[str]) -> Loaded:
    story, step = _checked_story(checkpoint.state, run), int(checkpoint.state.get("step", 0))
    return assembled(spec, story, checkpoint.model, checkpoint.tokenizer, step, Path(run))


def assembled(
    spec: ModelSpec, story: Mapping[str, Any], weights: Mapping[str, Any], tokenizer: Any, step: int, path: Path
) -> Loaded:
    """A model built as its story says, with these weights; those of another version are refused."""
    config = config_of(spec, story)
    with blamed(spec, "building the model"):
        model = spec.build(config)
    try:
        model.load_state_dict(weights)
    except MinigradError as error:
        raise _other_version(spec, story, error) from error
    model.eval()
    return Loaded(spec, config, model, tokenizer, story, step, path)


def spec_of(story: Mapping[str, Any], run: str | os.PathLike[str]) -> ModelSpec:
    """The spec of the model that a run is of."""
    try:
        return find(story["model"])
    except ArgumentError as error:
        package = story.get("package", "the package that it came with")
        raise ArgumentError(
            f"{str(error).splitlines()[0]}, which {os.fspath(run)!r} was trained with", fix=f"install {package}"
        ) from None


def _best_or_latest(run: str | os.PathLike[str], which: str) -> Path:
    """A run without validation has no best checkpoint; its latest is as good."""
    try:
        return find_checkpoint(run, which)
    except MinigradError:
        return find_checkpoint(run, "latest")


def config_of(spec: ModelSpec, story: Mapping[str, Any]) -> Any:
    """The config that a run was trained with; one of another version is refused with what differs."""
    try:
        return configure(spec, None, story["config"])
    except ArgumentError as error:
        raise _other_version(spec, story, error) from error


def _other_version(spec: ModelSpec, story: Mapping[str, Any], error: MinigradError) -> RunError:
    trained, now = story.get("package"), package_of(spec)
    versions = "" if trained in (None, now) else f", with {trained} (installed is {now})"
    problem, *rest = (line.strip() for line in str(error).splitlines())
    return RunError(
        f"this run was trained by another version of {spec.name!r}{versions}: {problem}",
        got="; ".join(rest) or None,
        fix="install the version that it was trained with, or train anew",
    )


def story_of(out: str | os.PathLike[str]) -> dict[str, Any]:
    """What was asked for when a run began: from its latest checkpoint, or from config.json if there is none yet."""
    if Path(out).is_file():
        raise RunError(f"{os.fspath(out)!r} is a file", "the directory of a run", fix="give the directory it is from")
    try:
        state = read_checkpoint(find_checkpoint(out, "latest")).state
    except CheckpointError:
        if not (Path(out) / "config.json").is_file():
            raise
        return _first_story(out)
    return _checked_story(state, out)


def _first_story(out: str | os.PathLike[str]) -> dict[str, Any]:
    path = Path(out) / "config.json"
    try:
        return _checked_story(json.loads(path.read_text(encoding="utf-8")), out)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{os.fspath(path)!r} cannot be read", fix="train anew into another directory") from error


def _checked_story(state: Any, out: str | os.PathLike[str]) -> dict[str, Any]:
    """The story from a checkpoint's state or from config.json, with the number of steps that was last asked for."""
    parts = [state.get(name) if isinstance(state, dict) else None for name in ("config", "training")]
    story, training = (dict(part) if isinstance(part, dict) else {} for part in parts)
    story |= {name: training[name] for name in ("max_steps",) if name in training}
    if not is_story(story):
        raise RunError(
            f"{os.fspath(out)!r} is no run of `minigrad train`",
            "the directory that it trained into",
            fix="of an exported folder, give the run it came from; of a Trainer of your own, use it in Python",
        )
    return story


def is_story(story: Mapping[str, Any]) -> bool:
    """Whether all is there that a model is built and used by."""
    return all(key in story and isinstance(story[key], _STORY[key]) for key in _STORY)


def newest_run(task: str | None = None, root: str | os.PathLike[str] = "runs") -> Path:
    """The run directory under `root` that was trained last, of models of one task if it is given."""
    folders = [path.parent for path in Path(root).glob("*/config.json")]
    for folder in sorted(folders, key=_last_trained, reverse=True):
        try:
            if task is None or find(_first_story(folder)["model"]).task == task:
                return folder
        except MinigradError:
            continue
    wanted = "run" if task is None else f"run of a model for {task}"
    raise RunError(f"there is no {wanted} in {os.fspath(root)!r}", fix="train one: minigrad train NAME --out runs/NAME")


def _last_trained(folder: Path) -> float:
    return max(path.stat().st_mtime for name in ("latest", "config.json") if (path := folder / name).is_file())
