"""How words change: Spanish verbs by person and tense, adjectives and nouns by gender and number, and the few English endings."""

from __future__ import annotations

from functools import cache

__all__ = [
    "PERSONS",
    "a_or_an",
    "agree",
    "conjugate",
    "gerund",
    "plural",
    "english_plural",
    "ing",
    "past",
    "third_person",
]

PERSONS = ("1s", "2s", "3s", "1p", "3p")  # yo, tú, él/ella, nosotros, ellos/ellas/ustedes

_ENDINGS = {
    "present": {"ar": "o as a amos an", "er": "o es e emos en", "ir": "o es e imos en"},
    "preterite": {"ar": "é aste ó amos aron", "er": "í iste ió imos ieron", "ir": "í iste ió imos ieron"},
    "imperfect": {"ar": "aba abas aba ábamos aban", "er": "ía ías ía íamos ían", "ir": "ía ías ía íamos ían"},
    "future": {"ar": "é ás á emos án", "er": "é ás á emos án", "ir": "é ás á emos án"},
}
# What the stressed vowel of the stem becomes in the present, wherever the stress falls on it (everywhere but nosotros).
_STEM_CHANGE = {
    "cerrar": ("e", "ie"),
    "empezar": ("e", "ie"),
    "entender": ("e", "ie"),
    "pensar": ("e", "ie"),
    "perder": ("e", "ie"),
    "querer": ("e", "ie"),
    "tener": ("e", "ie"),
    "venir": ("e", "ie"),
    "pedir": ("e", "i"),
    "servir": ("e", "i"),
    "dormir": ("o", "ue"),
    "encontrar": ("o", "ue"),
    "poder": ("o", "ue"),
    "volver": ("o", "ue"),
    "jugar": ("u", "ue"),
}
# Verbs in -ir also weaken that vowel in the third persons of the preterite and in the gerund: durmió, pidiendo.
_WEAKENED = {"dormir": ("o", "u"), "pedir": ("e", "i"), "servir": ("e", "i"), "venir": ("e", "i")}
_FIRST_PERSON = {
    "conocer": "conozco",
    "hacer": "hago",
    "poner": "pongo",
    "salir": "salgo",
    "tener": "tengo",
    "traer": "traigo",
    "venir": "vengo",
}
_STRONG_PRETERITE = {
    "estar": "estuv",
    "poder": "pud",
    "poner": "pus",
    "querer": "quis",
    "tener": "tuv",
    "traer": "traj",
    "venir": "vin",
}
_FUTURE_STEM = {
    "hacer": "har",
    "poder": "podr",
    "poner": "pondr",
    "querer": "querr",
    "salir": "saldr",
    "tener": "tendr",
    "venir": "vendr",
}
_IRREGULAR = {
    ("estar", "present"): "estoy estás está estamos están",
    ("hacer", "preterite"): "hice hiciste hizo hicimos hicieron",
    ("ir", "present"): "voy vas va vamos van",
    ("ir", "preterite"): "fui fuiste fue fuimos fueron",
    ("ir", "imperfect"): "iba ibas iba íbamos iban",
    ("ser", "present"): "soy eres es somos son",
    ("ser", "preterite"): "fui fuiste fue fuimos fueron",
    ("ser", "imperfect"): "era eras era éramos eran",
    ("ver", "present"): "veo ves ve vemos ven",
    ("ver", "preterite"): "vi viste vio vimos vieron",
    ("ver", "imperfect"): "veía veías veía veíamos veían",
}
_IRREGULAR_GERUND = {"ir": "yendo", "poder": "pudiendo"}


@cache
def conjugate(verb: str, tense: str, person: str) -> str:
    """The form of a Spanish verb, given its infinitive, for a tense ("present", "preterite", "imperfect", "future") and a person.

    >>> conjugate("tener", "present", "1s"), conjugate("dormir", "preterite", "3p"), conjugate("hacer", "future", "1p")
    ('tengo', 'durmieron', 'haremos')
    """
    which = PERSONS.index(person)
    if (verb, tense) in _IRREGULAR:
        return _IRREGULAR[verb, tense].split()[which]
    stem, kind = verb[:-2], verb[-2:]
    if tense == "present":
        if person == "1s" and verb in _FIRST_PERSON:
            return _FIRST_PERSON[verb]
        if person != "1p" and verb in _STEM_CHANGE:
            stem = _change_last_vowel(stem, *_STEM_CHANGE[verb])
    elif tense == "future":
        stem = _FUTURE_STEM.get(verb, verb)
    elif tense == "preterite":
        return _preterite(verb, which)
    return stem + _ENDINGS[tense][kind].split()[which]


def _preterite(verb: str, which: int) -> str:
    stem, kind = verb[:-2], verb[-2:]
    third = PERSONS[which] in ("3s", "3p")
    if verb in _STRONG_PRETERITE:
        strong = _STRONG_PRETERITE[verb]
        last = "eron" if strong.endswith("j") else "ieron"
        return strong + ("e", "iste", "o", "imos", last)[which]
    if verb in _WEAKENED and third:
        stem = _change_last_vowel(stem, *_WEAKENED[verb])
    ending = _ENDINGS["preterite"][kind].split()[which]
    if kind != "ar" and stem[-1] in "aeo":  # leer: leyó, but leíste
        ending = "y" + ending[1:] if third else "í" + ending[1:]
    if kind == "ar" and ending == "é":
        for written, before_e in (("c", "qu"), ("g", "gu"), ("z", "c")):  # busqué, llegué, empecé
            if stem.endswith(written):
                stem = stem[:-1] + before_e
                break
    return stem + ending


@cache
def gerund(verb: str) -> str:
    """The Spanish gerund.

    >>> gerund("comer"), gerund("leer"), gerund("dormir")
    ('comiendo', 'leyendo', 'durmiendo')
    """
    if verb in _IRREGULAR_GERUND:
        return _IRREGULAR_GERUND[verb]
    stem, kind = verb[:-2], verb[-2:]
    if verb in _WEAKENED:
        stem = _change_last_vowel(stem, *_WEAKENED[verb])
    if kind == "ar":
        return stem + "ando"
    return stem + ("yendo" if stem[-1] in "aeo" else "iendo")


def _change_last_vowel(stem: str, old: str, new: str) -> str:
    before, _, after = stem.rpartition(old)
    return before + new + after


@cache
def plural(word: str) -> str:
    """The plural of a Spanish noun or adjective.

    >>> plural("casa"), plural("lápiz"), plural("jardín"), plural("joven"), plural("paraguas")
    ('casas', 'lápices', 'jardines', 'jóvenes', 'paraguas')
    """
    if word == "joven":
        return "jóvenes"
    if word.endswith("as"):
        return word
    if word[-1] in "aeiouáéó":
        return word + "s"
    if word.endswith("z"):
        return word[:-1] + "ces"
    for accented, plain in (
        ("án", "an"),
        ("én", "en"),
        ("ín", "in"),
        ("ón", "on"),
        ("ún", "un"),
        ("és", "es"),
        ("ús", "us"),
    ):
        if word.endswith(accented):
            return word[:-2] + plain + "es"
    return word + "es"


@cache
def agree(adjective: str, gender: str, is_plural: bool) -> str:
    """A Spanish adjective, given in the masculine singular, made to agree with a noun of `gender` "m" or "f".

    >>> agree("rojo", "f", True), agree("azul", "f", True), agree("feliz", "m", True)
    ('rojas', 'azules', 'felices')
    """
    form = adjective[:-1] + "a" if gender == "f" and adjective.endswith("o") else adjective
    return plural(form) if is_plural else form


_ENGLISH_PLURAL = {"man": "men", "woman": "women", "child": "children"}
_ENGLISH_PAST = {
    "be": "was",
    "break": "broke",
    "bring": "brought",
    "buy": "bought",
    "come": "came",
    "do": "did",
    "draw": "drew",
    "drink": "drank",
    "eat": "ate",
    "find": "found",
    "go": "went",
    "have": "had",
    "know": "knew",
    "leave": "left",
    "lose": "lost",
    "make": "made",
    "read": "read",
    "run": "ran",
    "see": "saw",
    "sell": "sold",
    "sing": "sang",
    "sleep": "slept",
    "wear": "wore",
    "write": "wrote",
}
_DOUBLED = {"run", "travel"}


def english_plural(noun: str) -> str:
    """The plural of an English noun, such as "boxes", "libraries" or "women"."""
    *before, last = noun.split()
    if last in _ENGLISH_PLURAL:
        last = _ENGLISH_PLURAL[last]
    elif last.endswith(("s", "x", "ch", "sh")) or last in ("tomato", "potato"):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return " ".join([*before, last])


def third_person(verb: str) -> str:
    """The English form for he, she and it: "goes", "washes", "studies", "looks for"."""
    first, *rest = verb.split()
    if first in ("have", "be"):
        first = {"have": "has", "be": "is"}[first]
    elif first.endswith(("s", "x", "ch", "sh", "o")):
        first += "es"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    else:
        first += "s"
    return " ".join([first, *rest])


def past(verb: str) -> str:
    """The English past: "ate", "opened", "studied", "looked for"."""
    first, *rest = verb.split()
    if first in _ENGLISH_PAST:
        first = _ENGLISH_PAST[first]
    elif first in _DOUBLED:
        first += first[-1] + "ed"
    elif first.endswith("e"):
        first += "d"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ied"
    else:
        first += "ed"
    return " ".join([first, *rest])


def ing(verb: str) -> str:
    """The English form in -ing: "writing", "running", "looking for"."""
    first, *rest = verb.split()
    if first in _DOUBLED:
        first += first[-1]
    elif first.endswith("e") and first != "be":
        first = first[:-1]
    return " ".join([first + "ing", *rest])


def a_or_an(following: str) -> str:
    """ "an" before a vowel sound; every word of the lexicon that begins with a vowel letter also sounds like it."""
    return ("an " if following[0] in "aeiou" else "a ") + following
