"""Pictures of training: curves, planes, frames, and the page of a run, in a real browser."""

import csv
import dataclasses
import html
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.small_zoo import SPEC, Point, installed

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.errors import ArgumentError
from minigrad.train import Run, RunError
from minigrad.train.animation import MOST, FrameWriter
from minigrad.train.run import files_of_steps
from minigrad.train.run_data import Best, read_metrics
from minigrad.viz.drawing.axes import Scale, decades, labels, round_ticks, span
from minigrad.viz.drawing.plane import decision_surface, directions, fit
from minigrad.viz.drawing.scene import Ellipse, Image, Line, Rect, Scene, Text
from minigrad.viz.runs.curves import HEIGHT, curves
from minigrad.viz.runs.report import About, report
from minigrad.zoo.report import report as zoo_report

__all__ = ["installed"]  # a fixture

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b[2J"


def flat(shapes):
    for shape in shapes:
        yield from flat(shape.shapes) if hasattr(shape, "shapes") else [shape]


def texts(scene: Scene) -> list[str]:
    return [shape.text for shape in flat(scene.shapes) if isinstance(shape, Text)]


def lines(scene: Scene, stroke: str) -> list[Line]:
    return [shape for shape in flat(scene.shapes) if isinstance(shape, Line) and shape.stroke == stroke]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (0.03, 0.97, [0.2, 0.4, 0.6, 0.8]),
        (1e-9, 5e-9, [1e-9, 2e-9, 3e-9, 4e-9, 5e-9]),
        (0, 123456, [0, 50000, 100000]),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert round_ticks(low, high) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("low", [-1e300, -3.7, 0, 1e-300, 5e4, 1e12])
@pytest.mark.parametrize("wide", [1e-6, 0.3, 7, 1e9, 1e299])
def test_ticks_lie_inside_are_few_and_equally_far_apart(low, wide):
    high = low + wide
    found = round_ticks(low, high)
    assert 1 <= len(found) <= 8
    if len(found) > 1:
        gaps = np.diff(found)
        assert gaps.min() > 0 and gaps.max() - gaps.min() <= 1e-3 * gaps.max() + 4 * np.spacing(max(map(abs, found)))
        assert min(found) >= low - 1e-6 * wide - np.spacing(abs(low)) and max(found) <= high + 1e-6 * wide + np.spacing(
            high
        )


def test_powers_of_ten_are_few_and_finer_where_there_is_one():
    assert decades(1e-4, 1) == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1])
    assert decades(0.15, 9) == pytest.approx([0.2, 0.5, 1, 2, 5])
    assert len(decades(1e-300, 1e300)) <= 7


def test_labels_differ_where_numbers_do():
    for ticks in ([0.001, 0.0012], [1e-9, 2e-9], [99999, 100001], [-0.5, 0, 0.5], [0.1, 0.15, 0.2]):
        assert len(set(labels(ticks))) == len(ticks)


def test_a_scale_leads_from_end_to_end_and_upwards_in_powers_of_ten():
    assert Scale(0, 10, 100, 0)([0, 2.5, 10]).tolist() == [100, 75, 0]
    assert Scale(1, 100, 0, 50, log=True)([1, 10, 100]) == pytest.approx([0, 25, 50])
    assert span([math.nan, math.inf]) == (0, 1) and span([2.0]) == pytest.approx((1.8, 2.2))


@pytest.mark.parametrize("values", [[0.003] * 5, [0.0] * 5, [1.0, 1.0 + 1e-7, 1.0, 1.0 - 1e-7]])
def test_a_constant_curve_lies_in_the_middle_and_its_axis_has_different_numbers(values):
    scene = curves({"lr": list(enumerate(values))})
    (line,) = lines(scene, "series-1")
    (box,) = [shape for shape in flat(scene.shapes) if isinstance(shape, Rect)]
    assert all(abs(y - box.y - box.height / 2) < 0.01 for _, y in line.points)
    beside = [shape.text for shape in flat(scene.shapes) if isinstance(shape, Text) and shape.anchor == "end"]
    assert 2 <= len(beside) == len(set(beside)) and all(len(word) <= 8 for word in beside)


def test_a_curve_passes_where_its_numbers_are():
    scene = curves({"loss": [(0, 4.0), (50, 3.0), (100, 0.0)]})
    (line,) = lines(scene, "series-1")
    (x0, y0), (x1, y1), (x2, y2) = line.points
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert (y1 - y0) / (y2 - y0) == pytest.approx(0.25)
    assert y0 < y2  # the greatest value is above


def test_validation_is_drawn_beside_training_and_its_best_is_marked():
    scene = curves({"loss": [(1, 3.0), (2, 2.0)], "valid_loss": [(1, 3.5), (2, 3.0), (3, 3.2)], "lr": [(1, 0.1)]})
    assert scene.height == 2 * HEIGHT and scene.title == "loss, lr"
    assert {"loss", "valid_loss", "lr", "best 3 at step 2"} <= set(texts(scene))
    (line,) = lines(scene, "series-2")
    rings = [s for s in flat(scene.shapes) if isinstance(s, Ellipse) and s.stroke == "ink"]
    assert (rings[0].x, rings[0].y) == pytest.approx(line.points[1])
    assert Best("valid_accuracy", True).point([(1, 0.5), (2, math.nan), (3, 0.7), (4, 0.7)]) == (3, 0.7)


def test_numbers_that_are_not_finite_are_gaps_with_a_cross():
    values = [1.0, 2.0, math.nan, 2.0, 1.0, math.inf, 1.0, 2.0]
    scene = curves({"loss": list(enumerate(values))})
    assert [len(line.points) for line in lines(scene, "series-1")] == [2, 2, 2]
    crosses = lines(scene, "error")
    assert len(crosses) == 4  # two arms each
    assert "nan at step 2" in scene.svg() and "inf at step 5" in scene.svg()


def test_many_points_are_thinned_and_no_peak_is_lost():
    random = np.random.default_rng(0)
    values = random.normal(size=100_000)
    values[77_777] = 50.0
    scene = curves({"loss": list(enumerate(values.tolist()))})
    (line,) = lines(scene, "series-1")
    assert len(line.points) < 2600 and len(scene.svg()) < 60_000
    heights = [y for _, y in line.points]
    single = curves({"loss": [(0, 50.0), (99_999, values.min())]})
    assert min(heights) == pytest.approx(lines(single, "series-1")[0].points[0][1])


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"loss": []},
        {"loss": [(5, 1.0)]},
        {"loss": [(1, math.nan)]},
        {"loss": [(i, 0.0) for i in range(9)]},
        {"loss": [(1, 1e308), (2, -1e308)]},
        {"loss": [(1, 5e-324), (2, 0.0)]},
        {"loss": [(1, 1e15), (2, 1e15 + 1)]},
        {f"c{i}": [(1, 1.0), (2, 2.0)] for i in range(300)},
        {HOSTILE: [(1, 1.0), (2, 3.0)], "valid_" + HOSTILE: [(1, 2.0)], "x" * 10_000: [(1, 2.0)]},
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_whatever_the_table_holds_the_picture_is_whole_and_bounded(table, log):
    svg = curves(table, log=log).svg()
    assert len(svg) < 400_000 and "nan," not in svg and "inf," not in svg
    root = ElementTree.fromstring(svg)
    assert not [e for e in root.iter() if e.tag.rpartition("}")[2] in ("script", "img", "foreignObject")]
    places = [
        float(n)
        for path in root.iter("{http://www.w3.org/2000/svg}path")
        for n in re.findall(r"-?[\d.]+", path.get("d"))
    ]
    assert all(-1 <= n <= 6000 for n in places)


def test_the_surface_has_the_colours_of_the_function_and_its_line_is_where_it_is_even():
    scene = decision_surface(lambda p: p[:, 0], [[0, 0], [1, 1]], [0, 1])
    image = next(s for s in scene.shapes if isinstance(s, Image))
    left, right = image.pixels[5, 4].astype(int), image.pixels[5, -5].astype(int)
    assert left[2] > left[0] and right[0] > right[2]  # blue is 0, orange is 1
    middle = image.x + image.width / 2
    boundary = lines(scene, "#1c2530")
    assert boundary and all(abs(x - middle) < 0.5 for line in boundary for x, _ in line.points)
    assert len({type(s) for s in flat(scene.shapes[-20:]) if getattr(s, "fill", None) in ("#0072b2", "#d55e00")}) == 2


def test_a_fit_that_is_exact_passes_through_its_points():
    xs = np.linspace(-2, 2, 9)
    scene = fit(xs, xs**2, lambda x: x.astype(float) ** 2)
    curve = np.array([point for line in lines(scene, "series-2") for point in line.points])
    dots = [s for s in flat(scene.shapes) if isinstance(s, Ellipse) and s.width == 5][:-1]
    assert len(dots) == 9
    for dot in dots:
        assert np.hypot(*(curve - [dot.x, dot.y]).T).min() < 2
    lost = fit(xs, xs, lambda x: np.where(x > 0, np.nan, 1e300))
    assert (
        lines(lost, "series-2") == lines(lost, "nothing")[:0] or len(lines(lost, "series-2")) == 1
    )  # only the legend's


def test_directions_are_arrows_of_their_lengths_or_products():
    arrows = [
        line
        for line in flat(directions([[1, 0], [0, 2], [math.nan, 0]]).shapes)
        if isinstance(line, Line) and line.arrow
    ]
    (a, b), (c, d) = ((line.points[0], line.points[1]) for line in arrows)
    assert b[0] - a[0] == pytest.approx((c[1] - d[1]) / 2) and b[1] == pytest.approx(a[1])
    image = next(s for s in directions(np.eye(3)).shapes if isinstance(s, Image))
    assert image.pixels.shape == (3, 3, 3)
    assert (image.pixels[0, 0] == image.pixels[1, 1]).all() and (image.pixels[0, 1] > 240).all()
    with pytest.raises(mg.MinigradError, match="directions"):
        directions([1.0, 2.0])


def drawing_spec(**changes):
    def draw(loaded):
        assert not loaded.model.training and not mg.is_grad_enabled()
        mg.rand(3), np.random.rand(2)  # noqa: NPY002  (what training draws must not be moved by it)
        return Scene(
            10, 10, [Text(0, 0, f"step {loaded.step}, {loaded.config.width}, {loaded.arguments['max_steps']}")]
        )

    return dataclasses.replace(SPEC, draw=draw, samples=lambda loaded: f"sample of step {loaded.step}", **changes)


def test_frames_are_drawn_from_beginning_to_end_and_leave_training_as_it_was(installed, tmp_path):
    zoo.train("line", tmp_path / "plain", seed=1, progress=False)
    installed[:] = [Point("line", drawing_spec())]
    zoo.train("line", tmp_path / "drawn", seed=1, progress=False)
    frames = files_of_steps(tmp_path / "drawn" / "frames")
    assert list(frames) == list(range(13))
    assert "step 7, 3, 12" in frames[7].read_text()
    assert [path.read_text() for path in files_of_steps(tmp_path / "drawn" / "samples").values()] == [
        f"sample of step {step}\n" for step in (4, 8, 12)
    ]
    a, b = (zoo.load(tmp_path / name, "latest").model.state_dict() for name in ("plain", "drawn"))
    assert all(np.array_equal(a[name].numpy(), b[name].numpy()) for name in a)
    assert (tmp_path / "plain" / "metrics.csv").read_bytes() == (tmp_path / "drawn" / "metrics.csv").read_bytes()


def test_a_run_that_goes_back_forgets_its_later_frames_and_resumes_to_the_same_ones(installed, tmp_path):
    installed[:] = [Point("line", drawing_spec())]
    zoo.train("line", tmp_path / "run", seed=1, progress=False)
    before = {path.name: path.read_text() for path in (tmp_path / "run" / "frames").iterdir()}
    with Run(tmp_path / "run") as run:
        run.rewind(5)
    assert max(files_of_steps(tmp_path / "run" / "frames")) == 5
    assert max(files_of_steps(tmp_path / "run" / "samples")) == 4
    (tmp_path / "run" / "latest").write_text("step-00000004.safetensors\n")
    zoo.resume(tmp_path / "run", progress=False)
    assert {path.name: path.read_text() for path in (tmp_path / "run" / "frames").iterdir()} == before


def test_a_picture_that_fails_is_said_once_and_training_goes_on(installed, tmp_path, capsys):
    def draw(loaded):
        if loaded.step >= 2:
            raise ValueError("no\npencil")
        return Scene(1, 1, [])

    installed[:] = [Point("line", dataclasses.replace(SPEC, draw=draw))]
    assert zoo.train("line", tmp_path / "run").step == 12
    shown = capsys.readouterr().out
    assert shown.count("could not be drawn (ValueError: no pencil); training goes on") == 1
    assert list(files_of_steps(tmp_path / "run" / "frames")) == [0, 1]
    installed[:] = [Point("line", dataclasses.replace(SPEC, draw=lambda loaded: None))]
    zoo.train("line", tmp_path / "none", progress=False)
    assert not (tmp_path / "none" / "frames").exists()
    with pytest.raises(mg.MinigradError, match="has no picture"):
        dataclasses.replace(zoo.load(tmp_path / "none"), spec=SPEC).draw()


def test_frames_are_denser_at_the_beginning_and_never_too_many(tmp_path):
    due = [step for step in range(1, 10_001) if FrameWriter().is_due(step, 10_000)]
    assert len(due) == 40 and due[-1] == 10_000
    assert due[1] - due[0] < due[-1] - due[-2]

    class Trainer:
        scaler, max_steps, step = None, None, 0
        model = mg.nn.Linear(1, 1)

        @staticmethod
        def draw(model):
            return Scene(1, 1, [])

    with Run(tmp_path / "run") as run:
        trainer, frames = Trainer(), FrameWriter()
        trainer._run = run
        for step in range(400):
            trainer.step = step
            frames.take(trainer)
    kept = list(files_of_steps(tmp_path / "run" / "frames"))
    assert len(kept) == MOST and kept[0] == 0 and kept[-1] == 399
    gaps = np.diff(np.sqrt(kept))
    assert gaps[10:].max() < 6 * np.median(gaps)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of xor by the command line, with its report."""
    folder = tmp_path_factory.mktemp("training") / "xor run"
    assert main(["train", "xor", "--max-steps", "120", "--out", str(folder), "hidden=4", "valid_every=40"]) == 0
    return folder


def test_the_command_writes_a_report_and_says_where(run, tmp_path, capsys):
    assert (run / "report.html").is_file()
    assert main(["report", str(run), "-o", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'page.html'}\n"
    assert (tmp_path / "page.html").read_bytes() == (run / "report.html").read_bytes()
    assert main(["report", str(run), "-o", str(tmp_path / "none" / "page.html")]) == 1
    assert f"the folder {str(tmp_path / 'none')!r} does not exist" in capsys.readouterr().err
    assert main(["report", str(run), "-o", str(tmp_path / "page.pdf")]) == 2
    assert "is no page: end its name in .html" in capsys.readouterr().err and not (tmp_path / "page.pdf").exists()
    with pytest.raises(ArgumentError, match="is no page"):
        report(run, tmp_path / "page.pdf")
    assert main(["train", "xor", "--max-steps", "1", "--no-report", "--out", str(tmp_path / "quiet")]) == 0
    assert not (tmp_path / "quiet" / "report.html").exists()


def test_a_report_that_cannot_be_written_does_not_fail_training(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("minigrad.zoo.report.write_report", lambda *_: 1 / 0)
    assert main(["train", "xor", "--max-steps", "1", "--out", str(tmp_path / "run")]) == 0
    assert "report.html could not be written (ZeroDivisionError" in capsys.readouterr().out


def test_the_page_opens_without_a_network_and_shows_all_of_the_run(run, open_page):
    page = open_page(run / "report.html")
    assert page.title() == "xor: xor run"
    summary = dict(zip(page.locator("#summary dt").all_inner_texts(), page.locator("#summary dd").all_inner_texts()))
    assert (summary["model"], summary["seed"], summary["steps"]) == ("xor", "0", "120")
    scores = page.locator("#scores div").all_inner_texts()
    rows = list(csv.DictReader((run / "metrics.csv").open(newline="")))
    best = min((row for row in rows if row["valid_loss"]), key=lambda row: float(row["valid_loss"]))
    assert scores[0].split("\n") == ["validation: loss", f"{float(best['valid_loss']):.4f}"]
    assert scores[1].split("\n") == ["validation: accuracy", f"{100 * float(best['valid_accuracy']):.2f} %"]
    assert page.locator("#scores").bounding_box()["y"] < page.locator("#summary").bounding_box()["y"]
    assert page.locator("#curves figure").count() == 4 and page.locator("#progress").is_hidden()
    settings = page.locator("#settings tr").all_inner_texts()
    assert [row.split("\t")[:3] for row in settings[:2]] == [
        ["valid_every", "40", "default 100"],
        ["hidden", "4", "default 8"],
    ]
    assert page.locator("#graph svg").count() == 1
    assert page.locator("tr.changed").count() == 2
    page.locator("details").last.locator("summary").click()
    assert mg.__version__ in page.locator("details").last.inner_text()


SAMPLES = """translations of sentences it was not trained on:
  is my cow in the hotel -> ¿está mi vaca en el hotel?
  a -> b -> c (wanted: b -> d)
  <b>write</b> a boring book -> escribe un libro (wanted: escribe un libro aburrido)
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_samples_are_a_table_of_right_and_wrong_with_the_differences_marked(run, tmp_path, open_page, width):
    folder = tmp_path / "run"
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("report.html"))
    (folder / "samples").mkdir(exist_ok=True)
    (folder / "samples" / "step-00000120.txt").write_text(SAMPLES, encoding="utf-8")
    page = open_page(zoo_report(folder), width=width)
    rows = page.locator("#samples tr:has(td)")
    assert page.locator("#samples p").inner_text() == "translations of sentences it was not trained on: 1 of 3 right"
    assert [row.inner_text().split()[-1] for row in rows.all()] == ["right", "wrong", "wrong"]
    given = [cell.text_content() for cell in page.locator("#samples td:nth-child(1)").all()]
    assert given == ["is my cow in the hotel", "a", "<b>write</b> a boring book"]
    marks = page.locator("#samples mark")
    assert [(mark.inner_text(), mark.get_attribute("class")) for mark in marks.all()] == [
        ("c", "said"), ("d", "wanted"), ("aburrido", "wanted"),
    ]  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_report_tells_the_last_evaluation_until_training_goes_on(tmp_path, capsys, open_page):
    out = tmp_path / "run"
    assert main(["train", "xor", "--max-steps", "20", "--out", str(out), "--no-report"]) == 0
    assert main(["eval", str(out)]) == 0 and main(["report", str(out)]) == 0
    shown = open_page(out / "report.html").locator("#scores").inner_text()
    assert "test: accuracy" in shown and " %" in shown
    assert main(["resume", str(out), "--max-steps", "30", "--no-report"]) == 0
    assert not (out / "scores.json").exists() and main(["report", str(out)]) == 0
    assert "test:" not in open_page(out / "report.html").locator("#scores").inner_text()


@pytest.mark.parametrize(
    ("settings", "valid", "said"),
    [
        ({"smoothing": 0.1, "dropout": 0.2}, 0.5, "taken with label smoothing 0.1 and dropout 0.2, that of validation"),
        ({"smoothing": 0.1, "dropout": 0.2}, 1.5, ""),
        ({"smoothing": 0.0, "dropout": None}, 0.5, ""),
        ({"smoothing": HOSTILE, "dropout": True}, 0.5, ""),
    ],
)
def test_why_the_training_loss_lies_above_is_told_where_it_does(settings, valid, said, tmp_path, open_page):
    (tmp_path / "config.json").write_text(json.dumps({"config": {"config": settings}}))
    (tmp_path / "metrics.csv").write_text(f"step,loss,valid_loss\n1,2.0,\n2,1.0,{valid}\n")
    note = open_page(report(tmp_path)).locator("#note").text_content()
    assert said in note and bool(said) == bool(note)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.93])
@pytest.mark.parametrize("log", [False, True])
def test_what_is_read_out_under_the_mouse_are_the_numbers_of_metrics_csv(run, open_page, share, log):
    page = open_page(run / "report.html")
    if log:
        page.locator("#log").check()
    rows = {row["step"]: row for row in csv.DictReader((run / "metrics.csv").open(newline=""))}
    box = page.locator("figure[data-panel=loss] svg:visible").bounding_box()
    page.mouse.move(box["x"] + box["width"] * (0.1 + 0.6 * share), box["y"] + box["height"] / 2)
    seen = page.locator("figcaption span")
    assert seen.count() == 6  # loss, accuracy, lr, grad_norm, and two of validation
    for span_ in seen.all():
        cell = rows[span_.get_attribute("data-step")][span_.get_attribute("data-column")]
        assert float(span_.get_attribute("data-exact")) == float(cell)
        name, number, *words = span_.inner_text().split()
        times = 100 if words[0] == "%" else 1
        assert float(number) == float(f"{times * float(cell):.6g}") and words[-1] == span_.get_attribute("data-step")
        assert (times == 100) == name.endswith("accuracy")
    # The dot is on the curve: among the points of its line, where their step is drawn.
    dot = page.locator("figure[data-panel=loss] .cursor:visible circle").first
    path = page.locator("figure[data-panel=loss] svg:visible path.s-series-1").get_attribute("d")
    points = np.array([[float(n) for n in pair.split(",")] for pair in path[1:].replace("L", " ").split()])
    place = [float(dot.get_attribute("cx")), float(dot.get_attribute("cy"))]
    assert np.abs(points - place).max(axis=1).min() < 0.02


def test_the_keyboard_moves_the_cursor_from_row_to_row(run, open_page):
    page = open_page(run / "report.html")
    figure = page.locator("figure[data-panel=loss]")
    figure.focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        figure.press(key)
        seen.append(figure.locator("span").first.get_attribute("data-step"))
    assert seen == ["10", "20", "30", "20"]


def test_the_slider_and_the_button_play_the_frames(run, open_page):
    page = open_page(run / "report.html")
    steps = list(files_of_steps(run / "frames"))
    where, slider = page.locator("#frames .where"), page.locator("#frames input")
    assert where.inner_text() == f"step 120 ({len(steps)} of {len(steps)})"
    slider.fill("2")
    assert where.inner_text() == f"step {steps[2]} (3 of {len(steps)})"
    shown = page.locator("#frames img:visible")
    assert shown.count() == 1 and shown.get_attribute("alt").endswith(f"step {steps[2]}")
    assert shown.evaluate("image => image.complete && image.naturalWidth > 100")
    slider.fill("0")
    page.locator("#frames button").click()
    page.locator("#frames .where", has_text=f"step {steps[3]} ").wait_for()
    page.locator("#frames button").click()
    assert page.locator("#frames button").inner_text() == "play"


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off_on_a_narrow_page(run, open_page, dark):
    page = open_page(run / "report.html", dark=dark, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#curves text:visible").first.bounding_box()["height"] >= 8  # letters that can be read
    edges = page.locator("#settings td").evaluate_all(
        "cells => cells.map((cell) => cell.getBoundingClientRect().right)"
    )
    assert edges and max(edges) <= 390 and "learning rate" in page.inner_text("#settings")


def hostile_run(folder: Path) -> Path:
    (folder / "samples").mkdir(parents=True)
    (folder / "frames").mkdir()
    story = {
        "model": HOSTILE,
        "config": {HOSTILE: HOSTILE, "list": [1, HOSTILE]},
        "seed": {"a": HOSTILE},
        "data": f"/x/{HOSTILE}",
    }
    config = {
        "config": story,
        "training": {HOSTILE: 1, "max_steps": 10**300, "metric": HOSTILE, "maximize": True},
        "versions": [1],
    }
    (folder / "config.json").write_text(json.dumps(config))
    table = [
        ["step", HOSTILE, "loss", "__proto__"],
        [1, 2, 3, 1],
        [2, "nan", 1e308, 2],
        [3, "-inf", -1e308, 3],
        ["x"],
        [1e300, 1, 1, 1],
    ]
    with open(folder / "metrics.csv", "w", newline="") as file:
        csv.writer(file).writerows(table)
    (folder / "timing.csv").write_text("step,seconds\n1,1e999\n")
    (folder / "samples" / "step-00000001.txt").write_text(HOSTILE)
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="alert(3)"><script>alert(4)</script>'
    (folder / "frames" / "step-00000001.svg").write_text(svg + '<image href="http://example.invalid/x.png"/></svg>')
    (folder / "frames" / "step-00000002.svg").write_bytes(b"\xff\x00 no picture")
    return folder


def test_a_hostile_run_shows_its_text_as_text(tmp_path, open_page):
    folder = hostile_run(tmp_path / 'a "b" <script>alert(5)<' / "run&amp;'")
    page = open_page(report(folder))
    assert page.locator("h1").inner_text().startswith("</script><script>alert(1)")
    assert "onerror=alert(2)" in page.locator("#samples pre").inner_text()
    assert page.locator("script").count() == 2 and page.locator("img:not([src^='data:image/svg'])").count() == 0
    box = page.locator("figure svg:visible").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("#frames input").fill("0")
    page.wait_for_timeout(200)  # what would be asked for, or would run, has had the time to


@pytest.mark.parametrize(
    "broken", ["config.json", "metrics.csv", "timing.csv", "frames", "samples", "latest", "checkpoints", "everything"]
)
def test_a_damaged_run_is_shown_as_far_as_it_goes(run, tmp_path, open_page, broken):
    folder = tmp_path / "run"
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("report.html"))
    for path in [folder / broken] if broken != "everything" else list(folder.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.write_bytes(b"\xff{[\x00" * 9)
    page = open_page(zoo_report(folder))
    assert page.locator("h1").inner_text() in ("xor", "run")
    assert page.locator("#curves figure").count() == (0 if broken in ("metrics.csv", "everything") else 4)


def test_links_and_pipes_in_a_run_are_left_alone(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of the machine")
    for name, suffix in (("samples", "txt"), ("frames", "svg")):
        (tmp_path / "run" / name).mkdir(parents=True)
        (tmp_path / "run" / name / f"step-00000001.{suffix}").symlink_to(secret)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "run" / "samples" / "step-00000002.txt")
        os.mkfifo(tmp_path / "run" / "metrics.csv")
        os.mkfifo(tmp_path / "run" / "config.json")
    assert "a secret" not in report(tmp_path / "run").read_text()


def test_a_run_that_is_not_there_is_told(tmp_path):
    for path, word in ((tmp_path / "nowhere", "does not exist"), (tmp_path / "file", "is no directory")):
        (tmp_path / "file").write_text("")
        with pytest.raises(RunError, match=word):
            report(path)
    with pytest.raises(RunError, match="does not exist"):
        read_metrics(tmp_path / "nowhere")


@pytest.mark.parametrize("command", ["report", "plot"])
def test_a_directory_that_is_no_run_is_told_and_left_as_it_is(command, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("something else")
    assert main([command, str(tmp_path)]) == 1
    assert f"{str(tmp_path)!r} is no run" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_curves_are_painted_light_or_dark(run, tmp_path):
    image = pytest.importorskip("matplotlib.image", reason="needs matplotlib: pip install -e '.[viz]'")
    for name, options in (("light", []), ("dark", ["--dark"])):
        assert main(["plot", str(run), "-o", str(tmp_path / f"{name}.png"), *options]) == 0
    light, dark = (image.imread(tmp_path / f"{name}.png")[..., :3].mean() for name in ("light", "dark"))
    assert light > 0.8 and dark < 0.3


@pytest.mark.parametrize("height", [1500, 2600])
def test_the_graph_is_seen_as_a_whole_unless_it_is_very_tall(run, tmp_path, open_page, height):
    graph = Scene(300, height, [Text(10, height - 10, "loss")]).svg(standalone=False)
    page = open_page(report(run, tmp_path / "page.html", About(graph=graph)))
    pane, drawn = page.locator("#graph .scroll").bounding_box(), page.locator("#graph svg").bounding_box()
    assert pane["height"] == 1600 if height > 1600 else pane["height"] > drawn["height"] == height
    sides = drawn["x"] - pane["x"], pane["x"] + pane["width"] - drawn["x"] - drawn["width"]
    assert abs(sides[0] - sides[1]) < 20  # in the middle, but for a scroll bar
    # A folder elsewhere would tell about the machine, so only the name of the run is shown.
    assert page.locator("#graph code").inner_text() == f"minigrad graph {shlex.quote(run.name)} -o graph.html"


def test_the_report_names_the_run_as_a_command_here_would(run, tmp_path, monkeypatch):
    monkeypatch.chdir(run.parent.parent)
    page = report(run, tmp_path / "page.html", About(graph="<svg></svg>"))
    command = shlex.join(["minigrad", "graph", str(run.relative_to(run.parent.parent)), "-o", "graph.html"])
    assert f"<code>{html.escape(command)}</code>" in page.read_text(encoding="utf-8")


def test_a_report_needs_no_graphviz_and_says_what_would_bring_the_graph(run, tmp_path):
    code = "import sys; sys.modules['pygraphviz'] = None; from minigrad.zoo.report import report; report(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(run), str(tmp_path / "page.html")]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "PATH": str(tmp_path)})
    assert "is not installed; minigrad doctor says" in (tmp_path / "page.html").read_text()


def test_the_same_run_gives_the_same_page(run, tmp_path):
    assert zoo_report(run, tmp_path / "a.html").read_bytes() == zoo_report(run, tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("name", ["xor", "regression", "superposition", "superposition:pentagon", "word2vec:small"])
def test_the_models_that_draw_do_so_before_they_have_learned(name, device):
    spec, preset = zoo.training.named(name)
    config = zoo.configure(spec, preset)
    if spec.name == "word2vec":
        config = zoo.configure(spec, preset, spec.tiny)
    given = spec.data(config, None)
    config = given.config or config
    story = {"data": None, "max_steps": 1, "seed": 0}
    loaded = zoo.Loaded(spec, config, spec.build(config).to(device), given.tokenizer, story, 0, Path())
    ElementTree.fromstring(loaded.draw().svg())
