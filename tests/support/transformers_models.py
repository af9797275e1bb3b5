"""Random models of `transformers` as folders, which the tests of the hub load; and what they compute, in float32 and float64."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")


def saved(folder: Path, kind: str, config: Any, seed: int = 0, dtype: Any = None, **options: Any) -> Any:
    """A random model of a class of transformers, saved into a folder; biases and norms are random, too."""
    torch.manual_seed(seed)
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(
                torch.randn_like(parameter) * (0.3 / max(parameter.shape[-1], 1) ** 0.25) + (parameter.ndim < 2) * 0.5
            )
    model.tie_weights()
    model = model if dtype is None else model.to(dtype)
    model.save_pretrained(folder, **options)
    return model


@contextmanager
def in_float64(model: Any) -> Any:
    """The model in float64, with nothing cast to float32 on the way, as norms and rotary positions are otherwise."""
    plain = torch.Tensor.to

    def kept(self: Any, *args: Any, **options: Any) -> Any:
        wanted = args[0] if args else options.get("dtype")
        if wanted is torch.float32 and self.dtype is torch.float64:
            return self
        return plain(self, *args, **options)

    torch.Tensor.to, plain_float, torch.Tensor.float = kept, torch.Tensor.float, lambda self: self  # type: ignore
    try:
        yield model.double()
    finally:
        torch.Tensor.to, torch.Tensor.float = plain, plain_float  # type: ignore


def logits(model: Any, ids: np.ndarray, mask: np.ndarray | None = None, **options: Any) -> np.ndarray:
    """The logits of a model, (B, T, vocabulary)."""
    with torch.no_grad():
        given = {} if mask is None else {"attention_mask": torch.tensor(mask.astype("int64"))}
        return model(torch.tensor(ids), **given, **options).logits.numpy()
