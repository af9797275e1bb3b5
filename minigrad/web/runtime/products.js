// Kernels of products: linear layers, stacks of matrices, sums over named axes, and windows of images.

// Rows of x times rows of a weight, four rows of x at a time so that each weight is read once for them: (n, k), (m, k) -> (n, m).
function rowProducts(x, weight, bias, out, count, width, outputs) {
  let row = 0;
  for (; row + 4 <= count; row += 4) {
    const [first, second, third, fourth] = [row * width, (row + 1) * width, (row + 2) * width, (row + 3) * width];
    for (let o = 0; o < outputs; o++) {
      const start = o * width;
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let k = 0; k < width; k++) {
        const w = weight[start + k];
        a += x[first + k] * w;
        b += x[second + k] * w;
        c += x[third + k] * w;
        d += x[fourth + k] * w;
      }
      const added = bias ? bias[o] : 0;
      const to = row * outputs + o;
      out[to] = a + added;
      out[to + outputs] = b + added;
      out[to + 2 * outputs] = c + added;
      out[to + 3 * outputs] = d + added;
    }
  }
  for (; row < count; row++) {
    const first = row * width;
    for (let o = 0; o < outputs; o++) {
      const start = o * width;
      let [a, b] = [0, 0];
      let k = 0;
      for (; k + 1 < width; k += 2) {
        a += x[first + k] * weight[start + k];
        b += x[first + k + 1] * weight[start + k + 1];
      }
      if (k < width) a += x[first + k] * weight[start + k];
      out[row * outputs + o] = a + b + (bias ? bias[o] : 0);
    }
  }
}

KERNELS.linear = ([x, weight, bias], attributes, [dtype]) => {
  const width = x.shape[x.shape.length - 1];
  const lead = x.shape.slice(0, -1);
  const outputs = weight.shape.length > 1 ? weight.shape[0] : 1;
  const out = emptyArray(dtype, weight.shape.length > 1 ? [...lead, outputs] : lead);
  rowProducts(x.data, weight.data, bias ? bias.data : null, out.data, sizeOf(lead), width, outputs);
  return out;
};

KERNELS.linear_gelu = ([x, weight, bias], attributes, dtypes) => (
  KERNELS.gelu([KERNELS.linear([x, weight, bias], {}, dtypes)], attributes, dtypes)
);

// (…, n, k) @ (…, k, m) -> (…, n, m); an axis that is missing is 1 for the time being.
KERNELS.matmul = ([a, b], attributes, [dtype]) => {
  const [left, right] = [a.shape.length === 1, b.shape.length === 1];
  const [p, q] = [left ? a.reshaped([1, a.size]) : a, right ? b.reshaped([b.size, 1]) : b];
  const [n, k] = p.shape.slice(-2);
  const m = q.shape[q.shape.length - 1];
  if (q.shape[q.shape.length - 2] !== k) throw new Error(`matmul: ${a.shape} and ${b.shape} do not fit`);
  const lead = broadcastShape([p.shape.slice(0, -2), q.shape.slice(0, -2)]);
  const out = emptyArray(dtype, [...lead, n, m]);
  const [starts, others] = [p, q].map((x) => {
    const places = new Float64Array(sizeOf(lead));
    const size = x.shape.slice(-2)[0] * x.shape.slice(-1)[0];
    walk(lead, broadcastStrides(x.shape.slice(0, -2), lead), 0, (place, offset) => { places[place] = offset * size; });
    return places;
  });
  const row = new Float64Array(m); // sums are kept in double precision, and rounded once
  for (let s = 0; s < starts.length; s++) {
    for (let i = 0; i < n; i++) {
      row.fill(0);
      for (let j = 0; j < k; j++) {
        const x = p.data[starts[s] + i * k + j];
        const from = others[s] + j * m;
        for (let o = 0; o < m; o++) row[o] += x * q.data[from + o];
      }
      out.data.set(row, (s * n + i) * m);
    }
  }
  return out.reshaped([...lead, ...(left ? [] : [n]), ...(right ? [] : [m])]);
};

// Sums of products over named axes. Two operands become one stack of products of matrices; more are taken in turn.
KERNELS._einsum = (operands, { subscripts }, [dtype]) => {
  const [inputs, output] = subscripts.replaceAll(' ', '').split('->');
  let names = inputs.split(',');
  let arrays = [...operands];
  while (arrays.length > 1) {
    const others = names.slice(2).join('') + output;
    const kept = [...new Set(names[0] + names[1])].filter((name) => others.includes(name)).join('');
    arrays = [contracted(arrays[0], arrays[1], names[0], names[1], kept, dtype), ...arrays.slice(2)];
    names = [kept, ...names.slice(2)];
  }
  return summedTo(arrays[0], names[0], output, dtype);
};

// One operand with its axes in the order of `output`: repeated names are a diagonal, missing ones are summed.
function summedTo(a, names, output, dtype) {
  const strides = stridesOf(a.shape);
  const [sizes, steps] = [{}, {}];
  [...names].forEach((name, axis) => {
    sizes[name] = a.shape[axis];
    steps[name] = (steps[name] || 0) + strides[axis];
  });
  const lost = Object.keys(sizes).filter((name) => !output.includes(name));
  const order = [...output, ...lost];
  const plain = gathered(a, order.map((name) => sizes[name]), order.map((name) => steps[name]));
  if (!lost.length) return plain;
  return KERNELS.sum([plain], { axis: lost.map((_, i) => output.length + i) }, [dtype]);
}

function contracted(a, b, left, right, kept, dtype) {
  const both = [...new Set(left)].filter((name) => right.includes(name));
  const [stacked, shared] = [both.filter((name) => kept.includes(name)), both.filter((name) => !kept.includes(name))];
  const rows = [...new Set(left)].filter((name) => !both.includes(name) && kept.includes(name));
  const columns = [...new Set(right)].filter((name) => !both.includes(name) && kept.includes(name));
  const sizes = {};
  [[a, left], [b, right]].forEach(([x, names]) => [...names].forEach((name, axis) => { sizes[name] = x.shape[axis]; }));
  const count = (names) => sizeOf(names.map((name) => sizes[name]));
  const p = summedTo(a, left, [...stacked, ...rows, ...shared].join(''), dtype);
  const q = summedTo(b, right, [...stacked, ...shared, ...columns].join(''), dtype);
  const product = KERNELS.matmul([
    p.reshaped([count(stacked), count(rows), count(shared)]), q.reshaped([count(stacked), count(shared), count(columns)]),
  ], {}, [dtype]);
  const order = [...stacked, ...rows, ...columns];
  return summedTo(product.reshaped(order.map((name) => sizes[name])), order.join(''), kept, dtype);
}

// The windows of images, one after the other: (N, C, …sizes) -> (N, …kernel, C, …places).
KERNELS._unfold = ([a], { kernel, stride, dilation }) => {
  const count = kernel.length;
  const split = a.shape.length - count;
  const by = (steps, i) => (Array.isArray(steps) ? steps[i] : steps);
  const places = kernel.map((size, i) => (
    Math.floor((a.shape[split + i] - by(dilation, i) * (size - 1) - 1) / by(stride, i)) + 1
  ));
  const strides = stridesOf(a.shape);
  const inner = strides.slice(split);
  return gathered(
    a,
    [a.shape[0], ...kernel, ...a.shape.slice(1, split), ...places],
    [strides[0], ...inner.map((step, i) => step * by(dilation, i)), ...strides.slice(1, split), ...inner.map((step, i) => step * by(stride, i))],
  );
};

// The greatest of each window, and which one it was: (N, windows, …) -> (N, …) twice.
KERNELS._largest = ([a], { inside = null }, dtypes) => {
  const [rows, count, ...rest] = a.shape;
  const width = sizeOf(rest);
  const outs = dtypes.map((dtype) => emptyArray(dtype, [rows, ...rest]));
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i++) {
      let [best, winner] = [a.data[row * count * width + i], 0];
      let isInside = !inside || insideAt(inside, 0, i, width);
      for (let k = 1; k < count; k++) {
        const rival = a.data[(row * count + k) * width + i];
        const may = !inside || insideAt(inside, k, i, width);
        if (may && (!isInside || rival > best || Number.isNaN(rival))) [best, winner] = [rival, k];
        isInside = isInside || may;
      }
      outs[0].data[row * width + i] = best;
      outs[1].data[row * width + i] = winner;
    }
  }
  return outs;
};

// Whether the k-th element of a window is in the image; `inside` (windows, …places) is the same for all channels.
function insideAt(inside, k, i, width) {
  const places = inside.size / inside.shape[0];
  return Boolean(inside.data[k * places + (i % Math.min(places, width))]);
}
