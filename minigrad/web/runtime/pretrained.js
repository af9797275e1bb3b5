// Tokenizers of pretrained models: a text is made plain and cut into words, and each word into tokens. Python lists the steps,
// as [name, ...arguments]; patterns come as regular expressions of JavaScript.

function found(pattern) {
  return new RegExp(pattern, 'gu');
}

// From a text to a text.
const PLAIN = {
  replaced: (pattern, content) => (text) => text.replace(found(pattern), () => content),
  spaced: (pattern) => (text) => text.replace(found(pattern), (match) => ` ${match} `),
  prepended: (start) => (text) => (text ? start + text : text),
  normal: (form, kept) => (text) => text.split(new RegExp(`(${kept})`, 'u')).map((part, i) => (i % 2 ? part : part.normalize(form))).join(''),
  lower: (table) => {
    const small = new Map(table);
    return (text) => Array.from(text, (letter) => small.get(letter) ?? letter).join('').toLowerCase();
  },
  charsmap: (data, cluster, kept) => {
    const map = new Charsmap(bytesOf(data));
    const literal = kept ? new RegExp(`(${kept})`, 'u') : null;
    return (text) => {
      if (cluster) return (text.match(found(cluster)) ?? []).map((part) => map.cluster(part)).join('');
      return (literal ? text.split(literal) : [text]).map((part, i) => (i % 2 ? part : map.longest(part))).join('');
    };
  },
  characters: () => byteCharacters,
};

// SentencePiece's table of replacements: a trie in a double array, and the texts that its keys become.
class Charsmap {
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const size = bytes.length ? view.getUint32(0, true) : 0;
    this.units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    this.texts = bytes.subarray(4 + size);
  }

  // The keys that some bytes begin with, from a place on: [size, where its text begins].
  keys(bytes, from, to) {
    const distance = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
    const keys = [];
    let place = this.units.length ? distance(this.units[0]) : 0;
    for (let i = from; i < to; i++) {
      place ^= bytes[i];
      const unit = this.units[place];
      if (!bytes[i] || unit === undefined || (unit & 0x800000ff) !== bytes[i]) break;
      place ^= distance(unit);
      if (unit & 0x100 && place < this.units.length) keys.push([i + 1 - from, this.units[place] & 0x7fffffff]);
    }
    return keys;
  }

  text(start) {
    const end = this.texts.indexOf(0, start);
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(this.texts.subarray(start, end < 0 ? undefined : end));
  }

  // From left to right, the longest key that fits is replaced.
  longest(text) {
    const bytes = new TextEncoder().encode(text);
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    let [made, place] = ['', 0];
    while (place < bytes.length) {
      const key = this.keys(bytes, place, bytes.length).at(-1);
      const lead = bytes[place];
      const size = key ? key[0] : lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
      made += key ? this.text(key[1]) : decoder.decode(bytes.subarray(place, place + size));
      place += size;
    }
    return made;
  }

  // What a reader takes for one character is looked up as a whole, if it is short.
  cluster(part) {
    const bytes = new TextEncoder().encode(part);
    const [key] = bytes.length < 6 ? this.keys(bytes, 0, bytes.length) : [];
    return key ? this.text(key[1]) : Array.from(part, (letter) => this.single(letter)).join('');
  }

  single(letter) {
    const bytes = new TextEncoder().encode(letter);
    const [key] = this.keys(bytes, 0, bytes.length);
    return key ? this.text(key[1]) : letter;
  }
}

// Each byte as a character that can be seen, and back.
const SEEN = (() => {
  let hidden = 256;
  const isSeen = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : hidden++));
})();
const BYTES = new Map(SEEN.map((character, byte) => [character, byte]));

function byteCharacters(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => SEEN[byte]).join('');
}

function bytesOfToken(token) {
  const bytes = Array.from(token, (character) => BYTES.get(character));
  return bytes.includes(undefined) ? [...new TextEncoder().encode(token)] : bytes;
}

function textOfBytes(bytes) {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

// Matches and what lies between them, as [text, whether it matched].
function spansOf(text, pattern) {
  const spans = [];
  let place = 0;
  for (const match of text.matchAll(found(pattern))) {
    if (match.index > place) spans.push([text.slice(place, match.index), false]);
    spans.push([match[0], true]);
    place = match.index + match[0].length;
  }
  if (place < text.length) spans.push([text.slice(place), false]);
  return spans;
}

// What becomes of matches and of what lies between them.
const BEHAVIORS = {
  Isolated: (spans) => spans.map(([text]) => text),
  Removed: (spans) => spans.filter(([, matched]) => !matched).map(([text]) => text),
  Contiguous: (spans) => glued(spans, (matched, before) => matched === before),
  MergedWithPrevious: (spans) => glued(spans, (matched, before) => matched && before === false),
  MergedWithNext: (spans) => (
    glued(spans.map(([text, matched]) => [[...text].reverse().join(''), matched]).reverse(), (matched, before) => matched && before === false)
      .map((text) => [...text].reverse().join('')).reverse()
  ),
};

function glued(spans, joins) {
  const pieces = [];
  let before = null;
  for (const [text, matched] of spans) {
    if (joins(matched, before)) pieces[pieces.length - 1] += text;
    else pieces.push(text);
    before = matched;
  }
  return pieces;
}

// From pieces of a text, and whether the first is where it begins, to smaller pieces.
const CUT = {
  matches: (pattern) => (pieces) => pieces.flatMap((piece) => piece.match(found(pattern)) ?? []),
  split: (pattern, behavior, inverted) => (pieces) => pieces.flatMap((piece) => (
    BEHAVIORS[behavior](spansOf(piece, pattern).map(([text, matched]) => [text, matched !== inverted])).filter(Boolean)
  )),
  metaspace: (mark, scheme, words) => (pieces, atStart) => pieces.flatMap((piece, number) => {
    let text = piece.replaceAll(' ', mark);
    const wants = scheme === 'always' || (scheme === 'first' && atStart && !number);
    if (wants && !text.startsWith(mark)) text = mark + text;
    return words ? text.match(found(words)) ?? [] : [text];
  }),
  prefixed: () => (pieces) => pieces.map((piece) => (piece.startsWith(' ') ? piece : ` ${piece}`)),
  characters: () => (pieces) => pieces.map(byteCharacters),
};

// Tokens of a text together again: from texts to texts.
const JOINED = {
  bytes: () => (tokens) => [textOfBytes(tokens.flatMap(bytesOfToken))],
  wordpiece: (prefix, cleanup) => (tokens) => tokens.map((token, i) => {
    const text = !i ? token : prefix && token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
    return cleanup.reduce((done, [spaced, plain]) => done.replaceAll(spaced, plain), text);
  }),
  metaspace: (mark, first) => (tokens) => tokens.map((token, i) => token.replaceAll(mark, i ? ' ' : first)),
  suffixed: (suffix) => (tokens) => tokens.map((token, i) => token.replaceAll(suffix, i < tokens.length - 1 ? ' ' : '')),
  fallback: () => (tokens) => {
    const [texts, pending] = [[], []];
    const flush = () => {
      const text = textOfBytes(pending);
      texts.push(...(text.includes('\ufffd') ? pending.map(() => '\ufffd') : pending.length ? [text] : []));
      pending.length = 0;
    };
    for (const token of tokens) {
      const byte = /^<0x([0-9A-Fa-f]{2})>$/u.exec(token);
      if (byte) pending.push(parseInt(byte[1], 16));
      else {
        flush();
        texts.push(token);
      }
    }
    flush();
    return texts;
  },
  fuse: () => (tokens) => [tokens.join('')],
  replaced: (pattern, content) => (tokens) => tokens.map((token) => token.replace(found(pattern), () => content)),
  strip: (content, start, stop) => (tokens) => tokens.map((token) => {
    let letters = [...token];
    for (let i = 0; i < start && letters[0] === content; i++) letters = letters.slice(1);
    for (let i = 0; i < stop && letters.at(-1) === content; i++) letters = letters.slice(0, -1);
    return letters.join('');
  }),
};
