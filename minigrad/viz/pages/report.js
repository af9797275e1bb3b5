// A run's page: curves that read out their numbers, pictures and samples that play, and all of it anew while it trains.
const SVG = 'http://www.w3.org/2000/svg';
const curvesSection = document.getElementById('curves');
const grid = curvesSection.querySelector('.grid');
const state = { step: null, curves: DATA.curves };

function svgElement(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A share is told in per cent, as it is drawn.
function inUnits(figure, value) {
  const size = Number(figure.querySelector('.curves').dataset.size);
  return size === 1 || typeof value === 'string' ? digits(value) : `${digits(size * value)} %`;
}

// Draw the cursor and the read-out of one panel at a step; at no step, remove them.
function readOut(figure, step) {
  figure.querySelectorAll('.cursor').forEach((old) => old.remove());
  const caption = figure.querySelector('figcaption');
  caption.replaceChildren();
  if (step === null) return;
  const columns = JSON.parse(figure.querySelector('.curves').dataset.columns);
  const points = columns.filter((name) => state.curves[name]).map((name) => {
    const [steps, values] = state.curves[name];
    const place = nearest(steps, step);
    return { name, step: steps[place], value: values[place] };
  });
  points.forEach((point, i) => caption.append(element('span',
    { 'data-column': point.name, 'data-step': point.step, 'data-exact': point.value, style: `color:var(--series-${i % 6 + 1})` },
    `${point.name} ${inUnits(figure, point.value)} at step ${point.step}`)));
  for (const group of figure.querySelectorAll('.curves')) {
    const box = group.dataset;
    const cursor = svgElement('g', { class: 'cursor' });
    const x = acrossOf(box, points.length ? points[0].step : step);
    cursor.append(svgElement('path', { d: `M${x},${box.top}L${x},${box.bottom}`, class: 's-faint', 'stroke-dasharray': '3 3' }));
    points.forEach((point, i) => {
      if (typeof point.value === 'number') {
        cursor.append(svgElement('circle', { cx: acrossOf(box, point.step), cy: heightOf(box, box.size * point.value), r: 4,
          class: `f-series-${i % 6 + 1} s-paper`, 'stroke-width': 1.2 }));
      }
    });
    group.append(cursor);
  }
}

function readAll(step) {
  state.step = step;
  for (const figure of grid.querySelectorAll('figure')) readOut(figure, step);
}

function shownGroup(figure) {
  const kind = curvesSection.classList.contains('in-log') ? '.log' : '.plain';
  return figure.querySelector(`${kind} .curves`);
}

grid.addEventListener('pointermove', (event) => {
  const figure = event.target.closest('figure');
  if (!figure) return;
  const group = shownGroup(figure), box = group.dataset;
  const area = group.ownerSVGElement.getBoundingClientRect();
  const x = ((event.clientX - area.left) / area.width) * group.ownerSVGElement.viewBox.baseVal.width;
  const share = (x - Number(box.left)) / (Number(box.right) - Number(box.left));
  if (share < -0.02 || share > 1.02) { readAll(null); return; }
  readAll(Number(box.first) + Math.min(Math.max(share, 0), 1) * (Number(box.last) - Number(box.first)));
});
grid.addEventListener('pointerleave', () => readAll(null));
grid.addEventListener('keydown', (event) => {
  const figure = event.target.closest('figure');
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!figure || !move) return;
  const name = JSON.parse(shownGroup(figure).dataset.columns)[0];
  const steps = state.curves[name][0];
  const place = state.step === null ? (move > 0 ? 0 : steps.length - 1) : nearest(steps, state.step) + move;
  readAll(steps[Math.min(Math.max(place, 0), steps.length - 1)]);
  event.preventDefault();
});
document.getElementById('log').addEventListener('change', (event) => {
  curvesSection.classList.toggle('in-log', event.target.checked);
});

// Pictures that our own server drew. Read as SVG, they cannot be anything else.
function picture(text) {
  return document.importNode(new DOMParser().parseFromString(text, 'image/svg+xml').documentElement, true);
}

function setPanels(panels) {
  panels.forEach((panel, i) => {
    let figure = grid.children[i];
    if (!figure) {
      figure = element('figure', { tabindex: 0 }, element('div', { class: 'plain' }), element('div', { class: 'log' }),
        element('figcaption', { class: 'mono' }));
      grid.append(figure);
    }
    figure.dataset.panel = panel.name;
    figure.querySelector('.plain').replaceChildren(picture(panel.plain));
    figure.querySelector('.log').replaceChildren(picture(panel.log || panel.plain));
  });
  while (grid.children.length > panels.length) grid.lastElementChild.remove();
  curvesSection.hidden = !panels.length;
  readAll(state.step);
}

// Things of steps, one at a time: a slider, a button that plays them, and `make(text)` for what is seen of each.
function player(section, make) {
  const held = new Map();
  let steps = [], place = 0, timer = null;
  const button = element('button', { class: 'play', onclick: () => (timer === null ? play() : pause()) }, 'play');
  const slider = element('input', { type: 'range', min: 0, step: 1, 'aria-label': 'step', oninput: () => { pause(); go(Number(slider.value)); } });
  const label = element('span', { class: 'mono where' });
  const stage = element('div', { class: 'stage' });
  section.append(element('div', { class: 'player' }, element('div', { class: 'bar' }, button, slider, label), stage));
  function go(to) {
    place = Math.min(Math.max(to, 0), steps.length - 1);
    slider.value = place;
    label.textContent = `step ${steps[place].toLocaleString('en')} (${place + 1} of ${steps.length})`;
    for (const [step, node] of held) node.hidden = step !== steps[place];
  }
  function pause() {
    clearInterval(timer);
    timer = null;
    button.textContent = 'play';
  }
  function play() {
    if (place >= steps.length - 1) go(0);
    button.textContent = 'pause';
    timer = setInterval(() => (place < steps.length - 1 ? go(place + 1) : pause()), 160);
  }
  return (found) => {
    const atEnd = place >= steps.length - 1, before = steps[place];
    for (const [step, text] of Object.entries(found.texts)) {
      const node = make(text, Number(step));
      if (held.has(Number(step))) held.get(Number(step)).remove();
      held.set(Number(step), node);
      stage.append(node);
    }
    steps = found.steps.filter((step) => held.has(step));
    for (const step of [...held.keys()].filter((step) => !steps.includes(step))) {
      held.get(step).remove();
      held.delete(step);
    }
    section.hidden = !steps.length;
    if (!steps.length) return;
    slider.max = steps.length - 1;
    button.disabled = slider.disabled = steps.length < 2;
    go(atEnd || !steps.includes(before) ? steps.length - 1 : steps.indexOf(before));
  };
}

// A picture as an image is isolated: whatever a file holds, nothing in it can run or reach out.
const setFrames = player(document.getElementById('frames'), (text, step) =>
  element('img', { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`, alt: `what the model does at step ${step}` }));
const setSamples = player(document.getElementById('samples'), (text) => {
  const found = answersOf(text);
  return found ? answers(found) : element('pre', {}, text);
});

// The words of a text, those without a twin marked.
function marked(words, known, name) {
  return words.flatMap((word, i) => [i ? ' ' : '', known[i] ? word : element('mark', { class: name }, word)]);
}

// Right and wrong answers as a table, with what differs marked.
function answers({ title, rows }) {
  const made = rows.map(({ source, said, wanted }) => {
    const isRight = wanted === undefined, [mine, its] = [said.split(' '), isRight ? [] : wanted.split(' ')];
    const [inMine, inIts] = isRight ? [mine.map(() => true), []] : twins(mine, its);
    return element('tr', { class: isRight ? 'right' : 'wrong' }, element('td', { 'data-label': 'given' }, source),
      element('td', { 'data-label': 'answer' }, ...marked(mine, inMine, 'said')),
      element('td', { 'data-label': 'wanted' }, ...marked(its, inIts, 'wanted')), element('td', {}, isRight ? '✓ right' : '✗ wrong'));
  });
  const right = rows.filter(({ wanted }) => wanted === undefined).length;
  const head = element('tr', {}, ...['given', 'answer', 'wanted', ''].map((word) => element('th', {}, word)));
  return element('div', {}, element('p', {}, `${title.slice(0, -1)}: ${right} of ${rows.length} right`),
    element('table', { class: 'samples' }, head, ...made));
}

function setSummary(found) {
  for (const id of ['scores', 'summary'])
    document.getElementById(id).replaceChildren(...found[id].map(([label, value]) =>
      element('div', {}, element('dt', {}, label), element('dd', {}, value))));
  document.getElementById('note').textContent = found.note;
  const place = document.getElementById('progress'), bar = place.querySelector('progress');
  place.hidden = !DATA.live || !found.progress || Boolean(found.ended);
  if (found.progress) {
    bar.max = found.progress.of;
    bar.value = found.progress.step;
    place.querySelector('span').textContent = found.progress.words;
  }
  document.getElementById('problems').textContent = found.problems.join('; ');
}

// A table: a name and its value in each row, perhaps help, and the default of what was changed.
function setTable(id, rows) {
  const section = document.getElementById(id);
  section.hidden = !rows.length;
  section.querySelector('table').replaceChildren(...rows.map(([name, value, help, original]) => {
    const isChanged = original !== undefined;
    const notes = [isChanged ? `default ${original || '""'}` : '', help];
    return element('tr', { class: isChanged && 'changed' }, element('td', { class: 'mono' }, name), element('td', { class: 'mono' }, value),
      ...notes.map((note) => element('td', { class: 'faint' }, note)));
  }));
}

// The middle of a model that is wider than the page is seen first.
for (const wide of document.querySelectorAll('#graph .scroll')) wide.scrollLeft = (wide.scrollWidth - wide.clientWidth) / 2;

// What a run does not have has no heading.
setPanels(DATA.panels);
document.getElementById('graph').hidden = !document.querySelector('#graph p').textContent;
document.getElementById('status').hidden = !DATA.live;
setSummary(DATA);
setFrames(DATA.frames);
setSamples(DATA.samples);
for (const [id, rows] of Object.entries(DATA.tables)) setTable(id, rows);

// Ask the server that is training for what is new, once a second, until it has ended.
async function follow(version) {
  const status = document.getElementById('status');
  let failures = 0;
  while (true) {
    await new Promise((later) => setTimeout(later, 1000));
    try {
      const answer = await fetch(`data.json?since=${version}`, { cache: 'no-store' });
      if (!answer.ok) throw new Error(answer.status);
      const found = await answer.json();
      failures = 0;
      version = found.version;
      state.curves = found.curves || state.curves;
      if (found.panels) setPanels(found.panels);
      setSummary(found);
      setFrames(found.frames);
      setSamples(found.samples);
      if (found.ended) { status.textContent = 'training has ended'; return; }
      status.textContent = 'training';
    } catch (error) {
      failures += 1;
      if (failures >= 3) { status.textContent = 'training has ended: nobody answers any more'; return; }
    }
  }
}
if (DATA.live) follow(DATA.version);
