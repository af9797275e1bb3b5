// How a pretrained model makes tokens of a word, and the tokenizer that puts all its parts together.

// Of characters that have no token: the tokens of their bytes, or null where not all bytes have one.
function bytesAsTokens(text, bytes) {
  const ids = bytes ? Array.from(new TextEncoder().encode(text), (byte) => bytes[byte] ?? null) : [null];
  return ids.includes(null) ? null : ids;
}

// The same, each text worked out once.
function remembered(find) {
  const known = new Map();
  return (text) => {
    if (known.size > 65536) known.clear();
    if (!known.has(text)) known.set(text, find(text));
    return known.get(text);
  };
}

function wordsAt(pattern, text) {
  return pattern ? text.match(found(pattern)) ?? [] : [text];
}

// Merges of pairs, in the order in which they were learned, of equal ones the leftmost first.
class MergedPairs {
  constructor({ merges, prefix, suffix, bytes, unknown, fused, whole, frozen, words }, tokens, ids) {
    Object.assign(this, { prefix, suffix, bytes, unknown, fused, whole, words, ids, count: tokens.length });
    this.once = remembered((word) => this.merged(this.symbols(word)));
    this.frozen = frozen ? new RegExp(`(${frozen})`, 'u') : null;
    this.merges = new Map();
    for (let i = 0; i < merges.length; i += 3) {
      const [left, right, rank] = merges.slice(i, i + 3);
      this.merges.set(left * this.count + right, [rank, ids.get(tokens[left] + tokens[right].slice(prefix.length))]);
    }
  }

  encode(word) {
    if (this.whole && this.ids.has(word)) return [this.ids.get(word)];
    const parts = this.frozen ? word.split(this.frozen) : [word];
    return parts.flatMap((part, i) => (i % 2 ? [this.ids.get(part)] : wordsAt(this.words, part).flatMap(this.once)));
  }

  symbols(word) {
    const letters = [...word];
    let [symbols, pending] = [[], []];
    letters.forEach((letter, i) => {
      const text = (i ? this.prefix : '') + letter + (i === letters.length - 1 ? this.suffix : '');
      const found = this.ids.get(text);
      const bytes = found === undefined ? bytesAsTokens(text, this.bytes) : null;
      if (found !== undefined) [symbols, pending] = [[...symbols, ...pending, found], []];
      else if (bytes) symbols.push(...bytes);
      else if (this.unknown !== null) {
        if (!this.fused) symbols.push(...pending);
        pending = [this.unknown];
      }
    });
    return [...symbols, ...pending];
  }

  merged(symbols) {
    for (;;) {
      let [best, place] = [null, 0];
      for (let i = 0; i + 1 < symbols.length; i++) {
        const found = this.merges.get(symbols[i] * this.count + symbols[i + 1]);
        if (found && (!best || found[0] < best[0])) [best, place] = [found, i];
      }
      if (!best) return symbols;
      symbols.splice(place, 2, best[1]);
    }
  }
}

// The longest token that a word begins with, then the longest that follows; a word that cannot be made so is unknown.
class LongestPieces {
  constructor({ prefix, unknown, longest }, tokens, ids) {
    Object.assign(this, { prefix, unknown, longest, ids });
    this.encode = remembered((word) => this.pieces(word));
    this.most = tokens.reduce((most, token) => Math.max(most, token === null ? 0 : token.length), 0);
  }

  pieces(word) {
    const letters = [...word];
    if (letters.length > this.longest) return [this.unknown];
    const found = [];
    for (let start = 0; start < letters.length;) {
      let end = Math.min(letters.length, start + this.most);
      const tokenTo = () => this.ids.get((start ? this.prefix : '') + letters.slice(start, end).join(''));
      while (end > start && tokenTo() === undefined) end -= 1;
      if (end === start) return [this.unknown];
      found.push(tokenTo());
      start = end;
    }
    return found;
  }
}

class WholeWords {
  constructor({ unknown }, tokens, ids) { Object.assign(this, { unknown, ids }); }

  encode(word) {
    const id = this.ids.get(word) ?? this.unknown;
    return id === null ? [] : [id];
  }
}

// Of all ways to write a text with the tokens the most probable one: the best path to each place, from left to right.
class LikeliestPath {
  constructor({ scores, pieces, unknown, worst, bytes, words }, tokens) {
    Object.assign(this, { unknown, worst, bytes, words });
    this.once = remembered((word) => this.path(word));
    this.scores = new Map();
    scores.forEach((score, id) => { if (score !== null) this.scores.set(tokens[id], [score, id]); });
    for (const [token, score] of pieces) if (!this.scores.has(token)) this.scores.set(token, [score, unknown]);
    const sizes = new Map(); // how long the tokens are that begin with two characters
    for (const token of this.scores.keys()) {
      const letters = [...token];
      const start = letters.slice(0, 2).join('');
      if (letters.length > 1) sizes.set(start, (sizes.get(start) ?? new Set()).add(letters.length));
    }
    this.sizes = new Map([...sizes].map(([start, lengths]) => [start, [...lengths].sort((a, b) => a - b)]));
  }

  encode(text) { return wordsAt(this.words, text).flatMap(this.once); }

  path(text) {
    const letters = [...text];
    const best = this.best(letters);
    const found = [];
    let unknownEnd = 0;
    for (let end = letters.length; end;) {
      const [start, id] = best[end];
      if (id === null) {
        unknownEnd = unknownEnd || end;
        if (!start || best[start][1] !== null) {
          const part = letters.slice(start, unknownEnd).join('');
          found.push(...(bytesAsTokens(part, this.bytes) ?? [this.unknown]).reverse());
          unknownEnd = 0;
        }
      } else found.push(id);
      end = start;
    }
    if (found.includes(null)) throw new Error('the text has a character that no token of this model stands for');
    return found.reverse();
  }

  // For each place where the last token of the best path to it starts, and that token's id.
  best(letters) {
    const reached = [0, ...new Array(letters.length).fill(-Infinity)];
    const best = new Array(letters.length + 1).fill(null);
    const take = (start, end, score, id) => {
      if (reached[start] + score > reached[end]) [reached[end], best[end]] = [reached[start] + score, [start, id]];
    };
    for (let start = 0; start < letters.length; start++) {
      take(start, start + 1, ...(this.scores.get(letters[start]) ?? [this.worst, null]));
      for (const size of this.sizes.get(letters.slice(start, start + 2).join('')) ?? []) {
        if (start + size > letters.length) break;
        const known = this.scores.get(letters.slice(start, start + size).join(''));
        if (known) take(start, start + size, ...known);
      }
    }
    return best;
  }
}

const MODELS = { bpe: MergedPairs, wordpiece: LongestPieces, wordlevel: WholeWords, unigram: LikeliestPath };

class PretrainedTokenizer {
  constructor({ tokens, model, plain, cut, joined, added, frame, blank, words }) {
    const made = (table, steps) => steps.map(([name, ...given]) => table[name](...given));
    [this.plain, this.cut, this.joined] = [made(PLAIN, plain), made(CUT, cut), made(JOINED, joined)];
    this.tokens = tokens;
    this.model = new MODELS[model.kind](model, tokens, new Map(tokens.flatMap((token, id) => (token === null ? [] : [[token, id]]))));
    this.added = new Map(added.map((token) => [token.id, token]));
    this.special = new Set(added.filter((token) => token.special).map((token) => token.content));
    this.finders = [false, true].map((isNormal) => added.filter((token) => token.normalized === isNormal && token.form)
      .sort((a, b) => b.form.length - a.form.length));
    [this.frame, this.blank, this.wordPattern] = [frame, blank, words];
    this.apart = joined.length === 1 && joined[0][0] === 'bytes';
    this.size = Math.max(tokens.length, ...added.map(({ id }) => id + 1));
  }

  // With the special tokens that the model expects around a text; `inner` is without.
  encode(text) { return [...this.frame[0], ...this.inner(text), ...this.frame[1]]; }

  inner(text) {
    return this.split(text, this.finders[0]).flatMap(([part, token, atStart]) => {
      if (token) return [token.id];
      const plain = this.plain.reduce((done, step) => step(done), part);
      return this.split(plain, this.finders[1]).flatMap(([piece, found, isFirst]) => (
        found ? [found.id] : this.words(piece, atStart && isFirst).flatMap((word) => this.model.encode(word))
      ));
    });
  }

  // A text in parts, added tokens apart from the rest: [text, token or null, whether it is at the start].
  split(text, tokens) {
    const parts = [];
    let [place, at] = [0, 0];
    const isLetter = (from, to) => from >= 0 && new RegExp(this.wordPattern, 'u').test(text.slice(from, to));
    while (tokens.length && at < text.length) {
      const token = tokens.find(({ form }) => text.startsWith(form, at));
      const end = token ? at + token.form.length : at + 1;
      if (token && !(token.single && (isLetter(at - 1, at) || isLetter(end, end + 1)))) {
        const before = text.slice(place, at);
        const kept = token.lstrip ? before.slice(0, before.length - /(?:[^\S\ufeff]|\x85)*$/u.exec(before)[0].length) : before;
        const after = token.rstrip ? end + /^(?:[^\S\ufeff]|\x85)*/u.exec(text.slice(end))[0].length : end;
        if (kept) parts.push([kept, null, place === 0]);
        parts.push([text.slice(place + kept.length, after), token, place + kept.length === 0]);
        [place, at] = [after, after];
      } else at = end;
    }
    if (place < text.length) parts.push([text.slice(place), null, place === 0]);
    return parts;
  }

  words(piece, atStart) {
    let [pieces, isFirst] = [[piece], atStart];
    for (const step of this.cut) {
      const [first] = pieces;
      pieces = step(pieces, isFirst);
      isFirst = isFirst && pieces.length > 0 && first.startsWith(pieces[0]);
    }
    return pieces;
  }

  unknown(text) {
    const id = this.model.unknown ?? null;
    return id === null ? [] : [...new Set(wordsOf(text))].filter((word) => this.inner(word).includes(id));
  }

  form(id) { return this.added.has(id) ? this.added.get(id).form : this.tokens[id] ?? null; }

  decode(ids) {
    const tokens = ids.map((id) => this.form(id)).filter((form) => form !== null && !this.special.has(form));
    return this.joined.length ? this.joined.reduce((done, step) => step(done), tokens).join('') : tokens.join(' ');
  }

  token(id) {
    const token = this.added.has(id) ? this.added.get(id).content : this.tokens[id] ?? '';
    if (!this.apart) return token;
    const bytes = bytesOfToken(token);
    const text = textOfBytes(bytes);
    return text.includes('\ufffd') ? bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('') : text;
  }
}

TOKENIZERS.pretrained = PretrainedTokenizer;
