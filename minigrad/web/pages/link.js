// What all pages do: start what computes, ask it whenever something changes, and show its answers.

const { page: PAGE, shown: SHOWN } = DATA;
const input = document.getElementById('input');
const output = document.getElementById('output');
const state = document.getElementById('state');
let asked = 0; // the number of the newest request
let worker = null;

// `data-state` of the body is loading, busy, idle or failed: what drives this page can wait for it.
function setState(name, text) {
  document.body.dataset.state = name;
  state.textContent = text;
  state.classList.toggle('failed', name === 'failed');
}

function ask(request) {
  asked += 1;
  if (document.body.dataset.state === 'failed' && !worker) return;
  setState('busy', 'Computing …');
  worker.postMessage({ type: 'ask', id: asked, request });
}

// Starts the page: `request()` says what is asked now, null for nothing; `show(answer, isDone)` shows what came.
function begin(request, show) {
  const lacks = missing();
  if (lacks.length) {
    setState('failed', `This browser lacks ${lacks.join(' and ')}: use a newer one.`);
    return () => {};
  }
  const again = () => {
    const wanted = request();
    if (wanted !== null) ask(wanted);
    else {
      asked += 1;
      worker.postMessage({ type: 'ask', id: asked, request: null });
    }
  };
  try {
    worker = openWorker();
  } catch (error) {
    setState('failed', `This browser does not let a page start a worker: ${error.message}`);
    return () => {};
  }
  worker.onerror = (event) => setState('failed', `This browser cannot run the model: ${event.message || 'its worker does not start'}.`);
  worker.onmessage = ({ data }) => {
    if (data.type === 'ready') {
      setState('idle', READY);
      for (const part of document.querySelectorAll('textarea, input, button, select')) part.disabled = false;
      again();
    } else if (data.id !== null && data.id !== asked) return;
    else if (data.type === 'failed') setState('failed', `That went wrong: ${data.message}`);
    else {
      show(data.answer, data.type === 'answer');
      if (data.type === 'answer') setState('idle', `Computed in ${Math.max(1, Math.round(data.milliseconds))} ms, ${PLACE}.`);
    }
  };
  worker.postMessage({ type: 'load', page: PAGE });
  sendWeights().catch((error) => setState('failed', error.message));
  return again;
}

// A button for each example, which puts it where text is typed.
function offer(examples, again) {
  document.getElementById('examples').replaceChildren(...examples.map((text) => element('button', {
    type: 'button', onclick: () => { input.value = text; input.dispatchEvent(new Event('input')); },
  }, text.length > 60 ? `${text.slice(0, 59)}…` : text)));
  input.addEventListener('input', again);
  if (!input.value && examples.length) [input.value] = examples;
}

function percent(share) {
  return share > 0.9995 ? '100 %' : share < 0.0005 ? '0 %' : `${(100 * share).toFixed(1)} %`;
}

// A line with a name, a number, and a bar as long as its share.
function bar(name, share, number, kind = 'div') {
  const fill = element('i', { 'aria-hidden': 'true' });
  fill.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  return element(kind, { class: 'bar' }, fill, element('span', {}, name), element('span', { class: 'number' }, number));
}

// A token as people can see it.
function visible(token) {
  return token.replace(/ /gu, '␣').replace(/\n/gu, '⏎').replace(/\t/gu, '⇥') || '∅';
}

function note(answer) {
  const said = [];
  if (answer.unknown && answer.unknown.length) said.push(`Unknown to this model: ${answer.unknown.slice(0, 8).join(', ')}.`);
  if (answer.isCut) said.push('The text is too long: a part of it was read.');
  document.getElementById('notes').textContent = said.join(' ');
}
