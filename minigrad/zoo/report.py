"""What the zoo adds to the report of a run: the summary, defaults and help of its model, and the graph of its computation."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, MinigradError, MissingExtraError
from ..runtime.process_group import single_process
from ..train import Trainer
from ..train.arguments import plain_config
from ..train.evaluation import evaluation_mode
from ..train.run_data import shown_path
from ..viz.graph.graph import Graph
from ..viz.runs.live import serve
from ..viz.runs.report import About, Setting
from ..viz.runs.report import report as write_report
from .checkpoints import load_as
from .registry import find
from .run_arguments import arguments_of, check_is_run
from .spec import ModelSpec

__all__ = ["about", "about_run", "followed", "report"]

LARGE = 2_000_000  # parameters of a model beyond which its graph is left out, since it would take too long
MODULES = 400
TALL = 2000  # points; a graph that is taller is shown with its modules closed


def report(run: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of a run, `report.html` in its directory unless `path` says otherwise, with the graph of its model."""
    check_is_run(run)
    return write_report(run, path, about_run(run))


def about_run(run: str | os.PathLike[str]) -> About:
    """What is known of the model of a run; empty if the model is not installed."""
    try:
        arguments = arguments_of(run)
        spec = find(arguments["model"])
    except MinigradError:
        return About()
    known = about(spec, arguments["config"])
    try:
        loaded = load_as(spec, run)
    except Exception as error:  # the run may be damaged, or the plugin's build may fail
        return dataclasses.replace(known, no_graph=f"the model cannot be loaded: {str(error).splitlines()[0]}")
    graph, why_none = _graph(spec, loaded.config, loaded.model, run)
    return dataclasses.replace(known, graph=graph, no_graph=why_none)


@contextlib.contextmanager
def followed(trainer: Trainer, spec: ModelSpec, config: Any) -> Iterator[None]:
    """Inside, rank 0 serves a page that follows the training, to this machine only."""
    if trainer.group.rank != 0:
        yield
        return
    if trainer.out is None:
        raise ArgumentError("a page cannot follow a training that writes nothing down", fix="say where: out=…")
    with single_process():  # the other ranks do not draw
        graph, why_none = _graph(spec, config, trainer.model, trainer.out, fresh=True)
    known = dataclasses.replace(about(spec, config), graph=graph, no_graph=why_none)
    with serve(trainer.out, known) as address:
        trainer.progress.say(f"see it live: {address}")
        yield


def about(spec: ModelSpec, config: Any) -> About:
    """What a spec says of itself, and of the settings of a run, which are a config or a dict of what was in one."""
    defaults = plain_config(spec.config())
    helps = {field.name: str(field.metadata.get("help", "")) for field in dataclasses.fields(spec.config)}
    values = plain_config(config)
    settings = [
        Setting(name, value, defaults.get(name), helps.get(name, ""), name in defaults)
        for name, value in values.items()
    ]
    return About(spec.summary, settings)


def _graph(
    spec: ModelSpec, config: Any, model: Any, run: str | os.PathLike[str], fresh: bool = False
) -> tuple[str, str]:
    """The graph of the model on the example of its spec, as SVG, or the reason why there is none; `fresh` builds a new model."""
    from .graph import graph_of

    if sum(p.data.size for p in model.parameters()) > LARGE or len(list(model.modules())) > MODULES:
        return "", f"the model is large; minigrad graph {shlex.quote(shown_path(run))} draws its graph"
    try:
        with evaluation_mode(model):
            graph = graph_of(spec, config, None if fresh else model, depth=2)
        scene = graph.scene if graph.scene.height <= TALL else Graph(graph.boxes, graph.name, look=graph.look).scene
        return scene.svg(standalone=False), ""
    except MissingExtraError as error:
        return "", f"{str(error).splitlines()[0]}; minigrad doctor says how to install it"
    except Exception as error:  # whatever a stranger's model may raise
        return "", f"the graph could not be drawn: {type(error).__name__}: {' '.join(str(error).split())}"
