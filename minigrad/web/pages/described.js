// A picture or a sound, one of those in the page or one's own, and what the model says of it.

const isSound = SHOWN.medium === 'sound';
const [file, record, picture] = ['file', 'record', 'picture'].map((id) => document.getElementById(id));
const pen = picture.getContext('2d', { willReadFrequently: true });
[picture.height, picture.width] = isSound ? [80, 320] : SHOWN.shape.slice(1);
file.accept = isSound ? 'audio/*,.wav' : 'image/*';
record.hidden = !isSound || !('MediaRecorder' in window && navigator.mediaDevices);
let own = null;

function shownMedia(media) {
  pen.clearRect(0, 0, picture.width, picture.height);
  if (isSound) {
    pen.fillStyle = getComputedStyle(document.body).color;
    const each = media.length / picture.width;
    for (let x = 0; x < picture.width; x++) {
      const high = Math.max(...media.subarray(Math.floor(x * each), Math.floor((x + 1) * each)).map(Math.abs));
      pen.fillRect(x, picture.height / 2 * (1 - high), 1, Math.max(1, picture.height * high));
    }
    return;
  }
  const image = pen.createImageData(picture.width, picture.height);
  const count = media.length / 3;
  for (let i = 0; i < count; i++) image.data.set([media[i] * 255, media[count + i] * 255, media[2 * count + i] * 255, 255], 4 * i);
  pen.putImageData(image, 0, 0);
}

const again = begin(() => {
  if (own) return { given: own };
  const number = Number(input.value);
  if (SHOWN.examples.includes(String(number))) return { number };
  output.textContent = '';
  document.getElementById('bars').replaceChildren();
  setState('idle', `A number from 1 to ${SHOWN.examples.length}, or a ${SHOWN.medium} of yours.`);
  return null;
}, (answer) => {
  output.textContent = answer.text;
  shownMedia(answer.media);
  document.getElementById('bars').replaceChildren(...answer.rows.map(({ name, value }) => bar(visible(name), value, percent(value))));
});

function take(numbers, note) {
  own = numbers;
  input.value = '';
  document.getElementById('notes').textContent = note;
  again();
}

// The samples of a sound at the rate of the model, cut or followed by silence.
async function soundOf(bytes) {
  const [size] = SHOWN.shape;
  const audio = await new OfflineAudioContext(1, size, SHOWN.rate).decodeAudioData(bytes);
  const channels = Array.from({ length: audio.numberOfChannels }, (_, c) => audio.getChannelData(c));
  const samples = Array.from({ length: size }, (_, i) => channels.reduce((total, channel) => total + (channel[i] ?? 0), 0) / channels.length);
  take(samples, audio.length > size ? `Only the first ${(size / SHOWN.rate).toFixed(0)} seconds are heard.` : '');
}

// The pixels of a picture, stretched to what the model sees.
async function pictureOf(blob) {
  const bitmap = await createImageBitmap(blob);
  pen.drawImage(bitmap, 0, 0, picture.width, picture.height);
  const { data } = pen.getImageData(0, 0, picture.width, picture.height);
  const count = picture.width * picture.height;
  take(Array.from({ length: 3 * count }, (_, i) => data[4 * (i % count) + Math.floor(i / count)] / 255), '');
}

async function opened(blob) {
  try {
    await (isSound ? soundOf(await blob.arrayBuffer()) : pictureOf(blob));
  } catch (error) {
    document.getElementById('notes').textContent = `That is no ${SHOWN.medium} that this browser can read: ${error.message}`;
  }
}

file.addEventListener('change', () => { if (file.files.length) opened(file.files[0]); });
record.addEventListener('click', async () => {
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const recorder = new MediaRecorder(stream);
    recorder.ondataavailable = ({ data }) => {
      stream.getTracks().forEach((track) => track.stop());
      opened(data);
    };
    recorder.start();
    setState('busy', `Recording for ${(SHOWN.shape[0] / SHOWN.rate).toFixed(0)} seconds: speak now.`);
    setTimeout(() => recorder.stop(), 1000 * SHOWN.shape[0] / SHOWN.rate);
  } catch (error) {
    document.getElementById('notes').textContent = `This browser does not let the page record: ${error.message}`;
  }
});
input.addEventListener('input', () => { own = null; document.getElementById('notes').textContent = ''; });
offer(SHOWN.examples, again);
