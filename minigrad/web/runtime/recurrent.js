// Kernels of recurrent layers: all steps of one layer in one direction. The weights of the gates lie one below the other.

// How the state of one unit moves: from what comes in and what the state before gives, one number for each gate.
const CELLS = {
  rnn: (coming, old) => ({ hidden: Math.tanh(coming(0) + old(0)) }),
  gru: (coming, old, { hidden }) => {
    const n = Math.tanh(coming(2) + sigmoid(coming(0) + old(0)) * old(2));
    return { hidden: n + sigmoid(coming(1) + old(1)) * (hidden - n) };
  },
  lstm: (coming, old, { cell }) => {
    const [i, f, g, o] = [0, 1, 2, 3].map((gate) => coming(gate) + old(gate));
    const moved = sigmoid(f) * cell + sigmoid(i) * Math.tanh(g);
    return { hidden: sigmoid(o) * Math.tanh(moved), cell: moved };
  },
};

// (T, B, I), …, (B, H) -> (T, B, H), and for a cell of its own one more row of it. A row that has ended keeps its state.
function recurrence(move, [x, weightIn, weightOld, biasIn, biasOld, first, firstCell, lengths], reverse, dtype) {
  const [steps, batch] = x.shape;
  const width = first.shape[1];
  const coming = KERNELS.linear([x, weightIn, biasIn], {}, [dtype]).data;
  const [hidden, cell] = [first, firstCell].map((state) => (state ? new NDArray(dtype, state.shape, state.data.slice()) : null));
  const out = emptyArray(dtype, [steps + (cell ? 1 : 0), batch, width]);
  for (let count = 0; count < steps; count++) {
    const step = reverse ? steps - 1 - count : count;
    const old = KERNELS.linear([hidden, weightOld, biasOld], {}, [dtype]);
    const wide = old.shape[1];
    for (let row = 0; row < batch; row++) {
      if (lengths && !(lengths.data[row] > step)) continue;
      for (let unit = 0; unit < width; unit++) {
        const at = row * width + unit;
        const moved = move(
          (gate) => coming[(step * batch + row) * wide + gate * width + unit],
          (gate) => old.data[row * wide + gate * width + unit],
          { hidden: hidden.data[at], cell: cell ? cell.data[at] : 0 },
        );
        hidden.data[at] = moved.hidden;
        if (cell) cell.data[at] = moved.cell;
      }
    }
    out.data.set(hidden.data, step * batch * width);
  }
  if (cell) out.data.set(cell.data, steps * batch * width);
  return out;
}

function withoutCell(inputs) {
  return [...inputs.slice(0, 6), null, ...inputs.slice(6)];
}

KERNELS.rnn = (inputs, { reverse }, [dtype]) => recurrence(CELLS.rnn, withoutCell(inputs), reverse, dtype);
KERNELS.gru = (inputs, { reverse }, [dtype]) => recurrence(CELLS.gru, withoutCell(inputs), reverse, dtype);
KERNELS.lstm = (inputs, { reverse }, [dtype]) => recurrence(CELLS.lstm, inputs, reverse, dtype);
