"""A pretrained decoder from its folder to every verb: import, show, sample, chat, eval, attention, graph, export, training."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pytest

import minigrad as mg
from minigrad.cli import main
from minigrad.errors import ArgumentError, MinigradError, printable

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install tokenizers")
from support.transformers_models import saved, transformers  # noqa: E402

pytestmark = pytest.mark.transformers

TEXT = "The cat sat on the mat. A dog ran to the cat, and the cat ran up a tree. " * 30
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Llama with random weights, as transformers and tokenizers write it, and a licence."""
    path = tmp_path_factory.mktemp("llama")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([TEXT], trainer)
    made.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "chat_template": TEMPLATE}))
    (path / "LICENSE").write_text("Apache License 2.0\nand so on\n")
    config = transformers.LlamaConfig(
        vocab_size=made.get_vocab_size() + 7, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=24, max_position_embeddings=64, eos_token_id=0, bos_token_id=None,
    )  # fmt: skip
    saved(path, "LlamaForCausalLM", config)
    return path


@pytest.fixture(scope="module")
def imported(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("imported") / "llama"
    assert main(["import", str(folder), "--out", str(out)]) == 0
    return str(out)


def test_what_is_imported_computes_the_same(folder, imported):
    ids = [[5, 9, 31, 7]]
    assert np.array_equal(mg.zoo.load(imported).logits(ids), mg.hub.load(folder).logits(ids))
    assert np.array_equal(mg.hub.load(imported).logits(ids), mg.hub.load(folder).logits(ids))


def test_its_weights_can_be_trained_in_a_loop_and_the_file_stays_as_it_is(folder, imported):
    for path in (folder, imported):
        file = os.path.join(path, "model.safetensors")
        with open(file, "rb") as opened:
            before = opened.read()
        loaded, ids = mg.hub.load(path), mg.tensor([[5, 9, 31, 7]])
        optimizer = mg.optim.AdamW(loaded.model.parameters(), lr=1e-2)
        losses = []
        for _ in range(5):
            loss = mg.nn.functional.cross_entropy(loaded.model(ids)[0, :-1], ids[0, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        assert losses[-1] < losses[0]
        with open(file, "rb") as opened:
            assert opened.read() == before


def test_the_tokenizer_goes_along(folder, imported):
    original = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = "The cat, and a 🐈 in the tree."
    assert mg.zoo.load(imported).tokenizer.encode(text) == original.encode(text).ids


def test_show_says_what_it_is_and_where_it_came_from(folder, imported, capsys):
    assert main(["show", imported]) == 0
    shown = capsys.readouterr().out
    assert str(folder) in shown and "llama" in shown and "Apache License 2.0" in shown and "kv_heads" in shown


def test_the_licence_goes_through_every_export(imported, tmp_path):
    assert main(["export", imported, "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "LICENSE").read_text() == "Apache License 2.0\nand so on\n"


def test_a_text_is_continued_as_its_logits_say(imported, capsys):
    assert main(["sample", imported, "The cat", "--tokens", "4", "--temperature", "0"]) == 0
    said = capsys.readouterr().out
    loaded = mg.zoo.load(imported)
    ids = loaded.tokenizer.encode("The cat")
    for _ in range(4):
        scores = loaded.logits([ids])[0, -1]
        scores[[i for i in loaded.tokenizer.unwritten if i != loaded.tokenizer.eos_id]] = -np.inf
        ids.append(int(scores.argmax()))
        if ids[-1] == loaded.tokenizer.eos_id:
            break
    assert said == printable(loaded.tokenizer.decode(ids)) + "\n"


def test_verbs_of_our_own_models_work_on_it(imported, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    assert main(["eval", imported, "--data", str(text), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] > 1
    assert main(["predict", imported, "The cat"]) == 0
    assert main(["attention", imported, "The cat sat", "-o", str(tmp_path / "seen.html")]) == 0
    assert (tmp_path / "seen.html").stat().st_size > 1000


def answers(imported, lines, monkeypatch, capsys, *options):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert main(["chat", imported, "--tokens", "6", "--temperature", "0", *options]) == 0
    return capsys.readouterr()


def test_a_chat_answers_line_by_line(imported, monkeypatch, capsys):
    said = answers(imported, ["The cat", "A dog"], monkeypatch, capsys).out.splitlines()
    chat = mg.zoo.load(imported).chat()
    sampling = mg.decode.Sampling(0)
    expected = [printable("".join(chat.say(line, tokens=6, sampling=sampling))) for line in ("The cat", "A dog")]
    assert said == expected
    assert [turn["role"] for turn in chat.messages] == ["user", "assistant", "user", "assistant"]


def test_a_chat_with_its_cache_says_what_it_says_without(imported):
    loaded, sampling = mg.zoo.load(imported), mg.decode.Sampling(0)
    chat = loaded.chat("Be kind.")
    for line in ("The cat", "sat on", "the mat"):
        "".join(chat.say(line, tokens=5, sampling=sampling))
    again = loaded.chat("Be kind.")
    again.messages = chat.messages[:-2]
    assert "".join(again.say("the mat", tokens=5, sampling=sampling)) == chat.messages[-1]["content"]


def test_a_full_context_drops_the_oldest_turns_and_says_so(imported):
    notes: list[str] = []
    chat = mg.zoo.load(imported).chat("Be kind.", notice=notes.append)
    for _ in range(6):
        list(chat.say("The cat ran up a tree.", tokens=8))
    assert any("forgotten" in note for note in notes)
    assert chat.messages[0]["role"] == "system" and chat.messages[1]["role"] == "user"


def test_an_answer_that_is_interrupted_stays_in_the_conversation(imported):
    chat = mg.zoo.load(imported).chat()
    pieces = chat.say("The cat", tokens=20, sampling=mg.decode.Sampling(5.0))
    first = next(pieces)
    pieces.close()
    assert chat.messages[-1] == {"role": "assistant", "content": first}
    assert isinstance("".join(chat.say("and then?", tokens=3)), str)


def test_a_model_without_a_template_does_not_chat(imported):
    loaded = mg.zoo.load(imported)
    loaded.tokenizer.chat_template = None
    with pytest.raises(ArgumentError, match="no chat template"):
        loaded.chat()


@pytest.mark.parametrize("options", [(), ("lora=2",)], ids=["whole", "adapters"])
def test_training_begins_from_it(imported, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    command = [
        "train",
        "gpt",
        f"init={imported}",
        "length=16",
        "steps=30",
        "batch=4",
        "lr=0.01",
        "valid_every=15",
        *options,
    ]
    assert main([*command, "--data", str(text), "--out", "run", "--no-report"]) == 0
    tuned, before = mg.zoo.load("run"), mg.zoo.load(imported)
    assert tuned.tokenizer.encode(TEXT) == before.tokenizer.encode(TEXT)
    assert tuned.evaluate(str(text))["perplexity"] < 0.7 * before.evaluate(str(text))["perplexity"]
    if options:
        names = {name.rpartition(".")[2] for name, _ in tuned.model.named_parameters()}
        assert names == {"a", "b"}
    assert main(["export", "run", "-o", "out"]) == 0
    assert (tmp_path / "out" / "LICENSE").exists() and (tmp_path / "out" / "lora.safetensors").exists() == bool(options)
    np.testing.assert_allclose(
        mg.zoo.load("out").logits([[5, 9, 31]]), tuned.logits([[5, 9, 31]]), rtol=1e-4, atol=1e-4
    )


def test_settings_that_do_not_fit_the_model_are_refused(imported, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    with pytest.raises(ArgumentError, match="layers=7 does not fit"):
        mg.zoo.train("gpt", init=imported, layers=7, data=str(text), progress=False)


def test_what_is_no_model_is_named(tmp_path):
    with pytest.raises(MinigradError, match="there is no"):
        mg.hub.load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MinigradError, match="holds no pretrained model"):
        mg.hub.load(tmp_path / "empty")


def test_a_model_of_the_hub_needs_the_network(monkeypatch):
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: pip install 'minigrad[hub]'")
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    with pytest.raises(MinigradError, match="hf:nobody/nothing@main cannot be had"):
        mg.hub.load("hf:nobody/nothing@main")
