"""`minigrad demo`: XOR, learned with plain tensors in a second."""

from __future__ import annotations

from argparse import Namespace

from .parsing import Command, Parser, whole_number

__all__ = ["DEMO"]


def _arguments(parser: Parser) -> None:
    parser.add_argument("--seed", type=whole_number, default=0, help="where the random weights start (default: 0)")
    parser.add_argument("--steps", type=whole_number, default=1000, help="how many steps to train (default: 1000)")


def _demo(options: Namespace) -> int:
    """Teach XOR to a 2-8-1 network with plain tensors; success means that all four rows are right."""
    import minigrad as mg

    seed, steps = options.seed, options.steps

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


DEMO = Command("train a small network on XOR and show what it learned", "minigrad demo --seed 1", _arguments, _demo)
