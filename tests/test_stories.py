"""The shipped stories: endless, the same for the same seed, and told so that the end follows from the beginning."""

import re
import unicodedata
from collections import Counter

import pytest
from minigrad_models.corpora import sentence_pairs, stories, story_text

from minigrad.errors import ArgumentError

MANY = stories(6000, seed=3)
GIRLS = set(re.findall(r"\w+", "Ana Emma Lucy Mia Nora Rosa Sara Zoe Clara Julia Laura Alice Eva Ruth Grace Lena"))
BOYS = set(re.findall(r"\w+", "Ben Carl David Felix Hugo Jack Leo Max Noah Oscar Paul Tom Simon Peter Adam Henry"))
FOOD = {
    "dog": "bone",
    "cat": "fish",
    "rabbit": "carrot",
    "horse": "apple",
    "monkey": "banana",
    "mouse": "cheese",
    "bear": "honey",
    "duck": "bread",
    "squirrel": "nut",
    "goat": "cabbage",
}


def plot(name: str) -> list[list[str]]:
    found = [list(story.sentences) for story in MANY if story.plot == name]
    assert len(found) > 100
    return found


def names(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) & (GIRLS | BOYS)


def found(pattern: str, text: str) -> list[str]:
    match = re.search(pattern, text)
    assert match, text
    return list(match.groups())


def test_a_seed_gives_the_same_stories_and_another_seed_others():
    assert stories(50, seed=7) == stories(80, seed=7)[:50]
    assert stories(50, seed=7) != stories(50, seed=8)
    assert stories(0) == []


def test_text_has_the_length_asked_for_and_longer_text_begins_alike():
    text = story_text(20_000, seed=5)
    assert len(text) == 20_000
    assert story_text(777, seed=5) == text[:777]
    assert text.split("\n\n")[:3] == [story.text for story in stories(3, seed=5)]
    assert story_text(0) == ""


@pytest.mark.parametrize("ask", [lambda: stories(-1), lambda: story_text(-1), lambda: sentence_pairs(-1)])
def test_negative_amounts_are_refused(ask):
    with pytest.raises(ArgumentError, match="0 or more"):
        ask()


def test_stories_hardly_ever_repeat():
    """Of n stories drawn from N, about n²/2N are repeated: a handful among 6,000 means millions."""
    repeated = len(MANY) - len({story.text for story in MANY})
    assert repeated <= 6000**2 / 2 / 3_000_000


def test_the_vocabulary_is_a_few_hundred_words_and_each_plot_is_told_often():
    vocabulary = Counter(word for story in MANY for word in re.findall(r"[a-z]+", story.text.lower()))
    assert 300 <= len(vocabulary) <= 800
    assert min(vocabulary.values()) >= 20
    assert min(Counter(story.plot for story in MANY).values()) > len(MANY) / 20


def test_sentences_are_whole():
    for story in MANY:
        assert 5 <= len(story.sentences) <= 9
        assert unicodedata.is_normalized("NFC", story.text)
        for sentence in story.sentences:
            assert re.fullmatch(r'"?[A-Z][A-Za-z ,:!?"]*[.!?]"?', sentence), sentence
            assert sentence.count('"') % 2 == 0 and "  " not in sentence


def test_a_and_an_suit_the_next_word():
    for story in MANY:
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", story.text), story.text


def test_stories_are_told_in_the_past():
    """Only what somebody says, and what is still so at the end of "dream job", is in the present."""
    present = r"\b(is|are|has|have|does|do|looks|leaves|goes|comes|wants|needs|likes|finds|gives|says|asks)\b"
    for story in MANY:
        assert not re.search(present, re.sub('"[^"]*"', "", story.text)), story.text


def test_people_are_at_a_market_and_boats_float():
    assert any("At the market" in story.text for story in MANY)
    assert not [story.text for story in MANY if re.search(r"\b[Ii]n the market\b|boat swim", story.text)]


def test_the_last_word_can_be_told_from_what_came_before():
    for story in MANY:
        assert story.text.endswith(f" {story.answer}.")
        assert story.answer in re.findall(r"\w+", " ".join(story.sentences[:-1]))


def test_pronouns_suit_the_people():
    girls = [story.text for story in MANY if names(story.text) <= GIRLS]
    boys = [story.text for story in MANY if names(story.text) <= BOYS]
    assert min(len(girls), len(boys)) > 100
    assert not [text for text in girls if re.search(r"\b(he|him|his)\b", text, re.IGNORECASE)]
    assert not [text for text in boys if re.search(r"\b(she|her)\b", text, re.IGNORECASE)]
    assert any("she" in text for text in girls) and any(" he " in text for text in boys)


def test_after_a_swap_each_has_what_the_other_had():
    for told in plot("swap"):
        owned = dict(re.findall(r"(\w+) (?:had|owned) a (\w+)", told[0]))
        (one, first), (two, second) = owned.items()
        exchanged = {one: second, two: first}
        if told[-1].startswith("Both"):
            assert dict(re.findall(r"(\w+) had the (\w+)", told[-1])) == exchanged
        else:
            asked, thing = found(r"asked (\w+) what .* showed the (\w+)\.", told[-1])
            assert exchanged[asked] == thing


def test_who_hides_is_found_where_they_hid_and_nowhere_else():
    for told in plot("hide and seek"):
        (spot,) = found(r"hid (?:in|under|behind) the (\w+)\.", told[2])
        assert told[-1].endswith(f" {spot}.")
        assert f"the {spot}" not in told[3] + told[4]


def test_animals_get_what_they_eat():
    for told in plot("hungry animal"):
        (animal,) = found(rf"an? \w+ ({'|'.join(FOOD)})\b", told[0])
        assert re.search(rf"\b{FOOD[animal]}\b", told[2])
        assert told[-1].endswith(f" {animal}.")


def test_the_one_who_trained_wins_the_race():
    for told in plot("race"):
        (trained,) = found(r"(\w+) had trained", told[1])
        (loser,) = names(told[1]) - {trained}
        assert told[-1].endswith(f" {trained}.") and loser in told[3]


def test_what_was_lost_is_found_where_it_was_lost():
    for told in plot("lost and found"):
        (place,) = found(r"(?:lost|forgot) it \w+ the (\w+)\.", told[1])
        (elsewhere,) = found(r"(?:in|at|on) the (\w+), but", told[3])
        assert told[-1].endswith(f" {place}.") and elsewhere != place


def test_presents_belong_to_who_had_the_birthday_and_dreams_come_true():
    for told in plot("birthday"):
        (child,) = names(told[0])
        assert told[-1].endswith(f" {child}.")
    for told in plot("dream job"):
        assert found(r"be(?:come)? a (\w+)", told[0]) == found(r"a (\w+)\.$", told[-1])


def test_sentence_pairs_are_half_true_and_true_to_the_stories():
    pairs = sentence_pairs(2000, seed=4)
    assert pairs == sentence_pairs(3000, seed=4)[:2000]
    assert 0.45 < sum(follows for *_, follows in pairs) / len(pairs) < 0.55
    told = stories(4000, seed=4)[::2]
    for (first, second, follows), story in zip(pairs, told):
        assert story.text.startswith(first)
        assert story.text.startswith(f"{first} {second}") == follows
