"""What numba lacks: memory at an address, memory on the stack, rows whose bounds are known, and short rows as vectors.

An address costs less to pass than an array. Nothing else points to memory on the stack, and the compiler knows it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, njit, types
from numba.core.cgutils import alloca_once_value, for_range
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

__all__ = ["at", "matmul", "row", "stack"]
_FAST = ("contract",)


@intrinsic
def at(context: Any, address: Any, dtype: Any) -> Any:
    """The pointer that a whole number is: `carray(at(address, f4), 8)`."""
    pointer = types.CPointer(dtype.dtype)
    return pointer(address, dtype), lambda context, builder, _, given: builder.inttoptr(
        given[0], context.get_value_type(pointer)
    )


@intrinsic
def stack(context: Any, dtype: Any, size: Any) -> Any:
    """A pointer to memory for so many numbers, until the function that asks for it returns: `carray(stack(f4, 8), 8)`."""
    if not isinstance(size, types.IntegerLiteral):
        raise RequireLiteralValue(size)
    pointer = types.CPointer(dtype.dtype)

    def generate(context: Any, builder: Any, *_: Any) -> Any:
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(context.get_data_type(pointer.dtype), size.literal_value))
        memory.align = 64
        return builder.bitcast(memory, context.get_value_type(pointer))

    return pointer(dtype, size), generate


@intrinsic
def _from(context: Any, array: Any, start: Any) -> Any:
    """The pointer to an element of an array."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(array)(context, builder, given[0]).data
        return builder.gep(data, [given[1]], inbounds=True)

    return types.CPointer(array.dtype)(array, start), generate


@njit(nogil=True, forceinline=True)
def row(array: Any, start: Any, size: Any) -> Any:
    """`array[start : start + size]` of an array that has these elements: without a look at its size, each row begins sooner."""
    return carray(_from(array, start), size)


@intrinsic
def matmul(context: Any, a: Any, at_a: Any, b: Any, at_b: Any, out: Any, at_out: Any, sizes: Any, columns: Any) -> Any:
    """`out[i] = Σₖ a[i, k] b[k]` for a few columns, with each row of `b` and `out` a vector.

    `at_a` is where `a` begins and its strides; `at_b` and `at_out` the same without the last stride, which is 1;
    `sizes` are those of the rows and of the sum.
    """
    if not isinstance(columns, types.IntegerLiteral):
        raise RequireLiteralValue(columns)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        element = context.get_data_type(a.dtype)
        vector = ir.VectorType(element, columns.literal_value)
        memory = [context.make_array(t)(context, builder, x).data for t, x in zip((a, b, out), given[::2])]
        (a0, a_row, a_step), (b0, b_row), (out0, out_row), (rows, inner) = [
            [builder.extract_value(x, k) for k in range(n)] for x, n in zip((*given[1:6:2], given[6]), (3, 2, 2, 2))
        ]

        def place(k: int, start: Any, *steps: Any) -> Any:
            for index, stride in steps:
                start = builder.add(start, builder.mul(index, stride))
            return builder.gep(memory[k], [start])

        def as_vector(pointer: Any) -> Any:
            return builder.bitcast(pointer, vector.as_pointer())

        with for_range(builder, rows) as row:
            total = alloca_once_value(builder, ir.Constant(vector, None))
            with for_range(builder, inner) as k:
                one = builder.load(place(0, a0, (row.index, a_row), (k.index, a_step)))
                many = builder.load(as_vector(place(1, b0, (k.index, b_row))), align=a.dtype.bitwidth // 8)
                none = ir.Constant(vector, ir.Undefined)
                lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
                all_one = builder.shuffle_vector(builder.insert_element(none, one, ir.IntType(32)(0)), none, lanes)
                product = builder.fmul(all_one, many, flags=_FAST)
                builder.store(builder.fadd(builder.load(total), product, flags=_FAST), total)
            builder.store(builder.load(total), as_vector(place(2, out0, (row.index, out_row))), a.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(a, at_a, b, at_b, out, at_out, sizes, columns), generate
