"""Which layout of transformers has a model of ours: the family and the config that describe the same computation.

A config is right if the model that loading makes of it is the same, module by module. What a layout spells otherwise is
turned first: pairs of columns that lie side by side into halves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np

from ..errors import MinigradError
from ..kernels import Packed
from ..nn import MixtureOfExperts, MultiHeadAttention, RMSNorm
from ..nn.init import skip
from ..zoo import Loaded, configure
from ..zoo.export import merged
from .families import FAMILIES
from .family import Family, From, HubError, ModelConfig

__all__ = ["Layout", "layout_of"]

TRAINING = {"training", "p", "dropout", "smoothing", "sampling"}  # attributes that change nothing in a trained model
UNPOOLED = ("fill", "tag", "answer")  # tasks of encoders that make no one vector of a text
POOLINGS = {"first": "cls", "mean": "mean", "max": "max"}
# Tensors whose columns read the stream of a translator, and those whose rows write to it.
FROM_STREAM = ("embedding.weight", "head.weight", "in_proj_weight", "mlp.up.weight")
TO_STREAM = ("out_proj.weight", "out_proj.bias", "mlp.down.weight", "mlp.down.bias", "norm.weight", "norm.bias")
Structure = dict[str, tuple[Any, ...]]
Tensors = dict[str, np.ndarray]
Unlike = tuple[
    str, dict[str, Any], dict[str, Any]
]  # a layout, the settings that it lacks, and what they would have to be


@dataclass(frozen=True)
class Layout:
    """A family, the config of a model in it, and the settings and the tensors of ours that it describes."""

    family: Family
    config: ModelConfig
    own: Mapping[str, Any]
    tensors: Tensors
    further: Tensors = field(default_factory=dict)  # tensors that the class has apart, under their names there
    lost: str = ""  # what the class has no place for

    def sources(self, name: str) -> From | None:
        """Where one of our tensors goes in the files of the family."""
        return source_of(self.family, self.own, name)


def layout_of(loaded: Loaded) -> Layout:
    """The layout that a model fits; where there is none, an error that names the settings that have no counterpart."""
    loaded = merged(loaded)
    spec = loaded.spec
    candidates = _candidates(loaded)
    if any(isinstance(module, MixtureOfExperts) for module in loaded.model.modules()):
        raise HubError(
            "a mixture of experts has no layout of transformers here", "experts=0", fix="minigrad export RUN FOLDER"
        )
    if not candidates:
        known = ", ".join(dict.fromkeys(family.model for family in FAMILIES.values()))
        raise HubError(
            f"{spec.name} has no layout of transformers here", known, fix="minigrad export RUN FOLDER, or --to onnx"
        )
    own, tensors = dict(vars(loaded.config)), _arrays(loaded.model)
    _turn_to_halves(loaded.model, own, tensors)
    if own.get("task") in UNPOOLED:
        own |= {"pool": "mean", "normalize": False}
    layout, unlike = _fitting(loaded, candidates, own, tensors)
    if layout is None and own.get("types"):
        layout = _of_one_text(loaded, candidates, own, tensors)
    if layout is None:
        raise _refusal(spec.name, unlike)
    return layout


def _fitting(
    loaded: Loaded, candidates: Sequence[Family], own: Mapping[str, Any], tensors: Tensors
) -> tuple[Layout | None, list[Unlike]]:
    """The first layout that makes the same model of its config, or in what each differs."""
    spec = loaded.spec
    model = _built(spec, own)
    wanted, found = structure(model), list[Unlike]()
    for family in candidates:
        for config in family.configs(own, model) if family.configs else ():
            said = _as_read(config, family, own, loaded, tensors)
            try:
                settings = {**own, **family.tokens, **family.settings(said)}
                if loaded.tokenizer is None and "specials" in own:
                    settings["specials"] = own["specials"]  # which are those of the tokenizer
                made = structure(_built(spec, settings))
            except MinigradError:
                continue
            if made == wanted:
                return Layout(family, said, own, tensors), []
            found.append((config["model_type"], *_unlike(spec, own, settings, wanted)))
    return None, found


def _of_one_text(
    loaded: Loaded, candidates: Sequence[Family], own: Mapping[str, Any], tensors: Tensors
) -> Layout | None:
    """An encoder of one text: what is added to the tokens of a first one is a part of their vectors, and a second has no place."""
    kept, lost = dict(tensors), "a second text"
    words = kept["tokens.weight"]
    kept["tokens.weight"] = words + kept.pop("segments.weight")[0]
    own = {**own, "types": 0}
    if own["task"] == "pretrain":
        own |= {"task": "fill", "pool": "mean"}
        kept = {name: part for name, part in kept.items() if not name.startswith(("head.pool.", "head.classes."))}
        lost += ", nor for whether it follows the first"
    layout, _ = _fitting(loaded, candidates, own, kept)
    if layout is None:
        return None
    layout.config["tie_word_embeddings"] = own["task"] != "fill"
    return replace(layout, further={"lm_head.decoder.weight": words} if own["task"] == "fill" else {}, lost=lost)


def _candidates(loaded: Loaded) -> list[Family]:
    """The families that are configurations of this model, first that which it came from."""
    origin = FAMILIES.get(loaded.arguments.get("origin", {}).get("family", ""))
    families = {id(family): family for family in (origin, *FAMILIES.values()) if family is not None}
    return [family for family in families.values() if family.model == loaded.spec.name and family.configs is not None]


def structure(model: Any) -> Structure:
    """What each module of a model is, by its path: its class, its options, and of all of it the shapes of the tensors."""
    found: Structure = {}
    for path, module in model.named_modules():
        options = {name: _rounded(value) for name, value in vars(module).items() if _tells(name, value)}
        if isinstance(module, RMSNorm) and module.eps is None:
            options["eps"] = _rounded(float(np.finfo("float32").eps))
        found[path] = (type(module), options)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    return {**found, "tensors": (shapes,)}


def _tells(name: str, value: Any) -> bool:
    """Whether an attribute of a module is an option that matters to what it computes."""
    plain = (bool, int, float, str, list, tuple, dict, type(None))
    return name not in TRAINING and not name.startswith("_") and (isinstance(value, plain) or is_dataclass(value))


def _rounded(value: Any) -> Any:
    """Options as they can be compared: what was computed in two ways may differ in its last digit."""
    if is_dataclass(value) and not isinstance(value, type):
        return _rounded(asdict(value))
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(part) for part in value]
    return float(f"{value:.6e}") if isinstance(value, float) else value


def _built(spec: Any, settings: Mapping[str, Any]) -> Any:
    with skip():
        return spec.build(configure(spec, None, settings))


def _arrays(model: Any) -> Tensors:
    """The tensors of a model in float32, each once, by its first name."""
    found: dict[int, tuple[str, np.ndarray]] = {}
    for name, value in model.state_dict().items():
        if id(value.data) not in found:
            array = value.dequantized() if isinstance(value, Packed) else value.numpy()
            found[id(value.data)] = name, np.asarray(array, "float32")
    return dict(found.values())


def _turn_to_halves(model: Any, own: dict[str, Any], tensors: Tensors) -> None:
    """Reorder what has pairs side by side, sines and cosines or the columns that are rotated, to have them in halves."""
    if own.get("positions") == "rotary" and "rotary" in own:
        for path, part in model.named_modules():
            if isinstance(part, MultiHeadAttention):
                rotary: Any = part.rotary
                if rotary.style == "interleaved":
                    _turn_heads(part, rotary.rotary_dim, f"{path}.", tensors)
        own["rotary"] = {**own["rotary"], "style": "half"}
    if own.get("positions") == "sinusoidal" and "position_options" in own:
        options = own["position_options"]
        if not options.get("halves"):
            order = halves(model.dim)
            for name, array in tensors.items():
                if name.endswith(FROM_STREAM):
                    tensors[name] = array[:, order]
                elif name.endswith(TO_STREAM):
                    tensors[name] = array[order]
        own["position_options"] = {**options, "halves": True}


def _turn_heads(part: MultiHeadAttention, turned: int, path: str, tensors: Tensors) -> None:
    """The rows of queries and keys, head by head, of which so many columns are rotated."""
    size = part.head_dim
    head = np.concatenate([halves(turned), np.arange(turned, size)])
    count = part.heads + part.kv_heads
    order = (size * np.arange(count)[:, None] + head).reshape(-1)  # (heads, E) -> (heads * E,)
    for name in (f"{path}in_proj_weight", f"{path}in_proj_bias"):
        if name in tensors:
            tensors[name] = np.concatenate([tensors[name][order], tensors[name][len(order) :]])
    for name in (f"{path}q_norm.weight", f"{path}k_norm.weight"):
        if name in tensors:
            tensors[name] = tensors[name][head]


def halves(size: int) -> np.ndarray:
    """Which column of pairs that lie side by side comes to each place: first the first ones, then the second ones."""
    return np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)])


def _as_read(
    config: Mapping[str, Any], family: Family, own: Mapping[str, Any], loaded: Loaded, names: Iterable[str]
) -> ModelConfig:
    """The config as loading reads it: with the names of the tensors, and what files beside it say."""
    said = ModelConfig(json.loads(json.dumps(config)))
    said |= {name: value for name, value in _special(loaded, own).items() if name not in said}
    said.names = {one for name in names if (source := source_of(family, own, name)) for one in source.names}
    said.tokenizer, said.options = loaded.tokenizer, {}
    if "pool" in own:
        modules = ["Transformer", "Pooling", *["Normalize"] * own["normalize"]]
        said.options = {
            "pooling": {"pooling_mode": POOLINGS[own["pool"]]},
            "modules": [{"type": f"sentence_transformers.models.{name}"} for name in modules],
        }
    elif hasattr(loaded.model, "special"):
        said.options = {"generation": {"suppress_tokens": list(loaded.model.special.never)}}
    return said


def _special(loaded: Loaded, own: Mapping[str, Any]) -> dict[str, int | None]:
    found = {f"{name}_token_id": getattr(loaded.tokenizer, f"{name}_id", None) for name in ("bos", "eos", "pad")}
    return {**found, **({"pad_token_id": own["specials"][0]} if "specials" in own else {})}


def source_of(family: Family, own: Mapping[str, Any], name: str) -> From | None:
    """Where one of our tensors goes in the files of a family."""
    renamed = {
        ours: replace(_table_entry(family, ours), names=(theirs,)) for ours, theirs in family.written(own).items()
    }
    return replace(family, tensors={**family.tensors, **renamed}).sources(name)


def _table_entry(family: Family, name: str) -> From:
    entry = family.tensors[name]
    return From((entry,)) if isinstance(entry, str) else entry


def _unlike(
    spec: Any, own: Mapping[str, Any], settings: Mapping[str, Any], wanted: Structure
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings that no model of this layout has, as they are and as they would have to be."""

    def matters(name: str) -> bool:
        try:
            return structure(_built(spec, {**own, name: settings[name]})) != wanted
        except MinigradError:
            return True

    names = [name for name in settings if settings[name] != own[name] and matters(name)]
    return {name: own[name] for name in names}, {name: settings[name] for name in names}


def _refusal(name: str, found: Sequence[Unlike]) -> HubError:
    """Names what keeps a model from the layout that it is nearest to."""
    if not found:
        return HubError(f"no layout of transformers is like this {name}", fix="export to ONNX: --to onnx")
    kind, own, wanted = min(found, key=lambda one: len(one[1]))

    def listed(settings: Mapping[str, Any]) -> str:
        return ", ".join(f"{k}={v!r}" for k, v in settings.items())

    return HubError(
        f"no layout of transformers has these settings of {name}: {listed(own)}",
        f"for {kind}, the nearest one: {listed(wanted)}",
        fix="train with these, or export to ONNX: --to onnx",
    )
