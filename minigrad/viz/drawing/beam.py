"""The tree of a beam search: every token that was tried, which were kept, and which of the finished ones is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError
from .heatmap import token_text
from .scene import Group, Line, Rect, Scene, Text, clean, text_width, widest

__all__ = ["beam_tree"]

MOST_NODES = 400  # that are drawn
MOST_ROWS = 16  # as many as a screen has room for
MOST_GIVEN = 200_000  # that are looked at; a tree that goes round in a circle would have no end
ROW, GAP, HIGH = 40.0, 34.0, 30.0  # points: from row to row, between columns, and of a box
TOP = 68.0
SCORE = "log-probability of the sentence up to here"


@dataclass(eq=False)
class _Node:
    number: int  # in the order from the top down, parents before their children
    token: str
    score: float | None
    kept: bool
    final: bool
    parent: _Node | None
    depth: int
    children: list[_Node] = field(default_factory=list)
    y: float = 0.0

    @property
    def score_text(self) -> str:
        return "" if self.score is None else f"{self.score:.3f}".replace("nan", "NaN").replace("inf", "∞")

    @property
    def worth(self) -> float:
        """The score to compare by; none, and NaN, are worst."""
        return self.score if self.score is not None and self.score == self.score else float("-inf")

    def path(self, until: set[_Node]) -> list[_Node]:
        """This node and those that lead to it, up to the first that is in `until`."""
        found: list[_Node] = []
        node: _Node | None = self
        while node is not None and node not in until:
            found.append(node)
            node = node.parent
        return found


def beam_tree(
    root: Any, names: Sequence[Any] | Callable[[Any], Any] | None = None, best: Any = None, most: int = MOST_NODES,
    rows: int = MOST_ROWS, title: str = "beam search",
) -> Scene:  # fmt: skip
    """A picture of a beam search, from left to right; the best sentence is the first row.

    A node is `{"token": str, "score": float, "children": [nodes], "kept": bool, "final": bool}`, or an object that has
    these, the last two also as `is_kept` and `is_final`. Only the token is needed: the score is the log-probability of
    the sentence up to here, unless the root's `note` says what else, `kept` says that it stayed in the beam (the default),
    `final` that it is a finished sentence. `names` turn tokens that are numbers into text: a vocabulary, or a function. `best` is the
    node of the sentence that won; the final one with the highest score unless given. What `minigrad.decode.beam_search`
    found may stand for the root: its whole tree is drawn, and it is the best.

    Of more than `most` nodes, or `rows`, those that lead to finished ones are drawn first, then those kept, then by
    score; the picture says how many it left out.

    >>> found = {"token": "you", "score": -0.2, "final": True}
    >>> lost = {"token": "thou", "score": -2.5, "kept": False}
    >>> beam_tree({"token": "<s>", "score": 0.0, "children": [found, lost]}).title
    'beam search'
    """
    for what, given in {"most is how many nodes": most, "rows is how many rows": rows}.items():
        if given < 1:
            raise ArgumentError(f"beam_tree: {what} are drawn", "1 or more", given)
    if hasattr(root, "branch"):
        root, best = root.branch, root.branch if best is None else best
        while root.parent is not None:
            root = root.parent
    nodes, won = _read(root, names, best)
    drawn = _choose(nodes, won, most, rows)
    on_best = set(won.path(set())) if won is not None else set()
    columns = _columns(drawn)
    height = _place_rows(drawn, on_best)
    left_out = len(nodes) - len(drawn)
    legend = [
        "in each box: " + clean(_part(root, "note", SCORE), 90),
        "dashed: dropped from the beam · bold frame: finished · ★ and thick lines: the best"
        + f" · +: {left_out:,} of {len(nodes):,} nodes are left out" * bool(left_out),
    ]
    heading = Text(12, 22, clean(title, 90), 13, bold=True)
    shapes: list[Any] = [heading, *[Text(12, 39 + 14 * i, line, 10, "faint") for i, line in enumerate(legend)]]
    shapes += [_branch(node, node.parent, columns, node in on_best) for node in drawn if node.parent is not None]
    shown = set(drawn)
    shapes += [_box(node, columns[node.depth], node is won, shown) for node in drawn]
    width = max(sum(columns[-1]) + 60, 24 + widest(legend, 10), 24 + text_width(heading.text, 13.5))
    return Scene(width, height + 16, shapes, title)


def _read(root: Any, names: Any, best: Any) -> tuple[list[_Node], _Node | None]:
    nodes, won = list[_Node](), None
    waiting: list[tuple[Any, _Node | None]] = [(root, None)]
    while waiting:
        given, parent = waiting.pop()
        token, score, children = (_part(given, name) for name in ("token", "score", "children"))
        if token is None or not isinstance(children or [], Sequence):
            where = "the root" if parent is None else f"a child of {parent.token!r}"
            wanted = '{"token": …, "score": …, "children": […]}'
            raise ArgumentError(f"beam_tree: {where} is no node", wanted, str(given)[:80])
        try:
            name = token if names is None else names(token) if callable(names) else names[token]
        except LookupError:
            raise ArgumentError(f"beam_tree: names has none for token {token!r}", "a name for every token") from None
        kept, final = bool(_part(given, "kept", True)), bool(_part(given, "final", False))
        score, depth = None if score is None else float(score), 0 if parent is None else parent.depth + 1
        node = _Node(len(nodes), token_text(name, 14), score, kept, final, parent, depth)
        won = node if best is not None and given is best else won
        nodes.append(node)
        if parent is not None:
            parent.children.append(node)
        if len(nodes) + len(waiting) > MOST_GIVEN:
            raise ArgumentError("beam_tree: the tree is too large, or goes round in a circle", f"{MOST_GIVEN:,} nodes")
        waiting += [(child, node) for child in reversed(children or [])]
    if best is not None and won is None:
        raise ArgumentError("beam_tree: the best is not in the tree", "a node of it", str(best)[:80])
    finals = [node for node in nodes if node.final]
    return nodes, won or max(finals, key=lambda node: (node.worth, -node.number), default=None)


def _part(given: Any, name: str, default: Any = None) -> Any:
    if isinstance(given, Mapping):
        return given.get(name, default)
    return getattr(given, name, getattr(given, f"is_{name}", default))


def _choose(nodes: list[_Node], best: _Node | None, most: int, rows: int) -> list[_Node]:
    """The nodes that are drawn: the most worth seeing, each with all that lead to it, as far as they go."""
    drawn, used = {nodes[0]}, 1
    continued: set[_Node | None] = set()  # have a node on their own row: another takes a row more
    for node in sorted(nodes, key=lambda n: (n is not best, not n.final, not n.kept, -n.worth, n.number)):
        path = node.path(drawn)
        path = path[max(len(path) - (most - len(drawn)), 0) :]
        more = bool(path) and path[-1].parent in continued
        if used + more <= rows:
            used += more
            drawn |= set(path)
            continued |= {each.parent for each in path}
    return sorted(drawn, key=lambda node: node.number)


def _columns(drawn: list[_Node]) -> list[tuple[float, float]]:
    widths = [24.0] * (1 + max(node.depth for node in drawn))
    for node in drawn:
        widths[node.depth] = max(widths[node.depth], text_width(node.token, 11), text_width(node.score_text, 9))
    return [(12 + sum(widths[:depth]) + depth * (16 + GAP), width + 16) for depth, width in enumerate(widths)]


def _place_rows(drawn: list[_Node], on_best: set[_Node]) -> float:
    """Give every node its height: beside its parent the first of its children, the best one if it is there, and the others
    below; the height of all."""
    shown, waiting, y = set(drawn), drawn[:1], TOP
    while waiting:
        node = waiting.pop()
        node.y = y
        children = sorted((child for child in node.children if child in shown), key=lambda child: child not in on_best)
        waiting += reversed(children)
        y += 0 if children else ROW
    return y


def _branch(node: _Node, parent: _Node, columns: list[tuple[float, float]], is_best: bool) -> Line:
    x0, x1 = sum(columns[parent.depth]), columns[node.depth][0]
    y0, y1, middle = parent.y + HIGH / 2, node.y + HIGH / 2, (x0 + x1) / 2
    points = [(x0, y0), (middle, y0), (middle, y1), (x1, y1)]
    return Line(points, "output-line" if is_best else "line", 3 if is_best else 1, not node.kept, curved=True)


def _box(node: _Node, column: tuple[float, float], is_best: bool, shown: set[_Node]) -> Group:
    x, width = column
    fill, stroke = ("output", "output-line") if node.final else ("input", "input-line") if node.kept else (None, "line")
    ink, baseline = "ink" if node.kept else "faint", 13 if node.score is not None else 19
    parts: list[Any] = [
        Rect(x, node.y, width, HIGH, fill, stroke, 4, not node.kept, 2.5 if node.final else 1),
        Text(x + width / 2, node.y + baseline, node.token, 11, ink, "middle", is_best),
        Text(x + width / 2, node.y + 25, node.score_text, 9, "faint", "middle"),
    ]
    parts += [Text(x + width + 5, node.y + 19, "★ best", 11, "output-line", bold=True)] if is_best else []
    hidden = len(set(node.children) - shown)
    parts += [Text(x + width / 2, node.y + HIGH + 8.5, f"+{hidden:,}", 9, "faint", "middle")] if hidden else []
    return Group(parts, "node", node.token)
