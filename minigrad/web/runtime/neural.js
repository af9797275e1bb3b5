// Kernels of layers: norms, attention, and gated sums.

function rows(x) {
  const width = x.shape[x.shape.length - 1];
  return [width ? x.size / width : 0, width];
}

KERNELS.layer_norm = ([x, weight, bias], { eps }, [dtype]) => {
  const [count, width] = rows(x);
  const out = emptyArray(dtype, x.shape);
  for (let row = 0; row < count; row++) {
    const start = row * width;
    let [total, squares] = [0, 0];
    for (let i = 0; i < width; i++) total += x.data[start + i];
    const mean = total / width;
    for (let i = 0; i < width; i++) squares += (x.data[start + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(squares / width + eps);
    for (let i = 0; i < width; i++) {
      const normal = (x.data[start + i] - mean) * scale * (weight ? weight.data[i] : 1);
      out.data[start + i] = normal + (bias ? bias.data[i] : 0);
    }
  }
  return out;
};

KERNELS.rms_norm = ([x, weight], { eps }, [dtype]) => {
  const [count, width] = rows(x);
  const out = emptyArray(dtype, x.shape);
  for (let row = 0; row < count; row++) {
    const start = row * width;
    let squares = 0;
    for (let i = 0; i < width; i++) squares += x.data[start + i] ** 2;
    const scale = 1 / Math.sqrt(squares / width + eps);
    for (let i = 0; i < width; i++) out.data[start + i] = x.data[start + i] * scale * (weight ? weight.data[i] : 1);
  }
  return out;
};

KERNELS.swiglu = ([x], attributes, [dtype]) => {
  const [count, width] = rows(x);
  const half = width / 2;
  const out = emptyArray(dtype, [...x.shape.slice(0, -1), half]);
  for (let row = 0; row < count; row++) {
    for (let i = 0; i < half; i++) {
      const gate = x.data[row * width + i];
      out.data[row * half + i] = gate * sigmoid(gate) * x.data[row * width + half + i];
    }
  }
  return out;
};

// For each stack of matrices of `lead`, which of an array's it sees: fewer heads serve several neighbours each.
function stacksOf(shape, lead) {
  const own = shape.slice(0, -2);
  return Int32Array.from({ length: sizeOf(lead) }, (_, stack) => {
    let [place, step, rest] = [0, 1, stack];
    for (let axis = lead.length - 1, mine = own.length - 1; axis >= 0; axis--, mine--) {
      const count = mine < 0 ? 1 : own[mine];
      place += step * Math.floor(((rest % lead[axis]) * count) / lead[axis]);
      step *= count;
      rest = Math.floor(rest / lead[axis]);
    }
    return place;
  });
}

function sharedLead(shapes) {
  const leads = shapes.map((shape) => shape.slice(0, -2));
  const most = Math.max(...leads.map((lead) => lead.length));
  return Array.from({ length: most }, (_, axis) =>
    Math.max(...leads.map((lead) => lead[axis - most + lead.length] ?? 1)),
  );
}

// What attention sees, (…, L, E), (…, S, E), (…, S, V) -> (…, L, V); keys may have fewer heads, each for several neighbours.
// `watch(weights)`, if given, gets the weights (…, L, S).
function attention([query, key, value, mask], { causal, scale, softcap }, dtype, watch) {
  const [length, width] = query.shape.slice(-2);
  const [size, wide] = [key.shape[key.shape.length - 2], value.shape[value.shape.length - 1]];
  const lead = sharedLead([query.shape, key.shape, value.shape]);
  const stacks = sizeOf(lead);
  const [ofQueries, ofKeys, ofValues] = [query, key, value].map((x) => stacksOf(x.shape, lead));
  const out = emptyArray(dtype, [...lead, length, wide]);
  const allowed = mask ? reader(mask, [...lead, length, size]) : null;
  const isAdded = mask && mask.dtype !== 'bool';
  const weights = new Float64Array(size);
  const seen = watch ? emptyArray('float32', [...lead, length, size]) : null;
  for (let stack = 0; stack < stacks; stack++) {
    const keys = ofKeys[stack] * size * width;
    const values = ofValues[stack] * size * wide;
    for (let i = 0; i < length; i++) {
      const from = (ofQueries[stack] * length + i) * width;
      for (let j = 0; j < size; j++) {
        let score = 0;
        for (let e = 0; e < width; e++) score += query.data[from + e] * key.data[keys + j * width + e];
        score *= scale;
        if (softcap !== null) score = softcap * Math.tanh(score / softcap);
        if (allowed) {
          const place = (stack * length + i) * size + j;
          const said = allowed.data[allowed.at ? allowed.at[place] : place];
          score = isAdded ? score + said : said ? score : -Infinity;
        }
        weights[j] = causal && j > i ? -Infinity : score;
      }
      softmaxLine(weights, 0, 1, size);
      const to = (stack * length + i) * wide;
      for (let e = 0; e < wide; e++) {
        let total = 0;
        for (let j = 0; j < size; j++) if (weights[j]) total += weights[j] * value.data[values + j * wide + e];
        out.data[to + e] = total;
      }
      if (seen) seen.data.set(weights, (stack * length + i) * size);
    }
  }
  if (watch) watch(seen);
  return out;
}

KERNELS.attention = (inputs, attributes, [dtype], watch) => attention(inputs, attributes, dtype, watch);

// The same for queries, keys and values side by side: (B, L, 3·C) -> (B, L, C).
KERNELS.packed_attention = ([packed, mask], attributes, [dtype], watch) => {
  const { heads } = attributes;
  const [batch, length, wide] = packed.shape;
  const width = wide / (3 * heads);
  const apart = packed.reshaped([batch, length, 3, heads, width]);
  const [query, key, value] = KERNELS._unstack([KERNELS.transpose([apart], { axes: [2, 0, 3, 1, 4] })], { axis: 0 });
  const seen = attention([query, key, value, mask], attributes, dtype, watch);
  return KERNELS.transpose([seen], { axes: [0, 2, 1, 3] }).reshaped([batch, length, heads * width]);
};

KERNELS.gated_scan = ([x, gate, state], attributes, [dtype]) => {
  const [batch, length, width] = x.shape;
  const out = emptyArray(dtype, x.shape);
  for (let row = 0; row < batch; row++) {
    for (let i = 0; i < width; i++) {
      let kept = state.data[row * width + i];
      for (let t = 0; t < length; t++) {
        const at = (row * length + t) * width + i;
        out.data[at] = kept = gate.data[at] * kept + (1 - gate.data[at]) * x.data[at];
      }
    }
  }
  return out;
};
