"""Texts of many scripts to compare tokenizers on: random characters of every kind, and sentences to train on."""

from __future__ import annotations

import random

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? 12345 times in 2024!",
    "  Leading spaces, trailing spaces   and\ttabs.\nNew lines\r\ntoo.  ",
    "El zorro marrón rápido salta sobre el perro perezoso; ¿verdad? ¡Sí, señor!",
    "Größenwahn, Straßenbahn und ÄÖÜ: schöne Grüße aus Köln — «ja» „nein“.",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "Η γρήγορη καφετιά αλεπού ΠΗΔΆΕΙ πάνω από τον τεμπέλη σκύλο ΣΑΣ.",
    "السرعة البنية للثعلب تقفز فوق الكلب الكسول، أليس كذلك؟ ١٢٣",
    "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "敏捷的棕色狐狸跳过懒狗。東京は日本の首都です。カタカナとひらがな。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘습니다.",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। ไทยไม่มีช่องว่าง",
    "def f(x):\n    return x ** 2 + 3.14e-5  # a comment\n\n\nprint(f(10))",
    "emoji 👋🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ ﬁ ① ½ ™ Å e\u0301 n\u0303",
]
# Where random characters are drawn from: ASCII, Latin, accents, alphabets, Asia, symbols, what is odd, everything.
POOLS: list[range | tuple[int, ...]] = [
    range(0x20, 0x7F), range(0x20, 0x250), range(0x300, 0x370), range(0x370, 0x600), range(0x600, 0x1000),
    range(0x1000, 0x3100), range(0x3000, 0xD800), range(0xE000, 0x10000), range(0x1F300, 0x1FB00), range(0x10000, 0x20000),
    range(0, 0x20), tuple(map(ord, " \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000'sSſtTlLrevmd")),
    tuple(map(ord, "e\u0301\u0308\u200d\u200b\ufeff\ufffd\u0600▁ Ġ#@<>|[]")), range(0x80, 0x100), range(0x20000, 0x110000),
]  # fmt: skip


def random_texts(count: int, seed: int = 0) -> list[str]:
    """Some texts, each of a few runs of characters, with words of known sentences among them."""
    random_ = random.Random(seed)
    words = [word for sentence in SENTENCES for word in sentence.split(" ")]
    return [_text(random_, words) for _ in range(count)]


def _text(random_: random.Random, words: list[str]) -> str:
    parts = []
    for _ in range(random_.randint(1, 8)):
        if random_.random() < 0.4:
            parts.append(" " * random_.randint(0, 2) + random_.choice(words))
        else:
            pool = random_.choice(POOLS)
            parts.append("".join(chr(random_.choice(pool)) for _ in range(random_.randint(1, 8))))
    return "".join(parts)


def random_bytes(count: int, seed: int = 0) -> list[str]:
    """Random bytes, read as UTF-8 with replacements."""
    random_ = random.Random(seed)
    return [random_.randbytes(random_.randint(1, 40)).decode("utf-8", errors="replace") for _ in range(count)]
