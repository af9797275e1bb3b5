# %% [markdown]
# # 20. A compiler in an afternoon
#
# Tutorial 16 had fused kernels: one loop in place of a chain of ops. One could write them by hand, one for each chain. This
# tutorial writes a program that writes them. That is a *compiler*: it reads a program in one language (ops on whole arrays) and
# writes it in another (loops over single numbers).
#
# At the end you will have
#
# - a compiler of some 200 lines, which you have seen work at every stage;
# - a function and its gradient as one loop, with the same values and a small part of the memory traffic;
# - an idea of what `mg.compile` does, and a whole training step compiled by it.
#
# Reading takes about an hour, running about ten seconds. You should know what a graph is (tutorial 2), broadcasting
# (tutorial 3) and layer norm (tutorial 11). Times are of the machine that runs this; yours will differ.

# %%
import ast
import importlib.util
import math
import re
import tempfile
import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from showing import show

import minigrad as mg
from minigrad import kernels, nn, optim
from minigrad.nn import functional as F
from minigrad.tracer import Tracer, tracing
from minigrad.viz.drawing.scene import Line, Rect, Scene, Text

# %% [markdown]
# Our compiler writes Python. To make that fast it is handed to *numba*, which translates simple Python into the language
# of the processor. Without numba everything below still works: the same text then runs as plain Python, on small arrays.

# %%
HAS_NUMBA = kernels.implementation() == "numba"
ROWS, COLUMNS = (2048, 512) if HAS_NUMBA else (64, 32)
if not HAS_NUMBA:
    print("no numba here: the loops run as plain Python, so arrays are small, and the loops are slow")
    print("with it: `pip install -e '.[fast]'`, and without MINIGRAD_KERNELS=numpy")

# %% [markdown]
# ## What is lost between two ops
#
# A *kernel* is the code that does the work of an op: a loop over all numbers of its arrays. Take $y = a \cdot b + c$ on
# arrays of a million numbers, 4 bytes each. NumPy has a kernel for `*` and one for `+`:
#
# | | reads | writes |
# |---|---|---|
# | $t = a \cdot b$ | $a$, $b$: 8 MB | $t$: 4 MB |
# | $y = t + c$ | $t$, $c$: 8 MB | $y$: 4 MB |
#
# Each line is a *pass over memory*: a walk through whole arrays, number by number. Two passes move 24 MB. To *fuse* the
# two ops means to write one kernel for both. It computes `a[i] * b[i] + c[i]` for one $i$ after the other. It reads
# 12 MB and writes 4 MB. The array $t$ never exists; each of its numbers lives for a moment inside the processor.
#
# Does it matter? A processor computes and fetches at the same time. So the slower of the two decides:
#
# $$\text{time} \approx \max\left(\frac{\text{operations}}{\text{operations a second}},\;
# \frac{\text{bytes moved}}{\text{bytes a second}}\right)$$
#
# When the second one is larger, the code is *memory-bound*: the processor waits for memory, and arithmetic is free.
# Let us see which one it is here.


# %%
def seconds(work, repeats=5):
    """The least time of some repeats, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


for count in (60_000, 10_000_000):
    a, b, out = np.ones(count, "float32"), np.ones(count, "float32"), np.empty(count, "float32")
    works = {
        "copy": lambda a=a, out=out: np.copyto(out, a),
        "a + b": lambda a=a, b=b, out=out: np.add(a, b, out=out),
        "root": lambda a=a, out=out: np.sqrt(a, out=out),
    }
    times = [f"{name} {1e9 * seconds(work) / count:.2f}" for name, work in works.items()]
    print(f"{count:10,} numbers, ns for each: {',  '.join(times)}")

# %% [markdown]
# Few numbers fit into the *cache*, a small fast memory inside the processor. There a root takes several times as long as a
# copy. Many numbers have to come from far away, and then the three take about the same time. Adding is free, and so is the
# root. Elementwise ops on large arrays are memory-bound. So a compiler should save passes, not additions.
#
# ## An example
#
# Layer norm without its weights, from rows of numbers to rows with mean 0 and spread 1:
#
# $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \qquad \mu = \text{mean}(x) \qquad \sigma^2 = \text{mean}\left((x - \mu)^2\right)$$
#
# The code is sloppy, as code is. The mean is computed three times, $x - \mu$ twice, and two of the three statistics are not
# used.


# %%
def mean(a):
    return a.sum(axis=1, keepdims=True) / a.shape[1]  # (R, C) -> (R, 1)


def square(a):
    return a * a


def statistics(a):
    """All that one may want to know about rows: their means, spreads and largest sizes; (R, C) -> three of (R, 1)."""
    spread = (mean(square(a - mean(a))) + 1e-5).sqrt()
    return mean(a), spread, a.abs().max(axis=1, keepdims=True)


def normalize(x):
    _, spread, _ = statistics(x)
    return (x - mean(x)) / spread  # (R, C)


# %% [markdown]
# ## Trace: watch it once
#
# How does a compiler get to know what a function does? It could read the text of the function. Then it would have to
# understand all of Python. There is an easier way: run the function once, and write down every op that is called. That is
# called a *trace*. Loops, calls and classes of Python do not appear in it, because only their ops were noticed.
#
# What we write down is a list of *steps*. A step has an op, its inputs, and a name for the array that comes out. The
# array itself is of no interest, since next time it will hold other numbers. Only its shape stays. We call it a *value*.


# %%
@dataclass(eq=False)
class Value:
    """An array that will exist when the program runs: its shape is known, its numbers are not."""

    name: str
    shape: tuple


@dataclass(eq=False)
class Step:
    """One op: from Values and plain numbers to a Value."""

    op: Any
    inputs: tuple
    attrs: dict
    out: Value

    @property
    def values(self):
        return [x for x in dict.fromkeys(self.inputs) if isinstance(x, Value)]


@dataclass
class Program:
    """Steps that lead from inputs to outputs, in an order in which they can run."""

    inputs: list
    steps: list
    outputs: list

    def __str__(self):
        lines = []
        for step in self.steps:
            given = [x.name if isinstance(x, Value) else str(x) for x in step.inputs]
            given += [f"{name}={value}" for name, value in step.attrs.items()]
            made = f"{step.out.name} {step.out.shape}"
            lines.append(f"  {made:16} = {step.op.name}({', '.join(given)})")
        takes, gives = [", ".join(v.name for v in values) for values in (self.inputs, self.outputs)]
        return "\n".join([f"takes {takes}", *lines, f"returns {gives}"])


# %% [markdown]
# minigrad tells a *tracer* of every op, if one is attached. Ours follows arrays by their identity: `id` gives a number for
# an object that no other object has while it lives. When an op makes an array, the array gets a name. When a later op is
# given the same array, we know which one it is.
#
# What if an op is given an array that we have never seen? It came from outside. We could store it, but then the program
# would use yesterday's array tomorrow. So we refuse.


# %%
class Recorder(Tracer):
    """Writes down every op."""

    def __init__(self):
        self.steps = []
        self.known = {}  # by id: the Value and its array; an array that is kept here keeps its id

    def know(self, array):
        """Give a new array a name."""
        value = Value(f"v{len(self.known)}", array.shape)
        self.known[id(array)] = value, array
        return value

    def value_of(self, x):
        """The Value of an array; a plain number is what it is."""
        array = x.data if isinstance(x, mg.Tensor) else x
        if not isinstance(array, np.ndarray):
            return x
        if id(array) not in self.known:
            raise ValueError(f"an array of shape {array.shape} came from outside: make it an argument")
        return self.known[id(array)][0]

    def called(self, op, inputs, attrs, outputs, seconds):
        given = tuple([self.value_of(x) for x in inputs])
        self.steps.append(Step(op, given, attrs, self.know(outputs.data)))


def trace(function, *tensors):
    """What a function of Tensors does with these, as a Program."""
    recorder = Recorder()
    inputs = [recorder.know(t.data) for t in tensors]
    with tracing(recorder):
        results = function(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    return Program(inputs, recorder.steps, [recorder.value_of(r) for r in results])


# %%
mg.manual_seed(0)
x = mg.randn(ROWS, COLUMNS)
traced = trace(normalize, x)
print(traced)

# %% [markdown]
# Python is gone. What is left is a graph, written as a list: each step is a box, and the names are its arrows. The
# function `mean` was called four times, and left eight lines.
#
# A trace has no `if` in it, either: it has seen the one way that was taken. If that depends on the numbers in an array, the
# program is wrong for other numbers. A good compiler notices; ours does not.
#
# ## Tidy up
#
# Two things are easy to do with a list. A *common subexpression* is something that is computed twice: the same op, the
# same inputs, the same attributes. The second one can use the result of the first. And since it then has the same
# input as another one further down, that may become a repetition, too. One walk from top to bottom finds them all.
#
# A *dead* step is one that no output needs. To find these, walk from the bottom to the top, and collect what is needed.


# %%
def without_repeats(program):
    """Compute nothing twice. (Right for ops without dice: two calls of dropout are two.)"""
    first, same, steps = {}, {}, []
    for step in program.steps:
        inputs = tuple([same.get(x, x) for x in step.inputs])
        key = step.op.name, inputs, repr(step.attrs)
        if key in first:
            same[step.out] = first[key]
        else:
            first[key] = step.out
            steps.append(replace(step, inputs=inputs))
    return Program(program.inputs, steps, [same.get(v, v) for v in program.outputs])


def without_dead(program):
    """Compute nothing that no output needs."""
    needed, steps = set(program.outputs), []
    for step in reversed(program.steps):
        if step.out in needed:
            needed.update(step.values)
            steps.append(step)
    return Program(program.inputs, steps[::-1], program.outputs)


def tidy(program):
    return without_dead(without_repeats(program))


# %%
tidied = tidy(traced)
print(tidied)
print(f"{len(traced.steps)} steps became {len(tidied.steps)}")

# %% [markdown]
# ## Group: which steps share a loop
#
# All our arrays are tables of $R$ rows. We look for steps that can be part of this loop:
#
# ```
# for each row:
#     for each column: …        a walk along the row
#     …                         once a row
#     for each column: …        another walk
# ```
#
# Three kinds of steps can:
#
# - elementwise on whole tables, $(R, C)$: a line within a walk;
# - elementwise on one number a row, $(R, 1)$: a line between two walks;
# - a sum along the row, $(R, C) \to (R, 1)$: it grows during a walk, and is known after it.
#
# A row is walked along several times, and that is no pass over memory: a row of 512 numbers has 2 kB, and after the first
# walk it is in the cache.
#
# What a step may be is written in two tables. The first one has, for each elementwise op, the expression for one number.
# The second has, for each sum, how it starts and how it goes on. Everything else (a matrix product, an op that
# nobody has told us about) stays what it is: an op of its own.

# %%
EXPRESSIONS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "negative": "-{}",
    "sqrt": "np.sqrt({})",
    "exp": "np.exp({})",
    "tanh": "np.tanh({})",
    "broadcast_to": "{}",  # one number a row, used for each column: nothing to compute
}
SUMS = {"sum": ("f4(0)", "{} + {}")}


# %%
def fits(shape, loop_shape):
    """Whether a value of this shape can be used in a loop over (rows, columns)."""
    return shape in (loop_shape, (loop_shape[0], 1))


def shape_of_loop(step):
    """The (rows, columns) that a step has to walk over; None if we have no loop for it."""
    name = step.op.name
    if name not in EXPRESSIONS and name not in SUMS or not set(step.attrs) <= {"axis", "keepdims", "shape"}:
        return None
    shape = step.inputs[0].shape if name in SUMS else step.out.shape
    known = len(shape) == 2 and all(fits(v.shape, shape) for v in [*step.values, step.out])
    return shape if known and (name not in SUMS or step.out.shape == (shape[0], 1) != shape) else None


def joined(one, other):
    """The shape of a loop that does the work of two; None if there is none."""
    if one is None or other is None or one[0] != other[0]:
        return None
    return max(one, other) if one == other or 1 in (one[1], other[1]) else None


# %% [markdown]
# Now go through the steps. Each may join any loop that does not run too early: all its inputs must have been made there, or
# before. It takes the first that fits, and if none does, it begins a new one.


# %%
@dataclass(eq=False)
class Loop:
    """Steps that run together over (rows, columns); without a shape, a single op that is called as it is."""

    shape: tuple | None
    steps: list = field(default_factory=list)
    reads: list = field(default_factory=list)  # arrays from memory
    writes: list = field(default_factory=list)  # arrays to memory


def group(program):
    """A program as a list of Loops, in the order in which they run."""
    loops, made_in = [], {}
    for step in program.steps:
        earliest = max([made_in.get(v, 0) for v in step.values], default=0)
        shape = shape_of_loop(step)
        choices = [k for k in range(earliest, len(loops)) if joined(loops[k].shape, shape)]
        if choices:
            loop = loops[choices[0]]
            loop.shape = joined(loop.shape, shape)
        else:
            loop = Loop(shape)
            loops.append(loop)
        loop.steps.append(step)
        made_in[step.out] = loops.index(loop)
    for number, loop in enumerate(loops):
        used = dict.fromkeys(v for step in loop.steps for v in step.values)
        loop.reads = [v for v in used if made_in.get(v) != number]
        others = {v for other in loops if other is not loop for step in other.steps for v in step.values}
        loop.writes = [s.out for s in loop.steps if s.out in others or s.out in program.outputs]
    return loops


# %% [markdown]
# The last lines are where memory is saved. A loop reads what it does not make, and writes only what somebody else needs.
# Everything else between its steps never becomes an array.

# %%
loops = group(tidied)
for loop in loops:
    names = [[v.name for v in values] for values in (loop.reads, loop.writes)]
    print(f"{len(loop.steps)} steps over {loop.shape}: reads {names[0]}, writes {names[1]}")

# %% [markdown]
# All in one. Here is the difference as a picture. A thick arrow is a table, $(R, C)$. A thin one is one number a row,
# $(R, 1)$. (The code only draws. You may skip it, here and below.)


# %%
def traffic(x, title, parts):
    """Boxes (words, reads, writes) beside a bar of memory, with an arrow for each array that is moved."""
    shapes, y = [Text(x, 20, title, 11.5, bold=True)], 34
    for words, reads, writes in parts:
        height = max(10 + 13 * len(words), 9 + 9 * (len(reads) + len(writes)))
        shapes.append(Rect(x + 150, y, 130, height, "group", "group-line", 4))
        first = y + height / 2 - 6.5 * (len(words) - 1) + 3.5
        shapes += [Text(x + 215, first + 13 * n, word, 10, anchor="middle") for n, word in enumerate(words)]
        places = np.linspace(y, y + height, len(reads) + len(writes) + 2)[1:-1]
        for at, (value, is_read) in zip(places, [(v, True) for v in reads] + [(v, False) for v in writes]):
            ends = [(x + 42, at), (x + 148, at)] if is_read else [(x + 150, at), (x + 44, at)]
            is_table = value.shape[1] > 1
            color = "input-line" if is_read else "gradient"
            shapes.append(Line(ends, color, 2.6 if is_table else 0.9, arrow=True))
        y += height + 7
    bar = [
        Rect(x, 34, 40, y - 41, "input", "input-line", 3),
        Text(x + 24, y / 2 + 14, "memory", 11, "ink", "middle", turned=True),
    ]
    return bar + shapes, y


def lanes(program, loops):
    """What each op of a program moves if it runs by itself, and what each loop moves."""
    alone = [([step.op.name], step.values, [step.out]) for step in program.steps]
    return alone, [([s.op.name for s in loop.steps], loop.reads, loop.writes) for loop in loops]


alone, together = lanes(tidied, loops)
left, low = traffic(20, "op by op", alone)
right, _ = traffic(350, "one loop", together)
legend = [("read from memory", "input-line", 1.8), ("written to memory", "gradient", 1.8)]
legend += [("a table", "ink", 2.6), ("one number a row", "ink", 0.9)]
for n, (words, color, thick) in enumerate(legend):
    at = low - 80 + 20 * n
    right += [Line([(350, at), (390, at)], color, thick, arrow=True), Text(400, at + 4, words, 10, "faint")]
show(Scene(650, low + 14, left + right, "what moves to and from memory"), "20_traffic")

# %% [markdown]
# ## Write: from steps to source
#
# Each step becomes a line. Only one question is left: in which walk along the row? Count the walks from 0. What comes from
# memory is known in walk 0. An elementwise step runs as soon as its inputs are known. A sum starts as soon as its input is
# known, and is itself known one walk later:
#
# $$\text{known}(\text{step}) = \max_{\text{inputs}} \text{known}(\text{input}) + \begin{cases} 1 & \text{for a sum} \\ 0 & \text{else}
# \end{cases}$$


# %%
def known_in(loop):
    """For each value that a loop makes: the number of the walk in which it is known."""
    known = {}
    for step in loop.steps:
        ready = max([known.get(v, 0) for v in step.values], default=0)
        known[step.out] = ready + (step.op.name in SUMS)
    return known


for value, walk in known_in(loops[0]).items():
    print(f"{value.name:4} is known in walk {walk}")

# %% [markdown]
# A number of a table that is made in one walk and used in the next has to be kept, for one row. That is a short array. Its
# name begins with `keep_`. It is written again for each row, so it stays in the cache.
#
# `operand` writes one input of a step. There are five kinds: a plain number, a number from an array in memory (in each
# column, or once a row), one that this loop has just made, and one that was kept. `f4` is short for float32.


# %%
def operand(x, loop, known, walk):
    """An input of a step as text."""
    if not isinstance(x, Value):
        number = float(x)  # whatever it was, it is a number now
        if not math.isfinite(number):
            raise ValueError(f"{number} cannot be written into a program")
        return f"f4({number!r})"
    if x in known:
        is_kept = x.shape == loop.shape and known[x] < walk
        return f"keep_{x.name}[col]" if is_kept else x.name
    return f"{x.name}[row, {'col' if x.shape[1] > 1 else '0'}]"


def kept_by(loop, known):
    """The tables that are made in one walk and used in a later one."""
    pairs = [(v, known[step.out] - (step.op.name in SUMS)) for step in loop.steps for v in step.values]
    return dict.fromkeys(v for v, walk in pairs if v in known and v.shape == loop.shape and known[v] < walk)


# %%
def write(loop, name):
    """The source of a function that does the work of a loop."""
    known = known_in(loop)
    kept = kept_by(loop, known)
    given = ["rows", "columns", *[v.name for v in loop.reads], *[f"out_{v.name}" for v in loop.writes]]
    lines = [f"def {name}({', '.join(given)}):"]
    lines += [f"    keep_{v.name} = np.empty(columns, f4)" for v in kept]
    lines += ["    for row in range(rows):"]
    for walk in range(max(known.values()) + 1):
        before, within, after = [], [], []  # what is done for each column, and what once a row
        for step in loop.steps:
            out, is_sum = step.out.name, step.op.name in SUMS
            if known[step.out] - is_sum != walk:
                continue
            inputs = [operand(x, loop, known, walk) for x in step.inputs]
            if is_sum:
                start, more = SUMS[step.op.name]
                before += [f"{out} = {start}"]
                within += [f"{out} = {more.format(out, *inputs)}"]
                after += [f"out_{out}[row, 0] = {out}"] * (step.out in loop.writes)
                continue
            place = within if step.out.shape == loop.shape else before
            place += [f"{out} = {EXPRESSIONS[step.op.name].format(*inputs)}"]
            place += [f"keep_{out}[col] = {out}"] * (step.out in kept)
            place += [f"out_{out}[row, {'col' if place is within else '0'}] = {out}"] * (step.out in loop.writes)
        lines += [f"        {line}" for line in before]
        lines += ["        for col in range(columns):"] * bool(within)
        lines += [f"            {line}" for line in within]
        lines += [f"        {line}" for line in after]
    return "\n".join(lines)


print(write(loops[0], "loop0"))

# %% [markdown]
# Read it beside the formula. Three walks: for the mean, for the spread, for the result. This is what one would write by
# hand.
#
# ## Is that safe?
#
# We are about to run text that a program has put together. That is how many security holes begin: somebody hands in a text
# that contains code, and the code is run. So look at where each part of our source comes from.
#
# | part | comes from |
# |---|---|
# | expressions | our tables. The name of an op only *chooses* a line there; it is never written itself |
# | names | ours: `v` and a count. No name that anybody else has given |
# | numbers | `float(…)`, finite, and written by Python's `repr` |
# | everything else | the words in `write` |
#
# Nothing that comes from outside reaches the source as text. That is the first lock. The second one looks at the result:
# Python's own `ast` takes the source apart without running it, and we refuse every part that is not on a list.

# %%
PARTS = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.For, ast.Assign, ast.Subscript, ast.Tuple),
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Call, ast.Attribute, ast.Name, ast.Constant),
    ast.expr_context,
)
NAMES = re.compile(r"(out_|keep_)?v\d+|loop\d+|row|col|rows|columns|range|f4|np")
OF_NUMPY = {"empty", "sqrt", "exp", "tanh"}


def check(source):
    """Refuse a source in which there is anything but loops, arithmetic and names of our own."""
    for part in ast.walk(ast.parse(source)):
        is_known = isinstance(part, PARTS)
        if isinstance(part, ast.Name):
            is_known = NAMES.fullmatch(part.id)
        elif isinstance(part, ast.Attribute):
            is_known = isinstance(part.value, ast.Name) and part.value.id == "np" and part.attr in OF_NUMPY
        elif isinstance(part, ast.Constant):
            is_known = type(part.value) in (int, float)
        if not is_known:
            raise ValueError(f"this does not belong into a loop: {ast.unparse(part)}")


check(write(loops[0], "loop0"))
stranger = replace(tidied.steps[0], inputs=(Value("__import__('os')", (4, 4)),))
for source in ('def loop0(rows):\n    v1 = open("secrets")', write(Loop((4, 4), [stranger]), "loop0")):
    try:
        check(source)
        print("went through!")
    except ValueError as refusal:
        print(refusal)

# %% [markdown]
# Then the source becomes a module like any other: it is written to a file, and imported. The folder of the file is made by
# `tempfile`. Only we can write there, so nobody can exchange the file before it is read.
#
# `@cache` keeps what was made for a source. The same source is compiled once, however often it is needed.


# %%
@cache
def load(source):
    """The functions in a source: compiled by numba where it is installed, else as they are."""
    check(source)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loops.py"
        path.write_text(f"import numpy as np\n\nf4 = np.float32\n\n\n{source}\n")
        spec = importlib.util.spec_from_file_location("loops", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    made = {name: function for name, function in vars(module).items() if name.startswith("loop")}
    if HAS_NUMBA:
        numba = importlib.import_module("numba")
        # "reassoc" allows to add up a row in another order: eight numbers at a time, and their sums at the end.
        compiled = numba.njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
        made = {name: compiled(function) for name, function in made.items()}
    return SimpleNamespace(**made)


# %% [markdown]
# ## Run
#
# The compiler is complete. `Fused` puts its parts in a row: trace, tidy, group, write, load. The result is called with
# arrays. Each loop gets its arrays and new ones to write to. A step without a loop calls its op, as before.


# %%
class Fused:
    """A function of arrays: traced with some Tensors, and compiled for all of the same shapes."""

    def __init__(self, function, *tensors):
        self.traced = trace(function, *tensors)
        self.program = tidy(self.traced)
        self.loops = group(self.program)
        texts = {f"loop{k}": write(loop, f"loop{k}") for k, loop in enumerate(self.loops) if loop.shape}
        self.source = "\n\n\n".join(texts.values())
        module = load(self.source)
        self.kernels = [getattr(module, f"loop{k}", None) for k in range(len(self.loops))]

    def __call__(self, *arrays):
        known = dict(zip(self.program.inputs, arrays))
        for loop, kernel in zip(self.loops, self.kernels):
            given = [known[v] for v in loop.reads]
            if kernel:
                made = {v: np.empty(v.shape, "float32") for v in loop.writes}
                kernel(*loop.shape, *given, *made.values())
                known.update(made)
            else:
                (step,) = loop.steps
                known[step.out] = step.op(*[known.get(a, a) for a in step.inputs], **step.attrs)
        results = tuple([known[v] for v in self.program.outputs])
        return results if len(results) > 1 else results[0]


# %%
fused = Fused(normalize, x)
wanted = normalize(x).numpy()
print(
    f"values differ by at most {np.abs(fused(x.numpy()) - wanted).max():.0e}, where the largest is {np.abs(wanted).max():.2f}"
)
other = mg.randn(ROWS, COLUMNS) * 5 + 3
assert np.allclose(fused(other.numpy()), normalize(other).numpy(), atol=1e-5)

# %% [markdown]
# The same, but for rounding, and for an array that it has not been traced with, too. How much memory traffic is gone?
# Count, for each pass, what is read and written:
#
# $$\text{bytes} = 4 \sum_{\text{passes}} (\text{numbers read} + \text{numbers written})$$


# %%
def cost(passes):
    """How many passes over memory there are, and how many bytes they move."""
    return len(passes), 4 * sum(math.prod(v.shape) for _, reads, writes in passes for v in [*reads, *writes])


def costs(compiled):
    """The cost of what was traced, of what was tidied, and of the loops."""
    traced, _ = lanes(compiled.traced, [])
    tidied, together = lanes(compiled.program, compiled.loops)
    return {"traced": cost(traced), "tidied": cost(tidied), "fused": cost(together)}


for stage, (passes, moved) in costs(fused).items():
    print(f"{stage}: {passes:2} passes over memory, {moved / 1e6:.3f} MB")

# %% [markdown]
# The table $x$ is read once, and the result is written once. Less is not possible. If the function is memory-bound, its
# time should shrink about as its bytes do. Does it? We take more and more rows, and divide the time by the count of
# numbers.

# %%
sizes = [4**power for power in range(1, 7)] if HAS_NUMBA else [1, 4, 16, 64]
curves = {"op by op": [], "fused": []}
for rows in sizes:
    part = mg.randn(rows, COLUMNS)
    numbers, array = rows * COLUMNS, part.numpy()
    one = Fused(normalize, part)  # the same source for all sizes, so it is compiled once
    times = seconds(lambda part=part: normalize(part)), seconds(lambda one=one, array=array: one(array))
    for name, took in zip(curves, times):
        curves[name].append(1e9 * took / numbers)
    print(
        f"{rows:6} rows: op by op {times[0] * 1e3:8.3f} ms, fused {times[1] * 1e3:8.3f} ms, ratio {times[0] / times[1]:.2g}"
    )
counts = [rows * COLUMNS for rows in sizes]
lines = {name: (counts, each) for name, each in curves.items()}
show(mg.viz.lines(lines, "layer norm", x="numbers", y="ns a number", log="both", points=True), "20_times")
if not HAS_NUMBA:
    print("plain Python is slower than NumPy's ops here: the last stage of a compiler has to be one for the processor")

# %% [markdown]
# With numba, the loop is faster everywhere. On a few rows it saves the fixed cost of sixteen ops. On many rows it saves
# memory traffic. Op by op, the curve rises at the right. There the arrays between two ops no longer fit into the cache, and
# room for each of them has to be asked for anew.
#
# ## The gradient is only more ops
#
# Now the backward pass. It seems to need a compiler of its own, with a rule for every op. It needs nothing. In minigrad the
# rules for gradients are made of ops themselves. With `create_graph=True` they are called like any other, and our tracer
# sees them. (Tutorial 2 had it: a gradient is computed by multiplying and adding.)
#
# Let $g$ be the gradient that arrives at $y$. We trace a function that does both: forward, and then backward from $g$ to
# $x$.


# %%
def both_ways(x, g):
    """y (R, C), and the gradient of x (R, C) when g (R, C) arrives at y."""
    y = normalize(x)
    (gradient,) = mg.autograd.grad(y, x, g, create_graph=True)
    return y, gradient


x.requires_grad_()
g = mg.randn(ROWS, COLUMNS)
both = Fused(both_ways, x, g)
print(both.program)

# %% [markdown]
# Forward and backward are one list, one graph. Nothing in it says where the one ends and the other begins. So nothing has
# to be done for gradients: tidy, group and write as before. It even gets better. The backward pass needs $x - \mu$ and the
# spread again. Usually the forward pass has to store them for it. Here they are at hand.
#
# (Not everything in it is clever. `-g` is computed in walk 0, because it can be, and is kept until walk 2 needs it.)

# %%
print(both.source)
y, gradient = both(x.numpy(), g.numpy())
(by_minigrad,) = mg.autograd.grad(normalize(x), x, g)
print(
    f"\nvalues differ by {np.abs(y - wanted).max():.0e}, gradients by {np.abs(gradient - by_minigrad.numpy()).max():.0e}"
)
for stage, (passes, moved) in costs(both).items():
    print(f"{stage}: {passes:2} passes over memory, {moved / 1e6:.3f} MB")

# %% [markdown]
# All of it is one loop, and what it moves is the least that can be: read $x$ and $g$, write $y$ and the gradient. Here is
# its graph, walk by walk. Blue steps belong to the forward pass, pink ones to the backward pass. Broad boxes are tables,
# narrow ones are one number a row. The two with a thick edge are $y$ and the gradient. Where a line leads from a broad box
# into a later walk, a row is kept.


# %%
def levels_of(loop, inputs):
    """How far down each value is drawn: below all that its step needs, and below earlier walks; and the walk of each level."""
    known, level, walk_at = known_in(loop), dict.fromkeys(inputs, 0), {0: -1}
    for walk in range(max(known.values()) + 1):
        top = max(level.values()) + 1
        for step in loop.steps:
            if known[step.out] - (step.op.name in SUMS) == walk:
                level[step.out] = max([top, *[level[v] + 1 for v in step.values]])
                walk_at[level[step.out]] = walk
    return level, walk_at


def places_of(loop, level, width):
    """Where each value is drawn across, at its own level and at all levels down to its last user."""
    across = {(v, 0): 200 + 250 * k for k, v in enumerate(v for v in level if level[v] == 0)}
    for at in range(1, max(level.values()) + 1):
        wish = {s.out: np.mean([across[v, at - 1] for v in s.values]) for s in loop.steps if level[s.out] == at}
        wish |= {v: across[v, at - 1] for s in loop.steps for v in s.values if level[v] < at < level[s.out]}
        row = sorted(wish, key=lambda v: (wish[v], level[v]))
        size = {v: width[v] if level[v] == at else 12 for v in row}
        place = {}
        for left, v in zip([None, *row], row):  # no two on top of each other
            place[v] = max(wish[v], place[left] + (size[left] + size[v]) / 2 + 8) if left else wish[v]
        shift = np.mean(list(wish.values())) - np.mean(list(place.values()))
        across |= {(v, at): x + shift for v, x in place.items()}
    return across


# %%
def draw_graph(program, loop, forward):
    """The steps of a loop as boxes, walk by walk; `forward` has the values of the forward pass."""
    level, walk_at = levels_of(loop, program.inputs)
    width = {v: 88 if v.shape == loop.shape else 56 for v in level}
    across = places_of(loop, level, width)
    down = {at: 24 + 30 * at + 12 * (walk + 1) for at, walk in walk_at.items()}
    shapes = []
    for walk in range(max(walk_at.values()) + 1):
        ys = [down[at] for at in down if walk_at[at] == walk]
        shapes += [Rect(8, ys[0] - 15, 624, ys[-1] - ys[0] + 30, "surface", "grid", 4)]
        shapes += [Text(624, ys[0] - 2, f"walk {walk}", 10, "faint", "end")]
    for user, value in [(step.out, v) for step in loop.steps for v in step.values]:
        for at in range(level[value], level[user]):
            is_last = at + 1 == level[user]
            x0, y0 = across[value, at], down[at] + 9 * (at == level[value])
            x1, y1 = across[user if is_last else value, at + 1], down[at + 1] - 9 * is_last
            shapes.append(Line([(x0, y0), (x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1)], "line", curved=True))
    words = dict(zip(program.inputs, "xg")) | {step.out: step.op.name for step in loop.steps}
    for value, at in level.items():
        role = "parameter" if value in program.inputs else "input" if value in forward else "gradient-fill"
        edge = {"parameter": "parameter-line", "input": "input-line", "gradient-fill": "gradient"}[role]
        x, y = across[value, at], down[at]
        thick = 2.4 if value in program.outputs else 1
        shapes += [Rect(x - width[value] / 2, y - 9, width[value], 18, role, edge, 4, thick=thick)]
        shapes += [Text(x, y + 3.5, words[value], 9.5, anchor="middle")]
    return Scene(640, max(down.values()) + 24, shapes, "forward and backward in one graph")


forward = {
    step.out for step in without_dead(Program(both.program.inputs, both.program.steps, both.program.outputs[:1])).steps
}
show(draw_graph(both.program, both.loops[0], forward), "20_graph")

# %% [markdown]
# And the bytes, for each of the three stages:


# %%
def bars(rows, title):
    """Bars (name, bytes, passes, colour), to one scale."""
    most = max(moved for _, moved, _, _ in rows)
    shapes = [Text(20, 22, title, 11.5, bold=True)]
    for n, (name, moved, passes, color) in enumerate(rows):
        y, width = 38 + 26 * n + 10 * (n // 3), 300 * moved / most
        shapes += [Text(150, y + 13, name, 10.5, anchor="end"), Rect(158, y, width, 18, color, None, 2)]
        amount = f"{moved / 1e6:.1f} MB" if most > 1e6 else f"{moved / 1e3:.0f} kB"
        shapes.append(Text(164 + width, y + 13, f"{amount}, {passes} pass{'es' * (passes > 1)}", 10.5, "faint"))
    return Scene(640, 58 + 26 * len(rows), shapes, title)


rows = []
for name, compiled in (("forward", fused), ("both ways", both)):
    for (stage, (passes, moved)), color in zip(costs(compiled).items(), ("series-2", "series-5", "series-3")):
        rows.append((f"{name}, {stage}", moved, passes, color))
show(bars(rows, f"memory that layer norm moves, ({ROWS}, {COLUMNS})"), "20_bytes")


# %%
def eager():
    y = normalize(x)
    return mg.autograd.grad(y, x, g)


arrays = x.detach().numpy(), g.numpy()
took = seconds(eager), seconds(lambda: both(*arrays))
print(f"forward and backward, op by op / fused: {took[0] / took[1]:.2g}")

# %% [markdown]
# ## What does not fuse
#
# A step that needs *all* rows cannot be in a loop over rows. A matrix product is one, and it is not worth it, either: it
# uses each number hundreds of times, and is bound by arithmetic. It stays an op, and cuts the program in two.


# %%
def layer(x, w, scale):
    return (normalize(x) @ w * scale).tanh()


w, scale = mg.randn(COLUMNS, COLUMNS) / COLUMNS**0.5, mg.randn(ROWS, 1)
cut = Fused(layer, x.detach(), w, scale)
for loop in cut.loops:
    how = f"a loop over {loop.shape}" if loop.shape else "an op"
    print(f"{how}: {', '.join(step.op.name for step in loop.steps)}")
assert np.allclose(cut(arrays[0], w.numpy(), scale.numpy()), layer(x, w, scale).detach().numpy(), atol=1e-4)

# %% [markdown]
# ## The real thing
#
# `mg.compile` is made of the same parts: trace, tidy (it says *simplify*), group, write, load. Each is a file of its own.
# It needs no tensors to be given beforehand: it traces when it is first called, and again for other shapes.

# %%
compiled = mg.compile(normalize)
plain = x.detach()
compiled(plain)  # traced here
print(f"values differ by {np.abs(compiled(plain).numpy() - wanted).max():.0e}\n")
print(compiled.graph(), "\n")
print(compiled.explain(), "\n")
print(compiled.source())

# %% [markdown]
# With numba, the function at the end is our loop again, with three walks and other names. It computes $x - \mu$ again in
# each walk, where ours keeps it. (Where numba is not installed, `mg.compile` has no loops to write. It runs the tidied list
# of ops.) Gradients work, too. The graph is traced both ways, as we did it, and then cut into a forward and a backward
# part, because `backward()` is called later.

# %%
x.grad = None
compiled(x).backward(g)
print(f"gradients differ by {np.abs(x.grad.numpy() - by_minigrad.numpy()).max():.0e}")
with mg.no_grad():
    took = seconds(lambda: normalize(plain)), seconds(lambda: fused(arrays[0])), seconds(lambda: compiled(plain))
print(f"op by op / ours: {took[0] / took[1]:.2g},  op by op / mg.compile: {took[0] / took[2]:.2g}")

# %% [markdown]
# What else does it take to make a compiler for everyday use?
#
# | | ours | mg.compile |
# |---|---|---|
# | ops that it can fuse | a table of ten | what each op says of itself where it is declared |
# | arrays | float32 tables | any number of axes, float64, integers, booleans; views without copies |
# | sums | along rows | along any axes, also largest, smallest, products |
# | arrays from outside | refused | asked for again at each call: weights, learning rates |
# | a branch that depends on a number | not noticed | refused, or checked at each call |
# | threads | one | all cores, where the arrays are large |
# | compiled code | forgotten at the end | kept on disk for the next time |
#
# The branch is worth a look. This function gives $x$ or $-x$, and a trace sees only one of them.

# %%
try:
    mg.compile(lambda x: x if x.sum() > 0 else -x)(plain)
except mg.MinigradError as mistake:
    print(mistake)

# %% [markdown]
# ## A whole training step
#
# If the backward pass is only ops, then so is the optimiser: for plain gradient descent it is $w \leftarrow w - \eta g$, a
# product and a difference. A whole step can be one program. Its arrays from outside are the weights and the averages that
# Adam keeps; it reads them at the start and writes them at the end.


# %%
class Net(nn.Module):
    """(B, 32) -> (B, 1), with a layer norm of our own."""

    def __init__(self):
        self.hidden = nn.Linear(32, 128)
        self.head = nn.Linear(128, 1)

    def forward(self, x):
        return self.head(normalize(self.hidden(x)).tanh())


def new_training():
    """A network and its optimiser, the same each time."""
    mg.manual_seed(0)
    net = Net()
    return net, optim.Adam(net.parameters(), lr=0.01)


# %%
inputs = mg.randn(512, 32)
targets = inputs[:, :4].sin().sum(axis=1, keepdims=True)  # (512, 1)

net, optimizer = new_training()


@mg.compile
def step(x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


fast = [step(inputs, targets).item() for _ in range(40)]

# %%
net, optimizer = new_training()
slow = [step.function(inputs, targets).item() for _ in range(40)]
print(f"loss, step by step: {slow[0]:.5f} … {slow[-1]:.5f}")
print(f"loss, compiled:     {fast[0]:.5f} … {fast[-1]:.5f}")
print(f"they differ by at most {np.abs(np.array(fast) - slow).max():.0e}\n")
explained = [line if len(line) < 120 else f"{line[:119]}…" for line in step.explain().splitlines()]
print(*explained if len(explained) < 20 else [*explained[:10], "…", explained[-1]], sep="\n")

# %% [markdown]
# The products of matrices stay what they are. Between them are loops. The last one is Adam's: new averages and new
# weights, some forty small steps, in one pass.
#
# Is it faster? That depends on what you compare it with. Most layers and optimisers of minigrad are fused ops already
# (tutorial 16), whose kernels this very compiler writes when they are first called, and there `mg.compile` gains little. It
# gains where nothing is fused yet: in a layer, a loss or an optimiser of your own, such as `normalize` here. So measure.

# %%
net, optimizer = new_training()
compiled_time = seconds(lambda: step(inputs, targets), 20)
eager_time = seconds(lambda: step.function(inputs, targets), 20)
print(f"a training step, op by op / compiled: {eager_time / compiled_time:.2g}")

# %% [markdown]
# Two habits make compiling a good idea. Let shapes stay the same, so that a function is traced once. And look at values
# (`loss.item()`, `print`) outside of it.
#
# ## Exercises
#
# 1. Softmax, $e^{x_j - m} / \sum_k e^{x_k - m}$ with $m$ the largest of the row, needs `max` along rows. Teach it to the
#    compiler by a line in a table. The check will refuse the source at first; that is its job. How many walks does the loop
#    have, and how many bytes does it move?
# 2. An array can be given back when its last reader is done. For `both.program`: how much memory is in use at the worst
#    moment, op by op, if everything is kept to the end; if arrays are given back; and fused?
# 3. Layer norm has weights: $\gamma$ and $\beta$, of shape $(1, C)$, the same for all rows. Let the compiler read such
#    arrays in its loops. (Change `fits` and `operand`.) Is $y = \gamma \hat{x} + \beta$ with its gradient for $x$ one loop?
#    And what about the gradients of $\gamma$ and $\beta$?
#
# More to do, a file with holes that marks itself: `minigrad learn start 20`, then `minigrad learn check`.
#
# Solutions: [solutions/20_a_compiler.py](solutions/20_a_compiler.py)
#
# ## Read next
#
# - [minigrad/ir/trace.py](../minigrad/ir/trace.py): the tracer, and what it has to know about arrays from
#   outside.
# - [minigrad/compile/simplify.py](../minigrad/compile/simplify.py) and
#   [minigrad/compile/group.py](../minigrad/compile/group.py): tidy and group, for any axes.
# - [minigrad/compile/numba_source.py](../minigrad/compile/numba_source.py) writes the source, and
#   [minigrad/compile/cut.py](../minigrad/compile/cut.py) cuts forward and backward apart.
# - [minigrad/ops/elementwise/arithmetic.py](../minigrad/ops/elementwise/arithmetic.py): where ops say their expressions, as `lowering`.
# - Last: [Errata](errata.py), all places where the document is wrong, on one page.
