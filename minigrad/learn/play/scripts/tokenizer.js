// The pieces that tokenizers make of a text, by the code of exported pages.

const MADE = Object.fromEntries(Object.entries(DATA.tokenizers).map(([name, form]) => [name, tokenizerOf(form)]));
const field = document.getElementById('text');

function piece(tokenizer, id) {
  const text = tokenizer.token(id).replace(/ /gu, '␣').replace(/\n/gu, '⏎').replace(/\t/gu, '⇥');
  return element('span', { class: id === UNK ? 'unknown' : '', title: `number ${id}` }, id === UNK ? 'unknown' : text || '∅');
}

function draw() {
  const text = field.value.slice(0, 2000);
  document.getElementById('found').replaceChildren(...Object.entries(MADE).flatMap(([name, tokenizer]) => {
    const ids = tokenizer.encode(text);
    return [
      element('h2', {}, `${name}: ${ids.length} of ${tokenizer.size} known`),
      element('div', { class: 'pieces', 'data-name': name }, ...ids.map((id) => piece(tokenizer, id))),
    ];
  }));
}

field.addEventListener('input', draw);
draw();
