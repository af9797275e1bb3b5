"""Sentences in two languages from the same parts: noun phrases, and clauses with tense, negation and questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .inflection import a_or_an, agree, conjugate, english_plural, gerund, ing, past, plural, third_person
from .lexicon import Noun, Subject, Verb

__all__ = ["FORMS", "Clause", "Key", "Phrase", "clauses", "english", "noun_phrases", "spanish", "with_preposition"]

Key = tuple[str, ...]
FORMS = ("statement", "negation", "question")

# English determiner -> (masculine, feminine) in the singular, and in the plural; None where it does not exist.
_DETERMINERS: dict[str, tuple[tuple[str, str] | None, tuple[str, str] | None]] = {
    "the": (("el", "la"), ("los", "las")),
    "a": (("un", "una"), None),
    "": (None, ("", "")),
    "my": (("mi", "mi"), ("mis", "mis")),
    "your": (("tu", "tu"), ("tus", "tus")),
    "our": (("nuestro", "nuestra"), ("nuestros", "nuestras")),
    "this": (("este", "esta"), None),
    "these": (None, ("estos", "estas")),
    "that": (("ese", "esa"), None),
    "those": (None, ("esos", "esas")),
    "two": (None, ("dos", "dos")),
    "three": (None, ("tres", "tres")),
    "many": (None, ("muchos", "muchas")),
}
_WHEN = {
    "present": (("", ""), ("every day", "todos los días")),
    "past": (("", ""), ("yesterday", "ayer")),
    "future": (("", ""), ("tomorrow", "mañana")),
    "going": (("", ""), ("tomorrow", "mañana")),
    "progressive": (("", ""), ("now", "ahora")),
}
# Spanish says these with the simple present where English says "is going", "is coming", "is wearing".
_NO_GERUND = {"ir", "venir", "llevar"}


class Phrase(NamedTuple):
    """A piece of a sentence in both languages; `keys` name the combinations of words that it brings together."""

    en: str
    es: str
    gender: str = "m"
    is_plural: bool = False
    keys: tuple[Key, ...] = ()


class Clause(NamedTuple):
    """Who does what, when, and whether it is stated, denied or asked."""

    subject: Subject
    verb: Verb
    tense: str
    form: str
    when: tuple[str, str] = ("", "")

    @property
    def keys(self) -> tuple[Key, ...]:
        """I, you and we are the only subjects of their verb forms, so of theirs only one form of sentence is ever withheld."""
        doing = (self.subject.en, self.verb.es, self.tense)
        return (("doing", *doing),) if self.subject.third else (("doing so", *doing, self.form),)


def clauses(subjects: Iterable[Subject], verb: Verb, forms: Iterable[str] = FORMS) -> list[Clause]:
    """Every clause of a verb with these subjects, in all its tenses and with the adverbs of time that suit them."""
    found = []
    for tense in verb.tenses:
        times = list(_WHEN[tense]) if verb.past == "preterite" else [("", "")]
        if verb.en == "read" and tense == "past":
            times = times[1:]  # "I read the book" would be present and past alike
        found += [Clause(s, verb, tense, form, when) for s in subjects for when in times for form in forms]
    return found


def noun_phrases(noun: Noun, determiners: Iterable[str], adjectives: dict[str, str] | None = None) -> list[Phrase]:
    """Every phrase of a noun with these determiners, singular and plural, alone and with each adjective."""
    found = []
    for determiner in determiners:
        if noun.kind == "drink":
            articles = {"": "", "the": "el" if noun.gender == "m" or noun.en == "water" else "la", "my": "mi"}
            forms = [(articles[determiner], False)]
        else:
            choices = zip(_DETERMINERS[determiner], (False, True))
            forms = [(words["mf".index(noun.gender)], many) for words, many in choices if words is not None]
        for article, many in forms:
            for adjective in ("", *(adjectives or {})):
                found.append(
                    _noun_phrase(noun, determiner, article, many, adjective, (adjectives or {}).get(adjective, ""))
                )
    return found


def _noun_phrase(noun: Noun, determiner: str, article: str, many: bool, adjective: str, adjetivo: str) -> Phrase:
    en = _words(adjective, english_plural(noun.en) if many else noun.en)
    en = a_or_an(en) if determiner == "a" else _words(determiner, en)
    es = _words(article, plural(noun.es) if many else noun.es, agree(adjetivo, noun.gender, many) if adjetivo else "")
    return Phrase(en, es, noun.gender, many, (("adjective", noun.en, adjective),) if adjective else ())


def with_preposition(preposition: str, phrase: str) -> str:
    """A Spanish preposition before a phrase: a + el = al, de + el = del.

    >>> with_preposition("a", "el mercado"), with_preposition("cerca de", "el río"), with_preposition("a", "la casa")
    ('al mercado', 'cerca del río', 'a la casa')
    """
    if phrase.startswith("el ") and preposition.split()[-1] in ("a", "de"):
        return f"{preposition}l {phrase[3:]}"
    return f"{preposition} {phrase}"


def english(clause: Clause, rest: str, *, asking: str = "") -> str:
    """The English sentence, `rest` being what follows the verb and `asking` a question word."""
    subject, form = clause.subject, clause.form
    helper, main = _english_verb(clause)
    if form == "question":
        return _words(asking, helper, subject.en, main, rest, clause.when[0]) + "?"
    if form == "negation":
        helper = "cannot" if helper == "can" else f"{helper} not"
    return _words(subject.en, helper, main, rest, clause.when[0])


def _english_verb(clause: Clause) -> tuple[str, str]:
    """The helping verb, empty in statements that need none, and the rest of the verb."""
    person, verb, tense = clause.subject.person, clause.verb.en, clause.tense
    be_now = "am" if person == "1s" else "is" if person == "3s" else "are"
    if tense == "progressive":
        return be_now, ing(verb)
    if tense == "going":
        return be_now, f"going to {verb}"
    if tense == "future":
        return "will", verb
    if verb == "be":
        return (be_now if tense == "present" else "was" if person in ("1s", "3s") else "were"), ""
    if verb == "can":
        return ("can" if tense == "present" else "could"), ""
    if clause.form != "statement":
        return ("did" if tense == "past" else "does" if person == "3s" else "do"), verb
    if tense == "past":
        return "", past(verb)
    return "", third_person(verb) if person == "3s" else verb


def spanish(clause: Clause, rest: str, *, asking: str = "", before: str = "", subject_last: bool = False) -> str:
    """The Spanish sentence. `before` is an object pronoun; `subject_last` puts the subject of a question after `rest`."""
    subject = clause.subject.es
    group, link = _spanish_verb(clause)
    verb = _words("no" if clause.form == "negation" else "", before, group)
    rest = _words(link, rest)
    when = clause.when[1]
    if clause.form != "question":
        return _words(subject, verb, rest, when)
    order = (rest, subject) if subject_last else (subject, rest)
    return f"¿{_words(asking, verb, *order, when)}?"


def _spanish_verb(clause: Clause) -> tuple[str, str]:
    """The verb, and the word that ties it to an infinitive: tener que."""
    person, tense = clause.subject.person, clause.tense
    verb, _, link = clause.verb.es.partition(" ")
    if tense == "progressive" and verb not in _NO_GERUND:
        group = f"{conjugate('estar', 'present', person)} {gerund(verb)}"
    elif tense == "going":
        group = f"{conjugate('ir', 'present', person)} a {verb}"
    else:
        named = {"past": clause.verb.past, "progressive": "present"}.get(tense, tense)
        group = conjugate(verb, named, person)
    return group, link


def _words(*parts: str) -> str:
    return " ".join(part for part in parts if part)
