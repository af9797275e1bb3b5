"""Bit MLP: a network that learns digits with weights of one bit, or of three values, beside its twin with floats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from minigrad_models.digits import ImageConfig, data, evaluate, example, loss, page, predict, schedule

from minigrad.zoo import ModelSpec, option


@dataclass(frozen=True)
class BitConfig(ImageConfig):
    """256 pixels, hidden layers, ten digits."""

    kind: str = option("ternary", "the values of a weight: ±γ, or -γ, 0, γ, or any", ("binary", "ternary", "float"))
    hidden: tuple[int, ...] = option((256, 256), "sizes of the hidden layers", least=1)
    steps: int = option(1000, "how many steps to train")
    batch: int = option(64, "how many images in a batch")
    lr: float = option(3e-3, "learning rate at the start; it falls to 0 in half a cosine")
    valid_every: int = option(200, "steps between validations")


def build(config: BitConfig) -> Any:
    from minigrad_models.digits.images import SIZE

    from .model import BitMLP

    return BitMLP((SIZE * SIZE, *config.hidden, 10), config.kind)


def pack(loaded: Any, path: str) -> dict[str, Any]:
    """`load(run).pack("small.safetensors")` writes the packed levels, and says how much smaller they are than floats."""
    from minigrad.errors import ArgumentError

    from .packing import write

    if loaded.model.kind == "float":
        raise ArgumentError("this run has float weights, which are not packed", "kind=binary or kind=ternary", "float")
    size = write(loaded.model, path)
    floats = sum(weight.data.nbytes for weight in loaded.model.parameters())
    return {"path": str(path), "bytes": size, "float_bytes": floats, "times_smaller": round(floats / size, 1)}


def unpack(loaded: Any, packed: str, path: str) -> dict[str, Any]:
    """`load(run).unpack("small.safetensors", "large.safetensors")` writes the same model with its weights as floats."""
    from .packing import read, write

    return {"path": str(path), "bytes": write(read(packed), path)}


def after(loaded: Any, folder: Any) -> str:
    """The model beside its twins, trained alike with other kinds of weights; each read back from the file it is kept in."""
    import tempfile
    from pathlib import Path

    from minigrad.zoo import load_as, trainer_of

    from .model import BitMLP

    rows, arguments = {}, loaded.arguments
    with tempfile.TemporaryDirectory() as room:
        for kind in reversed(BitMLP.KINDS):
            model = loaded.model
            if kind != loaded.config.kind:
                config, out = replace(loaded.config, kind=kind), Path(room) / kind
                options = {name: arguments[name] for name in ("seed", "max_steps", "device")}
                trainer_of(spec, config, out, progress=False, **options).train()
                model = load_as(spec, out).model
            home = Path(folder) if model is loaded.model else Path(room)
            rows[kind] = _kept(model, loaded.config, home / f"{kind}.safetensors")
    return _table(rows, loaded)


def _kept(model: Any, config: BitConfig, path: Any) -> tuple[float, int]:
    """The accuracy on test images of a model that was written and read again, and the bytes of its file."""
    from minigrad_models.digits.images import images
    from minigrad_models.digits.model import accuracy, confusions

    from .packing import read, write

    size = write(model, path)
    return accuracy(confusions(read(path), *images(config.held_out, config.images_seed, "test"))), size


def _table(rows: dict[str, tuple[float, int]], loaded: Any) -> str:
    count = sum(weight.size for weight in loaded.model.parameters())
    whole = rows["float"][1]
    lines = [
        f"{kind:8}  {right:14.2%}  {size:12,}  {8 * size / count:14.2f}  {whole / size:10.1f} ×"
        for kind, (right, size) in rows.items()
    ]
    head = f"{'weights':8}  {'test accuracy':>14}  {'file (bytes)':>12}  {'bits a weight':>14}  {'smaller':>12}"
    return "\n".join([head, *lines, f"kept in {loaded.config.kind}.safetensors of the run"])


spec = ModelSpec(
    name="bitmlp",
    task="classification",
    summary="a network with weights of one bit or of three values, packed, beside its float twin",
    config=BitConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    predict=predict,
    plain_inputs=r"[0-9](:[0-9]{1,9})?",
    evaluate=evaluate,
    schedule=schedule,
    presets={"binary": {"kind": "binary"}, "float": {"kind": "float"}, "wide": {"hidden": (512, 512)}},
    tiny={"hidden": (32,), "images": 200, "held_out": 100},
    verbs={"pack": pack, "unpack": unpack},
    after=after,
    page=page,
    example_inputs=("3", "7:1"),
    estimates_gradients="they go straight through the rounding of the weights",
)
