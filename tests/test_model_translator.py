"""The plugin translator: PyTorch's transformer with the same weights, what may and may not be seen, and what is learned."""

from __future__ import annotations

import dataclasses
import re
from functools import cache, partial

import numpy as np
import pytest
from minigrad_models.corpora import phrasebook
from minigrad_models.translator import TranslatorConfig, evaluation, spec
from minigrad_models.translator.corpus import corpus_of, form_of, written
from minigrad_models.translator.denoising import DenoisingBatches, encoded, spans
from minigrad_models.translator.evaluation import exposure, forced, positions
from minigrad_models.translator.model import Translator, fed, translation_loss
from minigrad_models.translator.preparation import sized
from minigrad_models.translator.samplers import InTurns
from minigrad_models.translator.translation import reading

import minigrad as mg
from minigrad import zoo
from minigrad.data import BOS, EOS, MASK, PAD, DataError, Padded, PairBatch, PairBatches, WordTokenizer
from minigrad.decode import EncoderDecoder, SpecialIds, beam_search, greedy, greedy_all, search_all
from minigrad.decode.translation import pieces_of
from minigrad.errors import ArgumentError, MinigradError, NonFiniteError
from minigrad.viz.drawing.scene import Text
from minigrad.zoo import trainer_of
from minigrad.zoo.config import configure
from minigrad.zoo.graph import graph_of

V, C, H, HIDDEN, DEPTH = 23, 16, 4, 24, 2
ORDERS = pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
SOURCES = [[5, 6, 7, 8, 9, EOS], [10, 11, EOS], [12, EOS]]
TARGETS = [[BOS, 9, 8, 7, EOS], [BOS, 11, 10, 5, 6, 7, EOS], [BOS, EOS]]


def new(seed: int = 0, dtype: str = "float64", **options: object) -> Translator:
    mg.manual_seed(seed)
    made = Translator(V, C, H, HIDDEN, DEPTH, **{"dropout": 0.0, **options})
    return made.to(dtype=dtype).eval()


def batch() -> PairBatch:
    return PairBatch(Padded.of(SOURCES), Padded.of(TARGETS))


def logits_of(model: Translator, sources: list[list[int]], targets: list[list[int]]) -> np.ndarray:
    with mg.no_grad():
        return model(mg.tensor(Padded.of(sources).ids), mg.tensor(Padded.of(targets).ids)).numpy()


class Twin:
    """torch.nn.Transformer with an embedding around it, and the same weights as a Translator."""

    def __init__(self, ours: Translator, norm_first: bool, smoothing: float = 0.0):
        import torch

        self.torch, self.smoothing = torch, smoothing
        torch.manual_seed(0)
        options = {"dropout": 0.0, "norm_first": norm_first, "batch_first": True, "dtype": torch.float64}
        self.layers = torch.nn.Transformer(C, H, DEPTH, DEPTH, HIDDEN, **options)
        for stack in (self.layers.encoder, self.layers.decoder):
            stack.norm = stack.norm if norm_first else None  # a post-norm stack ends in a norm already
        self.embedding = torch.nn.Parameter(torch.tensor(ours.embedding.weight.numpy()))
        state = {name: value.numpy() for name, value in ours.state_dict().items()}
        with torch.no_grad():
            for name, parameter in self.layers.named_parameters():
                parameter.copy_(torch.tensor(state[self.our_name(name)]))

    @staticmethod
    def our_name(name: str) -> str:
        norms = {"norm1": "attention_norm", "norm2": "cross_norm", "norm3": "mlp_norm"}
        if name.startswith("encoder"):
            norms["norm2"] = "mlp_norm"
        renamed = {
            "self_attn": "attention", "multihead_attn": "cross_attention", "linear1": "mlp.up", "linear2": "mlp.down",
            "layers": "blocks", **norms,
        }  # fmt: skip
        return ".".join(renamed.get(part, part) for part in name.split("."))

    def parameters(self) -> list:
        return [self.embedding, *self.layers.parameters()]

    def embedded(self, ids):
        """Vectors times √C plus the sines and cosines of the paper, written out."""
        torch = self.torch
        place = torch.arange(ids.shape[1], dtype=torch.float64)[:, None]
        pair = torch.arange(0, C, 2, dtype=torch.float64)
        angle = place / 10000 ** (pair / C)
        waves = torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(ids.shape[1], C)
        return self.embedding[ids] * C**0.5 + waves

    def __call__(self, source: np.ndarray, target: np.ndarray):
        torch = self.torch
        source, target = torch.tensor(source), torch.tensor(target)
        padding = source == PAD
        ahead = torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), 1)
        found = self.layers(
            self.embedded(source), self.embedded(target), tgt_mask=ahead,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return found @ self.embedding.T

    def loss(self, pairs: PairBatch):
        wanted = self.torch.tensor(pairs.target.ids[:, 1:])
        logits = self(pairs.source.ids, pairs.target.ids[:, :-1])
        return self.torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD, label_smoothing=self.smoothing
        )


@pytest.mark.torch
@ORDERS
def test_it_is_pytorchs_transformer(norm_first):
    pytest.importorskip("torch")
    ours = new(norm_first=norm_first, smoothing=0.1).train()
    theirs = Twin(ours, norm_first, smoothing=0.1)
    pairs = batch()
    expected = theirs(pairs.source.ids, pairs.target.ids[:, :-1]).detach().numpy()
    there = pairs.target.ids[:, 1:] != PAD
    with mg.no_grad():
        got = ours(mg.tensor(pairs.source.ids), mg.tensor(pairs.target.ids[:, :-1])).numpy()
    np.testing.assert_allclose(got[there], expected[there], rtol=1e-9, atol=1e-9)
    (total, units) = translation_loss(ours, pairs)["loss"]
    loss = theirs.loss(pairs)
    assert units == there.sum() == 11
    assert (total / units).item() == pytest.approx(loss.item(), rel=1e-10)
    (total / units).backward()
    loss.backward()
    np.testing.assert_allclose(ours.embedding.weight.grad.numpy(), theirs.embedding.grad.numpy(), rtol=1e-7, atol=1e-10)


@pytest.mark.torch
@ORDERS
def test_training_goes_as_pytorchs(norm_first):
    """Same weights, batches, AdamW, clipping and schedule: 50 losses equal to 1e-6."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # for such small products its threads only wait for each other
    ours = new(norm_first=norm_first, smoothing=0.1).train()
    theirs = Twin(ours, norm_first, smoothing=0.1)
    draw, first = np.random.default_rng(0), 0.0
    mine = mg.optim.AdamW(ours.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    schedule = mg.optim.InverseSqrt(mine, warmup=10)
    other = torch.optim.AdamW(theirs.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    for step in range(50):
        rows = [draw.integers(5, V, draw.integers(1, 9)).tolist() for _ in range(6)]
        pairs = PairBatch(Padded.of([[*row, EOS] for row in rows]), Padded.of([[BOS, *row[::-1], EOS] for row in rows]))
        (total, units) = translation_loss(ours, pairs)["loss"]
        mine.zero_grad()
        (total / units).backward()
        mg.optim.clip_grad_norm_(ours.parameters(), 1.0)
        for group in other.param_groups:
            group["lr"] = 3e-3 * min((step + 1) / 10, (10 / (step + 1)) ** 0.5)
        other.zero_grad()
        loss = theirs.loss(pairs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        first = loss.item() if step == 0 else first
        assert (total / units).item() == pytest.approx(loss.item(), abs=1e-6)
        mine.step()
        schedule.step()
        other.step()
    assert loss.item() < 0.9 * first  # both learned


def test_tied_embeddings_are_one_tensor_with_one_gradient():
    tied, apart = new(), new(tied=False)
    assert tied.embedding.weight is tied.target_embedding.weight is tied.head.weight
    assert len(list(apart.parameters())) == len(list(tied.parameters())) + 2
    assert len({id(w) for w in (apart.embedding.weight, apart.target_embedding.weight, apart.head.weight)}) == 3
    with mg.no_grad():
        for part in (apart.target_embedding, apart.head):
            part.weight[...] = tied.embedding.weight
        apart.embedding.weight[...] = tied.embedding.weight
        named = dict(tied.named_parameters())
        for name, parameter in apart.named_parameters():
            if name in named:
                parameter[...] = named[name]
    for model in (tied, apart):
        translation_loss(model, batch())["loss"][0].backward()
    parts = [part.weight.grad.numpy() for part in (apart.embedding, apart.target_embedding, apart.head)]
    np.testing.assert_allclose(tied.embedding.weight.grad.numpy(), sum(parts), rtol=1e-9, atol=1e-12)
    assert all(np.abs(part).max() > 1e-6 for part in parts)


@ORDERS
def test_no_position_sees_a_later_one(norm_first):
    model = new(norm_first=norm_first)
    before = logits_of(model, [SOURCES[0]], [[BOS, 9, 8, 7]])
    after = logits_of(model, [SOURCES[0]], [[BOS, 9, 20, 21]])
    np.testing.assert_allclose(after[:, :2], before[:, :2], rtol=1e-12, atol=1e-12)
    assert np.abs(after[:, 2:] - before[:, 2:]).max() > 1e-3


@ORDERS
def test_padding_and_neighbours_change_nothing(norm_first):
    model = new(norm_first=norm_first)
    targets = [target[:-1] for target in TARGETS]
    together = logits_of(model, SOURCES, targets)
    for row, (source, target) in enumerate(zip(SOURCES, targets)):
        alone = logits_of(model, [source], [target])
        np.testing.assert_allclose(together[row, : len(target)], alone[0], rtol=1e-10, atol=1e-12)
    assert greedy_all(model, SOURCES) == [greedy_all(model, [source])[0] for source in SOURCES]
    for source, found in zip(SOURCES, search_all(model, SOURCES, beams=3)):
        (alone_found,) = search_all(model, [source], beams=3)
        assert [one.tokens for one in found] == [one.tokens for one in alone_found]
        assert [one.score for one in found] == pytest.approx([one.score for one in alone_found], rel=1e-9)


def test_every_source_token_matters():
    model = new()
    whole = logits_of(model, [SOURCES[0]], [[BOS, 9]])
    for place in range(len(SOURCES[0])):
        other = [22 if i == place else token for i, token in enumerate(SOURCES[0])]
        assert np.abs(logits_of(model, [other], [[BOS, 9]]) - whole).max() > 1e-4


@ORDERS
def test_decoding_with_a_cache_gives_what_it_gives_without(norm_first):
    for seed in range(3):
        model = new(seed, norm_first=norm_first)
        assert greedy_all(model, SOURCES, cached=True) == greedy_all(model, SOURCES, cached=False)
        with_cache, without = (search_all(model, SOURCES, beams=4, cached=cached) for cached in (True, False))
        for mine, others in zip(with_cache, without):
            assert [one.tokens for one in mine] == [one.tokens for one in others]
            assert [one.score for one in mine] == pytest.approx([one.score for one in others], rel=1e-9)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_batches_of_several_threads_find_what_one_thread_finds(kind, monkeypatch):
    model, rng = new().to(kind), np.random.default_rng(0)
    sources = [[*rng.integers(5, 23, rng.integers(1, 12)).tolist(), EOS] for _ in range(90)]
    alone = [search_all(model, [source], beams=3)[0] for source in sources]
    monkeypatch.setattr("minigrad.decode.encoder_decoder.ROWS", 48)
    for threads in (1, 3):
        monkeypatch.setenv("MINIGRAD_THREADS", str(threads))
        for one, found in zip(alone, search_all(model, sources, beams=3), strict=True):
            assert [some.tokens for some in found] == [some.tokens for some in one]
            assert [some.score for some in found] == pytest.approx([some.score for some in one], rel=1e-5)


def test_the_memory_is_computed_once_and_selected_with_its_rows():
    model = new()
    calls = []
    encode = model.encode
    object.__setattr__(model, "encode", lambda *given: calls.append(1) or encode(*given))
    continuation = EncoderDecoder(model, SOURCES)
    first = continuation(np.full((3, 1), BOS))
    continuation.select(np.array([2, 0, 0]))
    later = continuation(np.array([[7], [7], [8]]))
    assert len(calls) == 1
    fresh = EncoderDecoder(model, [SOURCES[2], SOURCES[0], SOURCES[0]], cached=False)
    np.testing.assert_allclose(fresh(np.full((3, 1), BOS)), first[[2, 0, 0]], rtol=1e-10)
    np.testing.assert_allclose(fresh(np.array([[7], [7], [8]])), later, rtol=1e-10)


def test_one_beam_is_greedy_and_special_tokens_are_never_said():
    for seed in range(4):
        model = new(seed)
        with mg.no_grad():
            model.embedding.weight[list(SpecialIds().never)] *= 5  # they would be said often
        said = greedy_all(model, SOURCES)
        prompt = np.full((3, 1), BOS)
        found = beam_search(EncoderDecoder(model, SOURCES), prompt, beams=1, length=22, end=EOS)
        plain = greedy(EncoderDecoder(model, SOURCES), prompt, length=22, end=EOS)
        assert [one[0].tokens for one in found] == plain
        assert [one[0].tokens for one in search_all(model, SOURCES, beams=1)] == said
        assert not {token for tokens in [*said, *plain] for token in tokens} & {*SpecialIds().never, EOS}


def test_scheduled_sampling_feeds_some_of_the_models_own_choices():
    model = new(sampling=0.5)
    source, target = (mg.tensor(side.ids) for side in (batch().source, batch().target))
    assert fed(model, source, target) is target  # not when it is judged
    model.train()
    with mg.no_grad():
        chosen = model(source, target).argmax(axis=-1).numpy()[:, :-1]
    seen = np.array([fed(model, source, target).numpy() for _ in range(200)])  # (200, B, T)
    true = target.numpy()
    assert (seen[:, :, 0] == BOS).all() and (seen[:, true == PAD] == PAD).all()
    there = (true[:, 1:] != PAD) & (true[:, 1:] != chosen)
    own = seen[:, :, 1:] == chosen
    assert ((seen[:, :, 1:] == true[:, 1:]) | own)[:, there].all()
    assert own[:, there].mean() == pytest.approx(0.5, abs=0.05)
    model.sampling = 0.0
    assert fed(model, source, target) is target


def test_smoothing_is_for_training_only():
    model = new(smoothing=0.1)
    plain = translation_loss(model, batch())["loss"][0].item()
    smoothed = translation_loss(model.train(), batch())["loss"][0].item()
    logits = logits_of(model, SOURCES, [[*target[:-1], *[PAD] * (7 - len(target))] for target in TARGETS])
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = batch().target.ids[:, 1:]
    there = wanted != PAD
    true = np.take_along_axis(logs, wanted[..., None], -1)[..., 0][there]
    assert plain == pytest.approx(-true.sum(), rel=1e-9)
    assert smoothed == pytest.approx(-(0.9 * true + 0.1 * logs.mean(-1)[there]).sum(), rel=1e-9)


def test_what_is_fed_is_judged_position_by_position():
    model = new()
    examples = list(zip(SOURCES, TARGETS))
    found = forced(model, examples, batch=100)
    assert found.count.tolist() == [3, 2, 2, 2, 1, 1] and found.tokens == 11
    total, units = translation_loss(model, batch())["loss"]
    assert found.loss == pytest.approx(total.item(), rel=1e-6) and units == found.tokens


SMALL = {
    "corpus": "reverse", "vocabulary": "word", "pairs": 300, "depth": 1, "dim": 32, "heads": 4, "hidden": 32, "batch": 400,
    "dropout": 0.0, "smoothing": 0.0, "lr": 5e-3, "warmup": 20, "steps": 60, "beams": 1, "evaluated": 40,
}  # fmt: skip


@cache
def small_run(tmp: str, **settings: object):
    zoo.train("translator", tmp, progress=False, **{**SMALL, **settings})
    return zoo.load(tmp)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return small_run(str(tmp_path_factory.mktemp("runs") / "reverse"))


def test_training_lowers_the_loss_and_the_run_says_what_was_chosen(run):
    assert run.config.vocab == run.tokenizer.vocab_size == 55 and run.config.steps == 60
    judge = spec.data(run.config, None).valid
    mg.manual_seed(0)
    untrained = judge(spec.build(run.config).eval())
    trained = judge(run.model)
    assert trained["loss"] < 0.97 * untrained["loss"] and trained["accuracy"] > untrained["accuracy"]


def test_exposure_compares_both_ways_of_being_fed(run):
    found = exposure(run)
    assert [row.position for row in found] == list(range(1, len(found) + 1)) and found[0].count == 40
    assert found[0].teacher_forced == found[0].free_running  # nothing has been fed yet
    assert all(0 <= row.free_running <= 1 and 0 <= row.teacher_forced <= 1 for row in found)
    (row,) = [row for row in run.exposure() if row.position == 2]
    assert row == found[1]


def test_a_model_that_is_always_right_has_no_exposure_bias(run, monkeypatch):
    """An oracle that says the reversed source, whatever it is fed."""

    class Oracle:
        embedding, parameters = run.model.embedding, run.model.parameters

        def new_cache(self):
            return None

        def __call__(self, source, target, cache=None):
            logits = np.zeros((*target.shape, run.tokenizer.vocab_size))
            for row, ids in enumerate(source.numpy()):
                right = [*(token for token in ids[::-1] if token > EOS), EOS]
                for place in range(target.shape[1]):
                    logits[row, place, right[min(place, len(right) - 1)]] = 9
            return mg.tensor(logits)

    pairs = corpus_of(run.config, None).test[:20]
    perfect = dataclasses.replace(run, model=Oracle())
    uncached = partial(greedy_all, cached=False)
    monkeypatch.setattr(evaluation, "greedy_all", uncached)
    found = positions(perfect, pairs)
    assert all(row.teacher_forced == row.free_running == 1 for row in found)


def test_sentences_longer_than_those_of_training_are_judged_in_pieces(run):
    short = dataclasses.replace(run, config=dataclasses.replace(run.config, max_length=11))
    longest = max(len(source.split()) for source, _ in corpus_of(short.config, None).test[:40])
    asked = []

    class Watched:
        embedding, new_cache, eval = run.model.embedding, run.model.new_cache, run.model.eval
        parameters = run.model.parameters

        def __call__(self, source, target, cache=None):
            asked.append(source.shape[1])
            return run.model(source, target, cache=cache)

    watched = dataclasses.replace(short, model=Watched())
    for show in (evaluation.samples, partial(evaluation.evaluate, path=None)):
        asked.clear()
        show(watched)
        assert max(asked) == 11 < longest
    with pytest.raises(ArgumentError, match="nothing to evaluate it on"):
        evaluation.encoded_pairs(short.config, run.tokenizer, [(" ".join("7" * 40), "7")])


def test_a_long_text_is_cut_between_sentences_where_no_space_is_between_them(run):
    short = dataclasses.replace(run, config=dataclasses.replace(run.config, max_length=4))
    sentences = ["7 7。", "8 8！", "9 9"]
    for joint in ("", " "):
        assert pieces_of(joint.join(sentences), **reading(short)) == sentences


def test_a_sentence_as_long_as_the_longest_of_training_is_one_piece(run):
    longest = run.config.max_length - 1  # and its end
    assert [len(found.pieces) for found in run.translate([" ".join("7" * n) for n in (longest, longest + 1)])] == [1, 2]


def test_what_is_no_text_is_refused(run):
    with pytest.raises(ArgumentError, match="this is no text\n.*a list of texts\n.*123"):
        run.translate(123)


def test_it_suggests_only_what_a_model_of_its_corpus_can_answer(run):
    (asked,) = spec.inputs_for(run.config)
    assert run.translate(asked)[0].unknown == []
    assert spec.inputs_for(dataclasses.replace(run.config, corpus="pairs")) == []


def test_scores_that_are_not_finite_are_explained(run):
    broken = new()
    with mg.no_grad():
        broken.embedding.weight[7] = float("nan")
    with pytest.raises(NonFiniteError, match="not finite"):
        greedy_all(broken, SOURCES)
    with pytest.raises(NonFiniteError, match="not finite"):
        search_all(broken, SOURCES, beams=2)


def test_training_that_diverges_stops_with_the_weights_kept(tmp_path):
    config = configure(spec, None, {**SMALL, "lr": 1e30, "clip": 0})
    with np.errstate(all="ignore"), pytest.raises(NonFiniteError):
        trainer_of(spec, config, tmp_path / "run", progress=False).train()
    assert all(np.isfinite(p.numpy()).all() for p in zoo.load(tmp_path / "run").model.parameters())


@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_spans_hide_their_share_and_do_not_touch(length):
    draw = np.random.default_rng(0)
    for _ in range(50):
        found = spans(length, 0.3, 3.0, draw)
        assert sum(end - start for start, end in found) <= max(1, round(0.3 * length))
        assert found and all(start < end for start, end in found)
        assert all(before[1] < after[0] for before, after in zip(found, found[1:]))


def test_denoising_hides_runs_behind_one_mask_and_wants_the_whole_text():
    config = configure(spec, "denoise", {"batch": 300})
    texts = [list(range(5, 5 + n)) for n in (4, 9, 15)] * 5
    sampler = DenoisingBatches(texts, config, seed=3)
    first = list(sampler)
    again = list(DenoisingBatches(texts, config, seed=3))
    assert [b.source.ids.tolist() for b in first] == [b.source.ids.tolist() for b in again]
    assert [b.source.ids.tolist() for b in sampler] != [b.source.ids.tolist() for b in first]  # anew in the next epoch
    for part in first:
        for source, target in zip(part.source.ids, part.target.ids):
            whole = [token for token in target if token > EOS]
            kept = [token for token in source if token not in (PAD, EOS, MASK)]
            assert whole in texts and MASK in source and set(kept) <= set(whole) and kept == sorted(kept)
            assert 1 <= len(whole) - len(kept) <= max(1, round(0.3 * len(whole)))


def test_a_typed_gap_is_a_mask():
    tokenizer = WordTokenizer.train("the cat sat on the mat")
    the, cat, sat = (tokenizer.encode(word)[0] for word in ("the", "cat", "sat"))
    assert encoded("the <mask> sat", tokenizer) == [the, MASK, sat, EOS]
    assert encoded("<mask> cat<mask>", tokenizer) == [MASK, cat, MASK, EOS]


def test_the_phrasebook_is_learned_whole_and_held_out_combinations_are_not():
    corpus = corpus_of(configure(spec, None, {"pairs": 2000}), None)
    assert {target for _, target in phrasebook()} <= {target for _, target in corpus.train}
    trained = {source for source, _ in corpus.train}
    assert trained.isdisjoint(source for source, _ in corpus.tests["heldout"])
    assert [pair[1] for pair in corpus.tests["phrasebook"]] == [pair[1] for pair in phrasebook()]
    words = {word for source, _ in corpus_of(configure(spec), None).train for word in source.split()}
    asked = [word for source, _ in corpus.tests["heldout"] for word in source.split()]
    assert sum(word not in words for word in asked) <= 0.001 * len(asked)


def test_what_is_to_be_reversed_is_longer_in_the_test():
    corpus = corpus_of(configure(spec, "reverse", {"pairs": 2000}), None)
    assert max(len(source.split()) for source, _ in corpus.train) == 25
    assert max(len(source.split()) for source, _ in corpus.test) == 30
    assert all(source.split()[::-1] == target.split() for source, target in corpus.train + corpus.test)
    assert {int(word) for source, _ in corpus.train for word in source.split()} == set(range(50))


def test_forms_of_text():
    assert written("You\u2019re  WELCOME!", "phrasebook", True) == "you are welcome"
    assert written("¿Qué  TAL?", "phrasebook", False) == "¿Qué TAL?"
    assert written("¿Qué  TAL?", "lower", False) == "¿qué tal?"
    assert written("e\u0301 A", "plain", True) == "\xe9 A"
    assert form_of(configure(spec)) == "phrasebook" and form_of(configure(spec, "tatoeba")) == "plain"


@pytest.mark.parametrize(("pairs", "dim"), [(10, 64), (5000, 128), (119_000, 256)])
def test_sizes_follow_the_amount_of_data(pairs, dim):
    config = configure(spec, None, {"corpus": "pairs"})
    assert sized(config, pairs).dim == dim
    mine = sized(configure(spec, None, {"corpus": "pairs", "dim": 48, "dropout": 0.5}), pairs)
    assert mine.dim == 48 and mine.dropout == 0.5 and mine.hidden == 96 and 48 % mine.heads == 0


def test_presets_are_the_published_set_ups():
    config = configure(spec, "multi30k")
    wanted = {"depth": 4, "dim": 128, "hidden": 256, "heads": 4, "norm_first": True, "vocab": 8000, "dropout": 0.2}
    wanted |= {"smoothing": 0.1, "batch": 1500, "lr": 0.003, "warmup": 1000, "epochs": 17, "schedule": "cosine"}
    assert {name: getattr(config, name) for name in wanted} == wanted
    config = configure(spec, "reverse")
    assert (config.depth, config.dim, config.heads, config.hidden) == (2, 64, 4, 256)


def test_data_that_is_not_there_is_explained(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIGRAD_DATA", str(tmp_path))
    with pytest.raises(DataError, match="MINIGRAD_DATA"):
        spec.data(configure(spec, "tatoeba"), None)
    with pytest.raises(ArgumentError, match="--data"):
        spec.data(configure(spec, None, {"corpus": "pairs"}), None)
    with pytest.raises(MinigradError, match="too many files"):
        for name in "abc":
            (tmp_path / name).write_text("a\tb\n")
        spec.data(configure(spec), ",".join(str(tmp_path / name) for name in "abc"))


@pytest.mark.parametrize("schedule", ["cosine", "inverse-sqrt", "noam"])
def test_every_schedule_rises_and_falls(schedule):
    config = dataclasses.replace(TranslatorConfig(), schedule=schedule, warmup=10, steps=100, dim=16)
    optimizer = spec.optimizer(new(), config)
    made = spec.schedule(optimizer, config)
    rates = [made.lr(step) for step in range(100)]
    assert rates[0] < rates[9] > rates[99] > -1e-12 and max(rates) <= sized(config).lr * 1.01


def test_parts_in_turn_hold_every_example_once_an_epoch():
    parts = [PairBatches([([n, EOS], [BOS, n, EOS]) for n in range(a, a + 7)], 6, seed=a) for a in (5, 12)]
    sampler = InTurns(parts)
    batches = list(sampler)
    assert len(batches) == len(sampler) == len(parts[0]) + len(parts[1]) == sampler.report.batches
    seen = [row[0] for part in batches for row in part.source.ids]
    assert sorted(seen) == list(range(5, 19)) and sorted(seen[:7]) == list(range(5, 12))
    whole = [part.source.ids.tolist() for part in sampler]  # the second epoch
    state = {**sampler.state_dict(), "epoch": 1, "index": 3}
    other = InTurns([PairBatches(part.examples, 6, seed=part.seed) for part in parts])
    other.load_state_dict(state)
    assert [part.source.ids.tolist() for part in other] == whole[3:]
    with pytest.raises(ArgumentError, match="other data"):
        InTurns(parts[:1]).load_state_dict({**state, "index": 0})


def test_rotary_positions_turn_self_attention_only_and_go_on_in_a_cache():
    model = new(positions="rotary")
    block = model.decoder.blocks[0]
    assert model.positions is None and block.attention.rotary is not None and block.cross_attention.rotary is None
    source, target = mg.tensor([SOURCES[0]]), mg.tensor([[BOS, 9, 8, 7]])
    with mg.no_grad():
        whole, memory = model(source, target).numpy(), model.new_cache()
        parts = [model(source, target[:, i : i + 1], cache=memory).numpy() for i in range(4)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-10)
    assert not np.allclose(model(source, target[:, [0, 2, 1, 3]]).numpy()[:, -1], whole[:, -1])  # order matters


def test_an_old_run_names_the_setting_of_its_evaluation_otherwise():
    assert zoo.configure(spec, None, {"judged": 7}).evaluated == 7


def test_the_inputs_of_its_graph_are_called_source_and_target():
    graph = graph_of(spec, zoo.configure(spec, None, {**spec.tiny, "vocab": 12}))
    inputs = {box.name for box in graph.boxes if box.kind == "input"}
    assert {"source", "target"} <= inputs and not any("ids" in name for name in inputs)


def test_its_graph_shows_encoder_and_decoder_and_keeps_what_makes_the_loss_in_one_box():
    graph = graph_of(spec, zoo.configure(spec, None, {**spec.tiny, "vocab": 12}), depth=2)
    shown = {group.name: group for group in graph.tree.groups()}
    assert shown["cross_entropy"].kind == "loss" and graph.tree.path(shown["encoder"])[-1].name == "Translator"
    drawn = [shape.text for shape in _flat(graph.scene.shapes) if isinstance(shape, Text) and shape.bold]
    for name in ("embedding", "target_embedding", "positions", "target_positions", "encoder", "decoder", "linear"):
        assert drawn.count(name) == 1
    assert not {"astype", "head", "transpose"} & set(drawn) and not any(
        re.fullmatch(r"reshape \d+", word) for word in drawn
    )
    inside = {box.title for box in shown["cross_entropy"].boxes()}
    assert {"reshape", "getitem", "take_along", "sum"} <= inside and "loss = divide" in drawn
    loss = set(shown["cross_entropy"].boxes())
    fed = {box for box in graph.boxes if box.op == "getitem" and box.sources[0].name == "target"} - loss
    used = {source for box in shown["target_embedding"].boxes() for source in box.sources}
    assert len(fed) == 1 and bool(fed & used)  # the decoder is fed the target


def _flat(shapes):
    for shape in shapes:
        yield from _flat(shape.shapes) if hasattr(shape, "shapes") else [shape]
