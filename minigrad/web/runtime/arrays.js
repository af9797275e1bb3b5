// Arrays as NumPy has them, always contiguous: a dtype, a shape, and the numbers. Kernels are functions of such arrays.

const STORES = {
  float32: Float32Array, float64: Float64Array, int64: Float64Array, int32: Int32Array, int16: Int16Array,
  int8: Int8Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, bool: Uint8Array,
};
const KERNELS = {}; // by the name of the op: (inputs, attributes, dtypes of the outputs) -> an array, or several

function sizeOf(shape) {
  let size = 1;
  for (const n of shape) size *= n;
  return size;
}

class NDArray {
  constructor(dtype, shape, data) {
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  get size() { return this.data.length; }

  // The same numbers in another shape.
  reshaped(shape) { return new NDArray(this.dtype, shape, this.data); }
}

function storeOf(dtype) {
  const store = STORES[dtype];
  if (!store) throw new Error(`this page cannot compute with ${dtype}`);
  return store;
}

function emptyArray(dtype, shape) {
  return new NDArray(dtype, shape, new (storeOf(dtype))(sizeOf(shape)));
}

// An array of nested lists, or of one number.
function arrayOf(dtype, values) {
  const shape = [];
  for (let part = values; Array.isArray(part); part = part[0]) shape.push(part.length);
  return new NDArray(dtype, shape, storeOf(dtype).from(shape.length > 1 ? values.flat(Infinity) : [values].flat()));
}

// How far apart neighbours along each axis lie.
function stridesOf(shape) {
  const strides = new Array(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

function axisOf(axis, count) {
  return axis < 0 ? axis + count : axis;
}

// The shape of arrays of these shapes together.
function broadcastShape(shapes) {
  const count = Math.max(0, ...shapes.map((shape) => shape.length));
  const found = new Array(count).fill(1);
  for (const shape of shapes) {
    for (let i = 0; i < shape.length; i++) {
      const n = shape[shape.length - 1 - i];
      const place = count - 1 - i;
      if (n !== 1 && found[place] !== 1 && found[place] !== n) throw new Error(`shapes ${shapes.join(' and ')} do not fit`);
      if (n !== 1) found[place] = n;
    }
  }
  return found;
}

// The strides with which an array is read as one of a larger shape: 0 along axes that are repeated.
function broadcastStrides(shape, target) {
  const own = stridesOf(shape);
  const missing = target.length - shape.length;
  return target.map((n, axis) => (axis < missing || shape[axis - missing] === 1 ? 0 : own[axis - missing]));
}

// Calls `visit(place in the output, offset in the source)` for a source that is read with these strides.
function walk(shape, strides, start, visit) {
  const size = sizeOf(shape);
  if (!size) return;
  const last = shape.length - 1;
  if (last < 0) {
    visit(0, start);
    return;
  }
  const [width, step] = [shape[last], strides[last]];
  const index = new Array(last).fill(0);
  let offset = start;
  for (let place = 0; place < size; place += width) {
    for (let i = 0, at = offset; i < width; i++, at += step) visit(place + i, at);
    for (let axis = last - 1; axis >= 0; axis--) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// The elements that a source has at these strides, as an array of its own.
function gathered(source, shape, strides, start = 0) {
  if (!start && sizeOf(shape) === source.size && stridesOf(shape).every((step, i) => step === strides[i] || shape[i] === 1)) {
    return source.reshaped(shape);
  }
  const out = emptyArray(source.dtype, shape);
  const [from, to] = [source.data, out.data];
  walk(shape, strides, start, (place, offset) => { to[place] = from[offset]; });
  return out;
}

function asArray(x, dtype) {
  if (x instanceof NDArray) return x;
  return new NDArray(dtype, [], storeOf(dtype).of(Number(x)));
}
