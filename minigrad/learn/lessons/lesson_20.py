"""A compiler in an afternoon: what nobody reads, what is computed twice, and how much memory is in use."""

from ..exercise import exercise

_PROGRAM = [
    ("a", "add", ("x", "y")),
    ("b", "exp", ("a",)),
    ("c", "add", ("x", "y")),
    ("d", "multiply", ("b", "c")),
    ("e", "exp", ("c",)),
    ("f", "multiply", ("b", "a")),
    ("g", "multiply", ("e", "a")),
    ("h", "log", ("f",)),
]
_CHAIN = [(f"v{i}", "exp", (f"v{i - 1}" if i else "x",)) for i in range(6)]
_TWINS = [
    ("p", "subtract", ("x", "y")),
    ("q", "subtract", ("y", "x")),
    ("r", "add", ("p", "q")),
    ("s", "add", ("q", "p")),
]


def _by_going_back(program, outputs):
    made_from = {name: inputs for name, _, inputs in program}
    needed, todo = set(), [*outputs]
    while todo:
        name = todo.pop()
        if name in made_from and name not in needed:
            needed.add(name)
            todo += made_from[name]
    return [step for step in program if step[0] in needed]


@exercise(
    cases=[
        (_PROGRAM, ["d"]),
        (_PROGRAM, ["h"]),
        (_PROGRAM, ["g", "b"]),
        (_CHAIN, ["v3"]),
        (_TWINS, ["s", "x"]),
        (_CHAIN, []),
    ],
    oracle=_by_going_back,
    hint="go through the program from its end: a step stays if its name is needed, and then its inputs are needed, too",
)
def needed(program, outputs):
    """The steps of a program that its outputs depend on, in their order; a step is (name, op, names of the inputs).

    >>> needed([("a", "exp", ("x",)), ("b", "log", ("x",)), ("c", "add", ("a", "x"))], ["c"])
    [('a', 'exp', ('x',)), ('c', 'add', ('a', 'x'))]
    """
    wanted, kept = set(outputs), []
    for name, op, inputs in reversed(program):
        if name in wanted:
            wanted.update(inputs)
            kept.append((name, op, inputs))
    return kept[::-1]


def _written_out(program):
    formulas, first = {}, {}
    for name, op, inputs in program:
        formulas[name] = f"{op}({', '.join(formulas.get(i, i) for i in inputs)})"
        first.setdefault(formulas[name], name)
    return {name: first[formula] for name, formula in formulas.items()}


@exercise(
    cases=[
        (_PROGRAM,),
        (_TWINS,),
        (_CHAIN,),
        ([*_TWINS, ("t", "add", ("x", "y")), ("u", "add", ("p", "y"))],),
        ([*_TWINS, ("t", "add", ("r", "s")), ("u", "add", ("r", "s"))],),
    ],
    oracle=_written_out,
    hint="before you compare two steps, write for each input the name under which it was computed first; the order of inputs counts",
)
def computed_first(program):
    """For the name of each step, the name of the first step that computes the same: by the same op of the same inputs.

    >>> computed_first([("a", "exp", ("x",)), ("b", "exp", ("x",)), ("c", "log", ("a",)), ("d", "log", ("b",))])
    {'a': 'a', 'b': 'a', 'c': 'c', 'd': 'c'}
    """
    first, seen = {}, {}
    for name, op, inputs in program:
        key = op, tuple(first.get(one, one) for one in inputs)
        first[name] = seen.setdefault(key, name)
    return first


def _moment_by_moment(program, sizes, outputs):
    made = {name: place for place, (name, _, _) in enumerate(program)}
    moments = []
    for moment in range(len(program)):
        in_use = 0
        for name, size in sizes.items():
            reads = [place for place, (_, _, inputs) in enumerate(program) if name in inputs]
            last = len(program) if name in outputs or name not in made else max(reads, default=made[name])
            in_use += size if made.get(name, 0) <= moment <= last else 0
        moments.append(in_use)
    return max(moments)


_SIZES = dict(zip("xyabcdefgh", (3, 5, 7, 11, 13, 17, 19, 23, 29, 31)))


@exercise(
    cases=[
        (_PROGRAM, _SIZES, ["h"]),
        (_PROGRAM, _SIZES, ["d", "g"]),
        (_PROGRAM[:3], {name: _SIZES[name] for name in "xyabc"}, ["b"]),
        (_CHAIN, {"x": 4, **{f"v{i}": 10 - i for i in range(6)}}, ["v5"]),
    ],
    oracle=_moment_by_moment,
    hint="while a step runs, its result and all that it reads are there at once; give back only afterwards what nobody reads any more",
)
def peak(program, sizes, outputs):
    """The most memory that is in use while some step of a program runs, where each array is given back after its last reader.

    `sizes` has the size of every array. Inputs of the program, which no step makes, and outputs stay. What nobody reads is
    given back right after the step that made it.

    >>> steps = [("a", "exp", ("x",)), ("b", "exp", ("a",)), ("c", "exp", ("b",))]
    >>> peak(steps, {"x": 1, "a": 10, "b": 10, "c": 5}, ["c"])
    21
    """
    made = {name for name, _, _ in program}
    stays = {*outputs, *(name for name in sizes if name not in made)}
    in_use, most = sum(size for name, size in sizes.items() if name not in made), 0
    alive = set()
    for place, (name, _, _) in enumerate(program):
        alive.add(name)
        most = max(most, in_use + sum(sizes[one] for one in alive))
        read_later = {one for _, _, inputs in program[place + 1 :] for one in inputs}
        alive = {one for one in alive if one in read_later or one in stays}
    return most
