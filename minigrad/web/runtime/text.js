// Text as Python sees it: what counts as a space, one form of an English sentence, and pieces that a model can take.

const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;

function wordsOf(text) {
  return text.split(SPACES).filter((word) => word !== '');
}

// Composed accents and single spaces.
function composed(text) {
  return wordsOf(text.normalize('NFC')).join(' ');
}

const TYPOGRAPHY = { '’': "'", '‘': "'", '`': "'", '´': "'", '…': '...', '\u00a0': ' ' };

// As minigrad.data.normalise; `contractions` are pairs of a pattern and what takes its place.
function normalised(text, contractions) {
  let found = text.normalize('NFC').replace(/[’‘`´…\u00a0]/gu, (mark) => TYPOGRAPHY[mark]).toLowerCase();
  found = wordsOf(found).join(' ');
  if (found.includes("'") || found.includes('can not')) {
    for (const [pattern, replacement] of contractions) found = found.replace(new RegExp(pattern, 'giu'), replacement);
  }
  found = found.replace(/(?<!\p{Nd})[.,:]|[.,:](?!\p{Nd})/gu, ' ');
  found = found.replace(/[^\p{L}\p{N}_\s'.,:-]|(?<![\p{L}\p{N}_])['-]|['-](?![\p{L}\p{N}_])/gu, ' ');
  return wordsOf(found).join(' ');
}

// How a text is written before it becomes tokens.
function prepared(text, { form, contractions }) {
  const plain = composed(text);
  if (form === 'phrasebook') return normalised(plain, contractions);
  return form === 'lower' ? plain.toLowerCase() : plain;
}

// A text in which the words that a vocabulary of words knows in lower case only are in lower case.
function inKnownCase(tokenizer, text) {
  if (!tokenizer.pattern || !tokenizer.ids) return text;
  const isKnown = (word) => !tokenizer.encode(word).includes(UNK);
  return text.replace(tokenizer.pattern, (word) => (isKnown(word) || !isKnown(word.toLowerCase()) ? word : word.toLowerCase()));
}

const SENTENCE_ENDS = /(?<=[.!?…])[\s\x1c-\x1f\x85]+|(?<=[。！？])[\s\x1c-\x1f\x85]*/u;

// A text in pieces of at most `longest` tokens, cut between sentences, or else between words.
function piecesOf(text, encode, settings, cased = (part) => part) {
  const { longest, by_sentence: bySentence } = settings;
  const written = (part) => cased(prepared(part, settings));
  const whole = written(text);
  if (!whole) return [];
  const isShort = longest === null || encode(whole).length <= longest;
  const sentences = isShort && !bySentence ? [text] : text.trim().split(SENTENCE_ENDS);
  return sentences.map(written).filter(Boolean).flatMap((part) => cut(part, encode, longest));
}

function cut(sentence, encode, longest) {
  if (longest === null || encode(sentence).length <= longest) return [sentence];
  const words = sentence.split(' ');
  let halves = [words.slice(0, words.length >> 1).join(' '), words.slice(words.length >> 1).join(' ')];
  if (words.length === 1) {
    const letters = [...sentence];
    if (letters.length < 2) return [sentence];
    halves = [letters.slice(0, letters.length >> 1).join(''), letters.slice(letters.length >> 1).join('')];
  }
  return halves.flatMap((half) => cut(half, encode, longest));
}
