"""Speech: voices say what they are told to, and what unheard voices say is written, by a decoder and by CTC."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from minigrad_models import speech
from minigrad_models.speech import voices
from minigrad_models.speech.evaluation import as_text, edits, heard, word_scores
from minigrad_models.speech.model import HOP, MELS, WINDOW, LogMel, collapsed, mel_bands, moments, written
from minigrad_models.speech.words import (
    BLANK,
    BOS,
    LETTERS,
    LONGEST,
    PARTS,
    SAMPLES,
    WORDS,
    Recordings,
    encoded,
    recorded,
    recordings,
    takes,
    worded,
)

import minigrad as mg
from minigrad import zoo
from minigrad.check import gradcheck
from minigrad.data import DataError
from minigrad.data.sounds import write_wav
from minigrad.errors import ArgumentError
from minigrad.zoo.attention import attention_of

SHIPPED = Path(__file__).resolve().parent.parent / "tutorials" / "runs" / "speech"
MAN = voices.Voice(100.0, 1.0, 1.0, 0.0, 1.0, (1.0, 1.0, 1.0))


@pytest.fixture(scope="module")
def loaded():
    return zoo.load(SHIPPED)


def strongest(wave: np.ndarray, low: float, high: float) -> float:
    """Where, between two frequencies, a sound has most power, in Hz, in windows so short that a pulse is not told from the next."""
    pieces = np.lib.stride_tricks.sliding_window_view(wave, 64)[::16] * np.hanning(64)
    power = (np.abs(np.fft.rfft(pieces, 1024)) ** 2).mean(axis=0)
    frequencies = np.fft.rfftfreq(1024, 1 / voices.RATE)
    inside = (frequencies > low) & (frequencies < high)
    return float(frequencies[inside][power[inside].argmax()])


def test_a_vowel_has_its_formants_and_its_pitch():
    rng = np.random.default_rng(0)
    for vowel, (first, second) in {"iy": (290, 2250), "aa": (740, 1120), "eh": (560, 1800)}.items():
        wave = voices.say(vowel + f" {vowel}" * 3, MAN, rng)
        assert strongest(wave, first * 0.7, first * 1.3) == pytest.approx(first, rel=0.2)
        assert strongest(wave, second * 0.85, second * 1.25) == pytest.approx(second, rel=0.1)
    middle = wave[len(wave) // 3 : -len(wave) // 3]
    alike = np.correlate(middle, middle, "full")[len(middle) :]  # with itself, later
    assert voices.RATE / (1 + alike[40:200].argmax() + 40) == pytest.approx(100, rel=0.15)


def test_a_smaller_mouth_is_higher_and_a_fast_voice_is_short():
    rng = np.random.default_rng(0)
    child = MAN._replace(mouth=1.3, pitch=300)
    assert strongest(voices.say("aa aa aa", child, rng), 1200, 2000) > 1.15 * 1120
    assert len(voices.say("s eh v ah n", MAN._replace(tempo=1.3), rng)) < len(voices.say("s eh v ah n", MAN, rng))


def test_hissing_is_noise_above_and_a_vowel_is_a_tone_below():
    rng = np.random.default_rng(0)
    hiss, vowel = (voices.say(f"{sound} {sound}", MAN, rng) for sound in ("s", "ao"))

    def above(wave: np.ndarray) -> float:
        power = np.abs(np.fft.rfft(wave)) ** 2
        return power[len(power) // 2 :].sum() / power.sum()

    assert above(hiss) > 0.9 and above(vowel) < 0.05


def test_no_voice_is_in_two_parts_and_children_are_higher_than_all_that_are_heard():
    spoken = [takes(2, 0, part) for part in PARTS]
    assert len({word.tobytes() for part in spoken for words in part for word in words}) == len(PARTS) * 2 * len(WORDS)
    heard_kinds = [voices.KINDS[kind] for part in ("train", "valid", "test") for kind in PARTS[part]]
    lowest, _, shortest, _ = voices.KINDS["child"]
    assert all(high < lowest and short < shortest for _, high, _, short in heard_kinds)


def test_a_recording_is_what_its_sentence_says():
    """The words lie in it as they were said, in order, each louder or softer, with noise."""
    (words,), rng = takes(1, 3, "test"), np.random.default_rng(0)
    for _ in range(20):
        wave, said = recorded(words, rng)
        assert wave.shape == (SAMPLES,) and wave.dtype == np.float32 and np.abs(wave).max() < 1
        at = -1
        for word in said.split():
            take = words[list(WORDS).index(word)]
            found = int(np.correlate(wave, take, "valid")[at + 1 :].argmax()) + at + 1
            assert found > at
            at = found + len(take) - 1
    letters = encoded("three no")
    assert letters[0] == BOS and worded(np.array(letters[1:])) == "three no" and len(letters) <= LONGEST + 1


def test_batches_are_the_same_again_and_no_epoch_repeats_another():
    sampler = Recordings(takes(2, 0, "valid"), 3, 4)
    first, again, later = sampler.batch(0, 1), sampler.batch(0, 1), sampler.batch(1, 1)
    for one, other in zip(first, again):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], later[0]) and len(sampler) == 4


def test_the_bands_are_those_of_the_formula():
    """Against plain NumPy: cut, window, transform, power, triangles in mel, logarithm, at most 60 dB below the loudest."""
    waves = recordings(2, 2, 0, "valid")[0]
    found = LogMel()(waves).numpy()
    assert found.shape == (2, SAMPLES // HOP, MELS)
    around = np.pad(waves, ((0, 0), (WINDOW // 2, WINDOW // 2)), mode="reflect")
    pieces = np.stack([around[:, i * HOP : i * HOP + WINDOW] for i in range(SAMPLES // HOP)], axis=1)
    power = np.abs(np.fft.rfft(pieces * np.hanning(WINDOW + 1)[:-1])) ** 2
    level = np.log10(np.maximum(power @ mel_bands(), 1e-8))
    level = np.maximum(level - level.max(axis=(1, 2), keepdims=True), -6)
    np.testing.assert_allclose(found, level / 3 + 1, atol=1e-4)
    assert found.max() == 1 and found.min() >= -1


def test_the_bands_overlap_so_that_nothing_between_is_lost():
    """Between the middles of the first and the last band, the triangles over a frequency sum to 1."""
    bands = mel_bands()
    first, last = bands[:, 0].argmax(), bands[:, -1].argmax()
    np.testing.assert_allclose(bands[first + 1 : last].sum(axis=1), 1, atol=1e-9)


def test_derivatives_pass_through_the_bands_to_the_sound():
    mel = LogMel().to(dtype="float64")
    wave = np.random.default_rng(0).normal(0, 0.1, 400)
    assert gradcheck(lambda x: mel(mg.reshape(x, (1, 400))), [mg.tensor(wave)])


@pytest.mark.parametrize(
    "moments, letters",
    [("_nn_oo__", "no"), ("th_re_e", "three"), ("threee", "thre"), ("____", ""), ("g_o _go", "go go")],
)
def test_ctc_drops_repetitions_and_then_blanks(moments, letters):
    numbers = np.array([BLANK if letter == "_" else LETTERS.index(letter) for letter in moments])
    assert worded(collapsed(numbers)) == letters


@pytest.mark.parametrize(
    "got, wanted, found",
    [
        ("one two", "one two", []),
        ("one", "one two", ["two missing"]),
        ("five six", "nine", ["five added", "nine as six"]),
        ("", "no", ["no missing"]),
        ("up go no", "up no", ["go added"]),
    ],
)
def test_words_are_compared_with_the_fewest_changes(got, wanted, found):
    assert edits(got.split(), wanted.split()) == found


def test_the_shipped_model_hears_voices_that_it_never_heard(loaded):
    """Of 18 words, luck would get one in 18 right, if it knew how many there are. The seed is not that of training."""
    waves, letters = recordings(200, 30, 99, "test")
    said = [worded(row[1:]) for row in letters]
    answers = heard(loaded.model, waves)
    total = sum(len(text.split()) for text in said)
    for column, least in enumerate((0.97, 0.9)):  # the decoder, and CTC, which does not know what words there are
        wrong = sum(len(edits(pair[column].split(), text.split())) for pair, text in zip(answers, said))
        assert 1 - wrong / total >= least


def test_both_kinds_of_voices_are_measured_apart(loaded):
    few = SimpleNamespace(model=loaded.model, config=replace(loaded.config, held_out=60, other_voices=10))
    found = word_scores(few)
    assert found["words"] >= 0.95 > found["words_child"] > 0.3 and found["recordings"] == 60
    assert re.match(r"words right, of 10 voices it never heard +(9\d|100)\.\d\d%, by CTC", as_text(found))


def test_a_file_is_heard_like_the_recording_that_it_was_written_from(loaded, tmp_path):
    said = loaded.sound(17, str(tmp_path / "spoken.wav"))
    spoken, read = loaded.predict("17", str(tmp_path / "spoken.wav"))
    assert spoken["spoken"] == said and spoken["text"] == read["text"] and "spoken" not in read
    with pytest.raises(ArgumentError, match="is no sound"):
        loaded.predict("spoken.mp3")
    write_wav(tmp_path / "long.wav", np.zeros(SAMPLES + 1), voices.RATE)
    with pytest.raises(ArgumentError, match=r"at most 2\.0 seconds"):
        loaded.predict(str(tmp_path / "long.wav"))
    (tmp_path / "bad.wav").write_bytes(b"RIFF1234")
    with pytest.raises(DataError, match=r"bad\.wav cannot be read"):
        loaded.predict(str(tmp_path / "bad.wav"))


def test_silence_is_heard_without_a_warning(loaded, tmp_path):
    write_wav(tmp_path / "silence.wav", np.zeros(100), voices.RATE)
    assert np.isfinite(moments(loaded.model, np.zeros((1, SAMPLES), "float32"))).all()
    assert set(loaded.predict(str(tmp_path / "silence.wav"))[0]) == {"input", "text", "ctc"}


def test_letters_one_by_one_are_those_of_the_whole_sentence(loaded):
    """What the cache gives, step by step, is what one pass over the sentence gives."""
    waves = recordings(20, 5, 7, "test")[0]
    found = written(loaded.model, waves)
    fed = np.concatenate([np.full((20, 1), BOS), found[:, :-1]], axis=1)
    with mg.no_grad():
        np.testing.assert_array_equal(loaded.model(waves, fed)[0].numpy().argmax(axis=-1), found)


def test_its_attention_is_named_by_letters_and_moments(loaded):
    seen = attention_of(loaded, "17")
    crosses = [layer for layer in seen.layers if layer.kind == "cross"]
    assert len(crosses) == loaded.config.layers
    assert crosses[0].columns[:2] == ("0.00", "0.04") and crosses[0].weights.shape[2] == 50
    assert "where the decoder listens" in speech.draw(loaded).svg()
