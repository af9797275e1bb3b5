// The numbers of attention: a head is decoded when it is chosen, and all its stages are computed from queries, keys and values.
const MEAN = -1; // as the number of a head: all of them together

function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function inflated(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

// One matrix of a head as numbers, row after row.
async function unpacked(text, rows, width, isWeights) {
  if (DATA.exact) return new Float32Array(bytesOf(text).buffer);
  const buffer = await inflated(text);
  const scales = new Float32Array(buffer, 0, rows);
  const whole = isWeights ? new Uint8Array(buffer, 4 * rows) : new Int16Array(buffer, 4 * rows);
  const numbers = new Float32Array(rows * width);
  for (let i = 0, place = 0; i < rows; i++)
    for (let end = place + width, scale = scales[i]; place < end; place++) numbers[place] = whole[place] * scale;
  return numbers;
}

// Whether query i of a head may look at key j.
function allower(layer, head) {
  const causal = layer.kind === 'causal';
  if (!layer.mask) return (i, j) => !causal || j <= i;
  const [heads, rows, columns] = layer.mask.shape;
  const bits = bytesOf(layer.mask.bits);
  return (i, j) => {
    const place = ((heads > 1 ? head : 0) * rows + (rows > 1 ? i : 0)) * columns + (columns > 1 ? j : 0);
    return (!causal || j <= i) && ((bits[place >> 3] >> (place & 7)) & 1) === 1;
  };
}

function product(a, i, b, j, width) {
  let sum = 0;
  for (let e = 0, x = i * width, y = j * width; e < width; e++) sum += a[x + e] * b[y + e];
  return sum;
}

// One row of weights · V.
function outputRow({ S, V, v, stages }, i) {
  const row = new Float64Array(V);
  for (let j = 0; j < S; j++) {
    const weight = stages.softmax[i * S + j];
    if (weight) for (let c = 0, place = j * V; c < V; c++) row[c] += weight * v[place + c];
  }
  return row;
}

// Scores to weights in one row: e to the score, without overflow, divided by the sum; zeros where nothing is allowed.
function softmax(masked, weights, start, count) {
  let most = -Infinity, sum = 0;
  for (let j = start; j < start + count; j++) if (!(masked[j] <= most)) most = masked[j];
  if (most === -Infinity) return { most, sum };
  for (let j = start; j < start + count; j++) sum += weights[j] = Math.exp(masked[j] - most);
  for (let j = start; j < start + count; j++) weights[j] /= sum;
  return { most, sum };
}

async function decoded(layerNumber, head) {
  const layer = DATA.layers[layerNumber], parts = layer.heads[head];
  const L = layer.rows.length, S = layer.columns.length;
  const may = allower(layer, head), made = { layer, head, L, S, may, stages: {}, sums: [] };
  if (parts.weights !== undefined) {
    made.stages.softmax = await unpacked(parts.weights, L, S, true);
    return made;
  }
  const E = layer.widths.q, V = layer.widths.v;
  const [q, k, v] = await Promise.all([unpacked(parts.q, L, E), unpacked(parts.k, S, E), unpacked(parts.v, S, V)]);
  const [scores, scaled, masked, weights] = [0, 0, 0, 0].map(() => new Float64Array(L * S));
  for (let i = 0; i < L; i++) {
    for (let j = 0; j < S; j++) {
      const place = i * S + j;
      scores[place] = product(q, i, k, j, E);
      scaled[place] = scores[place] * layer.scale;
      masked[place] = may(i, j) ? scaled[place] : -Infinity;
    }
    made.sums.push(softmax(masked, weights, i * S, S));
  }
  Object.assign(made, { q, k, v, E, V, stages: { scores, scaled, masked, softmax: weights, output: null } });
  return made;
}

// The weights of all heads of a layer, averaged.
async function averaged(layerNumber) {
  const layer = DATA.layers[layerNumber], count = layer.heads.length;
  const all = await Promise.all(layer.heads.map((_, head) => decoded(layerNumber, head)));
  const softmax = new Float64Array(all[0].stages.softmax.length);
  for (const { stages } of all) stages.softmax.forEach((weight, place) => { softmax[place] += weight / count; });
  const may = (i, j) => all.some((head) => head.may(i, j));
  return { layer, head: MEAN, L: all[0].L, S: all[0].S, may, stages: { softmax }, sums: [] };
}

// The numbers of the stage that is chosen; the output is computed when it is first asked for.
function numbersOf(head, stage) {
  if (stage === 'output' && !head.stages.output) {
    head.stages.output = new Float64Array(head.L * head.V);
    for (let i = 0; i < head.L; i++) head.stages.output.set(outputRow(head, i), i * head.V);
  }
  return head.stages[stage];
}
