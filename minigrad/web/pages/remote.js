// A page whose model is on the server that it came from: it is asked in the place of a worker, and answers as one.

const READY = 'Ready. The model runs on the server that this page came from.';
const PLACE = 'on the server';
const TYPING = 150; // milliseconds without a new request before one is sent

function missing() {
  const needed = { 'requests that stream': 'fetch' in window && 'ReadableStream' in window && 'AbortController' in window };
  return Object.keys(needed).filter((name) => !needed[name]);
}

// What is sent for each kind of page, and what becomes of it: `ASKED[kind](request, signal, told)` returns the answer.
const ASKED = {
  translation: async ({ text, beams, alpha }, signal) => {
    if (!text.trim()) return { text: '', alternatives: [], pieces: [], unknown: [] };
    const response = await posted('api/translate', { texts: [text], beams, alpha, details: true }, signal);
    return (await response.json()).translations[0];
  },
  continuation: async ({ text, temperature, tokens, seed }, signal, told) => {
    const asked = { prompt: text, temperature, tokens, seed, chances: true, stream: true };
    const response = await posted('api/sample', asked, signal);
    const answer = { text: '', bars: [], unknown: [] };
    for await (const part of events(response)) {
      if (part.error) throw new Error(part.error.message);
      if (part.text) answer.text += part.text;
      if (part.chance && answer.bars.length < 200) {
        answer.bars.push(part.chance);
        told({ text: answer.text, bars: [part.chance] });
      } else told({ text: answer.text, bars: [] });
    }
    return answer;
  },
  predict: async ({ text }, signal) => {
    const response = await posted('api/predict', { inputs: [text] }, signal);
    const [answer] = (await response.json()).answers;
    return { text: shown(answer) };
  },
  embed: async ({ text }, signal) => {
    const response = await posted('api/embed', { texts: [text] }, signal);
    return { text: (await response.json()).vectors[0].map((x) => x.toFixed(4)).join(' ') };
  },
};

function shown(answer) {
  if (answer === null || typeof answer !== 'object') return String(answer);
  return Object.entries(answer).map(([name, value]) => (
    `${name}: ${value !== null && typeof value === 'object' ? JSON.stringify(value) : value}`
  )).join('\n');
}

async function posted(path, content, signal) {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(content), headers: { 'Content-Type': 'application/json' }, signal });
  if (!response.ok) throw new Error((await response.json()).error.message);
  return response;
}

// The objects of server-sent events, as they come.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part.slice('data: '.length));
  }
}

class Remote {
  postMessage({ type, id, request }) {
    if (type === 'load') {
      queueMicrotask(() => this.onmessage({ data: { type: 'ready' } }));
      return;
    }
    if (this.asking) this.asking.abort();
    clearTimeout(this.timer);
    if (!request) return;
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.timer = setTimeout(() => this.answer(id, request, signal), TYPING);
  }

  async answer(id, request, signal) {
    const began = performance.now();
    const told = (answer) => { if (!signal.aborted) this.onmessage({ data: { type: 'part', id, answer } }); };
    try {
      const answer = await ASKED[PAGE.kind](request, signal, told);
      this.onmessage({ data: { type: 'answer', id, answer, milliseconds: performance.now() - began } });
    } catch (error) {
      if (!signal.aborted) this.onmessage({ data: { type: 'failed', id, message: error.message } });
    }
  }
}

async function sendWeights() {} // they are on the server

function openWorker() {
  return new Remote();
}
