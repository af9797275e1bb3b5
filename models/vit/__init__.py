"""ViT: a vision transformer reads the drawn digits that the convolutional network beside it reads, or any folder of pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from minigrad_models.digits import ImageConfig, evaluate, loss, predict

from minigrad.errors import ArgumentError
from minigrad.zoo import Data, ModelSpec, option


@dataclass(frozen=True)
class VitConfig(ImageConfig):
    """A picture in patches, and a transformer."""

    size: int = option(16, "pixels along a side of a picture; others are stretched to it", least=4)
    patch: int = option(4, "pixels along a side of a patch", least=1)
    layers: int = option(3, "how many blocks", least=1, most=1000)
    dim: int = option(64, "width of the vectors", least=1)
    heads: int = option(4, "heads of each attention", least=1)
    dropout: float = option(0.1, "share of values dropped while training", least=0)
    moved: int = option(1, "pixels by which pictures are moved at random while training, at most", least=0)
    turned: float = option(0.0, "degrees by which they are turned, at most", least=0)
    stretched: float = option(0.0, "share by which they are stretched or shrunk, at most", least=0)
    steps: int = option(3000, "how many steps to train")
    batch: int = option(64, "how many images in a batch")
    lr: float = option(
        2e-3, "greatest learning rate; it rises for a tenth of the steps, and falls to 0 in half a cosine"
    )
    weight_decay: float = option(0.05, "how much weights shrink, times the learning rate")
    valid_every: int = option(500, "steps between validations")

    def __post_init__(self) -> None:
        if self.size % self.patch or self.dim % self.heads:
            expected = "size a multiple of patch, and dim of heads"
            got = f"size={self.size}, patch={self.patch}, dim={self.dim}, heads={self.heads}"
            raise ArgumentError("vit: the sizes do not fit", expected, got)


def data(config: VitConfig, path: str | None) -> Data:
    """Images to learn from, each moved, turned and stretched a little whenever it comes, and others to validate with."""
    from minigrad_models.digits.data import parts_of

    from minigrad.train import ArrayBatches

    from .batches import MovedBatches

    parts = parts_of(config, path)
    train = MovedBatches(parts.train, config.batch, config.moved, config.turned, config.stretched)
    return Data(train, ArrayBatches(parts.valid, 500, shuffle=False), replace(config, classes=parts.classes))


def build(config: VitConfig) -> Any:
    from .model import VisionTransformer

    return VisionTransformer(config)


def example(config: VitConfig) -> Any:
    from minigrad_models.digits.images import images

    from minigrad.data.images import resized

    shown, labels = images(10, config.images_seed, "train")
    return resized(shown, (config.size, config.size)), labels % config.outputs


def schedule(optimizer: Any, config: VitConfig) -> Any:
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, warmup=config.steps // 10)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """The patches of a picture, by row and column, and the vector that stands for the whole."""
    from minigrad_models.digits.images import from_words

    side = loaded.config.size // loaded.config.patch
    names = ["whole", *(f"{row + 1}.{column + 1}" for row in range(side) for column in range(side))]
    return {"inputs": (from_words(text, loaded.config.size)[None],), "tokens": names}


def draw(loaded: Any) -> Any:
    """Where the whole looks, over one picture of each class."""
    from .pictures import looked_at

    return looked_at(loaded)


def after(loaded: Any, folder: Any) -> str:
    """The accuracy on test images, and what is taken for what."""
    from minigrad_models.digits.data import parts_of
    from minigrad_models.digits.model import accuracy, as_table, confusions

    test = parts_of(loaded.config, loaded.arguments["data"]).test
    counts = confusions(loaded.model, *test)
    head = f"accuracy on {len(test[1])} test images: {accuracy(counts):.2%}"
    return f"{head}\n\n{as_table(counts, loaded.config.classes)}"


spec = ModelSpec(
    name="vit",
    task="classification",
    summary="a vision transformer that reads drawn digits, or pictures in a folder",
    config=VitConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    predict=predict,
    plain_inputs=r"[0-9](:[0-9]{1,9})?",
    evaluate=evaluate,
    schedule=schedule,
    attend=attend,
    draw=draw,
    after=after,
    presets={
        "small": {"layers": 2, "dim": 32, "steps": 1000},
        "mnist": {
            "size": 28,
            "patch": 7,
            "layers": 4,
            "dim": 96,
            "dropout": 0.0,
            "moved": 2,
            "turned": 10.0,
            "stretched": 0.1,
            "steps": 6000,
            "batch": 100,
            "held_out": 5000,
        },
    },
    tiny={"layers": 1, "dim": 16, "heads": 2, "images": 200, "held_out": 100},
    example_inputs=("3", "7:1"),
)
