// A conversation: what was said before stands above, the newest answer comes into #output. A program that dispatches an
// `input` event sends what stands in #input at once; people press Enter.

const [temperature, tokens, system, talk] = ['temperature', 'tokens', 'system', 'talk'].map((id) => document.getElementById(id));
temperature.value = PAGE.settings.temperature;
tokens.value = PAGE.settings.tokens;
document.getElementById('told').hidden = PAGE.settings.template.system === null;
let [messages, sent, seed, isAnswering] = [[], '', 0, false];

function showDegrees() { document.getElementById('degrees').textContent = Number(temperature.value).toFixed(2); }

function turn(role, text) {
  return element('li', { class: `turn ${role}` }, element('b', { class: 'faint' }, role === 'user' ? 'you' : 'the model'), element('p', {}, text));
}

// The newest answer becomes a part of what was said.
function keepAnswer() {
  if (messages.at(-1)?.role === 'user') {
    messages.push({ role: 'assistant', content: output.textContent });
    talk.append(turn('assistant', output.textContent));
  }
  output.textContent = '';
  isAnswering = false;
}

function setAnswering(isOn) {
  isAnswering = isOn;
  output.setAttribute('aria-busy', String(isOn)); // a screen reader waits for the end
  document.getElementById('stop').disabled = !isOn;
}

const again = begin(() => {
  if (!sent) {
    setState('idle', 'Say something.');
    return null;
  }
  const told = system.value.trim() && PAGE.settings.template.system ? [{ role: 'system', content: system.value.trim() }] : [];
  const count = Math.min(Math.max(Math.round(Number(tokens.value)) || PAGE.settings.tokens, 1), 1000);
  setAnswering(true);
  return { messages: [...told, ...messages], temperature: Number(temperature.value), tokens: count, seed };
}, (answer, isDone) => {
  output.textContent = answer.text;
  const notes = answer.dropped ? ['The conversation has become too long: its oldest turns are forgotten.'] : [];
  if (answer.isCut) notes.push('The text is too long: its end was read.');
  document.getElementById('notes').textContent = notes.join(' ');
  if (isDone) setAnswering(false);
});

function send() {
  const text = input.value.trim();
  if (!text || document.body.dataset.state === 'loading') return;
  if (isAnswering) stop();
  keepAnswer();
  messages.push({ role: 'user', content: text });
  talk.append(turn('user', text));
  [sent, input.value, seed] = [text, '', seed + 1];
  again();
}

function stop() {
  asked += 1;
  worker.postMessage({ type: 'ask', id: asked, request: null });
  setAnswering(false);
  setState('idle', 'Stopped.');
}

input.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
input.addEventListener('input', (event) => { if (!event.isTrusted) send(); });
document.getElementById('send').addEventListener('click', send);
document.getElementById('stop').addEventListener('click', stop);
document.getElementById('anew').addEventListener('click', () => {
  if (isAnswering) stop();
  [messages, sent, output.textContent] = [[], '', ''];
  talk.replaceChildren();
  input.focus();
  setState('idle', 'A new conversation.');
});
temperature.addEventListener('input', showDegrees);
showDegrees();
document.getElementById('examples').replaceChildren(...SHOWN.examples.map((text) => element('button', {
  type: 'button', onclick: () => { input.value = text; send(); },
}, text)));
