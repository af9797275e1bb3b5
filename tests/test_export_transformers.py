"""A gpt in Hugging Face's layout: transformers loads it without code of ours and gives the same logits."""

from pathlib import Path

import numpy as np
import pytest
from support.transformers_models import logits, transformers

import minigrad as mg
from minigrad import zoo
from minigrad.hub import HubError
from minigrad.hub.writing import export_transformers
from minigrad.zoo.config import configure
from minigrad.zoo.loaded import Loaded

pytestmark = pytest.mark.transformers
LLAMA = {
    "positions": "rotary", "rotary": {"style": "half"}, "norm": "rms", "activation": "swiglu", "bias": False, "hidden": 20,
}  # fmt: skip


def gpt(**settings):
    spec = zoo.find("gpt")
    config = configure(spec, None, {**spec.tiny, "layers": 2, "heads": 4, "dim": 16, "context": 12, **settings})
    mg.manual_seed(0)
    model = spec.build(config)
    model.eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * np.random.default_rng(parameter.size).standard_normal(parameter.shape).astype("float32")
    return Loaded(spec, config, model, None, {"data": None, "config": vars(config)}, 0, Path("."))


@pytest.mark.parametrize("settings", [
    {}, {"tied": False, "activation": "relu", "hidden": 24, "eps": 1e-3}, LLAMA, {**LLAMA, "block": {"kv_heads": 2}, "tied": False},
])  # fmt: skip
def test_transformers_gives_the_same_logits(settings, tmp_path):
    loaded = gpt(**settings)
    model = transformers.AutoModelForCausalLM.from_pretrained(export_transformers(loaded, tmp_path / "out")).eval()
    ids = np.random.default_rng(0).integers(0, len(loaded.model.tokens.weight), (3, 12))
    with mg.no_grad():
        np.testing.assert_allclose(logits(model, ids), loaded.model(ids).numpy(), rtol=1e-4, atol=1e-4)


def test_settings_that_no_layout_has_are_named(tmp_path):
    with pytest.raises(HubError, match=r"positions='sinusoidal'"):
        export_transformers(gpt(positions="sinusoidal"), tmp_path / "out")
    with pytest.raises(HubError, match=r"norm='layer'.*bias=True"):
        export_transformers(gpt(positions="rotary"), tmp_path / "out")
