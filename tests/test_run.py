"""A run directory: one process at a time, pointers that always lead somewhere, tables that can go back."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from support.folders import in_memory

import minigrad as mg
from minigrad.errors import ArgumentError, CheckpointError
from minigrad.train import Run, RunError, average_checkpoints, find_checkpoint, read_checkpoint
from minigrad.train.csv_log import CSVLog
from minigrad.train.run import checkpoints_of

HOLD = "import sys, time, minigrad.train as t; run = t.Run(sys.argv[1]); print('held', flush=True); time.sleep(60)"


@pytest.fixture
def folder():
    with in_memory() as place:
        yield place / "run"


def save(run: Run, step: int, **options) -> None:
    run.save(step, {"model.w": np.full(3, step, np.float32), "model.n": np.array(step)}, {"step": step}, **options)


def steps(folder) -> list[int]:
    return [read_checkpoint(path).state["step"] for path in checkpoints_of(folder)]


def holder(folder) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_two_processes_cannot_train_into_one_directory_and_death_frees_it(folder):
    process = holder(folder)
    with pytest.raises(RunError, match=f"another process(.|\n)*process {process.pid}"):
        Run(folder)
    process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    process.communicate()
    Run(folder).close()


def test_one_process_cannot_hold_a_directory_twice(folder):
    with Run(folder), pytest.raises(RunError, match=f"process {os.getpid()}"):
        Run(folder)
    Run(folder).close()


def test_latest_and_best_lead_to_what_they_name(folder):
    with Run(folder) as run:
        for step in range(1, 7):
            save(run, step, best=step == 2, keep=2)
    assert steps(folder) == [2, 5, 6]
    assert read_checkpoint(find_checkpoint(folder)).state["step"] == 6
    assert read_checkpoint(find_checkpoint(folder, "best")).state["step"] == 2
    assert find_checkpoint(folder / "checkpoints" / "step-00000005.safetensors").name == "step-00000005.safetensors"


def test_all_checkpoints_are_kept_if_asked_for(folder):
    with Run(folder) as run:
        for step in range(5):
            save(run, step, keep=None)
    assert steps(folder) == [0, 1, 2, 3, 4]


def test_after_going_back_the_new_checkpoints_are_kept_not_those_of_the_abandoned_future(folder):
    with Run(folder) as run:
        for step in (10, 20, 30):
            save(run, step, keep=3)
        run.point("latest", folder / "checkpoints" / "step-00000010.safetensors")
        save(run, 15, keep=1)
    assert 15 in steps(folder)
    assert read_checkpoint(find_checkpoint(folder)).state["step"] == 15


def test_a_damaged_latest_checkpoint_is_passed_over_and_said(folder):
    with Run(folder) as run:
        for step in (1, 2):
            save(run, step)
        newest = find_checkpoint(folder)
        newest.write_bytes(newest.read_bytes()[:-1])
        said: list[str] = []
        assert run.read_latest(said.append).state["step"] == 1
        assert "damaged" in said[0] and "step-00000001" in said[1]
        for path in checkpoints_of(folder):
            path.write_bytes(b"")
        with pytest.raises(CheckpointError):
            run.read_latest(said.append)


@pytest.mark.parametrize(
    "content", [b"", b"../../etc/passwd", b"/etc/passwd", b"step-1", b"\xff" * 1000, b"step-00000009.safetensors"]
)
def test_a_pointer_that_is_damaged_or_leads_elsewhere_is_not_followed(folder, content):
    with Run(folder) as run:
        save(run, 1)
        (folder / "latest").write_bytes(content)
        assert run.read_latest(print).state["step"] == 1
    assert find_checkpoint(folder).name == "step-00000001.safetensors"


def test_a_directory_without_checkpoints_says_so(folder):
    with pytest.raises(CheckpointError, match="run' does not exist"):
        find_checkpoint(folder)
    folder.mkdir()
    with pytest.raises(CheckpointError, match="no latest checkpoint"):
        find_checkpoint(folder)
    with Run(folder) as run:
        assert run.read_latest(print) is None
        save(run, 1)
    with pytest.raises(CheckpointError, match="validated"):
        find_checkpoint(folder, "best")


def test_a_run_that_is_asked_for_without_its_folder_is_found_in_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"'demo' does not exist(?s:.*)the run of that name is runs.demo"):
        find_checkpoint("demo")


def test_leftovers_of_a_killed_writer_are_swept_away(folder):
    Run(folder).close()
    leftover = folder / "checkpoints" / ".step-00000001.safetensors.abc.tmp"
    leftover.write_bytes(b"half")
    Run(folder).close()
    assert not leftover.exists()


def test_a_file_in_the_way_is_explained(folder):
    folder.write_text("")
    with pytest.raises(RunError, match="cannot be a run directory"):
        Run(folder)


def test_a_run_stays_where_it_is_when_the_working_directory_changes(folder, monkeypatch):
    (folder / "elsewhere").mkdir(parents=True)
    monkeypatch.chdir(folder)
    with Run("run") as run:
        monkeypatch.chdir("elsewhere")
        save(run, 1)
        run.metrics.add({"step": 1})
    assert steps(folder / "run") == [1] and (folder / "run" / "metrics.csv").exists()


@pytest.mark.parametrize("name", ["lock", "metrics.csv"])
def test_a_folder_in_the_place_of_a_file_is_explained(folder, name):
    (folder / name).mkdir(parents=True)
    with pytest.raises(RunError, match=r"cannot be(.|\n)*fix: "):
        Run(folder).rewind(1)


DENIED = """
import os, sys, minigrad as mg, minigrad.train as t
model = mg.nn.Linear(1, 1)
optimizer = mg.optim.SGD(model.parameters())
resume = lambda path: t.Trainer.resume(model, lambda model, batch: {}, [1], optimizer, out=path, max_steps=1)
os.setuid(65534)
for use in (t.Run, t.find_checkpoint, resume):
    try:
        use(sys.argv[1])
    except t.RunError as error:
        print("Permission denied" in str(error))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_run_of_somebody_else_is_explained():
    with in_memory() as place:
        with Run(place) as run:
            save(run, 1)
        place.chmod(0o755)
        (place / "checkpoints").chmod(0o700)
        done = subprocess.run([sys.executable, "-c", DENIED, str(place)], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["True"] * 3, done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_leaves_the_old_checkpoint_and_the_pointer(folder):
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
    try:
        with Run(folder) as run:
            save(run, 1)
            with pytest.raises(CheckpointError, match="No space left(.|\n)*unchanged"):
                run.save(2, {"w": np.zeros(10**6)}, {"step": 2})
            assert steps(folder) == [1] and run.read_latest(print).state["step"] == 1
            assert [p.name for p in (folder / "checkpoints").iterdir()] == ["step-00000001.safetensors"]
            (folder / "filler").write_bytes(bytes(10_000))
            with pytest.raises(OSError), open(folder / "filler", "ab", buffering=0) as file:
                while file.write(bytes(4096)) == 4096:
                    pass
                raise OSError
            for step in range(2000):
                run.metrics.add({"step": step, "loss": step / 3})
            assert run.metrics.problem is not None
            (folder / "filler").unlink()
            run.metrics.add({"step": 2000, "loss": 0.0})
            assert run.metrics.problem is None
        lines = (folder / "metrics.csv").read_text().splitlines()
        assert lines == ["step,loss", *(f"{step},{step / 3!r}" for step in range(2000)), "2000,0.0"]
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_table_grows_columns_and_goes_back(folder):
    folder.mkdir()
    table = CSVLog(folder / "t.csv")
    for step in range(1, 4):
        table.add({"step": step, "loss": 1 / 3})
    table.add({"step": 4, "loss": 0.1, "valid_loss": float("nan")})
    whole = table.path.read_bytes()
    assert whole.decode().splitlines()[::4] == ["step,loss,valid_loss", "4,0.1,nan"]
    again = CSVLog(table.path)
    again.rewind(2)
    assert again.path.read_text() == "step,loss,valid_loss\n1,0.3333333333333333,\n2,0.3333333333333333,\n"
    again.add({"step": 3, "loss": 1 / 3})
    again.add({"step": 4, "loss": 0.1, "valid_loss": float("nan")})
    assert again.path.read_bytes() == whole


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_table_cut_off_in_the_middle_of_a_row_loses_that_row_only(folder, cut):
    folder.mkdir()
    path = folder / "t.csv"
    lines = ["step,loss", "1,0.25", "12,0.125", "13,1.5"]
    whole = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(whole[:cut])
    table = CSVLog(path)
    table.rewind(100)
    complete = whole[:cut].decode().split("\n")[:-1]
    table.add({"step": 14, "loss": 2.0})
    assert path.read_text().splitlines() == [*(complete or ["step,loss"]), "14,2.0"]


def test_a_table_that_a_spreadsheet_saved_is_taken_over(folder):
    folder.mkdir()
    path = folder / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfstep,loss\r\n1,0.25\r\n2,0.5\r\n")
    table = CSVLog(path)
    table.rewind(1)
    table.add({"step": 2, "loss": 0.125})
    assert path.read_bytes() == b"step,loss\n1,0.25\n2,0.125\n"


def test_a_file_that_is_no_table_is_put_aside_and_not_deleted(folder):
    folder.mkdir()
    (folder / "t.csv").write_text("my notes\n")
    table = CSVLog(folder / "t.csv")
    table.rewind(5)
    table.add({"step": 1, "loss": 0.5})
    assert (folder / "t.csv.old").read_text() == "my notes\n"
    assert (folder / "t.csv").read_text() == "step,loss\n1,0.5\n"


def test_a_row_with_an_absurd_step_is_dropped(folder):
    folder.mkdir()
    (folder / "t.csv").write_text(f"step,loss\n1,0.5\n{'9' * 5000},0.5\n")
    table = CSVLog(folder / "t.csv")
    table.rewind(5)
    assert (folder / "t.csv").read_text() == "step,loss\n1,0.5\n"


def test_a_column_that_would_break_the_table_is_refused(folder):
    with pytest.raises(ArgumentError, match="cannot be a column"):
        CSVLog(folder / "t.csv").add({"step": 1, "a,b": 2.0})


def test_averaging_takes_the_mean_of_the_last_weights(folder):
    with Run(folder) as run:
        for step in (1, 2, 3, 7):
            save(run, step, keep=None)
    averaged = average_checkpoints(folder, last=3)
    np.testing.assert_array_equal(averaged["w"], np.full(3, 4, np.float32))
    assert averaged["w"].dtype == np.float32 and averaged["n"] == 7
    two = [folder / "checkpoints" / f"step-0000000{n}.safetensors" for n in (1, 7)]
    np.testing.assert_array_equal(average_checkpoints(two)["w"], np.full(3, 4, np.float32))


def test_checkpoints_of_different_models_are_not_averaged(folder):
    with Run(folder) as run:
        save(run, 1)
        run.save(2, {"model.w": np.zeros(4)}, {})
    with pytest.raises(CheckpointError, match="another model"):
        average_checkpoints(folder, last=2)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        average_checkpoints(folder / "nothing")


def test_averaging_refuses_more_checkpoints_than_there_are(folder):
    with Run(folder) as run:
        for step in (1, 2):
            save(run, step)
    with pytest.raises(CheckpointError, match="give last=2, or train with keep=50"):
        average_checkpoints(folder, last=50)


def test_an_older_best_checkpoint_is_not_averaged_with_the_last_ones(folder):
    with Run(folder) as run:
        for step in range(1, 7):
            run.save(step, {"model.w": np.full(2, step, "float32")}, {"training": {"keep": 2}}, best=step == 1, keep=2)
    assert [path.name[12:13] for path in sorted((folder / "checkpoints").iterdir())] == ["1", "5", "6"]
    np.testing.assert_array_equal(average_checkpoints(folder, last=2)["w"], [5.5, 5.5])
    with pytest.raises(CheckpointError, match="fewer checkpoints in a row"):
        average_checkpoints(folder, last=3)


def test_a_checkpoint_that_is_asked_for_by_a_wrong_name_is_told_the_right_one(folder):
    with Run(folder) as run:
        save(run, 1)
    with pytest.raises(ArgumentError, match="did you mean 'best'"):
        find_checkpoint(folder, "bets")
    with pytest.raises(CheckpointError, match="check the path"):
        find_checkpoint(folder / "elsewhere", "best")


def test_a_directory_and_plain_weights_are_no_checkpoint_and_it_is_said_how_to_read_them(folder):
    with Run(folder) as run:
        save(run, 1)
    with pytest.raises(CheckpointError, match=r"is a directory[^$]*read_checkpoint\(find_checkpoint\("):
        read_checkpoint(folder)
    for size in (1, 100):
        mg.save({"w": mg.ones(size)}, folder / "w.safetensors")
        with pytest.raises(CheckpointError, match=r"minigrad\.load\(path\)"):
            read_checkpoint(folder / "w.safetensors")
