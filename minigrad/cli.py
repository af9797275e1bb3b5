"""The command `minigrad`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import __version__
from .engine.errors import nearest


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are a single line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 done, 1 failed, 2 wrongly called."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser, commands = _parser()
    command = next((word for word in given if not word.startswith("-")), None)
    if command is not None and command not in commands:
        parser.error(f"there is no command {command!r}: {nearest(command, commands)}")
    options = parser.parse_args(given)
    if command is None:
        parser.print_help()
        return 0
    try:
        code = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python must not flush into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parser() -> tuple[Parser, list[str]]:
    """The parser, and the names of the commands it knows."""
    parser = Parser(
        prog="minigrad",
        description="An autograd framework on NumPy and CuPy.",
        epilog="example:\n  minigrad demo --seed 1",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    demo = commands.add_parser("demo", help="train a small network on XOR and show what it learned")
    demo.add_argument("--seed", type=_whole_number, default=0, help="where the random weights start (default: 0)")
    demo.add_argument("--steps", type=_whole_number, default=1000, help="how many steps to train (default: 1000)")
    demo.set_defaults(run=lambda options: _demo(options.seed, options.steps))
    return parser, list(commands.choices)


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 up, got {text!r}")
    return int(text)


def _demo(seed: int, steps: int) -> int:
    """Teach XOR to a 2-8-1 network with plain tensors; success means that all four rows are right."""
    import minigrad as mg

    mg.manual_seed(seed)
    x = mg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = mg.tensor([[0.0], [1.0], [1.0], [0.0]])
    parameters = [mg.randn(2, 8), mg.zeros(8), mg.randn(8, 1), mg.zeros(1)]

    def logits(w1: mg.Tensor, b1: mg.Tensor, w2: mg.Tensor, b2: mg.Tensor) -> mg.Tensor:
        return (x @ w1 + b1).tanh() @ w2 + b2  # (4, 2) -> (4, 8) -> (4, 1)

    def loss(*parameters: mg.Tensor) -> mg.Tensor:
        z = logits(*parameters)
        return (mg.softplus(z) - y * z).mean()  # the binary cross entropy of sigmoid(z)

    loss_and_gradients = mg.value_and_grad(loss, argnums=(0, 1, 2, 3))
    print(
        f"Learning XOR: 2 inputs, 8 tanh units, 1 sigmoid output; {sum(p.size for p in parameters)} weights, seed {seed}\n"
    )
    print(" step    loss")
    for step in range(1, steps + 1):
        value, gradients = loss_and_gradients(*parameters)
        parameters = [p - 0.5 * g for p, g in zip(parameters, gradients)]
        if step == 1 or step % max(1, steps // 10) == 0:
            print(f"{step:5}  {value.item():.4f}")
    right = _show_truth_table(x.tolist(), y.tolist(), logits(*parameters).sigmoid().tolist())
    print(f"\n{'Success' if right == 4 else 'Failure'}: {right} of 4 rows are right.")
    return 0 if right == 4 else 1


def _show_truth_table(inputs: list[list[float]], targets: list[list[float]], predictions: list[list[float]]) -> int:
    """Print the table; return how many of its rows are right."""
    print("\n a  b  target  prediction  rounded")
    right = 0
    for (a, b), (target,), (prediction,) in zip(inputs, targets, predictions):
        rounded = int(prediction >= 0.5)
        right += rounded == target
        print(f"{a:2.0f} {b:2.0f}  {target:6.0f}  {prediction:10.3f}  {rounded:7}")
    return right
