"""Functions of SciPy and scikit-learn that are written for the array API standard: on Tensors, and differentiated."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.check import gradcheck
from minigrad.errors import GradientError

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: pip install -e '.[test]'")
scipy = pytest.importorskip(
    "scipy", "1.16", reason="needs SciPy 1.16, for Python 3.11 or later: pip install -e '.[test]'"
)
sklearn = pytest.importorskip(
    "sklearn", "1.8", reason="needs scikit-learn 1.8, for Python 3.11: pip install -e '.[test]'"
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(os.environ.get("SCIPY_ARRAY_API") != "1", reason="SciPy dispatches only with SCIPY_ARRAY_API=1"),
]

from scipy import cluster, differentiate, fft, integrate, ndimage, signal, special, stats  # noqa: E402
from scipy.optimize import elementwise, rosen  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402
from sklearn import decomposition, linear_model, metrics, preprocessing  # noqa: E402
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.mixture import GaussianMixture  # noqa: E402

DATA = np.random.default_rng(0).normal(size=(6, 3))
TARGET = DATA @ np.array([1.0, -2.0, 0.5])
CLASSES = (DATA[:, 0] > 0).astype("int64")

DIFFERENTIATED: dict[str, Callable[[Any], Any]] = {
    "special.logsumexp": lambda x: special.logsumexp(x, axis=1),
    "special.log_softmax": lambda x: special.log_softmax(x, axis=1),
    "special.softmax": lambda x: special.softmax(x, axis=1),
    "special.xlogy": lambda x: special.xlogy(x * x, x * x),
    "stats.skew": lambda x: stats.skew(x),
    "stats.kurtosis": lambda x: stats.kurtosis(x, bias=False),
    "stats.zscore": lambda x: stats.zscore(x),
    "stats.gmean": lambda x: stats.gmean(x * x + 1),
    "stats.variation": lambda x: stats.variation(x),
    "stats.circvar": lambda x: stats.circvar(x),
    "stats.describe": lambda x: stats.describe(x).variance,
    "stats.lmoment": lambda x: stats.lmoment(x, 2),
    "integrate.trapezoid": lambda x: integrate.trapezoid(x, axis=0),
    "integrate.cumulative_simpson": lambda x: integrate.cumulative_simpson(x, dx=0.5, axis=0),
    "optimize.rosen": lambda x: rosen(x),
    "spatial.transform.Rotation": lambda x: Rotation.from_rotvec(x).as_matrix(),
    "metrics.pairwise.euclidean_distances": lambda x: metrics.pairwise.euclidean_distances(x[:2], x[2:]),
    "metrics.pairwise.rbf_kernel": lambda x: metrics.pairwise.rbf_kernel(x[:2], x[2:]),
    "metrics.pairwise.polynomial_kernel": lambda x: metrics.pairwise.polynomial_kernel(x[:2], x[2:], degree=2),
    "preprocessing.MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x),
}


# Each gets tensors and NumPy's arrays, and gives arrays of the same kind, or a number.
COMPUTED: dict[str, Callable[..., Any]] = {
    "special.erf": lambda x, y, c: special.erf(x),
    "stats.pearsonr": lambda x, y, c: stats.pearsonr(x[:, 0], y).pvalue,
    "stats.ttest_1samp": lambda x, y, c: stats.ttest_1samp(x, 0.0).pvalue,
    "signal.detrend": lambda x, y, c: signal.detrend(x, axis=0),
    "signal.hilbert": lambda x, y, c: signal.hilbert(x, axis=0),
    "fft.rfft": lambda x, y, c: fft.rfft(x),
    "fft.dct": lambda x, y, c: fft.dct(x),
    "ndimage.gaussian_filter": lambda x, y, c: ndimage.gaussian_filter(x, 1.0),
    "differentiate.derivative": lambda x, y, c: differentiate.derivative(lambda s: s**3, x).df,
    "optimize.elementwise.find_root": lambda x, y, c: elementwise.find_root(lambda s: s**3 - 2, (x * 0, x * 0 + 3)).x,
    "cluster.vq.whiten": lambda x, y, c: cluster.vq.whiten(x),
    "cluster.hierarchy.linkage": lambda x, y, c: cluster.hierarchy.linkage(x),
    "metrics.mean_squared_error": lambda x, y, c: metrics.mean_squared_error(y, y * 1.5),
    "metrics.r2_score": lambda x, y, c: metrics.r2_score(y, y * 1.5),
    "metrics.accuracy_score": lambda x, y, c: metrics.accuracy_score(c, 1 - c),
    "metrics.confusion_matrix": lambda x, y, c: metrics.confusion_matrix(c, c),
    "preprocessing.PolynomialFeatures": lambda x, y, c: preprocessing.PolynomialFeatures(2).fit_transform(x),
    "metrics.pairwise.cosine_similarity": lambda x, y, c: metrics.pairwise.cosine_similarity(x[:2], x[2:]),
    "preprocessing.StandardScaler": lambda x, y, c: preprocessing.StandardScaler().fit_transform(x),
    "preprocessing.Normalizer": lambda x, y, c: preprocessing.Normalizer().fit_transform(x),
    "preprocessing.MinMaxScaler": lambda x, y, c: preprocessing.MinMaxScaler().fit_transform(x),
    "preprocessing.LabelEncoder": lambda x, y, c: preprocessing.LabelEncoder().fit_transform(c),
    "decomposition.PCA": lambda x, y, c: decomposition.PCA(2, svd_solver="full").fit_transform(x),
    "linear_model.Ridge": lambda x, y, c: linear_model.Ridge(solver="svd").fit(x, y).coef_,
    "LinearDiscriminantAnalysis": lambda x, y, c: LinearDiscriminantAnalysis().fit(x, c).predict(x),
    "GaussianMixture": lambda x, y, c: GaussianMixture(1, init_params="random", random_state=0).fit(x).means_,
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_a_function_of_another_library_is_differentiated(name: str) -> None:
    function = DIFFERENTIATED[name]
    with sklearn.config_context(array_api_dispatch=True):
        x = mg.tensor(DATA, requires_grad=True)
        result = function(x)
        np.testing.assert_allclose(result.numpy(), np.asarray(function(DATA)), rtol=1e-6, atol=1e-12)
        gradcheck(function, x)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_function_of_another_library_computes_with_tensors(name: str) -> None:
    function = COMPUTED[name]
    with sklearn.config_context(array_api_dispatch=True):
        result = function(mg.tensor(DATA), mg.tensor(TARGET), mg.tensor(CLASSES))
    expected = function(DATA, TARGET, CLASSES)
    assert isinstance(result, (mg.Tensor, float))
    values = result.numpy() if isinstance(result, mg.Tensor) else result
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-12)


def test_a_function_that_leaves_for_numpy_is_refused_instead_of_cutting_the_graph():
    with pytest.raises(GradientError, match="silently cut the graph"):
        special.erf(mg.ones(2, requires_grad=True))
