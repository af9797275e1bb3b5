"""Caption: looks at a picture of a few shapes, and says what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, Page, option


@dataclass(frozen=True)
class CaptionConfig(Config):
    """A patch encoder, a text decoder, and the scenes that they learn from."""

    patch: int = option(4, "pixels along a side of a patch: 4, 8 or 16", choices=(4, 8, 16))
    layers: int = option(2, "how many blocks of the encoder, and of the decoder", least=1, most=1000)
    dim: int = option(64, "width of the vectors", least=1)
    heads: int = option(4, "heads of each attention", least=1)
    dropout: float = option(0.0, "share of values dropped while training", least=0)
    forget: float = option(0.5, "share of words that the decoder is not told while training, so that it looks", least=0)
    scenes: int = option(40_000, "how many scenes to learn from", least=1)
    held_out: int = option(1000, "how many others to validate with, and again as many for each of both tests", least=1)
    scenes_seed: int = option(0, "of the random numbers that the scenes are drawn with", least=0)
    steps: int = option(2000, "how many steps to train")
    batch: int = option(64, "how many scenes in a batch")
    lr: float = option(
        2e-3, "greatest learning rate; it rises for a tenth of the steps, and falls to 0 in half a cosine"
    )
    weight_decay: float = option(0.01, "how much weights shrink, times the learning rate")
    valid_every: int = option(500, "steps between validations")

    def __post_init__(self) -> None:
        if self.dim % self.heads:
            raise ArgumentError(
                f"caption: dim={self.dim} cannot be shared by heads={self.heads}", "dim a multiple of heads"
            )


def data(config: CaptionConfig, path: str | None) -> Data:
    """Scenes to learn from, and others to validate with."""
    from minigrad.train import ArrayBatches

    from .scenes import pictures

    train, valid = (
        pictures(n, config.scenes_seed, part) for n, part in ((config.scenes, "train"), (config.held_out, "valid"))
    )
    return Data(ArrayBatches(train, config.batch), ArrayBatches(valid, 250, shuffle=False))


def build(config: CaptionConfig) -> Any:
    from .model import Captioner

    return Captioner(config)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of each next word, given the picture and the words before it."""
    import minigrad as mg
    from minigrad.nn import functional as F

    from .scenes import PAD

    images, words = (mg.tensor(part, device=model.head.weight.device) for part in batch)
    logits, wanted = model(images, words[:, :-1]), batch[1][:, 1:]  # (N, T, V), (N, T)
    flat = mg.tensor(wanted.reshape(-1), device=logits.device)
    total = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), flat, reduction="sum", ignore_index=PAD)
    return {"loss": (total, int((wanted != PAD).sum()))}


def example(config: CaptionConfig) -> Any:
    from .scenes import pictures

    return pictures(4, config.scenes_seed, "train")


def schedule(optimizer: Any, config: CaptionConfig) -> Any:
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, warmup=config.steps // 10)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """What a picture shows; a number has one drawn, and its own sentence is told as well."""
    from .model import described
    from .scenes import from_words, worded

    answers = []
    for text in inputs:
        image, drawn = from_words(text)
        answer = {"input": text, "text": worded(described(loaded.model, image[None])[0])}
        answers.append(answer if drawn is None else {**answer, "drawn": drawn})
    return answers


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The share of scenes that are described exactly: of held-out scenes, and of those with a combination that was never shown."""
    from .evaluation import exactness

    return exactness(loaded)


def picture(loaded: Any, number: int, path: str) -> str:
    """`load(run).picture(17, "scene.png")` writes the picture that `predict` draws for 17, and returns its sentence."""
    import numpy as np

    from minigrad.saving import write_atomically
    from minigrad.viz.drawing.scene import png

    from .scenes import from_words

    image, sentence = from_words(str(number))
    write_atomically(path, png(np.ascontiguousarray(np.moveaxis(255 * image, 0, -1).astype(np.uint8))))
    return str(sentence)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """The words as the model writes them, and the patches, by row and column, that it looks at."""
    from .evaluation import shown_to
    from .scenes import SIZE, WORDS

    side = SIZE // loaded.config.patch
    images, fed, chosen = shown_to(loaded.model, text)
    return {
        "inputs": (images, fed),
        "tokens": [WORDS[n] for n in fed[0]],
        "keys": [f"{row + 1}.{column + 1}" for row in range(side) for column in range(side)],
        "chosen": chosen,
        "vocabulary": WORDS,
    }


def page(loaded: Any) -> Page:
    """Pictures that `minigrad predict` draws for the numbers from 1 up, or any other, in words."""
    from .scenes import BOS, EOS, LONGEST, WORDS, from_words

    drawn = [from_words(str(number))[0] for number in range(1, 9)]
    settings = {"medium": "picture", "words": WORDS, "start": BOS, "end": EOS, "most": LONGEST, "samples": drawn}
    return Page(kind="described", function=loaded.model.encode, settings=settings)


def samples(loaded: Any) -> str:
    """Three held-out scenes, as described and as drawn."""
    return "\n".join(f"{a['text']}   (drawn: {a['drawn']})" for a in predict(loaded, ["1", "2", "3"]))


def draw(loaded: Any) -> Any:
    """Where the decoder looks for each word of two scenes, over the pictures."""
    from .evaluation import looked_at

    return looked_at(loaded, "1", "2")


def after(loaded: Any, folder: Any) -> str:
    """How many scenes are described exactly, and which words are wrong most often."""
    from .evaluation import as_text, exactness

    return as_text(exactness(loaded))


spec = ModelSpec(
    name="caption",
    task="image to text",
    summary="looks at a picture of a few shapes, and says what it shows",
    config=CaptionConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    predict=predict,
    plain_inputs=r"[0-9]{1,9}",
    evaluate=evaluate,
    schedule=schedule,
    verbs={"picture": picture},
    attend=attend,
    samples=samples,
    page=page,
    draw=draw,
    after=after,
    presets={"small": {"patch": 8, "dim": 48, "steps": 1000}},
    tiny={"layers": 1, "dim": 16, "heads": 2, "patch": 8, "scenes": 200, "held_out": 40},
    example_inputs=("17",),
)
