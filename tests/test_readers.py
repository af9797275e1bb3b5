"""Readers: the formats people have are found out, every line is accounted for, and hostile archives do no harm."""

import gzip
import io
import random
import struct
import tracemalloc
import zipfile

import pytest

from minigrad.data import DataError, read_pairs, read_text, readers
from minigrad.errors import MinigradError

PAIRS = [("Go.", "Ve."), ("Where is it?", "¿Dónde está?"), ('He said "no", twice.', "Dijo «no».")]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
ATTRIBUTION = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (CM) & #2 (x)"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def zipped(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def accounted(report):
    return report.kept + report.blank + report.bad_count + report.other == report.lines


FORMATS = {
    "tabs": TSV,
    "tabs without a last line end": TSV.rstrip("\n"),
    "Windows line ends": TSV.replace("\n", "\r\n"),
    "old Macintosh line ends": TSV.replace("\n", "\r"),
    "byte order mark": b"\xef\xbb\xbf" + TSV.encode(),
    "UTF-16": TSV.encode("utf-16"),
    "header": "English\tSpanish\n" + TSV,
    "attribution": TSV.replace("\n", f"\t{ATTRIBUTION}\n"),
    "Tatoeba numbers": "".join(f"{i}\t{s}\t{i + 7}\t{t}\n" for i, (s, t) in enumerate(PAIRS)),
    "commas": 'Go.,Ve.\nWhere is it?,¿Dónde está?\n"He said ""no"", twice.",Dijo «no».\n',
    "semicolons": 'source;target\nGo.;Ve.\nWhere is it?;¿Dónde está?\n"He said ""no"", twice.";Dijo «no».\n',
    "gzip": gzip.compress(TSV.encode()),
    "gzip in parts": gzip.compress(TSV[:9].encode()) + gzip.compress(TSV[9:].encode()),
    "manythings zip": zipped({"spa-eng/spa.txt": TSV.replace("\n", f"\t{ATTRIBUTION}\n"), "_about.txt": "About\n" * 9}),
    "zip with other files": zipped({"__MACOSX/._a.tsv": "x", ".hidden": "x", "a.tsv": TSV, "LICENSE": "free"}),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS.keys())
def test_formats_are_found_out_whatever_the_file_is_called(write, content):
    pairs, report = read_pairs(write("data", content))
    assert pairs == PAIRS
    assert report.kept == 3 and report.bad == {} and accounted(report)


def test_two_aligned_files_are_read_line_by_line(write):
    source = write("a.en", "one\ntwo\n\nfour\n")
    target = write("a.es.gz", gzip.compress(b"uno\ndos\n\ncuatro\n"))
    pairs, report = read_pairs(source, target)
    assert pairs == [("one", "uno"), ("two", "dos"), ("four", "cuatro")]
    assert (report.lines, report.blank) == (4, 1) and accounted(report)


def test_aligned_files_of_unequal_length_say_which_lines_have_no_partner(write):
    pairs, report = read_pairs(write("a", "1\n2\n3\n4\n"), write("b", "x\n\n"))
    assert pairs == [("1", "x")]
    assert report.bad == {"an empty side": [2], "no partner (the files have 4 and 2 lines)": [3, 4]} and accounted(
        report
    )


def test_bad_rows_are_counted_with_their_line_numbers_and_the_rest_is_kept(write):
    rows = [
        b"good\tbueno",
        b"one column",
        b"a\tb\tc",
        b"\t",
        b"x\t",
        b" \ty",
        b"bad\t\xff\xfe",
        b"",
        b"l" * 60 + b"\tlargo",
        b"fine\tbien",
    ]
    pairs, report = read_pairs(write("data.tsv", b"\n".join(rows) + b"\n"), max_chars=50)
    assert pairs == [("good", "bueno"), ("fine", "bien")]
    assert report.bad == {
        "1 column instead of 2": [2],
        "3 columns instead of 2": [3],
        "an empty side": [5, 6],
        "bytes that are not valid in the encoding": [7],
        "a side of more than 50 characters": [9],
    }
    assert report.blank == 2 and accounted(report)
    assert "10 lines: 2 kept, 2 blank, 6 bad" in str(report)
    assert "2 with an empty side: lines 5, 6" in str(report)


def test_a_report_of_many_bad_lines_stays_short(write):
    _, report = read_pairs(write("data.tsv", TSV * 100 + "one column\n" * 50))
    assert len(report.bad["1 column instead of 2"]) == 50
    assert "50 with 1 column instead of 2: lines 301, 302, 303, 304, 305 …" in str(report)


def test_an_unclosed_quote_costs_one_line_and_not_the_rest_of_the_file(write):
    rows = ["a,b", 'an "open quote,x', '"never closed,x', "c,d", 'e,"two\nlines"', 'f,"wrong"place'] + ["g,h"] * 50
    pairs, report = read_pairs(write("data.csv", "\n".join(rows)))
    assert pairs[:5] == [("a", "b"), ('an "open quote', "x"), ("c", "d"), ("e", "two lines"), ("g", "h")]
    assert report.bad == {"a quote in the wrong place": [3, 7]} and accounted(report)
    assert len(pairs) == 54


def test_columns_header_and_encoding_can_be_chosen(write):
    path = write("data.tsv", "n\tde\ten\n1\tgrün\tgreen\n2\tsüß\tsweet\n".encode("latin-1"))
    pairs, report = read_pairs(path, columns=(2, 1), header=True, encoding="latin-1")
    assert pairs == [("green", "grün"), ("sweet", "süß")]
    assert "3 of them, of which 3 and 2 are used, after a header" in report.form and accounted(report)
    for wrong in ({"columns": (0, 3)}, {"columns": (-1, 0)}, {"encoding": "klingon"}):
        with pytest.raises(MinigradError, match="no such"):
            read_pairs(path, **wrong)
    with pytest.raises(MinigradError, match="no columns"):
        read_pairs(path, path, columns=(0, 1))


def test_a_header_that_cannot_be_decoded_does_not_cost_the_next_line(write):
    pairs, report = read_pairs(
        write("data.tsv", "inglés\tespañol\n".encode("latin-1") + b"Go.\tVe.\n" * 3), header=True
    )
    assert pairs == [("Go.", "Ve.")] * 3
    assert report.bad == {"bytes that are not valid in the encoding": [1]} and accounted(report)


def test_what_a_report_prints_adds_up(write):
    _, report = read_pairs(write("data.csv", "source,target\n" + "a,b\n" * 9 + 'c,"two\nlines"\n'))
    assert "12 lines: 10 kept, 0 blank, 0 bad, 2 of a header or a cell of several lines" in str(report)


def test_a_file_in_another_encoding_is_not_called_empty(write):
    with pytest.raises(DataError, match="no line of .* is valid utf-8(.|\n)*encoding='latin-1'"):
        read_pairs(write("data.tsv", "niño\tchild\nseñor\tsir\n".encode("latin-1")))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_wide_encodings_are_read_when_they_are_named(write, encoding):
    assert read_pairs(write("data.tsv", TSV.encode(encoding)), encoding=encoding)[0] == PAIRS


def test_half_a_surrogate_pair_costs_its_own_line(write):
    content = "Go.\tVe.\nbad\t\ud800\nRun.\tCorre.\n".encode("utf-16", "surrogatepass")
    pairs, report = read_pairs(write("data.tsv", content))
    assert pairs == [("Go.", "Ve."), ("Run.", "Corre.")]
    assert report.bad == {"bytes that are not valid in the encoding": [2]} and accounted(report)


def test_codecs_that_are_not_for_files_are_refused_or_cost_lines_and_never_crash(write):
    path = write("data.tsv", TSV)
    for codec in ("undefined", "hex", "utf-8\0"):
        with pytest.raises(MinigradError, match="no such encoding"):
            read_pairs(path, encoding=codec)
    with pytest.raises(DataError, match="no line of"):
        read_pairs(path, encoding="punycode")


def test_a_line_without_end_is_reported_as_one(write):
    _, report = read_pairs(write("data.csv", "a,b\n" * 9 + "x" * 200_000 + ",y\n"))
    assert report.bad == {"more than 100000 characters": [10]} and accounted(report)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "no columns were found"),
        ("\n\n", "no columns were found"),
        ("Just a text, with commas, and more.\nAnd no columns.\n" * 9, "no columns were found"),
        ("\tx\n" * 3, "no pair could be read(.|\n)*3 with an empty side"),
        (b"\x89PNG\r\n\0\0\0", "not a text"),
        (b"\xff\xfea", "not whole UTF-16"),
    ],
)
def test_a_file_without_pairs_is_refused_with_what_was_found(write, content, match):
    with pytest.raises(DataError, match=match):
        read_pairs(write("data", content))


def test_text_comes_as_it_is_with_plain_line_ends(write):
    text, report = read_text(write("text.txt", "one\r\n\r\ntwo\u2028still two\rthree\n"))
    assert text == "one\n\ntwo\u2028still two\nthree\n"
    assert (report.lines, report.kept, report.blank) == (4, 3, 1)
    for content in (gzip.compress(b"one\ntwo"), zipped({"x.txt": "one\ntwo"}), b"one\ntwo"):
        assert read_text(write("text", content))[0] == "one\ntwo"


def test_lines_of_a_text_that_cannot_be_decoded_are_left_out_and_reported(write):
    text, report = read_text(write("text.txt", b"one\n\xff\nthree\n"))
    assert text == "one\nthree\n"
    assert report.bad == {"bytes that are not valid in the encoding": [2]} and accounted(report)
    with pytest.raises(DataError, match="no text"):
        read_text(write("text.txt", b"\xff\n \n"))


def test_a_missing_file_is_named(tmp_path):
    for reader in (read_pairs, read_text):
        with pytest.raises(DataError, match="nothing.tsv cannot be read: No such file"):
            reader(tmp_path / "nothing.tsv")
        with pytest.raises(DataError, match="cannot be read"):
            reader(tmp_path)


def test_bombs_are_stopped_at_the_allowed_size(write):
    for content in (gzip.compress(b"a\tb\n" * 10**6), zipped({"a.tsv": b"a\tb\n" * 10**6}), b"a\tb\n" * 10**6):
        with pytest.raises(DataError, match="too large(.|\n)*at most 1,000 bytes"):
            read_pairs(write("bomb", content), max_bytes=1000)


def test_lines_are_bounded_as_bytes_are_however_short_they_are(write):
    """A hundred million short lines are less than 1 GiB of text, and a few hundred kilobytes of zip; but gigabytes of memory."""
    for content in (zipped({"a.tsv": b"a\tb\n" * 3000}), b"\n" * 3000, b"a\tb\r\n" * 3000, b"a\tb\r" * 3000):
        for reader in (read_pairs, read_text):
            with pytest.raises(DataError, match=r"too many lines(.|\n)*at most 1,562(.|\n)*max_bytes=192,000"):
                reader(write("bomb", content), max_bytes=100_000)
    assert len(read_pairs(write("bomb", b"a\tb\n" * 1562), max_bytes=100_000)[0]) == 1562


def test_memory_stays_within_a_few_times_the_allowed_bytes(write):
    allowed = 2**22
    most = allowed // 64
    for content in (b"a\tb\n" * most, b"a\t\n" * (most - 1) + b"a\tb\n", (b"x" * 60 + b"\ty\n") * (most // 2)):
        path = write("short", content)
        tracemalloc.start()
        read_pairs(path, max_bytes=allowed)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 * allowed


def test_lines_are_the_same_wherever_a_text_is_cut(write, monkeypatch):
    content = b"one\n\n\ntwo\tthree\n" * 5 + b"end"
    expected = read_text(write("text", content))[0]
    for piece in range(1, 20):
        monkeypatch.setattr(readers, "PIECE", piece)
        assert read_text(write("text", content))[0] == expected == content.decode()


def test_a_zip_that_lies_about_its_size_is_stopped_or_refused(write):
    content = bytearray(zipped({"a.tsv": b"a\tb\n" * 10**5}))
    directory = content.rindex(b"PK\x01\x02")
    for size in (1, 2**31):
        content[directory + 24 : directory + 28] = struct.pack("<I", size)
        with pytest.raises(DataError):
            read_pairs(write("liar.zip", bytes(content)), max_bytes=1000)


def test_a_zip_is_read_in_memory_so_names_lead_nowhere(write, tmp_path):
    path = write("evil.zip", zipped({"../../evil.txt": TSV}))
    before = sorted(tmp_path.rglob("*"))
    pairs, report = read_pairs(path)
    assert pairs == PAIRS and "'../../evil.txt'" in report.path
    assert sorted(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent.parent / "evil.txt").exists()


def test_a_file_in_a_zip_with_several_can_be_chosen(write):
    path = write("several.zip", zipped({"a.txt": TSV, "b/c.txt": "x\ty\n"}))
    with pytest.raises(MinigradError, match=r"several files(.|\n)*'a.txt', 'b/c.txt'(.|\n)*member="):
        read_pairs(path)
    assert read_pairs(path, member="b/c.txt")[0] == [("x", "y")]
    with pytest.raises(MinigradError, match="does not hold such a file"):
        read_pairs(path, member="d.txt")


def test_a_file_without_a_name_in_a_zip_is_not_data(write):
    content = bytearray(zipped({"a": TSV}))
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 28 : directory + 32] = struct.pack("<HH", 0, 1)  # the name becomes an extra field of one byte
    with pytest.raises(MinigradError, match="does not hold"):
        read_pairs(write("nameless.zip", bytes(content)))


def test_unusual_zips_are_refused(write):
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(DataError, match="unusual"):
            read_pairs(write("a.zip", zipped({"a.txt": TSV}, method)))
    with pytest.raises(MinigradError, match="does not hold"):
        read_pairs(write("a.zip", zipped({})))


@pytest.mark.parametrize("packed", [gzip.compress((TSV * 9).encode()), zipped({"a.tsv": TSV * 9})], ids=["gzip", "zip"])
def test_a_damaged_archive_is_refused_and_never_crashes(write, packed):
    for end in range(2, len(packed)):
        with pytest.raises(MinigradError):
            read_pairs(write("cut", packed[:end]))
    chance = random.Random(0)
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        try:
            pairs, _ = read_pairs(write("damaged", bytes(damaged)))
        except MinigradError:
            continue
        assert pairs == PAIRS * 9
