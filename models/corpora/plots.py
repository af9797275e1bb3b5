"""What the stories are made of: their people, animals, things and places, and the plots, each a list of sentences told in several ways."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from .inflection import a_or_an

__all__ = ["PLOTS", "Plot", "cast"]


class Person(NamedTuple):
    """Somebody with a name and the pronouns that go with it; `{a}` in a plot is the name, `{a.He}` begins a sentence."""

    name: str
    he: str
    him: str
    his: str

    def __format__(self, spec: str) -> str:
        return self.name

    @property
    def He(self) -> str:
        return self.he.capitalize()

    @property
    def His(self) -> str:
        return self.his.capitalize()


class Thing(NamedTuple):
    """Something to own: its name, what one does with it, and where it is bought."""

    name: str
    using: str
    shop: str

    def __format__(self, spec: str) -> str:
        return self.name


class Animal(NamedTuple):
    """An animal: its name, what it eats and how it speaks."""

    name: str
    food: str
    voice: str

    def __format__(self, spec: str) -> str:
        return self.name


class Plot(NamedTuple):
    """The sentences in order, each with the ways to say it, and the last word of the story."""

    lines: list[list[str]]
    answer: str


_GIRLS = "Ana Emma Lucy Mia Nora Rosa Sara Zoe Clara Julia Laura Alice Eva Ruth Grace Lena"
_BOYS = "Ben Carl David Felix Hugo Jack Leo Max Noah Oscar Paul Tom Simon Peter Adam Henry"
_PEOPLE = [Person(name, "she", "her", "her") for name in _GIRLS.split()]
_PEOPLE += [Person(name, "he", "him", "his") for name in _BOYS.split()]
_THINGS = [
    Thing(*line.split("/"))
    for line in (
        "kite/flew the kite in the wind/toy shop",
        "ball/threw the ball high into the air/toy shop",
        "robot/made the robot walk and talk/toy shop",
        "puzzle/put the pieces of the puzzle together/toy shop",
        "drum/played the drum very loudly/music shop",
        "flute/played a song on the flute/music shop",
        "guitar/sang and played the guitar/music shop",
        "whistle/blew the whistle again and again/music shop",
        "hat/put the hat on and looked in the mirror/clothes shop",
        "scarf/wore the scarf all day/clothes shop",
        "coat/put the coat on and went for a walk/clothes shop",
        "book/read the book from beginning to end/bookshop",
        "map/looked at the map and dreamed of far countries/bookshop",
        "pencil/drew a picture with the pencil/bookshop",
        "lamp/lit the lamp when it was dark/market",
        "basket/filled the basket with flowers/market",
        "boat/let the boat float on the water/market",
        "clock/listened to the clock go tick and tock/market",
    )
]
_ANIMALS = [
    Animal(*line.split("/"))
    for line in (
        "dog/bone/barked",
        "cat/fish/purred",
        "rabbit/carrot/jumped",
        "horse/apple/neighed",
        "monkey/banana/laughed",
        "mouse/piece of cheese/squeaked",
        "bear/pot of honey/growled",
        "duck/piece of bread/quacked",
        "squirrel/nut/danced",
        "goat/cabbage/bleated",
    )
]
# Where something can be hidden, lost or stuck, and where people go.
_HIDING = (
    "bed/under table/under door/behind curtain/behind cupboard/in chest/in stairs/under sofa/behind tub/in barrel/in"
)
_PLACES = "park/in forest/in garden/in market/at school/at library/in station/at field/in beach/on bridge/on hill/on museum/in"
_HIDING_PLACES = [tuple(word.split("/")) for word in _HIDING.split()]
_VISITED_PLACES = [tuple(word.split("/")) for word in _PLACES.split()]
_WEATHER = [
    ("raining", "umbrella", "dry", "wet"),
    ("snowing", "coat", "warm", "cold"),
    ("freezing", "scarf", "warm", "cold"),
    ("pouring", "raincoat", "dry", "wet"),
]
_DISHES = [
    ("soup", "carrots", "potatoes"),
    ("cake", "eggs", "flour"),
    ("salad", "tomatoes", "beans"),
    ("pie", "apples", "sugar"),
    ("omelette", "mushrooms", "onions"),
    ("pudding", "milk", "plums"),
    ("stew", "meat", "peas"),
]
_JOBS = [
    ("painter", "painted pictures of trees and birds"),
    ("singer", "sang in the garden"),
    ("baker", "baked bread and little cakes"),
    ("doctor", "read thick books about the body"),
    ("pilot", "watched the planes in the sky"),
    ("farmer", "looked after the cows and the corn"),
    ("teacher", "helped the small children with their letters"),
    ("dancer", "danced in front of the mirror"),
    ("sailor", "watched the ships in the harbour"),
    ("writer", "wrote stories in a notebook"),
    ("clown", "told jokes and made everybody laugh"),
    ("gardener", "planted flowers and watered them"),
]
_TIMES = [
    "One day",
    "One morning",
    "One evening",
    "On Monday",
    "On Sunday",
    "Last week",
    "In the holidays",
    "After school",
]
_COLOURS = ["red", "blue", "green", "yellow", "white", "black", "brown", "golden", "silver", "purple"]
_MANNERS = ["small", "big", "old", "young", "clever", "shy", "friendly", "funny", "lazy", "quick"]


def cast(draw: random.Random) -> dict[str, Any]:
    """Everything a plot may ask for, drawn at random, no two alike."""
    a, b, c = draw.sample(_PEOPLE, 3)
    thing, other = draw.sample(_THINGS, 2)
    spot, wrong, wrong2 = draw.sample(_HIDING_PLACES, 3)
    place, elsewhere = draw.sample(_VISITED_PLACES, 2)
    colour, colour2 = draw.sample(_COLOURS, 2)
    animal, manner = draw.choice(_ANIMALS), draw.choice(_MANNERS)
    weather, cover, safe, unsafe = draw.choice(_WEATHER)
    dish, first, second = draw.choice(_DISHES)
    job, practice = draw.choice(_JOBS)
    return {
        "a": a,
        "b": b,
        "c": c,
        "thing": thing,
        "other": other,
        "spot": spot[0],
        "in_spot": f"{spot[1]} the {spot[0]}",
        "in_wrong": f"{wrong[1]} the {wrong[0]}",
        "in_wrong2": f"{wrong2[1]} the {wrong2[0]}",
        "place": place[0],
        "in_place": f"{place[1]} the {place[0]}",
        "in_elsewhere": f"{elsewhere[1]} the {elsewhere[0]}",
        "colour": colour,
        "colour2": colour2,
        "animal": animal,
        "manner": manner,
        "a_manner_animal": a_or_an(f"{manner} {animal}"),
        "a_food": a_or_an(animal.food),
        "weather": weather,
        "cover": cover,
        "a_cover": a_or_an(cover),
        "safe": safe,
        "unsafe": unsafe,
        "dish": dish,
        "a_dish": a_or_an(dish),
        "first": first,
        "second": second,
        "job": job,
        "practice": practice,
        "time": draw.choice(_TIMES),
    }


PLOTS = {
    "lost and found": Plot(
        [
            [
                "{a} had a {colour} {thing}.",
                "{a} loved {a.his} {colour} {thing}.",
                "Everybody knew the {colour} {thing} of {a}.",
            ],
            ["{time}, {a} lost it {in_place}.", "{time}, {a.he} forgot it {in_place}."],
            ["{a.He} was very sad.", "{a.He} cried.", "Without it, {a.he} could not sleep."],
            [
                "{a.He} looked for it {in_elsewhere}, but it was not there.",
                "First {a.he} looked {in_elsewhere}, but found nothing.",
            ],
            ["Then {b} helped {a.him}.", 'Then {b} came and asked, "What are you looking for?"'],
            ["{b} found the {thing} {in_place}.", "Soon {b} saw something {colour}: it was the {thing}!"],
            ["{a} was happy again and thanked {b}.", '"Thank you, {b}!" said {a}.'],
            [
                "From then on, {a} looked after {a.his} {thing} whenever {a.he} was {in_place}.",
                '"And where was it?" asked {c}, and {a} pointed to the {place}.',
            ],
        ],
        "{place}",
    ),
    "birthday": Plot(
        [
            [
                "It was the birthday of {b}.",
                "{time}, {b} had a birthday party.",
                "Everyone came to the birthday party of {b}.",
            ],
            ["{a} wanted to give {b} a present.", "{a} thought for a long time about a present for {b}."],
            [
                "{a.He} went to the {thing.shop} and bought a {colour} {thing}.",
                "At the {thing.shop} {a.he} saw a {colour} {thing} and bought it.",
            ],
            ["{a.He} put it into a {colour2} box.", "{a.He} hid it in a {colour2} bag."],
            ["{b} opened the present and smiled.", "When {b} saw the {thing}, {b.he} laughed with joy."],
            ["{b} {thing.using}.", "Then {b} {thing.using}."],
            ["Now the {colour} {thing} belonged to {b}.", "From that day on, the {thing} was always with {b}."],
        ],
        "{b}",
    ),
    "swap": Plot(
        [
            ["{a} had a {thing} and {b} had a {other}.", "{b} owned a {other}, and {a} owned a {thing}."],
            [
                "But {a} liked the {other} more, and {b} wanted the {thing}.",
                "But {a} was tired of the {thing}, and {b} did not like the {other}.",
            ],
            ["{time}, they met {in_place}.", "{time}, they saw each other {in_place}."],
            ['"Let us swap," said {a}, and {b} agreed.', '{b} said, "Give me yours and I will give you mine."'],
            ["So {b} {thing.using}.", "Soon {b} {thing.using}."],
            ["And {a} {other.using}.", "And at home {a} {other.using}."],
            [
                "Both were happy: {b} had the {thing} and {a} had the {other}.",
                "When {c} asked {a} what {a.he} had got from {b}, {a.he} showed the {other}.",
            ],
        ],
        "{other}",
    ),
    "hungry animal": Plot(
        [
            [
                "{time}, {a} met {a_manner_animal} {in_place}.",
                "{time}, there was {a_manner_animal} {in_place}, and {a} saw it.",
            ],
            ["The {animal} was hungry.", "The {animal} had not eaten for two days."],
            ["{a} ran home and came back with {a_food}.", "{a} had {a_food} in {a.his} bag and gave it away."],
            [
                "The {animal} ate the {animal.food} and {animal.voice}.",
                "The {animal} {animal.voice} and ate everything.",
            ],
            ["After that, it followed {a} everywhere.", "From then on, it came to {a} every day."],
            ['{b} asked, "Who is your new friend?"', "{b} wondered who was waiting for {a}."],
            ["{a} said that it was {a.his} friend, the {animal}.", "Then {b.he} saw {a} play with the {animal}."],
        ],
        "{animal}",
    ),
    "hide and seek": Plot(
        [
            ["{a} and {b} played hide and seek.", "{time}, {a} and {b} wanted to play hide and seek."],
            ["{b} closed {b.his} eyes and counted to ten.", "{b} had to count, and {a} had to hide."],
            ["{a} hid {in_spot}.", "Quietly, {a} went and hid {in_spot}."],
            ["{b} looked {in_wrong}, but nobody was there.", "First {b} looked {in_wrong}."],
            [
                "Then {b.he} looked {in_wrong2}, but {a} was not there.",
                "{b.He} looked {in_wrong2} too, and found only dust.",
            ],
            ["{a} laughed, and {b} heard it.", "Suddenly {a} had to sneeze."],
            ["So {b} found {a} {in_spot}.", '"I can see you!" said {b} and pointed to the {spot}.'],
        ],
        "{spot}",
    ),
    "weather": Plot(
        [
            ["{time}, it was {weather}.", "It was {weather} all day long."],
            ["{a} and {b} wanted to meet {in_place}.", "{a} and {b} had to walk home together from the {place}."],
            ["{a} took {a_cover}, but {b} had none.", "Only {a} had brought {a_cover}."],
            ["So {a} stayed {safe}, and {b} got {unsafe}.", "Soon {b} was {unsafe}, while {a} was still {safe}."],
            ['"Come here," said {a}, "I will share it with you."', "{a} felt sorry for {b}."],
            [
                "Next time {b} also brought {a_cover}.",
                "The next day {b} went to the shop and bought {a_cover}.",
                "From then on, {b} never left the house without {a_cover}.",
            ],
        ],
        "{cover}",
    ),
    "cooking": Plot(
        [
            ["{a} wanted to make {a_dish} for {b}.", "{b} was coming to dinner, and {a} planned to make {a_dish}."],
            ["{a.He} needed {first} and {second}.", "For that, {a.he} needed {first} and {second}."],
            ["{a.He} found {first} in the kitchen, but no {second}.", "{a.He} had {first} at home, but no {second}."],
            ["So {a.he} went to the market and bought {second}.", "At the market {a.he} found {second}."],
            ["{a.He} worked in the kitchen for a long time.", "Then {a.he} went to work, and it smelled wonderful."],
            ["When {b} came, the table was ready.", "{b} came at six and was very hungry."],
            [
                "{b} ate nearly all of the {dish}.",
                '"I have never eaten so well," said {b}, and took some more of the {dish}.',
            ],
        ],
        "{dish}",
    ),
    "dream job": Plot(
        [
            [
                "When {a} was small, {a.he} wanted to be a {job}.",
                '"One day I will be a {job}," said little {a}.',
                "{a} had a dream: {a.he} wanted to become a {job}.",
            ],
            ["{b} laughed at {a.him}, but {a} did not listen.", "{b} thought it was too hard, but {a} was sure."],
            ["Every day {a.he} {practice}.", "In the evenings {a.he} {practice}."],
            ["Sometimes {a.he} was tired, but {a.he} never stopped.", "It was hard, but {a.he} went on."],
            ["Many years went by.", "The years passed, and {a} grew up."],
            ["Today everyone knows {a} as a {job}.", "{b} was proud, because {a} really was a {job}."],
        ],
        "{job}",
    ),
    "race": Plot(
        [
            ["{a} and {b} wanted to run a race to the {place}.", "{time}, {b} and {a} ran a race to the {place}."],
            [
                "{a} had trained every day, but {b} had only slept.",
                "{b} had eaten too much cake, and {a} had trained for weeks.",
            ],
            ["At first {b} was in front.", "At first they ran side by side."],
            ["But soon {b} grew tired and had to sit down.", "Then {b} lost a shoe and had to stop."],
            ["{a} ran on and did not look back.", "{a} kept running."],
            ["{c} stood at the end and said that the winner was {a}.", "In the end {c} gave the {colour} cup to {a}."],
        ],
        "{a}",
    ),
    "rescue": Plot(
        [
            ["{a} had {a_manner_animal}.", "{a} lived with {a_manner_animal}."],
            ["{time}, it fell into a deep hole near the {place}.", "{time}, it got stuck in the mud near the {place}."],
            ["{a} heard it from far away and ran to help.", "{a} was afraid and called for help."],
            ["{b} brought a rope, and {c} brought a lamp.", "{c} held the lamp, and {b} held the rope."],
            ["They pulled and pulled, until it was free.", "Together they pulled it out."],
            ["It {animal.voice} with joy.", "It was dirty, but it was safe."],
            [
                "{a} gave it {a_food}, and everybody was glad about the {animal}.",
                "At home {a} washed and dried the {animal}.",
            ],
        ],
        "{animal}",
    ),
}
