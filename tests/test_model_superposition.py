"""Superposition: what the toy model stores at which density, and that the autoencoder's finds are no accident."""

import numpy as np
import pytest
from minigrad_models.superposition import SuperpositionConfig, features, loss
from minigrad_models.superposition.model import SparseAutoencoder, Toy

import minigrad as mg
from minigrad import zoo
from minigrad.errors import ArgumentError

SMALLER = {"features": 16, "dims": 5, "density": 0.05, "latents": 32, "batch": 256, "steps": 800, "sae_steps": 1000}


@pytest.fixture(scope="module", params=[0, 1])
def sparse(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("sparse") / "run"
    zoo.train("superposition", out, seed=request.param, progress=False, **SMALLER)
    return zoo.load(out)


@pytest.fixture(scope="module")
def found(sparse):
    return sparse.evaluate()


@pytest.mark.parametrize("seed", [0, 1])
def test_features_that_are_always_there_are_stored_one_in_a_dimension(seed, tmp_path):
    """With a decay of 0.8 it is decided early which of them matter most."""
    dense = {**SMALLER, "density": 1.0, "decay": 0.8, "sae_steps": 10}
    zoo.train("superposition", tmp_path / "run", seed=seed, progress=False, **dense)
    loaded = zoo.load(tmp_path / "run")
    found = loaded.evaluate()
    stored = features.lengths(loaded.directions()) >= features.STORED
    assert np.flatnonzero(stored).tolist() == [0, 1, 2, 3, 4]  # those that matter most
    assert found["interference"] < 0.15
    # No linear model does better than to keep these and to answer the mean for the others.
    assert found["loss"] == pytest.approx(found["loss_of_one_feature_per_dimension"], rel=0.1)


def test_sparse_features_are_stored_in_fewer_dimensions_than_there_are_of_them(sparse, found):
    assert found["stored"] >= 2 * sparse.config.dims
    assert found["interference"] > 0.5
    assert found["loss"] < 0.7 * found["loss_of_one_feature_per_dimension"]


def test_the_autoencoder_finds_what_is_stored_and_other_directions_do_not(sparse, found):
    assert found["found_by_autoencoder"] >= 0.8 * found["stored"]
    assert found["found_by_autoencoder"] >= 2 * max(found["found_by_pca"], found["found_at_random"])
    others = np.random.default_rng(99).standard_normal((200, sparse.config.dims))  # features of no model
    by_accident = features.cosines(others, sparse.autoencoder().directions().numpy()) >= features.FOUND
    assert by_accident.mean() < 0.5


def test_the_autoencoder_is_the_same_each_time_and_disturbs_no_random_numbers():
    config = SuperpositionConfig(features=4, dims=2, latents=6, batch=8, sae_steps=5)
    W = np.eye(4, 2, dtype="float32")
    mg.manual_seed(5)
    expected = mg.rand(3).tolist()
    mg.manual_seed(5)
    first, second, other = (features.autoencoder(W, config, seed).decoder.numpy() for seed in (1, 1, 2))
    assert mg.rand(3).tolist() == expected
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_the_measures_agree_with_their_definitions_written_out():
    W = np.random.default_rng(0).standard_normal((5, 3))
    for i in range(5):
        expected = sum((W[i] @ W[j] / np.sqrt(W[i] @ W[i])) ** 2 for j in range(5) if j != i)
        assert features.interference(W)[i] == pytest.approx(expected)
    assert features.interference(np.eye(4)).tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(features.cosines(W, 3 * W[::-1]), 1)
    assert features.cosines(np.eye(3), -np.eye(3)).max() <= 0  # the opposite direction is not found
    assert features.found_at_random(np.eye(2), 1000) == 2 and features.found_at_random(np.eye(50), 10) == 0


def test_as_many_features_are_there_as_the_density_says():
    rows = features.SparseFeatures(20, 0.25, 5000, seed=3)
    (x,) = rows.batch(0, 0)
    assert x.min() >= 0 and x.max() <= 1 and (x > 0).mean() == pytest.approx(0.25, abs=0.01)
    assert x[x > 0].mean() == pytest.approx(0.5, abs=0.01)
    np.testing.assert_array_equal(x, rows.batch(0, 0)[0])
    assert not np.array_equal(x, rows.batch(0, 1)[0]) and not np.array_equal(x, rows.batch(1, 0)[0])


def test_the_loss_is_the_formula_and_the_autoencoders_directions_have_length_one():
    with mg.no_grad():
        model = Toy(4, 2, 0.5)
        model.W[...] = mg.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.5, 0.5]])
        model.b[...] = mg.tensor([0.0, 0.1, 0.2, -0.3])
    x = np.array([[1.0, 0.0, 0.5, 0.0]], "float32")
    W, b = model.W.numpy(), model.b.numpy()
    expected = ((0.5 ** np.arange(4)) * (x - np.maximum(x @ W @ W.T + b, 0)) ** 2).sum()
    total, rows = loss(model, (x,))["loss"]
    assert total.item() == pytest.approx(expected, rel=1e-5) and rows == 1
    sae = SparseAutoencoder(np.random.default_rng(0).standard_normal((6, 2)).astype("float32"))
    code, again = sae(mg.tensor(x @ W))
    assert (code.numpy() >= 0).all() and again.shape == (1, 2)
    np.testing.assert_allclose(np.linalg.norm(sae.directions().numpy(), axis=1), 1, rtol=1e-5)


def test_predict_tells_which_features_come_back(sparse):
    config = sparse.config
    right = 0
    for feature in range(config.dims):
        (answer,) = sparse.predict(str(feature))
        right += max(answer["features"], key=answer["features"].get) == str(feature)
        assert len(answer["hidden"]) == config.dims
    assert right == config.dims
    for text in ("", "x", "99", "3=2", "-1"):
        with pytest.raises(ArgumentError, match="numbers from 0 to 15"):
            sparse.predict(text)


def test_the_table_shows_every_direction(sparse):
    lines = sparse.table().splitlines()
    assert len(lines) == 1 + sparse.config.features
    shown = [float(number) for number in lines[3].split()[4:]]
    np.testing.assert_allclose(shown, sparse.directions()[2], atol=0.006)


def test_settings_that_cannot_be_are_refused():
    for wrong in ({"density": 0.0}, {"density": 1.5}, {"decay": -1.0}):
        with pytest.raises(ArgumentError, match=f"superposition: {next(iter(wrong))}"):
            SuperpositionConfig(**wrong)


def test_training_ends_with_what_was_stored_and_found(tmp_path, capsys):
    zoo.train("superposition", tmp_path / "run", **zoo.find("superposition").tiny)
    printed = "".join(capsys.readouterr())
    assert "of 6 features in 2 dimensions" in printed and "by a sparse autoencoder" in printed
