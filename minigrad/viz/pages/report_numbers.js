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
