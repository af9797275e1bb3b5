// Choosing tokens: a state that goes on token by token, beam search over it, and sampling from it.

// The first number of each row of scores is asked for by its place: (B, V).
function rowOf(scores, row) {
  const width = scores.shape[1];
  return scores.data.subarray(row * width, (row + 1) * width);
}

// Rows of an array along an axis, in this order; one may come more than once.
function picked(array, rows, axis = 0) {
  const count = array.shape[axis];
  const isSame = rows.length === count && rows.every((row, i) => row === i);
  if (isSame) return array;
  const width = sizeOf(array.shape.slice(axis + 1));
  const out = emptyArray(array.dtype, array.shape.map((n, i) => (i === axis ? rows.length : n)));
  for (let part = 0; part < sizeOf(array.shape.slice(0, axis)); part++) {
    rows.forEach((row, i) => {
      const from = (part * count + row) * width;
      out.data.set(array.data.subarray(from, from + width), (part * rows.length + i) * width);
    });
  }
  return out;
}

// What a model has seen of several rows, and the scores of what comes next, by its programs `start` and `step`.
class Continuation {
  // Scores of tokens that are not `allowed` are taken away, if it is said which are.
  constructor(programs, settings, given, allowed = null) {
    [this.programs, this.settings, this.given, this.state] = [programs, settings, given, null];
    this.allowed = allowed;
    this.seen = null; // for each row, where its last token looked
  }

  // Takes the first tokens of one row, (1, n).
  start(tokens) { return this.taken(this.programs.start, [...this.given, tokens]); }

  // Takes one more token of each row, (B, 1).
  step(tokens) { return this.taken(this.programs.step, [...this.given, tokens, ...this.state]); }

  taken(program, inputs) {
    const { alignment } = program.form;
    const [scores, ...state] = program.run(inputs, alignment ? (step, weights) => {
      if (step.outputs[0] === alignment) this.seen = weights;
    } : null);
    this.state = state;
    for (const token of this.settings.never) {
      for (let row = 0; row < scores.shape[0]; row++) scores.data[row * scores.shape[1] + token] = -Infinity;
    }
    if (this.allowed) scores.data.forEach((_, i) => { if (!this.allowed[i % scores.shape[1]]) scores.data[i] = -Infinity; });
    return scores;
  }

  // Goes on with these rows.
  select(rows) {
    this.given = this.given.map((array) => picked(array, rows));
    this.state = this.state.map((array, i) => (this.settings.rows[i] === null ? array : picked(array, rows, this.settings.rows[i])));
  }

  // Where the last token of a row looked, as the mean over heads: weights (B, h, L, S) -> (S).
  lookedAt(row) {
    if (!this.seen) return null;
    const [, heads, length, size] = this.seen.shape;
    const mean = new Array(size).fill(0);
    for (let head = 0; head < heads; head++) {
      const from = ((row * heads + head) * length + length - 1) * size;
      for (let j = 0; j < size; j++) mean[j] += this.seen.data[from + j] / heads;
    }
    return mean;
  }
}

function logOfTotal(scores) {
  let top = -Infinity;
  for (const score of scores) if (score > top) top = score;
  if (!Number.isFinite(top)) throw new Error('no token can be chosen: the scores of the model are not finite');
  let total = 0;
  for (const score of scores) total += Math.exp(score - top);
  return top + Math.log(total);
}

// The best tokens of a row and the logarithms of their probabilities, the best first and of equal ones the first.
function candidates(scores, count) {
  const total = logOfTotal(scores);
  const found = [];
  for (let token = 0; token < scores.length; token++) {
    const score = scores[token];
    if (found.length === count && !(score > found[count - 1].score)) continue;
    let place = Math.min(found.length, count - 1);
    while (place > 0 && score > found[place - 1].score) place -= 1;
    found.splice(place, 0, { token, score });
    if (found.length > count) found.pop();
  }
  return found.map(({ token, score }) => ({ token, log: score - total }));
}

function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

// The best continuations of a prompt, best first, at most `beams`: the search of minigrad.decode.beam for one sequence.
function beamSearch(continuation, prompt, { beams, length, end, alpha }) {
  let live = [{ score: 0, tokens: [], chances: [], seen: [] }];
  const finished = [];
  let best = -Infinity;
  let scores = continuation.start(new NDArray('int64', [1, prompt.length], Float64Array.from(prompt)));
  for (let depth = 1; depth <= length; depth++) {
    const looked = live.flatMap((branch, row) => candidates(rowOf(scores, row), 2 * beams).map(({ token, log }) => (
      { branch, row, token, log, score: branch.score + log }
    )));
    const level = looked.map((one, i) => ({ ...one, i })).sort((a, b) => b.score - a.score || a.i - b.i).slice(0, 2 * beams);
    const penalty = lengthPenalty(depth, alpha);
    const lives = [];
    level.forEach((one, rank) => {
      if (one.score === -Infinity) return;
      const [ends, isLast] = [one.token === end, depth === length];
      if ((ends || isLast) && rank < beams) {
        finished.push({ ...grown(one, continuation), worth: one.score / penalty, ended: ends });
        best = Math.max(best, one.score / penalty);
      }
      if (!ends && !isLast && lives.length < beams) lives.push(one);
    });
    const hope = Math.max(...lives.map((one) => one.score / penalty));
    if (!lives.length || (finished.length >= beams && hope <= best)) break;
    live = lives.map((one) => grown(one, continuation));
    continuation.select(lives.map((one) => one.row));
    scores = continuation.step(new NDArray('int64', [live.length, 1], Float64Array.from(live, (branch) => branch.tokens.at(-1))));
  }
  return finished.map((one, i) => ({ ...one, i })).sort((a, b) => b.worth - a.worth || a.i - b.i).slice(0, beams);
}

function grown({ branch, row, token, log, score }, continuation) {
  const seen = continuation.lookedAt(row);
  return {
    score, tokens: [...branch.tokens, token], chances: [...branch.chances, Math.exp(log)], seen: seen ? [...branch.seen, seen] : [],
  };
}

// How probable each token is at a temperature; 0 takes the best.
function probabilities(scores, temperature) {
  const likely = new Float64Array(scores.length);
  if (temperature === 0) {
    let best = 0;
    for (let token = 1; token < scores.length; token++) if (scores[token] > scores[best]) best = token;
    likely[best] = 1;
    return likely;
  }
  let top = -Infinity;
  for (const score of scores) if (score > top) top = score;
  let total = 0;
  for (let token = 0; token < scores.length; token++) total += likely[token] = Math.exp((scores[token] - top) / temperature);
  for (let token = 0; token < scores.length; token++) likely[token] /= total;
  return likely;
}

function drawn(likely, random) {
  let [left, last] = [random, 0];
  for (let token = 0; token < likely.length; token++) {
    if (!likely[token]) continue;
    last = token;
    left -= likely[token];
    if (left < 0) break;
  }
  return last;
}
