"""Digits: a small convolutional network reads digits that are drawn at random, and a linear one shows what that is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from minigrad.zoo import Config, Data, ModelSpec, Page, Picture, option


@dataclass(frozen=True)
class ImageConfig(Config):
    """What every model that reads these images needs to know about them."""

    images: int = option(10_000, "how many images to learn from", least=1, most=1_000_000)
    held_out: int = option(2000, "how many others to validate with, and again as many to test with", least=1)
    images_seed: int = option(0, "of the random numbers that the images are drawn with, or divided by", least=0)
    classes: tuple[str, ...] = option((), "names of the classes; read from the data")

    @property
    def outputs(self) -> int:
        """How many classes there are: the ten digits, unless the data has others."""
        return len(self.classes) or 10


@dataclass(frozen=True)
class DigitsConfig(ImageConfig):
    """Two convolutions with pooling, or a linear softmax."""

    net: str = option("conv", "which network", choices=("conv", "linear"))
    channels: int = option(8, "of the first convolution; the second has twice as many", least=1, most=256)
    hidden: int = option(64, "units between the convolutions and the ten digits", least=1)
    steps: int = option(800, "how many steps to train")
    batch: int = option(64, "how many images in a batch")
    lr: float = option(3e-3, "learning rate at the start; it falls to 0 in half a cosine")
    weight_decay: float = option(0.01, "how much weights shrink, times the learning rate")
    valid_every: int = option(200, "steps between validations")


def data(config: ImageConfig, path: str | None) -> Data:
    """Images to learn from, drawn or out of a folder, and others to validate with."""
    from minigrad.train import ArrayBatches

    from .data import parts_of

    parts = parts_of(config, path)
    train, valid = ArrayBatches(parts.train, config.batch), ArrayBatches(parts.valid, 500, shuffle=False)
    return Data(train, valid, replace(config, classes=parts.classes))


def build(config: DigitsConfig) -> Any:
    from .model import Net, Softmax

    return Softmax(config.outputs) if config.net == "linear" else Net(config.channels, config.hidden, config.outputs)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy, and how many images are read rightly."""
    import minigrad as mg
    from minigrad.nn import functional as F

    where = next(model.parameters()).device
    images, labels = (mg.tensor(part, device=where) for part in batch)
    logits = model(images)  # (N, 10)
    right = (logits.argmax(axis=1) == labels).sum()
    return {
        "loss": (F.cross_entropy(logits, labels, reduction="sum"), len(labels)),
        "accuracy": (right, len(labels)),
    }


def example(config: ImageConfig) -> Any:
    from .images import images

    return images(10, config.images_seed, "train")


def schedule(optimizer: Any, config: ImageConfig) -> Any:
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """What a picture or a text drawing shows, or a digit drawn anew for "3" or "3:17", how surely, and what else it might be."""
    import minigrad as mg

    from .data import size_of
    from .images import as_text, from_words

    names = loaded.config.classes or tuple(range(10))
    answers = []
    for text in inputs:
        image = from_words(text, size_of(loaded.config))
        with mg.no_grad():
            chances = loaded.model(mg.tensor(image[None])).softmax(axis=1).numpy()[0]
        first, second = (int(label) for label in chances.argsort()[::-1][:2])
        answers.append(
            {
                "input": text,
                "digit" if not loaded.config.classes else "class": names[first],
                "probability": round(float(chances[first]), 4),
                "or": names[second],
                "or_probability": round(float(chances[second]), 4),
                "drawing": f"\n{as_text(image)}",
            }
        )
    return answers


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The accuracy on test images, which neither training nor the choice of the best step has seen."""
    from .data import parts_of
    from .model import accuracy, confusions

    test = parts_of(loaded.config, path).test
    return {"accuracy": accuracy(confusions(loaded.model, *test)), "images": len(test[1])}


def page(loaded: Any) -> Page:
    """The exported page fits a drawing into the image as `predict` does."""
    from .images import MARGIN

    return Page(picture=Picture(margin=MARGIN, stroke=0.11))


def after(loaded: Any, folder: Any) -> str:
    """The accuracy on test images beside that of a linear softmax trained alike, and what is taken for what."""
    from minigrad.zoo import trainer_of

    from .data import parts_of
    from .model import accuracy, as_table, confusions

    config, arguments = loaded.config, loaded.arguments
    test = parts_of(config, arguments["data"]).test
    counts = confusions(loaded.model, *test)
    lines = [f"accuracy on {len(test[1])} test images: {accuracy(counts):.2%}"]
    if config.net != "linear":
        options = {name: arguments[name] for name in ("seed", "max_steps", "device")}
        plain = trainer_of(spec, replace(config, net="linear"), None, data=arguments["data"], progress=False, **options)
        plain.train()
        linear = accuracy(confusions(plain.model, *test))
        margin = 100 * (accuracy(counts) - linear)
        lines.append(f"a linear softmax, trained alike:  {linear:.2%} (the convolutions are worth {margin:.1f} points)")
    return "\n".join([*lines, "", as_table(counts, config.classes)])


spec = ModelSpec(
    name="digits",
    task="classification",
    summary="a small convolutional network that reads drawn digits",
    config=DigitsConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    predict=predict,
    plain_inputs=r"[0-9](:[0-9]{1,9})?",
    evaluate=evaluate,
    schedule=schedule,
    presets={"linear": {"net": "linear"}, "wide": {"channels": 16, "hidden": 128}},
    tiny={"channels": 2, "hidden": 8, "images": 200, "held_out": 100},
    after=after,
    page=page,
    example_inputs=("3", "7:1"),
)
