"""What the array API standard 2024.12 asks for: functions with their parameters, attributes of an array, and promotion."""

# Parameters, and the functions of the namespace that have them.
FUNCTIONS = {
    "(x, /)": """
        abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log10
        log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
        matrix_transpose nonzero unique_all unique_counts unique_inverse unique_values""",
    "(x1, x2, /)": """
        add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
        greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor matmul maximum minimum multiply
        nextafter not_equal pow remainder subtract""",
    "(x, /, min=None, max=None)": "clip",
    "(start, /, stop=None, step=1, *, dtype=None, device=None)": "arange",
    "(obj, /, *, dtype=None, device=None, copy=None)": "asarray",
    "(shape, *, dtype=None, device=None)": "empty ones zeros",
    "(x, /, *, dtype=None, device=None)": "empty_like ones_like zeros_like",
    "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)": "eye",
    "(x, /, *, device=None, copy=None)": "from_dlpack",
    "(shape, fill_value, *, dtype=None, device=None)": "full",
    "(x, /, fill_value, *, dtype=None, device=None)": "full_like",
    "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)": "linspace",
    "(*arrays, indexing='xy')": "meshgrid",
    "(x, /, *, k=0)": "tril triu",
    "(x, dtype, /, *, copy=True, device=None)": "astype",
    "(from_, to, /)": "can_cast",
    "(type, /)": "finfo iinfo",
    "(dtype, kind)": "isdtype",
    "(*arrays_and_dtypes)": "result_type",
    "(x, indices, /, *, axis=None)": "take",
    "(x, indices, /, *, axis=-1)": "take_along_axis",
    "(x1, x2, /, *, axes=2)": "tensordot",
    "(x1, x2, /, *, axis=-1)": "vecdot",
    "(*arrays)": "broadcast_arrays",
    "(x, /, shape)": "broadcast_to",
    "(arrays, /, *, axis=0)": "concat stack",
    "(x, /, axis)": "expand_dims squeeze",
    "(x, /, *, axis=None)": "flip",
    "(x, source, destination, /)": "moveaxis",
    "(x, /, axes)": "permute_dims",
    "(x, repeats, /, *, axis=None)": "repeat",
    "(x, /, shape, *, copy=None)": "reshape",
    "(x, /, shift, *, axis=None)": "roll",
    "(x, repetitions, /)": "tile",
    "(x, /, *, axis=0)": "unstack",
    "(x, /, *, axis=None, keepdims=False)": "all any argmax argmin count_nonzero max mean min",
    "(x1, x2, /, *, side='left', sorter=None)": "searchsorted",
    "(condition, x1, x2, /)": "where",
    "(x, /, *, axis=-1, descending=False, stable=True)": "argsort sort",
    "(x, /, *, axis=None, dtype=None, include_initial=False)": "cumulative_prod cumulative_sum",
    "(x, /, *, axis=None, dtype=None, keepdims=False)": "prod sum",
    "(x, /, *, axis=None, correction=0.0, keepdims=False)": "std var",
    "(x, /, *, axis=-1, n=1, prepend=None, append=None)": "diff",
    "()": "__array_namespace_info__",
}
LINALG = {
    "(x, /)": "det eigh eigvalsh inv matrix_transpose slogdet svdvals",
    "(x1, x2, /)": "matmul outer solve",
    "(x, /, *, upper=False)": "cholesky",
    "(x1, x2, /, *, axis=-1)": "cross vecdot",
    "(x, /, *, offset=0)": "diagonal",
    "(x, /, *, keepdims=False, ord='fro')": "matrix_norm",
    "(x, n, /)": "matrix_power",
    "(x, /, *, rtol=None)": "matrix_rank pinv",
    "(x, /, *, mode='reduced')": "qr",
    "(x, /, *, full_matrices=True)": "svd",
    "(x1, x2, /, *, axes=2)": "tensordot",
    "(x, /, *, offset=0, dtype=None)": "trace",
    "(x, /, *, axis=None, keepdims=False, ord=2)": "vector_norm",
}
FFT = {
    "(x, /, *, n=None, axis=-1, norm='backward')": "fft ifft rfft irfft hfft ihfft",
    "(x, /, *, s=None, axes=None, norm='backward')": "fftn ifftn rfftn irfftn",
    "(n, /, *, d=1.0, dtype=None, device=None)": "fftfreq rfftfreq",
    "(x, /, *, axes=None)": "fftshift ifftshift",
}
CONSTANTS = "e inf nan newaxis pi"
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
ATTRIBUTES = "dtype device mT ndim shape size T"
METHODS = """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__ __floordiv__ __ge__
    __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__
    __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
    __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __ipow__ __imod__ __imatmul__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__
    __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ __rand__ __ror__ __rxor__ __rlshift__
    __rrshift__"""

# Each row: a dtype, and what it becomes beside the dtypes of the head. A dot is a pair that the standard leaves open.
PROMOTION = """
            int8  int16 int32 int64 uint8 uint16 uint32 uint64
    int8    int8  int16 int32 int64 int16 int32  int64  .
    int16   int16 int16 int32 int64 int16 int32  int64  .
    int32   int32 int32 int32 int64 int32 int32  int64  .
    int64   int64 int64 int64 int64 int64 int64  int64  .
    uint8   int16 int16 int32 int64 uint8 uint16 uint32 uint64
    uint16  int32 int32 int32 int64 uint16 uint16 uint32 uint64
    uint32  int64 int64 int64 int64 uint32 uint32 uint32 uint64
    uint64  .     .     .     .     uint64 uint64 uint64 uint64

               float32    float64    complex64  complex128
    float32    float32    float64    complex64  complex128
    float64    float64    float64    complex128 complex128
    complex64  complex64  complex128 complex64  complex128
    complex128 complex128 complex128 complex128 complex128
"""


def promotions() -> list[tuple[str, str, str]]:
    """Every pair of dtypes whose promotion the standard fixes, and the result."""
    found = []
    for table in PROMOTION.strip("\n").split("\n\n"):
        head, *rows = [line.split() for line in table.splitlines()]
        found += [(row[0], other, result) for row in rows for other, result in zip(head, row[1:]) if result != "."]
    return found
