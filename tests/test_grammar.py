"""The grammar's pairs: counted exactly, each source once, agreement right in every sentence, and a held-out part that training never sees."""

import re
import unicodedata

import pytest
from minigrad_models.corpora.clauses import Clause
from minigrad_models.corpora.grammar import (
    FAMILIES,
    Example,
    grammar_examples,
    grammar_pairs,
    grammar_size,
    is_held_out,
)
from minigrad_models.corpora.inflection import PERSONS, conjugate, gerund
from minigrad_models.corpora.phrasebook import phrasebook
from support.spanish_table import FORMS, TENSES, verbs

from minigrad.data import normalise
from minigrad.errors import ArgumentError

TRAIN = grammar_examples("train", 50_000, seed=1)
HELDOUT = grammar_examples("heldout", 20_000, seed=2)
ALL = TRAIN + HELDOUT
SMALL = [family for family in FAMILIES if grammar_size(families=[family]) < 80_000]

# Spanish noun -> gender, written here once more; its plural and its articles follow.
MASCULINE = "libro poema coche mapa reloj lápiz paraguas huevo pastel sombrero vestido perro pájaro caballo jardín hospital baño"
FEMININE = "manzana carta llave foto mesa ciudad estación camisa falda vaca tortuga puerta caja cama iglesia cocina"
PLURALS = {
    "reloj": "relojes",
    "lápiz": "lápices",
    "paraguas": "paraguas",
    "jardín": "jardines",
    "hospital": "hospitales",
}
PLURALS |= {"ciudad": "ciudades", "estación": "estaciones", "pastel": "pasteles"}
DETERMINERS = {
    ("m", False): "el un este ese mi tu nuestro al del",
    ("f", False): "la una esta esa mi tu nuestra",
    ("m", True): "los unos estos esos mis tus nuestros dos tres muchos cuántos",
    ("f", True): "las unas estas esas mis tus nuestras dos tres muchas cuántas",
}
ADJECTIVES = {
    (
        "m",
        False,
    ): "rojo blanco nuevo viejo pequeño caro barato largo corto hermoso moderno grande azul verde fácil interesante fuerte",
    (
        "f",
        False,
    ): "roja blanca nueva vieja pequeña cara barata larga corta hermosa moderna grande azul verde fácil interesante fuerte",
    (
        "m",
        True,
    ): "rojos blancos nuevos viejos pequeños caros baratos largos cortos hermosos modernos grandes azules verdes fáciles",
    (
        "f",
        True,
    ): "rojas blancas nuevas viejas pequeñas caras baratas largas cortas hermosas modernas grandes azules verdes fáciles",
}
ANY_DETERMINER = {word for words in DETERMINERS.values() for word in words.split()}
ANY_ADJECTIVE = {word for words in ADJECTIVES.values() for word in words.split()}


def tokens(text: str) -> list[str]:
    return text.strip("¿?").split()


def of(family: str) -> list[Example]:
    found = [example for example in ALL if example.family == family]
    assert len(found) > 500
    return found


@pytest.mark.parametrize(("verb", "forms", "last"), list(verbs()), ids=[verb for verb, *_ in verbs()])
def test_verbs_are_conjugated_as_in_the_table(verb, forms, last):
    assert {(tense, person): conjugate(verb, tense, person) for tense in TENSES for person in PERSONS} == forms
    assert gerund(verb) == last


def test_there_are_more_than_fifty_thousand_pairs_and_the_count_is_exact():
    """The kinds of sentences that are small enough are written out whole: no source twice, and as many as are claimed."""
    sources: set[str] = set()
    for family in SMALL:
        size = 0
        for split in ("train", "heldout"):
            pairs = grammar_pairs(split, grammar_size(split, [family]), families=[family])
            sources |= {source.lower() for source, _ in pairs}
            size += len(pairs)
        assert size == grammar_size(families=[family])
    assert len(sources) == sum(grammar_size(families=[family]) for family in SMALL) > 50_000
    assert grammar_size("train") > 10 * grammar_size(families=SMALL)


def test_the_size_is_the_product_of_heads_and_tails():
    blocks = [block for make in FAMILIES.values() for block in make()]
    assert grammar_size() == sum(len(block.heads) * len(block.tails) for block in blocks)
    assert grammar_size("train") + grammar_size("heldout") == grammar_size()


def test_every_source_is_drawn_once_and_has_one_target():
    assert len({example.source.lower().rstrip("?") for example in ALL}) == len(ALL)
    assert all(normalise(example.source) == example.source.lower().rstrip("?") for example in ALL[::10])


def test_heads_and_tails_of_a_block_never_give_the_same_source():
    for make in FAMILIES.values():
        for block in make():
            assert len({block.render(head, block.tails[0])[0] for head in block.heads}) == len(block.heads)
            assert len({block.render(block.heads[-1], tail)[0] for tail in block.tails}) == len(block.tails)


def test_where_grammar_and_phrasebook_share_a_source_they_agree_and_it_is_not_held_out():
    """Complete: a tail that is in no phrase of the book cannot end in one, nor can a subject that is in none begin it."""
    book = {normalise(source): target for source, target in phrasebook()}
    spans = {" ".join(w[i:j]) for w in map(str.split, book) for i in range(len(w)) for j in range(i, len(w) + 1)}
    shared = 0
    for make in FAMILIES.values():
        for block in make():
            tails = [tail for tail in block.tails if tail.en.lower() in spans]
            heads = [h for h in block.heads if not isinstance(h, Clause) or h.subject.en.lower() in spans]
            for head in heads:
                for tail in tails:
                    source, target = block.render(head, tail)
                    if normalise(source) in book:
                        shared += 1
                        assert book[normalise(source)] == target
                        assert not any(map(is_held_out, (*head.keys, *tail.keys))), source
    assert shared >= 20


def test_text_is_nfc_and_holds_only_letters_of_its_language():
    for example in ALL:
        assert unicodedata.is_normalized("NFC", example.target)
        assert re.fullmatch(r"[A-Za-z' ]+\??", example.source), example
        assert re.fullmatch(r"¿[A-Za-záéíóúñ ]+\?|[A-Za-záéíóúñ ]+", example.target), example
        assert "  " not in example.source + example.target
        assert max(len(tokens(example.source)), len(tokens(example.target))) <= 16


def test_questions_and_negations_are_so_in_both_languages():
    for source, target, *_ in ALL:
        assert source.endswith("?") == target.startswith("¿") == target.endswith("?")
        assert bool({"not", "cannot", "no"} & set(tokens(source))) == ("no" in tokens(target)), source


def test_determiners_nouns_and_adjectives_agree_in_gender_and_number():
    expected = {}
    for gender, nouns in (("m", MASCULINE), ("f", FEMININE)):
        for noun in nouns.split():
            expected[noun] = {(gender, False)}
            expected.setdefault(PLURALS.get(noun, noun + "s"), set()).add((gender, True))
    checked = dict.fromkeys(expected, 0)
    for example in ALL:
        words = ["", *tokens(example.target), ""]
        for before, noun, after in zip(words, words[1:], words[2:]):
            if noun in expected:
                checked[noun] += 1
                if before in ANY_DETERMINER:
                    assert any(before in DETERMINERS[kind].split() for kind in expected[noun]), example
                if after in ANY_ADJECTIVE and example.family not in ("quality", "state"):
                    assert any(after in ADJECTIVES[kind].split() for kind in expected[noun]), example
    assert min(checked.values()) > 20


def test_a_thing_that_is_described_decides_the_form_of_the_adjective():
    genders = dict.fromkeys(MASCULINE.split(), "m") | dict.fromkeys(FEMININE.split(), "f")
    checked = 0
    for example in of("quality"):
        nouns = [word for word in tokens(example.target) if word in genders and word != "paraguas"]
        for adjective in ANY_ADJECTIVE & set(tokens(example.target)) if nouns else ():
            checked += 1
            assert adjective in ADJECTIVES[genders[nouns[0]], False].split(), example
    assert checked > 200


@pytest.mark.parametrize(
    ("subject", "adjective"),
    [
        ("I", "cansado"),
        ("we", "cansados"),
        ("she", "cansada"),
        ("Ana and Elena", "cansadas"),
        ("Ana and Luis", "cansados"),
        ("the women", "cansadas"),
    ],
)
def test_people_decide_the_form_of_the_adjective(subject, adjective):
    told = [e for e in of("mood") if re.match(rf"{subject} .*\btired$", e.source)]
    assert told and all(tokens(example.target)[-1] == adjective for example in told)


def test_a_and_de_contract_with_el_and_never_with_another_article():
    targets = [example.target for example in ALL]
    assert not [t for t in targets if re.search(r"\b(a|de) el\b|\b(al|del) (el|la|los|las|este|mi|nuestro)\b", t)]
    assert sum(" al " in t for t in targets) > 500 and sum(" del " in t for t in targets) > 500


def test_water_takes_el_and_feminine_adjectives():
    water = [example.target for example in ALL if "agua" in tokens(example.target)]
    assert any("el agua" in target for target in water)
    assert not [target for target in water if re.search(r"\bla agua|agua frío", target)]


SUBJECT_FORMS = {
    "I": ("", "1s"),
    "you": ("", "2s"),
    "we": ("", "1p"),
    "he": ("él", "3s"),
    "she": ("ella", "3s"),
    "they": ("ellos", "3p"),
    "you all": ("ustedes", "3p"),
    "Ana": ("Ana", "3s"),
    "my parents": ("mis padres", "3p"),
    "the boy": ("el niño", "3s"),
    "the women": ("las mujeres", "3p"),
    "Carlos and I": ("Carlos y yo", "1p"),
}
# English base, third person, past; Spanish verb and the tense of its past.
ACTION_FORMS = [
    ("eat", "eats", "ate", "comer", "preterite"),
    ("buy", "buys", "bought", "comprar", "preterite"),
    ("make", "makes", "made", "hacer", "preterite"),
    ("bring", "brings", "brought", "traer", "preterite"),
    ("see", "sees", "saw", "ver", "preterite"),
    ("find", "finds", "found", "encontrar", "preterite"),
    ("lose", "loses", "lost", "perder", "preterite"),
    ("close", "closes", "closed", "cerrar", "preterite"),
    ("look for", "looks for", "looked for", "buscar", "preterite"),
    ("have", "has", "had", "tener", "imperfect"),
    ("want", "wants", "wanted", "querer", "imperfect"),
]


@pytest.mark.parametrize(
    ("base", "third", "past", "verb", "past_tense"), ACTION_FORMS, ids=[row[0] for row in ACTION_FORMS]
)
def test_subject_verb_and_tense_agree_in_both_languages(base, third, past, verb, past_tense):
    """Every clause of the verb with every subject of the table, as text, against the forms written out above."""
    said = {}
    for block in FAMILIES["action"]():
        if block.heads[0].verb.en == base:
            for head in block.heads:
                if not head.when[0]:
                    said.setdefault(head.subject.en, set()).add(block.render(head, block.tails[0]))
            tail = block.tails[0]
    for subject, (sujeto, person) in SUBJECT_FORMS.items():
        singular = person == "3s"
        present, before, future = (FORMS[verb][tense, person] for tense in ("present", past_tense, "future"))
        does, yo = "does" if singular else "do", f"{sujeto} " if sujeto else ""
        after = f" {sujeto}" if sujeto else ""
        assert said[subject] >= {
            (f"{subject} {third if singular else base} {tail.en}", f"{yo}{present} {tail.es}"),
            (f"{subject} {past} {tail.en}", f"{yo}{before} {tail.es}"),
            (f"{subject} will {base} {tail.en}", f"{yo}{future} {tail.es}"),
            (f"{subject} {does} not {base} {tail.en}", f"{yo}no {present} {tail.es}"),
            (f"{subject} did not {base} {tail.en}", f"{yo}no {before} {tail.es}"),
            (f"{does} {subject} {base} {tail.en}?", f"¿{present}{after} {tail.es}?"),
            (f"did {subject} {base} {tail.en}?", f"¿{before}{after} {tail.es}?"),
            (f"will {subject} {base} {tail.en}?", f"¿{future}{after} {tail.es}?"),
        }


def test_english_has_the_right_be_have_and_article():
    wrong = r"^(he|she|Ana|Luis|Elena|my \w+er) (do|are|were|have)\b|^(they|we|you|you all) (does|is|was|has)\b"
    wrong += r"|^I (is|are|were|does|has)\b|\ba [aeiou]|\ban [^aeiou]"
    assert [example.source for example in ALL if re.search(wrong, example.source)] == []
    assert any(" an " in example.source for example in ALL)


def test_ser_is_for_what_things_are_and_estar_for_how_and_where_they_are():
    ser = {form for (_, _), form in FORMS["ser"].items()}
    estar = {form for (_, _), form in FORMS["estar"].items()}
    for family in ("quality", "character", "identity", "comparison"):
        assert all(ser & set(tokens(e.target)) and not estar - {"esta"} & set(tokens(e.target)) for e in of(family))
    for family in ("state", "mood", "location", "whereabouts"):
        assert all(estar & set(tokens(e.target)) and not ser & set(tokens(e.target)) for e in of(family))
    assert all(set(FORMS["tener"].values()) & set(tokens(e.target)) for e in of("feeling"))


def test_what_is_liked_is_the_subject_in_spanish():
    for example in of("liking"):
        (verb,) = [word for word in tokens(example.target) if word.startswith("gust")]
        liked = tokens(example.target)[tokens(example.target).index(verb) + 1]
        several = liked in ("los", "las", "tus", "estos", "estas")
        assert (verb in ("gustan", "gustaban", "gustaron")) == several, example


def test_object_pronouns_stand_before_the_verb():
    spanish = {"me": "me", "you": "te", "him": "lo", "her": "la", "us": "nos", "them": "los"}
    for example in of("object pronoun"):
        said = re.sub(r" (every day|yesterday|tomorrow|now)$", "", example.source.rstrip("?"))
        pronoun = spanish[said.split()[-1]]
        before = r"¿" if example.target.startswith("¿") else r"([\w ]+ )?"
        assert re.match(rf"{before}(no )?{pronoun} \w+", example.target), example


def test_training_never_sees_a_combination_that_is_held_out():
    assert not [example for example in TRAIN if any(map(is_held_out, example.combinations))]
    assert all(any(map(is_held_out, example.combinations)) for example in HELDOUT)
    assert {e.source for e in TRAIN}.isdisjoint(e.source for e in HELDOUT)


def test_held_out_verbs_and_objects_do_not_meet_in_the_text_of_training_either():
    """Read from the sentences and not from their labels."""
    eaten = {
        "eat": r"\b(eat|eats|ate|eating)\b",
        "buy": r"\b(buy|buys|bought|buying)\b",
        "wear": r"\b(wear|wears|wore|wearing)\b",
    }
    held = {
        key[1:]
        for e in HELDOUT
        for key in e.combinations
        if key[0] == "object" and key[1] in eaten and is_held_out(key)
    }
    assert len(held) >= 5
    for verb, noun in held:
        both = [
            e.source for e in ALL if re.search(eaten[verb], e.source) and re.search(rf"\b{noun}(s|es)?\b", e.source)
        ]
        assert both and not {e.source for e in TRAIN} & set(both)


def test_all_words_of_held_out_sentences_are_learnt_in_training():
    known_sources = {word for e in TRAIN for word in tokens(e.source)}
    known_targets = {word for e in TRAIN for word in tokens(e.target)}
    assert {word for e in HELDOUT for word in tokens(e.source)} <= known_sources
    assert {word for e in HELDOUT for word in tokens(e.target)} <= known_targets


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_a_seed_decides_everything(split):
    assert grammar_pairs(split, 300, seed=5) == grammar_pairs(split, 300, seed=5)
    assert grammar_pairs(split, 300, seed=5) != grammar_pairs(split, 300, seed=6)
    assert len(grammar_pairs(split, 1234)) == 1234
    assert grammar_pairs(split, 0) == []


def test_all_kinds_of_sentences_and_all_persons_are_drawn():
    assert {example.family for example in grammar_examples(n=200)} == set(FAMILIES)
    first = [e for e in of("action") if tokens(e.source)[0] in ("I", "am") or " I " in e.source]
    assert len(first) > len(of("action")) / 8


def test_families_can_be_chosen_and_what_does_not_exist_is_refused_with_the_nearest_name():
    assert {e.family for e in grammar_examples(n=50, families=["mood", "wish"])} == {"mood", "wish"}
    with pytest.raises(ArgumentError, match="'mood'"):
        grammar_pairs(families=["moods"])
    with pytest.raises(ArgumentError, match="'heldout'"):
        grammar_pairs("held-out", 3)
    with pytest.raises(ArgumentError, match="fewer"):
        grammar_pairs("train", grammar_size("train") + 1)
    with pytest.raises(ArgumentError, match="fewer"):
        grammar_pairs("train", -1)
