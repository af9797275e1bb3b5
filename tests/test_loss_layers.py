"""Losses, and layers of several inputs, as modules: PyTorch's results, gradients and state under the same options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.functional_oracle import normal, uniform

import minigrad as mg
from minigrad import nn

A, B, C = normal(3, 4), normal(3, 4, seed=1), normal(3, 4, seed=2)
SIGNS, LABELS, WEIGHT = np.array([1, -1, -1]), np.array([3, 0, 1]), uniform(4)
# name -> (arguments by name, inputs)
CASES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "MSELoss": ({"reduction": "sum"}, (A, B)),
    "L1Loss": ({}, (A, B)),
    "HuberLoss": ({"delta": 0.5}, (A, B)),
    "SmoothL1Loss": ({"beta": 0.5}, (A, B)),
    "CrossEntropyLoss": ({"weight": WEIGHT, "ignore_index": 3, "label_smoothing": 0.1}, (A, LABELS)),
    "NLLLoss": ({"weight": WEIGHT, "reduction": "none"}, (A, LABELS)),
    "BCELoss": ({"weight": WEIGHT}, (uniform(3, 4), uniform(3, 4, seed=1))),
    "BCEWithLogitsLoss": ({"pos_weight": WEIGHT}, (A, uniform(3, 4, seed=1))),
    "KLDivLoss": ({"reduction": "batchmean", "log_target": True}, (A, B)),
    "GaussianNLLLoss": ({"full": True}, (A, B, uniform(3, 4))),
    "PoissonNLLLoss": ({"log_input": False}, (uniform(3, 4), uniform(3, 4, seed=1))),
    "CTCLoss": ({"blank": 1}, (np.log(np.full((5, 2, 3), 1 / 3)), np.array([[0, 2], [2, 0]]), [5, 5], [2, 1])),
    "HingeEmbeddingLoss": ({"margin": 0.5}, (A[:, 0], SIGNS)),
    "SoftMarginLoss": ({"reduction": "sum"}, (A[:, 0], SIGNS)),
    "MarginRankingLoss": ({"margin": 0.5}, (A[:, 0], B[:, 0], SIGNS)),
    "CosineEmbeddingLoss": ({"margin": -0.5}, (A, B, SIGNS)),
    "TripletMarginLoss": ({"p": 1.0, "swap": True}, (A, B, C)),
    "TripletMarginWithDistanceLoss": ({"margin": 2.0}, (A, B, C)),
    "MultiMarginLoss": ({"p": 2, "weight": WEIGHT}, (A, LABELS)),
    "MultiLabelMarginLoss": ({}, (A, np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, -1]]))),
    "MultiLabelSoftMarginLoss": ({"weight": WEIGHT}, (A, uniform(3, 4))),
    "Bilinear": ({"in1_features": 4, "in2_features": 4, "out_features": 2}, (A, B)),
    "CosineSimilarity": ({"axis": 0}, (A, B)),
    "PairwiseDistance": ({"p": 3.0, "keepdims": True}, (A, B)),
}
TORCH_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def test_every_loss_has_a_case():
    losses = {name for name in nn.__all__ if name.endswith("Loss")}
    assert losses == {name for name in CASES if name.endswith("Loss")}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_a_module_gives_pytorchs_results_gradients_and_state(name: str, device: str):
    import torch

    options, inputs = CASES[name]
    ours = getattr(nn, name)(**options).to("float64").to(device)
    theirs_options = {
        TORCH_NAMES.get(k, k): torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()
    }
    theirs = getattr(torch.nn, name)(**theirs_options).double()
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    given = [mg.tensor(x, device=device) for x in inputs]
    expected_given = [torch.tensor(x) for x in inputs]
    given[0].requires_grad_()
    expected_given[0].requires_grad_()
    if name == "CTCLoss":  # PyTorch's gradient is right behind log_softmax only
        out, expected = (
            ours(given[0].log_softmax(axis=2), *given[1:]),
            theirs(expected_given[0].log_softmax(2), *expected_given[1:]),
        )
    else:
        out, expected = ours(*given), theirs(*expected_given)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-9)
    out.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(given[0].grad.numpy(), expected_given[0].grad.numpy(), rtol=1e-7, atol=1e-10)


def test_a_loss_shows_its_options_and_keeps_its_weights_in_its_state():
    loss = nn.CrossEntropyLoss(mg.ones(3), label_smoothing=0.1)
    assert repr(loss) == "CrossEntropyLoss(ignore_index=-100, reduction='mean', label_smoothing=0.1)"
    assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())


def test_a_bag_takes_offsets_and_weights(device: str):
    bags = nn.EmbeddingBag(5, 2, mode="sum", include_last_offset=True, device=device)
    rows, shares = mg.tensor([0, 4, 4], device=device), mg.tensor([1.0, 2.0, 3.0], device=device)
    out = bags(rows, mg.tensor([0, 1, 3], device=device), shares).numpy()
    table = bags.weight.numpy()
    np.testing.assert_allclose(out, [table[0], 5 * table[4]], rtol=1e-6)


def test_instance_norm_takes_one_example_without_a_batch():
    x = mg.tensor(normal(3, 5))
    layer = nn.InstanceNorm1d(3)
    np.testing.assert_array_equal(layer(x).numpy(), layer(x[None]).numpy()[0])
    with pytest.raises(mg.errors.ShapeError, match=r"\(N, 3, L\) or \(3, L\)"):
        layer(mg.ones(2, 4))
