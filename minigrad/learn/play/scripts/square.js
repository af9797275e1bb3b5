// The multiplications of one block: with weights they grow like n, between words like n².

const canvas = document.getElementById('grid');
let [n, d] = [12, 64];

function bar(name, count, most) {
  const fill = element('i', { 'aria-hidden': 'true' });
  fill.style.width = `${100 * count / most}%`;
  return element('div', { class: 'bar' }, fill, element('span', {}, `${name}: ${Math.round(count).toLocaleString('en')}`));
}

function draw() {
  const [[weights], [pairs]] = run('cost', [n], [d]);
  const [, [twice]] = run('cost', [2 * n], [d]);
  const most = Math.max(weights, pairs);
  document.getElementById('bars').replaceChildren(
    bar('words times weights, 12 n d²', weights, most), bar('word with word, 2 n² d', pairs, most),
  );
  document.getElementById('said').textContent = `${n} words look at ${n} words: ${(n * n).toLocaleString('en')} cells. Twice as many words: `
    + `${show(twice / pairs)} times the work between them. From ${6 * d} words on, that is more than all the rest.`;
  const context = canvas.getContext('2d');
  context.fillStyle = color('surface');
  context.fillRect(0, 0, canvas.width, canvas.height);
  const size = canvas.width / n;
  const gap = size > 6 ? 1 : 0;
  for (let row = 0; row < n; row += 1) {
    for (let column = 0; column < n; column += 1) {
      context.fillStyle = color(column === row ? 'accent' : 'heat-4');
      if (size > 6 || (row + column) % 2 === 0 || column === row) context.fillRect(column * size + gap, row * size + gap, size - 2 * gap, size - 2 * gap);
    }
  }
}

document.getElementById('sliders').append(
  slider('n, words', n, 1, 128, 1, (value) => { n = value; draw(); }).label,
  slider('d, numbers a word', d, 2, 128, 2, (value) => { d = value; draw(); }).label,
);
redrawWithTheme(draw);
draw();
