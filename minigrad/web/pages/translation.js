const [beams, alpha] = ['beams', 'alpha'].map((id) => document.getElementById(id));
beams.value = PAGE.settings.beams;
alpha.value = PAGE.settings.alpha;

function inRange(field, otherwise) {
  const value = Number(field.value);
  return field.value !== '' && value >= Number(field.min) && value <= Number(field.max) ? value : otherwise;
}

function clear() {
  output.textContent = '';
  for (const id of ['sure', 'notes', 'alternatives', 'alignment']) document.getElementById(id).replaceChildren();
}

const again = begin(() => {
  if (input.value.trim()) {
    return {
      text: input.value, beams: Math.round(inRange(beams, PAGE.settings.beams)), alpha: inRange(alpha, PAGE.settings.alpha),
    };
  }
  clear();
  return { text: '', beams: 1, alpha: 1 };
}, (answer) => {
  output.textContent = answer.text;
  note(answer);
  const words = answer.pieces.flatMap(({ target, chances }) => chances.map((chance, i) => ({ chance, token: target[i] })));
  document.getElementById('sure').textContent = words.length ? howSure(words) : '';
  const top = answer.alternatives.length ? answer.alternatives[0].score : 0;
  document.getElementById('alternatives').replaceChildren(...answer.alternatives.map(({ text, score }) => (
    bar(text, Math.exp(score - top), score.toFixed(3), 'li')
  )));
  document.getElementById('alignment').replaceChildren(...answer.pieces.map(alignment));
});

// How sure it is of each word, and where that is little, of which word least.
function howSure(words) {
  const each = Math.exp(words.reduce((total, { chance }) => total + Math.log(chance), 0) / words.length);
  const least = words.reduce((a, b) => (b.chance < a.chance ? b : a));
  const [mean, weak] = PAGE.settings.doubted;
  const sure = `${percent(each)} sure of each word`;
  return each < mean || least.chance < weak ? `doubtful: ${sure}, ${percent(least.chance)} of “${visible(least.token)}”` : sure;
}

// Where each token looked when it was chosen: a row for each, a column for each token of the source.
function alignment({ source, target, chances, seen }) {
  if (!seen.length) return element('p', { class: 'faint' }, 'This model does not say.');
  const head = element('tr', {}, element('td', {}), ...source.map((token) => element('th', { scope: 'col' }, visible(token))));
  const lines = target.map((token, i) => element(
    'tr', {}, element('th', { scope: 'row' }, `${visible(token)}  ${percent(chances[i])}`),
    ...seen[i].map((share) => cell(share)),
  ));
  return element('table', {}, element('thead', {}, head), element('tbody', {}, ...lines));
}

function cell(share) {
  const made = element('td', { title: percent(share) }, share >= 0.095 ? String(Math.round(100 * share)) : '');
  made.style.background = `color-mix(in srgb, var(--heat-8) ${Math.round(100 * share)}%, transparent)`;
  return made;
}

offer(SHOWN.examples, again);
beams.addEventListener('input', again);
alpha.addEventListener('input', again);
