// What a page answers, by its kind: `TASKS[kind](page, request, told)` returns what is shown; `told` is given parts on the way.

const TASKS = {};

function tokensOf(ids) {
  return new NDArray('int64', [1, ids.length], Float64Array.from(ids));
}

// A source with gaps, which are typed as <mask>; or any text, and its end.
function sourceIds(page, text) {
  const { tokenizer, settings } = page;
  if (!settings.gaps) {
    const ids = tokenizer.encode(settings.prefix + text);
    return ids.at(-1) === settings.end ? ids : [...ids, settings.end];
  }
  const [first, ...others] = text.split(/ ?<mask>/u).map((part) => tokenizer.encode(part));
  return [...first, ...others.flatMap((part) => [MASK, ...part]), settings.end];
}

// Which words may come up in the translation of these tokens, by the shortlist of the model: a flag for each, or null for all.
// As Marian: the words themselves are among them, and frequent ones make their number a multiple of eight.
function allowedWords({ settings, tensors }, ids) {
  if (!settings.shortlist) return null;
  const [offsets, targets] = [tensors[settings.shortlist.offsets].data, tensors[settings.shortlist.targets].data];
  const count = offsets.length - 1;
  const allowed = new Uint8Array(count).fill(1, 0, settings.shortlist.first);
  for (const id of ids) {
    for (let i = offsets[id]; i < offsets[id + 1]; i++) allowed[targets[i]] = 1;
    if (id < count) allowed[id] = 1;
  }
  let missing = (8 - (allowed.reduce((total, flag) => total + flag, 0) % 8)) % 8;
  for (let id = settings.shortlist.first; id < count && missing; id++) {
    if (!allowed[id]) [allowed[id], missing] = [1, missing - 1];
  }
  return allowed;
}

TASKS.translation = (page, { text, beams, alpha }) => {
  const { tokenizer, settings } = page;
  const encode = (part) => sourceIds(page, part);
  const pieces = piecesOf(text, encode, settings, (part) => inKnownCase(tokenizer, part)).map((piece) => {
    const ids = encode(piece);
    const most = settings.most === null ? Infinity : settings.most - settings.prompt.length + 1;
    const length = Math.max(1, Math.min(2 * ids.length + 10, most));
    const continuation = new Continuation(page.programs, settings, [tokensOf(ids)], allowedWords(page, ids));
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

const BLANK = /<mask>|\[MASK\]/u;

// The tokens of a text without those around it; blanks are hidden tokens.
function innerIds({ tokenizer, settings }, text) {
  if (tokenizer.inner) return tokenizer.inner(tokenizer.blank ? text.split(BLANK).join(tokenizer.blank) : text);
  const [start, ...others] = text.split(BLANK).map((part) => tokenizer.encode(part));
  return [...start, ...others.flatMap((part) => [settings.mask, ...part])];
}

// The words of a text as people count them, each with its place and its tokens; a word keeps the space before it.
function wordsIn(page, text) {
  let start = 0;
  return [...text.matchAll(new RegExp(page.settings.word, 'gu'))].map((match) => {
    const [from, end] = [start, match.index + match[0].length];
    start = end;
    return { text: match[0], index: match.index, end, ids: innerIds(page, text.slice(from, end)) };
  });
}

// One text or two with special tokens around them, of at most so many: as models/bert reads them.
function framed(page, texts, encode = innerIds) {
  const { settings } = page;
  const [before, between, after] = settings.frame;
  let [first, second] = texts.map((text) => encode(page, text));
  let room = settings.context - before.length - after.length;
  const isCut = first.length + (second ? second.length + between.length : 0) > room;
  if (!second) {
    if (isCut && first.includes(settings.mask)) { // the words around the first blank say most
      const start = Math.min(first.indexOf(settings.mask) - (settings.context >> 1), first.length - room);
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
  const blanks = [...ids.keys()].filter((place) => ids[place] === page.settings.mask).map((place) => {
    const likely = probabilities(scores.data.subarray(place * width, (place + 1) * width), 1);
    const ranked = candidates(Array.from(likely, Math.log), Math.min(15, width)).map(({ token }) => token);
    const words = ranked.filter((token) => !page.settings.specials.includes(token)).slice(0, 5);
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

function wordIds(page, text) {
  return wordsIn(page, text).flatMap(({ ids }) => ids);
}

// Every word with its tag, which is that of its first token; words of the first tag, which is none, stand alone.
TASKS.tags = (page, { text }) => {
  const { ids, isCut } = framed(page, [text], wordIds);
  const [scores] = page.programs.read.run([tokensOf(ids)]);
  const [before, , after] = page.settings.frame;
  let place = before.length;
  const tagged = wordsIn(page, text).map((word) => {
    const at = place;
    place += word.ids.length;
    if (at >= ids.length - after.length) return '';
    const [{ token }] = candidates(scoresAt(scores, at), 1);
    return token ? `${word.text}/${page.settings.answers[token]}` : word.text;
  });
  return { text: tagged.filter(Boolean).join(' '), isCut, unknown: page.tokenizer.unknown(text) };
};

function scoresAt(scores, place) {
  const width = scores.shape[2];
  return scores.data.subarray(place * width, (place + 1) * width);
}

// The part of the second text that answers the first: the likeliest begin and end, which is not before it.
TASKS.span = (page, { text }) => {
  const [question, told] = textsOf(text);
  if (!told) return { text: '', rows: [] };
  const { ids, isCut } = framed(page, [question, told], wordIds);
  const [scores] = page.programs.read.run([tokensOf(ids)]);
  const [begins, ends] = [0, 1].map((k) => Array.from({ length: ids.length }, (_, i) => scores.data[2 * i + k]));
  let best = { score: -Infinity };
  begins.forEach((first, begin) => ends.slice(begin).forEach((last, more) => {
    if (first + last > best.score) best = { score: first + last, begin, end: begin + more };
  }));
  const start = ids.indexOf(page.settings.frame[1][0]) + page.settings.frame[1].length;
  const words = wordsIn(page, told).flatMap((word) => word.ids.map(() => word)); // of each token
  const [from, to] = [words[best.begin - start], words[best.end - start]];
  const chance = probabilities(begins, 1)[best.begin] * probabilities(ends, 1)[best.end];
  return {
    text: from && to ? told.slice(from.index, to.end) : '', rows: [{ name: 'sure', value: chance }],
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
