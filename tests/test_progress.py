"""What training shows, in a terminal, in a log, and where nobody can look."""

import io
import re
import threading

from support.small_training import small

from minigrad.train import Progress
from minigrad.train.progress import Timer


class Screen(io.StringIO):
    """A terminal, whose last line is what a person would see."""

    def isatty(self):
        return True

    @property
    def lines(self):
        shown = []
        for row in self.getvalue().split("\n"):
            line = ""
            for part in row.split("\r"):
                line = part + line[len(part) :]
            shown.append(line.rstrip())
        return shown


def test_on_a_terminal_one_line_is_rewritten_and_text_stands_on_its_own(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    now, screen = [0.0], Screen()
    progress = Progress(screen, clock=lambda: now[0])
    for step in range(1, 4):
        now[0] += 1
        progress.update(step, 3, lambda: f"loss {1 / step:.{6 - step}f}")  # noqa: B023
    progress.say("a sample")
    now[0] += 1
    progress.update(3, 3, lambda: "x" * 200)
    progress.close()
    assert screen.lines == ["a sample", "step 3/3 |##########| " + "x" * 57, ""]


def test_a_terminal_shows_a_bar_only_where_the_end_is_known(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    now, screen = [0.0], Screen()
    progress = Progress(screen, clock=lambda: now[0])
    progress.update(1_000, 2_000, lambda: "loss 1.0")
    progress.close()
    progress.update(1_001, None, lambda: "loss 0.5 \x1b[2J" + "x" * 50)
    progress.close()
    assert screen.lines == ["step 1,000/2,000 |#####     | loss 1.0", "step 1,001 | loss 0.5 \\x1b[2J" + "x" * 10, ""]


def test_a_bar_starts_no_thread(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    before = threading.active_count()
    progress = Progress(Screen())
    progress.update(1, 2, lambda: "loss 1.0")
    assert threading.active_count() == before
    progress.close()


def test_a_log_gets_a_whole_line_every_few_seconds_and_nothing_rewritten():
    now, log = [0.0], io.StringIO()
    progress = Progress(log, clock=lambda: now[0])
    for step in range(1, 101):
        now[0] += 0.25
        progress.update(step, None, lambda: "loss 1.0")
    progress.close()
    assert log.getvalue() == "step 1 | loss 1.0\nstep 41 | loss 1.0\nstep 81 | loss 1.0\n"


def test_a_closed_output_does_not_stop_training():
    log = io.StringIO()
    progress = Progress(log)
    log.close()
    progress.update(1, 1, lambda: "loss")
    progress.say("text")
    assert not progress.shown


def test_where_there_is_no_console_training_is_silent(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert small(progress=True).train().step == 5


def test_progress_tells_speed_loss_and_remaining_time(capsys, monkeypatch):
    monkeypatch.setattr("minigrad.train.progress._LOG", 0.0)
    small(progress=True, max_steps=3).train()
    first, second, third, end = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"step 1/3 \| loss [\d.]+ \| [\d,]+ units/s", first)  # no step has been timed
    assert re.fullmatch(r"step 2/3 \| loss [\d.]+ \| [\d,]+ units/s \| ETA 0s", second)
    assert third.endswith("ETA 0s") and end == "stopped at step 3 (max_steps)"


def test_the_time_left_is_that_of_the_steps_after_the_first_which_also_compiles(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("minigrad.train.progress.monotonic", lambda: now[0])
    timer = Timer(seconds=100.0)  # of a resumed run
    now[0] = 60.0
    assert timer.remaining(501, 600, None) is None and timer.remaining(501, 600, 5.0) == 300 - 160
    now[0] = 62.0
    assert timer.remaining(505, 600, None) == 95 * 0.5 and timer.remaining(505, 600, 3.0) == 180 - 162
    assert timer.remaining(505, None, None) is None


def test_control_characters_of_what_is_said_are_spelt_out():
    screen = Screen()
    Progress(screen).say("one\ttwo\nthree \x1b[31m\x00\r ñ 日本")
    assert screen.getvalue() == "one\ttwo\nthree \\x1b[31m\\x00\\r ñ 日本\n"
