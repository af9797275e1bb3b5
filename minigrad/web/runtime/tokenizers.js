// Tokenizers of minigrad.data, words, characters and byte pairs, with the ids that Python gives.

const [PAD, BOS, EOS, UNK, MASK] = [0, 1, 2, 3, 4];
const SPECIALS = ['<pad>', '<s>', '</s>', '<unk>', '<mask>'];

class ListTokenizer {
  constructor(tokens) {
    this.tokens = [...SPECIALS, ...tokens];
    this.ids = new Map(this.tokens.map((token, id) => [token, id]));
    this.size = this.tokens.length;
  }

  encode(text) { return this.parts(text).map((part) => this.ids.get(part) ?? UNK); }

  token(id) { return this.tokens[id]; }

  unknown(text) { return [...new Set(this.parts(text).filter((part) => !this.ids.has(part)))]; }

  // Without special tokens, but for unknown ones, which stand for text that was lost.
  decode(ids) { return this.joined(ids.filter((id) => id === UNK || id >= SPECIALS.length).map((id) => this.tokens[id])); }
}

class CharTokenizer extends ListTokenizer {
  constructor({ characters }) {
    super(characters);
    this.apart = true;
  }

  parts(text) { return [...text]; }

  joined(tokens) { return tokens.join(''); }
}

class WordTokenizer extends ListTokenizer {
  constructor({ words, pattern }) {
    super(words ? words.split(' ') : []);
    this.pattern = new RegExp(pattern, 'gu');
    this.apart = false; // which spaces stand between words depends on all words before
  }

  parts(text) { return text.match(this.pattern) ?? []; }

  joined(tokens) {
    let [text, glued, quoted] = ['', true, false];
    for (const word of tokens) {
      const closes = '.,;:!?)]}%’”»…'.includes(word) || (word === '"' && quoted);
      text += glued || closes ? word : ` ${word}`;
      glued = '¿¡([{‘“«'.includes(word) || (word === '"' && !quoted);
      quoted = word === '"' ? !quoted : quoted;
    }
    return text;
  }
}

class BytePairTokenizer {
  constructor({ merges, pattern }) {
    this.pattern = new RegExp(pattern, 'gu');
    this.apart = true;
    this.bytes = SPECIALS.map((name) => new TextEncoder().encode(name));
    for (let byte = 0; byte < 256; byte++) this.bytes.push(Uint8Array.of(byte));
    const known = new Map(this.bytes.map((bytes, id) => [id < SPECIALS.length ? id : bytes.join(), id]));
    this.ranks = new Map();
    const numbers = merges ? merges.split(' ').map(Number) : [];
    for (let i = 0; i < numbers.length; i += 2) {
      const merged = Uint8Array.of(...this.bytes[numbers[i]], ...this.bytes[numbers[i + 1]]);
      const key = merged.join();
      if (!known.has(key)) {
        known.set(key, this.bytes.length);
        this.bytes.push(merged);
      }
      this.ranks.set(`${numbers[i]} ${numbers[i + 1]}`, { rank: i / 2, id: known.get(key) });
    }
    this.size = this.bytes.length;
    this.cache = new Map();
  }

  encode(text) { return (text.match(this.pattern) ?? []).flatMap((piece) => this.piece(piece)); }

  unknown() { return []; }

  // Merges the pair that was learned first, wherever it occurs, until no known pair is left.
  piece(text) {
    const kept = this.cache.get(text);
    if (kept) return kept;
    let ids = [...new TextEncoder().encode(text)].map((byte) => byte + SPECIALS.length);
    while (ids.length > 1) {
      let best = null;
      for (let i = 0; i + 1 < ids.length; i++) {
        const found = this.ranks.get(`${ids[i]} ${ids[i + 1]}`);
        if (found && (!best || found.rank < best.rank)) best = { ...found, left: ids[i], right: ids[i + 1] };
      }
      if (!best) break;
      const merged = [];
      for (let i = 0; i < ids.length; i++) {
        const isPair = ids[i] === best.left && i + 1 < ids.length && ids[i + 1] === best.right;
        merged.push(isPair ? best.id : ids[i]);
        if (isPair) i += 1;
      }
      ids = merged;
    }
    if (this.cache.size < 65536) this.cache.set(text, ids);
    return ids;
  }

  decode(ids) {
    const parts = ids.filter((id) => id === UNK || id >= SPECIALS.length).map((id) => this.bytes[id]);
    const whole = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
    let start = 0;
    for (const part of parts) {
      whole.set(part, start);
      start += part.length;
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(whole);
  }

  token(id) {
    try {
      return new TextDecoder('utf-8', { ignoreBOM: true, fatal: true }).decode(this.bytes[id]);
    } catch {
      return [...this.bytes[id]].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
    }
  }
}

const TOKENIZERS = { char: CharTokenizer, word: WordTokenizer, bpe: BytePairTokenizer };

function tokenizerOf(form) {
  return form ? new TOKENIZERS[form.kind](form) : null;
}
