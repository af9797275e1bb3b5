"""The tree of a beam search: every token that was tried, which were kept, and which of the finished ones is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..engine.errors import ArgumentError
from .heatmap import token_text, wide
from .scene import Group, Line, Rect, Scene, Text

__all__ = ["beam_tree"]

MOST_NODES = 400  # that are drawn
MOST_GIVEN = 200_000  # that are looked at; a tree that goes round in a circle would have no end
ROW, GAP, HIGH = 40.0, 34.0, 30.0  # points: from row to row, between columns, and of a box
TOP = 64.0


@dataclass
class _Node:
    token: str
    score: float | None
    kept: bool
    final: bool
    parent: int  # its number, -1 of the root
    depth: int
    children: list[int] = field(default_factory=list)
    y: float = 0.0
    hidden: int = 0  # children that are not drawn


def beam_tree(
    root: Any,
    names: Sequence[Any] | Callable[[Any], Any] | None = None,
    best: Any = None,
    most: int = MOST_NODES,
    title: str = "beam search",
) -> Scene:
    """A picture of a beam search, from left to right.

    A node is `{"token": str, "score": float, "children": [nodes], "kept": bool, "final": bool}`, or an object that has
    these, the last two also as `is_kept` and `is_final`. Only the token is needed: the score is the log-probability of
    the sentence up to here, `kept` says that it stayed in the beam (it does unless told otherwise), `final` that it is
    a finished sentence. `names` turn tokens that are numbers into text: a vocabulary, or a function. `best` is the
    node of the sentence that won; the final one with the highest score unless given. What `minigrad.decode.beam_search`
    found may stand for the root: its whole tree is drawn, and it is the best.

    Of more than `most` nodes those that lead to finished ones are drawn first, then those kept, then by score; the
    picture says how many it left out.

    >>> found = {"token": "you", "score": -0.2, "final": True}
    >>> lost = {"token": "thou", "score": -2.5, "kept": False}
    >>> beam_tree({"token": "<s>", "score": 0.0, "children": [found, lost]}).title
    'beam search'
    """
    if most < 1:
        raise ArgumentError("beam_tree: most is how many nodes are drawn", "1 or more", most)
    if hasattr(root, "branch"):
        root, best = _root(root.branch), root.branch if best is None else best
    nodes, won = _read(root, names, best)
    won = _best(nodes) if won is None else won
    drawn = _drawn(nodes, won, most)
    on_best = set(_up(nodes, won)) if won is not None else set()
    columns = _columns(nodes, drawn)
    height = _rows(nodes, drawn)
    shapes = _heading(title, len(nodes), len(drawn))
    shapes += [
        _branch(nodes, columns, number, number in on_best) for number in sorted(drawn) if nodes[number].parent >= 0
    ]
    shapes += [_box(nodes[number], columns, number == won) for number in sorted(drawn)]
    return Scene(max(columns[-1][0] + columns[-1][1] + 60, 520), height + 16, shapes, title)


def _root(branch: Any) -> Any:
    while branch.parent is not None:
        branch = branch.parent
    return branch


def _read(root: Any, names: Any, best: Any) -> tuple[list[_Node], int | None]:
    """All nodes, parents before their children; and the number of the best, if it is given."""
    nodes: list[_Node] = []
    won = None
    waiting: list[tuple[Any, int]] = [(root, -1)]
    while waiting:
        given, parent = waiting.pop()
        children = _part(given, "children") or []
        if _part(given, "token") is None or not isinstance(children, Sequence):
            where = "the root" if parent < 0 else f"a child of {nodes[parent].token!r}"
            raise ArgumentError(
                f"beam_tree: {where} is no node", '{"token": …, "score": …, "children": […]}', str(given)[:80]
            )
        won = len(nodes) if best is not None and given is best else won
        nodes.append(_node(given, names, parent, nodes[parent].depth + 1 if parent >= 0 else 0))
        if parent >= 0:
            nodes[parent].children.append(len(nodes) - 1)
        if len(nodes) + len(waiting) > MOST_GIVEN:
            raise ArgumentError("beam_tree: the tree is too large, or goes round in a circle", f"{MOST_GIVEN:,} nodes")
        waiting += [(child, len(nodes) - 1) for child in reversed(children)]
    if best is not None and won is None:
        raise ArgumentError("beam_tree: the best is not in the tree", "a node of it", str(best)[:80])
    return nodes, won


def _node(given: Any, names: Any, parent: int, depth: int) -> _Node:
    token, score = _part(given, "token"), _part(given, "score")
    try:
        name = token if names is None else names(token) if callable(names) else names[token]
    except LookupError:
        raise ArgumentError(f"beam_tree: names has none for token {token!r}", "a name for every token") from None
    kept, final = bool(_part(given, "kept", True)), bool(_part(given, "final", False))
    return _Node(token_text(name, 14), None if score is None else float(score), kept, final, parent, depth)


def _part(given: Any, name: str, default: Any = None) -> Any:
    """What a node has under a name."""
    if isinstance(given, Mapping):
        return given.get(name, default)
    return getattr(given, name, getattr(given, f"is_{name}", default))


def _worth(score: float | None) -> float:
    """A score to compare by; none, and NaN, are worst."""
    return score if score is not None and score == score else float("-inf")


def _best(nodes: list[_Node]) -> int | None:
    finals = [number for number, node in enumerate(nodes) if node.final]
    return max(finals, key=lambda number: (_worth(nodes[number].score), -number), default=None)


def _up(nodes: list[_Node], number: int) -> list[int]:
    """A node and those that lead to it."""
    path = []
    while number >= 0:
        path.append(number)
        number = nodes[number].parent
    return path


def _drawn(nodes: list[_Node], best: int | None, most: int) -> set[int]:
    """Which nodes are drawn: the most worth seeing, each with all that lead to it, as far as they go."""
    drawn = {0}

    def rank(number: int) -> tuple[bool, bool, bool, float, int]:
        node = nodes[number]
        return number != best, not node.final, not node.kept, -_worth(node.score), number

    for number in sorted(range(len(nodes)), key=rank):
        path = []
        above = number
        while above not in drawn:
            path.append(above)
            above = nodes[above].parent
        room = most - len(drawn)
        drawn |= set(path[len(path) - room :] if len(path) > room else path)
        if len(drawn) >= most:
            break
    for number, node in enumerate(nodes):
        if number in drawn:
            node.hidden = sum(child not in drawn for child in node.children)
    return drawn


def _columns(nodes: list[_Node], drawn: set[int]) -> list[tuple[float, float]]:
    """Where each depth begins, and how wide its boxes are."""
    widths: dict[int, float] = {}
    for number in drawn:
        node = nodes[number]
        needed = max(wide(node.token, 11), wide(_score(node), 9), 24) + 16
        widths[node.depth] = max(widths.get(node.depth, 0), needed)
    places, x = [], 12.0
    for depth in range(len(widths)):
        places.append((x, widths[depth]))
        x += widths[depth] + GAP
    return places


def _rows(nodes: list[_Node], drawn: set[int]) -> float:
    """Give every node its height: leaves below each other, others in the middle of their children; the height of all."""
    y = TOP
    for number in sorted(drawn):  # parents come first, and leaves from top to bottom
        if not any(child in drawn for child in nodes[number].children):
            nodes[number].y = y
            y += ROW
    for number in sorted(drawn, reverse=True):
        below = [nodes[child].y for child in nodes[number].children if child in drawn]
        if below:
            nodes[number].y = (below[0] + below[-1]) / 2
    return y


def _score(node: _Node) -> str:
    return "" if node.score is None else f"{node.score:.3f}".replace("nan", "NaN").replace("inf", "∞")


def _heading(title: str, count: int, drawn: int) -> list[Any]:
    left_out = f"; {count - drawn:,} of {count:,} nodes are left out" if drawn < count else ""
    legend = "dashed: dropped from the beam · bold frame: finished · ★ and thick lines: the best" + left_out
    return [Text(12, 22, token_text(title, 60).replace("␣", " "), 13, bold=True), Text(12, 40, legend, 10, "faint")]


def _branch(nodes: list[_Node], columns: list[tuple[float, float]], number: int, is_best: bool) -> Line:
    node, parent = nodes[number], nodes[nodes[number].parent]
    x0 = columns[parent.depth][0] + columns[parent.depth][1]
    x1 = columns[node.depth][0]
    y0, y1, middle = parent.y + HIGH / 2, node.y + HIGH / 2, (x0 + x1) / 2
    points = [(x0, y0), (middle, y0), (middle, y1), (x1, y1)]
    return Line(points, "output-line" if is_best else "line", 3 if is_best else 1, not node.kept, curved=True)


def _box(node: _Node, columns: list[tuple[float, float]], is_best: bool) -> Group:
    x, width = columns[node.depth]
    fill, stroke = ("output", "output-line") if node.final else ("input", "input-line") if node.kept else (None, "line")
    ink = "ink" if node.kept else "faint"
    parts: list[Any] = [
        Rect(x, node.y, width, HIGH, fill, stroke, 4, not node.kept, 2.5 if node.final else 1),
        Text(x + width / 2, node.y + (13 if node.score is not None else 19), node.token, 11, ink, "middle", is_best),
        Text(x + width / 2, node.y + 25, _score(node), 9, "faint", "middle"),
    ]
    parts += [Text(x + width + 5, node.y + 19, "★ best", 11, "output-line", bold=True)] if is_best else []
    parts += [Text(x + width + 5, node.y + HIGH, f"+{node.hidden:,}", 9, "faint")] if node.hidden else []
    return Group(parts, "node", node.token)
