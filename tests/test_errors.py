"""What bad input gets: an error in minigrad's own words that says which op, what was expected, what came, and what to do."""

import copy
import inspect
import operator
import pickle
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.scopes import scope

import minigrad as mg
from minigrad import errors
from minigrad.engine.op import OPS
from minigrad.engine.tensor import Tensor
from minigrad.errors import (
    ArgumentError,
    AxisError,
    CallError,
    CheckpointError,
    DeviceError,
    DtypeError,
    GradientError,
    IndexingError,
    ShapeError,
)
from minigrad.ops.composite import COMPOSITES

F = mg.nn.functional
NOT_OURS = (  # words of NumPy's and Python's own that would mean little to a newcomer
    "ufunc",
    "core dimension",
    "operands could not be broadcast",
    "matmul: Input operand",
    "inhomogeneous",
    "object is not iterable",
    "numpy boolean",
)
BUILT_IN = {
    ArgumentError: ValueError,
    CallError: TypeError,
    ShapeError: ValueError,
    AxisError: IndexError,
    IndexingError: IndexError,
    DtypeError: TypeError,
    DeviceError: ValueError,
    GradientError: RuntimeError,
}


def world():
    """Tensors to misuse. `x` is a result, twice the leaf `a`, so that a graph is there to be harmed."""

    def leaf(*shape):
        return mg.tensor(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), requires_grad=True)

    w = SimpleNamespace(
        a=leaf(2, 3), m=leaf(2, 4), v=leaf(3), u=leaf(4), s=leaf(), b=leaf(2, 3, 4), c=leaf(3, 4, 5), q=leaf(2, 2)
    )
    w.n, w.t, w.x = mg.tensor([1, 2, 3]), mg.tensor([True, False]), w.a * 2
    return w


def write(target, index, value):
    target[index] = value


def differentiate_twice(w):
    y = (w.v * w.v).sum()
    y.backward()
    w.v.grad = None
    y.backward()


def overwrite_what_is_needed(w):
    y = w.v * 1
    loss = (y * y).sum()
    y[0] = 5.0
    loss.backward()


SHAPES = {  # id -> (call, kind, what the message must say)
    "matmul of matrices": (
        lambda w: w.x @ w.m,
        ShapeError,
        "matmul",
        "(3) equal to the second to last",
        "(2)",
        "(2, 3)",
        "(2, 4)",
        "x.mT",
    ),
    "matmul of vectors": (
        lambda w: w.v @ w.u,
        ShapeError,
        "matmul",
        "(3) equal to the only size of the second (4)",
        "(3,)",
        "(4,)",
        "equally long",
    ),
    "matrix @ vector": (lambda w: w.x @ w.u, ShapeError, "matmul", "(2, 3)", "(4,)"),
    "vector @ matrix": (lambda w: w.u @ w.x, ShapeError, "matmul", "(4,)", "(2, 3)"),
    "matmul of stacks": (lambda w: w.b @ w.c, ShapeError, "matmul", "batch", "(2,) and (3,)", "(2, 3, 4)", "(3, 4, 5)"),
    "matmul inside stacks": (lambda w: w.b @ w.b, ShapeError, "matmul", "(4) equal", "(2, 3, 4)"),
    "stack @ matrix": (lambda w: w.b @ w.x, ShapeError, "matmul", "(4) equal", "(2, 3, 4)", "(2, 3)"),
    "stack @ vector": (lambda w: w.b @ w.v, ShapeError, "matmul", "(4) equal", "(2, 3, 4)", "(3,)"),
    "matmul with 0-d": (lambda w: w.s @ w.x, ShapeError, "matmul", "vectors or matrices", "()", "with *"),
    "matmul with a number": (lambda w: w.x @ 2.0, DtypeError, "matmul", "vectors or matrices", "2.0", "with *"),
    "array @ tensor": (lambda w: np.ones((2, 5)) @ w.x, ShapeError, "matmul", "(2, 5)", "(2, 3)"),
    "dot": (lambda w: mg.dot(w.x, w.m), ShapeError, "dot", "(2, 3)", "(2, 4)"),
    "vecdot": (lambda w: mg.vecdot(w.x, w.m), ShapeError, "vecdot", "(2, 3)", "(2, 4)"),
    "tensordot": (
        lambda w: mg.tensordot(w.x, w.m, axes=1),
        ShapeError,
        "tensordot",
        "[1] and [0]",
        "(2, 3)",
        "(2, 4)",
        "fix",
    ),
    "tensordot axis": (
        lambda w: mg.tensordot(w.x, w.m, axes=([7], [0])),
        AxisError,
        "tensordot",
        "-2 to 1",
        "[7]",
        "(2, 3)",
    ),
    "tensordot over too many": (lambda w: mg.tensordot(w.x, w.m, axes=5), AxisError, "tensordot", "(2, 3)"),
    "reshape": (lambda w: w.x.reshape(4, 2), ShapeError, "reshape", "6 elements", "(2, 3)", "(4, 2) has 8", "-1"),
    "reshape with -1": (lambda w: w.x.reshape(-1, 4), ShapeError, "reshape", "divides 6", "(-1, 4)"),
    "reshape with two -1": (lambda w: w.x.reshape(-1, -1), ShapeError, "reshape", "at most one -1", "(-1, -1)"),
    "reshape with floats": (lambda w: w.x.reshape(2.0, 3), DtypeError, "reshape", "whole numbers", "(2.0, 3)"),
    "broadcast_to": (lambda w: w.x.broadcast_to((2, 4)), ShapeError, "broadcast_to", "(2, 3)", "(2, 4)"),
    "concatenate": (
        lambda w: mg.concatenate([w.x, w.m]),
        ShapeError,
        "concatenate",
        "axis 0",
        "(2, 3)",
        "(2, 4)",
        "mg.stack",
    ),
    "concatenate of 0-d": (lambda w: mg.concatenate([w.s, w.s]), ShapeError, "concatenate", "shape ()", "mg.stack"),
    "np.concatenate": (lambda w: np.concatenate([w.x, np.ones((3, 4))]), ShapeError, "concatenate", "(2, 3)", "(3, 4)"),
    "concatenate of nothing": (lambda w: mg.concatenate([]), ArgumentError, "concatenate", "not empty"),
    "concatenate of a tensor": (lambda w: mg.concatenate(w.x), ArgumentError, "concatenate", "[a, b, …]", "Tensor"),
    "stack": (lambda w: mg.stack([w.x, w.m]), ShapeError, "stack", "one shape", "(2, 3)", "(2, 4)"),
    "stack on a new axis": (
        lambda w: mg.stack([w.x, w.m], axis=2),
        ShapeError,
        "stack",
        "one shape",
        "(2, 3)",
        "(2, 4)",
    ),
    "stack axis": (lambda w: mg.stack([w.x, w.x], axis=3), AxisError, "stack", "-3 to 2", "axis=3"),
    "squeeze": (lambda w: w.x.squeeze(0), ShapeError, "squeeze", "size 1", "(2, 3)", "fix"),
    "split unevenly": (lambda w: mg.split(w.x, 2, axis=1), ShapeError, "split", "a divisor of 3", "(2, 3)", "a list"),
    "split into no number": (lambda w: mg.split(w.x, 1.5), DtypeError, "split", "how many equal pieces", "1.5"),
    "transpose twice the same": (lambda w: w.x.transpose(0, 0), AxisError, "transpose", "twice", "(2, 3)"),
    "transpose of too few": (lambda w: w.x.transpose(0), ShapeError, "transpose", "each axis of (2, 3) once", "(0,)"),
    "transpose of another": (lambda w: w.x.transpose(0, 5), AxisError, "transpose", "-2 to 1", "(0, 5)"),
    "permute_dims": (lambda w: mg.permute_dims(w.x, (0, 1, 2)), AxisError, "permute_dims", "(2, 3)"),
    "swapaxes": (lambda w: w.x.swapaxes(0, 4), AxisError, "swapaxes", "-2 to 1", "4"),
    "moveaxis": (lambda w: mg.moveaxis(w.x, 0, (0, 1)), ArgumentError, "moveaxis", "1 destinations", "2"),
    "flatten": (lambda w: w.x.flatten(3), AxisError, "flatten", "-2 to 1", "3"),
    "repeat": (lambda w: mg.repeat(w.x, [1, 2, 3], axis=0), ShapeError, "repeat", "2 of them", "[1, 2, 3]"),
    "repeat less than never": (lambda w: mg.repeat(w.x, -1), ShapeError, "repeat", "whole number", "-1"),
    "tile": (lambda w: mg.tile(w.x, -1), ArgumentError, "tile", "from 0 up", "-1"),
    "pad with too many widths": (lambda w: mg.pad(w.x, (1, 2, 3)), ShapeError, "pad", "2 pairs", "(1, 2, 3)"),
    "pad by less than nothing": (lambda w: mg.pad(w.x, -1), ArgumentError, "pad", "from 0 up", "-1", "slice"),
    "pad in another way": (lambda w: mg.pad(w.x, 1, mode="mirror"), ArgumentError, "pad", "mirror", "reflect"),
    "diag": (lambda w: mg.diag(w.b), ShapeError, "diag", "1 or 2 axes", "(2, 3, 4)"),
    "trace": (lambda w: mg.trace(w.v), ShapeError, "trace", "2 axes", "(3,)"),
    "max of nothing": (lambda w: mg.zeros(0).max(), ShapeError, "max", "at least one element", "(0,)"),
    "argmax of nothing": (
        lambda w: mg.zeros(0, 3).argmax(axis=0),
        ShapeError,
        "argmax",
        "at least one element",
        "(0, 3)",
    ),
    "item": (lambda w: w.x.item(), ShapeError, "item", "1 element", "(2, 3)", "tolist"),
    "float": (lambda w: float(w.x), ShapeError, "1 element", "(2, 3)"),
    "ragged lists": (lambda w: mg.tensor([[1, 2], [3]]), ShapeError, "tensor", "different lengths", "pad"),
    "full": (lambda w: mg.full((2,), [1, 2, 3]), ArgumentError, "full", "(2,)", "(3,)"),
    "zeros of a negative size": (lambda w: mg.zeros(-1), ArgumentError, "zeros", "from 0 up", "(-1,)"),
    "mse_loss of (n, 1) and (n,)": (
        lambda w: F.mse_loss(mg.ones(3, 1), mg.ones(3)),
        ShapeError,
        "mse_loss",
        "(3, 1)",
        "(3,)",
    ),
}
LINALG = {
    "inv of an oblong": (lambda w: mg.inv(w.x), ShapeError, "inv", "square", "(2, 3)"),
    "inv of a vector": (lambda w: mg.inv(w.v), ShapeError, "inv", "square", "(3,)", "reshape"),
    "inv of a singular": (lambda w: mg.inv(mg.zeros(2, 2)), ArgumentError, "inv", "not singular", "(2, 2)", "diagonal"),
    "inv of half precision": (lambda w: mg.inv(mg.eye(2, dtype="float16")), DtypeError, "inv", "float16", "astype"),
    "det": (lambda w: mg.det(w.x), ShapeError, "det", "square", "(2, 3)"),
    "slogdet": (lambda w: mg.slogdet(w.v), ShapeError, "slogdet", "square", "(3,)"),
    "solve with too few rows": (lambda w: mg.solve(w.q, w.v), ShapeError, "solve", "2 elements", "(2, 2)", "(3,)"),
    "solve with stacks": (lambda w: mg.solve(mg.ones(3, 2, 2), mg.ones(2, 2, 2)), ShapeError, "solve", "(3,)", "(2,)"),
    "solve a singular": (lambda w: mg.solve(mg.zeros(2, 2), mg.ones(2)), ArgumentError, "solve", "not singular"),
    "cholesky of a negative": (
        lambda w: mg.cholesky(mg.tensor([[1.0, 2.0], [2.0, 1.0]])),
        ArgumentError,
        "cholesky",
        "positive definite",
        "fix",
    ),
    "cholesky of a vector": (lambda w: mg.cholesky(w.v), ShapeError, "cholesky", "square", "(3,)"),
    "qr": (lambda w: mg.qr(w.v), ShapeError, "qr", "2 axes", "(3,)"),
    "svd": (lambda w: mg.svd(w.v), ShapeError, "svd", "matrix", "(3,)"),
    "norm of a matrix by name": (lambda w: mg.norm(w.x, ord="foo"), ArgumentError, "norm", "foo", "nuc"),
    "norm over axes": (lambda w: mg.norm(w.x, ord="nuc", axis=(5, 7)), AxisError, "norm", "-2 to 1", "(5, 7)"),
    "einsum sizes": (
        lambda w: mg.einsum("ij,jk->ik", w.x, w.m),
        ShapeError,
        "einsum",
        "'j'",
        "3 and 2",
        "(2, 3)",
        "(2, 4)",
        "fix",
    ),
    "einsum operands": (lambda w: mg.einsum("ij,jk->ik", w.x), ArgumentError, "einsum", "2 for 'ij,jk->ik'", "1"),
    "einsum letters": (lambda w: mg.einsum("i,i->", w.x, w.v), ShapeError, "einsum", "1 axes", "(2, 3)"),
    "einsum result": (lambda w: mg.einsum("ij->iz", w.x), ArgumentError, "einsum", "no operand has", "z"),
    "einsum result twice": (lambda w: mg.einsum("ij->ii", w.x), ArgumentError, "einsum", "twice", "i"),
    "einsum text": (lambda w: mg.einsum("i1->i", w.x), ArgumentError, "einsum", "letters", "i1->i"),
    "einsum without subscripts": (lambda w: mg.einsum(w.x, w.m), ArgumentError, "einsum", "a string", "Tensor"),
}
INDICES = {
    "index": (lambda w: w.x[2], IndexingError, "getitem", "-2 to 1", "axis 0", "index=2", "(2, 3)"),
    "index of another axis": (lambda w: w.x[0, 3], IndexingError, "getitem", "-3 to 2", "axis 1", "(0, 3)"),
    "float index": (lambda w: w.x[1.0], IndexingError, "getitem", "whole numbers", "1.0", "int"),
    "float tensor as index": (lambda w: w.x[w.v], IndexingError, "getitem", "whole numbers", "float64", "astype"),
    "text as index": (lambda w: w.x["a"], IndexingError, "getitem", "whole numbers", "'a'"),
    "float in a slice": (lambda w: w.x[1.0:], DtypeError, "getitem", "slices", "(2, 3)"),
    "too many indices": (lambda w: w.x[0, 0, 0], IndexingError, "getitem", "at most 2", "(2, 3)", "3 were given"),
    "index of 0-d": (lambda w: w.s[0], IndexingError, "getitem", "at most 0", "()"),
    "index array": (lambda w: w.x[np.array([0, 5])], IndexingError, "getitem", "-2 to 1", "5 is out of range"),
    "index list": (lambda w: w.x[[0, -9]], IndexingError, "getitem", "-2 to 1", "-9 is out of range"),
    "ragged index": (lambda w: w.x[[[0], [0, 1]]], IndexingError, "getitem", "different lengths"),
    "mask": (lambda w: w.x[np.array([True, False, True])], IndexingError, "getitem", "(2,)", "(3,)", "(2, 3)"),
    "index arrays": (lambda w: w.x[[0, 1], [0, 1, 2]], IndexingError, "getitem", "broadcast", "(2,)", "(3,)"),
    "written value": (lambda w: write(w.x, 0, np.ones(4)), ShapeError, "setitem", "(3,)", "(4,)", "reshape"),
    "written place": (lambda w: write(w.x, 7, 1.0), IndexingError, "setitem", "-2 to 1", "7"),
    "written float place": (lambda w: write(w.x, 0.5, 1.0), IndexingError, "setitem", "whole numbers"),
    "written text": (lambda w: write(w.x, 0, "a"), DtypeError, "setitem", "str"),
    "written complex": (lambda w: write(w.x, 0, 1j), DtypeError, "setitem", "float64", "1j"),
    "written large number": (
        lambda w: write(mg.tensor([1], dtype="int8"), 0, 300),
        mg.MinigradError,
        "setitem",
        "int8",
        "300",
    ),
    "take": (lambda w: w.x.take([9]), IndexingError, "take", "-6 to 5", "9"),
    "take_along_axis": (
        lambda w: mg.take_along_axis(w.x, np.array([[7], [0]]), axis=1),
        IndexingError,
        "take_along_axis",
        "-3 to 2",
        "7",
    ),
    "take_along_axis axes": (
        lambda w: mg.take_along_axis(w.x, np.array([0]), axis=1),
        ShapeError,
        "take_along_axis",
        "2 axes",
        "(2, 3)",
        "(1,)",
    ),
    "take_along_axis others": (
        lambda w: mg.take_along_axis(w.x, np.zeros((4, 1), int), axis=1),
        ShapeError,
        "take_along_axis",
        "4",
    ),
    "put_along_axis": (
        lambda w: mg.put_along_axis(w.x, np.zeros((2, 1), int), mg.ones(5), 1),
        ShapeError,
        "put_along_axis",
        "(2, 1)",
        "(5,)",
    ),
    "scatter_add": (
        lambda w: mg.scatter_add(w.x, np.zeros((2, 1), int), mg.ones(5, 5), 1),
        ShapeError,
        "scatter_add",
        "(5, 5)",
        "(2, 1)",
    ),
    "scatter_add by mask": (
        lambda w: mg.scatter_add(w.x, np.zeros((2, 1), bool), 1.0, 1),
        IndexingError,
        "scatter_add",
        "integer",
        "bool",
    ),
    "one_hot": (lambda w: mg.one_hot(mg.tensor([0, 5]), 3), IndexingError, "one_hot", "0 to 2", "5"),
    "label": (
        lambda w: F.cross_entropy(mg.ones(2, 3), mg.tensor([0, 3])),
        IndexingError,
        "cross_entropy",
        "0 to 2",
        "3",
    ),
    "topk": (lambda w: w.x.topk(4), ArgumentError, "topk", "0 to 3", "k=4", "(2, 3)"),
    "topk of a fraction": (lambda w: w.x.topk(1.5), ArgumentError, "topk", "whole number", "1.5"),
    "nonzero of 0-d": (lambda w: w.s.nonzero(), mg.MinigradError, "nonzero", "1 axis"),
    "tensor as list index": (lambda w: [1, 2][w.s], DtypeError, "integer", "float64"),
}
KINDS = {
    "integers with gradient": (
        lambda w: mg.tensor([1, 2], requires_grad=True),
        DtypeError,
        "float32",
        "int64",
        "astype",
    ),
    "booleans with gradient": (lambda w: w.t.requires_grad_(), DtypeError, "float32", "bool", "astype"),
    "unknown dtype": (lambda w: mg.zeros(2, dtype="flaot32"), DtypeError, "flaot32", "did you mean 'float32'"),
    "unknown dtype in astype": (lambda w: w.x.astype("flaot64"), DtypeError, "flaot64", "'float64'"),
    "unknown dtype in to": (lambda w: w.x.to("flaot64"), DtypeError, "flaot64", "'float64'"),
    "text dtype": (lambda w: mg.tensor([1], dtype="U5"), DtypeError, "numbers"),
    "unknown device": (lambda w: mg.zeros(2, device="gpu"), DeviceError, "'gpu'", "'cuda'"),
    "unknown device in to": (lambda w: w.x.to("cuda:x"), DeviceError, "cuda:x", "cuda:1"),
    "absent device": (lambda w: w.x.to("cpu:1"), DeviceError, "cpu:1", "below 1"),
    "two devices": (
        lambda w: w.x + mg.ones(3, device="fake"),
        DeviceError,
        "add",
        "one device",
        "cpu and fake",
        "x.to(device)",
    ),
    "two devices in a list": (
        lambda w: mg.concatenate([w.v, mg.ones(3, device="fake")]),
        DeviceError,
        "concatenate",
        "cpu and fake",
    ),
    "written from another device": (
        lambda w: write(w.x, 0, mg.ones(3, device="fake")),
        DeviceError,
        "setitem",
        "cpu and fake",
    ),
    "text as data": (lambda w: mg.tensor("abc"), DtypeError, "tensor", "numbers", "str"),
    "texts as data": (lambda w: mg.tensor(["a", "b"]), DtypeError, "tensor", "numbers"),
    "None as data": (lambda w: mg.tensor(None), DtypeError, "tensor", "NoneType"),
    "dict as data": (lambda w: mg.tensor({"a": 1}), DtypeError, "tensor", "dict"),
    "object array": (lambda w: mg.tensor(np.array([None, 1])), DtypeError, "object", "numbers"),
    "records": (lambda w: mg.tensor(np.zeros(2, dtype=[("a", "f4")])), DtypeError, "numbers"),
    "number too large for its dtype": (lambda w: mg.tensor([300], dtype="uint8"), DtypeError, "tensor", "uint8", "300"),
    "NaN as an integer": (lambda w: mg.tensor([np.nan], dtype="int32"), DtypeError, "tensor", "int32"),
    "list of tensors with gradients": (lambda w: mg.tensor([w.v, w.v]), GradientError, "cut the graph", "mg.stack"),
    "object array as operand": (lambda w: w.v + np.array([1, 2, None]), DtypeError, "add", "object"),
    "text as operand": (lambda w: w.x + "a", DtypeError, "add", "number", "str"),
    "text on the left": (lambda w: "a" * w.x, DtypeError, "multiply", "number", "str"),
    "None as operand": (lambda w: w.x + None, DtypeError, "add", "number", "None"),
    "set as operand": (lambda w: w.x / {1}, DtypeError, "divide", "number", "set"),
    "ragged operand": (lambda w: w.x - [[1], [1, 2]], DtypeError, "subtract", "list"),
    "bits of floats": (lambda w: w.x & w.x, DtypeError, "bitwise_and", "whole numbers or booleans", "float64"),
    "minus of booleans": (lambda w: -w.t, DtypeError, "negative", "bool", "logical_not"),
    "difference of booleans": (lambda w: w.t - w.t, DtypeError, "subtract", "bool", "logical_xor"),
    "negative power of integers": (lambda w: w.n**-1, ArgumentError, "power", "floating", "int64", "astype"),
    "in-place of another kind": (
        lambda w: operator.itruediv(w.n, 2),
        DtypeError,
        "divide",
        "int64",
        "float64",
        "astype",
    ),
    "in-place of another shape": (lambda w: operator.iadd(w.v * 1, w.x), ShapeError, "add", "(3,)", "(2, 3)"),
    "in-place that does not broadcast": (lambda w: operator.iadd(w.x, w.m), ShapeError, "add", "(2, 3)", "(2, 4)"),
    "pickle": (lambda w: pickle.dumps(w.v), DtypeError, "pickled", "mg.save"),
    "median of booleans": (lambda w: mg.median(w.t), DtypeError, "median", "bool", "astype"),
    "gelu": (lambda w: mg.gelu(w.x, approximate="x"), ArgumentError, "gelu", "'tanh'", "'x'"),
}
GRADIENTS = {
    "backward of several": (lambda w: w.x.backward(), GradientError, "scalar", "(2, 3)", "y.sum().backward()"),
    "backward of a constant": (lambda w: mg.ones(2).sum().backward(), GradientError, "no graph", "requires_grad=True"),
    "backward twice": (differentiate_twice, GradientError, "sum", "freed", "retain_graph=True"),
    "gradient of another shape": (lambda w: w.x.backward(mg.ones(3)), ShapeError, "backward", "(2, 3)", "(3,)"),
    "gradient of text": (lambda w: w.x.backward("a"), mg.MinigradError, "numbers"),
    "ragged gradient": (lambda w: w.x.backward([[1, 2], [1]]), ShapeError, "different lengths"),
    "value that a backward needs": (overwrite_what_is_needed, GradientError, "multiply", "overwritten", "clone"),
    "written leaf": (lambda w: write(w.v, 0, 1.0), GradientError, "setitem", "leaf", "no_grad"),
    "leaf changed in place": (lambda w: operator.iadd(w.v, 1.0), GradientError, "add", "leaf", "no_grad"),
    "grad of another shape set": (lambda w: setattr(w.v, "grad", w.u), ShapeError, "(3,)", "(4,)"),
    "grad of a constant set": (lambda w: setattr(w.n, "grad", w.v), GradientError, "requires_grad_"),
    "grad set to a list": (lambda w: setattr(w.v, "grad", [1, 2, 3]), DtypeError, "Tensor", "list"),
    "hook on a constant": (lambda w: w.n.register_hook(print), GradientError, "requires_grad=True"),
    "result told to forget": (lambda w: w.x.requires_grad_(False), GradientError, "detach"),
    "array of a graph": (lambda w: np.asarray(w.x), GradientError, "cut the graph", "detach"),
    "deep copy of a result": (lambda w: copy.deepcopy(w.x), GradientError, "deepcopy", "detach"),
    "unknown NumPy function": (lambda w: np.linalg.eig(w.q), GradientError, "eig", "x.numpy()"),
    "NumPy reduction of a ufunc": (lambda w: np.add.reduce(w.x), DtypeError, "add.reduce", "x.numpy()"),
    "input without gradient": (lambda w: mg.autograd.grad(w.x.sum(), w.n), GradientError, "input 0", "requires_grad_"),
    "unrelated input": (
        lambda w: mg.autograd.grad(w.v.sum(), w.u),
        GradientError,
        "do not depend on input 0",
        "allow_unused=True",
    ),
}
CALLS = {
    "unknown keyword": (lambda w: w.x.sum(axes=0), CallError, "sum", "axes", "did you mean 'axis'"),
    "PyTorch's name for axis": (lambda w: w.x.mean(dim=0), CallError, "mean", "'dim'", "write axis="),
    "a result instead of a function": (
        lambda w: mg.grad(w.x.sum(), w.x),
        ArgumentError,
        "mg.grad(f)(x)",
        "mg.autograd.grad",
    ),
    "an argument instead of its number": (
        lambda w: mg.hessian(lambda t: t, w.x),
        ArgumentError,
        "argnums",
        "mg.hessian(f)(x)",
    ),
    "a hook that is no function": (lambda w: w.x.register_hook(3), ArgumentError, "register_hook", "callable", "int"),
    "tensors without names": (lambda w: mg.save(w.x, "x"), ArgumentError, "save", "names"),
    "a folder that is not there": (
        lambda w: mg.save({"x": w.x}, "/no/such/folder/x"),
        CheckpointError,
        "/no/such/folder",
        "cannot be written",
    ),
    "unknown keyword of a function": (lambda w: mg.std(w.x, keepdim=True), CallError, "std", "keepdim", "keepdims="),
    "too many arguments": (lambda w: mg.exp(w.x, 1, 2), CallError, "exp", "exp(a)", "3 arguments"),
    "too few arguments": (lambda w: mg.add(w.x), CallError, "add", "'b' is missing", "add(a, b)"),
    "no arguments": (lambda w: mg.exp(), CallError, "exp", "'a' is missing"),
    "argument twice": (lambda w: mg.sum(w.x, 0, axis=0), CallError, "sum", "'axis' is given twice"),
    "truth of several": (lambda w: bool(w.x), ArgumentError, "truth", "(2, 3)", "x.any() or x.all()"),
    "len of 0-d": (lambda w: len(w.s), DtypeError, "len", "()"),
    "iteration over 0-d": (lambda w: list(w.s), DtypeError, "()"),
    "membership": (lambda w: w.u in w.x, ShapeError, "equal", "(2, 3)", "(4,)"),
    "seed": (lambda w: mg.manual_seed("a"), ArgumentError, "manual_seed", "'a'"),
    "randint": (lambda w: mg.randint(3, 1), ArgumentError, "randint", "low < high"),
    "randperm": (lambda w: mg.randperm(-1), ArgumentError, "randperm", "-1"),
    "arange": (lambda w: mg.arange(0, 1, 0), ArgumentError, "arange", "step"),
    "eye": (lambda w: mg.eye(-1), ArgumentError, "eye", "-1"),
    "from_dlpack": (lambda w: mg.from_dlpack([1]), DtypeError, "DLPack", "list"),
}
CASES = {**SHAPES, **LINALG, **INDICES, **KINDS, **GRADIENTS, **CALLS}


def check_text(text, *fragments):
    for fragment in fragments:
        assert fragment in text, f"{fragment!r} is not in:\n{text}"
    for noise in NOT_OURS:
        assert noise not in text, f"{noise!r} is in:\n{text}"


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_an_error_that_helps_and_harms_nothing(name):
    call, kind, *fragments = CASES[name]
    w = world()
    tensors = {k: v for k, v in vars(w).items() if isinstance(v, Tensor)}
    before = {k: (v.numpy().copy(), v.node) for k, v in tensors.items()}
    with pytest.raises(kind) as caught:
        call(w)
    check_text(str(caught.value), *fragments)
    assert isinstance(caught.value, BUILT_IN.get(kind, Exception))
    assert "expected:" in str(caught.value) or "fix:" in str(caught.value) or "got:" in str(caught.value)
    for k, (data, node) in before.items():
        np.testing.assert_array_equal(tensors[k].numpy(), data)
        assert tensors[k].node is node
    w.a.grad = None
    (w.x * w.x).sum().backward()
    np.testing.assert_array_equal(w.a.grad.numpy(), 8 * w.a.numpy())


def operands(name):
    """How many operands an elementwise op has, and of which dtype."""
    required = (
        [n for n in OPS[name].signature.inputs if n not in OPS[name].signature.optional]
        if name != "clip"
        else ["a", "min"]
    )
    return len(required), int if name.startswith("bitwise") else float


BINARY = sorted(n for n in OPS if OPS[n].elementwise and not n.startswith("_") and operands(n)[0] > 1)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", ["tensors", "an array", "batches"])
def test_shapes_that_do_not_broadcast_are_both_named(name, kind):
    count, dtype = operands(name)
    left, right = ((2, 3), (2, 4)) if kind != "batches" else ((5, 2, 3), (4, 1, 3))
    given = [mg.tensor(np.ones(left, dtype))] * (count - 1) + [
        np.ones(right, dtype) if kind == "an array" else mg.tensor(np.ones(right, dtype))
    ]
    with pytest.raises(ShapeError, match="do not broadcast") as caught:
        getattr(mg, name)(*given)
    check_text(
        str(caught.value),
        name,
        str(left),
        str(right),
        "expected:",
        "got:",
        "fix:",
        "axis -3" if kind == "batches" else "axis -1",
    )


def test_the_walk_knows_the_binary_ops():
    assert {
        "add",
        "subtract",
        "multiply",
        "divide",
        "power",
        "maximum",
        "where",
        "clip",
        "arctan2",
        "less",
        "logical_and",
    } <= set(BINARY)


MORE_ARGUMENTS = {
    "topk": {"k": 1},
    "split": {"indices_or_sections": 1},
    "repeat": {"repeats": 2},
    "roll": {"shift": 1},
    "take": {"indices": [0]},
    "vecdot": {"b": np.ones((2, 3))},
    "take_along_axis": {"indices": np.zeros((2, 1), int)},
    "put_along_axis": {"indices": np.zeros((2, 1), int), "values": 1.0},
    "scatter_add": {"indices": np.zeros((2, 1), int), "values": 1.0},
    "cosine_similarity": {"x2": np.ones((2, 3))},
    "cross": {"b": np.ones((2, 3))},
    "unflatten": {"sizes": (3, 1)},
    "gather": {"index": np.zeros((2, 1), int)},
    "scatter": {"index": np.zeros((2, 1), int), "src": 1.0},
    "scatter_reduce": {"index": np.zeros((2, 1), int), "src": 1.0, "reduce": "mean"},
    "index_add": {"index": [0], "source": 1.0},
    "index_copy": {"index": [0], "source": 1.0},
    "index_fill": {"index": [0], "value": 1.0},
    "quantile": {"q": 0.5},
    "array_split": {"indices_or_sections": 1},
    "append": {"values": np.ones((2, 3))},
    "percentile": {"q": 50},
}
ALONG_AN_AXIS = sorted(
    n for n, f in {**OPS, **COMPOSITES}.items() if "axis" in f.signature.defaults and not n.startswith("_")
)


@pytest.mark.parametrize("name", ALONG_AN_AXIS)
@pytest.mark.parametrize("axis", [7, -8, 1.5, "rows", (0, 0), (0, 9)], ids=str)
def test_an_axis_that_does_not_exist_is_refused_everywhere(name, axis):
    x = mg.tensor(np.ones((2, 3)), requires_grad=True)
    function = getattr(mg, name, None) or getattr(F, name)
    if name == "roll" and axis == (0, 0):
        axis = (0, 0, -9)  # rolling twice along one axis makes sense, to NumPy too
    with pytest.raises(AxisError) as caught:
        function([x, x] if name in ("concatenate", "stack") else x, **MORE_ARGUMENTS.get(name, {}), axis=axis)
    check_text(str(caught.value), name, "axis", "expected:", "got:", "(2, 3)")


@pytest.mark.parametrize("name", ALONG_AN_AXIS)
def test_negative_axes_work_everywhere(name):
    x = mg.tensor(np.arange(6.0).reshape(2, 3) + 1)
    if name == "glu":
        x = mg.concatenate([x, x], axis=-1)  # which has two halves
    if name == "squeeze":
        x = x.reshape(2, 3, 1)
    function = getattr(mg, name, None) or getattr(F, name)
    last = x.ndim if name in ("stack", "expand_dims") else x.ndim - 1
    given = [x, x] if name in ("concatenate", "stack") else x
    results = []
    for axis in (last, -1):
        mg.manual_seed(0)
        results.append(function(given, **MORE_ARGUMENTS.get(name, {}), axis=axis))
    for one, other in zip(*[r if isinstance(r, tuple) else (r,) for r in results]):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("view", "reshape"),
        ("unsqueeze", "expand_dims"),
        ("permute", "transpose"),
        ("clamp", "clip"),
        ("index_select", "take"),
        ("cat", "concatenate"),
        ("numel", "size"),
    ],
)
def test_names_from_pytorch_are_translated(theirs, ours):
    with pytest.raises(AttributeError, match=f"'{theirs}'.*{ours}"):
        getattr(mg.ones(2), theirs)
    assert not hasattr(mg.ones(2), theirs)


@pytest.mark.parametrize(
    "owner, theirs, ours",
    [
        (mg, "conv2d", "mg.nn.functional.conv2d"),
        (mg, "Linear", "mg.nn.Linear"),
        (mg, "special", "mg.erf"),
        (mg, "histc", "histogram"),
        (mg.linalg, "eigvals", "complex"),
        (mg.random, "manual_seed", "mg.manual_seed"),
        (mg.random, "exponential", "default_rng"),
        (mg.ones(2), "bool", "astype('bool')"),
        (mg.ones(2), "byte", "astype('uint8')"),
        (mg.nn.Linear(1, 1), "add_module", "module.name = part"),
        (mg.nn.Linear(1, 1), "half", 'to("float16")'),
    ],
)
def test_names_that_others_keep_elsewhere_are_found(owner, theirs, ours):
    with pytest.raises(AttributeError, match=f"'{theirs}'.*{re.escape(ours)}"):
        getattr(owner, theirs)


@pytest.mark.parametrize(
    "name, theirs, ours",
    [
        ("triu", "diagonal", "write k= instead"),
        ("diagonal", "dim1", "write axis1= instead"),
        ("flip", "dims", "write axis= instead"),
        ("tensordot", "dims", "write axes= instead"),
        ("multiply", "other", "write b= instead"),
        ("quantile", "interpolation", "write method= instead"),
        ("searchsorted", "right", "side='right'"),
        ("nonzero", "as_tuple", "stack"),
        ("exp", "dtype", "astype"),
        ("solve_triangular", "unitriangular", "write unit_diagonal= instead"),
        ("solve_triangular", "upper", "lower=False"),
    ],
)
def test_arguments_from_pytorch_and_numpy_are_translated(name, theirs, ours):
    with pytest.raises(CallError, match=f"'{theirs}'(.|\\n)*{re.escape(ours)}"):
        getattr(mg, name)(mg.ones(2, 2), **{theirs: 1})


def test_where_without_values_names_nonzero():
    with pytest.raises(CallError, match="argument 'a' is missing(.|\\n)*mg.nonzero"):
        mg.where(mg.ones(2) > 0)


def test_an_unknown_attribute_carries_what_python_needs_to_suggest_one():
    x = mg.ones(2)
    with pytest.raises(AttributeError) as caught:
        x.smu  # noqa: B018
    assert caught.value.name == "smu" and caught.value.obj is x


def test_every_error_is_a_minigrad_error_and_a_built_in_one():
    kinds = [
        k
        for _, k in inspect.getmembers(errors, inspect.isclass)
        if issubclass(k, mg.MinigradError) and k is not mg.MinigradError
    ]
    assert len(kinds) >= len(BUILT_IN)
    for kind in kinds:
        assert any(b.__module__ == "builtins" and b not in (Exception, object, BaseException) for b in kind.__mro__), (
            kind
        )
    assert all(issubclass(kind, built_in) for kind, built_in in BUILT_IN.items())


def test_an_error_inside_a_module_names_it():
    with (
        scope("encoder.0"),
        pytest.raises(ShapeError, match="^encoder.0: vecdot: multiply: shapes do not broadcast"),
    ):
        mg.vecdot(mg.ones(2), mg.ones(3))
    with scope("encoder.0"), pytest.raises(ShapeError, match="^encoder.0: matmul: "):
        mg.ones(2) @ mg.ones(3)


def test_an_install_hint_is_for_this_python_and_this_checkout_and_never_for_a_package_index():
    python, *pip, editable, target = shlex.split(errors.install_hint("viz", "--upgrade"))
    assert (python, pip, editable) == (sys.executable, ["-m", "pip", "install", "--upgrade"], "-e")
    folder, _, extra = target.partition("[")
    assert extra == "viz]" and Path(folder, "setup.cfg").is_file() and Path(folder, "minigrad", "errors.py").is_file()


def test_an_install_hint_without_a_checkout_says_where_to_run_it(monkeypatch, tmp_path):
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "minigrad" / "errors.py"))
    assert errors.install_hint("viz").endswith("-m pip install -e '.[viz]', in the checkout of minigrad")


@pytest.mark.parametrize(
    ("layer", "shape", "start"),
    [
        (lambda: mg.nn.Linear(3, 2), (2, 5), "Linear: input"),
        (lambda: mg.nn.LayerNorm(3), (2, 5), "LayerNorm: "),
        (lambda: mg.nn.Sequential(mg.nn.Linear(3, 2)), (2, 5), "Sequential.0: linear: "),
    ],
)
def test_a_layer_named_after_its_function_is_named_once(layer, shape, start):
    with pytest.raises(ShapeError) as caught:
        layer()(mg.ones(*shape))
    assert str(caught.value).startswith(start) and str(caught.value).lower().count(start.split(":")[0].lower()) == 1


def test_a_name_in_other_letters_gets_the_nearest():
    assert errors.nearest("XOR", ["xor", "bert"]) == "did you mean 'xor'?"
    assert errors.nearest("adam", ["Adam", "AdamW", "SGD"]).startswith("did you mean 'Adam'")


@pytest.mark.parametrize("function", [mg.outer, mg.kron, mg.append])
def test_a_number_in_the_place_of_a_tensor_is_named_with_what_to_do(function):
    with pytest.raises(mg.errors.DtypeError, match="a plain number stands where a tensor is needed(.|\n)*mg.tensor"):
        function(mg.ones(3), 2)
