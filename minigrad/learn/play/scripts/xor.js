// Nine weights, the surface that they make, and steps of gradient descent on them.

const NAMES = ['first unit: a', 'second unit: a', 'first unit: b', 'second unit: b', 'first unit: bias', 'second unit: bias', 'output: first', 'output: second', 'output: bias'];
const BY_HAND = [20, -20, 20, -20, -10, 30, 20, 20, -30];
const WANTED = [0, 1, 1, 0];
const canvas = document.getElementById('surface');
let weights = [3, -2, 3, -2, -1, 3, 2, 2, -2];

function parts() {
  return [weights.slice(0, 4), weights.slice(4, 6), weights.slice(6, 8), weights.slice(8)];
}

const sliders = NAMES.map((name, i) => slider(name, weights[i], -30, 30, 0.1, (value) => { weights[i] = value; draw(); }));
document.getElementById('sliders').append(...sliders.map(({ label }) => label));

function draw() {
  const [surface] = run('surface', ...parts());
  const [said, [loss]] = run('step', ...parts());
  const context = paint(canvas, surface, DATA.side);
  const at = (share) => canvas.width * (share + 0.25) / 1.5;
  said.forEach((value, i) => {
    const [x, y] = [at(Math.floor(i / 2)), canvas.height - at(i % 2)];
    const isRight = Math.abs(value - WANTED[i]) < 0.5;
    context.beginPath();
    context.arc(x, y, 20, 0, 2 * Math.PI);
    context.fillStyle = color('paper');
    context.fill();
    context.lineWidth = 3;
    context.strokeStyle = color(isRight ? 'output-line' : 'error');
    context.stroke();
    context.fillStyle = color('ink');
    context.font = '14px sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(value.toFixed(2), x, y);
  });
  const right = said.filter((value, i) => Math.abs(value - WANTED[i]) < 0.5).length;
  const verdict = document.getElementById('verdict');
  verdict.textContent = `${right} of 4 corners right, loss ${show(loss)}`;
  verdict.className = `large ${right === 4 ? 'right' : ''}`;
}

function put(numbers) {
  weights = numbers.map((number) => Math.min(Math.max(number, -30), 30));
  sliders.forEach((one, i) => one.set(weights[i]));
  draw();
}

document.getElementById('learn').addEventListener('click', () => {
  let moved = [...weights];
  for (let step = 0; step < 100; step += 1) {
    weights = moved;
    const [, , ...gradients] = run('step', ...parts());
    moved = moved.map((weight, i) => weight - 4 * gradients.flat()[i]);
  }
  put(moved);
});
document.getElementById('random').addEventListener('click', () => put(weights.map(() => 6 * Math.random() - 3)));
document.getElementById('hand').addEventListener('click', () => put(BY_HAND));
redrawWithTheme(draw);
draw();
