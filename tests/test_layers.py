"""Every layer: PyTorch's numbers, names and start values, right derivatives, able to learn, and clear about bad input."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from support.fake_array import FakeArray
from support.samples.layers import CASES, Case

import minigrad as mg
from minigrad import nn
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, AxisError, DtypeError, IndexingError, ShapeError
from minigrad.nn import functional as F

CONTAINERS = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
WEIGHTS = {
    "LoRA",
    "VocabularyHead",
}  # in the place of a weight, test_lora.py, or with a table of the model, test_model_gpt.py
SEVERAL_INPUTS = {"Bilinear", "CosineSimilarity", "PairwiseDistance"}  # they are in test_loss_layers.py, as all losses
BLOCKS = {"TransformerBlock", "Encoder", "Decoder"}  # test_transformer.py differentiates them, with memory and masks


def test_every_layer_has_a_case():
    layers = {
        name for name in nn.__all__ if inspect.isclass(thing := getattr(nn, name)) and issubclass(thing, nn.Module)
    }
    losses = {name for name in layers if name.endswith("Loss")}
    assert layers - CONTAINERS - WEIGHTS - SEVERAL_INPUTS - losses == {name.partition(" ")[0] for name in CASES}


def equal(ours: Any, theirs: Any, what: str) -> None:
    a, b = ours.numpy(), theirs.detach().numpy()
    assert a.shape == b.shape and a.dtype == b.dtype, what
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, err_msg=what)


@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.theirs])
def test_a_layer_with_pytorchs_weights_gives_its_outputs_gradients_and_state(name: str, training: bool, device: str):
    import torch

    case = CASES[name]
    assert case.theirs is not None
    theirs = case.theirs(torch.nn).double().train(training)
    for parameter in theirs.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    ours = case.ours().to(dtype="float64", device=device)
    ours.train(training).load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    for seed in (0, 1):  # the second time, running statistics have moved
        values = case.input(seed)
        x, y = mg.tensor(values, device=device, requires_grad=not case.rows), torch.tensor(values)
        y.requires_grad_(not case.rows)
        out, expected = ours(x), theirs(y)
        equal(out, expected, "output")
        if not expected.requires_grad:
            continue
        weights = np.random.default_rng(2).standard_normal(out.shape)
        (out * mg.tensor(weights, device=device)).sum().backward()
        (expected * torch.tensor(weights)).sum().backward()
        if not case.rows:
            equal(x.grad, y.grad, "gradient of the input")
    their_grads = {key: p.grad for key, p in theirs.named_parameters()}
    assert {key: p.device for key, p in ours.named_parameters()} == dict.fromkeys(their_grads, device)
    for key, parameter in ours.named_parameters():
        equal(parameter.grad, their_grads[key], f"gradient of {key}")
    state = ours.state_dict()
    assert list(state) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        equal(state[key], value, key)


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.theirs])
def test_a_layer_starts_with_pytorchs_names_shapes_dtypes_and_spread(name: str):
    import torch

    case = CASES[name]
    assert case.theirs is not None
    mg.manual_seed(0)
    theirs = [case.theirs(torch.nn).state_dict() for _ in range(30)]
    ours = [case.ours().state_dict() for _ in range(30)]
    assert list(ours[0]) == list(theirs[0])
    for key, value in theirs[0].items():
        assert ours[0][key].shape == tuple(value.shape) and ours[0][key].dtype == value.numpy().dtype
        mine = np.stack([state[key].numpy() for state in ours])
        other = np.stack([state[key].numpy() for state in theirs])
        spread = other.std() / np.sqrt(other.size)
        assert abs(mine.mean() - other.mean()) <= 6 * spread
        assert abs(mine.std() - other.std()) <= 6 * spread
        if "Embedding" not in name:
            limit = np.abs(other).max()
            assert 0.9 * limit <= np.abs(mine).max() <= 1.1 * limit


@pytest.mark.parametrize("name", [name for name in CASES if name.partition(" ")[0] not in BLOCKS and name != "Dropout"])
def test_derivatives_of_first_and_second_order_are_right(name: str):
    case = CASES[name]
    mg.manual_seed(1)
    layer = case.ours().to("float64")
    if getattr(layer, "running_mean", None) is not None or layer.couples_batch:
        layer.eval()  # its statistics move from call to call, which gradcheck refuses
    if case.rows and not any(True for _ in layer.parameters()):
        pytest.fail("an input of whole numbers needs parameters to differentiate by")
    x = mg.tensor(case.input()[:2])
    with_embedding = isinstance(layer, nn.Embedding) and layer.padding_idx is not None
    if with_embedding:
        x = x * 0 + 3  # the padding row is constant by decree, not by derivative
    assert gradcheck(layer, x, allow_kinks=True).compared > 0


class Adam:
    """The few lines of Adam that these tests need."""

    def __init__(self, parameters: list[Any], rate: float):
        self.parameters, self.rate, self.steps = parameters, rate, 0
        self.moments = [(np.zeros(p.shape), np.zeros(p.shape)) for p in parameters]

    def step(self) -> None:
        self.steps += 1
        for i, p in enumerate(self.parameters):
            m, v = self.moments[i]
            m, v = 0.9 * m + 0.1 * p.grad.numpy(), 0.99 * v + 0.01 * p.grad.numpy() ** 2
            self.moments[i] = m, v
            change = self.rate * (m / (1 - 0.9**self.steps)) / (np.sqrt(v / (1 - 0.99**self.steps)) + 1e-8)
            with mg.no_grad():
                p -= mg.tensor(change.astype(p.dtype), device=p.device)
            p.grad = None


def model_around(case: Case) -> nn.Sequential:
    """The layer between a Linear, unless it takes whole numbers, and a classifier of three classes."""
    before = [] if case.rows else [nn.Linear(case.shape[-1], case.shape[-1])]
    body = nn.Sequential(*before, case.ours(), nn.Flatten())
    size = body.eval()(mg.tensor(case.input(), dtype=None if case.rows else "float32")).shape[1]
    return body.train().append(nn.Linear(size, 3))


@pytest.mark.parametrize("name", CASES)
def test_a_model_with_the_layer_overfits_one_batch_and_trains_every_parameter(name: str):
    case = CASES[name]
    mg.manual_seed(2)
    model = model_around(case)
    x = mg.tensor(case.input(), dtype=None if case.rows else "float32")
    labels = mg.tensor(np.random.default_rng(3).integers(0, 3, case.shape[0]))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer = Adam(list(model.parameters()), 0.05)
    for _ in range(150):
        F.cross_entropy(model(x), labels).backward()
        optimizer.step()
    if not model[-3].couples_batch:
        model.eval()
    logits = model(x)
    assert F.cross_entropy(logits, labels).item() < 0.05
    assert (logits.numpy().argmax(axis=1) == labels.numpy()).all()
    unchanged = [key for key, p in model.named_parameters() if (p.numpy() == before[key].numpy()).all()]
    assert unchanged == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.theirs])
def test_layers_without_a_counterpart_give_the_same_on_the_device(name: str):
    case = CASES[name]
    mg.manual_seed(0)
    layer = case.ours().to("float64").eval()
    expected = layer(mg.tensor(case.input()))
    layer.to("fake")
    x = mg.tensor(case.input(), device="fake", requires_grad=True)
    out = layer(x)
    assert type(out.data) is FakeArray
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-12)
    out.sum().backward()
    assert x.grad is not None and type(x.grad.data) is FakeArray


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: nn.Linear(3, 2, **k),
        lambda **k: nn.Embedding(3, 2, **k),
        lambda **k: nn.LayerNorm(3, **k),
        lambda **k: nn.RMSNorm(3, **k),
        lambda **k: nn.BatchNorm1d(3, **k),
        lambda **k: nn.BatchNorm2d(3, **k),
        lambda **k: nn.GroupNorm(1, 3, **k),
        lambda **k: nn.InstanceNorm1d(3, affine=True, **k),
        lambda **k: nn.PReLU(3, **k),
        lambda **k: nn.Bilinear(3, 2, 2, **k),
        lambda **k: nn.EmbeddingBag(3, 2, **k),
        lambda **k: nn.Conv1d(3, 2, 3, **k),
        lambda **k: nn.Conv2d(3, 2, 3, **k),
        lambda **k: nn.ConvTranspose3d(3, 2, 3, **k),
        lambda **k: nn.LearnedPositions(3, 2, **k),
    ],
)
def test_layers_are_made_with_a_dtype_and_on_a_device(make: Any):
    layer = make(dtype="float64", device="fake")
    for tensor in (*layer.parameters(), *layer.buffers()):
        assert tensor.device == "fake" and tensor.dtype in (np.float64, np.int64)
    assert {p.dtype.name for p in make(dtype="float16").parameters()} == {"float16"}
    mg.manual_seed(5)
    first = make().state_dict()
    mg.manual_seed(5)
    again = make().state_dict()
    assert all((first[key].numpy() == again[key].numpy()).all() for key in first)


def test_dropout_drops_in_training_only_and_repeats_with_its_seed(device: str):
    layer, x = nn.Dropout(0.25), mg.ones(4000, device=device)
    mg.manual_seed(0)
    first = layer(x).numpy()
    mg.manual_seed(0)
    np.testing.assert_array_equal(layer(x).numpy(), first)
    assert abs((first == 0).mean() - 0.25) < 0.03
    np.testing.assert_array_equal(np.unique(first), [0, np.float32(1 / 0.75)])
    np.testing.assert_array_equal(layer.eval()(x).numpy(), 1)


def test_the_padding_row_starts_as_zeros_and_gets_no_gradient(device: str):
    layer = nn.Embedding(5, 3, padding_idx=-1, device=device)
    assert layer.padding_idx == 4
    np.testing.assert_array_equal(layer.weight.numpy()[4], 0)
    layer(mg.tensor([[0, 4], [4, 1]], device=device)).sum().backward()
    assert layer.weight.grad is not None
    np.testing.assert_array_equal(layer.weight.grad.numpy().sum(axis=1), [3, 3, 0, 0, 0])


def test_pretrained_vectors_are_copied_and_frozen_unless_asked():
    vectors = np.arange(6.0).reshape(3, 2)
    layer = nn.Embedding.from_pretrained(vectors, padding_idx=0)
    vectors[0] = 9
    np.testing.assert_array_equal(layer(mg.tensor([2, 0])).numpy(), [[4, 5], [0, 1]])
    assert not layer.weight.requires_grad and layer.padding_idx == 0
    assert nn.Embedding.from_pretrained(vectors, freeze=False).weight.requires_grad


def test_a_running_mean_without_momentum_is_the_plain_mean_of_all_batches():
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [np.random.default_rng(i).standard_normal((6, 2)) for i in range(4)]
    for batch in batches:
        layer(mg.tensor(batch, dtype="float32"))
    np.testing.assert_allclose(layer.running_mean.numpy(), np.mean(batches, axis=(0, 1)), atol=1e-6)
    np.testing.assert_allclose(
        layer.running_var.numpy(), np.mean([b.var(axis=0, ddof=1) for b in batches], 0), rtol=1e-5
    )
    assert layer.num_batches_tracked.item() == 4


def test_only_batch_norm_says_that_it_couples_the_batch():
    assert {name.partition(" ")[0] for name, case in CASES.items() if case.ours().couples_batch} == {
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
    }
    for name, case in CASES.items():
        layer = case.ours().to("float64")
        if not layer.couples_batch and name not in ("Dropout", "LogSoftmax"):
            whole, part = layer(mg.tensor(case.input())), layer(mg.tensor(case.input()[:3]))
            np.testing.assert_allclose(whole.numpy()[:3], part.numpy(), rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: nn.Linear(0, 3), ArgumentError, "Linear: in_features .* 1 up\n.*\n.*got: +0"),
        (lambda: nn.Linear(2.0, 3), ArgumentError, "Linear: in_features .*\n.*\n.*got: +2.0"),
        (lambda: nn.Linear(2, True), ArgumentError, "Linear: out_features"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), IndexingError, "Embedding: padding_idx .*\n.*-3 to 2\n.*got: +3"),
        (
            lambda: nn.Embedding.from_pretrained([1.0, 2.0]),
            ShapeError,
            r"from_pretrained: .*\n.*rows, size.*\n.*\(2,\)",
        ),
        (lambda: nn.Dropout(1.5), ArgumentError, "Dropout: p .*\n.*0 to 1\n.*1.5"),
        (lambda: nn.LayerNorm(()), ArgumentError, "LayerNorm: normalized_shape is empty"),
        (lambda: nn.LayerNorm((3, -1)), ArgumentError, "LayerNorm: normalized_shape .*\n.*\n.*-1"),
        (lambda: nn.BatchNorm1d(3, momentum=2.0), ArgumentError, "BatchNorm1d: momentum"),
        (lambda: nn.Conv2d(3, 4, (1, 2, 3)), ArgumentError, "Conv2d: kernel_size .*\n.*2 of them\n.*1, 2, 3"),
        (lambda: nn.Conv1d(3, 4, 3, groups=2), ArgumentError, "Conv1d: the channels .*\n.*\n.*in_channels=3.*groups=2"),
        (lambda: nn.Conv1d(3, 4, 0), ArgumentError, "Conv1d: kernel_size"),
        (
            lambda: nn.Conv1d(3, 4, 3, padding_mode="reflection"),
            ArgumentError,
            "Conv1d: unknown padding_mode(?s:.*)'reflect'",
        ),
        (lambda: nn.ReflectionPad2d((1, 2)), ArgumentError, r"ReflectionPad2d: padding .*\n.*4 of them\n.*\(1, 2\)"),
    ],
)
def test_a_layer_that_cannot_be_made_says_why(make: Any, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize(
    ("layer", "x", "kind", "words"),
    [
        (nn.Linear(4, 2), mg.ones(3, 5), ShapeError, r"\(…, in\).*\n.*\(3, 5\) and \(2, 4\)"),
        (nn.Embedding(4, 2), mg.ones(3), DtypeError, "embedding: row numbers .*\n.*integer.*\n.*float32"),
        (nn.Embedding(4, 2), mg.tensor([4]), IndexingError, "0 to 3.*\n.*4"),
        (nn.LayerNorm(4), mg.ones(3, 5), ShapeError, r"expected: \(…, 4\)\n.*\(3, 5\)"),
        (nn.RMSNorm(4), mg.ones(3, 5), ShapeError, r"expected: \(…, 4\)\n.*\(3, 5\)"),
        (nn.BatchNorm1d(4), mg.ones(3, 5), ShapeError, r"BatchNorm1d: .*\n.*\(N, 4\) or \(N, 4, L\)\n.*\(3, 5\)"),
        (nn.BatchNorm1d(4), mg.ones(1, 4), ShapeError, r"several values"),
        (nn.BatchNorm2d(4), mg.ones(3, 4), ShapeError, r"\(N, 4, H, W\)\n.*\(3, 4\)"),
        (nn.Conv2d(3, 4, 3), mg.ones(2, 5, 9, 9), ShapeError, r"conv2d.*\n.*\n.*\(2, 5, 9, 9\)"),
        (nn.Conv1d(3, 4, 3), mg.ones(2, 3, 2), ShapeError, r"conv1d"),
        (nn.ConvTranspose1d(3, 4, 3), mg.ones(2, 2, 3), ShapeError, r"conv_transpose1d.*\n.*\n.*\(2, 2, 3\)"),
        (nn.MaxPool2d(3), mg.ones(2, 2), ShapeError, r"max_pool2d.*\n.*\n.*\(2, 2\)"),
        (nn.Dropout(), mg.tensor([1, 2]), DtypeError, r"dropout: .*\n.*floating.*\n.*int64"),
        (nn.Flatten(3), mg.ones(2, 2), AxisError, r"Flatten: .*\n.*\n.*axis=3"),
        (nn.Flatten(1, 0), mg.ones(2, 2), AxisError, r"Flatten: .*\n.*\n.*1 and 0"),
    ],
)
def test_bad_input_is_refused_with_the_path_of_the_layer_what_was_expected_and_what_came(layer, x, kind, words):
    class Model(nn.Module):
        def __init__(self):
            self.blocks = nn.ModuleList([nn.Identity(), layer])

        def forward(self, x):
            return self.blocks[1](self.blocks[0](x))

    with pytest.raises(kind, match=words) as caught:
        Model()(x)
    assert str(caught.value).startswith("Model.blocks.1: ")
