// Numbers in words, the colours of costs, and tables of large arrays

const shown = (number) => show(number).replaceAll('-', '−');
const many = (count, word) => `${count} ${word}${count === 1 ? '' : word === 'box' ? 'es' : 's'}`;
const shapeText = (shape) => `(${shape.map((part) => (Array.isArray(part) ? shapeText(part) : part)).join(', ')}${shape.length === 1 ? ',' : ''})`;
const amount = (number, unit) => (number >= 1e9 ? shown(number / 1e9) + ' G' : number >= 1e6 ? shown(number / 1e6) + ' M' : number >= 1e3 ? shown(number / 1e3) + ' k' : number + ' ') + unit;

// While colours tell a cost, its number stands where the shape stood, or the last line of a module.
const costOf = (thing) => (thing.port ? 0 : (DATA.boxes[thing.id] || DATA.groups[thing.id])[$('color').value] || 0);
const costUnit = (cost) => ($('color').value === 'time' ? shown(cost * 1e6) + ' µs' : amount(cost, $('color').value === 'bytes' ? 'B' : 'FLOP'));
const costText = (thing) => costUnit(costOf(thing));
function costRow(thing) {
  if (!$('color').value || !costOf(thing)) return -1;
  return DATA.groups[thing.id] ? thing.rows.length - 1 : thing.rows.findIndex(([, role]) => role === 'form');
}

function paint() {
  const color = $('color').value;
  const now = things();
  const costs = new Map(Object.entries(now).map(([key, thing]) => [key, costOf(thing)]));
  const most = Math.max(...costs.values(), 0);
  $('scale').hidden = !color;
  $('most').textContent = most ? `up to ${costUnit(most)}` : 'not known';
  for (const box of boxesIn(state.view)) {
    const share = color && most ? (costs.get(box.dataset.key) || 0) / most : 0;
    box.classList.toggle('painted', share > 0);
    for (const shape of box.querySelectorAll(':scope > rect, :scope > polygon')) {
      if (shape.getAttribute('fill') !== 'none' && shape.getAttribute('width') !== '5') {
        shape.style.fill = share ? `color-mix(in srgb, var(--accent) ${Math.round(6 + 44 * share)}%, var(--paper))` : '';
      }
    }
  }
}

// A button that shows every number of a large array, the greater in size the darker.
function allNumbers(id, name) {
  const rows = DATA.numbers[id][name];
  const size = Math.max(...rows.flat().filter((number) => typeof number !== 'string').map(Math.abs), 0) || 1;
  const cell = (number) => {
    const made = element('td', {}, shown(number));
    const color = number < 0 ? 'series-2' : 'series-1';
    if (typeof number !== 'string') made.style.background = `color-mix(in srgb, var(--${color}) ${Math.round(45 * Math.abs(number) / size)}%, var(--surface))`;
    return made;
  };
  const place = element('div', { class: 'scroll' });
  return element('div', {}, element('button', { class: 'numbers', onclick: (event) => {
    event.target.remove();
    place.append(element('h3', {}, `${name}, all numbers`), element('table', { class: 'numbers mono' }, ...rows.map((row) => element('tr', {}, ...row.map(cell)))));
  } }, `${name}: all numbers`), place);
}

