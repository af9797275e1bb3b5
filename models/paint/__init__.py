"""Paint: paints the scene that a sentence tells of, out of noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, Page, option


@dataclass(frozen=True)
class PaintConfig(Config):
    """A transformer that takes noise away, and the scenes that it learns from."""

    patch: int = option(4, "pixels along a side of a patch: 4, 8 or 16", choices=(4, 8, 16))
    layers: int = option(3, "how many blocks", least=1, most=1000)
    dim: int = option(64, "width of the vectors", least=1)
    heads: int = option(4, "heads of each attention", least=1)
    untold: float = option(0.1, "share of pictures that are shown without their sentence", least=0)
    guidance: float = option(2.0, "how many times what a sentence changes is taken", least=0)
    strokes: int = option(24, "steps from noise to a picture", least=1)
    scenes: int = option(20_000, "how many scenes to learn from", least=1)
    held_out: int = option(200, "how many sentences to test with, and pictures to validate with", least=1)
    scenes_seed: int = option(0, "of the random numbers that the scenes are drawn with", least=0)
    steps: int = option(3200, "how many steps to train")
    batch: int = option(48, "how many scenes in a batch")
    lr: float = option(
        2e-3, "greatest learning rate; it rises for a tenth of the steps, and falls to 0 in half a cosine"
    )
    weight_decay: float = option(0.01, "how much weights shrink, times the learning rate")
    valid_every: int = option(500, "steps between validations")

    def __post_init__(self) -> None:
        if self.dim % self.heads:
            raise ArgumentError(
                f"paint: dim={self.dim} cannot be shared by heads={self.heads}", "dim a multiple of heads"
            )


def data(config: PaintConfig, path: str | None) -> Data:
    """Scenes with their sentences, in noise of all strengths; with a captioner's run as `--data`, it judges at the end."""
    from minigrad_models.caption.scenes import pictures

    from .noise import NoisyScenes

    train, valid = (
        pictures(n, config.scenes_seed, part) for n, part in ((config.scenes, "train"), (config.held_out, "valid"))
    )
    return Data(NoisyScenes(train, config.batch, config.untold), NoisyScenes(valid, 100, 0.0, shuffle=False))


def build(config: PaintConfig) -> Any:
    from .model import Painter

    return Painter(config)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The squared error of what the picture would be without its noise."""
    from .model import error

    return {"loss": (error(model, batch), batch[3].size)}


def example(config: PaintConfig) -> Any:
    from minigrad_models.caption.scenes import pictures

    from .noise import NoisyScenes

    return NoisyScenes(pictures(4, config.scenes_seed, "train"), 4, 0.0).batch(0, 0)


def schedule(optimizer: Any, config: PaintConfig) -> Any:
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, warmup=config.steps // 10)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """The colour in the middle of what is painted for each sentence, and how much of it is not paper; `minigrad paint` writes it."""
    from .painting import summary

    return [{"input": text, **summary(image)} for text, image in zip(inputs, loaded.model.paint(inputs)[-1])]


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The share of sentences whose pictures a captioner, whose run is `--data`, describes by just these sentences."""
    from .painting import judged

    return judged(loaded, path)


def page(loaded: Any) -> Page:
    """Strokes from noise to a picture, as `minigrad paint` makes them with the seeds 0 to 3."""
    from .painting import on_a_page

    return on_a_page(loaded.model)


def draw(loaded: Any) -> Any:
    """Two pictures, from noise on."""
    from .painting import film_strip

    return film_strip(loaded)


def after(loaded: Any, folder: Any) -> str:
    """What a captioner reads in its pictures, where one is given."""
    from .painting import as_text, judged

    judge = loaded.arguments["data"]
    return as_text(judged(loaded, judge)) if judge else "minigrad eval RUN --data CAPTIONER has its pictures described"


spec = ModelSpec(
    name="paint",
    task="text to image",
    summary="paints the scene that a sentence tells of, out of noise",
    config=PaintConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    most_files=1,
    predict=predict,
    evaluate=evaluate,
    schedule=schedule,
    page=page,
    draw=draw,
    after=after,
    presets={"small": {"layers": 2, "dim": 48, "patch": 8, "steps": 1000}},
    tiny={"layers": 1, "dim": 16, "heads": 2, "patch": 16, "scenes": 100, "held_out": 8, "strokes": 2},
    example_inputs=("a small red circle",),
)
