"""How each op is written in plain NumPy: an expression, or the call of a function that the file defines for itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["EXPRESSIONS", "FUNCTIONS", "SIGNS", "used_by"]

Written = Callable[[Sequence[str], dict[str, str]], str]
EXPRESSIONS: dict[str, Written] = {}

FUNCTIONS = {
    "linear": """
def linear(x, weight, bias=0):
    return x @ weight.T + bias
""",
    "layer_norm": """
def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * weight + bias
""",
    "rms_norm": """
def rms_norm(x, weight, eps):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * weight
""",
    "sigmoid": """
def sigmoid(x):
    return 1 / (1 + np.exp(-x))
""",
    "erf": """
erf = np.vectorize(math.erf, otypes=[np.float32])
""",
    "gelu": """
def gelu(x):
    return x * (1 + erf(x * 0.5**0.5)) / 2
""",
    "gelu_tanh": """
def gelu_tanh(x):
    return x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2
""",
    "swiglu": """
def swiglu(x):
    gate, up = np.split(x, 2, axis=-1)
    return gate * sigmoid(gate) * up
""",
    "softmax": """
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
    "attention": """
def attention(query, key, value, mask=None, causal=False, scale=1.0, softcap=None):
    \"\"\"Each query (…, L, E) takes the mean of the values (…, S, V), by how well it fits their keys (…, S, E).\"\"\"
    if query.ndim > 3 and query.shape[-3] != key.shape[-3]:  # several heads share a key
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scores = scale * query @ np.swapaxes(key, -1, -2)  # (…, L, S)
    scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
    allowed = np.ones(scores.shape, bool) if mask is None or mask.dtype != bool else np.broadcast_to(mask, scores.shape)
    scores = scores if mask is None or mask.dtype == bool else scores + mask
    if causal:
        allowed = np.tril(allowed)
    scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1) @ value  # what may see nothing gets zeros
""",
    "packed_attention": """
def packed_attention(x, mask, heads, **options):
    \"\"\"The queries, keys and values of all heads lie side by side: (B, T, 3·heads·E) -> (B, T, heads·E).\"\"\"
    batch, length, width = x.shape
    query, key, value = x.reshape(batch, length, 3, heads, width // (3 * heads)).transpose(2, 0, 3, 1, 4)
    seen = attention(query, key, value, mask, **options)
    return seen.transpose(0, 2, 1, 3).reshape(batch, length, width // 3)
""",
    "windows": """
def windows(x, kernel, stride, dilation):
    \"\"\"What a convolution looks at: (A, …, *sizes) -> (A, *kernel, …, *out).\"\"\"
    count = len(kernel)
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    seen = np.lib.stride_tricks.sliding_window_view(x, span, tuple(range(x.ndim - count, x.ndim)))
    steps = [slice(None, None, s) for s in (*stride, *dilation)]
    return np.moveaxis(seen[(..., *steps)], range(-count, 0), range(1, count + 1))
""",
    "convolution": """
def convolution(x, weight, bias, stride, padding, dilation, groups):
    \"\"\"Images (N, C, …) and weights (O, C / groups, …) -> (N, O, …), group by group.\"\"\"
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    parts = zip(np.split(x, groups, axis=1), np.split(weight, groups))
    kernel, count = weight.shape[2:], x.ndim - 2
    axes = [[*range(1, count + 2)], [*range(2, count + 2), 1]]  # of the kernel and the channels
    seen = []
    for images, one in parts:
        looked = windows(images, kernel, stride, dilation)  # (N, *kernel, C, *out)
        seen.append(np.moveaxis(np.tensordot(looked, one, axes), -1, 1))
    return np.concatenate(seen, axis=1) + (0 if bias is None else bias.reshape(-1, *[1] * count))
""",
    "in_order": """
def in_order(x, reverse):
    steps = list(enumerate(x))
    return steps[::-1] if reverse else steps
""",
    "kept": """
def kept(new, old, lengths, step):
    \"\"\"The new state, and the old one in rows that have ended.\"\"\"
    return new if lengths is None else np.where((lengths > step)[:, None], new, old)
""",
    "rnn": """
def rnn(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, lengths, reverse):
    states = []
    for step, now in in_order(x, reverse):
        new = np.tanh(linear(now, weight_ih, bias_ih) + linear(hidden, weight_hh, bias_hh))
        hidden = kept(new, hidden, lengths, step)
        states.append(hidden)
    return np.stack(states[::-1] if reverse else states)
""",
    "gru": """
def gru(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, lengths, reverse):
    states = []
    for step, now in in_order(x, reverse):
        new, old = np.split(linear(now, weight_ih, bias_ih), 3, -1), np.split(linear(hidden, weight_hh, bias_hh), 3, -1)
        reset, update = sigmoid(new[0] + old[0]), sigmoid(new[1] + old[1])
        candidate = np.tanh(new[2] + reset * old[2])
        hidden = kept(candidate + update * (hidden - candidate), hidden, lengths, step)
        states.append(hidden)
    return np.stack(states[::-1] if reverse else states)
""",
    "lstm": """
def lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell, lengths, reverse):
    states = []
    for step, now in in_order(x, reverse):
        i, f, g, o = np.split(linear(now, weight_ih, bias_ih) + linear(hidden, weight_hh, bias_hh), 4, -1)
        new = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = kept(sigmoid(o) * np.tanh(new), hidden, lengths, step)
        cell = kept(new, cell, lengths, step)
        states.append(hidden)
    return np.stack([*(states[::-1] if reverse else states), cell])
""",
    "rfft": """
def rfft(x):
    seen = np.fft.rfft(x)
    return seen.real.astype(x.dtype), seen.imag.astype(x.dtype)
""",
}  # fmt: skip


def writes(*ops: str) -> Callable[[Written], Written]:
    def declared(written: Written) -> Written:
        EXPRESSIONS.update(dict.fromkeys(ops, written))
        return written

    return declared


def _with(template: str) -> Written:
    return lambda x, attrs: template.format(*x, **attrs)


def _numpys(name: str) -> Written:
    return lambda x, attrs: f"np.{name}({', '.join(x)})"


SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@", "power": "**", "remainder": "%",
    "floor_divide": "//", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "logical_and": "&", "logical_or": "|", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
SAME = (
    "exp", "log", "sqrt", "abs", "sin", "cos", "tanh", "floor", "ceil", "sign", "square", "maximum", "minimum", "where",
    "negative", "logical_not", "log1p", "log10", "log2", "expm1", "isnan", "isinf", "arctan",
)  # fmt: skip
EXPRESSIONS |= {name: _with(f"{{0}} {sign} {{1}}") for name, sign in SIGNS.items()}
EXPRESSIONS |= {name: _numpys(name) for name in SAME}
EXPRESSIONS |= {name: _with(f"{name}({{0}})") for name in ("sigmoid", "swiglu")}
EXPRESSIONS |= {
    name: _with(f"{{0}}.{name}(axis={{axis}}, keepdims={{keepdims}})") for name in ("sum", "mean", "max", "min")
}
EXPRESSIONS |= {
    "relu": _with("np.maximum({0}, 0)"), "_safe_sqrt": _with("np.sqrt({0})"), "_gelu_tanh": _with("gelu_tanh({0})"),
    "silu": _with("{0} * sigmoid({0})"), "reshape": _with("{0}.reshape{shape}"), "astype": _with("{0}.astype({dtype})"),
    "broadcast_to": _with("np.broadcast_to({0}, {shape})"), "getitem": _with("{0}[{index}]"),
    "embedding": _with("{0}[{1}]"), "flip": _with("np.flip({0}, axis={axis})"),
    "_unfold": _with("windows({0}, {kernel}, {stride}, {dilation})"), "positive": _with("{0}"), "clone": _with("{0}"),
    "_pad_constant": _with("np.pad({0}, {widths}, constant_values={value})"),
    "_largest": _with("({0}.max(axis=1), {0}.argmax(axis=1))"), "softmax": _with("softmax({0}, axis={axis})"),
    "rms_norm": lambda x, attrs: f"rms_norm({x[0]}, {x[1] if x[1] != 'None' else 1}, {attrs['eps']})",
    "_cumsum": _with("np.cumsum({0}, axis={axis})"), "argmax": _with("{0}.argmax(axis={axis})"),
    "_join": _with("({0} + 1j * {1})"), "real": _with("{0}.real"), "imag": _with("{0}.imag"),
    "tril": _with("np.tril({0})"), "_einsum": lambda x, attrs: f"np.einsum({attrs['subscripts']}, {', '.join(x)})",
}  # fmt: skip


@writes("transpose")
def _transpose(x: Sequence[str], attrs: dict[str, str]) -> str:
    return f"{x[0]}.T" if attrs.get("axes", "None") == "None" else f"{x[0]}.transpose{attrs['axes']}"


@writes("linear", "linear_gelu")
def _linear(x: Sequence[str], attrs: dict[str, str]) -> str:
    made = f"linear({', '.join(part for part in x if part != 'None')})"
    if "approximate" not in attrs:
        return made
    return f"{'gelu_tanh' if attrs['approximate'] == repr('tanh') else 'gelu'}({made})"


@writes("gelu")
def _gelu(x: Sequence[str], attrs: dict[str, str]) -> str:
    return f"{'gelu_tanh' if attrs.get('approximate') == repr('tanh') else 'gelu'}({x[0]})"


@writes("layer_norm")
def _layer_norm(x: Sequence[str], attrs: dict[str, str]) -> str:
    weight, bias = x[1] if x[1] != "None" else "1", x[2] if x[2] != "None" else "0"
    return f"layer_norm({x[0]}, {weight}, {bias}, {attrs['eps']})"


@writes("attention", "packed_attention")
def _attention(x: Sequence[str], attrs: dict[str, str]) -> str:
    name = "packed_attention" if "heads" in attrs else "attention"
    said = [*x, *([attrs["heads"]] if "heads" in attrs else [])]
    said = said[:-1] if said[-1] == "None" else said
    usual = {"causal": "False", "softcap": "None"}
    options = [f"{key}={attrs[key]}" for key in ("causal", "scale", "softcap") if attrs[key] != usual.get(key)]
    return f"{name}({', '.join([*said, *options])})"


@writes("concatenate", "stack")
def _joined(x: Sequence[str], attrs: dict[str, str]) -> str:
    return f"np.{attrs['op']}([{', '.join(x)}], axis={attrs.get('axis', '0')})"


@writes("rnn", "gru", "lstm")
def _recurrent(x: Sequence[str], attrs: dict[str, str]) -> str:
    return f"{attrs['op']}({', '.join('0' if part == 'None' and 2 < i < 5 else part for i, part in enumerate(x))}, {attrs['reverse']})"


@writes("convolution")
def _convolution(x: Sequence[str], attrs: dict[str, str]) -> str:
    return (
        f"convolution({', '.join(x)}, {', '.join(attrs[name] for name in ('stride', 'padding', 'dilation', 'groups'))})"
    )


@writes("_rfft")
def _rfft(x: Sequence[str], attrs: dict[str, str]) -> str:
    if attrs["axis"] != "-1":
        raise KeyError("axis")
    return f"rfft({x[0]})"


@writes("_unstack")
def _unstack(x: Sequence[str], attrs: dict[str, str]) -> str:
    return f"np.moveaxis({x[0]}, {attrs['axis']}, 0)" if attrs["axis"] != "0" else x[0]


@writes("_split")
def _split(x: Sequence[str], attrs: dict[str, str]) -> str:
    return f"np.split({x[0]}, {attrs['cuts']}, axis={attrs['axis']})"


def used_by(text: str) -> list[str]:
    """The names of the functions that a text calls, and of those that these call, in the order of the table."""
    found: set[str] = set()
    waiting = [text]
    while waiting:
        part = waiting.pop()
        new = {name for name in FUNCTIONS if re.search(rf"\b{name}\(", part)} - found
        found |= new
        waiting += [FUNCTIONS[name] for name in new]
    return [name for name in FUNCTIONS if name in found]
