const again = begin(() => (input.value.trim() ? { text: input.value } : nothing()), (answer) => {
  output.textContent = answer.text;
  note(answer);
  const groups = (answer.blanks ?? []).map((words, i) => group(`blank ${i + 1}`, words.map(({ token, chance }) => (
    bar(token, chance, percent(chance))
  ))));
  if (typeof answer.follows === 'number') {
    groups.push(group('the second text follows the first', [bar('yes', answer.follows, percent(answer.follows))]));
  }
  if (answer.rows) groups.push(...rowsOf(answer));
  document.getElementById('bars').replaceChildren(...groups);
});

function nothing() {
  output.textContent = '';
  document.getElementById('bars').replaceChildren();
  setState('idle', 'Type a text.');
  return null;
}

offer(SHOWN.examples, again);
