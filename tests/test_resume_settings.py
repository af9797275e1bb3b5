"""What a run says when training begins or goes on with other settings, and its weights in a model of one's own."""

import numpy as np
import pytest
from support import killable_training as training
from support.folders import in_memory
from support.small_training import line, small

from minigrad import nn, optim
from minigrad.errors import CheckpointError
from minigrad.train import ArrayBatches, Trainer, find_checkpoint, load_model


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def test_the_weights_of_a_run_are_loaded_into_a_model(folder):
    losses = iter([3.0, 1.0, 2.0])
    trainer = small(out=folder, max_steps=3, valid=lambda m: {"loss": next(losses)}, valid_every=1, config={"size": 3})
    weights = []
    trainer.on("valid", lambda t, _: weights.append(t.model.weight.numpy().copy()))
    trainer.train()
    model = nn.Linear(3, 1)
    for which, expected in (("best", weights[1]), ("latest", weights[2])):
        assert load_model(model, folder, which).state["config"] == {"size": 3}
        np.testing.assert_array_equal(model.weight.numpy(), expected)
    load_model(model, find_checkpoint(folder, "best"))
    np.testing.assert_array_equal(model.weight.numpy(), weights[1])


def test_a_resume_with_other_settings_says_which_count(folder, capsys):
    def run(lr, total, **options):
        model = nn.Linear(3, 1)
        optimizer = optim.SGD(model.parameters(), lr=lr)
        schedule = optim.Cosine(optimizer, total)
        rows = np.ones((2, 3), "float32")
        Trainer.resume(model, line, [rows], optimizer, schedule=schedule, out=folder, **options).train()
        return optimizer.param_groups[0]["initial_lr"], capsys.readouterr().out

    run(0.1, 10, max_steps=2)
    assert "goes on as it was saved" not in run(0.1, 10, max_steps=3)[1]
    rate, said = run(9.0, 100, max_steps=4)
    assert rate == 0.1
    assert "the optimiser goes on as it was saved, with lr 0.1 (given 9.0)" in said
    assert "the new values are used: max_steps 4 (was 3), schedule.total 100 (was 10)" in said


def test_a_resume_that_does_not_fit_has_one_fix_and_names_what_differs(folder):
    rows = np.ones((8, 3), "float32")
    model = nn.Linear(3, 1)

    def resumed(size=4, mixed=False):
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        scaler = optim.MixedPrecision(model, optimizer) if mixed else None
        loss = lambda model, batch: line(model, batch[0])  # noqa: E731
        data = ArrayBatches((rows,), size)
        return Trainer.resume(model, loss, data, optimizer, out=folder, scaler=scaler, max_steps=1, progress=False)

    resumed().train()
    with pytest.raises(CheckpointError) as caught:
        resumed(size=2)
    assert "expected: batch_size=2\n  got:      batch_size=4\n" in str(caught.value)
    assert str(caught.value).count("fix:") == 1
    with pytest.raises(CheckpointError, match="not trained in mixed precision[^$]*leave out scaler=") as caught:
        resumed(mixed=True)
    assert str(caught.value).count("fix:") == 1


def test_a_mixed_run_is_not_resumed_without_its_scaler(folder):
    training.trainer(folder, "mixed", "cosine", "sequences", max_steps=1).train()
    with pytest.raises(CheckpointError, match="trained in mixed precision[^$]*got: +no scaler[^$]*pass scaler="):
        training.trainer(folder, "adamw", "cosine", "sequences", max_steps=2)


def test_what_the_data_are_is_said_when_training_begins(folder, capsys):
    training.trainer(folder, "adamw", "cosine", "pairs", max_steps=1, progress=True).train()
    said = capsys.readouterr().out.splitlines()
    report = training.SAMPLERS["pairs"]().report
    assert said[:2] == [f"data: {report}", f"valid: {report}"]
    assert "padding" in said[0] and "unknown" in said[0] and "dropped" in said[0]
