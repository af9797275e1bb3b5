// Where the numbers of a run are on its curves, and how they are written.
// Six digits: more than anyone compares by eye. The whole number is in data-exact.
function digits(value) {
  return typeof value === 'string' ? show(value) : String(Number(value.toPrecision(6)));
}

// Where in sorted steps the nearest to a step is.
function nearest(steps, step) {
  let low = 0, high = steps.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle; else high = middle;
  }
  return step - steps[low] <= steps[high] - step ? low : high;
}

function heightOf(box, value) {
  const form = Number(box.log) ? Math.log10 : (x) => x;
  const [low, high] = [form(Number(box.low)), form(Number(box.high))];
  return Number(box.bottom) + ((form(value) - low) / (high - low)) * (Number(box.top) - Number(box.bottom));
}

function acrossOf(box, step) {
  return Number(box.left) + ((step - Number(box.first)) / (Number(box.last) - Number(box.first))) * (Number(box.right) - Number(box.left));
}

// Which words of two texts are in both, in their order: for each text true where a word has its twin in the other.
function twins(a, b) {
  const longest = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const found = [a.map(() => false), b.map(() => false)];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) found[0][i++] = found[1][j++] = true;
    else if (longest[i + 1][j] >= longest[i][j + 1]) i++; else j++;
  }
  return found;
}

// Samples of the form "  source -> said (wanted: …)", below a line that says what they are; null where a text is none.
function answersOf(text) {
  const [title, ...lines] = text.trimEnd().split('\n');
  const found = lines.map((each) => /^ {2}(.*?) -> (.*?)(?: \(wanted: (.*)\))?$/.exec(each));
  if (!title.endsWith(':') || !found.length || found.includes(null)) return null;
  return { title, rows: found.map(([, source, said, wanted]) => ({ source, said, wanted })) };
}
