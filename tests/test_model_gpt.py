"""The plugin gpt: the same numbers as a twin in PyTorch, nothing seen ahead of time, and the three tasks that it learns."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from minigrad_models.corpora import story_text
from minigrad_models.gpt import attend, few_shot, samples, sorting, spec
from minigrad_models.gpt.model import GPT
from minigrad_models.gpt.text import tokenizer_for

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.data import BlockBatch
from minigrad.data.errors import DataError
from minigrad.decode import LanguageModel, Sampling, generate
from minigrad.errors import ArgumentError, NonFiniteError
from minigrad.nn import functional as F
from minigrad.tracer import Tracer, tracing
from minigrad.zoo import load_as, trainer_of
from minigrad.zoo.config import configure

VOCAB, CONTEXT, LAYERS, HEADS, DIM = 11, 6, 2, 2, 8
ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu", "swiglu", "geglu", "reglu")
STYLES = [
    {"positions": positions, "norm": norm, "activation": activation, "bias": bias}
    for positions, norm, activation, bias in product(
        ("learned", "sinusoidal", "rotary"), ("layer", "rms"), ACTIVATIONS, (True, False)
    )
]
FEW_STYLES = [
    {},
    {"positions": "sinusoidal"},
    {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False},
]


def model_of(dtype="float64", **style):
    """A small model whose weights, biases too, are large enough to matter."""
    mg.manual_seed(0)
    model = GPT(VOCAB, CONTEXT, LAYERS, HEADS, DIM, **style).to(dtype=dtype).eval()
    for i, parameter in enumerate(model.parameters()):
        drawn = np.random.default_rng(i).normal(float(parameter.ndim == 1), 0.5, parameter.shape)
        parameter.data[...] = drawn
    return model


def tokens_of(batch=3, length=CONTEXT, seed=0):
    return np.random.default_rng(seed).integers(0, VOCAB, (batch, length))


class Twin:
    """The same model in PyTorch, from the same weights, as the papers write it."""

    def __init__(self, model, positions="learned", norm="layer", activation="gelu_tanh", bias=True):
        import torch

        self.torch, self.positions, self.norm, self.activation = torch, positions, norm, activation
        self.w = {
            name: torch.tensor(value.numpy(), requires_grad=True)
            for name, value in dict(model.named_parameters()).items()
        }

    def __call__(self, tokens):
        torch = self.torch
        length = tokens.shape[1]
        x = self.w["tokens.weight"][torch.tensor(tokens)]
        if self.positions == "learned":
            x = x + self.w["positions.weight"][:length]
        elif self.positions == "sinusoidal":
            table = [
                [(math.cos if c % 2 else math.sin)(p / 10000 ** ((c - c % 2) / DIM)) for c in range(DIM)]
                for p in range(length)
            ]
            x = math.sqrt(DIM) * x + torch.tensor(table, dtype=x.dtype)
        for layer in range(LAYERS):
            block = f"encoder.blocks.{layer}"
            x = x + self.attention(f"{block}.attention", self.normed(f"{block}.attention_norm", x))
            x = x + self.mlp(f"{block}.mlp", self.normed(f"{block}.mlp_norm", x))
        return self.normed("encoder.norm", x) @ self.w["tokens.weight"].T

    def linear(self, name, x):
        weight = self.w.get(f"{name}.weight", self.w.get(f"{name}_weight"))
        bias = self.w.get(f"{name}.bias", self.w.get(f"{name}_bias"))
        return self.torch.nn.functional.linear(x, weight, bias)

    def normed(self, name, x):
        weight, bias = self.w[f"{name}.weight"], self.w.get(f"{name}.bias")
        if self.norm == "rms":
            return self.torch.nn.functional.rms_norm(x, (DIM,), weight)
        return self.torch.nn.functional.layer_norm(x, (DIM,), weight, bias)

    def attention(self, name, x):
        torch, size = self.torch, DIM // HEADS
        parts = self.linear(f"{name}.in_proj", x).split(DIM, dim=2)
        q, k, v = (part.unflatten(2, (HEADS, size)).transpose(1, 2) for part in parts)
        if self.positions == "rotary":
            q, k = self.turned(q), self.turned(k)
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.linear(f"{name}.out_proj", seen.transpose(1, 2).flatten(2))

    def turned(self, x):
        """Pairs of columns as complex numbers, multiplied by others of size 1."""
        torch, size = self.torch, DIM // HEADS
        angles = torch.tensor(
            [[p / 10000 ** (2 * i / size) for i in range(size // 2)] for p in range(x.shape[2])], dtype=x.dtype
        )
        pairs = torch.view_as_complex(x.unflatten(3, (size // 2, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(3)

    def mlp(self, name, x):
        functions = self.torch.nn.functional
        plain = {
            "gelu": functions.gelu, "gelu_tanh": lambda x: functions.gelu(x, approximate="tanh"),
            "relu": functions.relu, "silu": functions.silu,
        }  # fmt: skip
        gates = {"swiglu": functions.silu, "geglu": functions.gelu, "reglu": functions.relu}
        x = self.linear(f"{name}.up", x)
        if self.activation in gates:
            gate, x = x.chunk(2, dim=-1)
            x = gates[self.activation](gate) * x
        else:
            x = plain[self.activation](x)
        return self.linear(f"{name}.down", x)


@pytest.mark.torch
@pytest.mark.parametrize("style", STYLES, ids=lambda style: "-".join(map(str, style.values())))
def test_the_model_and_all_its_gradients_equal_those_of_a_twin_in_pytorch(style):
    import torch

    model = model_of(**style)
    twin = Twin(model, **style)
    tokens, targets = tokens_of(), tokens_of(seed=1)
    logits, theirs = model(tokens), twin(tokens)
    np.testing.assert_allclose(logits.numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-9)
    F.cross_entropy(logits.reshape(-1, VOCAB), mg.tensor(targets.reshape(-1))).backward()
    torch.nn.functional.cross_entropy(theirs.flatten(0, 1), torch.tensor(targets.reshape(-1))).backward()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(
            parameter.grad.numpy(), twin.w[name].grad.numpy(), rtol=1e-7, atol=1e-10, err_msg=name
        )


@pytest.mark.torch
def test_the_model_is_that_of_the_benchmark():
    from benchmarks.twins import gpt_torch
    from benchmarks.twins.gpt import CONFIGS, weights

    config = CONFIGS["tiny"]
    model = GPT(config.vocabulary, config.length, config.layers, config.heads, config.dim)
    model.load_state_dict({name: mg.tensor(array) for name, array in weights(config).items()})
    tokens = np.random.default_rng(0).integers(0, config.vocabulary, (2, config.length))
    import torch

    with torch.no_grad(), mg.no_grad():
        theirs = gpt_torch.new_model(config)(torch.tensor(tokens)).numpy()
        np.testing.assert_allclose(model(tokens).numpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["nano", "baby"])
def test_presets_of_the_benchmark_have_its_sizes(name):
    from benchmarks.twins.gpt import ADAMW, CONFIGS, MAX_NORM

    config, theirs = configure(spec, name), CONFIGS[name]
    sizes = (config.layers, config.dim, config.heads, config.batch, config.context)
    assert sizes == (theirs.layers, theirs.dim, theirs.heads, theirs.batch, theirs.length)
    given = {"lr": config.lr, "betas": config.betas, "weight_decay": config.weight_decay}
    assert {**given, "eps": 1e-8} == ADAMW and config.clip == MAX_NORM
    assert (config.activation, config.bias, config.positions, config.dropout) == ("gelu_tanh", True, "learned", 0)


@pytest.mark.parametrize("style", FEW_STYLES, ids=str)
def test_no_token_is_seen_before_its_time(style):
    model = model_of(**style)
    first = tokens_of()
    with mg.no_grad():
        before = model(first).numpy()
        for place in range(CONTEXT):
            changed = first.copy()
            changed[:, place] = (changed[:, place] + 1) % VOCAB
            after = model(changed).numpy()
            np.testing.assert_allclose(after[:, :place], before[:, :place], rtol=1e-12, atol=1e-12)
            assert (np.abs(after[:, place] - before[:, place]).max(axis=1) > 1e-3).all()


@pytest.mark.parametrize("style", FEW_STYLES, ids=str)
@pytest.mark.parametrize("how", [Sampling(0), Sampling(1.0), Sampling(1.0, top_k=4, repetition_penalty=1.1)], ids=str)
def test_with_a_cache_the_same_tokens_come_also_past_the_context(style, how):
    model, prompt = model_of("float32", **style), tokens_of(length=4)

    def written(cached):
        return np.stack(list(generate(LanguageModel(model, cached), prompt, length=5 * CONTEXT, sampling=how, seed=1)))

    np.testing.assert_array_equal(written(True), written(False))


def test_the_window_slides_by_half_and_scores_are_those_of_what_is_left():
    model, stream = model_of(), tokens_of(batch=1, length=20)
    assert CONTEXT < 20
    continuation = LanguageModel(model)
    seen = 0
    for place in range(20):
        found = continuation(stream[:, place : place + 1])
        seen = seen + 1 if seen < CONTEXT else CONTEXT // 2
        with mg.no_grad():
            wanted = model(stream[:, place + 1 - seen : place + 1])[:, -1].numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_of_a_prompt_that_is_longer_than_the_context_as_much_counts_as_fits():
    model, stream = model_of(), tokens_of(batch=1, length=CONTEXT + 1)
    for cached in (True, False):
        found = LanguageModel(model, cached)(stream)
        with mg.no_grad():
            wanted = model(stream[:, 1:])[:, -1].numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_batch_of_prompts_goes_through_the_blocks_once_and_only_its_last_positions_get_scores():
    scored = set()

    class Shapes(Tracer):
        def called(self, op, inputs, attrs, outputs, seconds):
            shapes = [output.shape for output in (outputs if isinstance(outputs, tuple) else [outputs])]
            scored.update(shape for shape in shapes if shape and (shape[0], shape[-1]) == (3, VOCAB))

    model, prompts, passes = model_of(), tokens_of(batch=3, length=6), []
    model.encoder.register_forward_hook(lambda module, given, out: passes.append(out.shape[:2]))
    with mg.no_grad():
        wanted = model(prompts)[:, -1].numpy()
    passes.clear()
    with tracing(Shapes()):
        found = LanguageModel(model)(prompts)
    assert passes == [(3, 6)]
    assert scored == {(3, 1, VOCAB), (3, VOCAB)}
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_weights_start_as_those_of_gpt_2_and_by_their_inputs_inside_a_block():
    mg.manual_seed(0)
    model = GPT(vocab=500, context=64, layers=8, heads=4, dim=128)
    for name, parameter in model.named_parameters():
        values = parameter.numpy()
        if parameter.ndim == 1:
            assert (values == (0 if name.endswith("bias") else 1)).all(), name
        else:
            adds = name.endswith(("out_proj.weight", "mlp.down.weight"))
            inside = name.endswith(("in_proj_weight", "mlp.up.weight"))
            expected = 0.02 / math.sqrt(2 * 8) if adds else 1 / math.sqrt(128) if inside else 0.02
            assert values.std() == pytest.approx(expected, rel=0.05), name


def test_only_matrices_shrink():
    config = configure(spec, "nano", {"layers": 1, "dim": 8, "vocab": 20})
    model = spec.build(config)
    optimizer = spec.optimizer(model, config)
    before = {name: parameter.numpy().copy() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = mg.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        share = 1 - config.lr * config.weight_decay if before[name].ndim == 2 else 1.0
        np.testing.assert_allclose(parameter.numpy(), share * before[name], rtol=1e-5, err_msg=name)


def test_the_rate_rises_and_falls_as_nanogpt_s():
    config = configure(spec, "shakespeare-cpu")
    model = spec.build(dataclasses.replace(config, layers=1, vocab=20))
    found = spec.schedule(spec.optimizer(model, config), config)
    assert [found.lr(step) for step in (0, 49)] == pytest.approx([1e-3 / 101, 1e-3 * 50 / 101])
    for step in (100, 700, 1999):
        wanted = 1e-4 + 0.5 * (1 + math.cos(math.pi * (step - 100) / 1900)) * 9e-4
        assert found.lr(step) == pytest.approx(wanted)
    short = spec.schedule(spec.optimizer(model, config), dataclasses.replace(config, steps=10))
    assert short.lr(1) == pytest.approx(1e-3)


def test_a_constant_rate_stays_after_the_warm_up():
    config = configure(spec, "nano", {"layers": 1, "dim": 8, "vocab": 20, "lr_end": 1})
    found = spec.schedule(spec.optimizer(spec.build(config), config), config)
    assert [found.lr(step) for step in (100, 1000, 1999)] == pytest.approx([1e-3] * 3)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"dim": 10, "heads": 4}, "dim a multiple of heads"),
        ({"dim": 12, "heads": 4, "positions": "rotary"}, "dim / heads even"),
        ({"dropout": 1.0}, "less than 1"),
        ({"betas": "0.9,1"}, "less than 1"),
        ({"lr_end": 1.5}, "lr_end up to 1"),
        ({"tokenizer": "bpe", "vocab": 100}, "261"),
        ({"task": "sort", "context": 10}, "context=11 or more"),
        ({"task": "sort", "kinds": 11}, "kinds up to 10"),
        ({"task": "few-shot", "context": 30}, f"context={few_shot.CONTEXT} or more"),
        ({"positions": "rotry"}, "rotary"),
        ({"activation": "gleu"}, "gelu"),
        ({"context": 0}, "1 or more"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_with_what_can(settings, part):
    with pytest.raises(ArgumentError, match="gpt") as error:
        configure(spec, None, settings)
    assert part in str(error.value)


def trained(tmp_path, path=None, **settings):
    """A run of a few steps, loaded."""
    trainer = trainer_of(
        spec, configure(spec, None, {**spec.tiny, **settings}), tmp_path / "run", data=path, progress=False
    )
    trainer.train()
    return load_as(spec, tmp_path / "run")


def test_the_loss_is_that_of_the_whole_text_held_out_in_blocks_that_do_not_overlap(tmp_path):
    loaded = trained(tmp_path)
    found = loaded.evaluate()
    text = story_text(loaded.config.characters)
    ids = loaded.tokenizer.encode(text[len(text) * 9 // 10 :])
    total = 0.0
    for start in range(0, len(ids) - 1, loaded.config.context):
        block = ids[start : start + loaded.config.context + 1]
        with mg.no_grad():
            logits = loaded.model([block[:-1]]).numpy()[0].astype(np.float64)
        total += sum(np.log(np.exp(row).sum()) - row[target] for row, target in zip(logits, block[1:]))
    assert found["tokens"] == len(ids) - 1
    assert found["whole_validation_loss"] == pytest.approx(total / (len(ids) - 1), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["whole_validation_loss"]))
    other = tmp_path / "other.txt"
    other.write_text("Ana went home.\n", encoding="utf-8")
    assert loaded.evaluate(str(other)).keys() >= {"whole_text_loss", "perplexity"}


@pytest.mark.parametrize("tokenizer", ["char", "word", "bpe"])
def test_a_text_file_is_learned_whatever_its_tokens_are(tmp_path, tokenizer):
    path = tmp_path / "my.txt"
    path.write_text("the cat sat on the mat, and the dog lay on the log.\n" * 12, encoding="utf-8")
    loaded = trained(tmp_path, str(path), tokenizer=tokenizer, steps=60)
    assert loaded.config.vocab == loaded.tokenizer.vocab_size == loaded.model.tokens.num_embeddings
    assert loaded.evaluate()["whole_validation_loss"] < 0.8 * math.log(loaded.config.vocab)
    answers = loaded.predict("the cat", "")
    assert [answer["input"] for answer in answers] == ["the cat", ""]
    assert all(answer["continuation"] for answer in answers)
    again = configure(spec, None, dataclasses.asdict(loaded.config))
    assert tokenizer_for(again, path.read_text("utf-8")[: int(12 * 52 * 0.9)]) == loaded.tokenizer


@pytest.mark.parametrize(
    ("text", "part"),
    [("", "no text"), ("\n\n", "no text"), ("ab", "too short to learn from"), ("a" * 8, "too short to learn from")],
)
def test_a_text_that_is_empty_or_shorter_than_a_block_is_refused(tmp_path, text, part):
    path = tmp_path / "short.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=part):
        trained(tmp_path, str(path))


@pytest.mark.parametrize(("text", "fix"), [("ab", "give more text"), ("abcdefgh", "give more text, or context=3")])
def test_only_a_context_that_would_do_is_advised_for_a_short_text(tmp_path, text, fix):
    path = tmp_path / "short.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        trained(tmp_path, str(path))
    assert str(error.value).endswith(fix)


def test_lines_that_are_no_text_are_left_out_and_told_of(tmp_path):
    path = tmp_path / "mixed.txt"
    path.write_bytes(b"the cat sat\ncaf\xe9 ol\xe9\n" + b"on the mat\n" * 9)
    with pytest.warns(UserWarning, match=r"left out of .*mixed\.txt(.|\n)*line 2"):
        loaded = trained(tmp_path, str(path))
    with pytest.warns(UserWarning, match="left out"):
        loaded.evaluate()


def test_a_text_of_which_nothing_can_be_held_out_is_learned_all_the_same(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("abcdefghij", encoding="utf-8")
    loaded = trained(tmp_path, str(path))
    with pytest.raises(DataError, match="too little text is held out"):
        loaded.evaluate()


def test_training_that_diverges_ends_with_what_to_do(tmp_path):
    with pytest.raises(NonFiniteError):
        trained(tmp_path, lr=1e30, clip=0)


def test_what_is_not_known_is_noted_beside_the_answer(tmp_path):
    loaded = trained(tmp_path)
    (answer,) = loaded.predict("An€a")
    assert "'€'" in answer["note"] and "€" not in answer["continuation"]
    (long,) = loaded.predict("Ana was at home. " * 3)
    assert "only its end counts" in long["note"]


def test_attend_names_what_the_model_is_called_with(tmp_path):
    loaded = trained(tmp_path)
    given = attend(loaded, "Ana was at home")
    assert "".join(given["tokens"]) == "Ana was at home"[-loaded.config.context :]
    assert loaded.model(*given["inputs"]).shape == (1, len(given["tokens"]), len(given["vocabulary"]))
    with pytest.raises(ArgumentError, match="no text to look at"):
        attend(loaded, "")


def test_samples_are_text_that_the_model_wrote(tmp_path):
    loaded = trained(tmp_path)
    assert len(samples(loaded)) == 200
    assert samples(loaded) == samples(loaded)


def test_a_run_goes_on_after_it_was_interrupted(tmp_path, capsys):
    settings = [f"{name}={value}" for name, value in spec.tiny.items()]
    assert main(["train", "gpt", *settings, "--max-steps", "5", "--out", str(tmp_path / "run")]) == 0
    assert main(["resume", str(tmp_path / "run"), "--max-steps", "9"]) == 0
    assert "minigrad sample" in capsys.readouterr().out
    assert zoo.load(tmp_path / "run", "latest").step == 9


def test_sorting_is_learned_from_other_sequences_than_it_is_judged_by():
    draw = np.random.default_rng(0)
    learned, judged = (sorting.drawn(draw, 3000, 6, 3, held_out) for held_out in (False, True))
    first, second = ({tuple(row) for row in rows.tolist()} for rows in (learned, judged))
    assert not first & second
    assert len(first | second) > 700  # of 3 ** 6 = 729
    assert 0.2 < len(second) / 729 < 0.3


def test_only_the_sorted_part_counts():
    tokenizer = sorting.tokenizer_of(configure(spec, "sort"))
    batch = sorting.batch_of(np.array([[2, 0, 1]]), tokenizer)
    first = tokenizer.ids["0"]
    assert (batch.inputs - first).tolist() == [[2, 0, 1, 0, 1]]
    assert batch.targets.tolist() == [[-100, -100, first, first + 1, first + 2]]
    model = spec.build(configure(spec, "sort", {"vocab": tokenizer.vocab_size}))
    amount, count = spec.loss(model, batch)["loss"]
    with mg.no_grad():
        logits = model(batch.inputs).numpy()[0, 2:].astype(np.float64)
    wanted = sum(np.log(np.exp(row).sum()) - row[target] for row, target in zip(logits, batch.targets[0, 2:]))
    assert (float(amount), count) == (pytest.approx(wanted, rel=1e-5), 3)


def test_digits_are_sorted_that_were_never_seen(tmp_path):
    settings = {"digits": 4, "context": 7, "layers": 2, "dim": 36, "lr": 2e-3, "steps": 250, "valid_every": 125}
    zoo.train("gpt:sort", str(tmp_path / "run"), progress=False, **settings)
    loaded = zoo.load(tmp_path / "run")
    found = loaded.evaluate()
    assert found["asked"] == 5000 and found["right"] >= 4900
    assert loaded.predict("2 1 0 1") == [{"input": "2101", "sorted": "0112"}]
    assert "".join(loaded.sample("2101", sampling=Sampling(0))) == "0112"
    asked = np.array([[2, 1, 0, 1], [0, 2, 2, 1]])
    with_cache, without = (sorting.answers(loaded.model, loaded.tokenizer, asked, cached) for cached in (True, False))
    np.testing.assert_array_equal(with_cache, without)
    for wrong in ("", "21", "2103", "21011", "abcd"):
        with pytest.raises(ArgumentError, match="4 digits from 0 to 2"):
            loaded.predict(wrong)


@pytest.mark.parametrize("preset", ["sort", "few-shot"])
def test_a_task_that_makes_its_data_refuses_other(tmp_path, preset):
    (tmp_path / "some.txt").write_text("210")
    with pytest.raises(ArgumentError, match="makes its own data"):
        zoo.train(f"gpt:{preset}", str(tmp_path / "run"), data=str(tmp_path / "some.txt"))


def test_texts_of_examples_follow_one_rule_and_only_answers_count():
    tokenizer = few_shot.few_shot_data(configure(spec, "few-shot"), None).tokenizer
    batch = few_shot.text_batch(np.random.default_rng(0), 20, tokenizer, held_out=False)
    assert batch.inputs.shape == (20, few_shot.CONTEXT)
    for inputs, targets in zip(batch.inputs, batch.targets):
        text = tokenizer.decode([*inputs, *tokenizer.encode(";")])
        pairs = [example.split(">") for example in text.removesuffix(";").split(";")]
        assert any(all(rule(word) == answer for word, answer in pairs) for rule in few_shot.RULES.values())
        assert tokenizer.decode(targets[targets != -100]) == "".join(answer for _, answer in pairs)
        assert not {word for word, _ in pairs} & set(few_shot.words(held_out=True))


def test_what_to_do_is_learned_from_examples_in_the_prompt(tmp_path, monkeypatch):
    rules = {name: few_shot.RULES[name] for name in ("first", "capitals")}
    monkeypatch.setattr(few_shot, "RULES", rules)
    zoo.train("gpt:few-shot", str(tmp_path / "run"), progress=False, steps=120, batch=24, valid_every=120)
    loaded = zoo.load(tmp_path / "run")
    found = loaded.evaluate()
    assert found["right_after_0"] <= 0.6  # nothing tells which rule it is
    assert found["right_after_2"] >= 0.95
    answers = loaded.predict("abc>aaa;fed>fff;hag>", "abc>ABC;fed>FED;hag>")
    assert [answer["answer"] for answer in answers] == ["hhh", "HAG"]
    for wrong in ("", "abc", "abc>xyz;hag>", 5 * "abc>aaa;" + "hag>"):
        with pytest.raises(ArgumentError, match="up to 4 examples and a question"):
            loaded.predict(wrong)
    assert loaded.predict(4 * "abc>aaa;" + "hag>")[0]["answer"] == "hhh"


def test_dropout_is_only_for_training():
    model = model_of(dropout=0.5)
    with mg.no_grad():
        assert (model(tokens_of()).numpy() == model(tokens_of()).numpy()).all()
        model.train()
        assert (model(tokens_of()).numpy() != model(tokens_of()).numpy()).any()


def test_the_example_can_be_learned_by_every_preset_s_model():
    for preset in ("default", *spec.presets):
        config = configure(spec, preset, {"layers": 1, "heads": 1, "dim": 4, "vocab": 300})
        batch = spec.example(config)
        assert isinstance(batch, BlockBatch)
        amount, count = spec.loss(spec.build(config), batch)["loss"]
        assert float(amount) / count == pytest.approx(math.log(300), rel=0.05)
