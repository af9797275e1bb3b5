// Three words with a question, a label and a content each, as vectors of two numbers.

const WORDS = ['You', 'are', 'welcome'];
const KINDS = { q: 'question', k: 'label', v: 'content' };
const vectors = { q: [[1.5, 0.5], [0, 1], [-1, 1]], k: [[-0.5, 1], [0.5, -1.5], [2, 0.5]], v: [[1, 0], [0, 1], [-1, -1]] };
const [HALF, SCALE] = [3, 70];
const canvas = document.getElementById('plane');
const kind = document.getElementById('kind');

function at([x, y]) {
  return [canvas.width / 2 + x * SCALE, canvas.height / 2 - y * SCALE];
}

const fields = [];
const lines = WORDS.map((word, i) => element('tr', {}, element('th', {}, word), ...Object.keys(KINDS).map((name) => (
  element('td', {}, ...[0, 1].map((axis) => {
    const field = element('input', { type: 'number', step: 0.1, min: -HALF, max: HALF, size: 4, 'aria-label': `${KINDS[name]} of ${word}, number ${axis + 1}` });
    field.addEventListener('input', () => {
      const number = Number(field.value);
      if (Number.isFinite(number)) { vectors[name][i][axis] = number; draw(field); }
    });
    fields.push({ field, name, i, axis });
    return field;
  }))
))));
document.getElementById('vectors').append(
  element('tr', {}, element('th', {}), ...Object.values(KINDS).map((name) => element('th', {}, name))), ...lines,
);

function table(id, head, numbers, heat) {
  const cells = (row) => row.map((number) => {
    const cell = element('td', {}, number.toFixed(2));
    if (heat) cell.style.background = `var(--heat-${Math.max(1, Math.round(8 * number))})`;
    return cell;
  });
  document.getElementById(id).replaceChildren(
    element('tr', {}, ...['', ...head].map((text) => element('th', {}, text))),
    ...numbers.map((row, i) => element('tr', {}, element('th', {}, WORDS[i]), ...cells(row))),
  );
}

function draw(skipped = null) {
  const [, weights, output] = run('attend', vectors.q.flat(), vectors.k.flat(), vectors.v.flat());
  table('weights-table', WORDS, [0, 1, 2].map((i) => weights.slice(3 * i, 3 * i + 3)), true);
  table('outputs', ['1', '2'], [0, 1, 2].map((i) => output.slice(2 * i, 2 * i + 2)), false);
  for (const { field, name, i, axis } of fields) if (field !== skipped) field.value = Math.round(vectors[name][i][axis] * 100) / 100;
  const context = canvas.getContext('2d');
  context.fillStyle = color('surface');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.strokeStyle = color('grid');
  context.lineWidth = 1;
  for (let n = -HALF; n <= HALF; n += 1) {
    for (const line of [[[n, -HALF], [n, HALF]], [[-HALF, n], [HALF, n]]]) {
      context.beginPath();
      context.moveTo(...at(line[0]));
      context.lineTo(...at(line[1]));
      context.stroke();
    }
  }
  const roles = { q: 'series-1', k: 'series-2', v: 'series-3' };
  for (const name of [...Object.keys(KINDS).filter((other) => other !== kind.value), kind.value]) {
    vectors[name].forEach((vector, i) => {
      const isChosen = name === kind.value;
      const [x, y] = at(vector);
      context.globalAlpha = isChosen ? 1 : 0.35;
      context.strokeStyle = color(roles[name]);
      context.fillStyle = color(roles[name]);
      context.lineWidth = isChosen ? 3 : 2;
      context.beginPath();
      context.moveTo(...at([0, 0]));
      context.lineTo(x, y);
      context.stroke();
      context.beginPath();
      context.arc(x, y, isChosen ? 9 : 5, 0, 2 * Math.PI);
      context.fill();
      context.fillStyle = color('ink');
      context.font = '14px sans-serif';
      const isLeft = x > canvas.width - 150;
      context.textAlign = isLeft ? 'right' : 'left';
      if (isChosen) context.fillText(WORDS[i], x + (isLeft ? -13 : 13), y - 8);
      context.globalAlpha = 1;
    });
  }
}

let held = null;
canvas.addEventListener('pointerdown', (event) => {
  const place = placeOf(canvas, event).map((share) => (2 * share - 1) * HALF);
  const far = vectors[kind.value].map((vector) => Math.hypot(vector[0] - place[0], vector[1] - place[1]));
  held = far.indexOf(Math.min(...far));
  canvas.setPointerCapture(event.pointerId);
  move(event);
});
function move(event) {
  if (held === null) return;
  vectors[kind.value][held] = placeOf(canvas, event).map((share) => Math.min(Math.max((2 * share - 1) * HALF, -HALF), HALF));
  draw();
}
canvas.addEventListener('pointermove', move);
canvas.addEventListener('pointerup', () => { held = null; });
kind.addEventListener('change', () => draw());
redrawWithTheme(() => draw());
draw();
