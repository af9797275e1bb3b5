"""Speech: hears a word or three, spoken by voices of our own making, and writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, Page, option


@dataclass(frozen=True)
class SpeechConfig(Config):
    """An encoder of sound, a decoder of letters, CTC beside it, and the voices that they learn from."""

    layers: int = option(2, "how many blocks of the encoder, and of the decoder", least=1, most=1000)
    dim: int = option(64, "width of the vectors", least=1)
    heads: int = option(4, "heads of each attention", least=1)
    dropout: float = option(0.1, "share of values dropped while training", least=0)
    ctc: float = option(0.5, "weight of the loss of CTC beside that of the decoder", least=0)
    voices: int = option(300, "how many voices to learn from", least=2)
    other_voices: int = option(
        50, "how many others to validate with, and again as many for each of both tests", least=2
    )
    held_out: int = option(
        600, "how many recordings to validate with, and again as many for each of both tests", least=1
    )
    voices_seed: int = option(0, "of the random numbers that the voices are drawn with", least=0)
    steps: int = option(2500, "how many steps to train")
    batch: int = option(32, "how many recordings in a batch")
    lr: float = option(
        2e-3, "greatest learning rate; it rises for a tenth of the steps, and falls to 0 in half a cosine"
    )
    weight_decay: float = option(0.01, "how much weights shrink, times the learning rate")
    valid_every: int = option(500, "steps between validations")

    def __post_init__(self) -> None:
        if self.dim % self.heads:
            raise ArgumentError(
                f"speech: dim={self.dim} cannot be shared by heads={self.heads}", "dim a multiple of heads"
            )


def data(config: SpeechConfig, path: str | None) -> Data:
    """Recordings to learn from, and others, of other voices, to validate with."""
    from minigrad.train import ArrayBatches

    from .words import Recordings, recordings, takes

    heard = takes(config.voices, config.voices_seed, "train")
    valid = recordings(config.held_out, config.other_voices, config.voices_seed, "valid")
    return Data(Recordings(heard, config.batch, config.valid_every), ArrayBatches(valid, 100, shuffle=False))


def build(config: SpeechConfig) -> Any:
    from .model import Listener

    return Listener(config)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of each next letter, and a share of the loss of CTC: all alignments of the letters with the moments."""
    import minigrad as mg
    from minigrad.nn import functional as F

    from .words import BLANK

    waves, letters = (mg.tensor(part, device=model.head.weight.device) for part in batch)
    logits, moments = model(waves, letters[:, :-1])  # (N, T, V), (N, FRAMES, V)
    wanted, counts = batch[1][:, 1:], (batch[1][:, 1:] != BLANK).sum(axis=1)
    flat = mg.tensor(wanted.reshape(-1), device=logits.device)
    total = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), flat, reduction="sum", ignore_index=BLANK)
    aligned = F.ctc_loss(
        F.log_softmax(moments, axis=-1).transpose(1, 0, 2), letters[:, 1:],
        [moments.shape[1]] * len(counts), counts - 1, BLANK, "sum", zero_infinity=True,
    )  # fmt: skip
    units = int(counts.sum())
    return {"decoder": (total, units), "ctc": (model.share * aligned, units)}


def example(config: SpeechConfig) -> Any:
    from .words import recordings

    return recordings(2, 2, config.voices_seed, "train")


def schedule(optimizer: Any, config: SpeechConfig) -> Any:
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, warmup=config.steps // 10)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """What is said in a file, by the decoder and by CTC; a number has words spoken, and they are told as well."""
    from .evaluation import heard
    from .words import from_words

    answers = []
    for text in inputs:
        wave, said = from_words(text)
        ((by_decoder, by_ctc),) = heard(loaded.model, wave[None])
        answer = {"input": text, "text": by_decoder, "ctc": by_ctc}
        answers.append(answer if said is None else {**answer, "spoken": said})
    return answers


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The share of words that are right, of held-out voices, and of children's, whose like was never heard."""
    from .evaluation import word_scores

    return word_scores(loaded)


def sound(loaded: Any, number: int, path: str) -> str:
    """`load(run).sound(17, "spoken.wav")` writes the recording that `predict` hears for 17, and returns its words."""
    from minigrad.data.sounds import write_wav

    from .voices import RATE
    from .words import from_words

    wave, said = from_words(str(number))
    write_wav(path, wave, RATE)
    return str(said)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """The letters as the decoder writes them, and the moments that it listens to, in seconds."""
    from .evaluation import listened
    from .words import LETTERS, SECONDS

    waves, fed, chosen, logits = listened(loaded.model, text)
    names = [name.replace(" ", "_") for name in LETTERS]
    count = loaded.model.moments.max_length
    return {
        "inputs": (waves, fed),
        "tokens": [names[n] for n in fed[0]],
        "keys": [f"{i * SECONDS / count:.2f}" for i in range(count)],
        "chosen": [name.replace(" ", "_") for name in chosen],
        "logits": logits,
        "vocabulary": names,
    }


def page(loaded: Any) -> Page:
    """Recordings that `minigrad predict` hears for the numbers from 1 up, or any other, in words."""
    from .evaluation import on_a_page

    return on_a_page(loaded.model)


def samples(loaded: Any) -> str:
    """Three recordings of voices that it never heard, as written and as spoken."""
    return "\n".join(f"{a['text']}   (spoken: {a['spoken']})" for a in predict(loaded, ["1", "2", "3"]))


def draw(loaded: Any) -> Any:
    """The sound of one recording, the letters that CTC puts at its moments, and the moments that the decoder listens to."""
    from .evaluation import picture_of

    return picture_of(loaded, "2")


def after(loaded: Any, folder: Any) -> str:
    """How many words are right, by the decoder and by CTC, and which are wrong most often."""
    from .evaluation import as_text, word_scores

    return as_text(word_scores(loaded))


spec = ModelSpec(
    name="speech",
    task="sound to text",
    summary="hears a word or three, spoken by voices of our own making, and writes them",
    config=SpeechConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    predict=predict,
    plain_inputs=r"[0-9]{1,9}",
    evaluate=evaluate,
    schedule=schedule,
    verbs={"sound": sound},
    attend=attend,
    samples=samples,
    page=page,
    draw=draw,
    after=after,
    presets={"small": {"layers": 1, "dim": 48, "voices": 150, "steps": 1000}},
    tiny={
        "layers": 1,
        "dim": 16,
        "heads": 2,
        "voices": 4,
        "other_voices": 2,
        "held_out": 8,
        "batch": 8,
        "valid_every": 4,
    },
    example_inputs=("17",),
)
