"""The tokenizers of pretrained models in a page give the ids, texts and tokens that Python gives, on texts of all scripts."""

import json
import re

import pytest

from minigrad.data import BPETokenizer
from minigrad.tokenizers import PretrainedTokenizer
from minigrad.tokenizers.description import description_of
from minigrad.tokenizers.patterns import KNOWN
from minigrad.web.program import RUNTIME, runtime
from minigrad.zoo.pages.html import TOKENIZERS, WORKER
from minigrad.zoo.pages.pretrained import pretrained_form
from tests import test_pretrained_tokenizers as built
from tests.support.scripts import SENTENCES, random_bytes, random_texts

ODD = ["", " ", "\n\n ", "a" * 300, "▁ ▁", "[MASK] x[CLS]", "ΑΣ İ ǅ", "x\u0085y\u1680z"]
TEXTS = [*SENTENCES, *random_texts(300), *random_bytes(60), *ODD]
READ = """([code, form, texts]) => new Function('form', 'texts', code)(form, texts)"""
CODE = f"""{runtime("weights", *TOKENIZERS)}
const tokenizer = tokenizerOf(form);
return texts.map((text) => {{ const ids = tokenizer.inner(text); return [ids, tokenizer.decode(ids)]; }});"""
SPLITS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def said_by_page(browser, tokenizer):
    page = browser.new_page()
    form = json.loads(json.dumps(pretrained_form(tokenizer)))
    found = page.evaluate(READ, [CODE, form, TEXTS])
    page.close()
    return found


def agree(browser, tokenizer):
    wanted = [[ids := tokenizer.encode(text, special=False), tokenizer.decode(ids)] for text in TEXTS]
    found = said_by_page(browser, tokenizer)
    assert [(a, b, c) for a, b, c in zip(TEXTS, found, wanted) if b != c] == []


@pytest.mark.parametrize("name", ["byte_level_bpe", "wordpiece", "unigram", "sentencepiece_bpe"])
def test_every_kind_of_model(browser, name):
    agree(browser, PretrainedTokenizer(getattr(built, name)()))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normal_forms_lower_case_and_accents(browser, form):
    steps = [{"type": form}, {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Nmt"}]
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    agree(
        browser, PretrainedTokenizer(built.wordpiece(normalizer={"type": "Sequence", "normalizers": [*steps, strip]}))
    )


@pytest.mark.parametrize("behavior", SPLITS)
def test_cuts_at_a_pattern(browser, behavior):
    cut = {"type": "Split", "pattern": {"String": " "}, "behavior": behavior, "invert": False}
    agree(browser, PretrainedTokenizer(built.unigram(pre_tokenizer=cut)))


@pytest.mark.parametrize(
    "cut",
    [{"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"},
     {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False}],
)  # fmt: skip
def test_other_cuts(browser, cut):
    agree(browser, PretrainedTokenizer(built.wordpiece(pre_tokenizer=cut)))


@pytest.mark.parametrize("name", KNOWN)
def test_known_patterns(browser, name):
    learned = description_of(BPETokenizer.train([*SENTENCES] * 2, 400))
    cut = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": KNOWN[name]}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]}  # fmt: skip
    parts = {"model": learned["model"], "decoder": learned["decoder"], "pre_tokenizer": cut}
    agree(browser, PretrainedTokenizer(parts))


def test_no_name_stands_for_two_things_in_the_worker():
    names = re.findall(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", runtime(*WORKER), re.MULTILINE)
    assert len(names) > 100 and sorted({name for name in names if names.count(name) > 1}) == []
    assert set(RUNTIME) < set(WORKER)
