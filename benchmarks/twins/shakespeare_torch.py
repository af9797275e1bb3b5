"""nanoGPT's CPU set-up in PyTorch, from minigrad's initial weights and with its batches: `trained` runs it for comparison.

    python -m benchmarks.twins.shakespeare_torch TEXT SEED STEPS

prints {"seconds": of training with its validations, "loss": over the whole validation split}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from torch import nn

from . import gpt_torch
from .gpt import Config

BATCH = 64  # blocks of the validation split that are evaluated at once


def twin_of(loaded: Any, config: Any) -> nn.Module:
    """The model with the same weights: biases left out, and GELU exact, as nanoGPT has them."""
    sizes = Config(config.layers, config.dim, config.heads, config.batch, config.context, config.vocab)
    model = gpt_torch.GPT(sizes)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.LayerNorm)):
            module.register_parameter("bias", None)
        if isinstance(module, gpt_torch.MLP):
            module.activation = nn.GELU()
    state = {gpt_torch.torch_name(name): torch.tensor(value.numpy()) for name, value in loaded.state_dict().items()}
    model.load_state_dict(state)
    return model


def train(text: str, seed: int, steps: int) -> dict[str, float]:
    """Train as `minigrad train gpt:shakespeare-cpu` does, with as many validations over the whole split."""
    from minigrad.zoo.config import configure
    from minigrad.zoo.training import named, trainer_of

    spec, preset = named("gpt:shakespeare-cpu")
    config = configure(spec, preset, {"steps": steps})
    ours = trainer_of(spec, config, None, data=text, seed=seed, progress=False)
    config = configure(spec, None, ours.config["config"])
    model = twin_of(ours.model, config)
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, fused=True)
    began = time.perf_counter()
    for step, batch in zip(range(steps), ours.data.forever()):
        for group in optimizer.param_groups:
            group["lr"] = ours.schedule.at(step, config.lr)
        loss = gpt_torch.loss_of(model, batch.inputs, batch.targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        if (step + 1) % config.valid_every == 0 or step + 1 == steps:
            mean = evaluate(model, ours.valid)
    return {"seconds": time.perf_counter() - began, "loss": mean}


def evaluate(model: nn.Module, batches: Any) -> float:
    """The mean loss over all blocks."""
    total = count = 0.0
    with torch.inference_mode():
        for index in range(len(batches)):
            batch = batches.batch(0, index)
            total += float(gpt_torch.loss_of(model, batch.inputs, batch.targets)) * batch.tokens
            count += batch.tokens
    return total / count


if __name__ == "__main__":
    print(json.dumps(train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
