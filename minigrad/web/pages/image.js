// A pad to draw on. What is drawn becomes a text of marks, and the text becomes the image that the model sees.

const { height: HEIGHT, width: WIDTH, channels: CHANNELS, margin: MARGIN } = SHOWN.image;
const GRID = 32; // marks of a drawing from the pad, across and down
const INK = { '.': 0, ' ': 0, '+': 0.5, '#': 1 };
const pad = document.getElementById('pad');
const pen = pad.getContext('2d', { willReadFrequently: true });
let last = null;

function paint(from, to) {
  pen.strokeStyle = getComputedStyle(document.body).color;
  [pen.lineWidth, pen.lineCap, pen.lineJoin] = [pad.width * SHOWN.image.stroke, 'round', 'round'];
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

function placeOf(event) {
  const box = pad.getBoundingClientRect();
  return [(event.clientX - box.left) * pad.width / box.width, (event.clientY - box.top) * pad.height / box.height];
}

// The drawing as marks: how much of each cell has ink.
function marks() {
  const { data } = pen.getImageData(0, 0, pad.width, pad.height);
  const cell = pad.width / GRID;
  return Array.from({ length: GRID }, (_, row) => Array.from({ length: GRID }, (__, column) => {
    let ink = 0;
    for (let y = row * cell; y < (row + 1) * cell; y++) {
      for (let x = column * cell; x < (column + 1) * cell; x++) ink += data[4 * (y * pad.width + x) + 3];
    }
    const share = ink / (255 * cell * cell);
    return share > 0.75 ? '#' : share > 0.25 ? '+' : '.';
  }).join('')).join('\n');
}

// The text as rows of ink, of the same length each; null if something else stands there, or no ink.
function inkOf(text) {
  const lines = text.split('\n').map((line) => line.trimEnd());
  const wide = Math.max(...lines.map((line) => line.length));
  const found = lines.map((line) => [...line.padEnd(wide)].map((mark) => INK[mark]));
  return found.flat().includes(undefined) || !found.flat().some(Boolean) ? null : found;
}

// Where there is a margin the ink is cut out and stretched alike both ways up to it; otherwise the whole paper is.
function fitted(ink) {
  const [rows, columns] = [ink.map((row) => row.some(Boolean)), ink[0].map((_, x) => ink.some((row) => row[x]))];
  const hasMargin = MARGIN !== null;
  const [top, bottom] = hasMargin ? [rows.indexOf(true), rows.lastIndexOf(true) + 1] : [0, ink.length];
  const [left, right] = hasMargin ? [columns.indexOf(true), columns.lastIndexOf(true) + 1] : [0, ink[0].length];
  const [tall, wide] = [bottom - top, right - left];
  const room = hasMargin ? 2 * MARGIN : 0;
  const scale = hasMargin ? [0, 0].fill((Math.min(HEIGHT, WIDTH) - room) / Math.max(tall, wide)) : [HEIGHT / tall, WIDTH / wide];
  const down = overlaps(HEIGHT, tall, scale[0]);
  const across = overlaps(WIDTH, wide, scale[1]);
  const image = [];
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) {
      let total = 0;
      for (let i = 0; i < tall; i++) {
        if (down[y][i]) for (let j = 0; j < wide; j++) total += down[y][i] * across[x][j] * ink[top + i][left + j];
      }
      image.push(total);
    }
  }
  return image;
}

// How much of each pixel is covered by each of `count` marks that are `scale` wide, around the middle.
function overlaps(pixels, count, scale) {
  const edge = (i) => pixels / 2 + scale * (i - count / 2);
  return Array.from({ length: pixels }, (_, pixel) => Array.from({ length: count }, (__, i) => (
    Math.max(0, Math.min(edge(i + 1), pixel + 1) - Math.max(edge(i), pixel))
  )));
}

// Paints the text onto the pad.
function painted() {
  pen.clearRect(0, 0, pad.width, pad.height);
  const ink = inkOf(input.value);
  if (!ink) return;
  const cell = pad.width / Math.max(ink.length, ink[0].length);
  pen.fillStyle = getComputedStyle(document.body).color;
  ink.forEach((row, y) => row.forEach((share, x) => {
    pen.globalAlpha = share;
    pen.fillRect(x * cell, y * cell, cell, cell);
  }));
  pen.globalAlpha = 1;
}

const again = begin(() => {
  const ink = inkOf(input.value);
  if (ink) {
    const image = fitted(ink);
    return { inputs: [Array.from({ length: CHANNELS }, () => image).flat()] };
  }
  output.textContent = '';
  document.getElementById('bars').replaceChildren();
  setState('idle', 'Draw something.');
  return null;
}, (answer) => {
  output.textContent = answer.text;
  note(answer);
  document.getElementById('bars').replaceChildren(...rowsOf(answer));
});

function drawnOn() {
  input.value = marks();
  again();
}

pad.addEventListener('pointerdown', (event) => {
  pad.setPointerCapture(event.pointerId);
  last = placeOf(event);
  paint(last, last);
  drawnOn();
});
pad.addEventListener('pointermove', (event) => {
  if (!last) return;
  const place = placeOf(event);
  paint(last, place);
  last = place;
  drawnOn();
});
for (const name of ['pointerup', 'pointercancel']) pad.addEventListener(name, () => { last = null; });
document.getElementById('clear').addEventListener('click', () => {
  input.value = '';
  painted();
  again();
});
offer([], () => { painted(); again(); });
