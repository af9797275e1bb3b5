// Attention: one stage of the head that is chosen is drawn, and the computation of the cell under the mouse is told.
const $ = (id) => document.getElementById(id);
const chosen = { layer: 0, head: 0, stage: 'softmax', view: 'matrix', row: -1, column: -1, pinned: false };
const headName = (head) => (head === MEAN ? 'mean of heads' : `head ${head}`);
let now = null; // the head that is drawn: its stages, and where its cells are

// A pixel as one number, as a canvas keeps it: red in the lowest byte.
const pixel = (red, green, blue) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
const scaleOf = (bytes) => Uint32Array.from({ length: 256 }, (_, i) => pixel(...bytes.subarray(3 * i, 3 * i + 3)));
const SCALES = { sequential: scaleOf(bytesOf(DATA.colors.sequential)), diverging: scaleOf(bytesOf(DATA.colors.diverging)) };
const FORBIDDEN = pixel(...DATA.colors.forbidden), MISSING = pixel(160, 160, 160);

// Pixels on a canvas of their own, row after row.
function canvasOf(pixels, columns, rows, attributes = {}) {
  const canvas = element('canvas', { width: Math.max(columns, 1), height: Math.max(rows, 1), ...attributes });
  const bytes = new Uint8ClampedArray(pixels.buffer, 0, 4 * columns * rows);
  if (bytes.length) canvas.getContext('2d').putImageData(new ImageData(bytes, columns, rows), 0, 0);
  return canvas;
}

const NS = 'http://www.w3.org/2000/svg';
function svg(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const short = (text, longest = 18) => (text.length > longest ? text.slice(0, longest - 1) + '…' : text);
const letters = (text) => Array.from(text).reduce((sum, letter) => sum + (letter.codePointAt(0) >= 0x2e80 ? 2 : 1), 0);

function brief(number) {
  if (Number.isNaN(number)) return 'NaN';
  if (!Number.isFinite(number)) return number > 0 ? '∞' : '−∞';
  const size = Math.abs(number);
  if (size >= 1000) return number.toExponential(0).replace('e+', 'e');
  return number === 0 ? '0' : number.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

// A weight that would be 0.00 is left to its colour, so that the others are seen.
const cellText = (number, signed) => (!signed && Math.abs(number) < 0.005 ? '' : brief(number));
const told = (number) => (Number.isFinite(number) ? show(number) : brief(number));
const about = () => (DATA.exact ? '' : '≈ ');

// The pixels of a matrix, and the largest number; `byRow` says that colours are relative to the largest of a row, `hides`
// which cells are no numbers at all.
function painted(numbers, columns, signed, byRow, hides) {
  const table = signed ? SCALES.diverging : SCALES.sequential;
  const rows = columns ? numbers.length / columns : 0;
  const most = new Float64Array(Math.max(rows, 1));
  let all = 0;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const size = Math.abs(numbers[i * columns + j]);
      if (Number.isFinite(size) && size > most[i]) most[i] = size;
    }
    all = Math.max(all, most[i]);
  }
  const pixels = new Uint32Array(numbers.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0, place = i * columns, size = (byRow ? most[i] : all) || 1; j < columns; j++, place++) {
      const part = numbers[place] / size;
      const step = Math.max(0, Math.min(255, Math.round(255 * (signed ? (part + 1) / 2 : part))));
      pixels[place] = numbers[place] === -Infinity || hides(i, j) ? FORBIDDEN : Number.isNaN(part) ? MISSING : table[step];
    }
  return { pixels, most: all };
}

// Light on dark colours, dark on light ones.
function inkOn(color) {
  const light = 0.299 * (color & 255) + 0.587 * ((color >> 8) & 255) + 0.114 * ((color >> 16) & 255);
  return light > 140 ? '#1c2530' : '#ffffff';
}

// Names of rows and columns, as many as have room; and where there is room, the number of every cell.
function labels(over, place, rows, columns) {
  const { cell, left, top, size } = place, step = Math.ceil(13 / cell), marks = { rows: [], columns: [] };
  const add = (attributes, text) => over.appendChild(svg('text', { class: 'mono f-ink', 'font-size': size, ...attributes }, text));
  for (let i = 0; i < rows.length; i += step)
    marks.rows[i] = add({ x: left - 6, y: top + (i + 0.5) * cell + size * 0.35, 'text-anchor': 'end' }, short(rows[i]));
  for (let j = 0; j < columns.length; j += step) {
    const x = left + (j + 0.5) * cell + size * 0.35, y = top - 6;
    marks.columns[j] = add({ x, y, transform: `rotate(-90 ${x} ${y})` }, short(columns[j]));
  }
  return marks;
}

function drawMatrix() {
  const { layer, L } = now, numbers = numbersOf(now, chosen.stage);
  const isOutput = chosen.stage === 'output', signed = chosen.stage !== 'softmax';
  const names = isOutput ? Array.from({ length: now.V }, (_, c) => String(c)) : layer.columns;
  const columns = names.length;
  const hides = (i, j) => !signed && !now.may(i, j);
  const { pixels, most } = painted(numbers, columns, signed, $('relative').checked && !signed, hides);
  const longest = (texts) => texts.reduce((most, text) => Math.max(most, letters(short(text))), 1);
  const room = $('picture').clientWidth - 24 - 7.3 * longest(layer.rows); // a matrix is as wide as its page, if it can be
  const cell = Math.min(72, Math.max(2, Math.floor(Math.min(640 / Math.max(L, columns, 1), room / Math.max(columns, 1)))));
  const size = cell >= 12 ? 12 : 10, left = 12 + 0.605 * size * longest(layer.rows), top = 14 + 0.605 * size * longest(names);
  const width = left + columns * cell + 10, height = top + L * cell + 8;
  const canvas = canvasOf(pixels, columns, L, {
    tabindex: 0, role: 'img', 'aria-label': `${chosen.stage}, ${headName(chosen.head)}; the arrow keys move from cell to cell`,
    style: `left:${left}px;top:${top}px;width:${columns * cell}px;height:${L * cell}px`,
  });
  const over = svg('svg', { width, height });
  const marks = labels(over, { cell, left, top, size }, layer.rows, names);
  for (let place = 0; cell >= 32 && place < numbers.length; place++) {
    const i = Math.floor(place / columns), j = place % columns, x = left + (j + 0.5) * cell, y = top + (i + 0.5) * cell + 4;
    const look = { 'font-size': Math.min(11, 0.3 * cell), 'text-anchor': 'middle', fill: inkOn(pixels[place]), class: 'mono', 'data-cell': `${i},${j}` };
    over.append(svg('text', { x, y, ...look }, hides(i, j) ? '–' : cellText(numbers[place], signed)));
  }
  over.append(svg('rect', { x: left - 0.5, y: top - 0.5, width: columns * cell + 1, height: L * cell + 1, fill: 'none', class: 's-line' }));
  // Dark around light, which is seen on every colour.
  const frames = [['#1c2530', 4], ['#ffffff', 1.5]].map(([stroke, thick]) =>
    over.appendChild(svg('rect', { width: cell, height: cell, fill: 'none', 'stroke-width': thick, stroke, visibility: 'hidden' })));
  listen(canvas, L, columns);
  now.mark = (i, j) => {
    for (const text of over.querySelectorAll('[font-weight]')) text.removeAttribute('font-weight');
    for (const frame of frames) {
      frame.setAttribute('visibility', 'visible');
      frame.setAttribute('x', left + j * cell);
      frame.setAttribute('y', top + i * cell);
    }
    marks.rows[i]?.setAttribute('font-weight', 'bold');
    marks.columns[j]?.setAttribute('font-weight', 'bold');
  };
  $('picture').replaceChildren(element('div', { class: 'matrix', style: `width:${width}px;height:${height}px` }, canvas, over));
  const end = $('relative').checked && !signed ? 'the largest of its row' : brief(most);
  const barred = pixels.includes(FORBIDDEN) ? '; – where it may not look' : '';
  const colors = canvasOf(SCALES[signed ? 'diverging' : 'sequential'].slice(), 256, 1);
  return [element('span', { class: 'key' }, signed ? `−${end} ` : '0 ', colors, ` ${end}`), barred];
}

// The cell under the mouse is told; a click keeps it, and the arrow keys move it.
function listen(canvas, rows, columns) {
  const at = (event) => [
    Math.max(0, Math.min(rows - 1, Math.floor((event.offsetY / canvas.clientHeight) * rows))),
    Math.max(0, Math.min(columns - 1, Math.floor((event.offsetX / canvas.clientWidth) * columns))),
  ];
  canvas.addEventListener('mousemove', (event) => { if (!chosen.pinned) tell(...at(event)); });
  canvas.addEventListener('click', (event) => {
    const [i, j] = at(event), same = i === chosen.row && j === chosen.column;
    chosen.pinned = !(chosen.pinned && same);
    tell(i, j);
  });
  canvas.addEventListener('keydown', (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    tell(Math.max(0, Math.min(rows - 1, chosen.row + move[0])), Math.max(0, Math.min(columns - 1, chosen.column + move[1])));
  });
}

function drawLines() {
  const { layer, L, S } = now, weights = now.stages.softmax, gap = 20, few = L * S <= 2500;
  const leftNames = layer.rows.map((name) => short(name)), rightNames = layer.columns.map((name) => short(name));
  const left = 16 + 7.3 * Math.max(1, ...leftNames.map(letters)), right = left + 220;
  const width = right + 16 + 7.3 * Math.max(1, ...rightNames.map(letters)), height = gap * Math.max(L, S) + 12;
  const picture = svg('svg', { width, height, class: 'lines' });
  const lines = picture.appendChild(svg('g', {}));
  const y = (place) => 6 + gap * (place + 0.5);
  const draw = (only) => {
    lines.replaceChildren();
    for (let i = only < 0 ? 0 : only; i < (only < 0 ? (few ? L : 0) : only + 1); i++)
      for (let j = 0; j < S; j++) {
        const weight = weights[i * S + j];
        if (!(weight >= 0.005)) continue;
        const look = { x1: left, y1: y(i), x2: right, y2: y(j), 'stroke-width': 1 + 4 * weight, 'stroke-opacity': Math.max(0.06, weight) };
        lines.append(svg('line', { ...look, class: 's-accent', 'data-pair': `${i},${j}` }));
      }
  };
  const add = (attributes, text) => picture.appendChild(svg('text', { 'font-size': 12, class: 'mono f-ink', ...attributes }, text));
  const rightTexts = rightNames.map((name, j) => add({ x: right + 6, y: y(j) + 4 }, name));
  const fade = (i) => rightTexts.forEach((text, j) => text.setAttribute('opacity', i < 0 ? 1 : Math.min(1, 0.35 + weights[i * S + j])));
  leftNames.forEach((name, i) => {
    const text = add({ x: left - 6, y: y(i) + 4, 'text-anchor': 'end', 'data-row': i }, name);
    text.addEventListener('mouseenter', () => { draw(i); fade(i); tellRow(i); });
    text.addEventListener('mouseleave', () => { draw(few ? -1 : i); fade(-1); });
  });
  draw(few ? -1 : 0);
  now.mark = () => {};
  $('picture').replaceChildren(picture);
  return [few ? 'a line is as strong as its weight; rest the mouse on a token of the left' : 'the lines of the token of the left that the mouse is on'];
}

// What one query looks at most.
function tellRow(i) {
  const { layer, S } = now, weights = now.stages.softmax;
  const order = Array.from({ length: S }, (_, j) => j).sort((a, b) => weights[i * S + b] - weights[i * S + a]).slice(0, 12);
  const rows = order.map((j) => line('', `${j}: ${layer.columns[j]}`, null, `${about()}${told(weights[i * S + j])}`));
  $('cell').replaceChildren(element('h2', {}, `${i}: ${layer.rows[i]} looks at`), element('table', { class: 'most' }, ...rows));
}

// A line of the computation: what it is, how it is computed, and the number, or words.
function line(step, name, how, number) {
  const cells = [element('th', {}, name), element('td', {}, how ? element('span', { class: 'terms' }, `${how} = `) : null, element('b', {}, number))];
  return element('tr', { 'data-step': step, class: step && step === chosen.stage ? 'now' : false }, ...cells);
}

function tell(i, j) {
  [chosen.row, chosen.column] = [i, j];
  now.mark(i, j);
  if (DATA.next && now.layer.chosen && i < DATA.next.after.length) { $('after').value = String(i); bars(); }
  if (chosen.stage === 'output') return tellOutput(i, j);
  const { layer, S, stages } = now, place = i * S + j;
  const lines = [];
  if (now.q) {
    const { q, k, E } = now, { most, sum } = now.sums[i], masked = stages.masked[place];
    const terms = Array.from({ length: E > 8 ? 3 : E }, (_, e) => `${told(q[i * E + e])}·${told(k[j * E + e])}`);
    const dots = terms.join(' + ') + (E > 8 ? ` + … (${E} terms)` : '');
    const power = Math.exp(masked - most);
    lines.push(line('scores', `q[${i}]·k[${j}]`, dots, about() + told(stages.scores[place])));
    lines.push(line('scaled', '· scale', `${told(stages.scores[place])} · ${told(layer.scale)}`, about() + told(stages.scaled[place])));
    lines.push(line('masked', 'masked', null, masked === -Infinity ? '−∞ (may not look there)' : `${about()}${told(masked)} (may look)`));
    const share = masked === -Infinity ? 'e^−∞ / Σ' : `e^(${told(masked)} − ${told(most)}) / Σ = ${told(power)} / ${told(sum)}`;
    const how = sum === 0 ? 'no key is allowed' : share;
    lines.push(line('softmax', 'softmax', how, about() + told(stages.softmax[place])));
    const row = Array.from(outputRow(now, i).subarray(0, 8), told);
    lines.push(line('output', `row ${i} · V`, null, `[${row.join(', ')}${now.V > 8 ? `, … ${now.V} numbers` : ''}]`));
  } else {
    lines.push(line('softmax', 'weight', null, about() + told(stages.softmax[place])));
  }
  const title = `${i}: ${layer.rows[i]} → ${j}: ${layer.columns[j]}`;
  $('cell').replaceChildren(element('h2', {}, title), element('table', {}, ...lines), hint());
}

function tellOutput(i, c) {
  const { layer, S, V, v, stages } = now;
  const order = Array.from({ length: S }, (_, j) => j).sort((a, b) => stages.softmax[i * S + b] - stages.softmax[i * S + a]).slice(0, 6);
  const lines = order.map((j) => {
    const weight = stages.softmax[i * S + j], value = v[j * V + c];
    return line('', `${j}: ${short(layer.columns[j])}`, `${told(weight)} · ${told(value)}`, told(weight * value));
  });
  if (S > order.length) lines.push(line('', '…', null, `${S} keys`));
  lines.push(line('output', `Σ weight · v[${c}]`, null, about() + told(stages.output[i * V + c])));
  $('cell').replaceChildren(element('h2', {}, `${i}: ${layer.rows[i]}, column ${c} of its output`), element('table', {}, ...lines), hint());
}

// The key that a query looks at most.
function strongest(i) {
  const { S } = now, weights = now.stages.softmax.subarray(i * S, (i + 1) * S);
  return weights.reduce((best, weight, j) => (weight > weights[best] ? j : best), 0);
}

const hint = () => element('p', { class: 'faint' }, chosen.pinned ? 'kept; click the cell again to let it go' : 'click to keep this cell');

function press(selector, key, value) {
  for (const button of document.querySelectorAll(selector)) button.setAttribute('aria-pressed', String(button.dataset[key] === value));
}

function draw() {
  const known = Object.keys(now.stages);
  if (!known.includes(chosen.stage)) chosen.stage = 'softmax';
  for (const button of document.querySelectorAll('[data-stage]')) button.disabled = !known.includes(button.dataset.stage) || chosen.view === 'lines';
  press('[data-stage]', 'stage', chosen.view === 'lines' ? 'softmax' : chosen.stage);
  press('[data-view]', 'view', chosen.view);
  $('relative-label').hidden = chosen.view === 'lines' || chosen.stage !== 'softmax';
  const { layer, L, S } = now;
  const legend = chosen.view === 'lines' ? drawLines() : drawMatrix();
  const size = `${L} × ${chosen.stage === 'output' ? now.V : S}`;
  const rough = DATA.exact ? '' : '; numbers are rounded (≈)';
  const rows = layer.chosen ? '; down: the word being chosen' : '';
  $('caption').replaceChildren(`${layer.title}, ${headName(chosen.head)}: ${DATA.stages[chosen.stage]}, ${size}${rows}; `, ...legend, rough);
  $('cell').replaceChildren(element('p', { class: 'faint' }, 'Point at a cell to see how it is computed.'));
  chosen.pinned = false;
  [chosen.row, chosen.column] = [-1, -1];
  if (chosen.view === 'matrix' && L && S) tell(0, strongest(0)); // an example of what is told
}

// Scroll all heads, and nothing else, to the row that is chosen.
function bringIntoSight(row) {
  const box = $('overview'), top = row.offsetTop;
  if (top < box.scrollTop || top + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
}

let asked = 0;
async function choose(layer, head) {
  const mine = ++asked;
  const count = DATA.layers[layer].heads.length;
  Object.assign(chosen, { layer, head: Math.min(head, count - 1) });
  $('layer').value = String(layer);
  const options = Array.from({ length: count }, (_, h) => element('option', { value: h }, String(h)));
  $('head').replaceChildren(...options, element('option', { value: MEAN }, 'mean'));
  $('head').value = String(chosen.head);
  press('.thumb', 'place', `${layer},${chosen.head}`);
  bringIntoSight(document.querySelectorAll('#overview tr')[layer + 1]);
  const made = await (chosen.head === MEAN ? averaged(layer) : decoded(layer, chosen.head));
  if (mine !== asked) return; // another one was chosen meanwhile
  now = made;
  draw();
  document.body.dataset.shown = `${layer},${chosen.head}`;
}

function thumb(layer, head) {
  const [, rows, columns] = layer.thumbs.shape, start = head * rows * columns;
  layer.thumbs.read ??= bytesOf(layer.thumbs.bytes);
  const pixels = Uint32Array.from(layer.thumbs.read.subarray(start, start + rows * columns), (step) => SCALES.sequential[step]);
  return canvasOf(pixels, columns, rows);
}

const LONGEST = DATA.layers.reduce((most, layer) => Math.max(most, layer.rows.length, layer.columns.length), 0);

function overview() {
  const rows = DATA.layers.map((layer, number) => {
    const tiles = layer.heads.map((_, head) => {
      const name = `${layer.title}, head ${head}`;
      const button = element('button', { class: 'thumb', 'data-place': `${number},${head}`, title: name, 'aria-label': name }, thumb(layer, head));
      button.addEventListener('click', () => choose(number, head));
      return element('td', {}, button);
    });
    return element('tr', {}, element('th', {}, element('div', { class: 'name', title: layer.path }, `${number} ${layer.title}`)), ...tiles);
  });
  const most = Math.max(0, ...DATA.layers.map((layer) => layer.heads.length));
  const numbers = Array.from({ length: most }, (_, head) => element('td', { class: 'faint' }, String(head)));
  $('overview').append(element('table', {}, element('tr', {}, element('th', {}, 'head'), ...numbers), ...rows));
  $('overview').append(element('p', { class: 'faint' }, 'Here each row is relative to its largest weight; the large matrix has one scale for all, unless “colours by row” is ticked.'));
  if (most > 6) $('overview').style.setProperty('--thumb', '26px');
  document.querySelector('.attention').classList.toggle('long', LONGEST > 24 || most > 8);
  const heads = DATA.layers.reduce((sum, layer) => sum + layer.heads.length, 0);
  $('summary').textContent = `${DATA.layers.length} attentions, ${heads} heads`;
}

function bars() {
  const { names } = DATA.next, logits = DATA.next.read, count = names.length;
  const row = logits.subarray(Number($('after').value) * count, (Number($('after').value) + 1) * count);
  const temperature = Number($('temperature').value);
  $('temperature-shown').textContent = temperature.toFixed(2);
  const scaled = Float64Array.from(row, (logit) => logit / temperature), weights = new Float64Array(count);
  softmax(scaled, weights, 0, count);
  const order = Array.from(weights.keys()).sort((a, b) => row[b] - row[a] || a - b).slice(0, 10);
  $('bars').replaceChildren(...order.map((token) => element('div', { class: 'bar', 'data-token': token },
    element('span', { class: 'name mono' }, names[token]),
    element('span', { class: 'track' }, element('div', { class: 'fill', style: `width:${100 * weights[token]}%` })),
    element('b', { class: 'mono' }, told(weights[token])))));
}

function start() {
  overview();
  $('layer').append(...DATA.layers.map((layer, number) => element('option', { value: number }, `${number} ${layer.title}`)));
  $('layer').addEventListener('change', () => choose(Number($('layer').value), chosen.head));
  $('head').addEventListener('change', () => choose(chosen.layer, Number($('head').value)));
  $('relative').addEventListener('change', draw);
  for (const kind of ['stage', 'view'])
    for (const button of document.querySelectorAll(`[data-${kind}]`))
      button.addEventListener('click', () => { chosen[kind] = button.dataset[kind]; draw(); });
  $('relative').checked = LONGEST > 64;
  if (DATA.next) {
    DATA.next.read = new Float32Array(bytesOf(DATA.next.logits).buffer);
    $('after').append(...DATA.next.after.map((name, place) => element('option', { value: place }, name)));
    $('after').value = String(DATA.next.after.length - 1);
    $('after').addEventListener('change', bars);
    $('temperature').addEventListener('input', bars);
    $('next-verb').textContent = DATA.next.verb;
    $('next').hidden = false;
    bars();
  }
  let width = innerWidth;
  addEventListener('resize', () => { if (now && innerWidth !== width) { width = innerWidth; draw(); } });
  choose(...DATA.start);
}
start();
