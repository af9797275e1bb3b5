// What a model says of a picture or a sound: the likeliest word after each.

TASKS.described = (page, { number, given }) => {
  const { settings, programs, tensors } = page;
  const samples = tensors[settings.samples];
  const size = samples.size / samples.shape[0];
  const media = given ? Float32Array.from(given) : samples.data.slice((number - 1) * size, number * size);
  const [memory] = programs.encode.run([new NDArray('float32', [1, ...samples.shape.slice(1)], media)]);
  const continuation = new Continuation(programs, settings, [memory]);
  let scores = continuation.start(tokensOf([settings.start]));
  const rows = [];
  while (rows.length < settings.most) {
    const [{ token, log }] = candidates(rowOf(scores, 0), 1);
    if (token === settings.end) break;
    rows.push({ name: settings.words[token], value: Math.exp(log), isHidden: settings.hidden.includes(token) });
    if (rows.length < settings.most) scores = continuation.step(tokensOf([token]));
  }
  const seen = rows.filter(({ isHidden }) => !isHidden);
  return { text: seen.map(({ name }) => name).join(settings.gap), rows: seen, media };
};
