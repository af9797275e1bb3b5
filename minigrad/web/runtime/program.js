// Runs a traced graph: steps from inputs to outputs, each one kernel. What depends on constants alone is computed once.

class Program {
  // `form` is the graph as JSON, `tensors` are the constants by name.
  constructor(form, tensors) {
    this.form = form;
    this.known = new Map(Object.entries(form.constants).map(([name, tensor]) => [name, tensors[tensor]]));
    const steps = form.steps.map((step) => ({ ...step, kernel: KERNELS[step.op], dtypes: step.outputs.map((name) => form.dtypes[name]) }));
    const missing = steps.find((step) => !step.kernel);
    if (missing) throw new Error(`this page has no kernel for ${missing.op}`);
    this.steps = [];
    for (const step of steps) {
      const isFixed = reads(step).every((name) => this.known.has(name)) && !hasSize(step);
      if (isFixed) runStep(step, this.known, {});
      else this.steps.push(step);
    }
    this.last = new Map(); // which step is the last that reads a value: then its memory is free again
    this.steps.forEach((step, i) => reads(step).forEach((name) => this.last.set(name, i)));
    this.kept = new Set([...form.outputs, ...this.known.keys()]);
  }

  // The outputs for these inputs. `watch(step, weights)` gets the weights of each attention.
  run(inputs, watch = null) {
    const { form } = this;
    const [values, sizes] = [new Map(this.known), {}];
    form.inputs.forEach((input, i) => {
      values.set(input.name, inputs[i]);
      input.shape.forEach((n, axis) => {
        const actual = inputs[i].shape[axis];
        if (n !== null && n.size && n.size[1].length === 1 && n.size[2] === 1 && !n.size[3]) sizes[n.size[1][0]] = actual;
        else if (typeof n === 'number' && n !== actual) throw new Error(`an input has the shape ${inputs[i].shape}`);
      });
    });
    this.steps.forEach((step, i) => {
      runStep(step, values, sizes, watch);
      for (const name of reads(step)) {
        if (this.last.get(name) === i && !this.kept.has(name)) values.delete(name);
      }
    });
    return form.outputs.map((name) => values.get(name));
  }
}

function runStep(step, values, sizes, watch) {
  const inputs = step.inputs.map((x) => bound(x, values, sizes));
  const attributes = {};
  for (const [name, x] of Object.entries(step.attrs)) attributes[name] = bound(x, values, sizes);
  const arrays = inputs.map((x, i) => (typeof x === 'number' && step.op === 'matmul' ? asArray(x, step.dtypes[i]) : x));
  const made = step.kernel(arrays, attributes, step.dtypes, watch ? (weights) => watch(step, weights) : null);
  const several = Array.isArray(made) ? made : [made];
  step.outputs.forEach((name, i) => values.set(name, typed(several[i], step.dtypes[i])));
}

// Kernels that only move numbers give the dtype that came in.
function typed(array, dtype) {
  return array.dtype === dtype ? array : KERNELS.astype([array], {}, [dtype]);
}

// What an input or attribute stands for: values, sizes that vary, slices and lists of them, numbers.
function bound(x, values, sizes) {
  if (x === null || typeof x !== 'object') return typeof x === 'string' && x in FAR ? FAR[x] : x;
  if ('value' in x) return values.get(x.value);
  if ('size' in x) return x.size[1].reduce((product, name) => product * sizes[name], x.size[2]) + x.size[3];
  if ('tuple' in x) return x.tuple.map((part) => bound(part, values, sizes));
  if ('slice' in x) return { slice: x.slice.map((part) => bound(part, values, sizes)) };
  return x; // an ellipsis, or a dtype
}

const FAR = { inf: Infinity, '-inf': -Infinity, nan: NaN }; // for which JSON has no numbers

// The names of the values that a step reads.
function reads(step) {
  const found = new Set();
  const look = (x) => {
    if (x === null || typeof x !== 'object') return;
    if ('value' in x) found.add(x.value);
    (x.tuple || x.slice || []).forEach(look);
  };
  [...step.inputs, ...Object.values(step.attrs)].forEach(look);
  return [...found];
}

function hasSize(step) {
  const look = (x) => x !== null && typeof x === 'object' && ('size' in x || (x.tuple || x.slice || []).some(look));
  return [...step.inputs, ...Object.values(step.attrs)].some(look);
}
