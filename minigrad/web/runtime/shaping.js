// Kernels that put the same numbers elsewhere: other shapes, other orders, parts, and several arrays as one.

KERNELS.reshape = ([a], { shape }) => {
  const known = shape.filter((n) => n !== -1);
  return a.reshaped(shape.map((n) => (n === -1 ? a.size / sizeOf(known) : n)));
};

KERNELS.transpose = ([a], { axes }) => {
  const order = axes ? axes.map((axis) => axisOf(axis, a.shape.length)) : [...a.shape.keys()].reverse();
  const strides = stridesOf(a.shape);
  return gathered(a, order.map((axis) => a.shape[axis]), order.map((axis) => strides[axis]));
};

KERNELS.broadcast_to = ([a], { shape }) => gathered(a, shape, broadcastStrides(a.shape, shape));

KERNELS.flip = ([a], { axis }) => {
  const count = a.shape.length;
  const turned = new Set(axis === null || axis === undefined ? a.shape.keys() : [axis].flat().map((x) => axisOf(x, count)));
  const strides = stridesOf(a.shape);
  let start = 0;
  for (const x of turned) start += strides[x] * (a.shape[x] - 1);
  return gathered(a, a.shape, strides.map((step, x) => (turned.has(x) ? -step : step)), start);
};

KERNELS.concatenate = (arrays, { axis = 0 }, [dtype]) => {
  if (axis === null) return KERNELS.concatenate(arrays.map((a) => a.reshaped([a.size])), { axis: 0 }, [dtype]);
  const place = axisOf(axis, arrays[0].shape.length);
  const shape = [...arrays[0].shape];
  shape[place] = arrays.reduce((total, a) => total + a.shape[place], 0);
  const out = emptyArray(dtype, shape);
  const before = sizeOf(shape.slice(0, place));
  const width = sizeOf(shape.slice(place));
  let start = 0;
  for (const a of arrays) {
    const part = sizeOf(a.shape.slice(place));
    for (let row = 0; row < before; row++) out.data.set(a.data.subarray(row * part, (row + 1) * part), row * width + start);
    start += part;
  }
  return out;
};

KERNELS.stack = (arrays, { axis = 0 }, dtypes) => {
  const place = axisOf(axis, arrays[0].shape.length + 1);
  const raised = arrays.map((a) => a.reshaped([...a.shape.slice(0, place), 1, ...a.shape.slice(place)]));
  return KERNELS.concatenate(raised, { axis: place }, dtypes);
};

// The part of an array from one place to another along an axis.
function partOf(a, axis, start, stop) {
  const shape = [...a.shape];
  shape[axis] = stop - start;
  const strides = stridesOf(a.shape);
  return gathered(a, shape, strides, start * strides[axis]);
}

KERNELS._split = ([a], { cuts, axis }) => {
  const place = axisOf(axis, a.shape.length);
  const size = a.shape[place];
  const each = typeof cuts === 'number' ? size / cuts : 0;
  const inner = each ? Array.from({ length: cuts - 1 }, (_, i) => (i + 1) * each) : cuts;
  const edges = [0, ...inner, size].map((edge) => Math.min(Math.max(edge < 0 ? edge + size : edge, 0), size));
  return edges.slice(1).map((stop, i) => partOf(a, place, edges[i], Math.max(stop, edges[i])));
};

KERNELS._unstack = ([a], { axis }) => {
  const place = axisOf(axis, a.shape.length);
  const shape = a.shape.filter((_, i) => i !== place);
  return Array.from({ length: a.shape[place] }, (_, i) => partOf(a, place, i, i + 1).reshaped(shape));
};

KERNELS.roll = ([a], { shift, axis }) => {
  if (axis === null || axis === undefined) {
    return KERNELS.roll([a.reshaped([a.size])], { shift: [shift].flat().reduce((x, y) => x + y, 0), axis: 0 }).reshaped(a.shape);
  }
  const shifts = [shift].flat();
  let found = a;
  for (const [i, x] of [axis].flat().entries()) {
    const place = axisOf(x, a.shape.length);
    const size = a.shape[place];
    if (!size) continue;
    const cut = size - remainder(shifts[i % shifts.length], size);
    found = KERNELS.concatenate([partOf(found, place, cut, size), partOf(found, place, 0, cut)], { axis: place }, [a.dtype]);
  }
  return found;
};

// The value is a number, or one before and one after, for all axes or for each.
KERNELS._pad_constant = ([a], { widths, value }) => {
  if (Array.isArray(value)) {
    const pairs = Array.isArray(value[0]) ? value : [value];
    const pairOf = (axis) => [pairs[pairs.length > 1 ? axis : 0]].flat();
    return widths.reduce((padded, width, axis) => width.reduce((found, count, side) => {
      const shape = found.shape.map((n, i) => (i === axis ? count : n));
      const more = new NDArray(a.dtype, shape, emptyArray(a.dtype, shape).data.fill(pairOf(axis).at(side ? -1 : 0)));
      return KERNELS.concatenate(side ? [found, more] : [more, found], { axis }, [a.dtype]);
    }, padded), a);
  }
  const shape = a.shape.map((n, axis) => n + widths[axis][0] + widths[axis][1]);
  const out = emptyArray(a.dtype, shape);
  out.data.fill(value instanceof NDArray ? value.data[0] : value);
  const strides = stridesOf(shape);
  const start = strides.reduce((total, step, axis) => total + step * widths[axis][0], 0);
  walk(a.shape, strides, start, (place, offset) => { out.data[offset] = a.data[place]; });
  return out;
};

// Keeps what is on one side of a diagonal.
function triangle(isKept) {
  return ([a], { k = 0 }) => {
    const [rows, columns] = a.shape.slice(-2);
    const out = emptyArray(a.dtype, a.shape);
    for (let i = 0; i < a.size; i++) {
      if (isKept((i % columns) - (Math.floor(i / columns) % rows), k)) out.data[i] = a.data[i];
    }
    return out;
  };
}

KERNELS.tril = triangle((off, k) => off <= k);
KERNELS.triu = triangle((off, k) => off >= k);
KERNELS._causal_mask = ([a]) => {
  const [rows, columns] = a.shape.slice(-2);
  const out = emptyArray('bool', [rows, columns]);
  for (let i = 0; i < out.size; i++) out.data[i] = i % columns <= Math.floor(i / columns);
  return out;
};
