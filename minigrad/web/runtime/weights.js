// Reads the tensors of a page: base64 text to bytes, and bytes to arrays.

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Each entry says where its bytes start, which begin at multiples of eight.
function tensorsOf(entries, bytes) {
  const found = {};
  for (const [name, { dtype, shape, start }] of Object.entries(entries)) {
    const count = sizeOf(shape);
    const store = dtype === 'int64' ? BigInt64Array : storeOf(dtype);
    const numbers = new store(bytes.buffer, bytes.byteOffset + start, count);
    found[name] = new NDArray(dtype, shape, dtype === 'int64' ? Float64Array.from(numbers, Number) : numbers);
  }
  return found;
}
