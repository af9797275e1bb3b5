// What a page answers, by its kind: `TASKS[kind](page, request, told)` returns what is shown; `told` is given parts on the way.

const TASKS = {};

function tokensOf(ids) {
  return new NDArray('int64', [1, ids.length], Float64Array.from(ids));
}

// A source with gaps, which are typed as <mask>; or any text, and its end.
function sourceIds(page, text) {
  const { tokenizer, settings } = page;
  if (!settings.gaps) return [...tokenizer.encode(settings.prefix + text), settings.end];
  const [first, ...others] = text.split(/ ?<mask>/u).map((part) => tokenizer.encode(part));
  return [...first, ...others.flatMap((part) => [MASK, ...part]), settings.end];
}

TASKS.translation = (page, { text, beams, alpha }) => {
  const { tokenizer, settings } = page;
  const encode = (part) => sourceIds(page, part);
  const pieces = piecesOf(text, encode, settings).map((piece) => {
    const ids = encode(piece);
    const most = settings.most === null ? Infinity : settings.most - settings.prompt.length + 1;
    const length = Math.max(1, Math.min(2 * ids.length + 10, most));
    const continuation = new Continuation(page.programs, settings, [tokensOf(ids)]);
    const found = beamSearch(continuation, settings.prompt, { beams, length, end: settings.end, alpha });
    return { ids, unknown: settings.gaps ? [] : tokenizer.unknown(piece), found };
  });
  const count = Math.max(0, ...pieces.map((piece) => piece.found.length));
  const alternatives = Array.from({ length: count }, (_, rank) => {
    const chosen = pieces.map(({ found }) => found[Math.min(rank, found.length - 1)]);
    return {
      text: chosen.map((one) => tokenizer.decode(said(one)).trim()).join(' ').trim(),
      score: chosen.reduce((total, one) => total + one.worth, 0),
    };
  });
  return {
    text: alternatives.length ? alternatives[0].text : '', alternatives,
    unknown: [...new Set(pieces.flatMap((piece) => piece.unknown))],
    pieces: pieces.map(({ ids, found: [best] }) => ({
      source: ids.map((id) => tokenizer.token(id)),
      target: best.tokens.map((id) => tokenizer.token(id)), chances: best.chances, seen: best.seen,
    })),
  };
};

function said({ tokens, ended }) {
  return ended ? tokens.slice(0, -1) : tokens;
}

TASKS.continuation = async (page, { text, temperature, tokens, seed }, told) => {
  const { tokenizer, settings } = page;
  const known = tokenizer.encode(text).filter((id) => id !== settings.unknown);
  const prompt = known.length ? known : settings.beginning;
  const before = tokenizer.apart ? [] : known;
  const shown = tokenizer.decode(before).length;
  const random = randomNumbers(seed);
  let continuation = new Continuation(page.programs, settings, []);
  let window = prompt.slice(-settings.context);
  let scores = continuation.start(tokensOf(window));
  const [written, bars] = [[], []];
  const textOf = (ids) => tokenizer.decode([...before, ...ids]).slice(shown);
  const answer = () => ({ text: textOf(written), bars, unknown: tokenizer.unknown(text) });
  for (let count = 0; count < tokens; count++) {
    const likely = probabilities(rowOf(scores, 0), temperature);
    const token = drawn(likely, random());
    if (bars.length < 200) bars.push({ token: tokenizer.token(token), next: likeliest(page, rowOf(scores, 0), temperature || 1) });
    if (token === settings.end) break;
    written.push(token);
    if (await told({ text: textOf(written).replace(/\ufffd+$/u, ''), bars: bars.slice(count, count + 1) })) break;
    if (count + 1 === tokens) break;
    window.push(token);
    if (window.length > settings.context) { // the later half is kept
      window = window.slice(-Math.max(settings.context >> 1, 1));
      continuation = new Continuation(page.programs, settings, []);
      scores = continuation.start(tokensOf(window));
    } else {
      scores = continuation.step(tokensOf([token]));
    }
  }
  return answer();
};

function likeliest(page, scores, temperature, count = 8) {
  const likely = probabilities(scores, temperature);
  return candidates(scores, Math.min(count, scores.length)).filter(({ token }) => likely[token] > 0).map(({ token }) => (
    { token: page.tokenizer.token(token), chance: likely[token] }
  ));
}

// Random numbers from 0 to 1 that a seed decides (mulberry32).
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

// One text or two with special tokens around them, of at most so many: as models/bert reads them.
function framed(page, texts) {
  const { settings, tokenizer } = page;
  const [before, between, after] = settings.frame;
  let [first, second] = texts.map((text) => {
    const [start, ...others] = text.split(/<mask>|\[MASK\]/u).map((part) => tokenizer.encode(part));
    return [...start, ...others.flatMap((part) => [MASK, ...part])];
  });
  let room = settings.context - before.length - after.length;
  const isCut = first.length + (second ? second.length + between.length : 0) > room;
  if (!second) {
    if (isCut && first.includes(MASK)) { // the words around the first blank say most
      const start = Math.min(first.indexOf(MASK) - (settings.context >> 1), first.length - room);
      first = first.slice(Math.max(start, 0));
    }
    return { ids: [...before, ...first.slice(0, room), ...after], isCut };
  }
  room -= between.length;
  const start = Math.max(first.length - Math.max(room - second.length, room - (room >> 1)), 0);
  first = first.slice(start);
  second = second.slice(0, room - first.length);
  return { ids: [...before, ...first, ...between, ...second, ...after], isCut };
}

function textsOf(text) {
  return text.split('|').map((part) => part.trim());
}

TASKS.blanks = (page, { text }) => {
  const texts = textsOf(text).slice(0, 2);
  const { ids, isCut } = framed(page, texts);
  const [scores, follows] = page.programs.read.run([tokensOf(ids)]);
  const width = scores.shape[2];
  const blanks = [...ids.keys()].filter((place) => ids[place] === MASK).map((place) => {
    const likely = probabilities(scores.data.subarray(place * width, (place + 1) * width), 1);
    const ranked = candidates(Array.from(likely, Math.log), Math.min(15, width)).map(({ token }) => token);
    const words = ranked.filter((token) => token >= SPECIALS.length).slice(0, 5);
    return words.map((token) => ({ token: page.tokenizer.token(token), chance: likely[token] }));
  });
  let place = 0;
  const filled = text.replace(/<mask>|\[MASK\]/gu, (gap) => (blanks[place] ? blanks[place++][0].token : gap));
  const chance = follows && texts.length === 2 ? probabilities(follows.data, 1)[1] : null;
  return { text: filled, blanks, follows: chance, isCut, unknown: page.tokenizer.unknown(text.replace(/<mask>|\[MASK\]|\|/gu, ' ')) };
};

// Classes of a text, or numbers for any other model: what the program gives for the inputs, and how that is to be shown.
TASKS.classes = (page, { text }) => {
  const { ids, isCut } = framed(page, textsOf(text).slice(0, 2));
  const [scores] = page.programs.read.run([tokensOf(ids)]);
  return { ...shownOutput(page, scores), isCut, unknown: page.tokenizer.unknown(text.replace(/\|/gu, ' ')) };
};

// Every word with its tag; words of the first one, which is none, stand alone.
TASKS.tags = (page, { text }) => {
  const { ids, isCut } = framed(page, [text]);
  const [scores] = page.programs.read.run([tokensOf(ids)]);
  const [before, , after] = page.settings.frame;
  const words = page.tokenizer.parts(text).slice(0, ids.length - before.length - after.length);
  const tags = words.map((_, i) => candidates(scoresAt(scores, before.length + i), 1)[0].token);
  const { answers } = page.settings;
  return {
    text: words.map((word, i) => (tags[i] ? `${word}/${answers[tags[i]]}` : word)).join(' '),
    isCut, unknown: page.tokenizer.unknown(text),
  };
};

function scoresAt(scores, place) {
  const width = scores.shape[2];
  return scores.data.subarray(place * width, (place + 1) * width);
}

// The part of the second text that answers the first: the likeliest begin and end, which is not before it.
TASKS.span = (page, { text }) => {
  const [question, told] = textsOf(text);
  if (!told) return { text: '', rows: [] };
  const { ids, isCut } = framed(page, [question, told]);
  const [scores] = page.programs.read.run([tokensOf(ids)]);
  const [begins, ends] = [0, 1].map((k) => Array.from({ length: ids.length }, (_, i) => scores.data[2 * i + k]));
  let best = { score: -Infinity };
  begins.forEach((first, begin) => ends.slice(begin).forEach((last, more) => {
    if (first + last > best.score) best = { score: first + last, begin, end: begin + more };
  }));
  const start = ids.indexOf(page.settings.frame[1][0]) + page.settings.frame[1].length;
  const pieces = [...told.matchAll(page.tokenizer.pattern)];
  const [from, to] = [pieces[best.begin - start], pieces[best.end - start]];
  const chance = probabilities(begins, 1)[best.begin] * probabilities(ends, 1)[best.end];
  return {
    text: from && to ? told.slice(from.index, to.index + to[0].length) : '', rows: [{ name: 'sure', value: chance }],
    isCut, unknown: page.tokenizer.unknown(`${question} ${told}`),
  };
};

// How alike two texts are: their cosine, and where that was learned, how probable it is that they say the same.
TASKS.alike = (page, { text }) => {
  const texts = textsOf(text);
  if (texts.length !== 2 || !texts.every(Boolean)) return { text: '', rows: [] };
  const read = texts.map((part) => framed(page, [part]));
  const [cosine, same] = page.programs.read.run(read.map(({ ids }) => tokensOf(ids)));
  const rows = [{ name: 'cosine', value: cosine.data[0], isPlain: true }];
  if (same) rows.push({ name: 'they say the same', value: sigmoid(same.data[0]) });
  return {
    text: shortNumber(cosine.data[0]), rows, isCut: read.some(({ isCut }) => isCut), unknown: page.tokenizer.unknown(texts.join(' ')),
  };
};

TASKS.numbers = (page, { inputs }) => {
  const form = page.programs.read.form.inputs;
  const given = form.map(({ dtype, shape }, i) => {
    const whole = shape.map((n) => (typeof n === 'number' ? n : 1));
    return new NDArray(dtype, whole, storeOf(dtype).from(inputs[i]));
  });
  const [scores] = page.programs.read.run(given);
  return shownOutput(page, scores);
};

TASKS.words = (page, { text }) => {
  const word = composed(text);
  const id = page.tokenizer.ids.get(word);
  if (id === undefined) return { text: '', rows: [], unknown: word ? [word] : [] };
  const [scores] = page.programs.read.run([new NDArray('int64', [1], Float64Array.of(id))]);
  const found = candidates(scores.data, page.settings.shown + 1).map(({ token }) => token + page.settings.first);
  const rows = found.filter((token) => token !== id).slice(0, page.settings.shown).map((token) => (
    { name: page.tokenizer.token(token), value: scores.data[token - page.settings.first] }
  ));
  return { text: rows.map(({ name }) => name).join(', '), rows, unknown: [] };
};

// The first row of an output: probabilities of classes, the probability of yes, or plain numbers.
function shownOutput({ settings }, scores) {
  const width = scores.shape.length > 1 ? sizeOf(scores.shape.slice(1)) : 1;
  const values = scores.data.subarray(0, width);
  const name = (i) => settings.answers[i] ?? String(i);
  if (settings.output === 'classes') {
    const likely = probabilities(values, 1);
    const rows = Array.from(likely, (value, i) => ({ name: name(i), value })).sort((a, b) => b.value - a.value);
    return { text: rows[0].name, rows };
  }
  const change = settings.output === 'probability' ? sigmoid : (x) => x;
  const rows = Array.from(values, (value, i) => ({ name: name(i), value: change(value) }));
  return { text: rows.map(({ value }) => shortNumber(value)).join(' '), rows };
}

function shortNumber(value) {
  return String(Number(value.toFixed(4)));
}
