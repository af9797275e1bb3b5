"""GPT: tokens and their positions, a causal stack of blocks, and a head that is the table of tokens again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import minigrad as mg
from minigrad import nn

IGNORED = -100  # a target that does not count


class GPT(nn.Module):
    """Tokens (B, T) -> logits of the token after each, (B, T, vocab).

    `positions` are "learned", "sinusoidal" (both are added to the tokens) or "rotary" (queries and keys are turned, with
    the options `rotary` of `nn.RotaryPositions`); `norm`, `activation`, `hidden`, `bias`, `dropout` and whatever else is
    given are options of `nn.TransformerBlock`. Vectors of tokens are `scaled` by √dim if told so, as Gemma's, and with a
    `logit_softcap` c logits become c · tanh(logits / c). If it is not `tied`, the head has a matrix of its own. It is made to see
    `context` tokens at once. What adds to the stream starts as GPT-2's, and so do the vectors of tokens and positions.

    >>> model = GPT(vocab=10, context=8, layers=1, heads=2, dim=4)
    >>> model([[1, 2, 3]]).shape
    (1, 3, 10)
    """

    def __init__(
        self,
        vocab: int,
        context: int,
        layers: int,
        heads: int,
        dim: int,
        *,
        hidden: int | None = None,
        positions: str = "learned",
        norm: str = "layer",
        activation: str = "gelu_tanh",
        bias: bool = True,
        dropout: float = 0.0,
        tied: bool = True,
        scaled: bool = False,
        logit_softcap: float | None = None,
        balance: float = 0.01,
        rotary: Mapping[str, Any] | None = None,
        **block: Any,
    ):
        self.context = context
        # Tokens start small beside sines, which go up to 1, so they are enlarged as in "Attention is all you need".
        self.scale = dim**0.5 if scaled or positions == "sinusoidal" else 1.0
        self.logit_softcap, self.balance = logit_softcap, balance
        self.positions: Any = None
        with nn.init.skip():  # every matrix is drawn once, below
            self.tokens = nn.Embedding(vocab, dim)
            if positions != "rotary":
                learned = positions == "learned"
                self.positions = nn.LearnedPositions(context, dim) if learned else nn.SinusoidalPositions(dim)
            self.dropout = nn.Dropout(dropout)
            head_dim = block.get("head_dim") or dim // heads
            self.encoder = nn.Encoder(
                layers, dim, heads, hidden, causal=True, activation=activation, norm=norm, bias=bias, dropout=dropout,
                rotary=nn.RotaryPositions(head_dim, **(rotary or {})) if positions == "rotary" else None, **block,
            )  # fmt: skip
            self.head = None if tied else nn.Linear(dim, vocab, bias=False)
        self.vocabulary = nn.VocabularyHead("tokens.weight", "head.weight")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as GPT-2 does, with a deviation of 0.02, less where a block adds to the stream; biases begin at 0.

        Inside a block it is 1 / √inputs, so that numbers keep their size at any width: 0.02 fits a width of 2,500, and made
        the loss on Shakespeare 1.91 in the place of 1.74 at a width of 128.
        """
        layers = len(self.encoder.blocks)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                adds = name.endswith(("out_proj.weight", "down.weight"))
                is_inside = name.startswith("encoder.") and not adds
                nn.init.gpt2_(parameter, layers if adds else None, parameter.shape[1] ** -0.5 if is_inside else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def new_cache(self) -> Any:
        """An empty cache for generating token by token."""
        return self.encoder.new_cache()

    def forward(self, tokens: Any, cache: Any = None, mask: Any = None, targets: Any = None) -> mg.Tensor:
        """With a cache, `tokens` are only those that it has not seen.

        `mask` (B, S) is False for padding, which may stand before or after the tokens; S counts what the cache has seen. With
        `targets` (B, T), the result is their summed cross-entropy in the place of the logits; in training, `balance` times
        the imbalance of experts counts for each token as well.
        """
        if targets is None:
            return self._scored(self._encoded(tokens, cache, mask))  # (B, T) -> (B, T, C) -> (B, T, vocab)
        with nn.imbalances() as uneven:
            x = self._encoded(tokens, cache, mask)
        scores = self._capped(self.vocabulary.scores(x, self._table))
        wrong = self.vocabulary.cross_entropy(scores, targets, ignore_index=IGNORED)
        return wrong + self.balance * x.shape[1] * sum(row.sum() for row in uneven) if uneven else wrong

    def next_logits(self, tokens: Any, cache: Any = None, mask: Any = None) -> mg.Tensor:
        """The logits of what comes after the last token alone, which spare a long prompt the others: (B, T) -> (B, vocab)."""
        return self._scored(self._encoded(tokens, cache, mask)[:, -1:])[:, 0]

    def _encoded(self, tokens: Any, cache: Any = None, mask: Any = None) -> mg.Tensor:
        x = self.tokens(tokens)  # (B, T) -> (B, T, C)
        places = None if mask is None else positions_of(mask)[:, -x.shape[1] :]
        x = x if self.scale == 1 else self.scale * x
        if self.positions is not None:
            start = 0 if cache is None else cache.length
            x = self.positions(x, start) if places is None else self.positions(x, positions=places)
        given = {} if places is None else {"mask": nn.padding_mask(mask), "positions": places}
        encoded: mg.Tensor = self.encoder(self.dropout(x), cache=cache, **given)
        return encoded

    def _scored(self, x: mg.Tensor) -> mg.Tensor:
        return self._capped(self.vocabulary(x, self._table))  # (B, T, C) -> (B, T, vocab)

    def _capped(self, logits: mg.Tensor) -> mg.Tensor:
        return logits if self.logit_softcap is None else self.logit_softcap * (logits / self.logit_softcap).tanh()

    @property
    def _table(self) -> Any:
        return (self.tokens if self.head is None else self.head).weight


def positions_of(mask: Any) -> mg.Tensor:
    """The position of each token among those that are not padding: booleans (B, S) -> whole numbers (B, S)."""
    return (mg.tensor(mask).astype("int64").cumsum(axis=1) - 1).clip(0)


def matrices_and_others(model: GPT) -> list[dict[str, Any]]:
    """Parameters as groups for an optimiser: only matrices shrink, since norms and biases have no reason to be small."""
    parameters = list(model.parameters())
    matrices, others = ([p for p in parameters if (p.ndim >= 2) == wanted] for wanted in (True, False))
    return [{"params": matrices}, {"params": others, "weight_decay": 0.0}]


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of the next tokens, summed over those that count."""
    targets = mg.tensor(batch.targets, device=model.tokens.weight.device)
    wrong = model(mg.tensor(batch.inputs, device=targets.device), targets=targets)
    return {"loss": (wrong, (targets != IGNORED).sum())}


def mean_loss(model: Any, batch: Any) -> float:
    """The loss of one batch, by itself."""
    with mg.no_grad():
        amount, count = loss(model, batch)["loss"]
    return float(amount) / int(count)
