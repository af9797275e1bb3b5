"""A small model of the zoo, and plugins that are not really installed, for the zoo's tests."""

import dataclasses
import importlib.metadata

import numpy as np
import pytest

import minigrad as mg
from minigrad import zoo


@dataclasses.dataclass(frozen=True)
class LineConfig(zoo.Config):
    """A line."""

    width: int = zoo.option(3, "how many inputs")
    sizes: tuple[int, ...] = zoo.option((2, 2), "sizes", least=0)
    bias: bool = zoo.option(True, "whether there is an offset")
    kind: str = zoo.option("plain", "which", choices=("plain", "odd"))
    share: float | None = zoo.option(None, "a share")
    steps: int = zoo.option(12, "steps")
    batch: int = zoo.option(4, "rows")
    valid_every: int = zoo.option(4, "steps")


def arrays(config):
    x = np.random.default_rng(0).standard_normal((16, config.width)).astype("float32")
    return x, x.sum(1, keepdims=True)


def data(config, path):
    return zoo.Data(mg.train.ArrayBatches(arrays(config), config.batch), mg.train.ArrayBatches(arrays(config), 16))


def loss(model, batch):
    x, y = (mg.tensor(part) for part in batch)
    return {"loss": (mg.nn.functional.mse_loss(model(x), y, reduction="sum"), len(x))}


SPEC = zoo.ModelSpec(
    name="line",
    task="regression",
    summary="a line",
    config=LineConfig,
    data=data,
    build=lambda config: mg.nn.Linear(config.width, 1, bias=config.bias),
    loss=loss,
    example=arrays,
    predict=lambda loaded, inputs: [len(text) for text in inputs],
    presets={"wide": {"width": 5}},
    verbs={"double": lambda loaded, x: 2 * x},
)


class Point:
    """An entry point, as far as the registry looks at it."""

    def __init__(self, name, loaded, package="somebody's", version="1.0"):
        self.name, self.value, self.loaded = name, f"{name}:spec", loaded
        self.dist = type("Dist", (), {"name": package, "version": version})()

    def load(self):
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


@pytest.fixture
def installed(monkeypatch):
    """Plugins that are not really installed."""
    points = [Point("line", SPEC)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    return points
