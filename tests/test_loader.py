"""The DataLoader and what belongs to it: batches as PyTorch's, and a position that finds the same batches again."""

import threading
import time
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad.data import (
    BatchSampler,
    ConcatDataset,
    DataError,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)
from minigrad.errors import ArgumentError, CallError


class Squares(Dataset):
    """Examples that are made when they are asked for."""

    def __init__(self, count=10, pause=0.0):
        self.count, self.pause, self.threads = count, pause, set()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.threads.add(threading.get_ident())
        time.sleep(self.pause * (index % 3))
        return {"x": np.full(2, index, "float32"), "y": index**2}


class Stream(IterableDataset):
    """Numbers one after the other, other ones in each epoch."""

    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(range(100 * self.epoch, 100 * self.epoch + 10))


class Reversing:
    """A sampler that is none of minigrad's."""

    def __iter__(self):
        return iter([3, 2, 1, 0])


def listed(loader):
    """The batches of one loop as plain values."""
    return [batch["y"].tolist() if isinstance(batch, dict) else batch.tolist() for batch in loader]


def loaders():
    squares, stream = Squares(), Stream()
    return {
        "in order": lambda **o: DataLoader(squares, batch_size=3, **o),
        "shuffled": lambda **o: DataLoader(squares, batch_size=3, shuffle=True, seed=1, **o),
        "last dropped": lambda **o: DataLoader(squares, batch_size=3, shuffle=True, drop_last=True, seed=1, **o),
        "weighted": lambda **o: DataLoader(
            squares, batch_size=4, sampler=WeightedRandomSampler(range(10), 12, seed=2), **o
        ),
        "batches": lambda **o: DataLoader(
            squares, batch_sampler=BatchSampler(RandomSampler(squares, seed=3), 4, drop_last=True), **o
        ),
        "foreign sampler": lambda **o: DataLoader(squares, batch_size=2, sampler=Reversing(), **o),
        "stream": lambda **o: DataLoader(stream, batch_size=4, **o),
        "stream, last dropped": lambda **o: DataLoader(stream, batch_size=4, drop_last=True, **o),
        "single": lambda **o: DataLoader(range(7), batch_size=None, collate_fn=mg.tensor, **o),
    }


@pytest.mark.parametrize("kind", loaders())
@pytest.mark.parametrize("workers", [0, 3])
def test_from_every_position_a_new_loader_goes_on_with_the_batches_that_are_left(kind, workers):
    make = loaders()[kind]
    expected = [listed(loader := make()), listed(loader), listed(loader)]
    positions, given = [], []
    loader = make(num_workers=workers)
    for _ in range(2):
        for batch in loader:
            given.append(batch)
            positions.append(loader.state_dict())
    flat = [batch for epoch in expected for batch in epoch]
    for done, position in enumerate(positions, 1):
        other = make(num_workers=workers)
        other.load_state_dict(position)
        rest = listed(other)
        assert rest + listed(other) == flat[done:][: len(rest) + len(expected[1])]
        assert len(given) == len(expected[0]) + len(expected[1])


def test_a_position_keeps_the_seed_that_was_drawn():
    mg.manual_seed(0)
    first = DataLoader(range(20), batch_size=4, shuffle=True)
    batches = iter(first)
    next(batches)
    second = DataLoader(range(20), batch_size=4, shuffle=True)
    assert second.seed != first.seed
    second.load_state_dict(first.state_dict())
    assert listed(second) == [batch.tolist() for batch in batches]


def test_manual_seed_decides_on_the_order():
    def order(seed):
        mg.manual_seed(seed)
        return listed(DataLoader(range(20), batch_size=20, shuffle=True))

    assert order(1) == order(1) != order(2)


def test_every_loop_is_a_new_epoch_in_another_order_also_after_one_that_was_broken_off():
    loader = DataLoader(range(20), batch_size=5, shuffle=True, seed=0)
    peeked = next(iter(loader)).tolist()
    epochs = [sum(listed(loader), []) for _ in range(3)]
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert peeked != epochs[0][:5]


def test_two_loops_at_once_do_not_disturb_each_other():
    loader = DataLoader(range(6), batch_size=2)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)] == [([i, i + 1],) * 2 for i in (0, 2, 4)]


def test_a_position_in_other_data_or_with_other_settings_is_refused():
    x = mg.arange(12)
    state = DataLoader(TensorDataset(x), batch_size=3).state_dict()
    DataLoader(TensorDataset(x), batch_size=3).load_state_dict(state)
    for other in (
        DataLoader(TensorDataset(x + 1), batch_size=3),
        DataLoader(TensorDataset(x), batch_size=4),
        DataLoader(TensorDataset(x), batch_size=3, shuffle=True),
        DataLoader(Subset(TensorDataset(x), range(12)), batch_size=3),
    ):
        with pytest.raises(ArgumentError, match="saved with other data or settings"):
            other.load_state_dict(state)


def test_the_data_are_read_through_once_however_often_a_position_is_saved():
    class Watched(TensorDataset):
        asked = 0

        def fingerprint(self):
            self.asked += 1
            return super().fingerprint()

    data = Watched(mg.arange(12))
    loader = DataLoader(data, batch_size=3)
    for _ in loader:
        loader.state_dict()
    assert data.asked == 1


def test_a_sampler_that_draws_anew_is_not_resumed_in_the_wrong_order():
    class Unseeded:
        def __iter__(self):
            return iter(np.random.default_rng().permutation(50).tolist())

    loader = DataLoader(range(50), sampler=Unseeded(), batch_size=10)
    next(iter(loader))
    with pytest.raises(ArgumentError, match="set_epoch"):
        DataLoader(range(50), sampler=Unseeded(), batch_size=10).load_state_dict(loader.state_dict())


@pytest.mark.parametrize("shuffle", [False, True])
def test_workers_are_threads_and_give_the_same_batches_in_the_same_order(shuffle):
    alone, shared = Squares(24), Squares(24, pause=0.002)
    expected = listed(DataLoader(alone, batch_size=2, shuffle=shuffle, seed=4))
    assert listed(DataLoader(shared, batch_size=2, shuffle=shuffle, seed=4, num_workers=3)) == expected
    assert len(alone.threads) == 1 < len(shared.threads)


def test_workers_stay_within_what_may_be_made_ahead():
    class Counting(Squares):
        made = 0

        def __getitem__(self, index):
            self.made += 1
            return super().__getitem__(index)

    data = Counting(1000)
    batches = iter(DataLoader(data, batch_size=1, num_workers=2, prefetch_factor=3))
    next(batches)
    time.sleep(0.05)
    assert data.made <= 8
    batches.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_says_at_which_example_it_was(workers):
    class Broken(Squares):
        def __getitem__(self, index):
            return {}[index] if index == 5 else super().__getitem__(index)

    loader = DataLoader(Broken(), batch_size=2, num_workers=workers)
    with pytest.raises(DataError, match="example 5 cannot be loaded: KeyError: 5") as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, KeyError)
    assert loader.index == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_a_stream_or_of_collation_says_where_it_was(workers):
    class Breaking(IterableDataset):
        def __iter__(self):
            yield from range(5)
            raise OSError("gone")

    with pytest.raises(DataError, match="example 5 of the stream cannot be loaded: OSError: gone"):
        list(DataLoader(Breaking(), batch_size=2, num_workers=workers))
    ragged = [np.zeros(2), np.zeros(2), np.zeros(3), np.zeros(2)]
    with pytest.raises(DataError, match=r"batch 1, of 2 examples, [^$]*differ in shape[^$]*\(3,\) and \(2,\)"):
        list(DataLoader(ragged, batch_size=2, num_workers=workers))


class Point(NamedTuple):
    x: float
    label: int


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_collation_gives_what_pytorch_gives():
    from torch.utils.data import default_collate as theirs

    cases = [
        [1, 2, 3],
        [True, False],
        [np.float32(1.5), np.float32(2)],
        [np.arange(3), np.arange(3)],
        [np.ones((2, 2), "float64")] * 3,
        ["a", "b"],
        [(1, np.zeros(2)), (2, np.ones(2))],
        [{"a": 1, "b": {"c": [1, 2]}}, {"a": 2, "b": {"c": [3, 4]}}],
        [Point(1, 2), Point(3, 4)],
    ]

    def plain(value):
        if hasattr(value, "tolist"):
            return str(value.dtype).removeprefix("torch."), tuple(value.shape), value.tolist()
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value

    for case in cases:
        assert plain(default_collate(case)) == plain(theirs(case))
    assert isinstance(default_collate([Point(1, 2)] * 2), Point)
    assert default_collate([0.5, 1.5]).dtype == mg.get_default_dtype()


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        ([{"a": 1}, {"b": 1}], "example 1 of the batch is not built as the first"),
        ([(1, 2), (1, 2, 3)], "example 1 of the batch is not built as the first"),
        ([None, None], "cannot be put into a batch[^$]*NoneType[^$]*collate_fn"),
    ],
)
def test_what_cannot_be_collated_is_told_so(examples, told):
    with pytest.raises(ArgumentError, match=told):
        default_collate(examples)


@pytest.mark.torch
def test_lengths_are_pytorchs():
    import torch.utils.data as theirs

    for size, batch, drop in [(10, 3, False), (10, 3, True), (9, 3, True), (2, 3, True)]:
        ours = DataLoader(range(size), batch_size=batch, drop_last=drop)
        other = theirs.DataLoader(range(size), batch_size=batch, drop_last=drop)
        assert len(ours) == len(other) == len(list(ours)) == len(list(other))
    for parts in ([0.5, 0.3, 0.2], [7, 4], [1 / 3, 1 / 3, 1 / 3], [11, 0]):
        ours, other = random_split(range(11), parts), theirs.random_split(range(11), parts)
        assert [len(part) for part in ours] == [len(part) for part in other]


def test_a_split_is_a_partition_and_repeats_with_its_seed():
    parts = random_split(range(20), [0.5, 0.25, 0.25], seed=3)
    assert sorted(example for part in parts for example in part) == list(range(20))
    assert [list(part) for part in random_split(range(20), [10, 5, 5], seed=3)] == [list(part) for part in parts]
    assert list(random_split(range(20), [10, 10], seed=4)[0]) != list(random_split(range(20), [10, 10], seed=5)[0])
    for wrong in ([0.5, 0.6], [10, 11], [-1, 21], [2.5, 17.5]):
        with pytest.raises(ArgumentError, match="not the whole"):
            random_split(range(20), wrong)


def test_a_tensor_dataset_gives_rows_and_whole_batches():
    x, y = np.arange(10.0, dtype="float32").reshape(5, 2), np.arange(5)
    data = TensorDataset(x, mg.tensor(y))
    assert len(data) == 5 and data[-1][0].tolist() == [8, 9]
    for chosen in ([4, 0, 0], [1]):
        whole, single = data.batch(chosen), default_collate([data[i] for i in chosen])
        assert [(a.tolist(), a.dtype) for a in whole] == [(b.tolist(), b.dtype) for b in single]
    part = Subset(data, [3, 1])
    assert [b.tolist() for _, b in DataLoader(part, batch_size=2)] == [[3, 1]]
    with pytest.raises(ArgumentError, match="no rows in common"):
        TensorDataset(x, y[:3])


def test_datasets_are_joined_by_a_plus():
    both = Squares(3) + Squares(2)
    assert isinstance(both, ConcatDataset) and len(both) == 5
    assert [both[i]["y"] for i in (0, 2, 3, 4, -1)] == [0, 4, 0, 1, 1]
    with pytest.raises(IndexError, match="no such example"):
        both[5]


def test_samplers_draw_what_they_say():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(RandomSampler("abcd", seed=0)) == [0, 1, 2, 3]
    assert Counter(RandomSampler("abc", num_samples=7, seed=0)).most_common()[-1][1] >= 2
    assert set(RandomSampler("ab", replacement=True, num_samples=50, seed=0)) == {0, 1}
    assert sorted(SubsetRandomSampler([5, 7, 9], seed=0)) == [5, 7, 9]
    drawn = Counter(WeightedRandomSampler([1, 0, 3], 4000, seed=0))
    assert drawn[1] == 0 and abs(drawn[2] / 4000 - 0.75) < 0.03
    assert sorted(WeightedRandomSampler([1, 1, 0, 5], 3, replacement=False, seed=0)) == [0, 1, 3]
    sampler = RandomSampler(range(50), seed=0)
    assert list(sampler) != list(sampler)
    assert (
        list(RandomSampler(range(50), seed=0))
        == list(RandomSampler(range(50), generator=None, seed=0))
        != list(RandomSampler(range(50), generator=np.random.default_rng(0)))
    )


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: DataLoader(range(3), shuffle=True, sampler=[0]), "sampler does not go with shuffle"),
        (lambda: DataLoader(range(3), batch_sampler=[[0]], batch_size=2), "batch_sampler does not go with batch_size"),
        (lambda: DataLoader(range(3), batch_size=0), "batch_size cannot be used"),
        (lambda: DataLoader(range(3), num_workers=-1), "num_workers cannot be used"),
        (lambda: DataLoader(Stream(), shuffle=True), "the order of a stream is its own"),
        (lambda: DataLoader(iter(range(3))), "this is no dataset"),
        (lambda: DataLoader(7), "this is no dataset"),
        (lambda: DataLoader((np.zeros(3), np.zeros(3))), r"TensorDataset\(x, y\)"),
        (lambda: DataLoader(range(3), pin_memory=True), "pin_memory= is not offered"),
        (lambda: DataLoader(range(3), batchsize=2), "has no option 'batchsize'[^$]*did you mean 'batch_size'"),
        (lambda: DataLoader(range(3), shuffle=True, seed=-1), "this is no seed"),
        (lambda: DataLoader([], shuffle=True), "nothing to draw from"),
        (lambda: WeightedRandomSampler([0, 0], 1), "no weights"),
        (lambda: WeightedRandomSampler([0, 1], 2, replacement=False), "not so many examples"),
        (lambda: BatchSampler([1], 0), "no count"),
    ],
)
def test_what_cannot_work_is_refused_at_once(make, told):
    with pytest.raises((ArgumentError, CallError), match=told):
        make()


def test_a_stream_without_length_has_none_and_knows_its_last_batch():
    loader = DataLoader(Stream(), batch_size=4)
    with pytest.raises(TypeError, match="has no len"):
        len(loader)
    assert [loader.at_end for _ in loader] == [False, False, True]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_may_be_whatever_collate_fn_makes(workers):
    for data in (Stream(), range(10)):
        batches = list(DataLoader(data, batch_size=4, num_workers=workers, collate_fn=np.array))
        assert [type(batch) for batch in batches] == [np.ndarray] * 3
        assert np.concatenate(batches).tolist() == list(range(10))
        assert list(DataLoader(data, batch_size=5, num_workers=workers, collate_fn=lambda examples: None)) == [None] * 2


def test_a_loop_that_is_left_early_leaves_no_thread_behind():
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in DataLoader(Squares(50), batch_size=1, num_workers=3):
            break
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before
