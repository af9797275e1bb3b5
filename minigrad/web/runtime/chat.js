// A conversation with a language model, in the form of its template; what earlier turns computed is kept.

const TALK = { continuation: null, seen: [] }; // what the cache holds

// All turns as one text: a system's text, then texts and answers by turns, a text last.
function conversationText({ opening, toAnswer, toText, last, system, trims }, messages) {
  const [first, ...others] = messages;
  const hasSystem = first.role === 'system';
  const turns = hasSystem ? others : messages;
  const joints = turns.map((_, i) => (i === turns.length - 1 ? last : i % 2 ? toText : toAnswer));
  return (hasSystem ? system[0] + first.content + system[1] : opening) + turns.map(({ content }, i) => (
    (trims[i % 2] ? trimmed(content) : content) + joints[i]
  )).join('');
}

function trimmed(text) {
  return text.replace(new RegExp(`^${SPACES.source}|${SPACES.source}$`, 'gu'), '');
}

// The tokens of a conversation, and how many turns were dropped, the oldest first, so that an answer has room.
function conversationIds({ tokenizer, settings }, messages, tokens) {
  const room = settings.context - Math.min(tokens, settings.context >> 2);
  const kept = [...messages];
  const first = kept[0].role === 'system' ? 1 : 0;
  for (let dropped = 0; ; dropped++) {
    const ids = tokenizer.inner(conversationText(settings.template, kept));
    if (ids.length <= room || kept.length - first <= 1) return { ids: ids.slice(-room), dropped, isCut: ids.length > room };
    kept.splice(first, 2);
  }
}

// The scores after these tokens: only those that the cache has not seen are computed, one by one where they are few.
function scoresAfter(page, ids) {
  const known = TALK.seen.length;
  const goesOn = known && known < ids.length && TALK.seen.every((id, i) => ids[i] === id) && ids.length - known <= Math.max(known, 8);
  let scores;
  if (goesOn) for (const id of ids.slice(known)) scores = TALK.continuation.step(tokensOf([id]));
  else {
    TALK.continuation = new Continuation(page.programs, page.settings, []);
    scores = TALK.continuation.start(tokensOf(ids));
  }
  TALK.seen = [...ids];
  return scores;
}

TASKS.chat = async (page, { messages, temperature, tokens, seed }, told) => {
  const { tokenizer, settings } = page;
  const { ids, dropped, isCut } = conversationIds(page, messages, tokens);
  const random = randomNumbers(seed);
  const written = [];
  let scores = scoresAfter(page, ids);
  const textOf = () => {
    const before = tokenizer.apart ? [] : ids;
    return tokenizer.decode([...before, ...written]).slice(tokenizer.decode(before).length);
  };
  const answer = (text) => ({ text, dropped, isCut });
  while (written.length < tokens && ids.length + written.length < settings.context) {
    const token = drawn(probabilities(rowOf(scores, 0), temperature), random());
    if (token === settings.end) break;
    written.push(token);
    if (await told(answer(textOf().replace(/\ufffd+$/u, '')))) break; // a character may not be whole yet
    scores = TALK.continuation.step(tokensOf([token]));
    TALK.seen.push(token);
  }
  return answer(textOf());
};
