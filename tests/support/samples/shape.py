"""Samples of ops that move, repeat, join or cut elements."""

from __future__ import annotations

import numpy as np

from . import ALL_FLOATS, AS_GIVEN, add, spread

cube = spread(2, 3, 2)
whole = np.arange(6).reshape(2, 3)

for size in ((3, 4), (-1,), (2, -1, 1), (12,)):
    add("reshape", np.reshape, cube, kwargs={"shape": size}, label=str(size), dtypes=ALL_FLOATS)
add("reshape", np.reshape, spread(1), kwargs={"shape": ()}, label="to 0-d")
add("reshape", np.reshape, np.zeros((0, 3)), kwargs={"shape": (3, 0)}, label="empty", gradient=False)
add("reshape", np.reshape, whole, kwargs={"shape": (3, 2)}, dtypes=AS_GIVEN, label="integers")
for array, label in ((cube, "cube"), (spread(), "0-d"), (spread(3), "vector")):
    add("ravel", np.ravel, array, label=label)
    add("flatten", np.ravel, array, label=label)
    add("transpose", np.transpose, array, label=label)
add(
    "flatten",
    lambda a, start_axis, end_axis: a.reshape(2, 6),
    cube,
    kwargs={"start_axis": 1, "end_axis": -1},
    label="some axes",
)
add("flatten", lambda a, end_axis: a.reshape(6, 2), cube, kwargs={"end_axis": -2}, label="first axes")
for axes in ((2, 0, 1), (1, 2, 0), (-1, 0, -2), (0, 2, 1)):
    add("transpose", np.transpose, cube, kwargs={"axes": axes}, label=str(axes))
    add("permute_dims", np.transpose, cube, kwargs={"axes": axes}, label=str(axes))
for first, second in ((0, 2), (-1, 1), (1, 1)):
    add(
        "swapaxes",
        lambda a, axis1, axis2: np.swapaxes(a, axis1, axis2),
        cube,
        kwargs={"axis1": first, "axis2": second},
        label=f"{first}, {second}",
    )
for source, destination in ((0, -1), (2, 0), ((0, 1), (-1, 0)), ((-1, 0), (0, 2))):
    add(
        "moveaxis",
        np.moveaxis,
        cube,
        kwargs={"source": source, "destination": destination},
        label=f"{source} to {destination}",
    )
for axis in (0, -1, 1, (0, 2), (-1, 1)):
    add("expand_dims", np.expand_dims, spread(2, 3), kwargs={"axis": axis}, label=str(axis))
for axis in (None, 0, -2, (0, 2)):
    add("squeeze", np.squeeze, spread(1, 3, 1, 2), kwargs={"axis": axis}, label=str(axis))
for array, size in ((spread(3), (2, 3)), (spread(2, 1), (2, 3)), (spread(), (2, 2)), (spread(1, 3, 1), (2, 2, 3, 2))):
    add("broadcast_to", np.broadcast_to, array, kwargs={"shape": size}, label=f"{array.shape} to {size}")

pieces = [spread(2, 3), spread(2, 1, seed=1), spread(2, 2, seed=2)]
add("concatenate", np.concatenate, pieces, kwargs={"axis": 1}, label="last", dtypes=ALL_FLOATS)
add("concatenate", np.concatenate, pieces, kwargs={"axis": -1}, label="negative axis")
add("concatenate", np.concatenate, [spread(3), spread(2, seed=1)], label="vectors")
add("concatenate", np.concatenate, [spread(2, 3), spread(2, seed=1)], kwargs={"axis": None}, label="raveled")
add("concatenate", np.concatenate, [spread(2, 3), np.zeros((0, 3))], label="with an empty one")
add("concatenate", np.concatenate, [spread(3)], label="alone")
add("concatenate", np.concatenate, [whole, whole[:1]], dtypes=AS_GIVEN, label="integers")
add("concatenate", np.concatenate, [spread(2, 3), whole], gradient=False, label="integers and floats")
for axis in (0, 1, -1):
    add("stack", np.stack, [spread(2, 3), spread(2, 3, seed=1)], kwargs={"axis": axis}, label=f"axis {axis}")
add("stack", np.stack, [spread(), spread(seed=1), spread(seed=2)], label="0-d")
for sections, axis in ((2, 1), (4, -2), ([1, 3], 1), ([2], 1), ([1, 1, 4], 1)):
    add(
        "split",
        np.split,
        spread(2, 4, 2),
        kwargs={"indices_or_sections": sections, "axis": axis},
        label=f"{sections} on {axis}",
    )
add("split", np.split, spread(4), kwargs={"indices_or_sections": 1}, label="whole")
add("_split", lambda a, cuts, axis: np.split(a, cuts, axis), spread(2, 4), kwargs={"cuts": [1, 3], "axis": 1})
for axis in (0, -1, 1):
    add("unstack", lambda a, axis: tuple(np.moveaxis(a, axis, 0)), cube, kwargs={"axis": axis}, label=f"axis {axis}")
add("_unstack", lambda a, axis: tuple(np.moveaxis(a, axis, 0)), cube, kwargs={"axis": 1})
for reps in (2, (2, 1), (2, 1, 3), (1, 2, 1, 2)):
    add("tile", np.tile, spread(2, 3), kwargs={"reps": reps}, label=str(reps))
add("tile", np.tile, spread(), kwargs={"reps": 3}, label="0-d")
for repeats, axis in ((2, None), (3, 0), (2, -1), ([1, 0, 2], 1), ([2], 0)):
    add("repeat", np.repeat, spread(2, 3), kwargs={"repeats": repeats, "axis": axis}, label=f"{repeats} on {axis}")
add("repeat", np.repeat, spread(), kwargs={"repeats": 2}, label="0-d")
for axis in (None, 0, -1, (0, 2)):
    add("flip", np.flip, cube, kwargs={"axis": axis}, label=str(axis))
for shift, axis in ((1, None), (-2, 1), (4, -1), ((1, -1), (0, 1))):
    add("roll", np.roll, cube, kwargs={"shift": shift, "axis": axis}, label=f"{shift} on {axis}")

for width in (1, (0, 2), ((1, 2), (0, 1)), ((0, 0), (2, 0))):
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        add("pad", np.pad, spread(3, 4), kwargs={"pad_width": width, "mode": mode}, label=f"{mode} {width}")
add("pad", np.pad, spread(2, 2), kwargs={"pad_width": 1, "constant_values": 5}, label="value")
add(
    "_pad_constant",
    lambda a, widths, value: np.pad(a, widths, constant_values=value),
    spread(2, 3),
    kwargs={"widths": [(1, 0), (0, 2)], "value": 3},
    label="corner",
)
add(
    "_pad_constant",
    lambda a, widths, value: np.pad(a, widths, constant_values=value),
    spread(2, 3),
    kwargs={"widths": [(1, 2), (2, 1)], "value": 3},
    label="frame",
)
for k in (0, 1, -1, 5, -5):
    for name in ("tril", "triu"):
        add(name, getattr(np, name), spread(2, 3, 4), kwargs={"k": k}, label=f"k {k}")
for kwargs in ({}, {"offset": 1}, {"offset": -1, "axis1": -1, "axis2": 0}, {"axis1": 1, "axis2": 2}, {"offset": 7}):
    array = spread(3, 2, 4)
    add("diagonal", np.diagonal, array, kwargs=kwargs, label=str(kwargs), gradient=kwargs.get("offset") != 7)
    add("trace", np.trace, array, kwargs=kwargs, label=str(kwargs), gradient=kwargs.get("offset") != 7)
for k in (0, 2, -1):
    add("diag", np.diag, spread(3), kwargs={"k": k}, label=f"vector {k}")
    add("diag", np.diag, spread(3, 4), kwargs={"k": k}, label=f"matrix {k}")
for count, indexing in ((2, "xy"), (3, "xy"), (3, "ij"), (1, "xy")):
    vectors = [spread(i + 2, seed=i) for i in range(count)]
    add("meshgrid", np.meshgrid, *vectors, kwargs={"indexing": indexing}, label=f"{count} {indexing}")
add("_alias", np.copy, spread(2, 3))
