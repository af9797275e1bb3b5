// The weights are in the page.

const PARTS = 1;

async function weightsOf() {
  return document.getElementById('weights').textContent;
}
