"""Models in Hugging Face's layout: transformers loads them without code of ours, and they come back as they were."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import test_hub_decoders as decoders
import test_hub_encoder_decoders as encoder_decoders
import test_hub_encoders as encoders
from support.transformers_models import logits, saved, torch, transformers

import minigrad as mg
from minigrad import hub, zoo
from minigrad.data import BPETokenizer, CharTokenizer, WordTokenizer, normalise
from minigrad.hub import HubError
from minigrad.hub.gguf_writing import export_gguf
from minigrad.hub.writing import export_transformers
from minigrad.tokenizers import PretrainedTokenizer
from minigrad.tokenizers.description import description_of
from minigrad.zoo.config import configure
from minigrad.zoo.loaded import Loaded

pytestmark = pytest.mark.transformers
RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
LLAMA = {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False, "hidden": 20}
SENTENCES = [
    "You are welcome",
    "Where is the library?",
    "I don't see the red car",
    "She has two brothers",
    "Thank you!",
]


def fresh(name, tokenizer=None, **settings):
    """A model of the zoo that nobody trained, with random biases and norms, too."""
    spec = zoo.find(name)
    config = configure(spec, None, {**spec.tiny, **settings})
    mg.manual_seed(0)
    model = spec.build(config)
    model.eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * np.random.default_rng(parameter.size).standard_normal(parameter.shape).astype("float32")
    return Loaded(spec, config, model, tokenizer, {"data": None, "config": vars(config)}, 0, Path("."))


def gpt(**settings):
    return fresh("gpt", **{"layers": 2, "heads": 4, "dim": 16, "context": 12, **settings})


PEGASUS = {
    "vocab_size": 50, "d_model": 24, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 3,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 30, "max_position_embeddings": 40,
    "forced_eos_token_id": None,
}  # fmt: skip
IMPORTED = {
    **{name: decoders.CASES[name] for name in (
        "gpt2, other sizes", "llama 3, scaled positions", "qwen2, tied, a window from the second layer on", "gemma2", "neox"
    )},
    **{name: encoders.CASES[name] for name in ("roberta, classes", "roberta, tags", "distilbert", "distilbert, classes", "esm", "esm, tags")},
    "esm, classes": lambda: encoders.esm("ForSequenceClassification", num_labels=3),
    "bert, pretraining": lambda: encoders.bert("ForPreTraining"),
    "bert, answers": lambda: encoders.bert("ForQuestionAnswering"),
    **{name: encoder_decoders.CASES[name] for name in ("marian, two vocabularies", "bart, a first token", "t5", "t5 1.1")},
}  # fmt: skip


@pytest.mark.parametrize("name", IMPORTED)
def test_an_imported_model_goes_back_as_it_came(name, tmp_path):
    kind, config = IMPORTED[name]()
    saved(tmp_path / "first", kind, config)
    loaded = hub.load(tmp_path / "first", dtype="float32")
    export_transformers(loaded, tmp_path / "second")
    one, two = (getattr(transformers, kind).from_pretrained(tmp_path / part).eval() for part in ("first", "second"))
    given = {"input_ids": torch.tensor(np.random.default_rng(0).integers(5, 44, (3, 9)))}
    if config.is_encoder_decoder:
        given["decoder_input_ids"] = given["input_ids"][:, :5]
    with torch.no_grad():
        for expected, got in zip(one(**given).to_tuple(), two(**given).to_tuple()):
            if isinstance(expected, torch.Tensor):
                np.testing.assert_allclose(got, expected, **CLOSE)
    again = hub.load(tmp_path / "second").model.state_dict()
    for part, tensor in loaded.model.state_dict().items():
        np.testing.assert_array_equal(again[part].numpy(), tensor.numpy())


def test_pegasus_is_a_translator_with_norms_first(tmp_path):
    saved(tmp_path, "PegasusForConditionalGeneration", transformers.PegasusConfig(**PEGASUS))
    model = transformers.PegasusForConditionalGeneration.from_pretrained(tmp_path).eval()
    for part in (model.model.encoder, model.model.decoder):  # random in the file, as all that it has
        part.embed_positions.weight.data = part.embed_positions.create_weight()
    source, target = np.random.default_rng(0).integers(5, 44, (2, 3, 9))
    with torch.no_grad(), mg.no_grad():
        expected = model(input_ids=torch.tensor(source), decoder_input_ids=torch.tensor(target)).logits
        np.testing.assert_allclose(hub.load(tmp_path).model(source, target).numpy(), expected, **CLOSE)


@pytest.mark.parametrize(("settings", "kind"), [
    ({}, "GPT2LMHeadModel"),
    ({"tied": False, "activation": "relu", "hidden": 24, "eps": 1e-3}, "GPT2LMHeadModel"),
    (LLAMA, "LlamaForCausalLM"),
    ({**LLAMA, "block": {"kv_heads": 2, "qk_norm": "rms"}, "rotary": {"base": 500.0}}, "Qwen3ForCausalLM"),
    ({"positions": "rotary"}, "GPTNeoXForCausalLM"),
    ({"positions": "rotary", "rotary": {"rotary_dim": 2}, "block": {"parallel": True}}, "GPTNeoXForCausalLM"),
])  # fmt: skip
def test_a_gpt_finds_the_class_of_its_parts(settings, kind, tmp_path):
    loaded = gpt(**settings)
    model = transformers.AutoModelForCausalLM.from_pretrained(export_transformers(loaded, tmp_path / "out")).eval()
    ids = np.random.default_rng(0).integers(0, len(loaded.model.tokens.weight), (3, 12))
    assert type(model).__name__ == kind
    with mg.no_grad():
        np.testing.assert_allclose(logits(model, ids), loaded.model(ids).numpy(), **CLOSE)
    np.testing.assert_allclose(hub.load(tmp_path / "out").logits(ids), logits(model, ids), **CLOSE)


@pytest.mark.parametrize("task", ["pretrain", "classify", "tag", "fill"])
def test_a_bert_with_norms_last_and_learned_positions_is_a_bert(task, tmp_path):
    classes = ("one", "two", "three") if task in ("classify", "tag") else ()
    words = WordTokenizer.train("Ana had a red kite . Then Ben helped her .")
    loaded = fresh(
        "bert",
        words,
        task=task,
        classes=classes,
        norm="post",
        positions="learned",
        pool="first",
        vocab=words.vocab_size,
    )
    folder = export_transformers(loaded, tmp_path / "out")
    text = transformers.AutoTokenizer.from_pretrained(folder)(
        "Ana had a kite.", "Then Ben helped.", return_tensors="pt"
    )
    kind = {
        "pretrain": "PreTraining",
        "classify": "SequenceClassification",
        "tag": "TokenClassification",
        "fill": "MaskedLM",
    }
    model = getattr(transformers, f"AutoModelFor{kind[task]}").from_pretrained(folder).eval()
    ids, types = (text[name].numpy() for name in ("input_ids", "token_type_ids"))
    with torch.no_grad(), mg.no_grad():
        np.testing.assert_allclose(model(**text)[0].numpy(), loaded.model.logits(ids, ids != 0, types).numpy(), **CLOSE)
    assert ids.tolist() == [[
        1, *words.encode("Ana had a kite."), 2, *words.encode("Then Ben helped."), 2
    ]]  # fmt: skip


def test_the_bert_of_the_tutorial_fills_blanks_of_one_text_as_an_esm(tmp_path):
    loaded = zoo.load(RUNS / "bert")
    with pytest.warns(UserWarning, match="EsmForMaskedLM, which has no place for a second text, nor for whether it"):
        folder = export_transformers(loaded, tmp_path / "out")
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    texts = ["The <mask> was hungry.", "Ana lost her <mask> in the park."]
    given = transformers.AutoTokenizer.from_pretrained(folder)(texts, return_tensors="pt", padding=True)
    ids, there = given["input_ids"].numpy(), given["attention_mask"].numpy().astype(bool)
    with torch.no_grad(), mg.no_grad():
        expected = loaded.model.logits(ids, there).numpy()
        np.testing.assert_allclose(model(**given).logits.numpy()[there], expected[there], **CLOSE)
    words = [list(answer["<mask>"]) for answer in loaded.predict(*texts)]
    best = [expected[i, list(row).index(4)].argmax() for i, row in enumerate(ids)]
    assert [loaded.tokenizer.decode([token]) for token in best] == [row[0] for row in words]


@pytest.mark.parametrize("task", ["fill", "tag", "embed"])
def test_a_bert_of_one_text_comes_back_from_an_esm(task, tmp_path):
    classes = ("one", "two", "three") if task == "tag" else ()
    loaded = fresh("bert", task=task, classes=classes, types=0)
    again = hub.load(export_transformers(loaded, tmp_path / "out"))
    ids = np.random.default_rng(0).integers(5, 40, (3, 9))
    with mg.no_grad():
        np.testing.assert_allclose(again.model(ids).numpy(), loaded.model(ids).numpy(), **CLOSE)
        if task != "embed":
            np.testing.assert_allclose(again.model.logits(ids).numpy(), loaded.model.logits(ids).numpy(), **CLOSE)


def test_the_translator_of_the_demo_translates_in_transformers(tmp_path):
    loaded = zoo.load(RUNS / "translator")
    folder = export_transformers(loaded, tmp_path / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([normalise(text) for text in SENTENCES], return_tensors="pt", padding=True)
    given = {name: batch[name] for name in ("input_ids", "attention_mask")}
    target = np.random.default_rng(0).integers(5, 500, (len(SENTENCES), 6))
    with torch.no_grad(), mg.no_grad():
        theirs = model(**given, decoder_input_ids=torch.tensor(target)).logits.numpy()
        np.testing.assert_allclose(theirs, loaded.model(given["input_ids"].numpy(), target).numpy(), **CLOSE)
    said = tokenizer.batch_decode(model.generate(**given, num_beams=1, max_length=40), skip_special_tokens=True)
    assert said == [found.text for found in loaded.translate(SENTENCES, beams=1)]
    again = hub.load(folder).translate([normalise(text) for text in SENTENCES], beams=1)
    assert [found.text for found in again] == said


TEXT = "One day, Ana's    dog wasn’t — 123456 ñandú 👋🏽 \n\t x! (¿qué?) 3,5 well-known"


@pytest.mark.parametrize("tokenizer", [
    BPETokenizer.train([TEXT, "a dog and a doggy day"] * 3, 300), WordTokenizer.train(TEXT), CharTokenizer.train(TEXT)
], ids=lambda one: one.kind)  # fmt: skip
def test_tokenizers_of_ours_give_the_same_ids_and_texts_elsewhere(tokenizer):
    tokenizers = pytest.importorskip("tokenizers")
    description = description_of(tokenizer)
    del description["special_tokens"]  # which are in a file of their own
    theirs = tokenizers.Tokenizer.from_str(json.dumps(description))
    for text in (TEXT, TEXT[::-1], "doggy  days… \u2028 x\u0301", ""):
        ids = tokenizer.encode(text)
        assert theirs.encode(text).ids == ids
        assert theirs.decode(ids, skip_special_tokens=False) == tokenizer.decode(ids, skip_special=False)


def test_what_no_layout_has_is_named(tmp_path):
    with pytest.raises(HubError, match=r"settings of gpt: positions='sinusoidal'\n.*for gpt2.*positions='learned'"):
        export_transformers(gpt(positions="sinusoidal"), tmp_path / "out")
    with pytest.raises(HubError, match=r"types=2, pool='max'\n.*for esm.*types=0, pool='first'"):
        export_transformers(fresh("bert", task="classify", classes=("one", "two")), tmp_path / "out")
    with pytest.raises(HubError, match="vit has no layout of transformers"):
        export_transformers(zoo.load(RUNS / "vit"), tmp_path / "out")


@pytest.mark.parametrize(
    "settings", [{}, {**LLAMA, "block": {"kv_heads": 2}, "tied": False}, {**LLAMA, "rotary": {"style": "half"}}]
)
def test_gguf_comes_back_with_the_same_logits(settings, tmp_path):
    tokenizer = BPETokenizer.train([TEXT] * 3, 280)
    loaded = gpt(**settings, vocab=tokenizer.vocab_size)
    loaded = dataclasses.replace(loaded, tokenizer=tokenizer)
    again = hub.load(export_gguf(loaded, tmp_path / "model.gguf"))
    ids = np.random.default_rng(0).integers(0, tokenizer.vocab_size, (3, 12))
    with mg.no_grad():
        np.testing.assert_allclose(again.logits(ids), loaded.model(ids).numpy(), **CLOSE)
    assert again.tokenizer.encode("One dog, well-known!") == tokenizer.encode("One dog, well-known!")
    letters = dataclasses.replace(loaded, tokenizer=CharTokenizer.train(TEXT))
    assert hub.load(export_gguf(letters, tmp_path / "letters.gguf")).tokenizer is None
    with pytest.raises(HubError, match="gpt is a gpt_neox there"):
        export_gguf(gpt(positions="rotary"), tmp_path / "neox.gguf")


def test_gguf_keeps_how_a_pretrained_tokenizer_cuts_digits_and_how_a_chat_is_written(tmp_path):
    own = BPETokenizer.train([TEXT] * 3, 280)
    cut = [
        {"type": "Split", "pattern": {"Regex": r"\p{N}"}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
    description = {**description_of(own), "pre_tokenizer": {"type": "Sequence", "pretokenizers": cut}}
    tokenizer = PretrainedTokenizer({**description, "chat_template": "{{ messages[0].content }}"})
    loaded = dataclasses.replace(gpt(**LLAMA, vocab=tokenizer.vocab_size + 3), tokenizer=tokenizer)
    again = hub.load(export_gguf(loaded, tmp_path / "model.gguf")).tokenizer
    for text in (TEXT, "123456 dogs, well-known!"):
        assert again.encode(text) == tokenizer.encode(text)
    assert tokenizer.encode("123") == [token for digit in "123" for token in own.encode(digit)]
    assert again.chat_template == tokenizer.chat_template
