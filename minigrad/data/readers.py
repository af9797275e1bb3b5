"""Readers of what people have: pairs of sentences in columns or in two files, and plain text, zipped or not.

Whatever cannot be used is counted with its line number in a `ReadReport`, which every reader returns beside the data.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..errors import ArgumentError
from .errors import DataError
from .unpacking import MAX_BYTES, unpacked

__all__ = ["ReadReport", "read_pairs", "read_text"]

Path = str | os.PathLike[str]
Row = tuple[int, list[str] | None, str]  # line number, cells, and the problem if there are none

MAX_CHARS = 1000  # in one sentence
MAX_LINE = 100_000
SAMPLE = 200  # lines that are looked at to find out how a file is written
JOINED = 20  # lines that one quoted cell may go over
LINE_BYTES = 64  # of max_bytes that a line counts for at least
PIECE = 2**20  # bytes that are cut into lines at a time

MARKS = {"\t": "tabs", ",": "commas", ";": "semicolons"}
UNDECODED = "bytes that are not valid in the encoding"

_NAMES = (
    "source target src tgt trg input output original translation translated question answer sentence text sentence1 "
    "sentence2 english spanish german french italian portuguese español deutsch français en es de fr it pt eng spa deu "
    "fra ita por inglés ingles espanol"
)
HEADERS = frozenset(_NAMES.split())


@dataclass
class ReadReport:
    """What a reader found: how the file is written, how many lines it has, and which of them could not be used.

    Every line is accounted for: `lines == kept + blank + bad_count + other`.
    """

    path: str
    form: str = "text"
    lines: int = 0
    kept: int = 0
    blank: int = 0
    other: int = 0  # a header, and lines that a quoted cell goes on over
    bad: dict[str, list[int]] = field(default_factory=dict)  # what is wrong -> the lines where it is

    @property
    def bad_count(self) -> int:
        """How many lines could not be used."""
        return sum(map(len, self.bad.values()))

    def note(self, problem: str, line: int) -> None:
        """Count a line that cannot be used."""
        self.bad.setdefault(problem, []).append(line)

    def __str__(self) -> str:
        counts = f"  {_counted(self.lines, 'line')}: {self.kept:,} kept, {self.blank:,} blank, {self.bad_count:,} bad"
        if self.other:
            counts += f", {self.other:,} of a header or a cell of several lines"
        details = [
            f"  {len(lines):,} with {problem}: line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:5]))}"
            + (" …" if len(lines) > 5 else "")
            for problem, lines in self.bad.items()
        ]
        return "\n".join([f"{self.path}: {self.form}", counts, *details])


def read_pairs(
    path: Path,
    target_path: Path | None = None,
    *,
    columns: tuple[int, int] | None = None,
    header: bool | None = None,
    max_chars: int = MAX_CHARS,
    encoding: str = "utf-8",
    member: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> tuple[list[tuple[str, str]], ReadReport]:
    """Pairs of sentences, and a report of what was read.

    `path` is a file with tabs, commas or semicolons between its columns, or a zip (as of Tatoeba and manythings.org) or
    gzip of one; which, and whether there is a header, is found out. With `target_path`, the two files are aligned line by
    line. `columns` chooses other columns than the first two, `member` a file inside a zip with several.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "pairs.tsv")
    >>> with open(path, "w", encoding="utf-8") as file:
    ...     _ = file.write("Hello.\\tHola.\\nThanks.\\n")
    >>> pairs, report = read_pairs(path)
    >>> pairs
    [('Hello.', 'Hola.')]
    >>> print(str(report).replace(path, "pairs.tsv"))
    pairs.tsv: columns between tabs
      2 lines: 1 kept, 0 blank, 1 bad
      1 with 1 column instead of 2: line 2
    """
    lines, name = _lines(path, encoding, member, max_bytes)
    report = ReadReport(name)
    if target_path is None:
        rows, chosen = _table(lines, columns, header, report)
    elif columns is not None or header:
        raise ArgumentError(
            "read_pairs: two aligned files have no columns and no header", fix="leave out columns and header"
        )
    else:
        others, other_name = _lines(target_path, encoding, member, max_bytes)
        report.path, report.form = f"{name} and {other_name}", "two aligned files"
        rows, chosen = _aligned(lines, others, report), (0, 1)
    pairs = []
    for number, cells, problem in rows:
        if cells is None:
            report.note(problem, number)
            continue
        source, target = cells[chosen[0]].strip(), cells[chosen[1]].strip()
        problem = _problem_of(source, target, max_chars)
        if problem:
            report.note(problem, number)
        else:
            pairs.append((source, target))
    report.kept = len(pairs)
    if not pairs:
        raise DataError(
            f"read_pairs: no pair could be read from {name}", "at least one line with two sentences", report
        )
    is_csv = "commas" in report.form or "semicolons" in report.form  # which other texts have, too
    if is_csv and report.kept < report.bad_count:
        raise DataError(
            f"read_pairs: only {report.kept:,} of {report.kept + report.bad_count:,} lines of {name} are pairs",
            "most lines with two sentences, and the same mark between them",
            report,
            "mend these lines or leave them out; a sentence with the mark in it needs quotes, or tabs between the columns",
        )
    return pairs, report


def read_text(
    path: Path, *, encoding: str = "utf-8", member: str | None = None, max_bytes: int = MAX_BYTES
) -> tuple[str, ReadReport]:
    """The text of a file, or of a file inside a zip or gzip, with plain line ends; and a report of what was read.

    Lines that are not valid in the encoding are left out and reported.
    """
    lines, name = _lines(path, encoding, member, max_bytes)
    report = ReadReport(name, lines=_count(lines))
    for number, line in enumerate(lines[: report.lines], 1):
        if line is None:
            report.note(UNDECODED, number)
        else:
            report.blank += not line.strip()
    report.kept = report.lines - report.blank - report.bad_count
    if not report.kept:
        raise DataError(f"read_text: there is no text in {name}", "at least one line", report)
    return "\n".join(line for line in lines if line is not None), report


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _problem_of(source: str, target: str, max_chars: int) -> str:
    if not source or not target:
        return "an empty side"
    if max(len(source), len(target)) > max_chars:
        return f"a side of more than {max_chars} characters"
    return ""


def _lines(path: Path, encoding: str, member: str | None, max_bytes: int) -> tuple[list[str | None], str]:
    """The lines of a file, without their ends, and a name for it; None stands for a line that cannot be decoded."""
    content, name = unpacked(path, member, max_bytes)
    try:
        wide = b"\0" in "\n".encode(encoding)
    except (LookupError, ValueError):
        raise ArgumentError("read: no such encoding", "for instance 'utf-8' or 'latin-1'", repr(encoding)) from None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and not wide:  # what Excel calls "Unicode text"
        wide, encoding = True, "utf-16"
    if wide:
        content, encoding = _narrowed(content, encoding, name), "utf-8"
    if b"\0" in content[:8192]:
        raise DataError(f"read: {name} is not a text", "a text, or a zip or gzip of one", repr(content[:16]))
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    _check_count(content.count(b"\n"), name, max_bytes)
    lines = [_decoded(line, encoding) for line in _cut(content)]
    if not any(lines) and None in lines:
        raise DataError(
            f"read: no line of {name} is valid {encoding}",
            fix="save it as UTF-8, or name its encoding in Python: encoding='latin-1'",
        )
    return lines, name


def _check_count(count: int, name: str, max_bytes: int) -> None:
    """Refuse more lines than would fit into memory: each takes a hundred bytes and more, however short it is."""
    most = max_bytes // LINE_BYTES
    if count > most:
        raise DataError(
            f"read: {name} has too many lines",
            f"at most {most:,}, by max_bytes={max_bytes:,}",
            f"{count:,} lines",
            f"pass max_bytes={LINE_BYTES * count:,} if you trust the file and have the memory",
        )


def _cut(content: bytes) -> Iterator[bytes]:
    """The lines of a text; some at a time, so that they are not all there as bytes while they are decoded."""
    start = 0
    while (end := content.find(b"\n", start + PIECE)) >= 0:
        yield from content[start:end].split(b"\n")
        start = end + 1
    yield from content[start:].split(b"\n")


def _narrowed(content: bytes, encoding: str, name: str) -> bytes:
    """UTF-16 or UTF-32 as UTF-8, so that it can be cut at line ends; half a surrogate pair later costs its own line only."""
    try:
        return content.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise DataError(f"read: {name} is not whole {encoding.upper()}: {error}", fix="save it as UTF-8") from None


def _count(lines: Sequence[str | None]) -> int:
    """What follows the last line end is not a line."""
    return len(lines) - (lines[-1] == "")


def _decoded(line: bytes, encoding: str) -> str | None:
    try:
        return line.decode(encoding)
    except UnicodeError:
        return None


def _table(
    lines: list[str | None], columns: tuple[int, int] | None, header: bool | None, report: ReadReport
) -> tuple[Iterator[Row], tuple[int, int]]:
    """The rows of a file with columns, and which two of them are the sentences."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line and line.strip())
    places = dict(islice((pair for pair in numbered if len(pair[1]) <= MAX_LINE), SAMPLE))
    sample = list(places.values())
    delimiter, width = _delimiter(places, report.path)
    first = _cells(next((line for line in lines if line is None or line.strip()), None) or "", delimiter) or []
    if columns is None:
        columns = _columns_of(sample, delimiter, width)
    if len(columns) != 2 or not all(0 <= column < width for column in columns):
        raise ArgumentError("read_pairs: no such columns", f"two numbers from 0 to {width - 1}", columns)
    if header is None:
        header = len(first) > max(columns) and all(first[c].strip().casefold() in HEADERS for c in columns)
    report.form = f"columns between {MARKS[delimiter]}"
    if width > 2:
        report.form += f", {width} of them, of which {columns[0] + 1} and {columns[1] + 1} are used"
    if header:
        report.form += ", after a header"
    return _rows(lines, delimiter, width, header, report), columns


def _columns_of(sample: list[str], delimiter: str, width: int) -> tuple[int, int]:
    """The first two columns, unless the file is like Tatoeba's own: number, sentence, number, sentence."""
    rows = [cells for line in sample if len(cells := _cells(line, delimiter) or []) == width]
    if width == 4 and rows and all(row[0].strip().isdecimal() and row[2].strip().isdecimal() for row in rows):
        return (1, 3)
    return (0, 1)


def _delimiter(sample: dict[int, str], name: str) -> tuple[str, int]:
    """What stands between columns, and how many there are. A comma may just be a comma, so commas must be regular."""
    irregular = []
    for delimiter, share in (("\t", 0.5), (",", 0.8), (";", 0.8)):
        widths = {number: len(_cells(line, delimiter) or []) for number, line in sample.items()}
        counts = Counter(width for width in widths.values() if width > 1)
        width, count = max(counts.items(), key=lambda item: item[1], default=(0, 0))
        if count and count >= share * len(sample):
            return delimiter, width
        others = [str(number) for number, other in widths.items() if other != width]
        irregular.append(
            (count, f"{width} columns between {MARKS[delimiter]} in {count} lines, but not in lines", others)
        )
    count, what, others = max(irregular, key=lambda item: item[0])
    first = repr(next(iter(sample.values()))[:80]) if sample else "an empty file"
    raise DataError(
        f"read_pairs: no columns were found in {name}",
        "a tab between the two sentences of each line, or commas or semicolons as in CSV",
        f"{first}; {what} {', '.join(others[:5])}{' …' * (len(others) > 5)}" if count else first,
        "put a tab between them; or give two files whose lines belong together",
    )


def _cells(text: str, delimiter: str) -> list[str] | None:
    """The cells of a row; None if a quote is not closed, or closed in the wrong place. Tabs need no quotes."""
    if delimiter == "\t":
        return text.split("\t")
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _rows(lines: list[str | None], delimiter: str, width: int, header: bool, report: ReadReport) -> Iterator[Row]:
    """Rows with their line numbers. A quote that is never closed costs its own line, and not the rest of the file."""
    last = report.lines = _count(lines)
    place = 0
    while place < last:
        number, line = place + 1, lines[place]
        place += 1
        if line is None or len(line) > MAX_LINE:
            header = False  # this line was to be the header, and the next one is not
            yield number, None, UNDECODED if line is None else f"more than {MAX_LINE} characters"
            continue
        if not line.strip():
            report.blank += 1
            continue
        cells = _cells(line, delimiter)
        if cells is None and line.count('"') % 2:
            cells, end = _continued(lines, place, delimiter, width)
            report.other += end - place
            place = end
        if header:
            header = False
            report.other += 1
        elif cells is None:
            yield number, None, "a quote in the wrong place"
        elif len(cells) != width:
            yield number, None, f"{_counted(len(cells), 'column')} instead of {width}"
        else:
            yield number, cells, ""


def _continued(lines: list[str | None], place: int, delimiter: str, width: int) -> tuple[list[str] | None, int]:
    """The cells of a row whose quoted cell goes on over the next lines, and the place after it."""
    joined = lines[place - 1] or ""
    for end in range(place, min(place + JOINED, len(lines))):
        following = lines[end]
        if following is None:
            break
        joined += "\n" + following
        if following.count('"') % 2:
            cells = _cells(joined, delimiter)
            if cells is not None and len(cells) == width:
                return [" ".join(cell.split("\n")) for cell in cells], end + 1
            break
    return None, place


def _aligned(lines: Sequence[str | None], others: Sequence[str | None], report: ReadReport) -> Iterator[Row]:
    last, other_last = _count(lines), _count(others)
    report.lines = max(last, other_last)
    for place in range(report.lines):
        if place >= min(last, other_last):
            yield place + 1, None, f"no partner (the files have {last:,} and {other_last:,} lines)"
            continue
        source, target = lines[place], others[place]
        if source is None or target is None:
            yield place + 1, None, UNDECODED
        elif not source.strip() and not target.strip():
            report.blank += 1
        else:
            yield place + 1, [source, target], ""
