"""Facts: "Michael + Jordan -> basketball", held by one MLP block in a residual stream, by hand and learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.zoo import Choice, Config, Data, ModelSpec, Page, option


@dataclass(frozen=True)
class FactsConfig(Config):
    """An MLP block that adds to a stream."""

    hidden: int = option(16, "how many neurons", least=1)
    activation: str = option("relu", "of the neurons", choices=("relu", "none"))
    sparsity: float = option(0.03, "what it costs that a neuron fires, which makes them few and single-minded", least=0)
    unseen: int = option(12, "how many wrong combinations of names are kept out of training", least=0)
    steps: int = option(1500, "how many steps to train")
    batch: int = option(81, "how many combinations of names in a batch")
    weight_decay: float = option(0.1, "how much weights shrink, times the learning rate")
    valid_every: int = option(250, "steps between validations")


def data(config: FactsConfig, path: str | None) -> Data:
    """Names and sports: all facts, and all other combinations but the unseen; evaluated on all."""
    import numpy as np

    from minigrad.train import ArrayBatches

    from .model import everybody, unseen

    arrays = everybody()
    seen = tuple(np.delete(array, unseen(config.unseen)) for array in arrays)
    return Data(ArrayBatches(seen, config.batch), ArrayBatches(arrays, len(arrays[0]), shuffle=False))


def build(config: FactsConfig) -> Any:
    """A block with random weights, between fixed directions."""
    from .model import FactBlock

    return FactBlock(config.hidden, config.activation, config.sparsity)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of the answers and what firing costs, and how many answers are right."""
    import minigrad as mg
    from minigrad.nn import functional as F

    first, last, answers = batch
    logits = model(first, last)
    wrong = F.cross_entropy(logits, mg.tensor(answers), reduction="sum")
    right = (logits.argmax(axis=1) == mg.tensor(answers)).sum()
    firing = model.neurons(model.stream(first, last)).abs().sum() if model.sparsity else 0.0
    return {"loss": (wrong + model.sparsity * firing, len(answers)), "accuracy": (right, len(answers))}


def example(config: FactsConfig) -> Any:
    """The first twenty combinations, some of which are facts."""
    from .model import everybody

    return tuple(array[:20] for array in everybody())


def _parsed(text: str) -> tuple[int, int]:
    """ "Michael Jordan" -> (1, 1); either name may be missing."""
    from minigrad.errors import ArgumentError, nearest

    from .model import FIRST, LAST

    known = {name.lower(): name for name in [*FIRST[1:], *LAST[1:]]}
    words = text.split()
    for word in words:
        if word.lower() not in known:
            raise ArgumentError(
                f"facts knows nobody called {word!r}",
                f"a first name ({', '.join(FIRST[1:])}), a last name ({', '.join(LAST[1:])}), or both",
                repr(text),
                nearest(word.capitalize(), list(known.values())),
            )
    names = [known[word.lower()] for word in words]
    first = FIRST.index(names[0]) if names and names[0] in FIRST else 0
    rest = names[1:] if first else names
    if not names or len(rest) > 1 or any(name not in LAST for name in rest):
        raise ArgumentError(
            f"{text!r} is not a name", "a first name, a last name, or both in this order", repr(text),
            f'for instance "{FIRST[1]} {LAST[1]}"',
        )  # fmt: skip
    return first, LAST.index(rest[0]) if rest else 0


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """The sport of a name such as "Michael Jordan", or "no fact", with the probabilities of all answers."""
    import numpy as np

    import minigrad as mg

    from .model import ANSWERS

    answers = []
    for text in inputs:
        first, last = (np.array([index]) for index in _parsed(text))
        with mg.no_grad():
            chances = loaded.model(first, last).softmax(axis=1)[0].tolist()
        found = dict(sorted(zip(ANSWERS, (round(chance, 4) for chance in chances)), key=lambda item: -item[1]))
        answers.append({"input": text, "answer": next(iter(found)), "probabilities": found})
    return answers


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The shares that are right: of facts, of wrong combinations that were trained on, and of unseen ones."""
    import numpy as np

    import minigrad as mg

    from .model import SPORTS, everybody, gates, unseen

    first, last, answers = everybody()
    with mg.no_grad():
        right = loaded.model(first, last).numpy().argmax(axis=1) == answers
    facts = answers < len(SPORTS)
    held = np.isin(np.arange(len(answers)), unseen(loaded.config.unseen))
    return {
        "facts": float(right[facts].mean()),
        "wrong_combinations": float(right[~facts & ~held].mean()),
        "unseen_combinations": float(right[held].mean()) if held.any() else None,
        "and_gates": sum(gate.is_and for gate in gates(loaded.model)),
    }


def after(loaded: Any, folder: Any) -> str:
    """The AND gates, by hand and learned, the block as a memory, and how much of it is right."""
    from .model import FACTS, by_hand, everybody, gates, memory

    total, known = len(everybody()[0]), len(FACTS)
    lines = [f"How much a neuron fires:   {'neither':>8}{'first':>8}{'last':>8}{'both':>8}   for others"]
    for way, block, shown in (("by hand", by_hand(), 1), ("learned", loaded.model, known)):
        for gate in gates(block)[:shown]:
            fires = "".join(f"{value:8.2f}" for value in gate.activations)
            verdict = "AND gate" if gate.is_and else "no AND gate"
            lines.append(f"{way} {gate.fact:15} {gate.neuron:3}{fires}   {gate.others:10}  {verdict}")
    lines.append(
        "The block as a memory, a neuron an entry: what its row of `up` asks for, what its column of `down` adds:"
    )
    for entry in memory(loaded.model):
        key, value = (", ".join(f"{name} {size:+.2f}" for name, size in side) for side in (entry.key, entry.value))
        lines.append(f"{entry.neuron:3}  {key}, bias {entry.bias:+.2f}  ->  {value}")
    found = evaluate(loaded, None)
    shares = ", ".join(
        f"{name} {share:.0%}" for name, share in found.items() if name != "and_gates" and share is not None
    )
    lines.append(f'Right: {shares} (to always say "no fact" is right for {total - known} of {total}, and for no fact).')
    lines.append(f"{found['and_gates']} of {known} facts have a neuron that is their AND gate.")
    return "\n".join(lines)


def neurons(loaded: Any) -> list[Any]:
    """For each fact: the neuron that does most for it, and how much it fires for neither, first, last and both names."""
    from .model import gates

    return gates(loaded.model)


def entries(loaded: Any) -> list[Any]:
    """The block as a key-value memory: for each neuron the names of its key and the sport of its value."""
    from .model import memory

    return memory(loaded.model)


def page(loaded: Any) -> Page:
    """A choice of each name."""
    from .model import ANSWERS, FACTS, FIRST, LAST, indices

    first, last = indices(next(iter(FACTS)))
    names = [Choice("first name", FIRST, first), Choice("last name", LAST, last)]
    return Page(inputs=names, answers=ANSWERS, examples=[*FACTS][:4])


spec = ModelSpec(
    name="facts",
    task="classification",
    summary='"Michael + Jordan -> basketball" held by one MLP block, set by hand and learned',
    config=FactsConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    takes_data=False,
    predict=predict,
    example_inputs=("Michael Jordan", "Serena Jordan"),
    evaluate=evaluate,
    presets={"dense": {"sparsity": 0.0, "weight_decay": 0.0}, "linear": {"activation": "none", "sparsity": 0.0}},
    tiny={"steps": 300},
    verbs={"gates": neurons, "memory": entries},
    after=after,
    page=page,
)
