"""Fourier transforms: values as NumPy's, derivatives of real signals to second order, PyTorch's gradients, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.check import gradcheck

X = np.random.default_rng(0).normal(size=(3, 6, 5))
Z = X + 1j * np.random.default_rng(1).normal(size=X.shape)
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
NORMS = (None, "ortho", "forward")


def same(ours: Any, theirs: np.ndarray) -> None:
    assert ours.numpy().dtype == theirs.dtype
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_an_axis_give_numpys_values(name: str, norm: Any) -> None:
    given = X if name in OF_REAL else Z
    for n in (None, 4, 5, 8):
        for axis in (-1, 1):
            expected = getattr(np.fft, name)(given, n, axis, norm)
            same(getattr(mg.fft, name)(mg.tensor(given), n, axis, norm), expected)
    if name in OF_REAL:
        same(getattr(mg.fft, name)(mg.tensor(X, requires_grad=True), norm=norm), getattr(np.fft, name)(X, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_transforms_along_several_axes_give_numpys_values(name: str, norm: Any) -> None:
    given = X if name in OF_REAL else Z
    same(getattr(mg.fft, name)(mg.tensor(given), norm=norm), getattr(np.fft, name)(given, norm=norm))
    same(
        getattr(mg.fft, name)(mg.tensor(given), (4, 7), (0, 1), norm),
        getattr(np.fft, name)(given, (4, 7), (0, 1), norm),
    )


def test_frequencies_and_shifts_are_numpys() -> None:
    for n in (5, 6):
        same(mg.fft.fftfreq(n, 0.1, dtype="float64"), np.fft.fftfreq(n, 0.1))
        same(mg.fft.rfftfreq(n, dtype="float64"), np.fft.rfftfreq(n))
    assert mg.fft.fftfreq(4).dtype == np.float32
    same(mg.fft.fftshift(X), np.fft.fftshift(X))
    same(mg.fft.ifftshift(Z, axes=(0, 1)), np.fft.ifftshift(Z, axes=(0, 1)))
    same(mg.fft.fftshift(mg.fft.fft(mg.tensor(X, requires_grad=True))), np.fft.fftshift(np.fft.fft(X)))


def test_float32_gives_complex64() -> None:
    assert mg.fft.rfft(mg.tensor(X, dtype="float32")).dtype == np.complex64
    assert mg.fft.irfft(mg.fft.rfft(mg.tensor(X, dtype="float32"))).dtype == np.float32


THROUGH = {
    "power spectrum": lambda x: mg.fft.rfft(x).real ** 2 + mg.fft.rfft(x).imag ** 2,
    "angles": lambda x: mg.fft.fft(x).angle()[..., 1:],
    "filter": lambda x: mg.fft.irfft(mg.fft.rfft(x) * np.array([1.0, 0.5j, 0.25]), 5),
    "convolution": lambda x: mg.fft.irfft(mg.fft.rfft(x, 8) * mg.fft.rfft(x[::-1], 8), 8),
    "two axes": lambda x: mg.fft.irfftn(mg.fft.rfftn(x, norm="forward") * (1 + 2j), norm="ortho"),
    "there and back": lambda x: mg.fft.ifft(mg.fft.fftshift(mg.fft.fft(x, axis=0)).conj()).real,
    "Hermitian": lambda x: mg.fft.hfft(mg.fft.ihfft(x) * 2, 5),
}


@pytest.mark.parametrize("name", THROUGH)
def test_derivatives_pass_through_spectra_to_second_order(name: str) -> None:
    assert gradcheck(THROUGH[name], [mg.tensor(X[:2, 0, :] + 0.3)])


@pytest.mark.torch
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_gradients_of_real_signals_are_pytorchs(norm: str) -> None:
    torch = pytest.importorskip("torch")
    for n in (None, 4, 9):
        ours, theirs = mg.tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
        weight = 1 / (1 + np.arange(n or 6))[:, None]
        filtered = mg.fft.irfft(mg.fft.rfft(ours, n, 1, norm) * (0.5 + 2j), n or 6, 1, norm)
        (filtered**2 * weight).sum().backward()
        expected = torch.fft.irfft(torch.fft.rfft(theirs, n, 1, norm) * (0.5 + 2j), n or 6, 1, norm)
        (expected**2 * torch.tensor(weight)).sum().backward()
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-12)


SIZES = {
    "size": lambda x, fft: abs(fft.rfft(x, 7, norm="ortho")),
    "quotient": lambda x, fft: fft.irfft((2 - fft.rfft(x)) / (fft.rfft(x) + 9j), 4),
    "reciprocal": lambda x, fft: (1 / (fft.rfft(x) + 8)).imag,
    "by a real number": lambda x, fft: abs(fft.rfft(x) / 3 - 1),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", SIZES)
def test_first_and_second_derivatives_of_sizes_and_quotients_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = mg.tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
    (first,) = mg.autograd.grad((SIZES[name](ours, mg.fft) ** 2).sum(), ours, create_graph=True)
    (expected,) = torch.autograd.grad((SIZES[name](theirs, torch.fft) ** 2).sum(), theirs, create_graph=True)
    np.testing.assert_allclose(first.numpy(), expected.detach().numpy(), atol=1e-12)
    second = mg.autograd.grad((first**3).sum(), ours)[0]
    np.testing.assert_allclose(second.numpy(), torch.autograd.grad((expected**3).sum(), theirs)[0].numpy(), atol=1e-12)


def test_the_gradient_of_a_size_of_0_is_0_as_pytorchs() -> None:
    x = mg.zeros(4, requires_grad=True)
    abs(mg.fft.rfft(x)).sum().backward()
    assert x.grad.tolist() == [0.0] * 4


def test_a_transform_on_the_device_agrees_with_the_cpu() -> None:
    pytest.importorskip("support.fake_device")
    x = mg.tensor(X, device="fake", requires_grad=True)
    result = mg.fft.irfft(mg.fft.rfft(x, 8) * 2j, 8)
    result.sum().backward()
    assert "fake" in result.device and "fake" in x.grad.device
    np.testing.assert_allclose(result.detach().numpy(), np.fft.irfft(np.fft.rfft(X, 8) * 2j, 8), atol=1e-12)
    assert "fake" in mg.fft.rfft(x.detach()).device


def test_a_spectrum_says_what_it_is_and_what_cannot_be_done_with_it() -> None:
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    spectrum = mg.fft.rfft(x)
    assert repr(spectrum).startswith("Spectrum(tensor([") and spectrum.shape == (2,) and spectrum.real.requires_grad
    assert isinstance(spectrum.detach(), mg.Tensor) and isinstance(mg.fft.rfft(x.detach()), mg.Tensor)
    with mg.no_grad():
        assert isinstance(mg.fft.rfft(x), mg.Tensor)
    with pytest.raises(mg.errors.GradientError, match="on the left"):
        mg.ones(2) * spectrum
    with pytest.raises(mg.errors.DtypeError, match="use fft"):
        mg.fft.rfft(spectrum)
    with pytest.raises(mg.errors.ArgumentError, match="n from 1 up"):
        mg.fft.rfft(x, 0)
    with pytest.raises(mg.errors.ArgumentError, match="'backward', 'ortho' or 'forward'"):
        mg.fft.fft(x, norm="other")
    with pytest.raises(mg.errors.AxisError):
        mg.fft.irfft(x, axis=2)


SHORT = {
    "as it is": (16, {}),
    "hop and window": (16, {"hop_length": 5, "window": np.hanning(16)}),
    "a window in the middle": (15, {"hop_length": 4, "window": np.hanning(8), "win_length": 8}),
    "narrow": (16, {"win_length": 10, "pad_mode": "constant"}),
    "from the start": (12, {"center": False, "hop_length": 3}),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", SHORT)
def test_short_transforms_and_their_first_and_second_derivatives_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    n_fft, options = SHORT[name]
    signal = np.random.default_rng(2).normal(size=(2, 61))
    ours, theirs = mg.tensor(signal, requires_grad=True), torch.tensor(signal, requires_grad=True)
    given = options | ({"window": torch.tensor(options["window"])} if "window" in options else {})
    given.setdefault("window", torch.ones(options.get("win_length", n_fft), dtype=torch.float64))
    expected = torch.stft(theirs, n_fft, return_complex=True, **given)
    result = mg.fft.stft(ours, n_fft, **options)
    np.testing.assert_allclose(result.numpy(), expected.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(mg.fft.stft(signal, n_fft, **options).numpy(), expected.detach().numpy(), atol=1e-12)
    power, theirs_power = result.real**2 + result.imag**2, expected.real**2 + expected.imag**2
    (first,) = mg.autograd.grad((power**2).sum(), ours, create_graph=True)
    (wanted,) = torch.autograd.grad((theirs_power**2).sum(), theirs, create_graph=True)
    np.testing.assert_allclose(first.numpy(), wanted.detach().numpy(), rtol=1e-10, atol=1e-8)
    second = mg.autograd.grad((first**2).sum(), ours)[0].numpy()
    np.testing.assert_allclose(second, torch.autograd.grad((wanted**2).sum(), theirs)[0].numpy(), rtol=1e-9, atol=1e-6)


def test_short_transforms_are_those_of_the_pieces() -> None:
    signal, window = np.random.default_rng(3).normal(size=50), np.hanning(8)
    found = mg.fft.stft(signal, 8, 3, window=window, center=False).numpy()
    for i in range(found.shape[1]):
        np.testing.assert_allclose(found[:, i], np.fft.rfft(signal[3 * i : 3 * i + 8] * window), atol=1e-12)
    assert found.shape == (5, (50 - 8) // 3 + 1)


def test_derivatives_of_short_transforms_are_finite_differences() -> None:
    assert gradcheck(lambda x: mg.fft.stft(x, 6, 2, window=np.hanning(6)).imag ** 2, [mg.tensor(X[0, :, 0] + 0.3)])


@pytest.mark.parametrize(
    "options",
    [{"n_fft": 0}, {"n_fft": 8, "hop_length": 0}, {"n_fft": 8, "window": np.ones(9)}, {"n_fft": 8.0},
     {"n_fft": 8, "window": np.ones(4), "win_length": 5}, {"n_fft": 99, "center": False}],
)  # fmt: skip
def test_sizes_of_short_transforms_that_do_not_fit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(mg.errors.ArgumentError, match="stft"):
        mg.fft.stft(np.ones(20), **options)
