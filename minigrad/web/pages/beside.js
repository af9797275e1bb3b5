// The weights are in scripts beside the page, weights-1.js and so on, each of which calls `weights(text)`: a page that was
// opened from a folder may load scripts, but no other files.

const PARTS = PAGE.parts;
let arrived = null;

window.weights = (text) => { arrived = text; };

function weightsOf(part) {
  setState('loading', `Loading the weights: part ${part} of ${PARTS}, ${(PAGE.bytes / 1e6).toFixed(0)} MB in all.`);
  return new Promise((resolve, reject) => {
    const name = `weights-${part}.js`;
    const script = document.createElement('script');
    const lacks = () => reject(new Error(`${name} is missing or damaged: it belongs beside this page, in the same folder.`));
    arrived = null;
    script.onload = () => {
      script.remove();
      if (arrived === null) lacks();
      else resolve(arrived);
    };
    script.onerror = lacks;
    script.src = name;
    document.head.append(script);
  });
}
