const [temperature, tokens, place] = ['temperature', 'tokens', 'place'].map((id) => document.getElementById(id));
temperature.value = PAGE.settings.temperature;
tokens.value = PAGE.settings.tokens;
let [seed, stopped, bars] = [0, false, []];

function showBars() {
  const chosen = bars[Number(place.value) - 1];
  document.getElementById('which').textContent = chosen ? `${place.value} of ${bars.length}: ${visible(chosen.token)}` : '';
  document.getElementById('bars').replaceChildren(...(chosen ? chosen.next : []).map(({ token, chance }) => (
    bar(visible(token), chance, percent(chance))
  )));
}

const again = begin(() => {
  document.getElementById('degrees').textContent = Number(temperature.value).toFixed(2);
  [stopped, bars] = [false, []];
  place.max = 1;
  const count = Math.min(Math.max(Math.round(Number(tokens.value)) || PAGE.settings.tokens, 1), 1000);
  return { text: input.value, temperature: Number(temperature.value), tokens: count, seed };
}, (answer, isDone) => {
  if (stopped) return;
  document.getElementById('given').textContent = input.value;
  output.textContent = answer.text;
  output.setAttribute('aria-busy', String(!isDone)); // a screen reader waits for the end
  note(answer);
  const follows = place.value === place.max;
  bars = isDone ? answer.bars : [...bars, ...answer.bars];
  place.max = Math.max(bars.length, 1);
  if (follows) place.value = place.max;
  showBars();
});

place.addEventListener('input', showBars);
for (const part of [temperature, tokens]) part.addEventListener('input', again);
document.getElementById('again').addEventListener('click', () => {
  seed += 1;
  again();
});
document.getElementById('stop').addEventListener('click', () => {
  stopped = true;
  asked += 1;
  worker.postMessage({ type: 'ask', id: asked, request: null });
  output.setAttribute('aria-busy', 'false');
  setState('idle', 'Stopped.');
});
offer(SHOWN.examples, again);
