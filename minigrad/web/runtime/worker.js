// The worker of a page: it reads the weights, which come in parts after the page, and answers one request at a time; a newer
// one takes the place of those that wait.

let PAGE = null;
let WEIGHTS = null;
let arrived = 0;
let newest = 0;

// Takes a part of the weights; true with the last one.
function received(text) {
  const bytes = bytesOf(text);
  WEIGHTS.set(bytes, arrived);
  arrived += bytes.length;
  return arrived === WEIGHTS.length;
}

function loaded(page) {
  const began = performance.now();
  const tensors = tensorsOf(page.tensors, WEIGHTS);
  const programs = Object.fromEntries(Object.entries(page.programs).map(([name, form]) => [name, new Program(form, tensors)]));
  PAGE = { ...page, tensors, programs, tokenizer: tokenizerOf(page.tokenizer) };
  return performance.now() - began;
}

// Lets other messages arrive; true if a newer request has. A timer would wait longer.
const turn = new MessageChannel();

function isOutdated(id) {
  return new Promise((resolve) => {
    turn.port1.onmessage = () => resolve(id !== newest);
    turn.port2.postMessage(null);
  });
}

async function answered({ id, request }) {
  if (await isOutdated(id)) return;
  const began = performance.now();
  const told = (part) => {
    self.postMessage({ type: 'part', id, answer: part });
    return isOutdated(id);
  };
  const answer = await TASKS[PAGE.kind](PAGE, request, told);
  self.postMessage({ type: 'answer', id, answer, milliseconds: performance.now() - began });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.type === 'load') [PAGE, WEIGHTS] = [data.page, new Uint8Array(data.page.bytes)];
    else if (data.type === 'weights') {
      if (received(data.text)) self.postMessage({ type: 'ready', milliseconds: loaded(PAGE) });
    } else {
      newest = data.id;
      if (data.request) await answered(data);
    }
  } catch (error) {
    self.postMessage({ type: 'failed', id: data.id ?? null, message: error.message });
  }
};
