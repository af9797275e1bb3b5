"""The kinds of sentences that the grammar knows. Each is a product of heads and tails, so that its size is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from .clauses import FORMS, Clause, Key, Phrase, clauses, english, noun_phrases, spanish, with_preposition
from .inflection import agree, conjugate, english_plural, plural
from .lexicon import (
    ACTIVITIES,
    ADJECTIVES,
    BESIDE,
    COMPARATIVES,
    ESTAR,
    FEELINGS,
    LIKE,
    MODALS,
    MOTIONS,
    NUMBERS,
    PEOPLE,
    PERSON_VERBS,
    PLACED,
    SER,
    STATE,
    SUBJECTS,
    TENER,
    VERBS,
    Noun,
    Subject,
    Verb,
    nouns_of,
)

__all__ = ["FAMILIES", "Block"]


class Block(NamedTuple):
    """All sentences that a head (mostly a clause) makes with a tail (mostly what follows its verb)."""

    heads: Sequence[Any]
    tails: Sequence[Phrase]
    render: Callable[[Any, Phrase], tuple[str, str]]


_OBJECT_DETERMINERS = ("the", "a", "", "my", "this", "these", "two", "three")


class Frame(NamedTuple):
    """The head of a sentence without a subject of its own."""

    tense: str
    form: str
    about: Any = None
    keys: tuple[Key, ...] = ()


def _as_subject(phrase: Phrase) -> Subject:
    return Subject(phrase.en, phrase.es, "3p" if phrase.is_plural else "3s", phrase.gender)


def _plain(clause: Clause, tail: Phrase) -> tuple[str, str]:
    return english(clause, tail.en), spanish(clause, tail.es)


def _objects(verb: Verb, determiners: Sequence[str] = _OBJECT_DETERMINERS, *, described: bool = True) -> list[Phrase]:
    """What the verb can be done to, each phrase naming the verb and the noun that it would bring together."""
    found = []
    for noun in nouns_of(verb.objects):
        wanted = ("", "the", "my") if noun.kind == "drink" else determiners
        adjectives = ADJECTIVES["beside"][noun.kind] if described else {}
        for phrase in noun_phrases(noun, wanted, adjectives):
            found.append(phrase._replace(keys=(("object", verb.en, noun.en), *phrase.keys)))
    return found


def actions() -> Iterator[Block]:
    """ "my sister is not going to buy the red car"."""
    for verb in VERBS.values():
        yield Block(clauses(SUBJECTS, verb), _objects(verb), _plain)


def people() -> Iterator[Block]:
    """ "we visited the king": a person as the object has the preposition a."""
    for verb in PERSON_VERBS:
        tails = [Phrase(p.en, with_preposition("a", p.es), keys=(("object", verb.en, p.en),)) for p in PEOPLE]
        yield Block(clauses(SUBJECTS, verb), tails, _plain)


def object_pronouns() -> Iterator[Block]:
    """ "they are waiting for us": the pronoun stands before the Spanish verb."""

    def render(clause: Clause, tail: Phrase) -> tuple[str, str]:
        return english(clause, tail.en), spanish(clause, "", before=tail.es)

    others = [("him", "lo"), ("her", "la"), ("them", "los")]
    for verb in PERSON_VERBS:
        for third, pronouns in ((True, [("me", "me"), ("you", "te"), ("us", "nos"), *others]), (False, others)):
            tails = [Phrase(en, es, keys=(("object", verb.en, en),)) for en, es in pronouns]
            yield Block(clauses([s for s in SUBJECTS if s.third == third], verb), tails, render)


def _with_adjective(clause: Clause, tail: Phrase) -> tuple[str, str]:
    subject = clause.subject
    adjective = agree(tail.es, subject.gender, subject.person in ("1p", "3p"))
    return english(clause, tail.en), spanish(clause, adjective, subject_last=True)


def _people_are(verb: Verb) -> Iterator[Block]:
    """ "are the girls tired?" (estar) and "we are not rich" (ser)."""
    tails = [Phrase(en, es) for en, es in ADJECTIVES[verb.es]["person"].items()]
    yield Block(clauses(SUBJECTS, verb), tails, _with_adjective)


def _things_are(verb: Verb) -> Iterator[Block]:
    """ "the door was not open" (estar) and "these books are long" (ser)."""
    pointing = ("the", "this", "these", "that", "those")
    for kind, adjectives in ADJECTIVES[verb.es].items():
        for noun in nouns_of((kind,)):
            determiners = (
                ("the", "my") if kind == "drink" else pointing if kind == "place" else ("my", "your", *pointing)
            )
            subjects = [_as_subject(phrase) for phrase in noun_phrases(noun, determiners)]
            tails = [Phrase(en, es, keys=(("adjective", noun.en, en),)) for en, es in adjectives.items()]
            yield Block(clauses(subjects, verb), tails, _with_adjective)


def _where(noun: Noun) -> str:
    return {"beach": "on", "station": "at", "airport": "at", "market": "at", "school": "at", "bank": "at"}.get(
        noun.en, "in"
    )


def _spots(noun: Noun) -> list[Phrase]:
    """Where something can be that is at, in, on, under or beside a place or a piece of furniture."""
    the = noun_phrases(noun, ("the",))[0]
    if noun.kind in ("place", "room"):
        prepositions = {_where(noun): "en", **BESIDE}
    else:
        prepositions = {"on": "sobre", "under": "debajo de", **BESIDE}
    return [
        Phrase(f"{en} {the.en}", with_preposition(es, the.es), keys=(("spot", en, noun.en),))
        for en, es in prepositions.items()
    ]


def _all_spots(*kinds: str) -> list[Phrase]:
    return [spot for noun in nouns_of(kinds) for spot in _spots(noun)]


def whereabouts() -> Iterator[Block]:
    """ "Ana was not near the station"."""
    yield Block(clauses(SUBJECTS, ESTAR), _all_spots("place", "room"), _plain)


def locations() -> Iterator[Block]:
    """ "are the keys under the table?"."""
    for noun in nouns_of(PLACED):
        subjects = [_as_subject(phrase) for phrase in noun_phrases(noun, ("the", "my", "your"))]
        yield Block(clauses(subjects, ESTAR), _all_spots("place", "room", "table", "chair", "bed"), _plain)


def motions() -> Iterator[Block]:
    """ "we went to the market yesterday": a + el = al, de + el = del."""
    for verb, preposition in MOTIONS:
        tails = [
            Phrase(place.en, with_preposition(preposition, place.es), keys=(("object", verb.en, noun.en), *place.keys))
            for noun in nouns_of(("place",))
            for place in noun_phrases(noun, ("the", "this", "our"), ADJECTIVES["beside"]["place"])
            if not place.is_plural
        ]
        yield Block(clauses(SUBJECTS, verb), tails, _plain)


def feelings() -> Iterator[Block]:
    """ "are you hungry?" and "my brother is ten years old": where English is, Spanish has."""

    def render(clause: Clause, tail: Phrase) -> tuple[str, str]:
        return english(clause, tail.en), spanish(clause, tail.es, subject_last=True)

    tails = [Phrase(en, es) for en, es in FEELINGS]
    tails += [Phrase(f"{en} years old", f"{es} años") for en, es in NUMBERS]
    yield Block(clauses(SUBJECTS, TENER), tails, render)


def wishes() -> Iterator[Block]:
    """ "can you open the door?", "she has to go to the bank"."""
    tails = []
    for verb in VERBS.values():
        if verb.past == "preterite" and verb.en not in ("lose", "break"):
            for phrase in _objects(verb, ("the", "a", "my"), described=False):
                tails.append(phrase._replace(en=f"{verb.en} {phrase.en}", es=f"{verb.es} {phrase.es}"))
    for verb, preposition in MOTIONS:
        for noun in nouns_of(("place",)):
            place = noun_phrases(noun, ("the",))[0]
            es = f"{verb.es} {with_preposition(preposition, place.es)}"
            tails.append(Phrase(f"{verb.en} {place.en}", es, keys=(("object", verb.en, noun.en),)))
    tails += [Phrase(verb.en, verb.es) for verb in ACTIVITIES if verb.en != "live"]
    for modal in MODALS:
        yield Block(clauses(SUBJECTS, modal), tails, _plain)


def likings() -> Iterator[Block]:
    """ "Ana does not like these oranges": what is liked is the subject in Spanish, and things in general have the article.

    What one likes in general is past as a habit (me gustaban las flores), and one thing as an event (me gustó tu flor).
    """
    general, single = [Phrase(f"to {verb.en}", verb.es) for verb in ACTIVITIES if verb.en != "live"], []
    for noun in nouns_of(LIKE.objects):
        key = (("object", "like", noun.en),)
        if noun.kind == "drink":
            general.append(Phrase(noun.en, noun_phrases(noun, ("the",))[0].es, keys=key))
        else:
            (everyone,) = (phrase for phrase in noun_phrases(noun, ("the",)) if phrase.is_plural)
            general.append(everyone._replace(en=english_plural(noun.en), keys=key))
            some = noun_phrases(noun, ("the", "your", "this", "these"), ADJECTIVES["beside"][noun.kind])
            single += [phrase._replace(keys=key + phrase.keys) for phrase in some]
    heads = clauses([s for s in SUBJECTS if not s.en.endswith("and I")], LIKE)
    yield Block(heads, general, _liking)
    yield Block([clause._replace(verb=LIKE._replace(past="preterite")) for clause in heads], single, _liking)


def _liking(clause: Clause, tail: Phrase) -> tuple[str, str]:
    whom = {"1s": "me", "2s": "te", "1p": "nos", "3s": "le", "3p": "les"}[clause.subject.person]
    to = with_preposition("a", clause.subject.es) + " " if clause.subject.es else ""
    no = "no " if clause.form == "negation" else ""
    tense = "present" if clause.tense == "present" else clause.verb.past
    es = f"{to}{no}{whom} {conjugate('gustar', tense, '3p' if tail.is_plural else '3s')} {tail.es}"
    return english(clause, tail.en), f"¿{es}?" if clause.form == "question" else es


def activities() -> Iterator[Block]:
    """ "do you work at the station?", "she danced with the queen"."""
    for verb in ACTIVITIES:
        around = [Phrase("here", "aquí"), Phrase("there", "allí"), Phrase("at home", "en casa")]
        if verb.en != "live":
            around.append(Phrase("", ""))
        if verb.en != "sleep":
            around += [Phrase(f"with {p.en}", f"con {p.es}", keys=(("object", verb.en, p.en),)) for p in PEOPLE]
        tails = []
        for noun in nouns_of(verb.objects):
            for phrase in noun_phrases(noun, ("the", "this", "our"), ADJECTIVES["beside"]["place"]):
                if not phrase.is_plural:
                    keys = (("object", verb.en, noun.en), *phrase.keys)
                    tails.append(Phrase(f"{_where(noun)} {phrase.en}", f"en {phrase.es}", keys=keys))
        for some in (around, tails):
            yield Block(clauses(SUBJECTS, verb), some, _plain)


def existence() -> Iterator[Block]:
    """ "there are three birds in the garden", "there is no cat"...: hay, había and habrá have no plural."""

    def render(frame: Frame, tail: Phrase) -> tuple[str, str]:
        now, then = ("are", "were") if tail.is_plural else ("is", "was")
        helper = {"present": now, "past": then, "future": "will"}[frame.tense]
        be = " be" if frame.tense == "future" else ""
        hay = {"present": "hay", "past": "había", "future": "habrá"}[frame.tense]
        if frame.form == "question":
            return f"{helper} there{be} {tail.en}?", f"¿{hay} {tail.es}?"
        if frame.form == "negation":
            return f"there {helper}{be} no {tail.en}", f"no {hay} {tail.es}"
        return f"there {helper}{be} {tail.en}", f"{hay} {tail.es}"

    for forms, determiners in ((("statement", "question"), ("a", "two", "three", "many")), (("negation",), ("",))):
        tails = []
        for noun in nouns_of(("animal", "thing", "container")):
            for phrase in noun_phrases(noun, determiners):
                for place in nouns_of(("place", "room")):
                    spot = _spots(place)[0]
                    keys = (("there", noun.en, place.en),)
                    tails.append(
                        Phrase(f"{phrase.en} {spot.en}", f"{phrase.es} {spot.es}", noun.gender, phrase.is_plural, keys)
                    )
        yield Block([Frame(tense, form) for tense in STATE for form in forms], tails, render)


def _asked(clause: Clause, tail: Phrase) -> tuple[str, str]:
    return english(clause, "", asking=tail.en), spanish(clause, "", asking=tail.es)


def questions() -> Iterator[Block]:
    """ "what did Ana buy?", "who has the key?", "how many books do you want?", "where does she work?"."""
    for verb in VERBS.values():
        asked = clauses(SUBJECTS, verb, ("question",))
        yield Block(asked, [Phrase("what", "qué")], _asked)
        counted = [noun for noun in nouns_of(verb.objects) if noun.kind != "drink"]
        if counted:
            yield Block(asked, [_how_many(verb, noun) for noun in counted], _asked)
        yield Block(clauses([Subject("who", "quién", "3s")], verb, ("statement",)), _objects(verb), _who)
    for verb in ACTIVITIES:
        words = [("when", "cuándo"), ("where", "dónde"), ("why", "por qué")]
        yield Block(clauses(SUBJECTS, verb, ("question",)), [Phrase(en, es) for en, es in words], _asked)
    yield from _where_is()


def _how_many(verb: Verb, noun: Noun) -> Phrase:
    how_many = "cuántas" if noun.gender == "f" else "cuántos"
    return Phrase(
        f"how many {english_plural(noun.en)}", f"{how_many} {plural(noun.es)}", keys=(("object", verb.en, noun.en),)
    )


def _who(clause: Clause, tail: Phrase) -> tuple[str, str]:
    return english(clause, tail.en) + "?", f"¿{spanish(clause, tail.es)}?"


def _where_is() -> Iterator[Block]:
    def render(frame: Frame, tail: Phrase) -> tuple[str, str]:
        clause = Clause(_as_subject(tail), ESTAR, frame.tense, "question")
        return english(clause, "", asking="where"), spanish(clause, "", asking="dónde")

    kinds = ("food", "text", "thing", "container", "clothes", "animal")
    nouns = nouns_of(kinds)
    things = [p for n in nouns for p in noun_phrases(n, ("the", "my", "your", "our"), ADJECTIVES["beside"][n.kind])]
    persons = [Phrase(s.en, s.es, s.gender, s.person == "3p") for s in (*SUBJECTS, *PEOPLE) if s.third]
    yield Block([Frame("present", "question"), Frame("past", "question")], things + persons, render)


def identities() -> Iterator[Block]:
    """ "this is my house", "are those the king's horses?"."""

    def render(frame: Frame, tail: Phrase) -> tuple[str, str]:
        one, many, este = frame.about
        pointed, be, ser = (many, "are", "son") if tail.is_plural else (one, "is", "es")
        pointer = este + {"m": ("e", "os"), "f": ("a", "as")}[tail.gender][tail.is_plural]
        if frame.form == "question":
            return f"{be} {pointed} {tail.en}?", f"¿{ser} {pointer} {tail.es}?"
        no, not_ = ("no ", "not ") if frame.form == "negation" else ("", "")
        return f"{pointed} {be} {not_}{tail.en}", f"{pointer} {no}{ser} {tail.es}"

    tails = []
    for noun in nouns_of(("food", "text", "thing", "container", "clothes", "animal")):
        tails += noun_phrases(noun, ("my", "your", "our"), ADJECTIVES["beside"][noun.kind])
        for owner in (*SUBJECTS, *PEOPLE):
            if owner.third and owner.person == "3s" and owner.en not in ("he", "she"):
                for phrase in noun_phrases(noun, ("the",)):
                    en = f"{owner.en}'s {phrase.en[4:]}"
                    es = f"{phrase.es} {with_preposition('de', owner.es)}"
                    tails.append(phrase._replace(en=en, es=es, keys=(("owner", owner.en, noun.en),)))
    heads = [
        Frame("present", form, words) for form in FORMS for words in (("this", "these", "est"), ("that", "those", "es"))
    ]
    yield Block(heads, tails, render)


def comparisons() -> Iterator[Block]:
    """ "this car is not more expensive than that guitar", "is she taller than Pablo?"."""
    for kind in COMPARATIVES:
        if kind == "person":
            yield Block(clauses(SUBJECTS, SER), _compared(kind, PEOPLE), _comparison)
            continue
        others = [_as_subject(phrase) for noun in nouns_of((kind,)) for phrase in noun_phrases(noun, ("that",))]
        for noun in nouns_of((kind,)):
            subjects = [_as_subject(phrase) for phrase in noun_phrases(noun, ("the", "this", "these"))]
            yield Block(clauses(subjects, SER), _compared(kind, others, noun), _comparison)


def _compared(kind: str, others: Sequence[Subject], noun: Noun | None = None) -> list[Phrase]:
    """ "more expensive than that guitar", with the Spanish adjective first, since it still has to agree."""
    tails = []
    for adjective, comparative in COMPARATIVES[kind]:
        keys = (("adjective", noun.en, adjective),) if noun else ()
        for other in others:
            es = f"{ADJECTIVES['ser'][kind][adjective]} que {other.es}"
            tails.append(Phrase(f"{comparative} than {other.en}", es, keys=(*keys, ("than", adjective, other.en))))
    return tails


def _comparison(clause: Clause, tail: Phrase) -> tuple[str, str]:
    adjective, _, than = tail.es.partition(" ")
    agreed = agree(adjective, clause.subject.gender, clause.subject.person in ("1p", "3p"))
    return english(clause, tail.en), spanish(clause, f"más {agreed} {than}")


FAMILIES: dict[str, Callable[[], Iterator[Block]]] = {
    "action": actions,
    "person": people,
    "object pronoun": object_pronouns,
    "character": partial(_people_are, SER),
    "mood": partial(_people_are, ESTAR),
    "quality": partial(_things_are, SER),
    "state": partial(_things_are, ESTAR),
    "whereabouts": whereabouts,
    "location": locations,
    "motion": motions,
    "feeling": feelings,
    "wish": wishes,
    "liking": likings,
    "activity": activities,
    "existence": existence,
    "question": questions,
    "identity": identities,
    "comparison": comparisons,
}
