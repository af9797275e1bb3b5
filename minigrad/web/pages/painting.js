// A sentence, and the picture as it comes out of noise.

const picture = document.getElementById('picture');
const pen = picture.getContext('2d', { willReadFrequently: true });
[picture.height, picture.width] = SHOWN.size;
let seed = 0;

function shown(pixels) {
  const image = pen.createImageData(picture.width, picture.height);
  const count = pixels.length / 3;
  for (let i = 0; i < count; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = 255 * pixels[c * count + i];
    image.data[4 * i + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

const again = begin(() => (input.value.trim() ? { text: input.value, seed } : nothing()), (answer) => {
  output.textContent = answer.text;
  note(answer);
  if (!answer.pixels) {
    nothing();
    return;
  }
  document.getElementById('stroke').textContent = `after ${answer.stroke} strokes of ${PAGE.settings.strokes}`;
  shown(answer.pixels);
});

function nothing() {
  pen.clearRect(0, 0, picture.width, picture.height);
  [output.textContent, document.getElementById('stroke').textContent] = ['', ''];
  setState('idle', `Words that it knows: ${PAGE.settings.words.slice(PAGE.settings.first).join(', ')}.`);
  return null;
}

document.getElementById('again').addEventListener('click', () => {
  seed = (seed + 1) % SHOWN.seeds;
  again();
});
offer(SHOWN.examples, again);
