"""Batches and splits: little padding, nothing lost or leaked, and a saved position that means exactly what remains."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.data import (
    UNK,
    BlockBatches,
    CharTokenizer,
    Padded,
    PairBatches,
    SequenceBatches,
    WordTokenizer,
    encode_pairs,
    split_pairs,
    split_text,
)
from minigrad.errors import ArgumentError, MinigradError


def some_sequences(count=200, longest=30, seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(5, 99, random.integers(1, longest + 1)).tolist() for _ in range(count)]


def some_pairs(count=200, seed=0):
    return list(zip(some_sequences(count, seed=seed), some_sequences(count, seed=seed + 1)))


SAMPLERS = {
    "pairs": lambda seed=0: PairBatches(some_pairs(), max_tokens=200, seed=seed),
    "sequences": lambda seed=0: SequenceBatches(some_sequences(), max_tokens=200, seed=seed),
    "in order": lambda seed=0: SequenceBatches(some_sequences(), max_tokens=200, seed=seed, shuffle=False),
    "random blocks": lambda seed=0: BlockBatches(np.arange(1000), block=8, batch_size=4, seed=seed),
    "sequential blocks": lambda seed=0: BlockBatches(np.arange(1000), 8, 4, seed=seed, order="sequential"),
}
every_sampler = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS.keys())
shuffling_sampler = pytest.mark.parametrize("make", [SAMPLERS[k] for k in ("pairs", "sequences", "random blocks")])


def plain(batch):
    """A batch as nested lists, which can be compared."""
    values = vars(batch).values()
    return [value.tolist() if isinstance(value, np.ndarray) else plain(value) for value in values]


@every_sampler
def test_the_same_seed_gives_the_same_batches(make):
    assert list(map(plain, make())) == list(map(plain, make()))


@shuffling_sampler
def test_another_seed_and_another_epoch_give_another_order(make):
    sampler = make()
    first, second = list(map(plain, sampler)), list(map(plain, sampler))
    assert len(first) == len(second) == len(sampler)
    assert first != second
    assert first != list(map(plain, make(seed=1)))


@every_sampler
def test_a_position_saved_after_any_batch_gives_exactly_the_batches_that_remain(make):
    whole = make()
    expected = [plain(batch) for _ in range(2) for batch in whole]
    sampler, states = make(), []
    for _ in range(2):
        for _batch in sampler:
            states.append(json.loads(json.dumps(sampler.state_dict())))
    for done, state in list(enumerate(states, 1))[:: max(1, len(states) // 20)] + [(len(states), states[-1])]:
        resumed = make(seed=7)
        resumed.load_state_dict(state)
        rest = list(map(plain, resumed))
        if done <= len(whole):
            rest += list(map(plain, resumed))
        assert rest == expected[done:]


@every_sampler
def test_a_state_saved_before_the_first_batch_and_between_epochs_is_valid(make):
    sampler, resumed = make(), make()
    resumed.load_state_dict(sampler.state_dict())
    assert list(map(plain, resumed)) == list(map(plain, sampler))
    assert (sampler.epoch, sampler.index) == (1, 0)
    resumed = make()
    resumed.load_state_dict(sampler.state_dict())
    assert list(map(plain, resumed)) == list(map(plain, sampler))


@every_sampler
def test_endless_iteration_goes_through_the_epochs(make):
    sampler, endless = make(), make().forever()
    expected = [plain(batch) for _ in range(2) for batch in sampler]
    assert [plain(next(endless)) for _ in expected] == expected


@every_sampler
def test_leaving_a_loop_keeps_the_place_and_restart_goes_back_to_the_first_batch(make):
    sampler = make()
    expected = list(map(plain, sampler))
    sampler.load_state_dict(make().state_dict())
    for _ in sampler:
        break
    assert plain(next(iter(sampler))) == expected[1]
    sampler.restart()
    assert list(map(plain, sampler)) == expected


@every_sampler
@pytest.mark.parametrize(
    "change",
    [
        {"epoch": -1},
        {"index": 10**6},
        {"index": "0"},
        {"seed": None},
        {"epoch": 1.0},
        {"epoch": True},
        {"data": 1},
        {"x": 1},
    ],
)
def test_a_position_that_does_not_fit_is_refused_and_changes_nothing(make, change):
    sampler = make()
    with pytest.raises(MinigradError, match="position"):
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, **change})
    assert (sampler.epoch, sampler.index, sampler.seed) == (0, 0, 0)


def test_a_position_saved_with_other_data_or_settings_is_refused():
    state = SequenceBatches(some_sequences(), max_tokens=200).state_dict()
    for other in (
        SequenceBatches(some_sequences()[::-1], max_tokens=200),
        SequenceBatches(some_sequences(), max_tokens=201),
        SequenceBatches(some_sequences(), max_tokens=200, shuffle=False),
    ):
        with pytest.raises(MinigradError, match="other data or settings"):
            other.load_state_dict(state)


@pytest.mark.parametrize(
    ("made", "example"),
    [
        (SequenceBatches, "a text"),
        (SequenceBatches, 5),
        (PairBatches, ("a text", "un texto")),
        (PairBatches, [5, 6, 7]),
        (PairBatches, (5, 6)),
        (PairBatches, 5),
    ],
    ids=str,
)
def test_text_that_was_not_encoded_and_examples_that_are_none_are_refused(made, example):
    with pytest.raises(MinigradError, match=f"{made.__name__}: this is no example(.|\n)*ids(.|\n)*encode"):
        made([example], max_tokens=9)


def test_the_same_ids_cut_elsewhere_are_other_data():
    state = PairBatches([([5, 6], [7])], max_tokens=9).state_dict()
    with pytest.raises(MinigradError, match="other data or settings: data"):
        PairBatches([([5], [6, 7])], max_tokens=9).load_state_dict(state)


def test_each_example_comes_once_in_an_epoch():
    pairs = some_pairs()
    given_out = [
        (source[:s], target[:t])
        for batch in PairBatches(pairs, max_tokens=150)
        for source, s, target, t in zip(
            batch.source.ids.tolist(), batch.source.lengths, batch.target.ids.tolist(), batch.target.lengths
        )
    ]
    assert sorted(given_out) == sorted(pairs)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(12, 60), st.integers(0, 5))
def test_no_batch_is_over_the_budget_and_padding_is_where_the_mask_says(lengths, max_tokens, seed):
    sequences = [[5 + i % 9] * length for i, length in enumerate(lengths)]
    if not any(lengths):
        with pytest.raises(MinigradError, match="no example is left"):
            SequenceBatches(sequences, max_tokens)
        return
    sampler = SequenceBatches(sequences, max_tokens, seed=seed)
    batches = list(sampler)
    for batch in batches:
        assert batch.ids.size <= max_tokens
        assert batch.ids.shape[1] == batch.lengths.max()
        np.testing.assert_array_equal(batch.mask.sum(axis=1), batch.lengths)
        np.testing.assert_array_equal(batch.mask, batch.ids != 0)
    assert sum(batch.tokens for batch in batches) == sum(lengths)
    assert sampler.report.padding == pytest.approx(1 - sum(lengths) / sum(batch.ids.size for batch in batches))
    assert sampler.report.empty == lengths.count(0)


def test_neither_side_of_a_pair_is_over_the_budget():
    for batch in PairBatches(some_pairs(), max_tokens=90):
        assert max(batch.source.ids.size, batch.target.ids.size) <= 90


def test_sequences_of_similar_length_come_together():
    sequences = some_sequences(2000)
    assert SequenceBatches(sequences, max_tokens=400).report.padding < 0.05
    unsorted = [Padded.of(sequences[i : i + 25]) for i in range(0, 2000, 25)]
    assert np.mean([1 - p.mask.mean() for p in unsorted]) > 0.4


def test_the_report_of_one_example_is_in_the_singular():
    assert str(PairBatches([([5], [6])], max_tokens=100).report).startswith("1 example in 1 batch, ")


def test_the_report_counts_padding_unknown_and_dropped():
    pairs = [([5, UNK], [6, 6]), ([5], [UNK]), ([5] * 9, [6]), ([], [6]), ([7, 7], [7] * 6)]
    report = PairBatches(pairs, max_tokens=100, max_length=5, shuffle=False).report
    assert (report.examples, report.too_long, report.empty) == (2, 2, 1)
    assert report.unknown == (1 / 3, 1 / 3)
    assert report.padding == 0.25
    assert str(report) == (
        "2 examples in 1 batch, padding 25.0%, unknown 33.33% and 33.33%, dropped 3: 2 longer than 5 tokens, 1 empty"
    )


def test_batches_move_to_a_device_and_can_be_cut(device):
    (batch,) = PairBatches([([5, 6], [1, 9, 2]), ([7], [1, 2])], max_tokens=100, shuffle=False)
    moved = batch.to(device)
    assert moved.source.ids.device == moved.target.mask.device == device
    np.testing.assert_array_equal(moved.target.ids.numpy(), batch.target.ids)
    assert (len(moved), len(moved[:1]), moved.tokens) == (2, 1, 5)
    assert moved[1:].source.ids.tolist() == [[5, 6]]
    embedded = mg.tensor(np.arange(20.0).reshape(10, 2), device=device)[moved.source.ids]
    assert embedded.shape == (2, 2, 2)
    with pytest.raises(MinigradError, match="slice"):
        batch[0]


def test_blocks_come_from_a_tensor_on_any_device(device):
    ids = mg.tensor(np.arange(10), device=device)
    (batch,) = BlockBatches(ids, block=9, batch_size=1)
    assert batch.to(device).targets.tolist() == [list(range(1, 10))]


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 60), st.integers(1, 9), st.integers(1, 5))
def test_sequential_blocks_predict_every_token_once(length, block, batch_size):
    sampler = BlockBatches(range(length), block, batch_size, order="sequential")
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert [t for batch in batches for t in batch.targets.ravel().tolist()] == list(range(1, length))
    assert all((batch.targets == batch.inputs + 1).all() for batch in batches)
    assert sum(batch.tokens for batch in batches) == length - 1


def test_random_blocks_reach_the_first_and_the_last_token():
    sampler = BlockBatches(range(20), block=4, batch_size=3)
    seen = np.concatenate([batch.targets.ravel() for _ in range(50) for batch in sampler])
    starts = np.concatenate([batch.inputs[:, 0] for _ in range(50) for batch in sampler])
    assert set(seen.tolist()) == set(range(1, 20))
    assert set(starts.tolist()) == set(range(16))


@pytest.mark.parametrize(
    "arguments",
    [
        ([1, 2, 3], 3, 1),
        ([[1, 2], [3, 4]], 1, 1),
        ([1.5, 2.5, 3.5], 1, 1),
        ("123", 1, 1),
        (range(9), 0, 1),
        (range(9), 2, 0),
        (range(9), 2, 2, -1),
        (range(9), 2, 2, 0, "sorted"),
    ],
    ids=str,
)
def test_blocks_that_cannot_be_cut_are_refused(arguments):
    with pytest.raises(MinigradError, match="BlockBatches"):
        BlockBatches(*arguments)


def test_pairs_are_encoded_with_their_begin_and_end():
    tokenizer = WordTokenizer(["hi", "hola"])
    assert encode_pairs([("hi", "hola"), ("hi hi", "x")], tokenizer) == [([5, 2], [1, 6, 2]), ([5, 5, 2], [1, 3, 2])]
    assert encode_pairs([("hi", "hi")], tokenizer, WordTokenizer(["x"])) == [([5, 2], [1, 3, 2])]


def words_of(sentence):
    return "".join(c for c in sentence.lower() if c.isalnum())


SENTENCES = [
    (f"{word} {number}{mark}", f"t{i}")
    for word in ("Go", "go", "Run")
    for number in range(100)
    for i, mark in enumerate(".!?")
]


def test_no_source_sentence_is_in_two_parts_even_with_other_case_and_punctuation():
    split = split_pairs(SENTENCES, valid=0.2, test=0.1)
    keys = [{words_of(source) for source, _ in part} for part in (split.train, split.valid, split.test)]
    assert [len(k) for k in keys] == [140, 40, 20]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])
    assert sorted(split.train + split.valid + split.test) == sorted(SENTENCES)


def test_a_contraction_and_the_same_words_in_full_are_in_one_part():
    pairs = [pair for i in range(50) for pair in ((f"I don’t know {i}", "a"), (f"i do not know {i}.", "b"))]
    split = split_pairs(pairs, valid=0.3, test=0.3)
    for part in (split.train, split.valid, split.test):
        assert [target for _, target in part] == ["a", "b"] * (len(part) // 2)


def test_a_split_depends_on_the_seed_and_not_on_the_order():
    split, backwards = split_pairs(SENTENCES), split_pairs(SENTENCES[::-1])
    assert set(split.valid) == set(backwards.valid) and set(split.test) == set(backwards.test)
    assert split == split_pairs(SENTENCES, seed=0)
    assert split != split_pairs(SENTENCES, seed=1)


@pytest.mark.parametrize(
    ("count", "valid", "test", "sizes"),
    [(3, 0.1, 0.1, (1, 1, 1)), (1, 0.5, 0.4, (1, 0, 0)), (10, 0.3, 0, (7, 3, 0)), (4, 0.9, 0.05, (1, 3, 0))],
)
def test_small_splits_leave_something_to_train_on_and_then_to_test_on(count, valid, test, sizes):
    split = split_pairs([(f"s{i}", "t") for i in range(count)], valid, test)
    assert (len(split.train), len(split.valid), len(split.test)) == sizes


def test_a_text_is_split_where_it_always_is():
    split = split_text("x" * 1_115_394)
    assert (len(split.train), len(split.valid), len(split.test)) == (1_003_854, 111_540, 0)
    split = split_text("abcdefghij", 0.3, 0.3)
    assert split.train + split.valid + split.test == "abcdefghij"


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (-0.1, 0.1), (1.0, 0.0), (float("nan"), 0.1)])
def test_fractions_that_leave_nothing_are_refused(fractions):
    with pytest.raises(MinigradError, match="nothing is left"):
        split_pairs(SENTENCES, *fractions)
    with pytest.raises(MinigradError, match="nothing is left"):
        split_text("abc", *fractions)


@pytest.mark.parametrize("tokenizers", [("tok",), (None,), (CharTokenizer("ab"), "tok")])
def test_what_is_no_tokenizer_is_refused(tokenizers):
    with pytest.raises(ArgumentError, match="this is no tokenizer"):
        encode_pairs([("a", "b")], *tokenizers)
