"""The shipped phrasebook: enough of it, one target for each source however it is typed, and Spanish that is written correctly."""

import re
import unicodedata
from pathlib import Path

import minigrad_models.corpora as corpora
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minigrad_models.corpora import phrasebook, phrasebook_sections, spellings

from minigrad.data import normalise

PAIRS = phrasebook()
TEXTS = Path(corpora.__file__).parent / "texts"
NAMES = {
    "Ana",
    "Luis",
    "Carlos",
    "Elena",
    "Pablo",
    "Marta",
    "Inglaterra",
    "Estados",
    "Unidos",
    "Londres",
    "Madrid",
    "Navidad",
}


def plain(word: str) -> str:
    """Without accents; ñ is a letter of its own and stays."""
    return "".join(c if c == "ñ" else unicodedata.normalize("NFD", c)[0] for c in word)


def words(target: str) -> list[str]:
    return re.findall(r"[^\W\d]+", target)


def test_there_are_at_least_four_hundred_pairs_under_headings_of_everyday_life():
    sections = phrasebook_sections()
    assert len(PAIRS) >= 400
    assert [pair for pairs in sections.values() for pair in pairs] == PAIRS
    assert {
        "greetings",
        "directions",
        "food and drink",
        "shopping",
        "weather",
        "feelings",
        "travel",
        "numbers",
        "colours",
    } <= set(sections)
    assert min(map(len, sections.values())) >= 10


def test_no_two_sources_are_the_same_after_normalisation():
    keys = [normalise(source) for source, _ in PAIRS]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "typed",
    [
        "You are welcome",
        "You are welcome.",
        "you're welcome!",
        "You’re welcome",
        "YOU ARE WELCOME",
        " you  are welcome ",
    ],
)
def test_you_are_welcome_is_de_nada_however_it_is_typed(typed):
    assert {normalise(source): target for source, target in PAIRS}[normalise(typed)] == "de nada"


@pytest.mark.parametrize(
    ("typed", "normal"),
    [
        ("I can't.", "i cannot"),
        ("I can not.", "i cannot"),
        ("I won't!", "i will not"),
        ("It's five o'clock.", "it is five o'clock"),
        ("Let's go!", "let us go"),
        ("I've lost Ana's key, haven't I?", "i have lost ana's key have not i"),
        ("It costs 3.50, not 1,000!", "it costs 3.50 not 1,000"),
        ("“Well-known”…", "well-known"),
        ("cafe\u0301", "café"),
        ("", ""),
    ],
)
def test_normalisation_writes_contractions_out_and_leaves_the_words_alone(typed, normal):
    assert normalise(typed) == normal


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="aintwcl'’ .,!?-3I")))
def test_normalising_twice_changes_nothing(text):
    once = normalise(text)
    assert normalise(once) == once
    assert once == once.strip() and "  " not in once


def test_every_spelling_means_its_source_and_has_its_target():
    for source, _ in PAIRS:
        typed = spellings(source)
        assert typed[0] == source and len(set(typed)) == len(typed) >= 4
        assert {normalise(way) for way in typed} == {normalise(source)}
        assert any(way == way.lower() for way in typed) and any(way[-1].isalnum() for way in typed)
    variants = phrasebook(variants=True)
    assert len(dict(variants)) == len(variants) > 4 * len(PAIRS)
    targets = {normalise(source): target for source, target in PAIRS}
    assert all(targets[normalise(source)] == target for source, target in variants)


def test_spellings_include_contractions_where_english_has_them_and_only_there():
    assert {"I don't know.", "I do not know", "i don't know!"} <= set(spellings("I don't know."))
    assert {"It isn't true.", "It's not true.", "It is not true."} <= set(spellings("It isn't true."))
    assert not [way for way in spellings("Where is it?") + spellings("Yes, I am.") if "'" in way]


def test_questions_and_exclamations_are_opened_and_closed_in_spanish():
    for source, target in PAIRS:
        assert (target.count("¿"), target.count("¡")) == (target.count("?"), target.count("!"))
        assert source.endswith("?") == target.endswith("?") == target.startswith("¿"), source
        assert source.endswith("!") == target.endswith("!") == target.startswith("¡"), source
        assert not target.endswith(".")


def test_text_is_nfc_and_holds_only_letters_of_its_language():
    for source, target in PAIRS:
        assert unicodedata.is_normalized("NFC", source + target)
        assert re.fullmatch(r"[A-Z][A-Za-z ,'-]*[.!?]", source), source
        assert re.fullmatch(r"[¿¡]?[A-Za-záéíóúñ ,]+[?!]?", target), target
        assert "  " not in source + target and " ," not in source + target


def test_only_names_have_a_capital_in_spanish():
    capitals = {word for _, target in PAIRS for word in words(target) if word != word.lower()}
    assert capitals <= NAMES


def test_question_words_carry_their_accent():
    asking = {
        "que",
        "como",
        "cuando",
        "donde",
        "adonde",
        "quien",
        "quienes",
        "cual",
        "cuanto",
        "cuantos",
        "cuanta",
        "cuantas",
    }
    first = [words(target)[0] for _, target in PAIRS if target.startswith("¿")]
    assert any(plain(word) in asking for word in first)
    assert [word for word in first if word in asking] == []


def test_no_word_is_spelt_with_an_accent_here_and_without_there():
    """Except for pairs of different words, such as tú (you) and tu (your)."""
    different = {"tu", "el", "que", "como", "esta", "estas", "se", "te", "gusto", "trabajo"}
    known = {word.lower() for _, target in PAIRS for word in words(target)}
    assert [
        word for word in known if word != plain(word) and plain(word) in known and plain(word) not in different
    ] == []


def test_the_caller_cannot_change_the_book():
    phrasebook().clear()
    phrasebook_sections()["greetings"].clear()
    assert phrasebook() == PAIRS
    assert phrasebook_sections()["greetings"]


def test_what_is_shipped_is_small():
    assert sum(path.stat().st_size for path in TEXTS.iterdir()) < 200_000
