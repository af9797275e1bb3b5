"""A run that is killed and resumed is, bit for bit, the run that was never interrupted. Real processes are really killed."""

import os
import random
import signal

import pytest
from support import killable_training as training
from support.crashes import finish, kill, kill_while_saving, outcome, start_training
from support.folders import in_memory

from minigrad.runtime.signals import StopSignal
from minigrad.train import find_checkpoint, read_checkpoint

KILLS = 20
OPTIMIZERS, SCHEDULES, SAMPLERS = list(training.OPTIMIZERS), list(training.SCHEDULES), list(training.SAMPLERS)
MIXTURES = [
    (OPTIMIZERS[i % len(OPTIMIZERS)], SCHEDULES[i % len(SCHEDULES)], SAMPLERS[i % len(SAMPLERS)]) for i in range(KILLS)
]
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")


@pytest.fixture
def place():
    with in_memory() as folder:
        yield folder


@pytest.mark.parametrize("mixture", MIXTURES, ids="-".join)
def test_killed_at_any_moment_and_resumed_it_is_the_run_that_was_never_interrupted(place, mixture):
    kill(place / "killed", mixture, after=random.uniform(0, 0.6))
    finish(place / "killed", mixture)
    training.trainer(place / "whole", *mixture).train()
    assert outcome(place / "killed") == outcome(place / "whole")


@pytest.mark.parametrize("step", [1, 10, 23])
def test_a_compiled_run_that_is_killed_repeats_every_bit(place, step):
    mixture = ("adamw", "cosine", "arrays")
    process = start_training(place / "killed", mixture, "--slow", "--compiled", until=f"step {step}")
    process.kill()
    process.communicate()
    finish(place / "killed", mixture, "--compiled")
    training.trainer(place / "whole", *mixture, compile="on").train()
    assert outcome(place / "killed") == outcome(place / "whole")


def test_the_mixtures_hold_every_optimiser_schedule_and_sampler():
    assert [set(names) for names in zip(*MIXTURES)] == [set(OPTIMIZERS), set(SCHEDULES), set(SAMPLERS)]


def test_a_different_seed_would_be_noticed(place):
    training.trainer(place / "one", *MIXTURES[0]).train()
    other = training.trainer(place / "two", *MIXTURES[0])
    other.seed = 2
    other.train()
    assert outcome(place / "one")["metrics"] != outcome(place / "two")["metrics"]


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_saves_says_how_to_go_on_and_goes_on(place, number):
    mixture = ("adamw", "cosine", "sequences")
    process = start_training(place / "stopped", mixture, "--slow", "--shown", until="step 3")
    process.send_signal(getattr(signal, number))
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "stopping after this step" in errors
    assert "(interrupted)" in output and f"Trainer.resume(…, out={str(place / 'stopped')!r})" in output
    assert read_checkpoint(find_checkpoint(place / "stopped")).state["step"] < training.STEPS
    finish(place / "stopped", mixture)
    training.trainer(place / "whole", *mixture).train()
    one, two = outcome(place / "stopped"), outcome(place / "whole")
    assert {**one, "names": None} == {**two, "names": None}  # the extra checkpoint may still be among those kept


def test_a_second_interrupt_stops_at_once(place):
    process = start_training(place / "stopped", ("sgd", "none", "list"), "--stuck", until="step")
    process.send_signal(signal.SIGINT)
    assert "once more to stop at once" in process.stderr.readline() + process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    finish(place / "stopped", ("sgd", "none", "list"))


def test_an_interrupt_just_after_a_checkpoint_was_renamed_is_not_mistaken_for_a_full_disk(place, monkeypatch):
    real = os.replace

    def interrupted(source, target):
        real(source, target)
        raise KeyboardInterrupt

    trainer = training.trainer(place / "run", *MIXTURES[0])
    trainer.on("step", lambda t, info: monkeypatch.setattr(os, "replace", interrupted) if t.step == 8 else None)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    monkeypatch.undo()
    training.trainer(place / "run", *MIXTURES[0]).train()
    training.trainer(place / "whole", *MIXTURES[0]).train()
    assert outcome(place / "run") == outcome(place / "whole")


def test_a_process_that_was_started_to_ignore_interrupts_does(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopSignal() as signals:
            signal.raise_signal(signal.SIGINT)
            assert not signals.received
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fifty_kills_while_saving_leave_every_checkpoint_readable_and_lose_none(place):
    for _ in range(50):
        kill_while_saving(place)
