"""XOR: the smallest thing that a line cannot learn, by networks set by hand and by networks that learn it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.zoo import Config, Data, ModelSpec, Page, Slider, option

FAR = 1e6  # the greatest number that may be asked about
BARE = 100  # how many bare networks are trained to see how often they get stuck


@dataclass(frozen=True)
class XorConfig(Config):
    """A network 2-hidden-1."""

    hidden: int = option(8, "how many hidden units", least=1)
    activation: str = option("tanh", "of the hidden units", choices=("tanh", "sigmoid", "relu"))
    steps: int = option(600, "how many steps to train")
    batch: int = option(4, "how many of the four rows in a batch")
    lr: float = option(0.05, "learning rate")
    clip: float = option(0.0, "greatest norm of the gradient; 0 for any")


def data(config: XorConfig, path: str | None) -> Data:
    """All four rows, for training and validation."""
    from minigrad.train import ArrayBatches

    return Data(ArrayBatches(example(config), config.batch), ArrayBatches(example(config), 4, shuffle=False))


def build(config: XorConfig) -> Any:
    """A network with random weights."""
    from .model import Net

    return Net(config.hidden, config.activation)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The binary cross-entropy, and how many rows are right."""
    import minigrad as mg
    from minigrad.nn import functional as F

    x, y = (mg.tensor(part) for part in batch)
    logits = model(x)
    right = ((logits > 0) == (y > 0.5)).sum()
    return {
        "loss": (F.binary_cross_entropy_with_logits(logits, y, reduction="sum"), len(x)),
        "accuracy": (right, len(x)),
    }


def example(config: XorConfig) -> Any:
    """The four rows and their answers."""
    import numpy as np

    from .model import ROWS, TARGETS

    return np.array(ROWS, "float32"), np.array(TARGETS, "float32")


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """The probability that the answer is 1, for inputs such as "1 0"."""
    import minigrad as mg
    from minigrad.errors import ArgumentError

    answers = []
    for text in inputs:
        try:
            a, b = (float(word) for word in text.replace(",", " ").split())
            if not (abs(a) <= FAR and abs(b) <= FAR):
                raise ValueError
        except ValueError:
            raise ArgumentError(
                f"{text!r} is not a row of XOR",
                f"two numbers from {-FAR:.0f} to {FAR:.0f}",
                repr(text),
                'for instance "1 0"',
            ) from None
        with mg.no_grad():
            probability = loaded.model(mg.tensor([[a, b]])).sigmoid().item()
        answers.append({"input": text, "probability": round(probability, 4)})
    return answers


def stuck(loaded: Any, networks: int = BARE) -> dict[str, int]:
    """How many networks like this one, of seeds 0, 1, 2, …, are not right on all four rows after as many steps."""
    from dataclasses import replace

    from .model import right_answers

    config = replace(loaded.config, steps=loaded.arguments["max_steps"])
    return {"networks": networks, "stuck": sum(right < 4 for right in right_answers(config, range(networks)))}


def after(loaded: Any, folder: Any) -> str:
    """The four rows as learned and as set by hand; of a bare network also how often its like gets stuck."""
    from .model import ROWS, TARGETS, answers_by_hand

    learned = [answer["probability"] for answer in predict(loaded, [f"{a} {b}" for a, b in ROWS])]
    columns = learned, answers_by_hand("sigmoid"), answers_by_hand("relu")
    lines = ["a  b  xor  learned  sigmoid by hand  relu by hand"]
    for (a, b), (target,), *said in zip(ROWS, TARGETS, *columns):
        lines.append("{:.0f}  {:.0f}  {:3.0f}  {:7.4f}  {:15.8f}  {:12.1f}".format(a, b, target, *said))
    if loaded.config.hidden == 2:
        counted = stuck(loaded)
        lines.append(f"Of {counted['networks']} such networks, seeds 0 and up, {counted['stuck']} get stuck.")
    return "\n".join(lines)


def draw(loaded: Any) -> Any:
    """How probable 1 is all over the plane."""
    import minigrad as mg
    from minigrad.viz.drawing.plane import decision_surface

    from .model import ROWS, TARGETS

    device = loaded.model.output.bias.device
    return decision_surface(
        lambda points: loaded.model(mg.tensor(points, device=device)).sigmoid().numpy(), ROWS, TARGETS, "a XOR b"
    )


def page(loaded: Any) -> Page:
    """Two sliders."""
    return Page(
        inputs=[Slider(name, 0, 1, 1 - k) for k, name in enumerate("ab")],
        answers=["a xor b"],
        examples=["0 0", "0 1", "1 0", "1 1"],
    )


spec = ModelSpec(
    name="xor",
    task="classification",
    summary="exclusive or, learned by a network of one hidden layer, and set by hand",
    config=XorConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    predict=predict,
    example_inputs=("1 0", "1 1"),
    presets={
        "bare": {"hidden": 2, "activation": "sigmoid", "steps": 2000},
        "bare-relu": {"hidden": 2, "activation": "relu", "steps": 2000},
    },
    tiny={"steps": 300},
    verbs={"stuck": stuck},
    after=after,
    draw=draw,
    page=page,
)
