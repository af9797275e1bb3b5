"""Pictures of people: what is read is what was drawn, and what is hostile or damaged is refused before anything large is allocated."""

from __future__ import annotations

import struct
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
from support.picture_files import idx, mnist, pictures

from minigrad.data import DataError
from minigrad.data.images import read_idx, read_image, read_labelled_images, resized
from minigrad.errors import MissingExtraError
from minigrad.viz.drawing.scene import png

rng = np.random.default_rng(0)


def test_a_picture_comes_back_as_it_was_written(tmp_path):
    pixels = rng.integers(0, 256, (5, 7, 3)).astype("u1")
    (tmp_path / "a.png").write_bytes(png(pixels))
    found = read_image(tmp_path / "a.png", color=True)
    np.testing.assert_allclose(found, np.moveaxis(pixels, -1, 0) / 255, atol=1e-7)
    gray = pixels @ [0.299, 0.587, 0.114] / 255
    np.testing.assert_allclose(read_image(tmp_path / "a.png")[0], gray, atol=1.5 / 255)


def test_a_picture_is_stretched_to_the_size_that_is_asked_for(tmp_path):
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:, 4:] = 255
    (tmp_path / "a.png").write_bytes(png(pixels))
    np.testing.assert_allclose(read_image(tmp_path / "a.png", (2, 4))[0], [[0, 0, 1, 1]] * 2)
    assert read_image(tmp_path / "a.png", (16, 12)).shape == (1, 16, 12)


def test_a_picture_that_claims_to_be_huge_is_refused_before_it_is_unpacked(tmp_path):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    tracemalloc.start()
    with pytest.raises(DataError, match="bomb.png"):
        read_image(tmp_path / "bomb.png")
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize("content", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_what_is_no_picture_is_refused_by_name(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.png cannot be read"):
        read_image(tmp_path / "a.png")


def test_without_pillow_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match="Pillow"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("dtype, code", [("u1", 8), ("i1", 9), (">i2", 11), (">i4", 12), (">f4", 13), (">f8", 14)])
def test_idx_files_of_every_dtype_are_read(tmp_path, dtype, code):
    array = (rng.standard_normal((3, 4, 2)) * 50).astype(dtype)
    (tmp_path / "a").write_bytes(idx(array, code))
    found = read_idx(tmp_path / "a")
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "no idx file"),
        (b"\0\0\x07\1\0\0\0\1a", "no idx file"),
        (b"\0\0\x08\3\0\0\0\1", "ends within its head"),
        (b"\0\0\x08\2\xff\xff\xff\xff\xff\xff\xff\xffabc", "not what its head says"),
        (idx(np.zeros(4, "u1")) + b"x", "not what its head says"),
    ],
)
def test_idx_files_that_are_not_what_they_claim_are_refused(tmp_path, content, words):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_idx(tmp_path / "a")


def test_a_folder_of_idx_files_has_its_own_test_images(tmp_path):
    found = read_labelled_images(mnist(tmp_path), (6, 6))
    assert found.images.shape == (40, 1, 6, 6) and found.test_images.shape == (20, 1, 6, 6)
    assert found.images.dtype == np.float32 and 0 <= found.images.min() <= found.images.max() <= 1
    assert found.classes == tuple("0123456789")
    halved, doubled = (read_labelled_images(tmp_path, (size, size)).images for size in (3, 12))
    np.testing.assert_allclose(halved, found.images.reshape(40, 1, 3, 2, 3, 2).mean((3, 5)), atol=1e-6)
    np.testing.assert_allclose(doubled, found.images.repeat(2, axis=2).repeat(2, axis=3), atol=1e-6)


def test_images_of_another_size_have_the_means_of_what_they_cover():
    """28 rows as 16 are the means of 28, where each row is there 16 times."""
    pixels = np.random.default_rng(0).random((2, 3, 28, 20))
    often = pixels.repeat(16, axis=2).repeat(7, axis=3)
    found = resized(pixels.astype("f4"), (16, 7))
    np.testing.assert_allclose(found, often.reshape(2, 3, 16, 28, 7, 20).mean((3, 5)), atol=1e-6)
    assert found.dtype == np.float32


def test_a_folder_has_a_class_for_each_sub_folder(tmp_path):
    found = read_labelled_images(pictures(tmp_path), (4, 4))
    assert found.classes == ("cat", "dog") and found.labels.tolist() == [0] * 6 + [1] * 6
    np.testing.assert_allclose(found.images.mean((1, 2, 3)), [40 / 255] * 6 + [140 / 255] * 6, atol=1e-6)
    assert found.test_images is None


def test_folders_that_hold_no_classes_are_refused(tmp_path):
    with pytest.raises(DataError, match="no classes"):
        read_labelled_images(tmp_path, (4, 4))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="no pictures"):
        read_labelled_images(tmp_path, (4, 4))
    with pytest.raises(DataError, match="no folder"):
        read_labelled_images(tmp_path / "none", (4, 4))
    with pytest.raises(DataError, match="too many"):
        read_labelled_images(pictures(tmp_path, ("c", "d")) and _without(tmp_path, "a", "b"), (4, 4), max_images=5)


def _without(folder, *names):
    for name in names:
        (folder / name).rmdir()
    return folder
