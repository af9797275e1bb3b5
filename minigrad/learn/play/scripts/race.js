// Four optimisers on one surface; its slopes come from a traced program.

const STEPS = 150;
const RACERS = {
  SGD: { rate: 1, step: (g) => g.map((x) => -x) },
  momentum: { rate: 0.5, step: (g, s) => { s.v = g.map((x, i) => 0.9 * (s.v?.[i] ?? 0) + x); return s.v.map((x) => -x); } },
  RMSprop: {
    rate: 1,
    step: (g, s) => { s.r = g.map((x, i) => 0.99 * (s.r?.[i] ?? 0) + 0.01 * x * x); return g.map((x, i) => -x / (Math.sqrt(s.r[i]) + 1e-8)); },
  },
  Adam: {
    rate: 2,
    step: (g, s, t) => {
      s.m = g.map((x, i) => 0.9 * (s.m?.[i] ?? 0) + 0.1 * x);
      s.r = g.map((x, i) => 0.999 * (s.r?.[i] ?? 0) + 0.001 * x * x);
      return g.map((_, i) => -(s.m[i] / (1 - 0.9 ** t)) / (Math.sqrt(s.r[i] / (1 - 0.999 ** t)) + 1e-8));
    },
  },
};
const canvas = document.getElementById('surface');
const choice = document.getElementById('hollow');
choice.append(...Object.keys(DATA.hollows).map((name) => element('option', { value: name }, name)));
let [rate, start, shown, timer] = [0.02, null, STEPS, null];

// The way of a racer: places, and the loss at each.
function way(racer, name, from, count = STEPS) {
  const [places, losses, state] = [[from], [], {}];
  for (let t = 1; t <= count + 1; t += 1) {
    const place = places[places.length - 1];
    const [[loss], [gx], [gy]] = run(name, [place[0]], [place[1]]);
    losses.push(loss);
    if (t > count || !Number.isFinite(loss) || Math.abs(loss) > 1e12) break;
    const move = racer.step([gx, gy], state, t);
    places.push(place.map((x, i) => x + rate * racer.rate * move[i]));
  }
  return { places: places.slice(0, losses.length), losses };
}

let ways = {};
let heights = [];

function prepare() {
  const name = choice.value;
  start ??= DATA.hollows[name].start;
  ways = Object.fromEntries(Object.entries(RACERS).map(([racer, rules]) => [racer, way(rules, name, start)]));
  const { half } = DATA.hollows[name];
  const side = Array.from({ length: DATA.side }, (_, i) => half * (2 * i / (DATA.side - 1) - 1));
  [heights] = run(`${name}: heights`, side.flatMap(() => side), side.flatMap((y) => side.map(() => y)));
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  heights = heights.map((height) => ((height - low) / (high - low)) ** 0.4);
  draw();
}

function draw() {
  const { half } = DATA.hollows[choice.value];
  const context = paint(canvas, heights, DATA.side, 'paper', 'heat-8');
  const at = ([x, y]) => [canvas.width * (x + half) / (2 * half), canvas.height * (1 - (y + half) / (2 * half))];
  Object.values(ways).forEach(({ places }, i) => {
    const seen = places.slice(0, shown + 1).map(at);
    context.beginPath();
    seen.forEach(([x, y], step) => (step ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.strokeStyle = color(`series-${i + 1}`);
    context.lineWidth = 2.5;
    context.stroke();
    const [x, y] = seen[seen.length - 1];
    context.beginPath();
    context.arc(x, y, 6, 0, 2 * Math.PI);
    context.fillStyle = color(`series-${i + 1}`);
    context.fill();
  });
  const head = element('tr', {}, element('th', {}, `after ${shown} steps`), element('th', {}, 'loss'));
  document.getElementById('table').replaceChildren(head, ...Object.entries(ways).map(([name, { losses }], i) => {
    const loss = losses[Math.min(shown, losses.length - 1)];
    const line = element('span', { class: `line series-${i + 1}` });
    return element('tr', {}, element('th', {}, line, name), element('td', {}, Math.abs(loss) > 1e6 ? 'gone' : show(loss)));
  }));
}

function stop() {
  clearInterval(timer);
  timer = null;
}

const steepness = slider('rate', rate, 0.002, 0.1, 0.002, (value) => { rate = value; prepare(); });
document.getElementById('sliders').append(steepness.label);
document.getElementById('go').addEventListener('click', () => {
  stop();
  shown = 0;
  timer = setInterval(() => {
    shown += 1;
    draw();
    if (shown >= STEPS) stop();
  }, 40);
});
document.getElementById('end').addEventListener('click', () => { stop(); shown = STEPS; draw(); });
choice.addEventListener('change', () => { start = null; prepare(); });
canvas.addEventListener('pointerdown', (event) => {
  const { half } = DATA.hollows[choice.value];
  start = placeOf(canvas, event).map((share) => (2 * share - 1) * half);
  prepare();
});
redrawWithTheme(draw);
prepare();
