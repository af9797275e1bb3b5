// Kernels that take elements by their numbers, as NumPy's indices do.

const WHOLE = { slice: [null, null, null] };

// A slice of an axis: where it starts, its step, and how many it takes.
function boundsOf([start, stop, step], size) {
  const by = step === null ? 1 : step;
  const [least, most] = by > 0 ? [0, size] : [-1, size - 1];
  const inside = (at, otherwise) => {
    if (at === null) return otherwise;
    return Math.min(Math.max(at < 0 ? at + size : at, least), most);
  };
  const from = inside(start, by > 0 ? 0 : size - 1);
  const to = inside(stop, by > 0 ? size : -1);
  return [from, by, Math.max(0, Math.ceil((to - from) / by))];
}

// The parts of an index, one for each axis: an ellipsis becomes whole axes.
function partsOf(index, count) {
  const parts = Array.isArray(index) ? [...index] : [index];
  const taken = parts.filter((part) => part !== null && !(part && part.ellipsis)).length;
  const place = parts.findIndex((part) => part && part.ellipsis);
  const whole = new Array(Math.max(count - taken, 0)).fill(WHOLE);
  if (place < 0) return [...parts, ...whole];
  return [...parts.slice(0, place), ...whole, ...parts.slice(place + 1)];
}

function wholeNumber(at, size) {
  if (at < -size || at >= size) throw new Error(`there is no number ${at} among ${size}`);
  return at < 0 ? at + size : at;
}

KERNELS.getitem = ([a], { index }) => {
  const parts = partsOf(index, a.shape.length);
  const strides = stridesOf(a.shape);
  const isList = (part) => part instanceof NDArray || Array.isArray(part);
  const hasLists = parts.some(isList);
  const [shape, steps, lists] = [[], [], []];
  let [start, axis] = [0, 0];
  for (const part of parts) {
    if (part === null) {
      shape.push(1);
      steps.push(0);
      continue;
    }
    const [size, stride] = [a.shape[axis], strides[axis]];
    axis += 1;
    if (isList(part) || (hasLists && typeof part === 'number')) {
      lists.push({ numbers: part instanceof NDArray ? part : arrayOf('int64', part), size, stride, place: shape.length });
    } else if (typeof part === 'number') {
      start += wholeNumber(part, size) * stride;
    } else {
      const [from, by, count] = boundsOf(part.slice, size);
      shape.push(count);
      steps.push(by * stride);
      if (count) start += from * stride;
    }
  }
  return lists.length ? taken(a, shape, steps, start, lists, parts) : gathered(a, shape, steps, start);
};

// With lists of numbers: their common shape stands where the first was, or in front where something stands between them.
function taken(a, shape, steps, start, lists, parts) {
  const kinds = parts.map((part) => part instanceof NDArray || Array.isArray(part) || typeof part === 'number');
  const isTogether = kinds.lastIndexOf(true) - kinds.indexOf(true) + 1 === kinds.filter(Boolean).length;
  const place = isTogether ? lists[0].place : 0;
  const common = broadcastShape(lists.map((list) => list.numbers.shape));
  const offsets = new Float64Array(sizeOf(common));
  for (const { numbers, size, stride } of lists) {
    walk(common, broadcastStrides(numbers.shape, common), 0, (at, offset) => {
      offsets[at] += wholeNumber(numbers.data[offset], size) * stride;
    });
  }
  const [before, after] = [shape.slice(0, place), shape.slice(place)];
  const out = emptyArray(a.dtype, [...before, ...common, ...after]);
  const width = sizeOf(after);
  const inner = new Float64Array(width);
  walk(after, steps.slice(place), 0, (at, offset) => { inner[at] = offset; });
  walk(before, steps.slice(0, place), start, (row, offset) => {
    for (let i = 0; i < offsets.length; i++) {
      const to = (row * offsets.length + i) * width;
      for (let j = 0; j < width; j++) out.data[to + j] = a.data[offset + offsets[i] + inner[j]];
    }
  });
  return out;
}

KERNELS.embedding = ([weight, index]) => KERNELS.getitem([weight], { index: [index] });

KERNELS._take_along = ([a], { indices, axis }) => {
  const numbers = indices instanceof NDArray ? indices : arrayOf('int64', indices);
  const place = axisOf(axis, a.shape.length);
  const shape = broadcastShape([numbers.shape, a.shape.map((n, i) => (i === place ? 1 : n))]);
  const strides = stridesOf(a.shape);
  const out = emptyArray(a.dtype, shape);
  const at = reader(numbers, shape);
  const others = strides.map((step, i) => (i === place || a.shape[i] === 1 ? 0 : step));
  walk(shape, others, 0, (to, offset) => {
    const number = wholeNumber(at.data[at.at ? at.at[to] : to], a.shape[place]);
    out.data[to] = a.data[offset + number * strides[place]];
  });
  return out;
};

KERNELS._one_hot = ([a], { count }, [dtype]) => {
  const out = emptyArray(dtype, [...a.shape, count]);
  a.data.forEach((number, i) => {
    if (number >= 0 && number < count) out.data[i * count + number] = 1;
  });
  return out;
};
