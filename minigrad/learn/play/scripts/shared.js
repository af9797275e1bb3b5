// What the pages share: the traced programs, sliders, and a surface of numbers as pixels.

const TENSORS = tensorsOf(DATA.tensors, bytesOf(document.getElementById('weights').textContent));
const PROGRAMS = Object.fromEntries(Object.entries(DATA.programs).map(([name, form]) => [name, new Program(form, TENSORS)]));

// The outputs of a program for lists of numbers, each of the shape that was traced.
function run(name, ...inputs) {
  const { form } = PROGRAMS[name];
  const arrays = inputs.map((numbers, i) => filledArray(form.inputs[i], numbers));
  return PROGRAMS[name].run(arrays).map((made) => Array.from(made.data));
}

function filledArray(input, numbers) {
  return new NDArray(input.dtype, input.shape, Float32Array.from(numbers));
}

function slider(name, value, least, most, step, changed) {
  const control = element('input', { type: 'range', min: least, max: most, step });
  const reading = element('output', {}, show(value));
  control.value = value;
  control.addEventListener('input', () => {
    reading.textContent = show(Number(control.value));
    changed(Number(control.value));
  });
  const label = element('label', {}, element('span', {}, name), control, reading);
  return { label, set(number) { control.value = number; reading.textContent = show(Math.round(number * 100) / 100); } };
}

function color(role) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
}

function channels(role) {
  const text = color(role);
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

// Fills a canvas with shares from 0 to 1, the first row at the bottom, between two colours.
function paint(canvas, shares, side, low = 'paper', high = 'accent') {
  const [from, to] = [channels(low), channels(high)];
  const small = document.createElement('canvas');
  small.width = side;
  small.height = side;
  const pixels = small.getContext('2d').createImageData(side, side);
  shares.forEach((share, i) => {
    const place = 4 * ((side - 1 - Math.floor(i / side)) * side + (i % side));
    for (let c = 0; c < 3; c += 1) pixels.data[place + c] = from[c] + (to[c] - from[c]) * Math.min(Math.max(share, 0), 1);
    pixels.data[place + 3] = 255;
  });
  small.getContext('2d').putImageData(pixels, 0, 0);
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  return context;
}

// Where a pointer is on a canvas, from 0 to 1, y upwards.
function placeOf(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
}

function redrawWithTheme(draw) {
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
}
