"""Regression: a line and a small MLP learn sin(x) from -10 to 10."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.zoo import Config, Data, ModelSpec, Page, Slider, option

FAR = 1e6  # how far out a value may be asked for


@dataclass(frozen=True)
class RegressionConfig(Config):
    """A curve, or a line."""

    hidden: tuple[int, ...] = option((10, 10), "how many units in each hidden layer; none for a line", least=1)
    steps: int = option(3000, "how many steps to train")
    batch: int = option(100, "how many of the hundred points in a batch")
    valid_every: int = option(500, "steps between validations")


def data(config: RegressionConfig, path: str | None) -> Data:
    """A hundred points of sin(x), validated between them."""
    from minigrad.train import ArrayBatches

    from .model import between, points

    return Data(ArrayBatches(points(), config.batch), ArrayBatches(between(), len(between()[0]), shuffle=False))


def build(config: RegressionConfig) -> Any:
    """A curve with random weights."""
    from .model import Curve

    return Curve(config.hidden)


def schedule(optimizer: Any, config: RegressionConfig) -> Any:
    """Down to 0 along half a cosine, so that a line comes to rest where its error is least."""
    from minigrad.optim import Cosine

    return Cosine(optimizer, total=config.steps)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The squared error."""
    import minigrad as mg
    from minigrad.nn import functional as F

    x, y = (mg.tensor(part) for part in batch)
    return {"loss": (F.mse_loss(model(x), y, reduction="sum"), len(x))}


def example(config: RegressionConfig) -> Any:
    """Five of the points."""
    from .model import points

    return tuple(side[::20] for side in points())


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """The value at places such as "1.5", beside sin itself."""
    import math

    import numpy as np

    from minigrad.errors import ArgumentError

    from .model import function_of

    f = function_of(loaded.model)
    answers = []
    for text in inputs:
        try:
            x = float(text)
            if not abs(x) <= FAR:
                raise ValueError
        except ValueError:
            raise ArgumentError(
                f"{text!r} is not a place", f"a number from {-FAR:.0f} to {FAR:.0f}", repr(text), 'for instance "1.5"'
            ) from None
        value = f(np.array([[x]], "float32")).item()
        answers.append({"input": text, "value": round(value, 4), "sin": round(math.sin(x), 4)})
    return answers


def evaluate(loaded: Any, path: str | None) -> dict[str, float]:
    """The mean squared errors of the model and of the line of least squares, at the points and between them."""
    from .model import between, function_of, least_squares, mean_squared_error, points

    slope, offset = least_squares()
    f = function_of(loaded.model)
    return {
        "mse": mean_squared_error(f, points()),
        "mse_between": mean_squared_error(f, between()),
        "least_squares_mse": mean_squared_error(lambda x: slope * x + offset, points()),
        "least_squares_mse_between": mean_squared_error(lambda x: slope * x + offset, between()),
    }


def after(loaded: Any, folder: Any) -> str:
    """The errors of the model beside those of the line of least squares; of a line also slope and offset."""
    import numpy as np

    from .model import between, function_of, least_squares, mean_squared_error, outside, points

    slope, offset = least_squares()
    f = function_of(loaded.model)
    name = "-".join(str(size) for size in (1, *loaded.config.hidden, 1)) if loaded.config.hidden else "line, learned"
    lines = [f"mean squared error        line, least squares  {name:>13}"]
    for place, where in (("at the points", points()), ("between them", between()), ("outside, up to 12", outside())):
        line, curve = mean_squared_error(lambda x: slope * x + offset, where), mean_squared_error(f, where)
        lines.append(f"{place:24}  {line:19.6f}  {curve:13.6f}")
    if not loaded.config.hidden:
        start, end = f(np.array([[0.0], [1.0]], "float32"))[:, 0].tolist()
        for label, learned, closed in (("slope", end - start, slope), ("offset", start, offset)):
            lines.append(f"{label:24}  {closed:19.8f}  {learned:13.8f}")
    return "\n".join(lines)


def draw(loaded: Any) -> Any:
    """The points, and the curve through them."""
    from minigrad.viz.drawing.plane import fit

    from .model import function_of, points

    f = function_of(loaded.model)
    return fit(*points(), lambda x: f(x[:, None]), "sin(x)")


def page(loaded: Any) -> Page:
    """A slider over the points that were learned from, and somewhat further."""
    return Page(inputs=[Slider("x", -12, 12, 1.5, 0.1)], answers=["sin(x), learned"])


spec = ModelSpec(
    name="regression",
    task="regression",
    summary="sin(x) from -10 to 10, learned by a line and by a small MLP",
    config=RegressionConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    predict=predict,
    example_inputs=("1.5", "-3"),
    evaluate=evaluate,
    schedule=schedule,
    # A line is validated once, at its end: between the points another line is better, and would be kept as the best.
    presets={"linear": {"hidden": (), "lr": 0.1, "steps": 1000, "valid_every": 1000}},
    tiny={"steps": 300},
    after=after,
    draw=draw,
    page=page,
)
