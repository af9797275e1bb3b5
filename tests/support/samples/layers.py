"""One example of every layer: how to make it here and in PyTorch, and what goes in; and samples of the functions of layers."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn

from . import Fixed, add, spread


@dataclass(frozen=True)
class Case:
    """`ours` and `theirs` make the layer; `theirs` names it in `torch.nn`, with arguments, or is None if PyTorch has none."""

    ours: Callable[[], nn.Module]
    theirs: Callable[[Any], Any] | None
    shape: tuple[int, ...]
    rows: int = 0  # if set, the input is made of whole numbers below it

    def input(self, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return rng.integers(0, self.rows, self.shape) if self.rows else rng.standard_normal(self.shape)


class Turned(nn.Module):
    """Rotary positions as a layer with one input and one output."""

    def __init__(self, dim: int, **options: Any):
        self.rotary = nn.RotaryPositions(dim, **options)

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        query, key = self.rotary(x, x[..., ::-1], start=2)
        return query + key


class Biased(nn.Module):
    """Relative positions as a layer: what they add to the scores is a matrix that the positions are mixed by."""

    def __init__(self, bidirectional: bool):
        self.relative = nn.RelativePositions(1, 4, 8, bidirectional)

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return self.relative(x.shape[-2], x.shape[-2])[0, 0] @ x


class OwnMemory(nn.Module):
    """A decoder as a layer with one input, which is also the memory it looks at, in reverse."""

    def __init__(self, decoder: nn.Decoder):
        self.decoder = decoder

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return self.decoder(x, x[:, ::-1])


class Outputs(nn.Module):
    """The outputs of a recurrent layer and its last states, as one output."""

    def __init__(self, layer: nn.Module):
        self.layer = layer

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        out, last = self.layer(x)
        states = last if isinstance(last, tuple) else (last,)
        return mg.concatenate(
            [out.reshape(len(x), -1), *[s.swapaxes(0, 1).reshape(len(x), -1) for s in states]], axis=1
        )


def _outputs(torch_nn: Any, layer: Any) -> Any:
    class Outputs(torch_nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any) -> Any:
            out, last = self.layer(x)
            states = last if isinstance(last, tuple) else (last,)
            flat = [s.transpose(0, 1).reshape(len(x), -1) for s in states]
            return importlib.import_module("torch").cat([out.reshape(len(x), -1), *flat], 1)

    return Outputs()


class Step(nn.Module):
    """The state after two steps of a cell, of an LSTM with its cell beside it."""

    def __init__(self, cell: nn.Module):
        self.cell = cell

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        made = self.cell(x, self.cell(x))
        return mg.concatenate(made, axis=1) if isinstance(made, tuple) else made


def _step(torch_nn: Any, cell: Any) -> Any:
    class Step(torch_nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: Any) -> Any:
            made = self.cell(x, self.cell(x))
            return importlib.import_module("torch").cat(made, 1) if isinstance(made, tuple) else made

    return Step()


def recurrent(name: str, *args: Any, **options: Any) -> Case:
    options["batch_first"] = True
    return Case(
        lambda: Outputs(getattr(nn, name)(*args, **options)),
        lambda t: _outputs(t, getattr(t, name)(*args, **options)),
        (8, 3, 4),
    )


def activation(name: str, *args: Any) -> Case:
    return Case(lambda: getattr(nn, name)(*args), lambda torch_nn: getattr(torch_nn, name)(*args), (8, 5))


def _exact_hardsigmoid(torch_nn: Any) -> Any:
    """PyTorch's own takes 1/6 in float32 when it differentiates, also in float64."""

    class Hardsigmoid(torch_nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return (x / 6 + 0.5).clamp(0, 1)

    return Hardsigmoid()


PICTURE = (8, 4, 6, 5)
CASES = {
    "Linear": Case(lambda: nn.Linear(5, 3), lambda t: t.Linear(5, 3), (8, 5)),
    "Linear without bias": Case(lambda: nn.Linear(5, 3, bias=False), lambda t: t.Linear(5, 3, bias=False), (8, 2, 5)),
    "Embedding": Case(lambda: nn.Embedding(9, 4), lambda t: t.Embedding(9, 4), (8, 3), rows=9),
    "Embedding with padding": Case(
        lambda: nn.Embedding(9, 4, padding_idx=2), lambda t: t.Embedding(9, 4, padding_idx=2), (8, 3), rows=9
    ),
    "LayerNorm": Case(lambda: nn.LayerNorm(5), lambda t: t.LayerNorm(5), (8, 3, 5)),
    "LayerNorm over two axes": Case(
        lambda: nn.LayerNorm((3, 5), eps=0.1, bias=False), lambda t: t.LayerNorm((3, 5), 0.1, bias=False), (8, 3, 5)
    ),
    "LayerNorm without parameters": Case(
        lambda: nn.LayerNorm(5, 1e-3, False), lambda t: t.LayerNorm(5, 1e-3, False), (8, 5)
    ),
    "RMSNorm": Case(lambda: nn.RMSNorm(5), lambda t: t.RMSNorm(5), (8, 3, 5)),
    "RMSNorm with eps": Case(lambda: nn.RMSNorm((3, 5), 0.1), lambda t: t.RMSNorm((3, 5), 0.1), (8, 3, 5)),
    "BatchNorm1d": Case(lambda: nn.BatchNorm1d(5), lambda t: t.BatchNorm1d(5), (8, 5)),
    "BatchNorm1d of sequences": Case(
        lambda: nn.BatchNorm1d(5, momentum=None), lambda t: t.BatchNorm1d(5, momentum=None), (8, 5, 3)
    ),
    "BatchNorm1d untracked": Case(
        lambda: nn.BatchNorm1d(5, affine=False, track_running_stats=False),
        lambda t: t.BatchNorm1d(5, affine=False, track_running_stats=False),
        (8, 5),
    ),
    "BatchNorm2d": Case(lambda: nn.BatchNorm2d(4), lambda t: t.BatchNorm2d(4), PICTURE),
    "Conv1d": Case(lambda: nn.Conv1d(4, 6, 3), lambda t: t.Conv1d(4, 6, 3), (8, 4, 7)),
    "Conv1d strided": Case(
        lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False), lambda t: t.Conv1d(4, 6, 3, 2, 1, 2, 2, False), (8, 4, 9)
    ),
    "Conv2d": Case(lambda: nn.Conv2d(4, 6, 3), lambda t: t.Conv2d(4, 6, 3), PICTURE),
    "Conv2d same": Case(
        lambda: nn.Conv2d(4, 2, (3, 1), padding="same"), lambda t: t.Conv2d(4, 2, (3, 1), padding="same"), PICTURE
    ),
    "MaxPool2d": Case(lambda: nn.MaxPool2d(2), lambda t: t.MaxPool2d(2), PICTURE),
    "MaxPool2d overlapping": Case(
        lambda: nn.MaxPool2d(3, stride=1, padding=1), lambda t: t.MaxPool2d(3, stride=1, padding=1), PICTURE
    ),
    "AvgPool2d": Case(lambda: nn.AvgPool2d((3, 2)), lambda t: t.AvgPool2d((3, 2)), PICTURE),
    "AvgPool2d without padding": Case(
        lambda: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
        lambda t: t.AvgPool2d(3, 1, 1, count_include_pad=False),
        PICTURE,
    ),
    "Flatten": Case(lambda: nn.Flatten(), lambda t: t.Flatten(), PICTURE),
    "Flatten the middle": Case(lambda: nn.Flatten(1, -2), lambda t: t.Flatten(1, -2), PICTURE),
    "Identity": Case(lambda: nn.Identity(), lambda t: t.Identity(), (8, 5)),
    "Dropout of nothing": Case(lambda: nn.Dropout(0.0), lambda t: t.Dropout(0.0), (8, 5)),
    "Dropout": Case(lambda: nn.Dropout(0.2), None, (8, 5)),
    "SinusoidalPositions": Case(lambda: nn.SinusoidalPositions(5), None, (8, 3, 5)),
    "LearnedPositions": Case(lambda: nn.LearnedPositions(4, 5), None, (8, 3, 5)),
    "RotaryPositions": Case(lambda: Turned(4), None, (8, 3, 4)),
    "RotaryPositions in halves": Case(lambda: Turned(6, style="half", rotary_dim=4), None, (8, 3, 6)),
    "RelativePositions": Case(lambda: Biased(True), None, (8, 3, 4)),
    "RelativePositions of a decoder": Case(lambda: Biased(False), None, (8, 3, 4)),
    "RNN": recurrent("RNN", 4, 5),
    "GRU": recurrent("GRU", 4, 5, bias=False),
    "LSTM": recurrent("LSTM", 4, 5),
    "RNN of two layers": recurrent("RNN", 4, 3, 2, bidirectional=True),
    "GRU of two layers": recurrent("GRU", 4, 3, 2, bidirectional=True),
    "LSTM of two layers": recurrent("LSTM", 4, 3, 2, bidirectional=True),
    "RNNCell": Case(lambda: Step(nn.RNNCell(4, 5)), lambda t: _step(t, t.RNNCell(4, 5)), (8, 4)),
    "GRUCell": Case(lambda: Step(nn.GRUCell(4, 5)), lambda t: _step(t, t.GRUCell(4, 5)), (8, 4)),
    "LSTMCell": Case(lambda: Step(nn.LSTMCell(4, 5)), lambda t: _step(t, t.LSTMCell(4, 5)), (8, 4)),
    "SSRU": Case(lambda: nn.SSRU(4), None, (8, 3, 4)),
    "MLP": Case(lambda: nn.MLP(4, 6), None, (8, 3, 4)),
    "MixtureOfExperts": Case(lambda: nn.MixtureOfExperts(4, 6, experts=3, active=2), None, (8, 3, 4)),
    "MLP of LLaMA": Case(lambda: nn.MLP(4, 3, "swiglu"), None, (8, 3, 4)),
    "MultiHeadAttention": Case(lambda: nn.MultiHeadAttention(4, 2), None, (8, 3, 4)),
    "MultiHeadAttention in groups": Case(
        lambda: nn.MultiHeadAttention(4, 2, kv_heads=1, head_dim=3, qk_norm="rms", softcap=5.0), None, (8, 3, 4)
    ),
    "TransformerBlock": Case(lambda: nn.TransformerBlock(4, 2, 5), None, (8, 3, 4)),
    "TransformerBlock after Vaswani": Case(lambda: nn.TransformerBlock(4, 2, 5, norm_first=False), None, (8, 3, 4)),
    "Encoder": Case(lambda: nn.Encoder(1, 4, 2, 5, causal=True), None, (8, 3, 4)),
    "Decoder": Case(lambda: OwnMemory(nn.Decoder(1, 4, 2, 5)), None, (8, 3, 4)),
    "ReLU": activation("ReLU"),
    "LeakyReLU": activation("LeakyReLU", 0.2),
    "ELU": activation("ELU", 0.7),
    "SELU": activation("SELU"),
    "GELU": activation("GELU"),
    "GELU of GPT-2": Case(lambda: nn.GELU(approximate="tanh"), lambda t: t.GELU(approximate="tanh"), (8, 5)),
    "SiLU": activation("SiLU"),
    "Mish": activation("Mish"),
    "Tanh": activation("Tanh"),
    "Sigmoid": activation("Sigmoid"),
    "LogSigmoid": activation("LogSigmoid"),
    "Softplus": activation("Softplus", 2.0, 1.0),
    "Softsign": activation("Softsign"),
    "Hardtanh": activation("Hardtanh", -0.5, 1.5),
    "Hardsigmoid": Case(lambda: nn.Hardsigmoid(), _exact_hardsigmoid, (8, 5)),
    "CELU": activation("CELU", 0.5),
    "ReLU6": activation("ReLU6"),
    "Threshold": activation("Threshold", 0.1, -0.3),
    "PReLU": activation("PReLU"),
    "PReLU of channels": activation("PReLU", 5),
    "RReLU with one slope": activation("RReLU", 0.25, 0.25),
    "Hardswish": activation("Hardswish"),
    "Hardshrink": activation("Hardshrink", 0.2),
    "Softshrink": activation("Softshrink", 0.2),
    "Tanhshrink": activation("Tanhshrink"),
    "Softmin": activation("Softmin", 1),
    "GLU": Case(lambda: nn.GLU(1), lambda t: t.GLU(1), (8, 6)),
    "Softmax2d": Case(lambda: nn.Softmax2d(), lambda t: t.Softmax2d(), PICTURE),
    "BatchNorm3d": Case(lambda: nn.BatchNorm3d(4), lambda t: t.BatchNorm3d(4), (8, 4, 2, 3, 2)),
    "GroupNorm": Case(lambda: nn.GroupNorm(2, 4), lambda t: t.GroupNorm(2, 4), PICTURE),
    "GroupNorm without parameters": Case(
        lambda: nn.GroupNorm(1, 4, 0.1, False), lambda t: t.GroupNorm(1, 4, 0.1, False), PICTURE
    ),
    "InstanceNorm1d": Case(lambda: nn.InstanceNorm1d(4), lambda t: t.InstanceNorm1d(4), (8, 4, 5)),
    "InstanceNorm2d with statistics": Case(
        lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
        lambda t: t.InstanceNorm2d(4, affine=True, track_running_stats=True),
        PICTURE,
    ),
    "InstanceNorm3d": Case(lambda: nn.InstanceNorm3d(4, 0.1), lambda t: t.InstanceNorm3d(4, 0.1), (8, 4, 2, 3, 2)),
    "LocalResponseNorm": Case(lambda: nn.LocalResponseNorm(2, 0.5), lambda t: t.LocalResponseNorm(2, 0.5), PICTURE),
    "EmbeddingBag": Case(lambda: nn.EmbeddingBag(9, 4), lambda t: t.EmbeddingBag(9, 4), (8, 3), rows=9),
    "EmbeddingBag with padding": Case(
        lambda: nn.EmbeddingBag(9, 4, mode="sum", padding_idx=2),
        lambda t: t.EmbeddingBag(9, 4, mode="sum", padding_idx=2),
        (8, 3),
        rows=9,
    ),
    "Unflatten": Case(lambda: nn.Unflatten(1, (2, -1)), lambda t: t.Unflatten(1, (2, 3)), (8, 6)),
    "Dropout1d of nothing": Case(lambda: nn.Dropout1d(0.0), lambda t: t.Dropout1d(0.0), (8, 4, 5)),
    "Dropout2d of nothing": Case(lambda: nn.Dropout2d(0.0), lambda t: t.Dropout2d(0.0), PICTURE),
    "Dropout3d of nothing": Case(lambda: nn.Dropout3d(0.0), lambda t: t.Dropout3d(0.0), (8, 4, 2, 3, 2)),
    "AlphaDropout of nothing": Case(lambda: nn.AlphaDropout(0.0), lambda t: t.AlphaDropout(0.0), (8, 5)),
    "FeatureAlphaDropout of nothing": Case(
        lambda: nn.FeatureAlphaDropout(0.0), lambda t: t.FeatureAlphaDropout(0.0), (8, 5)
    ),
    "Softmax": activation("Softmax", 1),
    "LogSoftmax": activation("LogSoftmax", 0),
}

add("linear", lambda x, w, bias: x @ w.T + bias, spread(2, 3), spread(4, 3, seed=1), spread(4, seed=2))
add("linear", lambda x, w: x @ w.T, spread(2, 2, 3), spread(2, 3, seed=1), label="no bias, more axes")
add("linear", lambda x, w, bias: x @ w.T + bias, spread(3), spread(4, 3, seed=1), spread(4, seed=2), label="vector")


def gelu_reference(x, approximate="none"):
    """By the normal distribution, or by the formula with tanh."""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


add(
    "linear_gelu",
    lambda x, w, bias: gelu_reference(x @ w.T + bias),
    spread(2, 3),
    spread(4, 3, seed=1),
    spread(4, seed=2),
    dtype_as_reference=False,
)
add(
    "linear_gelu",
    lambda x, w, approximate: gelu_reference(x @ w.T, approximate),
    spread(2, 2, 3),
    spread(2, 3, seed=1),
    kwargs={"approximate": "tanh"},
    label="tanh, no bias, more axes",
    dtype_as_reference=False,
)
add("embedding", lambda i, w: w[i], np.array([[0, 2], [2, 2]]), spread(3, 2))
add(
    "embedding",
    lambda i, w, padding_idx: w[i],
    np.array([0, 2]),
    spread(3, 2),
    kwargs={"padding_idx": 2},
    label="padding",
    gradient=False,
)
add("dropout", lambda x, training: x, spread(2, 3), kwargs={"training": False}, label="not training")
add("dropout", lambda x, p: x * 0, spread(2, 3), kwargs={"p": 1.0}, label="all dropped")


def normalized(x, axes, eps, weight=1, bias=0):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps) * weight + bias


add(
    "layer_norm",
    lambda x, normalized_shape: normalized(x, (-1,), 1e-5),
    spread(2, 4),
    kwargs={"normalized_shape": 4},
    label="plain",
)
add(
    "layer_norm",
    lambda x, w, bias, normalized_shape, eps: normalized(x, (-2, -1), eps, w, bias),
    spread(2, 3, 2),
    spread(3, 2, seed=1),
    spread(3, 2, seed=2),
    kwargs={"normalized_shape": (3, 2), "eps": 0.1},
    label="weights",
)
add(
    "rms_norm",
    lambda x, normalized_shape: x / np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(x.dtype).eps),
    spread(2, 4),
    kwargs={"normalized_shape": (4,)},
    label="plain",
)
add(
    "rms_norm",
    lambda x, w, normalized_shape, eps: w * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps),
    spread(2, 3, 2),
    spread(2, seed=1),
    kwargs={"normalized_shape": 2, "eps": 0.1},
    label="weights",
)
new_batch = {"running_mean": None, "running_var": None, "training": True}
add("batch_norm", lambda x, **_: normalized(x, (0,), 1e-5), spread(4, 3), kwargs=new_batch, label="training")
add(
    "batch_norm",
    lambda x, w, bias, eps, **_: normalized(x, (0, 2), eps, w[:, None], bias[:, None]),
    spread(2, 3, 2),
    spread(3, seed=1),
    spread(3, seed=2),
    kwargs={**new_batch, "eps": 0.1},
    label="training, weights",
)
add(
    "batch_norm",
    lambda x, w, bias, running_mean, running_var: (x - running_mean) / np.sqrt(running_var + 1e-5) * w + bias,
    spread(2, 3),
    spread(3, seed=1),
    spread(3, seed=2),
    kwargs={"running_mean": Fixed(spread(3, seed=3)), "running_var": Fixed(spread(3, low=0.5, high=2, seed=4))},
    label="running",
    dtypes=("float64",),
)
add("_crossing", lambda tensors, run: tuple(tensors), [spread(2), spread(2, 3)], kwargs={"run": list})
