"""The steps of random programs that compute: functions of tensors, views of them, and indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program_draft import Draft, dtype_of, is_float
from .programs import DTYPES, torch

# Each function of one tensor, {0}, as minigrad and as PyTorch write it.
UNARY = (
    ("mg.tanh({0})", "torch.tanh({0})"),
    ("mg.sin({0})", "torch.sin({0})"),
    ("mg.exp({0} * 0.5)", "torch.exp({0} * 0.5)"),
    ("mg.sigmoid({0})", "torch.sigmoid({0})"),
    ("mg.relu({0})", "torch.relu({0})"),
    ("mg.abs({0})", "torch.abs({0})"),
    ("mg.square({0})", "torch.square({0})"),
    ("-{0}", "-{0}"),
    ("mg.log(mg.abs({0}) + 0.5)", "torch.log(torch.abs({0}) + 0.5)"),
    ("mg.sqrt({0} * {0} + 0.5)", "torch.sqrt({0} * {0} + 0.5)"),
    ("({0} * {0} + 1) ** 0.5", "({0} * {0} + 1) ** 0.5"),
    ("{0} ** 3", "{0} ** 3"),
    ("mg.reciprocal({0} * {0} + 1)", "torch.reciprocal({0} * {0} + 1)"),
    ("mg.clip({0}, -1, 1)", "torch.clamp({0}, -1, 1)"),
    ("mg.expm1({0})", "torch.expm1({0})"),
    ("mg.log1p(mg.abs({0}))", "torch.log1p(torch.abs({0}))"),
    ("mg.arctan({0})", "torch.arctan({0})"),
    ("mg.erf({0})", "torch.erf({0})"),
    ("mg.cos({0})", "torch.cos({0})"),
    ("mg.rsqrt({0} * {0} + 1)", "torch.rsqrt({0} * {0} + 1)"),
    ("F.gelu({0})", "F.gelu({0})"),
    ("F.gelu({0}, 'tanh')", "F.gelu({0}, approximate='tanh')"),
    ("F.silu({0})", "F.silu({0})"),
    ("F.elu({0})", "F.elu({0})"),
    ("F.leaky_relu({0})", "F.leaky_relu({0})"),
    ("F.softplus({0})", "F.softplus({0})"),
    ("F.mish({0})", "F.mish({0})"),
    ("F.dropout({0}, 0.0)", "F.dropout({0}, 0.0)"),
    ("{0}.clone()", "{0}.clone()"),
    ("mg.sign({0})", "torch.sign({0})"),
    ("mg.ravel({0}).sum()", "{0}.flatten().sum()"),
)
BINARY = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / ({1} * {1} + 1)")
BINARY_FUNCTIONS = (
    ("mg.maximum({0}, {1})", "torch.maximum({0}, {1})"),
    ("mg.minimum({0}, {1})", "torch.minimum({0}, {1})"),
    ("mg.hypot({0}, {1} + 3)", "torch.hypot({0}, {1} + 3)"),
    ("mg.where({0} > {1}, {0}, {1} * 2)", "torch.where({0} > {1}, {0}, {1} * 2)"),
    ("mg.logaddexp({0}, {1})", "torch.logaddexp({0}, {1})"),
    ("mg.power({0} * {0} + 0.5, {1})", "torch.pow({0} * {0} + 0.5, {1})"),
)
# Functions along an axis, {1}; keepdims is {2}.
REDUCTIONS = (
    ("mg.sum({0}, {1}, {2})", "torch.sum({0}, {1}, {2})"),
    ("mg.mean({0}, {1}, {2})", "torch.mean({0}, {1}, {2})"),
    ("mg.max({0}, {1}, {2})", "torch.amax({0}, {1}, {2})"),
    ("mg.min({0}, {1}, {2})", "torch.amin({0}, {1}, {2})"),
    ("mg.var({0}, {1}, 0, {2})", "torch.var({0}, {1}, correction=0, keepdim={2})"),
    ("mg.std({0} * 2, {1}, 0, {2})", "torch.std({0} * 2, {1}, correction=0, keepdim={2})"),
    ("mg.logsumexp({0}, {1}, {2})", "torch.logsumexp({0}, {1}, {2})"),
    ("mg.norm({0} + 3, None, {1}, {2})", "torch.linalg.vector_norm({0} + 3, 2, {1}, {2})"),
    ("mg.prod({0}, {1}, {2})", "torch.prod({0}, {1}, {2})"),
)
ALONG = (
    ("F.softmax({0}, {1})", "F.softmax({0}, {1})"),
    ("F.log_softmax({0}, {1})", "F.log_softmax({0}, {1})"),
    ("mg.cumsum({0}, {1})", "torch.cumsum({0}, {1})"),
    ("mg.cumprod({0}, {1})", "torch.cumprod({0}, {1})"),
    ("mg.sort({0}, {1})", "torch.sort({0}, stable=True, dim={1})[0]"),
    ("mg.flip({0}, {1}).clone()", "torch.flip({0}, ({1},))"),
    ("mg.roll({0}, 1, {1})", "torch.roll({0}, 1, {1})"),
    ("mg.concatenate([{0}, {0} * 2], {1})", "torch.cat([{0}, {0} * 2], {1})"),
    ("mg.stack([{0}, {0} * {0}], {1})", "torch.stack([{0}, {0} * {0}], {1})"),
    ("mg.repeat({0}, 2, {1})", "torch.repeat_interleave({0}, 2, {1})"),
)


def converted(names: tuple[str, ...], values: tuple[Any, ...]) -> list[str]:
    """The operands as PyTorch must be given them to promote as NumPy does: see docs/differences.md."""
    common = np.result_type(*[np.dtype(dtype_of(v)) for v in values])
    return [n if DTYPES[common.name] == v.dtype else f"{n}.to({common.name})" for n, v in zip(names, values)]


def unary(draft: Draft) -> None:
    x = draft.pick()
    ours, theirs = draft.choice(UNARY)
    name = draft.new()
    draft.add(f"{name} = {ours.format(x)}", f"{name} = {theirs.format(x)}")


def broadcasts(a: Any, b: Any) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(tuple(a.shape)[::-1], tuple(b.shape)[::-1]))


def binary(draft: Draft) -> None:
    x = draft.pick(lambda v: v.dtype != torch.bool)
    v, name = draft.value(x), draft.new()
    kind = draft.choice(("tensor", "tensor", "tensor", "number", "left number", "array", "left array"))
    if kind == "tensor":
        y = draft.pick(lambda other: broadcasts(v, other) and not (v.dtype == other.dtype == torch.int64), recent=False)
        ours, theirs = (draft.choice(BINARY if is_float(v) and is_float(draft.value(y)) else BINARY[:3]),) * 2
        if is_float(v) and is_float(draft.value(y)) and draft.chance(0.4):
            ours, theirs = draft.choice(BINARY_FUNCTIONS)
        a, b = converted((x, y), (v, draft.value(y)))
        draft.add(f"{name} = {ours.format(x, y)}", f"{name} = {theirs.format(a, b)}")
        return
    if not is_float(v):
        return
    if "number" in kind:
        number = draft.choice((2, 0.5, -1.5, True, 3))
        pair = (str(number), x) if "left" in kind else (x, str(number))
        line = f"{name} = {draft.choice(BINARY[:3]).format(*pair)}"
        draft.add(line)
        return
    array = f"numbers({draft.seed()}, {tuple(v.shape)}, '{dtype_of(v)}')"
    pair, theirs = (x, array), (x, f"tensor({array})")
    if "left" in kind:
        pair, theirs = pair[::-1], theirs[::-1]
    form = draft.choice(BINARY[:3])
    draft.add(f"{name} = {form.format(*pair)}", f"{name} = {form.format(*theirs)}")


def axis_of(draft: Draft, v: Any) -> int:
    axis = int(draft.rng.integers(v.ndim))
    return axis - v.ndim if draft.chance(0.4) else axis


def reduction(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) and v.ndim and v.numel() and v.dtype != torch.float16)
    ours, theirs = draft.choice(REDUCTIONS)
    name, axis, keep = draft.new(), axis_of(draft, draft.value(x)), draft.chance(0.5)
    draft.add(f"{name} = {ours.format(x, axis, keep)}", f"{name} = {theirs.format(x, axis, keep)}")


def total_of(draft: Draft) -> None:
    """Everything at once, also of what is empty."""
    x, name = draft.pick(lambda v: is_float(v) and v.dtype != torch.float16), draft.new()
    form = draft.choice(("{0}.sum()", "({0} * {0}).sum()"))
    draft.add(f"{name} = {form.format(x)}")


def along(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) and v.ndim and v.dtype != torch.float16)
    ours, theirs = draft.choice(ALONG)
    name, axis = draft.new(), axis_of(draft, draft.value(x))
    draft.add(f"{name} = {ours.format(x, axis)}", f"{name} = {theirs.format(x, axis)}")


def matrices(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) and v.ndim and v.dtype != torch.float16)
    v, name = draft.value(x), draft.new()
    shape = draft.choice(((v.shape[-1],), (v.shape[-1], 3), (2, v.shape[-1], 2)))
    y = draft.leaf(shape, dtype_of(v), draft.chance(0.8))
    if draft.value(x).ndim == 2 and draft.chance(0.3):
        ours = f"mg.einsum('ij,kj->ik', {x}, {x})"
        draft.add(f"{name} = {ours}", f"{name} = {ours.replace('mg.', 'torch.')}")
    else:
        draft.add(f"{name} = {x} @ {y}")


def joining(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) and v.ndim)
    v = draft.value(x)
    y = draft.pick(lambda other: other.dtype == v.dtype and other.shape == v.shape)
    name, axis = draft.new(), axis_of(draft, v)
    ours, theirs = draft.choice((("mg.concatenate", "torch.cat"), ("mg.stack", "torch.stack")))
    draft.add(f"{name} = {ours}([{x}, {y}], {axis})", f"{name} = {theirs}([{x}, {y}], {axis})")


def fused(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) and v.ndim and v.shape[-1] > 0 and v.dtype != torch.float16)
    v, name = draft.value(x), draft.new()
    size, dtype = v.shape[-1], dtype_of(v)
    kind = draft.choice(
        ("layer_norm", "rms_norm", "linear", "linear_gelu", "swiglu", "cross_entropy", "embedding", "attention")
    )
    w = draft.leaf((size,), dtype) if kind in ("layer_norm", "rms_norm") and draft.chance(0.7) else None
    if kind == "layer_norm" and size > 1:
        b = draft.leaf((size,), dtype) if w and draft.chance(0.7) else None
        draft.add(f"{name} = F.layer_norm({x}, ({size},), {w}, {b})")
    elif kind == "rms_norm":
        draft.add(f"{name} = F.rms_norm({x}, ({size},), {w}, 1e-5)")
    elif kind in ("linear", "linear_gelu"):
        w, b = draft.leaf((3, size), dtype), draft.leaf((3,), dtype) if draft.chance(0.6) else None
        theirs = f"F.linear({x}, {w}, {b})"
        draft.add(
            f"{name} = F.{kind}({x}, {w}, {b})", f"{name} = {theirs if kind == 'linear' else f'F.gelu({theirs})'}"
        )
    elif kind == "swiglu" and size % 2 == 0:
        draft.add(f"{name} = swiglu({x})")
    elif kind == "cross_entropy" and v.ndim == 2 and size > 3:
        k, way = draft.whole((v.shape[0],)), draft.choice(("mean", "sum", "none"))
        draft.add(f"{name} = F.cross_entropy({x}, {k}, reduction='{way}', label_smoothing={draft.choice((0.0, 0.1))})")
    elif kind == "embedding" and v.ndim == 2 and v.shape[0] > 3:
        k = draft.whole(draft.shape(draft.choice((1, 2))))
        draft.add(f"{name} = F.embedding({k}, {x}, {draft.choice((None, 1))})")
    elif kind == "attention" and v.ndim >= 2:
        causal, length = draft.chance(0.5), v.shape[-2]
        key, value = (draft.leaf((*v.shape[:-2], length, n), dtype) for n in (size, 2))
        ours = f"F.scaled_dot_product_attention({x}, {key}, {value}, is_causal={causal})"
        draft.add(f"{name} = {ours}", f"{name} = attention({x}, {key}, {value}, {causal})")


def dtypes(draft: Draft) -> None:
    x = draft.pick()
    dtype = draft.choice(("float64", "float64", "float32"))
    name = draft.new()
    draft.add(f"{name} = {x}.astype('{dtype}')", f"{name} = {x}.to({dtype}, copy=True)")


def basic_index(draft: Draft, shape: tuple[int, ...]) -> str:
    """An index that makes a view."""
    if not shape:
        return draft.choice(("()", "...", "None"))
    parts = []
    for n in shape[: int(draft.rng.integers(1, len(shape) + 1))]:
        kind = draft.choice(("int", "slice", "slice", "all", "step"))
        if kind == "int" and n:
            parts.append(str(int(draft.rng.integers(-n, n))))
        elif kind == "slice":
            start = int(draft.rng.integers(0, n + 1))
            parts.append(f"{start}:{int(draft.rng.integers(start, n + 1))}" if draft.chance(0.3) else f"{start // 2}:")
        else:
            parts.append("::2" if kind == "step" else ":")
    if draft.chance(0.15):
        parts.append("...")
    if draft.chance(0.1):
        parts.insert(0, "None")
    return ", ".join(parts)


def any_index(draft: Draft, name: str) -> str:
    v = draft.value(name)
    shape = tuple(v.shape)
    if not shape or draft.chance(0.65):
        return basic_index(draft, shape)
    kind = draft.choice(("list", "mask", "pair", "tensor"))
    if kind == "mask":
        return f"{name} > 0"
    if not shape[0]:
        return ":"
    places = [
        int(i) for i in draft.rng.permutation(shape[0])[: draft.choice((1, 2))]
    ]  # each once: see docs/differences.md
    if kind == "pair" and len(shape) > 1 and shape[1]:
        return f"{places}, {[int(draft.rng.integers(shape[1]))] * len(places)}"
    return f"tensor({places})" if kind == "tensor" else f"{places}"


def indexing(draft: Draft) -> None:
    x, name = draft.pick(), draft.new()
    index = any_index(draft, x)
    if "[" in index or ">" in index:
        draft.add(f"{name} = {x}[{index}]")
    else:
        add_view(draft, name, x, index)


def add_view(draft: Draft, name: str, x: str, index: str) -> None:
    """A basic index, which makes a view unless it picks one element: see docs/differences.md."""
    line = f"{name} = {x}[{index}]"
    single = "..." not in index and not eval(f"v[{index}]", {"v": draft.value(x).detach()}).ndim
    draft.add(line, f"{line}.clone()" if single else line, "view")


def view(draft: Draft) -> None:
    x, name = draft.pick(), draft.new()
    v = draft.value(x)
    kind = draft.choice(
        (
            "index",
            "index",
            "reshape",
            "transpose",
            "swapaxes",
            "expand",
            "split",
            "unstack",
            "squeeze",
            "detach",
            "dims",
        )
    )
    shape = tuple(v.shape)
    ours = theirs = ""
    if kind == "index":
        add_view(draft, name, x, basic_index(draft, shape))
    elif kind == "reshape":
        new = draft.choice(((v.numel(),), (1, *shape), (*shape, 1), shape[::-1]))
        ours, theirs = f"{x}.reshape({new})", f"{x}.view({new})"
    elif kind == "transpose" and v.ndim == 2:
        ours, theirs = f"{x}.T", f"{x}.transpose(0, 1)"
    elif kind == "swapaxes" and v.ndim:
        a, b = axis_of(draft, v), axis_of(draft, v)
        ours = theirs = f"{x}.swapaxes({a}, {b})"
    elif kind == "expand":
        new = (2, *shape)
        ours, theirs = f"mg.broadcast_to({x}, {new})", f"{x}.expand({new})"
    elif kind == "split" and v.ndim and shape[-1] > 1:
        other, at = draft.new(), draft.choice((1, shape[-1] - 1))
        draft.add(
            f"{name}, {other} = mg.split({x}, [{at}], -1)",
            f"{name}, {other} = {x}[..., :{at}], {x}[..., {at}:]",
            "view",
        )
        return
    elif kind == "unstack" and v.ndim > 1 and shape[0] == 2:
        other = draft.new()
        draft.add(f"{name}, {other} = mg.unstack({x})", f"{name}, {other} = {x}[0], {x}[1]", "view")
        return
    elif kind == "squeeze" and 1 in shape:
        axis = shape.index(1)
        ours = theirs = f"{x}.squeeze({axis})"
    elif kind == "dims":
        ours, theirs = f"mg.expand_dims({x}, 0)", f"{x}.unsqueeze(0)"
    elif kind == "detach":
        ours = theirs = f"{x}.detach()"
    if ours:
        draft.add(f"{name} = {ours}", f"{name} = {theirs}", "view")


def shapes(draft: Draft) -> None:
    """What changes the shape and copies."""
    x, name = draft.pick(), draft.new()
    v = draft.value(x)
    if not v.ndim:
        return
    forms = [
        ("mg.tile({0}, (2,) + (1,) * ({1} - 1))", "torch.tile({0}, (2,) + (1,) * ({1} - 1))"),
        ("mg.pad({0}, 1)", "F.pad({0}, (1, 1) * {1})"),
    ]
    if v.ndim >= 2:
        forms += [("mg.tril({0})", "torch.tril({0})"), ("mg.triu({0}, 1)", "torch.triu({0}, 1)")]
    if v.ndim == 2:
        forms += [("mg.trace({0})", "torch.trace({0})"), ("mg.diagonal({0})", "torch.diagonal({0}).clone()")]
    ours, theirs = draft.choice(forms)
    draft.add(f"{name} = {ours.format(x, v.ndim)}", f"{name} = {theirs.format(x, v.ndim)}")
