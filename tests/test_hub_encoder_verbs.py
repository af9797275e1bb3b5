"""What can be done with an imported encoder: fill in blanks, embed, evaluate, look into it, and train it for a task."""

from __future__ import annotations

import json

import numpy as np
import pytest
from minigrad_models.bert import spec
from minigrad_models.bert.batches import IGNORED, MaskedPairs
from minigrad_models.bert.examples import columns_of
from minigrad_models.bert.prediction import read
from minigrad_models.bert.tasks import Example
from minigrad_models.bert.tokens import Frame, Specials, joined
from support.small_tokenizers import TEXTS, byte_level, wordpiece
from support.transformers_models import saved, torch, transformers

import minigrad as mg
from minigrad import hub, zoo
from minigrad.cli import main
from minigrad.errors import ArgumentError

pytestmark = pytest.mark.transformers

SMALL = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 64,
}  # fmt: skip
TUNED = {"steps": 30, "lr": 5e-3, "warmup": 3, "valid_every": 10, "batch": 512}


def described(family, folder):
    """A config, and a tokenizer that is saved in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = {"Bert": wordpiece, "Roberta": byte_level, "DistilBert": wordpiece}[family](folder)
    sizes = SMALL if family != "DistilBert" else {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40}
    sizes = {**sizes, "type_vocab_size": 1} if family == "Roberta" else sizes
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **sizes
    )
    return config, tokenizer


def made(family, folder, kind):
    """A random model with a tokenizer, as a folder: the model and the tokenizer of transformers."""
    config, tokenizer = described(family, folder)
    return saved(folder, f"{family}{kind}", config), tokenizer


@pytest.fixture(params=["Bert", "Roberta", "DistilBert"])
def filler(request, tmp_path):
    model, tokenizer = made(request.param, tmp_path / "theirs", "ForMaskedLM")
    return model, tokenizer, hub.load(tmp_path / "theirs"), tmp_path / "theirs"


def test_special_tokens_and_templates_are_those_of_the_tokenizer(filler):
    _, tokenizer, loaded, _ = filler
    for name, number in Specials(*loaded.config.specials)._asdict().items():
        assert number == getattr(tokenizer, f"{name}_token_id") or (name, number) == ("unk", -1)  # bytes are all known
    frame, first, second = Frame.of(loaded.tokenizer), *TEXTS[:2]
    a, b = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (first, second))
    assert joined(a, None, 64, frame) == tokenizer(first)["input_ids"]
    assert joined(a, b, 64, frame) == tokenizer(first, second)["input_ids"]


@pytest.mark.parametrize("text", ["Ana lost her [MASK].", "<mask> was [MASK], and she cried.", "the<mask>race"])
def test_blanks_are_filled_as_by_transformers_whichever_way_they_are_typed(filler, text):
    model, tokenizer, loaded, _ = filler
    blank = tokenizer.mask_token
    given = tokenizer(text.replace("[MASK]", blank).replace("<mask>", blank), return_tensors="pt")
    with torch.inference_mode():
        chances = model(**given).logits[0].softmax(1)[given["input_ids"][0] == tokenizer.mask_token_id].clone()
    (answer,) = loaded.predict(text)
    found = [value for name, value in answer.items() if name.startswith(blank)]
    assert len(found) == len(chances)
    for row, words in zip(chances, found):
        row = row.clone()
        row[[i for i in loaded.config.specials if i >= 0]] = 0
        best = row.topk(5)
        assert words == {tokenizer.convert_ids_to_tokens(i): pytest.approx(p, abs=1e-4)
                         for p, i in zip(best.values.tolist(), best.indices.tolist())}  # fmt: skip


def test_pairs_are_read_with_token_types_and_whether_one_follows_is_said(tmp_path):
    model, tokenizer = made("Bert", tmp_path, "ForPreTraining")
    loaded = hub.load(tmp_path)
    (answer,) = loaded.predict(f"{TEXTS[0]} | She was [MASK].")
    with torch.inference_mode():
        theirs = model(**tokenizer(TEXTS[0], "She was [MASK].", return_tensors="pt"))
    assert answer["follows"] == pytest.approx(theirs.seq_relationship_logits.softmax(1)[0, 0].item(), abs=1e-4)


def test_classes_are_those_of_transformers(tmp_path):
    model, tokenizer = made("Roberta", tmp_path, "ForSequenceClassification")
    with torch.inference_mode():
        chances = model(**tokenizer(TEXTS[0], TEXTS[1], return_tensors="pt")).logits.softmax(1)[0].tolist()
    (answer,) = hub.load(tmp_path).predict(f"{TEXTS[0]} | {TEXTS[1]}")
    for name, chance in zip(("LABEL_0", "LABEL_1"), chances):
        assert answer["probabilities"][name] == pytest.approx(chance, abs=1e-4)


def test_vectors_do_not_depend_on_padding_or_company(filler):
    model, tokenizer, loaded, _ = filler
    texts = [*TEXTS, "", "Ana", " ".join(TEXTS)]
    together = loaded.embed(texts)
    for text, vector in zip(texts, together):
        given = tokenizer(text, truncation=True, max_length=loaded.config.context, return_tensors="pt")
        with torch.inference_mode():
            mean = model.base_model(**given).last_hidden_state[0].mean(0).numpy()
        np.testing.assert_allclose(vector, mean, atol=2e-5)


def test_what_is_hidden_is_never_a_special_token_of_this_tokenizer(filler):
    _, _, loaded, _ = filler
    config, specials = loaded.config, Specials(*loaded.config.specials)
    frame = Frame.of(loaded.tokenizer)
    rows = [columns_of(config, loaded.tokenizer, Example(text, None, IGNORED), frame) for text in TEXTS * 20]
    for batch in MaskedPairs(rows, 400, config.vocab, 0.3, specials=specials):
        chosen = batch.targets != IGNORED
        assert not np.isin(batch.targets[chosen], specials).any() and (batch.ids[chosen] == specials.mask).any()
        assert (batch.ids[~chosen] != specials.mask).all()


def test_it_is_evaluated_on_a_text_drawn_and_looked_into(filler, tmp_path, capsys):
    *_, loaded, folder = filler
    out = str(hub.import_model(folder, tmp_path / "ours"))
    (tmp_path / "own.txt").write_text("\n\n".join(TEXTS), "utf-8")
    assert main(["eval", out, "--data", str(tmp_path / "own.txt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["perplexity"] == pytest.approx(np.exp(found["loss"]), rel=1e-6) and found["texts"] >= 5
    assert main(["attention", out, f"{TEXTS[0]} | {TEXTS[1]}", "-o", str(tmp_path / "seen.html")]) == 0
    assert main(["graph", out, "-o", str(tmp_path / "graph.dot")]) == 0
    assert (tmp_path / "seen.html").stat().st_size > 1000 and (tmp_path / "graph.dot").stat().st_size > 1000


@pytest.mark.parametrize("family", ["Bert", "Roberta", "DistilBert"])
@pytest.mark.parametrize("lora", [0, 4])
def test_it_is_fine_tuned_on_labels_of_ones_own(family, lora, tmp_path):
    config, _ = described(family, tmp_path / "theirs")
    torch.manual_seed(0)
    getattr(transformers, f"{family}Model")(config).save_pretrained(tmp_path / "theirs")  # with weights that can learn
    out = hub.import_model(tmp_path / "theirs", tmp_path / "ours")
    lines = [f"{text}\t{'people' if 'Ana' in text or 'Ben' in text else 'others'}" for text in TEXTS] * 4
    (tmp_path / "own.tsv").write_text("\n".join(lines), "utf-8")
    zoo.train(
        "bert:classify",
        tmp_path / "run",
        data=str(tmp_path / "own.tsv"),
        progress=False,
        init=str(out),
        lora=lora,
        **{**TUNED, **({"steps": 100, "lr": 2e-2} if lora else {})},
    )
    loaded = zoo.load(tmp_path / "run")
    assert loaded.evaluate()["class_right"] == 1 and loaded.config.classes == ("others", "people")
    assert loaded.tokenizer == hub.load(out).tokenizer
    assert [answer["class"] for answer in loaded.predict(*TEXTS[:2])] == ["people", "others"]


@pytest.mark.parametrize("task", ["fill", "pretrain", "tag", "answer", "similar", "embed"])
@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_every_task_can_be_learned_from_it(task, family, tmp_path):
    made(family, tmp_path / "theirs", "ForMaskedLM")
    out = hub.import_model(tmp_path / "theirs", tmp_path / "ours")
    zoo.train("bert", tmp_path / "run", progress=False, task=task, init=str(out), examples=60, **{**TUNED, "steps": 4})
    loaded = zoo.load(tmp_path / "run")
    for answer in loaded.predict(*spec.inputs_for(loaded.config)):
        assert answer
    if task == "tag":
        (answer,) = loaded.predict("Ana lost her unbelievable kite.")
        assert [word.split("/")[0] for word in answer["tags"].split()] == [
            "Ana",
            "lost",
            "her",
            "unbelievable",
            "kite",
            ".",
        ]
    if task == "answer":
        (answer,) = loaded.predict("Who won? | Zork  ran,then  Ana won.")
        assert answer["answer"] and answer["answer"] in "Zork  ran,then  Ana won."


def test_training_begins_with_the_unpacked_weights_of_a_packed_model(tmp_path):
    model, tokenizer = made("Bert", tmp_path / "theirs", "Model")
    model.half().save_pretrained(tmp_path / "theirs")
    out = hub.import_model(tmp_path / "theirs", tmp_path / "ours")
    assert isinstance(zoo.load(out).model.tokens.weight, mg.nn.Packed)
    config = zoo.configure(spec, "similar", {"init": str(out), **TUNED, "examples": 60})
    trainer = zoo.trainer_of(spec, config, None, progress=False, max_steps=1)
    theirs = model.state_dict()["embeddings.word_embeddings.weight"].float().numpy()
    np.testing.assert_array_equal(trainer.model.tokens.weight.numpy(), theirs)
    assert {parameter.dtype for parameter in trainer.model.parameters()} == {np.dtype("float32")}


def test_a_text_that_is_too_long_is_cut_and_that_is_said(filler):
    *_, loaded, _ = filler
    context = loaded.config.context
    reading = read(loaded, "Ana ran. " * 300 + "[MASK] won." + " Ben ran." * 300)
    (row,) = reading.rows
    assert row.shape == (1, context) and f"only {context} of" in reading.notes[0]
    frame = Frame.of(loaded.tokenizer)
    assert row[0, : len(frame.before)].tolist() == [*frame.before] and (row == loaded.config.specials[4]).sum() == 1


def test_a_tokenizer_that_no_model_comes_with_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="comes with a model(.|\n)*init"):
        zoo.train("bert", tmp_path / "run", progress=False, tokenizer="pretrained")
