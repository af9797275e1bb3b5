"""The plugin seq2seq: PyTorch's layers and Bahdanau's formula with the same weights, what is fed to it in training, and what it learns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from minigrad_models import seq2seq
from minigrad_models.seq2seq.model import Seq2Seq, alignment, seq2seq_loss

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.data import BOS, EOS, PAD, Padded, PairBatch
from minigrad.decode import EncoderDecoder, greedy_all, search_all
from minigrad.errors import ArgumentError
from minigrad.random import shard_of_step

V, C, H = 23, 8, 12
SOURCES = [[5, 6, 7, 8, 9, EOS], [10, 11, EOS], [12, EOS]]
TARGETS = [[BOS, 9, 8, 7, EOS], [BOS, 11, 10, 5, 6, 7, EOS], [BOS, EOS]]
CELLS = pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
ATTENTION = pytest.mark.parametrize("attention", [False, True], ids=["plain", "attention"])


def new(cell: str = "lstm", seed: int = 0, dtype: str = "float64", layers: int = 1, **options) -> Seq2Seq:
    mg.manual_seed(seed)
    return Seq2Seq(cell, V, C, H, layers, **options).to(dtype=dtype).eval()


def batch() -> PairBatch:
    return PairBatch(Padded.of(SOURCES), Padded.of(TARGETS))


def logits_of(model: Seq2Seq, sources: list, targets: list) -> np.ndarray:
    with mg.no_grad():
        return model(mg.tensor(Padded.of(sources).ids), mg.tensor(Padded.of(targets).ids)).numpy()


def logits_in_pytorch(ours: Seq2Seq, cell: str, layers: int):
    """The logits of the batch by torch.nn's layers, row by row, so that there is no padding; and the parameters by our names."""
    import torch

    state = {name: torch.tensor(value.numpy(), requires_grad=True) for name, value in ours.state_dict().items()}
    kind, has_attention = getattr(torch.nn, cell.upper()), ours.attention is not None

    def layer(name: str, width: int, size: int, **options):
        made = kind(width, size, layers, batch_first=True, dtype=torch.float64, **options)
        own = {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}
        return lambda *given: torch.func.functional_call(made, own, given)

    encoder = layer("encoder", C, H // 2, bidirectional=True)
    decoder = layer("decoder", C + H * has_attention, H)
    table, rows = state["embedding.weight"], []
    for source, target in zip(SOURCES, TARGETS):
        memory, ended = encoder(table[source][None] * C**0.5)  # (1, S, H)
        pairs = ended if cell == "lstm" else (ended,)
        pairs = tuple(torch.cat([part[0::2], part[1::2]], dim=-1) for part in pairs)  # forward and backward of a layer
        hidden = pairs if cell == "lstm" else pairs[0]
        said = []
        for token in target[:-1]:
            fed = table[[token]] * C**0.5
            context = fed[:, :0]
            if has_attention:
                query = pairs[0][-1] @ state["attention.query.weight"].T + state["attention.query.bias"]
                energy = torch.tanh(query + memory[0] @ state["attention.key.weight"].T)
                context = torch.softmax(energy @ state["attention.score.weight"][0], 0)[None] @ memory[0]
            out, hidden = decoder(torch.cat([fed, context], dim=-1)[None], hidden)
            pairs = hidden if cell == "lstm" else (hidden,)
            made = torch.cat([out[0], context], dim=-1) @ state["out.weight"].T + state["out.bias"]
            said.append(made @ table.T + state["head_bias"])
        rows.append(torch.cat(said))
    return rows, state


@pytest.mark.torch
@CELLS
@ATTENTION
def test_it_is_pytorchs_layers_and_bahdanaus_attention(cell, attention):
    torch = pytest.importorskip("torch")
    for layers in (1, 2):
        ours = new(cell, attention=attention, layers=layers).train()
        rows, state = logits_in_pytorch(ours, cell, layers)
        got = logits_of(ours, SOURCES, TARGETS)
        for row, expected in enumerate(rows):
            np.testing.assert_allclose(got[row, : len(expected)], expected.detach().numpy(), rtol=1e-9, atol=1e-10)
        total, units = seq2seq_loss(ours, batch())["loss"]
        wanted = torch.cat([torch.tensor(target[1:]) for target in TARGETS])
        loss = torch.nn.functional.cross_entropy(torch.cat(rows), wanted, reduction="sum")
        assert units == len(wanted) and total.item() == pytest.approx(loss.item(), rel=1e-10)
        total.backward()
        loss.backward()
        for name, parameter in ours.named_parameters():
            np.testing.assert_allclose(parameter.grad.numpy(), state[name].grad.numpy(), rtol=1e-6, atol=1e-9)


@CELLS
@ATTENTION
def test_padding_and_neighbours_change_nothing(cell, attention):
    model = new(cell, attention=attention, layers=2)
    together = logits_of(model, SOURCES, TARGETS)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS)):
        alone = logits_of(model, [source], [target])
        np.testing.assert_allclose(together[row, : len(target)], alone[0], rtol=1e-10, atol=1e-12)
    assert greedy_all(model, SOURCES) == [greedy_all(model, [source])[0] for source in SOURCES]


@CELLS
@ATTENTION
def test_decoding_with_a_cache_gives_what_it_gives_without(cell, attention):
    model = new(cell, attention=attention, layers=2)
    assert greedy_all(model, SOURCES, cached=True) == greedy_all(model, SOURCES, cached=False)
    with_cache, without = (search_all(model, SOURCES, beams=4, cached=cached) for cached in (True, False))
    for mine, others in zip(with_cache, without):
        assert [one.tokens for one in mine] == [one.tokens for one in others]
        assert [one.score for one in mine] == pytest.approx([one.score for one in others], rel=1e-9)


def test_with_attention_a_decoder_sees_the_source_and_without_it_only_where_the_encoder_ended():
    source, state = mg.tensor([[5, 6, 7, EOS]]), {}
    for attention in (False, True):
        model = new(attention=attention)
        cache = model.new_cache()
        with mg.no_grad():
            model.encode(source, cache)
            before = model.decode(mg.tensor([[BOS, 9]]), cache).numpy()
            model.encode(source, cache)
            cache.memory = tuple(part * 2 if part.dtype.kind == "f" else part for part in cache.memory)
            state[attention] = np.abs(model.decode(mg.tensor([[BOS, 9]]), cache).numpy() - before).max()
    assert state[False] == 0 and state[True] > 1e-3


def fed_in_training(model: Seq2Seq, seed: int = 3) -> list[np.ndarray]:
    """The tokens that the decoder is fed for the batch, step by step, (B, 1) each; or all of them at once."""
    seen, decode = [], model.decode
    object.__setattr__(model, "decode", lambda target, state: seen.append(target.numpy()) or decode(target, state))
    with shard_of_step(seed, 0, len(SOURCES)):
        seq2seq_loss(model.train(), batch())
    object.__setattr__(model, "decode", decode)
    return seen


@ATTENTION
def test_without_teacher_forcing_it_is_fed_what_it_says_itself(attention):
    model = new(attention=attention, teacher_forcing=0.0)
    fed = np.concatenate(fed_in_training(model), axis=1)  # (B, T)
    assert (fed[:, 0] == BOS).all()
    with mg.no_grad():
        own = model.eval()(mg.tensor(batch().source.ids), mg.tensor(fed)).numpy().argmax(axis=-1)
    np.testing.assert_array_equal(fed[:, 1:], own[:, :-1])
    assert (fed != batch().target.ids[:, :-1])[:2, 1:4].any()  # it has learned nothing, so it says something else
    with shard_of_step(3, 0, 3):
        loss = seq2seq_loss(model.train(), batch())["loss"][0].item()
    logits, wanted = logits_of(model.eval(), SOURCES, fed.tolist()), batch().target.ids[:, 1:]
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = -np.take_along_axis(logs, wanted[..., None], axis=-1)[..., 0][wanted != PAD].sum()
    assert loss == pytest.approx(expected, rel=1e-9)


def test_true_tokens_come_as_often_as_it_is_said():
    model = new(teacher_forcing=0.75)
    true = batch().target.ids[:, :-1]
    fed = np.stack([np.concatenate(fed_in_training(model, seed), axis=1) for seed in range(60)])
    there = (true != PAD) & (np.arange(true.shape[1]) > 0)
    same = (fed == true)[:, there].mean()  # and by chance where its own choice is the true one
    assert 0.70 < same < 0.82
    assert len(fed_in_training(new(teacher_forcing=1.0))) == 1  # all steps by one call


def test_what_is_fed_depends_on_the_step_and_on_nothing_drawn_before():
    model = new(teacher_forcing=0.5, dropout=0.2)
    first = np.concatenate(fed_in_training(model, 7), axis=1)
    mg.randn(5)
    np.testing.assert_array_equal(np.concatenate(fed_in_training(model, 7), axis=1), first)
    assert any((np.concatenate(fed_in_training(model, seed), axis=1) != first).any() for seed in (8, 9, 10))


@pytest.mark.parametrize("options", [{"teacher_forcing": 0.5}, {"attention": True, "teacher_forcing": 0.3}])
def test_stopped_and_resumed_on_two_threads_is_bit_for_bit_what_was_not_stopped(options, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAD_THREADS", "2")  # for so many weights the rows are divided between them
    settings = {"corpus": "reverse", "pairs": 100, "dim": 16, "hidden": 128, "dropout": 0.2, "batch": 400, **options}
    for name, parts in (("whole", [6]), ("parts", [2, 6])):
        config = zoo.configure(seq2seq.spec, None, settings)
        for number, steps in enumerate(parts):
            again = {"again": True} if number else {}
            out = tmp_path / name
            trainer = zoo.trainer_of(seq2seq.spec, config, out, seed=0, max_steps=6, progress=False, **again)
            trainer.on("step", lambda t, info, last=steps: t.stop() if info["step"] == last else None)
            trainer.train()
    whole, parts = (zoo.load(tmp_path / name, "latest").model.state_dict() for name in ("whole", "parts"))
    for name, value in whole.items():
        np.testing.assert_array_equal(value.numpy(), parts[name].numpy(), err_msg=name)


def test_the_cache_goes_on_with_the_rows_that_are_selected():
    model = new(attention=True, layers=2)
    continuation = EncoderDecoder(model, SOURCES)
    first = continuation(np.full((3, 1), BOS))
    continuation.select(np.array([2, 0, 0]))
    later = continuation(np.array([[7], [7], [8]]))
    fresh = EncoderDecoder(model, [SOURCES[2], SOURCES[0], SOURCES[0]], cached=False)
    np.testing.assert_allclose(fresh(np.full((3, 1), BOS)), first[[2, 0, 0]], rtol=1e-10)
    np.testing.assert_allclose(fresh(np.array([[7], [7], [8]])), later, rtol=1e-10)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small one with attention, trained to say rows of numbers backwards: of the 37,000 there are, it sees 1,200."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 8, rng.integers(3, 6)) for _ in range(1800)]
    lines = [f"{' '.join(map(str, row))}\t{' '.join(map(str, row[::-1]))}" for row in rows]
    (folder / "pairs.tsv").write_text("\n".join(lines))
    settings = {"dim": 16, "hidden": 48, "dropout": 0.0, "batch": 250, "epochs": 5, "lr": 0.015, "vocabulary": "word"}
    zoo.train(
        "seq2seq:attention",
        folder / "run",
        data=str(folder / "pairs.tsv"),
        progress=False,
        valid_every=10**6,
        **settings,
    )
    return folder / "run"


def test_it_learns_to_say_rows_backwards_that_it_never_saw(run):
    scores = zoo.load(run).evaluate()
    assert scores["exact_match"] > 90 and scores["teacher_forced_accuracy"] > 95


def test_attention_is_drawn_and_goes_backwards(run, tmp_path, capsys):
    loaded = zoo.load(run)
    seen = loaded.attention("1 2 3 4 5", beams=1)
    (heads,) = seen.layers
    assert heads.columns[:5] == tuple("12345") and np.allclose(heads.weights.sum(axis=-1), 1, atol=1e-5)
    assert main(["translate", "1 2 3 4 5", "--run", str(run), "--attention", str(tmp_path / "seen.svg")]) == 0
    assert (tmp_path / "seen.svg").read_text(encoding="utf-8").startswith("<svg")
    ids = loaded.tokenizer.encode("1 2 3 4 5", eos=True)
    weights = alignment(loaded.model, [ids], [[BOS, *ids[:-1][::-1]]])[0]
    assert weights.shape == (6, 6)
    assert (
        np.polyfit(np.arange(5), weights[:5].argmax(axis=1), 1)[0] < -0.4
    )  # the later the word, the earlier its source


def test_a_model_without_attention_says_that_it_has_none(tmp_path):
    settings = {"corpus": "reverse", "pairs": 60, "dim": 8, "hidden": 12}
    zoo.train("seq2seq:gru", tmp_path / "run", max_steps=1, progress=False, **settings)
    with pytest.raises(ArgumentError, match="no attention to show"):
        zoo.load(tmp_path / "run").attention("1 2 3")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden": 7}, "cannot be halved"),
        ({"teacher_forcing": 1.5}, "more than always"),
        ({"dropout": 1.0}, "would leave nothing"),
        ({"alpha": 11.0}, "no length penalty"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ArgumentError, match=said):
        zoo.configure(seq2seq.spec, None, settings)


def test_the_table_of_translators_is_made_in_a_short_form(tmp_path):
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "benchmarks.seq2seq", "--quick", "--json", "--folder", str(tmp_path)]
    command += ["--model", "GRU", "LSTM with attention", "transformer"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    measured = result["detail"]["measured"]
    assert [*measured] == ["GRU", "LSTM with attention", "transformer"] and result["GRU"] <= 1
    for one in measured.values():
        right, count = one["held_out"]
        groups = one["by_words"].values()
        assert (sum(r for r, _ in groups), sum(n for _, n in groups)) == (right, count) and count == 12
        assert one["steps"] == 2 and 0 <= one["free"] <= 100 and 0 <= one["forced"] <= 100
