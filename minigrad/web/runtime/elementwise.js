// Kernels that compute every element by itself; inputs broadcast against each other.

function mapped(f, inputs, attributes, dtype) {
  const arrays = inputs.filter((x) => x instanceof NDArray);
  const shape = arrays.length === 1 ? arrays[0].shape : broadcastShape(arrays.map((x) => x.shape));
  const out = emptyArray(dtype, shape);
  const to = out.data;
  const count = to.length;
  const reads = inputs.map((x) => reader(x, shape));
  const [a, b, c] = reads;
  if (reads.length === 1) {
    for (let i = 0; i < count; i++) to[i] = f(a.data[i], attributes);
  } else if (reads.length === 2) {
    for (let i = 0; i < count; i++) to[i] = f(a.data[a.at ? a.at[i] : i], b.data[b.at ? b.at[i] : i], attributes);
  } else {
    for (let i = 0; i < count; i++) {
      to[i] = f(a.data[a.at ? a.at[i] : i], b.data[b.at ? b.at[i] : i], c.data[c.at ? c.at[i] : i], attributes);
    }
  }
  return out;
}

// The numbers of an input, and where each of them stands, if not in order.
function reader(x, shape) {
  if (!(x instanceof NDArray)) return { data: [x], at: new Uint8Array(sizeOf(shape)) };
  const isWhole = x.shape.length === shape.length && x.shape.every((n, axis) => n === shape[axis]);
  if (isWhole) return { data: x.data, at: null };
  const at = new Uint32Array(sizeOf(shape));
  walk(shape, broadcastStrides(x.shape, shape), 0, (place, offset) => { at[place] = offset; });
  return { data: x.data, at };
}

function elementwise(functions) {
  for (const [name, f] of Object.entries(functions)) {
    KERNELS[name] = (inputs, attributes, dtypes) => mapped(f, inputs, attributes, dtypes[0]);
  }
}

// Halves go to the even neighbour, as in NumPy.
function rounded(x) {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

function sigmoid(x) {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
}

// The error function by its series near 0 and its continued fraction far away: right to the last digits of a float64.
function erf(x) {
  const size = Math.abs(x);
  if (!(size < 6)) return Number.isNaN(x) ? x : Math.sign(x);
  if (size < 2.5) {
    let [term, total] = [size, size];
    for (let n = 1; Math.abs(term) > 1e-17 * total; n++) {
      term *= -size * size / n;
      total += term / (2 * n + 1);
    }
    return Math.sign(x) * total * 2 / Math.sqrt(Math.PI);
  }
  let tail = 0;
  for (let n = 60; n > 0; n--) tail = n / 2 / (size + tail);
  return Math.sign(x) * (1 - Math.exp(-size * size) / (size + tail) / Math.sqrt(Math.PI));
}

function normalCdf(x) {
  return 0.5 * (1 + erf(x * Math.SQRT1_2));
}

function geluTanh(x) {
  return x * sigmoid(x * (x * x * 0.07135481627260025 + 1.5957691216057308));
}

function remainder(a, b) {
  const found = a - Math.floor(a / b) * b;
  return found === b ? 0 : found;
}

// Where either is NaN, so is the greater one.
function greater(a, b) {
  return a > b || Number.isNaN(a) ? a : b;
}

function smaller(a, b) {
  return a < b || Number.isNaN(a) ? a : b;
}

function softplus(x) {
  return greater(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

elementwise({
  abs: Math.abs, negative: (a) => -a, positive: (a) => a, clone: (a) => a, sign: Math.sign, square: (a) => a * a,
  reciprocal: (a) => 1 / a, sqrt: Math.sqrt, _safe_sqrt: Math.sqrt, rsqrt: (a) => 1 / Math.sqrt(a), cbrt: Math.cbrt,
  exp: Math.exp, exp2: (a) => 2 ** a, expm1: Math.expm1, log: Math.log, log2: Math.log2, log10: Math.log10, log1p: Math.log1p,
  sin: Math.sin, cos: Math.cos, tan: Math.tan, arcsin: Math.asin, arccos: Math.acos, arctan: Math.atan, sinh: Math.sinh,
  cosh: Math.cosh, tanh: Math.tanh, arcsinh: Math.asinh, arccosh: Math.acosh, arctanh: Math.atanh,
  deg2rad: (a) => a * Math.PI / 180, rad2deg: (a) => a * 180 / Math.PI, floor: Math.floor, ceil: Math.ceil, trunc: Math.trunc,
  round: (a, { decimals = 0 }) => (decimals ? rounded(a * 10 ** decimals) / 10 ** decimals : rounded(a)),
  isnan: (a) => Number.isNaN(a), isfinite: (a) => Number.isFinite(a), isinf: (a) => a === Infinity || a === -Infinity,
  signbit: (a) => a < 0 || Object.is(a, -0), erf, erfc: (a) => (a > 2.5 ? erfcFar(a) : 1 - erf(a)), _normal_cdf: normalCdf,
  sigmoid, silu: (a) => a * sigmoid(a), relu: (a) => greater(a, 0), _gelu_tanh: geluTanh, _softplus: softplus,
  gelu: (a, { approximate = 'none' }) => (approximate === 'tanh' ? geluTanh(a) : a * normalCdf(a)),
  _logit: (a) => Math.log(a) - Math.log1p(-a), logical_not: (a) => !a,
  elu: (a, { alpha = 1 }) => (a > 0 ? a : alpha * Math.expm1(a)),
  leaky_relu: (a, { negative_slope: slope = 0.01 }) => (a > 0 ? a : slope * a),
  hardtanh: (a, { min_val: low = -1, max_val: high = 1 }) => smaller(greater(a, low), high),
});

function erfcFar(x) {
  let tail = 0;
  for (let n = 60; n > 0; n--) tail = n / 2 / (x + tail);
  return Math.exp(-x * x) / (x + tail) / Math.sqrt(Math.PI);
}

elementwise({
  add: (a, b) => a + b, subtract: (a, b) => a - b, multiply: (a, b) => a * b, divide: (a, b) => a / b,
  power: (a, b) => (b === 3 ? a * a * a : a ** b), remainder, floor_divide: (a, b) => Math.floor(a / b), fmod: (a, b) => a % b,
  maximum: greater, minimum: smaller, fmax: (a, b) => (Number.isNaN(a) ? b : a < b ? b : a),
  fmin: (a, b) => (Number.isNaN(a) ? b : a > b ? b : a), arctan2: Math.atan2, hypot: (a, b) => Math.hypot(a, b),
  copysign: (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)),
  heaviside: (a, b) => (a > 0 ? 1 : a === 0 ? b : a < 0 ? 0 : a),
  equal: (a, b) => a === b, not_equal: (a, b) => a !== b, less: (a, b) => a < b, less_equal: (a, b) => a <= b,
  greater: (a, b) => a > b, greater_equal: (a, b) => a >= b, logical_and: (a, b) => Boolean(a) && Boolean(b),
  logical_or: (a, b) => Boolean(a) || Boolean(b), logical_xor: (a, b) => Boolean(a) !== Boolean(b),
  logaddexp: (a, b) => (a === b ? a + Math.LN2 : greater(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)))),
  where: (condition, a, b) => (condition ? a : b),
  lerp: (a, b, weight) => (weight < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight)),
  clip: (a, low, high) => {
    const above = low === null ? a : greater(a, low);
    return high === null ? above : smaller(above, high);
  },
  _logistic_loss: (a, target) => greater(a, 0) - a * target + Math.log1p(Math.exp(-Math.abs(a))),
});

function bitwise(onBits, onTruths) {
  return (inputs, attributes, [dtype]) => mapped(dtype === 'bool' ? onTruths : onBits, inputs, attributes, dtype);
}

KERNELS.bitwise_and = bitwise((a, b) => a & b, (a, b) => a && b);
KERNELS.bitwise_or = bitwise((a, b) => a | b, (a, b) => a || b);
KERNELS.bitwise_xor = bitwise((a, b) => a ^ b, (a, b) => a !== b);
KERNELS.bitwise_invert = bitwise((a) => ~a, (a) => !a);

KERNELS.astype = ([a], attributes, [dtype]) => {
  if (a.dtype === dtype) return a;
  const change = dtype === 'bool' ? Boolean : dtype.startsWith('float') ? Number : Math.trunc;
  return mapped(change, [a], attributes, dtype);
};
KERNELS._zeros = ([], { shape }, [dtype]) => emptyArray(dtype, shape);
