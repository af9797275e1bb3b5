"""Superposition: a model that stores more features than it has dimensions, and an autoencoder that finds them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, Page, Slider, option


@dataclass(frozen=True)
class SuperpositionConfig(Config):
    """relu(x W Wᵀ + b) with fewer dimensions than features, of which the first matter most."""

    features: int = option(32, "how many features", least=1)
    dims: int = option(8, "how many dimensions they are squeezed through", least=1)
    density: float = option(0.03, "how often a feature is there, from 0 to 1")
    decay: float = option(0.95, "how much less each feature matters than the one before it")
    latents: int = option(64, "how many latents the autoencoder has", least=1)
    sparsity: float = option(0.5, "how much the autoencoder is kept from using its latents", least=0)
    sae_steps: int = option(3000, "how many steps to train the autoencoder", least=1)
    sae_lr: float = option(0.01, "learning rate of the autoencoder", least=0)
    steps: int = option(2000, "how many steps to train")
    batch: int = option(512, "how many rows in a batch")
    valid_every: int = option(500, "steps between validations")

    def __post_init__(self) -> None:
        wrong = next((name for name in ("density", "decay") if not 0 < getattr(self, name) <= 1), None)
        if wrong is not None:
            raise ArgumentError(
                f"superposition: {wrong} is out of range", "above 0, up to 1", getattr(self, wrong), f"{wrong}=0.5"
            )


def data(config: SuperpositionConfig, path: str | None) -> Data:
    """Rows of random features, always new ones for training, always the same for validation."""
    import minigrad as mg

    from .features import SparseFeatures

    seed = int(mg.randint(0, 2**31, (1,)).item())
    return Data(
        SparseFeatures(config.features, config.density, config.batch, seed=seed),
        SparseFeatures(config.features, config.density, 4096, batches=1),
    )


def build(config: SuperpositionConfig) -> Any:
    from .model import Toy

    return Toy(config.features, config.dims, config.decay)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The squared errors of the features, each times how much it matters."""
    import minigrad as mg

    x = mg.tensor(batch[0], device=model.W.device)
    return {"loss": ((model.importance * (x - model(x)) ** 2).sum(), len(x))}


def example(config: SuperpositionConfig) -> Any:
    from .features import SparseFeatures

    return SparseFeatures(config.features, max(config.density, 0.5), 4).batch(0, 0)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """What comes back of features such as "3 7=0.5", which is feature 3 with the value 1 and feature 7 with a half."""
    import minigrad as mg

    answers = []
    for text in inputs:
        given = _features(text, loaded.config.features)
        x = mg.zeros(1, loaded.config.features)
        for feature, value in given.items():
            x[0, feature] = value
        out = loaded.model(x)[0].tolist()
        seen = {str(i): round(value, 3) for i, value in enumerate(out) if value >= 0.05 or i in given}
        hidden = [round(value, 3) for value in loaded.model.hidden(x)[0].tolist()]
        answers.append({"input": text, "hidden": hidden, "features": seen})
    return answers


def _features(text: str, count: int) -> dict[int, float]:
    try:
        parts = [word.partition("=") for word in text.replace(",", " ").split()]
        given = {int(feature): float(value) if equals else 1.0 for feature, equals, value in parts}
    except ValueError:
        given = {}
    if not given or not all(0 <= feature < count and 0 <= value <= 1 for feature, value in given.items()):
        raise ArgumentError(
            f"{text!r} names no features",
            f"numbers from 0 to {count - 1}, each perhaps with a value from 0 to 1",
            repr(text),
            'for instance "3 7=0.5"',
        )
    return given


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The loss, beside that of keeping as many features as there are dimensions, and `features.report`."""
    from minigrad.train.evaluation import evaluate as mean_loss

    from .features import report

    config = loaded.config
    variance = config.density / 3 - config.density**2 / 4  # of a feature: E x² - (E x)²
    given_up = sum(config.decay**i for i in range(config.dims, config.features))
    return {
        "loss": mean_loss(loaded.model, loss, data(config, path).valid)["loss"],
        "loss_of_one_feature_per_dimension": variance * given_up,
        **report(loaded.model.W.numpy(), config, loaded.arguments["seed"]),
    }


def autoencoder(loaded: Any) -> Any:
    """The sparse autoencoder of the model's hidden numbers, trained anew: the same one every time."""
    from . import features

    return features.autoencoder(loaded.model.W.numpy(), loaded.config, loaded.arguments["seed"])


def table(loaded: Any) -> str:
    """The features in a table: how much each matters, how long its direction is, what disturbs it, and the direction."""
    from .features import interference, lengths

    W = loaded.model.W.numpy()
    rows = ["feature  importance  length  interference  direction"]
    for i, (importance, length, disturbed) in enumerate(
        zip(loaded.model.importance.tolist(), lengths(W), interference(W))
    ):
        direction = " ".join(f"{value:5.2f}" for value in W[i])
        rows.append(f"{i:7}  {importance:10.3f}  {length:6.2f}  {disturbed:12.2f}  {direction}")
    return "\n".join(rows)


def after(loaded: Any, folder: Any) -> str:
    """Train the autoencoder, and say what is stored and what is found.

    It is a second stage and no second term of the loss: it must not change what it looks at, and its target must
    stand still.
    """
    from .features import FOUND, STORED, report

    config = loaded.config
    found = report(loaded.model.W.numpy(), config, loaded.arguments["seed"])
    return (
        f"stored (length of {STORED} or more): {found['stored']} of {config.features} features in {config.dims} "
        f"dimensions, interference {found['interference']:.2f}\n"
        f"found again (cosine of {FOUND} or more): {found['found_by_autoencoder']} of {found['stored']} by a sparse "
        f"autoencoder, {found['found_by_pca']} by PCA, {found['found_at_random']:.1f} by {config.latents} random directions\n"
        f"latents: {found['latents_in_use']} of {config.latents} in use, {found['latents_that_are_features']} of them a feature"
    )


def draw(loaded: Any) -> Any:
    """The directions of the features, or in more than two dimensions their products."""
    from minigrad.viz.drawing.plane import directions

    config = loaded.config
    return directions(loaded.model.W.numpy(), f"{config.features} features in {config.dims} dimensions")


def page(loaded: Any) -> Page:
    """A slider for each feature; what comes back of it is the answer."""
    names = [f"feature {i}" for i in range(loaded.config.features)]
    return Page(inputs=[Slider(name, 0, 1, float(i == 0)) for i, name in enumerate(names)], answers=names)


spec = ModelSpec(
    name="superposition",
    task="interpretability",
    summary="more features than dimensions, and a sparse autoencoder that finds them again",
    config=SuperpositionConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    example_inputs=("0", "0 1=0.5"),
    predict=predict,
    evaluate=evaluate,
    presets={
        "dense": {"density": 1.0},
        "middle": {"density": 0.1},
        "pentagon": {"features": 5, "dims": 2, "latents": 10},
    },
    tiny={"features": 6, "dims": 2, "latents": 8, "batch": 32, "steps": 20, "sae_steps": 10, "valid_every": 10},
    verbs={
        "table": table,
        "directions": lambda loaded: loaded.model.W.numpy(),
        "autoencoder": autoencoder,
    },
    after=after,
    draw=draw,
    page=page,
)
