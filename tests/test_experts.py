"""A mixture of experts computes what a loop over positions does, and what Mixtral's computes."""

import importlib.util

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, ShapeError
from minigrad.hub.layout import HubError, layout_of
from minigrad.parallel.profiling import profile_blocks
from minigrad.train.data_parallel import Shard, forward_shards, thread_shards

E, K, C, H = 5, 2, 6, 8


def mixture(activation="swiglu", dtype="float64", **options):
    mg.manual_seed(0)
    return nn.MixtureOfExperts(C, H, E, K, activation, dtype=dtype, **options)


def positions(*shape):
    return np.random.default_rng(1).normal(size=(*shape, C))


def by_loop(layer, x):
    """Each position by itself, in NumPy; only the experts themselves are ours."""
    out = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        scores = layer.router.weight.numpy() @ x[place]
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        best = sorted(range(len(shares)), key=lambda e: -shares[e])[: layer.active]
        for e in best:
            out[place] += shares[e] / shares[best].sum() * layer.experts[e](mg.tensor(x[place])).numpy()
    return out


@pytest.mark.parametrize("activation", ["gelu", "swiglu", "relu"])
@pytest.mark.parametrize("active", [1, 2, 5])
def test_it_is_a_loop_over_positions(activation, active):
    layer, x = mixture(activation), positions(3, 7)
    layer.active = active
    np.testing.assert_allclose(layer(x).numpy(), by_loop(layer, x), rtol=0, atol=1e-14)


def test_gradients_of_inputs_router_and_experts_are_right_to_the_second_order():
    layer, x = mixture(), mg.tensor(positions(2, 3))
    names = ["router.weight", "experts.0.up.weight", "experts.2.down.weight", "experts.4.down.bias"]
    own = dict(layer.named_parameters())

    def run(x, *values):
        with nn.imbalances() as uneven:
            made = nn.functional_call(layer, dict(zip(names, values)), (x,))
        return made, uneven[0]

    values = [own[name].detach() for name in names]
    assert gradcheck(run, (x, *values), order=2).ok


def test_no_position_depends_on_others_and_none_is_dropped():
    layer, x = mixture(), positions(4, 6)
    layer.router.weight.data[0] += 100 * x.mean(axis=(0, 1))  # nearly all of them want the first expert
    whole = layer(x).numpy()
    for row in range(4):
        np.testing.assert_allclose(layer(x[row : row + 1]).numpy()[0], whole[row], rtol=0, atol=1e-14)
    assert layer(x[:, :0]).shape == (4, 0, C) and abs(whole).min() > 0


def test_experts_without_a_position_get_zeros_as_gradient():
    layer = mixture()
    layer(positions(1, 1)).sum().backward()
    grads = [expert.up.weight.grad.numpy() for expert in layer.experts]
    assert sorted(abs(g).max() > 0 for g in grads) == [False] * (E - K) + [True] * K


def test_the_imbalance_is_1_if_experts_are_used_evenly_and_their_number_if_one_is():
    layer = mixture()
    even = np.eye(E)[np.arange(10) % E]  # (T, E)
    chosen = mg.tensor((np.arange(10)[:, None] + np.arange(K)) % E)
    assert layer.imbalance(mg.tensor(even), chosen).item() == pytest.approx(1)
    layer.active = 1
    assert layer.imbalance(mg.tensor(np.eye(E)[[0] * 10]), mg.tensor([[0]] * 10)).item() == pytest.approx(E)


def test_imbalances_are_collected_in_training_alone_by_the_innermost_list_and_by_each_thread_for_itself():
    layer, x = mixture(), positions(6, 4)
    with nn.imbalances() as outer:
        with nn.imbalances() as inner:
            layer(x)
        layer.eval()
        layer(x)
    assert (len(outer), len(inner)) == (0, 1)
    layer.train()

    def of(part):
        with nn.imbalances() as found:
            layer(part[0])
        return found

    pieces = thread_shards(layer, lambda net, batch: None, Shard((x,), 0, 6), 3)
    rows = forward_shards(of, pieces)
    assert [len(found) for found in rows] == [1] * len(pieces) and len(pieces) == 3
    joined = np.concatenate([found[0].numpy() for found in rows])
    np.testing.assert_allclose(joined, inner[0].numpy(), rtol=1e-13)


def test_a_gpt_with_experts_uses_them_more_evenly_if_that_is_in_its_loss():
    def unevenness(balance):
        mg.manual_seed(1)
        sizes = {"vocab": 20, "tokenizer": "char", "context": 12, "layers": 1, "heads": 2, "dim": 8, "experts": 4}
        model = mg.zoo.create("gpt", **sizes, balance=balance)
        spec = mg.zoo.list("gpt")[0].spec
        batch = spec.example(spec.config(**sizes))
        optimizer = mg.optim.AdamW(model.parameters(), lr=0.03)
        for _ in range(30):
            optimizer.zero_grad()
            amount, count = spec.loss(model, batch)["loss"]
            (amount / count).backward()
            optimizer.step()
        with nn.imbalances() as found:
            model(batch.inputs)
        return found[0].numpy().mean()

    assert unevenness(1.0) < 1.1 < unevenness(0.0)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ArgumentError, match="active from 1 to 3"):
        nn.MixtureOfExperts(4, 8, experts=3, active=4)
    with pytest.raises(ShapeError, match=r"\(…, T, C\)"):
        mixture()(np.ones(C))
    with pytest.raises(mg.MinigradError, match="active=3 is more than there are experts"):
        mg.zoo.create("gpt", experts=2, active=3)


def test_a_model_with_experts_is_refused_where_no_layout_has_them(tmp_path):
    sizes = {"vocab": 20, "tokenizer": "char", "context": 12, "layers": 1, "heads": 2, "dim": 8, "experts": 2}
    spec = mg.zoo.list("gpt")[0].spec
    loaded = mg.zoo.Loaded(spec, spec.config(**sizes), mg.zoo.create("gpt", **sizes), None, {}, 0, tmp_path)
    with pytest.raises(HubError, match="a mixture of experts has no layout"):
        layout_of(loaded)


def test_blocks_with_experts_are_profiled_as_others():
    sizes = {"vocab": 20, "tokenizer": "char", "context": 12, "layers": 3, "heads": 2, "dim": 8, "experts": 4}
    spec = mg.zoo.list("gpt")[0].spec
    costs, uses = profile_blocks(mg.zoo.create("gpt", **sizes), spec.loss, spec.example(spec.config(**sizes)))
    assert len(costs) == 3 and uses["tokens.weight"] == [0, 3]


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_it_is_mixtrals():
    import torch
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func

    config = MixtralConfig(hidden_size=C, intermediate_size=H, num_local_experts=E, num_experts_per_tok=K)
    config._experts_implementation = "eager"
    theirs, ours, x = MixtralSparseMoeBlock(config).double(), mixture(bias=False), positions(2, 7)
    with torch.no_grad():
        theirs.gate.weight.copy_(torch.tensor(ours.router.weight.numpy()))
        theirs.experts.gate_up_proj.copy_(torch.tensor(np.stack([e.up.weight.numpy() for e in ours.experts])))
        theirs.experts.down_proj.copy_(torch.tensor(np.stack([e.down.weight.numpy() for e in ours.experts])))
    given, mine = torch.tensor(x, requires_grad=True), mg.tensor(x, requires_grad=True)
    expected = theirs(given)
    with nn.imbalances() as uneven:
        made = ours(mine)
    np.testing.assert_allclose(made.numpy(), expected.detach().numpy(), rtol=0, atol=1e-7)  # its router is float32
    (expected**2).sum().backward()
    (made**2).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), given.grad.numpy(), rtol=0, atol=1e-7)
    np.testing.assert_allclose(ours.router.weight.grad.numpy(), theirs.gate.weight.grad.numpy(), rtol=0, atol=1e-7)
    for row in range(2):  # theirs counts an expert K times, and a whole batch at once
        logits = torch.tensor(x[row] @ ours.router.weight.numpy().T)
        assert load_balancing_loss_func((logits,), E, K).item() / K == pytest.approx(uneven[0].numpy()[row], rel=1e-6)
