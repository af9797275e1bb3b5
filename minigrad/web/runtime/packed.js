// Weights in fewer bits than float32, in the formats of minigrad.maths.packing: rows of bytes, most of them in blocks of 32
// numbers with a scale, some also with an offset, or with fifth bits.

function halfFloat(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

const HALVES = new Map(); // scales return
function halfAt(data, place) {
  const bits = data[place] | (data[place + 1] << 8);
  if (!HALVES.has(bits)) HALVES.set(bits, halfFloat(bits));
  return HALVES.get(bits);
}

const WORD = new DataView(new ArrayBuffer(4));
function floatAt(data, place) {
  for (let i = 0; i < 4; i++) WORD.setUint8(i, data[place + i]);
  return WORD.getFloat32(0, true);
}

function signed(byte) { return (byte << 24) >> 24; }

// Blocks of `bytes` bytes with two numbers in a byte: those of the lower halves come first.
function nibbles(bytes, hasOffset, hasFifth) {
  const first = hasOffset ? 4 : 2;
  const pairs = first + (hasFifth ? 4 : 0);
  const middle = hasOffset ? 0 : hasFifth ? 16 : 8;
  const fifth = (data, start, i) => (hasFifth ? ((data[start + first + (i >> 3)] >> (i & 7)) & 1) << 4 : 0);
  return (data, start, columns, out, to) => {
    for (let block = 0; block * 32 < columns; block++) {
      const from = start + block * bytes;
      const scale = halfAt(data, from);
      const offset = hasOffset ? halfAt(data, from + 2) : 0;
      const most = Math.min(32, columns - 32 * block);
      for (let i = 0; i < most; i++) {
        const byte = data[from + pairs + (i & 15)];
        const whole = (i < 16 ? byte & 15 : byte >> 4) | fifth(data, from, i);
        out[to + 32 * block + i] = Math.fround(Math.fround((whole - middle) * scale) + offset);
      }
    }
  };
}

// By format: reads a row of bytes that begins at `start` into `out`, from the place `to` on.
const ROWS = {
  f16: (data, start, columns, out, to) => {
    for (let i = 0; i < columns; i++) out[to + i] = halfAt(data, start + 2 * i);
  },
  bf16: (data, start, columns, out, to) => {
    for (let i = 0; i < columns; i++) {
      WORD.setUint32(0, ((data[start + 2 * i] | (data[start + 2 * i + 1] << 8)) << 16) >>> 0, true);
      out[to + i] = WORD.getFloat32(0, true);
    }
  },
  i8: (data, start, columns, out, to) => {
    const scale = floatAt(data, start + columns);
    for (let i = 0; i < columns; i++) out[to + i] = signed(data[start + i]) * scale;
  },
  q8_0: (data, start, columns, out, to) => {
    for (let block = 0; block * 32 < columns; block++) {
      const from = start + block * 34;
      const scale = halfAt(data, from);
      const most = Math.min(32, columns - 32 * block);
      for (let i = 0; i < most; i++) out[to + 32 * block + i] = signed(data[from + 2 + i]) * scale;
    }
  },
  q4_0: nibbles(18, false, false), q4_1: nibbles(20, true, false), q5_0: nibbles(22, false, true), q5_1: nibbles(24, true, true),
};

// (n, bytes of a row) -> (n, columns)
KERNELS._dequantized = ([{ data, shape: [count, bytes] }], { format, columns }) => {
  const out = emptyArray('float32', [count, columns]);
  for (let row = 0; row < count; row++) ROWS[format](data, row * bytes, columns, out.data, row * columns);
  return out;
};

const UNPACKED = new WeakMap(); // weights as floats, made when they are first used
let room = 2 ** 25; // numbers that may be floats; what does not fit is unpacked a panel at a time, whenever it is used
const PANEL = 2 ** 16;

KERNELS.packed_linear = ([x, data, bias], { format }, dtypes) => {
  const columns = x.shape[x.shape.length - 1];
  const [outputs, bytes] = data.shape;
  if (!UNPACKED.has(data) && outputs * columns <= room) {
    room -= outputs * columns;
    UNPACKED.set(data, KERNELS._dequantized([data], { format, columns }));
  }
  if (UNPACKED.has(data)) return KERNELS.linear([x, UNPACKED.get(data), bias], {}, dtypes);
  const count = x.size / columns;
  const out = emptyArray(dtypes[0], [...x.shape.slice(0, -1), outputs]);
  const panel = Math.max(1, Math.floor(PANEL / columns));
  const [weight, made] = [new Float32Array(panel * columns), new Float32Array(panel * count)];
  for (let first = 0; first < outputs; first += panel) {
    const some = Math.min(panel, outputs - first);
    for (let row = 0; row < some; row++) ROWS[format](data.data, (first + row) * bytes, columns, weight, row * columns);
    rowProducts(x.data, weight, bias ? bias.data.subarray(first, first + some) : null, made, count, columns, some);
    for (let row = 0; row < count; row++) out.data.set(made.subarray(row * some, (row + 1) * some), row * outputs + first);
  }
  return out;
};
