"""Transformer blocks and stacks: the same numbers as PyTorch's, nothing seen that is hidden, and generation with a cache."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.functional_oracle import normal

import minigrad as mg
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError
from minigrad.nn import MLP, Decoder, Encoder, RotaryPositions, TransformerBlock, causal_mask, padding_mask
from minigrad.nn import functional as F
from minigrad.nn.functional import attention as attention_function
from minigrad.nn.functional import dropouts
from minigrad.nn.transformer import attention

B, L, S, C, H, HIDDEN = 3, 5, 7, 8, 2, 12
RENAMED = {  # PyTorch's name -> ours
    "self_attn": "attention",
    "multihead_attn": "cross_attention",
    "linear1": "mlp.up",
    "linear2": "mlp.down",
    "norm1": "attention_norm",
    "layers": "blocks",
}
ORDERS = pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
ACTIVATIONS = pytest.mark.parametrize("activation", ["relu", "gelu"])
STYLES: dict[str, Callable[[], dict[str, Any]]] = {
    "gpt": dict,
    "post-norm": lambda: {"norm_first": False, "activation": "relu"},
    "llama": lambda: {"norm": "rms", "activation": "swiglu", "bias": False, "rotary": RotaryPositions(C // H)},
}


def filled(model: Any) -> Any:
    """The model with weights that are the same each time, and large enough to matter."""
    for i, parameter in enumerate(model.parameters()):
        with mg.no_grad():
            values = mg.tensor(normal(*parameter.shape, seed=i) / 2, device=parameter.device)
            parameter[...] = values + (1 if parameter.ndim == 1 else 0)
    return model


def near(ours: Any, theirs: Any) -> None:
    expected = theirs.detach().numpy() if hasattr(theirs, "detach") else theirs
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9, atol=1e-9)


def our_name(name: str, has_cross: bool) -> str:
    """`layers.0.self_attn.out_proj.bias` -> `blocks.0.attention.out_proj.bias`; a layer's last norm is the MLP's."""
    norms = {"norm2": "cross_norm", "norm3": "mlp_norm"} if has_cross else {"norm2": "mlp_norm"}
    return ".".join({**RENAMED, **norms}.get(part, part) for part in name.split("."))


def as_torch(
    ours: Any, theirs: Any, arrays: list[np.ndarray], given: dict[str, Any], given_torch: dict[str, Any]
) -> None:
    """Copy PyTorch's weights; compare outputs, and gradients of inputs and of every parameter."""
    import torch

    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    has_cross = len(arrays) == 2
    named = {our_name(name, has_cross): parameter for name, parameter in theirs.named_parameters()}
    ours.load_state_dict({name: parameter.detach().numpy() for name, parameter in named.items()})
    our_inputs = [mg.tensor(a, requires_grad=True) for a in arrays]
    their_inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
    got = ours(*our_inputs, **given)
    expected = theirs(*their_inputs, **given_torch)
    near(got, expected)
    direction = normal(*got.shape, seed=9)
    (got * mg.tensor(direction)).sum().backward()
    (expected * torch.tensor(direction)).sum().backward()
    pairs = [(parameter, named[name]) for name, parameter in ours.named_parameters()]
    assert len(pairs) == len(named)
    for ours_, theirs_ in [*zip(our_inputs, their_inputs), *pairs]:
        near(ours_.grad, theirs_.grad)


def torch_options(activation: str, norm_first: bool, dropout: float = 0.0) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    options = {"dropout": dropout, "activation": activation, "norm_first": norm_first}
    return {**options, "batch_first": True, "dtype": torch.float64}


def hidden(mask: mg.Tensor) -> Any:
    """What PyTorch takes: True where attention is forbidden, and (B, S) for padding."""
    import torch

    return torch.tensor(~(mask.numpy()[:, 0, 0] if mask.ndim == 4 else mask.numpy()))


@pytest.mark.torch
@ORDERS
@ACTIVATIONS
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_an_encoder_block_is_pytorchs(norm_first: bool, activation: str, padded: bool, causal: bool) -> None:
    import torch

    theirs = torch.nn.TransformerEncoderLayer(C, H, HIDDEN, **torch_options(activation, norm_first))
    options: dict[str, Any] = {"activation": activation, "norm_first": norm_first, "causal": causal}
    ours = TransformerBlock(C, H, HIDDEN, **options, dtype="float64")
    mask = padding_mask([5, 2, 3]) if padded else None
    theirs_given = {"src_mask": hidden(causal_mask(L)) if causal else None}
    theirs_given["src_key_padding_mask"] = None if mask is None else hidden(mask)
    as_torch(ours, theirs, [normal(B, L, C)], {"mask": mask}, theirs_given)


@pytest.mark.torch
@ORDERS
@ACTIVATIONS
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_a_decoder_block_is_pytorchs(norm_first: bool, activation: str, padded: bool) -> None:
    import torch

    theirs = torch.nn.TransformerDecoderLayer(C, H, HIDDEN, **torch_options(activation, norm_first))
    options: dict[str, Any] = {"activation": activation, "norm_first": norm_first, "causal": True, "cross": True}
    ours = TransformerBlock(C, H, HIDDEN, **options, dtype="float64")
    given: dict[str, Any] = {}
    given_torch: dict[str, Any] = {"tgt_mask": hidden(causal_mask(L))}
    if padded:
        given = {"mask": padding_mask([5, 2, 3]), "memory_mask": padding_mask([4, 7, 1])}
        given_torch["tgt_key_padding_mask"] = hidden(given["mask"])
        given_torch["memory_key_padding_mask"] = hidden(given["memory_mask"])
    as_torch(ours, theirs, [normal(B, L, C), normal(B, S, C, seed=1)], given, given_torch)


@pytest.mark.torch
@ORDERS
def test_stacks_are_pytorchs_with_a_last_norm_if_pre_norm(norm_first: bool) -> None:
    import torch

    shared = torch_options("gelu", norm_first)
    norms = [torch.nn.LayerNorm(C, dtype=torch.float64) if norm_first else None for _ in range(2)]
    layer = torch.nn.TransformerEncoderLayer(C, H, HIDDEN, **shared)
    encoder = torch.nn.TransformerEncoder(layer, 2, norm=norms[0], enable_nested_tensor=False)
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(C, H, HIDDEN, **shared), 2, norm=norms[1])
    ours = Encoder(2, C, H, HIDDEN, norm_first=norm_first, dtype="float64")
    mask = padding_mask([5, 2, 3])
    as_torch(ours, encoder, [normal(B, L, C)], {"mask": mask}, {"src_key_padding_mask": hidden(mask)})
    ours_too = Decoder(2, C, H, HIDDEN, norm_first=norm_first, dtype="float64")
    as_torch(ours_too, decoder, [normal(B, L, C), normal(B, S, C, seed=1)], {}, {"tgt_mask": hidden(causal_mask(L))})


@pytest.mark.torch
@ORDERS
def test_dropping_everything_leaves_what_pytorch_leaves(norm_first: bool) -> None:
    import torch

    theirs = torch.nn.TransformerDecoderLayer(C, H, HIDDEN, **torch_options("relu", norm_first, dropout=1.0))
    options: dict[str, Any] = {"activation": "relu", "norm_first": norm_first, "dropout": 1.0, "cross": True}
    ours = TransformerBlock(C, H, HIDDEN, **options, dtype="float64")
    x, memory = normal(B, L, C), normal(B, S, C, seed=1)
    near(ours(mg.tensor(x), mg.tensor(memory)), theirs(torch.tensor(x), torch.tensor(memory)))


@pytest.mark.parametrize(
    ("rates", "is_inside", "is_added"),
    [
        ({"dropout": 0.5}, True, True),
        ({"dropout": 0.5, "inner_dropout": 0.0}, False, True),
        ({"inner_dropout": 0.5}, True, False),
    ],
)
def test_dropout_is_on_weights_in_the_mlp_and_on_what_is_added(
    rates: dict[str, float], is_inside: bool, is_added: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, dropped = TransformerBlock(C, H, HIDDEN, **rates, cross=True), []
    for module in (attention_function, attention, dropouts):
        monkeypatch.setattr(module, "next_key", lambda shape: dropped.append(math.prod(shape)) or (0, 0))
    x, memory = mg.randn(B, L, C), mg.randn(B, S, C)
    block(x, memory)
    inside, added = (B * H * L * L, B * H * L * S, B * L * HIDDEN), B * L * C
    assert dropped == [size for part in inside for size in [part] * is_inside + [added] * is_added]
    dropped.clear()
    block.eval()(x, memory)
    assert dropped == []


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_who_listens_to_the_first_layer_of_an_mlp_hears_it_before_gelu(activation):
    mlp, x, heard = mg.nn.MLP(8, 32, activation), mg.randn(3, 8), []
    together = mlp(x)
    mlp.up.register_forward_hook(lambda module, args, out: heard.append(out))
    apart = mlp(x)
    np.testing.assert_allclose(together.numpy(), apart.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(heard[0].numpy(), F.linear(x, mlp.up.weight, mlp.up.bias).numpy())


@pytest.mark.torch
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "tanh", "swiglu", "geglu", "reglu"])
def test_an_mlp_is_its_formula_in_pytorch(activation: str, bias: bool) -> None:
    import torch
    from torch.nn import functional as T

    bend = {
        "gelu_tanh": lambda x: T.gelu(x, approximate="tanh"),
        "tanh": torch.tanh,
        "swiglu": T.silu,
        "geglu": T.gelu,
        "reglu": T.relu,
    }.get(activation) or getattr(T, activation)
    ours = filled(MLP(C, HIDDEN, activation, bias=bias, dtype="float64"))
    up, down = ([torch.tensor(p.numpy()) for p in layer.parameters()] for layer in (ours.up, ours.down))
    x = normal(B, L, C)
    inner = T.linear(torch.tensor(x), *up)
    inner = bend(inner[..., :HIDDEN]) * inner[..., HIDDEN:] if activation.endswith("glu") else bend(inner)
    near(ours(mg.tensor(x)), T.linear(inner, *down))


@pytest.mark.torch
def test_a_block_with_rms_norms_is_its_formula_in_pytorch() -> None:
    import torch

    block = filled(TransformerBlock(C, H, HIDDEN, norm="rms", eps=1e-3, activation="relu", bias=False, dtype="float64"))
    p = {name: torch.tensor(value.numpy()) for name, value in block.named_parameters()}
    x = torch.tensor(normal(B, L, C))
    y = torch.nn.functional.rms_norm(x, (C,), p["attention_norm.weight"], 1e-3)
    q, k, v = (t.reshape(B, L, H, C // H).transpose(1, 2) for t in (y @ p["attention.in_proj_weight"].T).chunk(3, -1))
    seen = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, L, C)
    after = x + seen @ p["attention.out_proj.weight"].T
    y = torch.nn.functional.rms_norm(after, (C,), p["mlp_norm.weight"], 1e-3)
    near(block(mg.tensor(x.numpy())), after + torch.relu(y @ p["mlp.up.weight"].T) @ p["mlp.down.weight"].T)


@pytest.mark.parametrize("style", STYLES)
def test_no_position_of_a_causal_stack_sees_the_future(style: str) -> None:
    model = filled(Encoder(2, C, H, HIDDEN, causal=True, dtype="float64", **STYLES[style]()))
    x = normal(B, L, C)
    before = model(mg.tensor(x)).numpy()
    for t in range(1, L):
        changed = x.copy()
        changed[:, t:] = normal(B, L - t, C, seed=t) * 100
        after = model(mg.tensor(changed)).numpy()
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert (after[:, t:] != before[:, t:]).any(axis=-1).all()


@pytest.mark.parametrize("style", STYLES)
def test_padding_never_reaches_the_tokens(style: str) -> None:
    options, lengths = STYLES[style](), [5, 2, 3]
    encoder = filled(Encoder(2, C, H, HIDDEN, dtype="float64", **options))
    decoder = filled(Decoder(2, C, H, HIDDEN, dtype="float64", **options))
    x, target, mask = normal(B, L, C), mg.tensor(normal(B, 4, C, seed=5)), padding_mask(lengths)
    changed = x.copy()
    for row, length in enumerate(lengths):
        changed[row, length:] = normal(L - length, C, seed=row) * 100
    memories = [encoder(mg.tensor(a), mask=mask) for a in (x, changed)]
    for row, length in enumerate(lengths):
        np.testing.assert_array_equal(memories[1].numpy()[row, :length], memories[0].numpy()[row, :length])
    results = [decoder(target, memory, memory_mask=mask).numpy() for memory in memories]
    np.testing.assert_array_equal(results[1], results[0])
    longer = mg.tensor(np.concatenate([x, normal(B, 6, C, seed=6)], axis=1))
    wider = padding_mask(lengths, size=L + 6)
    near(decoder(target, encoder(longer, mask=wider), memory_mask=wider), results[0])


@ORDERS
def test_a_sentence_of_padding_alone_is_finite_and_leaves_the_others_alone(norm_first: bool) -> None:
    encoder = filled(Encoder(2, C, H, HIDDEN, norm_first=norm_first, dtype="float64"))
    decoder = filled(Decoder(2, C, H, HIDDEN, norm_first=norm_first, dtype="float64"))
    x, target = mg.tensor(normal(B, L, C)), mg.tensor(normal(B, 4, C, seed=5))
    results = []
    for lengths in ([5, 0, 3], [5, 4, 3]):
        mask = padding_mask(lengths)
        results.append(decoder(target, encoder(x, mask=mask), memory_mask=mask))
    np.testing.assert_array_equal(results[0].numpy()[[0, 2]], results[1].numpy()[[0, 2]])
    (results[0] * results[0]).sum().backward()
    for name, parameter in (*encoder.named_parameters(), *decoder.named_parameters()):
        assert parameter.grad is not None and np.isfinite(parameter.grad.numpy()).all(), name


class Generator(mg.nn.Module):
    """A language model, or with a memory a translator, small and untrained."""

    def __init__(self, stack: Any, positions: str, vocabulary: int = 50, device: str = "cpu") -> None:
        self.table = mg.nn.Embedding(vocabulary, C, dtype="float64", device=device)
        self.positions = mg.nn.SinusoidalPositions(C) if positions == "sinusoidal" else None
        self.stack = stack

    def forward(self, tokens: mg.Tensor, *memory: mg.Tensor, cache: Any = None) -> mg.Tensor:
        x = self.table(tokens)  # (B, L) -> (B, L, C)
        if self.positions is not None:
            x = self.positions(x, 0 if cache is None else cache.length)
        return F.linear(self.stack(x, *memory, cache=cache), self.table.weight)  # (B, L, C) -> (B, L, vocabulary)


@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_generation_with_a_cache_gives_the_same_tokens(kind: type, positions: str, device: str) -> None:
    rotary = RotaryPositions(C // H) if positions == "rotary" else None
    stack = kind(2, C, H, HIDDEN, causal=True, rotary=rotary, dtype="float64", device=device)
    model = filled(Generator(stack, positions, device=device))
    memory = [mg.tensor(normal(B, S, C), device=device)] if kind is Decoder else []
    tokens = mg.tensor(np.random.default_rng(0).integers(0, 50, (B, 3)), device=device)
    cache, fresh = stack.new_cache(), tokens
    with mg.no_grad():
        for step in range(20):
            logits = model(tokens, *memory)[:, -1]  # (B, vocabulary), computed from the beginning
            cached = model(fresh, *memory, cache=cache)[:, -1]
            near(cached, logits.numpy())
            fresh = cached.argmax(axis=-1).reshape(B, 1)
            np.testing.assert_array_equal(fresh.numpy()[:, 0], logits.numpy().argmax(axis=-1))
            tokens = mg.concatenate([tokens, fresh], axis=1)
            assert cache.length == 3 + step
    assert len(np.unique(tokens.numpy())) > 5


def test_a_cache_follows_the_rows_of_a_beam_search() -> None:
    decoder = filled(Decoder(2, C, H, HIDDEN, dtype="float64"))
    x, memory = mg.tensor(normal(B, L, C)), mg.tensor(normal(B, S, C, seed=1))
    cache, rows = decoder.new_cache(), [1, 0, 0, 2]
    with mg.no_grad():
        decoder(x[:, :3], memory, cache=cache)
        cache.select(rows)
        chosen = decoder(x[rows][:, 3:], memory[rows] * float("nan"), cache=cache)  # the memory is in the cache
    near(chosen, decoder(x, memory)[rows][:, 3:].numpy())


@pytest.mark.parametrize("style", STYLES)
def test_first_and_second_derivatives_of_a_whole_block_are_right(style: str) -> None:
    class Masked(mg.nn.Module):
        def __init__(self) -> None:
            smooth = (
                {"activation": "swiglu", "rotary": RotaryPositions(2)} if style == "llama" else {"activation": "gelu"}
            )
            options = {**STYLES[style](), **smooth, "causal": True, "cross": True, "dtype": "float64"}
            self.block = TransformerBlock(4, 2, 2, **options)

        def forward(self, x: mg.Tensor, memory: mg.Tensor) -> mg.Tensor:
            return self.block(x, memory, mask=padding_mask([3, 2]), memory_mask=padding_mask([2, 0]))

    model, inputs = filled(Masked()), [mg.tensor(normal(2, 3, 4)), mg.tensor(normal(2, 2, 4, seed=1))]
    elements = sum(x.size for x in (*inputs, *model.parameters()))
    assert gradcheck(model, inputs, order=2).compared > 2 * elements  # and random directions besides


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", [Encoder, Decoder])
def test_one_batch_is_learned_by_heart(kind: type, style: str) -> None:
    mg.manual_seed(0)
    stack = kind(2, C, H, 4 * C, causal=True, **STYLES[style]())
    head = mg.nn.Linear(C, 6)
    parameters = [*stack.parameters(), *head.parameters()]
    inputs = [mg.randn(4, L, C) for _ in range(1 if kind is Encoder else 2)]
    labels = mg.randint(0, 6, (4 * L,))
    speeds = [mg.zeros_like(p) for p in parameters]
    for _ in range(300):
        logits = head(stack(*inputs)).reshape(4 * L, 6)
        loss = F.cross_entropy(logits, labels)
        if loss.item() < 0.05:
            break
        loss.backward()
        with mg.no_grad():
            for parameter, speed in zip(parameters, speeds):
                speed *= 0.9
                speed += parameter.grad
                parameter -= 0.05 * speed
                parameter.grad = None
    assert loss.item() < 0.05
    np.testing.assert_array_equal(logits.numpy().argmax(-1), labels.numpy())


@pytest.mark.parametrize("style", STYLES)
def test_training_on_the_device_equals_training_on_the_cpu(style: str) -> None:
    def run(device: str) -> list[np.ndarray]:
        options = {**STYLES[style](), "dtype": "float64", "device": device}
        encoder, decoder = filled(Encoder(1, C, H, HIDDEN, **options)), filled(Decoder(1, C, H, HIDDEN, **options))
        x, target = (mg.tensor(a, device=device) for a in (normal(B, L, C), normal(B, 4, C, seed=1)))
        mask = padding_mask(mg.tensor([5, 2, 0], device=device))
        out = decoder(target, encoder(x, mask=mask), memory_mask=mask)
        (out * out).sum().backward()
        assert out.device == device
        parameters = [*encoder.parameters(), *decoder.parameters()]
        return [out.numpy(), *(p.grad.numpy() for p in parameters)]

    for on_cpu, on_device in zip(run("cpu"), run("fake:1"), strict=True):
        np.testing.assert_allclose(on_device, on_cpu, rtol=1e-9, atol=1e-10)


def test_weights_of_a_whole_model_can_be_watched() -> None:
    decoder = Decoder(2, C, H, HIDDEN)
    with mg.nn.watch_attention(decoder) as seen:
        decoder(mg.randn(B, L, C), mg.randn(B, S, C))
    shapes = {path: [weights.shape for weights in calls] for path, calls in seen.items()}
    assert shapes == {
        f"blocks.{i}.{name}": [(B, H, L, size)]
        for i in range(2)
        for name, size in (("attention", L), ("cross_attention", S))
    }


def test_a_model_can_be_copied_and_its_state_moved() -> None:
    first, second = Encoder(2, C, H, HIDDEN, causal=True), Encoder(2, C, H, HIDDEN, causal=True)
    x = mg.randn(B, L, C)
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(second(x).numpy(), first(x).numpy())
    np.testing.assert_array_equal(copy.deepcopy(first)(x).numpy(), first(x).numpy())


X = mg.ones(B, L, C)
MISTAKES: dict[str, tuple[str, Callable[[], Any]]] = {
    "memory missing": ("needs a memory", lambda: TransformerBlock(C, H, cross=True)(X)),
    "memory unexpected": ("without cross-attention", lambda: TransformerBlock(C, H)(X, X)),
    "norm": ("'layer' or 'rms'", lambda: TransformerBlock(C, H, norm="batch")),
    "activation": ("swiglu", lambda: MLP(C, HIDDEN, activation="swigl")),
    "depth": ("depth", lambda: Encoder(0, C, H)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    words, call = MISTAKES[mistake]
    with pytest.raises(ArgumentError, match=words):
        call()
