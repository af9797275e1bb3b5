// A picture out of noise: each stroke goes a part of the way towards what the model sees.

// The numbers of a sentence; a word of no picture is named.
function sentenceIds({ words, first, frame: [before, after], pad, longest }, text) {
  const said = wordsOf(text);
  const unknown = said.filter((word) => !words.includes(word, first));
  if (unknown.length) return { unknown };
  const ids = [...before, ...said.map((word) => words.indexOf(word)), ...after];
  if (!said.length || ids.length >= longest + 1) return { unknown: [], isCut: Boolean(said.length) };
  return { ids: [...ids, ...new Array(longest - ids.length).fill(pad)] };
}

// How much of a picture is not paper, and its mean colour there.
function pictureSummary(pixels) {
  const count = pixels.length / 3;
  const channels = [0, 1, 2].map((c) => pixels.subarray(c * count, (c + 1) * count));
  const paper = channels.map((channel) => {
    const sorted = Float32Array.from(channel).sort();
    return count % 2 ? sorted[count >> 1] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
  });
  const places = [...Array(count).keys()].filter((i) => channels.some((channel, c) => Math.abs(channel[i] - paper[c]) > 0.2));
  const colour = channels.map((channel, c) => (
    places.length ? places.reduce((total, i) => total + channel[i], 0) / places.length : paper[c]
  ));
  const hex = colour.map((share) => Math.round(255 * share).toString(16).padStart(2, '0')).join('');
  return `painted ${(places.length / count).toFixed(3)}, colour #${hex}`;
}

TASKS.painting = async (page, { text, seed }, told) => {
  const { settings, tensors, programs } = page;
  const { ids, unknown, isCut } = sentenceIds(settings, text);
  if (!ids) return { text: '', pixels: null, unknown, isCut };
  const noise = tensors[settings.noise];
  const size = noise.size / noise.shape[0];
  let picture = new NDArray('float32', [1, ...noise.shape.slice(1)], noise.data.slice(seed * size, (seed + 1) * size));
  const seen = () => Float32Array.from(picture.data, (x) => Math.min(Math.max(1 - x / 2, 0), 1));
  const number = (x) => new NDArray('float32', [1], Float32Array.of(x));
  for (let stroke = 0; stroke < settings.strokes; stroke++) {
    if (await told({ text: '', pixels: seen(), stroke })) break;
    const inputs = [picture, number(stroke / settings.strokes), number(1 / (settings.strokes - stroke)), tokensOf(ids)];
    [picture] = programs.stroke.run(inputs);
  }
  return { text: pictureSummary(seen()), pixels: seen(), stroke: settings.strokes, unknown: [] };
};
