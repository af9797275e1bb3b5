"""What PyTorch calls a thing, and what minigrad, with NumPy, calls it: for errors that tell people where to look."""

NAMES = {
    "view": "reshape", "permute": "transpose or permute_dims", "unsqueeze": "expand_dims", "cat": "concatenate", "concat": "concatenate",
    "pow": "** or power", "mul": "* or multiply", "sub": "- or subtract", "div": "/ or divide", "neg": "- or negative",
    "mm": "@ or matmul", "bmm": "@ or matmul", "clamp": "clip", "gather": "take_along_axis", "scatter": "put_along_axis",
    "index_select": "take", "expand": "broadcast_to", "amax": "max", "amin": "min", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "dim": "ndim", "numel": "size", "type": "astype", "t": "T", "copy": "clone", "contiguous": "clone", "chunk": "split", "grad_fn": "node",
    "float": "astype('float32')", "double": "astype('float64')", "half": "astype('float16')", "long": "astype('int64')",
    "int": "astype('int32')", "zero_": "x[...] = 0", "fill_": "x[...] = value", "copy_": "x[...] = y", "add_": "+=", "sub_": "-=",
    "mul_": "*=", "div_": "/=", "array": "tensor", "asarray": "tensor", "from_numpy": "tensor", "set_grad_enabled": "no_grad or enable_grad",
}  # fmt: skip
ARGUMENTS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "correction": "ddof"}
