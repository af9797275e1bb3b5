// Kernels that make one number of many along some axes, and those that go along an axis.

// Calls `visit(output place, offset of the first, step, count)` for each line or block that becomes one number.
function reduced(a, { axis, keepdims = false }, dtype, total) {
  const count = a.shape.length;
  const isAll = axis === null || axis === undefined;
  const gone = new Set((isAll ? [...a.shape.keys()] : [axis].flat()).map((x) => axisOf(x, count)));
  const strides = stridesOf(a.shape);
  const kept = [...a.shape.keys()].filter((x) => !gone.has(x));
  const lost = [...gone].sort((x, y) => x - y);
  const inner = lost.map((x) => a.shape[x]);
  const offsets = new Uint32Array(sizeOf(inner));
  walk(inner, lost.map((x) => strides[x]), 0, (place, offset) => { offsets[place] = offset; });
  const out = emptyArray(dtype, keepdims ? a.shape.map((n, x) => (gone.has(x) ? 1 : n)) : kept.map((x) => a.shape[x]));
  walk(kept.map((x) => a.shape[x]), kept.map((x) => strides[x]), 0, (place, offset) => {
    out.data[place] = total(a.data, offsets, offset);
  });
  return out;
}

function folding(start, join) {
  return (data, offsets, first) => {
    let total = start;
    for (let i = 0; i < offsets.length; i++) total = join(total, data[first + offsets[i]]);
    return total;
  };
}

function extreme(isBetter, asPlace) {
  return (data, offsets, first) => {
    let best = 0;
    for (let i = 1; i < offsets.length; i++) {
      const [x, y] = [data[first + offsets[i]], data[first + offsets[best]]];
      if (isBetter(x, y) || (Number.isNaN(x) && !Number.isNaN(y))) best = i;
    }
    return asPlace ? best : data[first + offsets[best]];
  };
}

const sumOf = folding(0, (x, y) => x + y);
const REDUCTIONS = {
  sum: sumOf,
  prod: folding(1, (x, y) => x * y),
  mean: (data, offsets, first) => sumOf(data, offsets, first) / offsets.length,
  any: folding(false, (x, y) => x || Boolean(y)),
  all: folding(true, (x, y) => x && Boolean(y)),
  max: extreme((x, y) => x > y, false),
  min: extreme((x, y) => x < y, false),
  argmax: extreme((x, y) => x > y, true),
  argmin: extreme((x, y) => x < y, true),
  logsumexp: (data, offsets, first) => {
    let top = -Infinity;
    for (let i = 0; i < offsets.length; i++) top = greater(top, data[first + offsets[i]]);
    top = Number.isFinite(top) ? top : 0;
    let total = 0;
    for (let i = 0; i < offsets.length; i++) total += Math.exp(data[first + offsets[i]] - top);
    return Math.log(total) + top;
  },
};
for (const [name, total] of Object.entries(REDUCTIONS)) {
  KERNELS[name] = ([a], attributes, [dtype]) => reduced(a, attributes, dtype, total);
}

// Each line of an array along an axis, as `change(data, first, step, count)` leaves it.
function alongLines(a, axis, dtype, change) {
  const place = axisOf(axis, a.shape.length);
  const out = new NDArray(dtype, a.shape, storeOf(dtype).from(a.data));
  const strides = stridesOf(a.shape);
  walk(a.shape.filter((_, x) => x !== place), strides.filter((_, x) => x !== place), 0, (_, first) => {
    change(out.data, first, strides[place], a.shape[place]);
  });
  return out;
}

function softmaxLine(data, first, step, count) {
  let top = -Infinity;
  for (let i = 0, at = first; i < count; i++, at += step) top = greater(top, data[at]);
  top = top === -Infinity ? 0 : top;
  let total = 0;
  for (let i = 0, at = first; i < count; i++, at += step) total += data[at] = Math.exp(data[at] - top);
  total = total === 0 ? 1 : total;
  for (let i = 0, at = first; i < count; i++, at += step) data[at] /= total;
}

KERNELS.softmax = ([a], { axis = -1 }, [dtype]) => alongLines(a, axis, dtype, softmaxLine);
KERNELS._masked_softmax = ([a, allowed], { axis = -1 }, [dtype]) => {
  const seen = mapped((x, may) => (may ? x : -Infinity), [a, allowed], {}, 'float64');
  return alongLines(seen, axis, dtype, softmaxLine);
};
KERNELS.log_softmax = ([a], { axis = -1 }, [dtype]) => alongLines(a, axis, dtype, (data, first, step, count) => {
  let top = -Infinity;
  for (let i = 0, at = first; i < count; i++, at += step) top = greater(top, data[at]);
  let total = 0;
  for (let i = 0, at = first; i < count; i++, at += step) total += Math.exp(data[at] - top);
  const log = Math.log(total);
  for (let i = 0, at = first; i < count; i++, at += step) data[at] = data[at] - top - log;
});

function running(join) {
  return ([a], { axis }, [dtype]) => alongLines(a, axis, dtype, (data, first, step, count) => {
    let total = data[first];
    for (let i = 1, at = first + step; i < count; i++, at += step) data[at] = total = join(total, data[at]);
  });
}

KERNELS._cumsum = running((x, y) => x + y);
KERNELS._cumprod = running((x, y) => x * y);

KERNELS.argsort = ([a], { axis = -1, descending = false }, [dtype]) => {
  if (axis === null) return KERNELS.argsort([a.reshaped([a.size])], { axis: 0, descending }, [dtype]);
  return alongLines(a, axis, dtype, (data, first, step, count) => {
    const values = Array.from({ length: count }, (_, i) => a.data[first + i * step]);
    const order = [...values.keys()].sort((i, j) => compared(values[i], values[j], descending) || i - j);
    for (let i = 0; i < count; i++) data[first + i * step] = order[i];
  });
};

// NaN comes last, or first where the order is descending, as in NumPy.
function compared(x, y, descending) {
  const order = Number.isNaN(x) || Number.isNaN(y) ? Number(Number.isNaN(x)) - Number(Number.isNaN(y)) : Number(x > y) - Number(x < y);
  return descending ? -order : order;
}
