"""`minigrad translate`, and training on anybody's pairs: from files to a translation, and what is said about bad ones."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from minigrad_models.corpora import grammar_pairs
from minigrad_models.translator.corpus import Corpus
from minigrad_models.translator.preparation import vocabulary_of

import minigrad as mg
from minigrad.cli import main
from minigrad.data import normalise
from minigrad.decode import Translation
from minigrad.decode.beam_tree import Branch
from minigrad.decode.translation import Piece
from minigrad.errors import MinigradError

PAIRS = [
    ("You are welcome.", "de nada"), ("Hello.", "hola"), ("Thank you.", "gracias"), ("Good night.", "buenas noches"),
    ("See you tomorrow.", "hasta mañana"), ("I am tired.", "estoy cansado"), ("Where is the bank?", "¿dónde está el banco?"),
    ("How much is it?", "¿cuánto cuesta?"), ("I do not know.", "no sé"), ("Of course!", "¡por supuesto!"),
]  # fmt: skip
SMALL = ["depth=1", "dim=32", "heads=2", "hidden=48", "dropout=0", "batch=120", "lr=0.01", "warmup=10"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a translator in runs/mine that has learned ten pairs by heart."""
    folder = tmp_path_factory.mktemp("translate")
    lines = [f"{source}\t{target}\n" for source, target in PAIRS]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        settings = [*SMALL, "form=phrasebook", "vocabulary=word", "smoothing=0", "--max-steps", "250"]
        assert main(["train", "translator", "--data", "pairs.tsv", "--out", "runs/mine", *settings]) == 0
    return folder


@pytest.fixture
def here(place, monkeypatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def learned() -> list[tuple[str, str]]:
    """The pairs as the phrasebook's form has them."""
    return [(normalise(source), target) for source, target in PAIRS]


def test_it_is_said_which_run_answers_unless_it_was_chosen(here, learned, capsys):
    assert main(["translate", learned[0][0]]) == 0
    assert capsys.readouterr().err == "minigrad: runs/mine answers, the newest run; --run DIR asks another\n"
    assert main(["translate", learned[0][0], "--run", "runs/mine"]) == 0
    assert capsys.readouterr().err == ""


def test_what_was_learned_is_translated(here, learned, capsys):
    assert main(["translate", *(source for source, _ in learned)]) == 0
    assert capsys.readouterr().out.splitlines() == [target for _, target in learned]


def test_spelling_and_case_do_not_matter_in_the_phrasebooks_form(here, learned, capsys):
    source, target = next(pair for pair in learned if pair[0] in ("thank you", "hello"))
    assert main(["translate", f"  {source.upper()} !!", "--run", "runs/mine"]) == 0
    assert capsys.readouterr().out == f"{target}\n"


def test_nbest_prints_scores_best_first(here, learned, capsys):
    assert main(["translate", learned[0][0], "--nbest", "4"]) == 0
    rows = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
    scores = [float(row[0]) for row in rows]
    assert len(rows) == 4 and scores == sorted(scores, reverse=True) and rows[0][1] == learned[0][1]
    assert main(["translate", learned[0][0], "--nbest", "2", "--json", "--beam", "6", "--length-penalty", "0.6"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["translation"] == learned[0][1] == found["best"][0]["text"] and len(found["best"]) == 2


def test_beams_and_length_penalty_reach_the_search(here, learned):
    loaded = mg.zoo.load("runs/mine")
    (one,) = loaded.translate(learned[0][0], beams=1)
    (several,) = loaded.translate(learned[0][0], beams=4, alpha=0.0)
    assert len(one.best) == 1 and len(several.best) == 4
    tokens = several.pieces[0].hypotheses[0]
    assert several.score == pytest.approx(tokens.branch.score)  # nothing is divided by with alpha 0
    with pytest.raises(MinigradError, match="beams from 1"):
        loaded.translate("hello", beams=0)


def test_several_sentences_and_unknown_words_are_told(here, learned, capsys):
    (first, one), (second, two) = learned[:2]
    assert main(["translate", f"{first}. {second}!"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{one} {two}\n" and "in 2 pieces" in shown.err
    assert main(["translate", f"{first} zyxwv"]) == 0
    shown = capsys.readouterr()
    assert "unknown to this translator: zyxwv" in shown.err and "<unk>" not in shown.out


def test_an_enormous_text_is_translated_in_pieces(here, learned, capsys):
    text = " ".join([learned[0][0]] * 2000)
    assert main(["translate", text, "--beam", "1"]) == 0
    shown = capsys.readouterr()
    assert "pieces" in shown.err and len(shown.err) < 300 and "<" not in shown.out
    assert main(["translate", "x" * 20_000, "--beam", "1"]) == 0


@pytest.mark.parametrize("text", ["", "   ", "\t"])
def test_an_empty_text_is_refused(here, text, capsys):
    assert main(["translate", text]) == 2
    assert "nothing to translate" in capsys.readouterr().err


def test_a_text_of_marks_alone_is_refused(here, capsys):
    assert main(["translate", "?!"]) == 1
    assert "there is nothing to translate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "--interactive"], "more than one source: texts and --interactive"),
        (["--file", "pairs.tsv", "--interactive"], "more than one source: --interactive and --file"),
        (["--file", "nowhere.txt"], "there is no such file"),
        (["a", "--beam", "0"], "from 1 up"),
        (["a", "--length-penalty", "nan"], "a number from 0 to 10"),
        (["a", "--length-penalty", "1e9"], "a number from 0 to 10"),
        (["a", "--nbest", "3", "--beam", "2"], "--nbest 3 needs as many beams"),
        (["a", "--tree", "tree.txt"], "end its name in .svg"),
        (["a", "b", "--tree", "tree.svg"], "draws one text"),
        (["a", "--attention", "a.doc"], "end its name in .html"),
    ],
)
def test_wrong_calls_are_explained(here, words, said, capsys):
    assert main(["translate", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_a_trained_one_it_says_how_to_train(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["translate", "hello"]) == 1
    assert "train one (seq2seq, translator): minigrad train NAME" in capsys.readouterr().err
    assert main(["train", "xor", "--max-steps", "1"]) == 0
    assert main(["translate", "hello"]) == 1  # a run of something else is none
    assert main(["translate", "hello", "--run", "runs/xor"]) == 2
    assert (
        "'runs/xor' holds xor, a model for classification, which cannot translate: its commands are train, eval, predict, graph"
        in capsys.readouterr().err
    )


def test_interactive_translates_line_by_line(here, learned, monkeypatch, capsys):
    typed = f"{learned[0][0]}\n\n{learned[1][0]}\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert main(["translate", "--interactive"]) == 0
    assert capsys.readouterr().out == f"{learned[0][1]}\n\n{learned[1][1]}\n"


def test_standard_input_is_translated_line_by_line(here, learned, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{learned[0][0]}\n\n{learned[1][0]}\n"))
    assert main(["translate"]) == 0
    assert capsys.readouterr().out == f"{learned[0][1]}\n\n{learned[1][1]}\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["translate"]) == 1
    assert "what is to be translated" in capsys.readouterr().err


def test_the_lines_of_a_file_keep_their_places_and_lines_of_json_are_objects(here, learned, capsys):
    (here / "lines.txt").write_text("".join(f"{source}\n" for source, _ in learned) * 4 + "\n?!\n", encoding="utf-8")
    assert main(["translate", "--file", "lines.txt"]) == 0
    shown = capsys.readouterr()
    assert shown.out.split("\n") == [target for _, target in learned] * 4 + ["", "", ""]
    assert "'?!': translate: there is nothing" in shown.err
    assert main(["translate", "--file", "lines.txt", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one and one["translation"] for one in found] == [target for _, target in learned] * 4 + [None, None]


def test_the_best_of_several_texts_are_blocks(here, learned, capsys):
    assert main(["translate", learned[0][0], learned[1][0], "--nbest", "2"]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    assert [[line.split(None, 1)[1] for line in block.splitlines()][0] for block in blocks] == [
        learned[0][1],
        learned[1][1],
    ]


def test_what_was_learned_is_not_doubted(here, learned, capsys):
    assert main(["translate", *(source for source, _ in learned), "--run", "runs/mine"]) == 0
    assert "doubtful" not in capsys.readouterr().err
    (found,) = mg.zoo.load("runs/mine").translate(learned[0][0])
    branch, probabilities = found.pieces[0].hypotheses[0].branch, []
    while branch.parent is not None:
        probabilities.append(branch.score - branch.parent.score)
        branch = branch.parent
    assert found.confidence == pytest.approx(np.exp(np.mean(probabilities)), rel=1e-6)
    assert found.weakest == pytest.approx(np.exp(min(probabilities)), rel=1e-6) and not found.is_doubtful


@pytest.mark.parametrize(
    ("chances", "doubted"), [((0.9, 0.9, 0.8), False), ((0.9, 0.15, 0.9, 0.9), True), ((0.4, 0.4, 0.5), True)]
)
def test_a_single_word_that_is_hardly_probable_is_doubted_among_sure_ones(chances, doubted):
    branch = Branch(0, 0.0)
    for chance in chances:
        branch = Branch(5, branch.score + np.log(chance), branch)
    best = SimpleNamespace(tokens=[5] * (len(chances) - 1), score=branch.score, branch=branch)
    found = Translation("a b", [(branch.score, "c d")], [Piece([5, 5, 2], [best])], [], 0.0, [1], by_word=True)
    parts = replace(found, by_word=False)  # of words, which are often improbable one by one
    assert parts.is_doubtful is (parts.confidence < 0.5)
    assert found.confidence == pytest.approx(np.prod(chances) ** (1 / len(chances)))
    assert found.weakest == pytest.approx(min(chances)) and found.is_doubtful is doubted


def test_a_word_that_is_known_in_lower_case_is_taken_so_and_what_was_hardly_learned_is_doubted(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(
        "the cat sleeps\tel gato duerme\nAna sleeps\tAna duerme\n" * 20, encoding="utf-8"
    )
    settings = [*SMALL, "vocabulary=word", "--max-steps", "3"]
    assert main(["train", "translator", "--data", "pairs.tsv", "--out", "run", *settings]) == 0
    loaded = mg.zoo.load("run")
    one, other = loaded.translate(["The CAT sleeps", "the cat sleeps"])
    assert one.unknown == [] and one.pieces[0].ids == other.pieces[0].ids
    capsys.readouterr()
    assert main(["translate", "Ana sleeps", "--run", "run"]) == 0
    assert re.search(r"doubtful: 'Ana sleeps' .* \(\d+ % sure of a token on average, \d+ % of", capsys.readouterr().err)
    (found,) = loaded.translate("Ana Zyx")
    assert found.unknown == ["Zyx"] and loaded.tokenizer.encode("Ana")[0] == found.pieces[0].ids[0]


def test_a_word_that_few_own_sentences_never_showed_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    animals = {"dog": "hond", "cat": "kat", "cow": "koe", "horse": "paard", "goat": "geit"}
    rows = [f"I see a {one}.\tIk zie een {other}.\n" for one, other in animals.items()]
    (tmp_path / "pairs.tsv").write_text("".join(rows), encoding="utf-8")
    assert main(["train", "translator", "--data", "pairs.tsv", "--out", "run", *SMALL, "--max-steps", "2"]) == 0
    said = capsys.readouterr().out
    assert "ask it: minigrad translate 'I see a dog.' --run run" in said and "INPUT" not in said
    assert main(["translate", "I see an elephant.", "--run", "run"]) == 0
    assert "unknown to this translator: an, elephant" in capsys.readouterr().err


def test_a_language_without_spaces_is_cut_into_byte_pairs_however_few_its_sentences_are():
    config = SimpleNamespace(vocabulary="", vocab=None)
    pairs = [("hello", "你好"), ("thank you", "谢谢"), ("good", "好"), ("bye", "再见")]
    without, spaced = (pairs, [("I see it", "ik zie het"), ("we see it", "wij zien het")])
    kinds = [vocabulary_of(config, Corpus(made, [], {}, ""), 300).kind for made in (without, spaced)]
    assert kinds == ["bpe", "word"]


def test_lines_of_a_file_have_a_progress_bar_at_a_terminal(here, learned, monkeypatch, capsys):
    (here / "many.txt").write_text(f"{learned[0][0]}\n" * 70, encoding="utf-8")
    monkeypatch.setattr("minigrad.zoo.tasks.translate_command.BATCH", 2)  # so that it takes long enough to be seen
    monkeypatch.setattr(sys, "stderr", bar := io.StringIO())
    bar.isatty = lambda: True
    assert main(["translate", "--file", "many.txt", "--run", "runs/mine"]) == 0
    assert capsys.readouterr().out == f"{learned[0][1]}\n" * 70
    assert re.search(r"[1-9]\d* lines \[", bar.getvalue())


@pytest.mark.graphviz
@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 390)])
def test_the_report_of_a_translator_shows_encoder_decoder_and_both_embeddings(here, dark, width, open_page):
    page = open_page(here / "runs/mine/report.html", dark=dark, width=width)
    texts = page.locator("#graph svg text").all_text_contents()
    assert {"encoder", "decoder", "embedding", "target_embedding", "positions", "target_positions"} <= set(texts)
    assert not [text for text in texts if text.startswith(("astype", "reshape 1", "log_softmax"))]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_line_that_cannot_be_translated_does_not_end_the_conversation(here, learned, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"?!\n{learned[1][0]}\n"))
    assert main(["translate", "--interactive"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"\n{learned[1][1]}\n" and shown.err.startswith("minigrad: ")


def test_the_tree_of_a_search_can_be_drawn_from(here, learned):
    loaded = mg.zoo.load("runs/mine")
    (found,) = loaded.translate(learned[0][0], beams=3)
    root = loaded.tree(found)
    finals, waiting = [], [(root, "", 0)]
    while waiting:
        node, before, depth = waiting.pop()
        text = before if node is root else f"{before} {node['token']}"
        plain = {child["token"]: child["score"] * (6 + depth) / 6 for child in node["children"]}  # alpha is 1
        assert all(score <= node["score"] * (5 + depth) / 6 + 1e-9 for score in plain.values())  # one kind of score
        finals += [(node["score"], text)] if node.get("final") else []
        waiting += [(child, text, depth + 1) for child in node["children"]]
    assert root["token"] == "<s>" and len(finals) >= 3 and "divided by ((5 + n) / 6)^1" in root["note"]
    best = max(finals)
    assert best[0] == pytest.approx(found.score) and best[1].endswith("</s>")
    assert loaded.tokenizer.decode(found.pieces[0].hypotheses[0].tokens) == found.text


def test_the_attention_of_a_translation_can_be_seen(here, learned, capsys):
    pytest.importorskip("minigrad.viz.attention.attention")
    assert main(["translate", learned[0][0], "--attention", "a.svg", "--tree", "t.svg"]) == 0
    assert "wrote a.svg" in capsys.readouterr().out
    assert (here / "a.svg").read_text().startswith("<svg") and (here / "t.svg").stat().st_size > 500
    assert main(["translate", learned[0][0], "--attention", "a.svg", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)[0]["translation"] == learned[0][1] and "wrote a.svg" in shown.err
    assert main(["translate", f"{learned[0][0]}. {learned[1][0]}.", "--tree", "t.svg"]) == 0
    assert "in 2 pieces, the first of which is drawn" in capsys.readouterr().err


def test_evaluation_tells_all_scores_and_worst_examples(here, capsys):
    assert main(["eval", "runs/mine", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert {"bleu", "chrf", "perplexity", "exact_match", "bleu_signature"} <= numbers.keys()
    assert (
        numbers["bleu"] == pytest.approx(100) and "tok:13a" in numbers["bleu_signature"] and numbers["sentences"] == 10
    )
    assert numbers["exact_match"] == 100 and numbers["test"] == "trained" and 1 < numbers["perplexity"] < 1.5
    others = [("Hello.", "hola"), ("Hello.", "buenas"), ("I am tired.", "tengo sueño"), ("Hello.", "hola")]
    Path("others.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in others), encoding="utf-8")
    assert main(["eval", "runs/mine", "--data", "others.tsv", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["sentences"] == 2 and numbers["exact_match"] == 50 and "nrefs:var" in numbers["bleu_signature"]
    assert numbers["worst_1"] == "i am tired -> estoy cansado (wanted: tengo sueño)" and "worst_2" not in numbers
    Path("single.tsv").write_text("Hello.\thola\nThank you.\tgracias\n", encoding="utf-8")
    for path, name in (("single.tsv", "test"), ("pairs.tsv", "trained")):
        assert main(["eval", "runs/mine", "--data", path, "--json"]) == 0
        numbers = json.loads(capsys.readouterr().out)
        assert numbers["test"] == name and "nrefs:1|" in numbers["bleu_signature"]


def test_exposure_is_measured_on_the_pairs_of_ones_own_file(here):
    found = mg.zoo.load("runs/mine").exposure()
    assert found[0].count == len(PAIRS) and found[0].teacher_forced == found[0].free_running == 1


def test_what_is_shown_of_few_pairs_is_not_called_new(here):
    assert (
        mg.zoo.load("runs/mine")
        .spec.samples(mg.zoo.load("runs/mine"))
        .startswith("translations of some that it learns")
    )


def test_a_text_to_denoise_is_judged_by_its_gaps_only(tmp_path):
    from minigrad_models.translator.evaluation import tests_of

    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"the cat number {n} sat on the mat and slept" for n in range(40)), encoding="utf-8")
    mg.zoo.train("translator:denoise", tmp_path / "r", max_steps=1, depth=1, dim=8, heads=2, hidden=8, pairs=50)
    judged = tests_of(mg.zoo.load(tmp_path / "r"), str(text))
    assert judged["test"] and all("<mask>" in source for source, _ in judged["test"])


@pytest.mark.parametrize(("lines", "name"), [(1, "trained"), (2, "trained"), (3, "test")])
def test_of_few_texts_to_denoise_none_is_called_new_that_was_learned(tmp_path, lines, name):
    from minigrad_models.translator.corpus import corpus_of

    text = tmp_path / "text.txt"
    text.write_text("".join(f"cat number {n} sat\n" for n in range(lines)), encoding="utf-8")
    corpus = corpus_of(mg.zoo.find("translator").config(corpus="denoise"), str(text))
    learned, judged = {source for source, _ in corpus.train}, {target for _, target in corpus.test}
    assert list(corpus.tests) == [name] and (judged <= learned) == (name == "trained")


def test_aligned_files_are_read_and_choices_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pairs = grammar_pairs("train", 600)
    Path("text.en").write_text("\n".join(source for source, _ in pairs), encoding="utf-8")
    Path("text.es").write_text("\n".join(target for _, target in pairs), encoding="utf-8")
    assert main(["train", "translator", "--data", "text.en,text.es", "--max-steps", "3", "--out", "r"]) == 0
    shown = capsys.readouterr().out
    assert "two aligned files" in shown and "split by unique source: train 480, valid 60, test 60" in shown
    assert "2+2 layers, width 64" in shown and "vocabulary:" in shown and "dropped 0" in shown
    assert main(["resume", "r", "--max-steps", "5"]) == 0
    loaded = mg.zoo.load("r")
    assert loaded.config.corpus == "pairs" and loaded.config.vocab == loaded.tokenizer.vocab_size
    assert main(["translate", "Hello", "--run", "r"]) == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "pair"), ("hello\nthere\nfriend\n", "no columns"), ("hello\t\nbye\t\n", "no pair"), ("\n\n\n", "pair")],
)
def test_files_without_pairs_are_refused(tmp_path, monkeypatch, content, said, capsys):
    monkeypatch.chdir(tmp_path)
    Path("bad.tsv").write_text(content)
    assert main(["train", "translator", "--data", "bad.tsv", "--out", "r", *SMALL]) == 1
    shown = capsys.readouterr()
    assert said in shown.err and "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("max_length=3", "every sentence is too long.*\n.*at most 3 tokens.*\n.*5 tokens in the shortest\n.*set both to 5"),
        ("batch=2", "at most 2 tokens"),
        ("corpus=denoise vocabulary=word batch=1", "every sentence is too long.*\n.*at most 1 token"),
        ("vocab=100 vocabulary=bpe", "vocab=100 is too small for byte pairs\n.*vocab=261.*\n.*vocabulary=word"),
        ("epochs=inf", "epochs cannot be 'inf'"),
        ("alpha=1e9", "alpha=1e\\+09.*alpha up to 10"),
    ],
)  # fmt: skip
def test_settings_that_leave_nothing_to_train_say_which_they_are(tmp_path, monkeypatch, settings, said, capsys):
    monkeypatch.chdir(tmp_path)
    Path("some.tsv").write_text("hi\tola\nbye\tadiós\n", encoding="utf-8")
    words = ["train", "translator", "--data", "some.tsv", "--out", "r", "depth=1", "dim=8", *settings.split()]
    assert main(words) in (1, 2)
    shown = capsys.readouterr().err
    assert re.search(said, shown) and "where:" not in shown and not Path("r").exists()


def test_one_sided_lines_are_told_and_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("some.tsv").write_text("hello\thola\nthanks\t\n\tadiós\nbye\tadiós\n", encoding="utf-8")
    assert main(["train", "translator", "--data", "some.tsv", "--out", "r", "--max-steps", "2", *SMALL]) == 0
    assert "2 kept" in capsys.readouterr().out


def test_an_exported_translator_translates(here, learned, capsys):
    shutil.rmtree("mine-1", ignore_errors=True)
    assert main(["export", "runs/mine", "-o", "mine-1"]) == 0
    capsys.readouterr()
    assert main(["translate", learned[0][0], "--run", "mine-1"]) == 0
    assert capsys.readouterr().out == f"{learned[0][1]}\n"
