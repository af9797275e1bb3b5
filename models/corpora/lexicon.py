"""The words of the grammar: nouns by kind, the adjectives that suit each kind, verbs and what they can be done to, people."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "ACTIVITIES",
    "ADJECTIVES",
    "BESIDE",
    "COMPARATIVES",
    "ESTAR",
    "FEELINGS",
    "LIKE",
    "MODALS",
    "MOTIONS",
    "NOUNS",
    "NUMBERS",
    "PEOPLE",
    "PERSON_VERBS",
    "PLACED",
    "SER",
    "STATE",
    "SUBJECTS",
    "TENER",
    "VERBS",
    "Noun",
    "Subject",
    "Verb",
    "nouns_of",
]


class Noun(NamedTuple):
    """A thing, animal or place; `kind` decides which verbs and adjectives it goes with."""

    en: str
    es: str
    gender: str
    kind: str


class Subject(NamedTuple):
    """Who does something. `es` is empty where Spanish leaves the pronoun out, since the ending of the verb tells who it is."""

    en: str
    es: str
    person: str
    gender: str = "m"
    third: bool = True  # a third person in English too; "you all" is one in Spanish only


class Verb(NamedTuple):
    """`past` names the Spanish past that suits its meaning; `tenses` the ones in which both languages use it alike."""

    en: str
    es: str
    objects: tuple[str, ...]
    past: str
    tenses: tuple[str, ...]


_NOUNS = {
    "food": "apple/manzana/f orange/naranja/f egg/huevo/m cake/pastel/m tomato/tomate/m potato/papa/f cookie/galleta/f "
    "sandwich/sándwich/m salad/ensalada/f pear/pera/f carrot/zanahoria/f",
    "drink": "water/agua/f milk/leche/f coffee/café/m tea/té/m juice/jugo/m",
    "text": "book/libro/m letter/carta/f newspaper/periódico/m poem/poema/m story/cuento/m",
    "thing": "car/coche/m bicycle/bicicleta/f table/mesa/f chair/silla/f lamp/lámpara/f phone/teléfono/m clock/reloj/m "
    "map/mapa/m guitar/guitarra/f umbrella/paraguas/m suitcase/maleta/f pencil/lápiz/m key/llave/f bed/cama/f "
    "computer/computadora/f photo/foto/f",
    "container": "box/caja/f bag/bolsa/f bottle/botella/f",
    "clothes": "shirt/camisa/f dress/vestido/m hat/sombrero/m coat/abrigo/m skirt/falda/f jacket/chaqueta/f tie/corbata/f",
    "opening": "door/puerta/f window/ventana/f",
    "animal": "dog/perro/m cat/gato/m horse/caballo/m bird/pájaro/m cow/vaca/f rabbit/conejo/m duck/pato/m turtle/tortuga/f "
    "monkey/mono/m goat/cabra/f",
    "place": "market/mercado/m school/escuela/f park/parque/m beach/playa/f office/oficina/f hospital/hospital/m "
    "library/biblioteca/f church/iglesia/f museum/museo/m station/estación/f restaurant/restaurante/m bank/banco/m "
    "hotel/hotel/m airport/aeropuerto/m theatre/teatro/m store/tienda/f garden/jardín/m city/ciudad/f village/pueblo/m",
    "room": "kitchen/cocina/f bathroom/baño/m garage/garaje/m",
}
NOUNS: dict[str, Noun] = {
    en: Noun(en, es, gender, kind)
    for kind, words in _NOUNS.items()
    for en, es, gender in (word.split("/") for word in words.split())
}

# For each kind: what it is (ser), what state it is in (estar), and what is only said beside the noun.
_QUALITIES = {
    "food": "big/grande small/pequeño cheap/barato expensive/caro",
    "text": "long/largo short/corto interesting/interesante boring/aburrido easy/fácil difficult/difícil",
    "thing": "new/nuevo old/viejo big/grande small/pequeño red/rojo blue/azul green/verde white/blanco black/negro "
    "expensive/caro cheap/barato heavy/pesado",
    "container": "new/nuevo old/viejo big/grande small/pequeño red/rojo blue/azul green/verde heavy/pesado",
    "clothes": "new/nuevo old/viejo red/rojo blue/azul green/verde white/blanco black/negro yellow/amarillo elegant/elegante "
    "expensive/caro cheap/barato",
    "opening": "new/nuevo old/viejo big/grande small/pequeño white/blanco green/verde",
    "animal": "big/grande small/pequeño white/blanco black/negro old/viejo fast/rápido slow/lento strong/fuerte "
    "beautiful/hermoso",
    "place": "new/nuevo old/viejo big/grande small/pequeño modern/moderno famous/famoso beautiful/hermoso",
    "room": "new/nuevo big/grande small/pequeño modern/moderno white/blanco",
    "person": "tall/alto strong/fuerte intelligent/inteligente kind/amable famous/famoso rich/rico poor/pobre young/joven "
    "brave/valiente funny/gracioso generous/generoso shy/tímido polite/educado",
}
_STATES = {
    "drink": "cold/frío hot/caliente",
    "thing": "dirty/sucio clean/limpio broken/roto",
    "container": "full/lleno empty/vacío open/abierto closed/cerrado",
    "clothes": "dirty/sucio clean/limpio",
    "opening": "open/abierto closed/cerrado broken/roto dirty/sucio",
    "animal": "sick/enfermo tired/cansado calm/tranquilo",
    "place": "open/abierto closed/cerrado full/lleno empty/vacío",
    "room": "dirty/sucio clean/limpio empty/vacío",
    "person": "tired/cansado sick/enfermo busy/ocupado sad/triste happy/feliz angry/enojado nervous/nervioso "
    "worried/preocupado calm/tranquilo bored/aburrido alone/solo lost/perdido surprised/sorprendido",
}
_BESIDE = {"food": "fresh/fresco delicious/delicioso", "drink": "cold/frío hot/caliente"}
ADJECTIVES: dict[str, dict[str, dict[str, str]]] = {
    use: {kind: dict(word.split("/") for word in words.split()) for kind, words in table.items()}
    for use, table in (("ser", _QUALITIES), ("estar", _STATES), ("beside", _BESIDE))
}
for _kind, _words in ADJECTIVES["ser"].items():
    ADJECTIVES["beside"][_kind] = {**_words, **ADJECTIVES["beside"].get(_kind, {})}

_EVERY = ("present", "past", "future", "going", "progressive")
_MOMENT = ("present", "past", "future", "going")
STATE = ("present", "past", "future")
_VERB_LINES = {
    _EVERY: "eat/comer/food cook/cocinar/potato,egg,carrot,tomato drink/beber/drink read/leer/text write/escribir/book,letter,poem,story "
    "buy/comprar/food,thing,clothes,text sell/vender/food,thing,clothes,animal look_for/buscar/thing,animal,clothes "
    "open/abrir/opening,box,bag,bottle,letter close/cerrar/opening,box,bag,bottle "
    "clean/limpiar/room,table,chair,lamp,window,bed wash/lavar/clothes,car,bottle,apple,pear,carrot "
    "paint/pintar/door,window,table,chair,box,bicycle bring/traer/food,text,map,guitar,key,umbrella,chair "
    "make/hacer/cake,sandwich,salad,dress,skirt,table,chair draw/dibujar/animal,car,bicycle,hat",
    _MOMENT: "see/ver/animal,place,car find/encontrar/thing,clothes,animal lose/perder/key,umbrella,phone,suitcase,hat,map,photo "
    "break/romper/opening,lamp,chair,clock,bottle",
    STATE: "have/tener/thing,animal,clothes,text want/querer/food,drink,thing,clothes need/necesitar/thing,clothes,container",
    ("present", "past", "future", "progressive"): "wear/llevar/clothes",
}
_STATIVE = {"have", "want", "need", "wear"}


def nouns_of(kinds: tuple[str, ...]) -> list[Noun]:
    """The nouns of these kinds; a noun may also be named itself."""
    return [noun for kind in kinds for noun in NOUNS.values() if kind in (noun.kind, noun.en)]


def _verbs() -> dict[str, Verb]:
    found = {}
    for tenses, line in _VERB_LINES.items():
        for en, es, objects in (word.split("/") for word in line.split()):
            en = en.replace("_", " ")
            found[en] = Verb(en, es, tuple(objects.split(",")), "imperfect" if en in _STATIVE else "preterite", tenses)
    return found


VERBS = _verbs()

SUBJECTS = [
    Subject("I", "", "1s", third=False),
    Subject("you", "", "2s", third=False),
    Subject("we", "", "1p", third=False),
    Subject("Carlos and I", "Carlos y yo", "1p", third=False),
    Subject("my sister and I", "mi hermana y yo", "1p", third=False),
    Subject("you all", "ustedes", "3p", third=False),
    Subject("he", "él", "3s"),
    Subject("she", "ella", "3s", "f"),
    Subject("they", "ellos", "3p"),
    Subject("Ana", "Ana", "3s", "f"),
    Subject("Luis", "Luis", "3s"),
    Subject("Elena", "Elena", "3s", "f"),
    Subject("Ana and Luis", "Ana y Luis", "3p"),
    Subject("Ana and Elena", "Ana y Elena", "3p", "f"),
    Subject("my mother", "mi madre", "3s", "f"),
    Subject("my father", "mi padre", "3s"),
    Subject("my brother", "mi hermano", "3s"),
    Subject("your sister", "tu hermana", "3s", "f"),
    Subject("my parents", "mis padres", "3p"),
    Subject("our friends", "nuestros amigos", "3p"),
    Subject("the boy", "el niño", "3s"),
    Subject("the girl", "la niña", "3s", "f"),
    Subject("the man", "el hombre", "3s"),
    Subject("the woman", "la mujer", "3s", "f"),
    Subject("the children", "los niños", "3p"),
    Subject("the girls", "las niñas", "3p", "f"),
    Subject("the men", "los hombres", "3p"),
    Subject("the women", "las mujeres", "3p", "f"),
]
# Those to whom something is done are never the ones who do it, so that nobody visits herself.
PEOPLE = [
    Subject("Pablo", "Pablo", "3s"),
    Subject("Marta", "Marta", "3s", "f"),
    Subject("my grandmother", "mi abuela", "3s", "f"),
    Subject("my grandfather", "mi abuelo", "3s"),
    Subject("your uncle", "tu tío", "3s"),
    Subject("your aunt", "tu tía", "3s", "f"),
    Subject("our neighbours", "nuestros vecinos", "3p"),
    Subject("your daughters", "tus hijas", "3p", "f"),
    Subject("the king", "el rey", "3s"),
    Subject("the queen", "la reina", "3s", "f"),
    Subject("the old man", "el anciano", "3s"),
    Subject("the old women", "las ancianas", "3p", "f"),
    Subject("the pilots", "los pilotos", "3p"),
]


def _pairs(text: str) -> list[tuple[str, str]]:
    """ "hungry/hambre in_a_hurry/prisa" as pairs."""
    return [
        (first.replace("_", " "), second.replace("_", " "))
        for first, second in (word.split("/") for word in text.split())
    ]


SER = Verb("be", "ser", (), "imperfect", STATE)
ESTAR = Verb("be", "estar", (), "imperfect", STATE)
TENER = Verb("be", "tener", (), "imperfect", STATE)
LIKE = Verb("like", "gustar", ("food", "drink", "text", "thing", "clothes", "animal"), "imperfect", ("present", "past"))
PERSON_VERBS = [
    Verb("see", "ver", (), "preterite", _MOMENT),
    Verb("know", "conocer", (), "imperfect", ("present", "past")),
    *(
        Verb(en, es, (), "preterite", _EVERY)
        for en, es in _pairs(
            "help/ayudar visit/visitar call/llamar look_for/buscar wait_for/esperar listen_to/escuchar"
        )
    ),
]
# Each with the preposition that it takes before the place.
MOTIONS = [
    (Verb("go to", "ir", (), "preterite", ("present", "past", "future", "progressive")), "a"),
    (Verb("come from", "venir", (), "preterite", ("present", "past", "future", "progressive")), "de"),
    (Verb("return to", "volver", (), "preterite", _MOMENT), "a"),
    (Verb("travel to", "viajar", (), "preterite", _EVERY), "a"),
    (Verb("walk to", "caminar", (), "preterite", _EVERY), "hasta"),
    (Verb("arrive at", "llegar", (), "preterite", _MOMENT), "a"),
    (Verb("leave", "salir", (), "preterite", _EVERY), "de"),
]
ACTIVITIES = [
    Verb("live", "vivir", ("hotel", "city", "village"), "imperfect", STATE),
    *(
        Verb(en, es, ("place",), "preterite", _EVERY)
        for en, es in _pairs(
            "work/trabajar study/estudiar sleep/dormir play/jugar sing/cantar dance/bailar run/correr rest/descansar"
        )
    ),
]
MODALS = [
    Verb("want to", "querer", (), "imperfect", STATE),
    Verb("can", "poder", (), "imperfect", ("present", "past")),
    Verb("have to", "tener que", (), "imperfect", STATE),
    Verb("need to", "necesitar", (), "imperfect", STATE),
]
FEELINGS = _pairs(
    "hungry/hambre thirsty/sed cold/frío hot/calor sleepy/sueño afraid/miedo in_a_hurry/prisa lucky/suerte"
)
NUMBERS = _pairs(
    "two/dos three/tres four/cuatro five/cinco six/seis seven/siete eight/ocho nine/nueve ten/diez eleven/once twelve/doce "
    "fifteen/quince twenty/veinte thirty/treinta forty/cuarenta fifty/cincuenta sixty/sesenta ninety/noventa"
)
COMPARATIVES = {
    "person": _pairs(
        "tall/taller strong/stronger intelligent/more_intelligent kind/kinder famous/more_famous rich/richer poor/poorer "
        "young/younger brave/braver funny/funnier generous/more_generous"
    ),
    "thing": _pairs("new/newer big/bigger small/smaller expensive/more_expensive cheap/cheaper heavy/heavier"),
    "animal": _pairs("big/bigger small/smaller fast/faster slow/slower strong/stronger"),
    "place": _pairs("new/newer big/bigger small/smaller modern/more_modern famous/more_famous"),
}
BESIDE = {
    "near": "cerca de",
    "far from": "lejos de",
    "behind": "detrás de",
    "in front of": "delante de",
    "next to": "al lado de",
}
# What one finds lying, standing or running about.
PLACED = (
    "text",
    "container",
    "animal",
    "key",
    "phone",
    "lamp",
    "umbrella",
    "map",
    "photo",
    "pencil",
    "guitar",
    "suitcase",
)
