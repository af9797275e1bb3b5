// Sliders and choices for the inputs of a model; the text field says the same, in words that can be typed.

const fields = SHOWN.inputs;
const controls = fields.map((field) => {
  const attributes = field.choices ? {} : { type: 'range', min: field.least, max: field.most, step: field.step };
  const control = element(field.choices ? 'select' : 'input', attributes, ...(field.choices ?? []).map((name, i) => (
    element('option', { value: i }, name)
  )));
  control.value = field.value;
  return control;
});
const values = fields.map((field) => field.value);
const readings = fields.map((field) => (field.choices ? null : element('output', {})));

document.getElementById('controls').append(...fields.map((field, i) => (
  element('label', {}, element('span', {}, field.name), controls[i], readings[i])
)));

function wordOf(i) {
  return fields[i].choices ? fields[i].choices[values[i]] : show(values[i]);
}

function showValues() {
  controls.forEach((control, i) => {
    control.value = values[i];
    if (readings[i]) readings[i].textContent = wordOf(i);
  });
}

// The inputs that the words of a text stand for; what is left out stays as it is for choices, and is refused for numbers.
function typed(text) {
  const words = text.split(/[\s,]+/u).filter(Boolean);
  const found = fields.map((field) => (field.choices ? 0 : NaN));
  let place = 0;
  for (const word of words) {
    while (place < fields.length && fields[place].choices && choiceOf(fields[place], word) < 0) place += 1;
    if (place >= fields.length) return null;
    found[place] = fields[place].choices ? choiceOf(fields[place], word) : Number(word);
    place += 1;
  }
  return words.length && found.every(Number.isFinite) ? found : null;
}

function choiceOf(field, word) {
  return field.choices.findIndex((name) => name.toLowerCase() === word.toLowerCase());
}

const again = begin(() => {
  showValues();
  const inputs = [];
  fields.forEach((field, i) => {
    inputs[field.input] ??= [];
    inputs[field.input].push(values[i]);
  });
  return { inputs };
}, (answer) => {
  output.textContent = answer.text;
  note(answer);
  document.getElementById('bars').replaceChildren(...rowsOf(answer));
});

controls.forEach((control, i) => control.addEventListener('input', () => {
  values[i] = Number(control.value);
  input.value = fields.map((_, k) => wordOf(k)).join(' ');
  again();
}));
offer(SHOWN.examples, () => {
  const found = typed(input.value);
  if (found) {
    values.splice(0, values.length, ...found);
    again();
  } else {
    output.textContent = '';
    document.getElementById('bars').replaceChildren();
    setState('idle', `Type ${SHOWN.wanted}.`);
  }
});
input.value = fields.map((_, i) => wordOf(i)).join(' ');
