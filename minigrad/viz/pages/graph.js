const $ = (id) => document.getElementById(id);
const views = new Map(DATA.views.map((view) => [view.group, view]));
const state = { view: DATA.views[0].group, instance: 0, step: -1, found: null, told: null };
const stepsForward = DATA.forward, stepsBackward = DATA.backward;
const stepCount = stepsForward.length + stepsBackward.length;
const orderOf = new Map(stepsForward.map((id, index) => [id, index]));
const backwardOf = new Map(stepsBackward.map((step, index) => [step.box, index]));
// When the last contribution to a box arrives: from then on it has its whole gradient.
const gradientAt = new Map();
stepsBackward.forEach((step, index) => {
  if (!gradientAt.has(step.box)) gradientAt.set(step.box, index - 1);
  for (const part of step.parts) gradientAt.set(part.to, index);
});

const ids = Object.keys(DATA.boxes).sort((a, b) => a.slice(1) - b.slice(1)); // in the order of time
const groupIds = Object.keys(DATA.groups).sort((a, b) => a.slice(1) - b.slice(1));
const things = () => views.get(state.view).instances[state.instance].things;
const pictureOf = (view) => $('view-' + view);
const boxesIn = (view) => pictureOf(view).querySelectorAll('.box');
const nameOf = (id) => (DATA.boxes[id] ? DATA.boxes[id].label : DATA.groups[id].name);

// Opening and leaving

function open(view, instance = 0) {
  const told = view === state.view ? Object.entries(things()).find(([, thing]) => thing.id === state.told) : null;
  state.view = view;
  state.instance = instance;
  draw();
  if (told && state.step < 0) tell(things()[told[0]].id); // the same place, in the block that is shown now
}

function leave() {
  const twin = DATA.groups[views.get(state.view).instances[state.instance].group];
  if (twin.parent === null) return;
  const [view, instance] = placeOfGroup(twin.parent);
  open(view, instance);
}

function placeOfGroup(id) {
  for (const view of DATA.views) {
    const instance = view.instances.findIndex((one) => one.group === id);
    if (instance >= 0) return [view.group, instance];
  }
  return [DATA.views[0].group, 0];
}

function drawTrail() {
  const trail = [];
  for (let id = views.get(state.view).instances[state.instance].group; id !== null; id = DATA.groups[id].parent) trail.unshift(id);
  $('trail').replaceChildren(...trail.flatMap((id, index) => {
    const isLast = index === trail.length - 1;
    const button = element('button', { 'data-group': id, disabled: isLast ? '' : false, onclick: () => open(...placeOfGroup(id)) }, nameOf(id));
    return index ? ['›', button] : [button];
  }));
  const instances = views.get(state.view).instances;
  if (instances.length > 1) {
    const select = element('select', { id: 'instance', onchange: (event) => open(state.view, Number(event.target.value)) },
      ...instances.map((one, index) => element('option', { value: index, selected: index === state.instance ? '' : false }, one.name)));
    $('trail').append(element('span', { class: 'faint' }, `one of ${instances.length} that look the same:`), select);
  }
}

// Drawing: the picture is there; texts and thumbnails are those of the chosen instance

function draw() {
  for (const view of document.querySelectorAll('.view')) view.hidden = view.id !== 'view-' + state.view;
  const now = things();
  for (const box of boxesIn(state.view)) {
    const thing = now[box.dataset.key];
    const texts = box.querySelectorAll('text');
    const priced = costRow(thing);
    thing.rows.forEach(([text, role], index) => { texts[index].textContent = hidden(thing, role) ? '…' : index === priced ? costText(thing) : text; });
    box.querySelectorAll('image').forEach((image, index) => {
      if (thing.thumbs) image.setAttribute('href', 'data:image/png;base64,' + thing.thumbs[index]);
      const isGradient = thing.thumbs && index === thing.thumbs.length - 1 && thing.rows.some(([, role]) => role === 'gradient');
      image.style.visibility = hidden(thing, isGradient ? 'gradient' : 'value') ? 'hidden' : '';
    });
    box.classList.toggle('later', state.step >= 0 && hidden(thing, 'value'));
    box.classList.toggle('found', thing.id === state.found && !thing.port);
    box.querySelector('title')?.remove();
  }
  drawTrail();
  mark();
  paint();
  $('where').textContent = state.step < 0 ? `${many(stepsForward.length, 'step')} forward, ${stepsBackward.length} back`
    : state.step < stepsForward.length ? `forward ${state.step + 1} of ${stepsForward.length}`
      : `backward ${state.step - stepsForward.length + 1} of ${stepsBackward.length}`;
  $('first').disabled = $('back').disabled = state.step < 0;
  $('next').disabled = state.step >= stepCount - 1;
}

// While stepping, what has not been computed yet is not shown.
function hidden(thing, role) {
  if (state.step < 0 || !DATA.boxes[thing.id] || (role !== 'value' && role !== 'gradient')) return false;
  if (role === 'value') return orderOf.has(thing.id) && orderOf.get(thing.id) > state.step;
  const done = state.step - stepsForward.length;
  return done < 0 || !gradientAt.has(thing.id) || gradientAt.get(thing.id) > done;
}

// Details

function rowsOf(pairs) {
  return element('table', {}, ...pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => element('tr', {}, element('td', {}, name), element('td', { class: 'mono' }, value))));
}

function statisticsOf(array) {
  return array && array.whole && array.statistics ? Object.entries(array.statistics).map(([name, value]) => `${name} ${shown(value)}`).join(', ') : null;
}

function tell(id) {
  state.told = id;
  const box = DATA.boxes[id];
  if (!box) return tellGroup(id);
  const inputs = box.inputs.map((entry) => (entry.from ? nameOf(entry.from) : entry.written)).join(', ');
  const settings = Object.entries(box.settings).map(([name, value]) => `${name} = ${value}`).join(', ');
  $('details').replaceChildren(element('h2', {}, box.label), rowsOf([
    ['error', box.error], ['what', box.output ? `${box.kind}, output` : box.kind], ['op', box.op], ['inputs', inputs], ['settings', settings],
    ['shape', box.dtype ? shapeText(box.shape) : null], ['dtype', box.dtype],
    ['value', box.value ? box.value.text : Array.isArray(box.shape[0]) || !box.dtype ? null : 'not kept: compute inside `with mg.debug():`'], ['', statisticsOf(box.value)],
    ['gradient', box.gradient && box.gradient.text], ['', statisticsOf(box.gradient)],
    ['keeps', box.keeps.join(', ')], ['hooks', box.hooks ? `${box.hooks}, not run here` : null], ['line', box.line], ['time', box.time === undefined ? null : shown(box.time * 1e6) + ' µs'],
    ['bytes', box.bytes ? amount(box.bytes, 'B') : null], ['flops', box.flops ? amount(box.flops, 'FLOP') : null],
  ]), ...['value', 'gradient'].filter((name) => (DATA.numbers[id] || {})[name]).map((name) => allNumbers(id, name)));
}

function tellGroup(id) {
  const group = DATA.groups[id];
  $('details').replaceChildren(element('h2', {}, group.name), rowsOf([
    ['what', group.title || group.kind], ['inside', many(group.children.length, 'box')], ['copies', group.copies.length ? `×${group.copies.length}` : null],
    ['time', group.time ? shown(group.time * 1e6) + ' µs' : null], ['bytes', amount(group.bytes, 'B')], ['flops', amount(group.flops, 'FLOP')],
  ]), element('p', { class: 'faint' }, 'Click the box to open it.'));
}

// Stepping

function go(step) {
  state.step = Math.max(-1, Math.min(step, stepCount - 1));
  state.found = null;
  if (state.step >= 0) {
    const id = state.step < stepsForward.length ? stepsForward[state.step] : stepsBackward[state.step - stepsForward.length].box;
    const place = DATA.places[id];
    if (place) [state.view, state.instance] = place;
  }
  draw();
  if (state.step >= 0) explain();
}

function explain() {
  if (state.step < stepsForward.length) return explainForward(stepsForward[state.step]);
  explainBackward(stepsBackward[state.step - stepsForward.length]);
}

const valueText = (id) => (DATA.boxes[id].value ? DATA.boxes[id].value.text : '?');
const line = (...children) => element('p', { class: 'equation' }, ...children);

function explainForward(id) {
  const box = DATA.boxes[id];
  const given = box.inputs.map((entry) => line(entry.from ? `${entry.word}: ${nameOf(entry.from)} = ${valueText(entry.from)}` : entry.written));
  const settings = Object.entries(box.settings).map(([name, value]) => line(`${name} = ${value}`));
  $('details').replaceChildren(element('h2', {}, `forward: ${box.label}`), element('p', {}, `${box.op} of`), ...given, ...settings,
    element('p', {}, 'gives'), line(valueText(id)));
}

function explainBackward(step) {
  const box = DATA.boxes[step.box];
  const parts = step.parts.map((part) => {
    const lines = [element('h3', {}, `to ${part.word}: ${nameOf(part.to)}`)];
    if (part.product_at) {
      const at = part.product_at;
      lines.push(line('what arrives × local, number by number; where it is largest, at ', at.index, ': ', element('b', { class: 'gradient' }, at.upstream), ' × ', element('b', {}, at.local), ` = ${at.result}`));
    } else if (part.local !== undefined) {
      lines.push(line('arrived ', element('b', { class: 'gradient' }, step.upstream), ' × local ', element('b', {}, part.local)));
    } else if (part.formula) lines.push(line(`rule: ${part.formula}`));
    else lines.push(line(`by the rule of ${box.op}`));
    if (part.raw !== undefined) {
      if (!part.large) lines.push(line(`= ${part.raw}`));
      lines.push(line(`shape ${shapeText(part.raw_shape)}: ${nameOf(part.to)} was stretched to it, so the copies' gradients are summed to ${shapeText(part.shape)}`));
    }
    lines.push(line(part.large ? 'contribution: ' : '= contribution ', element('b', { class: 'gradient' }, part.part)));
    if (part.sum_at) {
      const at = part.sum_at;
      lines.push(line(`${nameOf(part.to)} is used more than once, so contributions are added; where the sum is largest, at ${at.index}: `, `${at.before} + ${at.part} = `, element('b', { class: 'gradient' }, at.result)));
    } else if (part.before !== undefined) {
      lines.push(line(`${nameOf(part.to)} is used more than once: `, `${part.before} + ${part.part} = `, element('b', { class: 'gradient' }, part.total)));
    }
    return element('div', { class: 'part' }, ...lines);
  });
  $('details').replaceChildren(element('h2', {}, `backward: ${box.label}`),
    element('p', {}, 'The gradient that arrives:'), line(element('b', { class: 'gradient' }, step.upstream || 'of each of its outputs')), ...parts);
}

// Highlight the box of this step, and the arrows that its numbers take.
function mark() {
  const isBack = state.step >= stepsForward.length;
  const id = state.step < 0 ? null : isBack ? stepsBackward[state.step - stepsForward.length].box : stepsForward[state.step];
  let key = null;
  for (const box of boxesIn(state.view)) {
    const isNow = id !== null && things()[box.dataset.key].id === id && !things()[box.dataset.key].port;
    if (isNow) key = box.dataset.key;
    box.classList.toggle('now', isNow);
    box.classList.toggle('behind', isNow && isBack);
    if (isNow || box.classList.contains('found')) box.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  for (const edge of pictureOf(state.view).querySelectorAll('.edge')) {
    edge.classList.toggle('now', key !== null && edge.dataset.to === key);
    edge.classList.toggle('behind', isBack);
  }
}

let timer = null;
function play() {
  if (timer !== null || state.step >= stepCount - 1) return stop();
  $('play').textContent = 'pause';
  timer = setInterval(() => { go(state.step + 1); if (state.step >= stepCount - 1) stop(); }, 900);
}
function stop() {
  clearInterval(timer);
  timer = null;
  $('play').textContent = 'play';
}

// Search

function search() {
  const words = $('search').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? ids.map((id) => [id, DATA.boxes[id]]).filter(([, box]) => {
    const text = `${box.label} ${box.op} ${box.kind} ${shapeText(box.shape)} ${box.dtype} ${pathOf(box.group)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }) : [];
  const modules = words.length ? groupIds.map((id) => [id, DATA.groups[id]]).filter(([, group]) => group.parent !== null
    && words.every((word) => `${group.name} ${group.title}`.toLowerCase().includes(word))) : [];
  const buttons = [
    ...modules.map(([id, group]) => () => element('button', { 'data-module': id, onclick: () => { open(...placeOfGroup(id)); tellGroup(id); } },
      [group.name, group.title || group.kind, pathOf(group.parent)].filter(Boolean).join('  '))),
    ...found.map(([id, box]) => () => element('button', { 'data-box': id, onclick: () => reveal(id) },
      [box.label, box.op === box.label ? '' : box.op, shapeText(box.shape), pathOf(box.group)].filter(Boolean).join('  '))),
  ];
  $('results').hidden = !words.length;
  $('results').replaceChildren(element('div', { class: 'faint' }, `${buttons.length} found${buttons.length > 50 ? ', the first 50:' : ''}`),
    ...buttons.slice(0, 50).map((make) => make()));
}

function pathOf(group) {
  const names = [];
  for (let id = group; id !== null; id = DATA.groups[id].parent) names.unshift(DATA.groups[id].name);
  return names.join(' › ');
}

function reveal(id) {
  state.found = id;
  open(DATA.places[id][0], DATA.places[id][1]);
  tell(id);
}

// Wiring

for (const view of DATA.views) {
  for (const box of boxesIn(view.group)) {
    const act = () => {
      const thing = things()[box.dataset.key];
      if (DATA.groups[thing.id]) open(...placeOfGroup(thing.id));
      else if (thing.port) reveal(thing.id);
      else { state.found = thing.id; draw(); tell(thing.id); }
    };
    box.setAttribute('tabindex', '0');
    box.addEventListener('click', act);
    box.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
    box.addEventListener('mouseenter', () => { if (state.step < 0) tell(things()[box.dataset.key].id); });
  }
}
$('next').addEventListener('click', () => go(state.step + 1));
$('back').addEventListener('click', () => go(state.step - 1));
$('first').addEventListener('click', () => go(0));
$('leave').addEventListener('click', () => { stop(); go(-1); });
$('play').addEventListener('click', play);
$('color').addEventListener('change', draw);
$('direction').addEventListener('change', () => { document.body.dataset.direction = $('direction').value; });
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', (event) => { if (event.key === 'Enter') $('results').querySelector('button')?.click(); });
document.addEventListener('keydown', (event) => {
  if (event.target.matches('input, select')) return;
  if (event.key === 'ArrowRight') go(state.step + 1);
  else if (event.key === 'ArrowLeft') go(state.step - 1);
  else if (event.key === 'Escape') leave();
});
const failed = ids.find((id) => DATA.boxes[id].failed);
draw();
if (failed) reveal(failed);
else tell(ids.find((id) => DATA.boxes[id].output));
