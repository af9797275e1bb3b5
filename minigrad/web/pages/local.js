// A page that holds its model, or has it in scripts beside it: a worker of the browser runs it.

const READY = 'Ready. Nothing leaves this page: the model runs in this browser.';
const PLACE = 'in this browser';

function missing() {
  const needed = {
    'web workers': 'Worker' in window && 'Blob' in window && 'URL' in window,
    'large whole numbers': 'BigInt64Array' in window,
    'Unicode patterns': (() => { try { return Boolean(new RegExp('(?<=\\p{L})', 'u')); } catch { return false; } })(),
  };
  return Object.keys(needed).filter((name) => !needed[name]);
}

function openWorker() {
  const source = new Blob([document.getElementById('worker').textContent], { type: 'text/javascript' });
  return new Worker(URL.createObjectURL(source));
}

async function sendWeights() {
  for (let part = 1; part <= PARTS; part++) worker.postMessage({ type: 'weights', text: await weightsOf(part) });
}
