import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.in_pods.checkpoints import CheckpointError, Checkpoints, NewerCheckpointError
from tests.repository import ROOT
from tests.unit.work import crashing, training
from tests.unit.work.training import read


def _save(checkpoints: Checkpoints, step: int, text: str = "") -> None:
    with checkpoints.saving(step) as directory:
        (directory / "model").write_text(text or f"after {step}")


def _fail_after(_: object) -> None:
    raise ZeroDivisionError


def _step(checkpoints: Checkpoints) -> int | None:
    latest = checkpoints.latest()
    return latest.step if latest else None


def _markers(root: Path) -> list[Path]:
    return sorted(root.glob("*.json"))


@contextmanager
def _trained(root: Path) -> Generator["subprocess.Popen[str]"]:
    """A training process; without site-packages, so that it starts at once."""
    command = [sys.executable, "-S", training.__file__, str(root)]
    with subprocess.Popen(
        command, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None
    text = process.stdout.readline()
    assert text, process.communicate()[1]
    return int(text)


def _killed(process: "subprocess.Popen[str]") -> int:
    """Kill a process, and return the last step that it reported as saved."""
    process.kill()
    assert process.stdout is not None
    lines = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) if lines else 0


def test_a_kill_at_every_line_of_a_save(tmp_path: Path) -> None:
    """Wherever a save ends, the earlier checkpoint or this one exists, complete."""
    command = [sys.executable, "-S", crashing.__file__, str(tmp_path)]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_two_writers(tmp_path: Path) -> None:
    """Two processes that train the same run, killed by turns, never make it fall back or mix."""
    chance = random.Random(7)  # noqa: S311
    checkpoints = Checkpoints(tmp_path)
    reached = 0
    for _ in range(8):
        with _trained(tmp_path) as first, _trained(tmp_path) as other:
            _line(first)
            _line(other)
            _line(first)  # after its first save, or another's
            for _ in range(5):
                latest = checkpoints.latest()
                assert (latest.step if latest else 0) >= reached
                reached = latest.step if latest else 0
                time.sleep(chance.uniform(0, 0.01))
            reached = max(reached, _killed(first), _killed(other))
        latest = checkpoints.latest()
        read(latest)
        assert latest is not None
        assert latest.step >= reached
        reached = latest.step
    assert reached > 0


@settings(deadline=None)
@given(st.data())
def test_what_is_damaged_is_passed_over(data: st.DataObject) -> None:
    """Any byte of any file changed, or its end missing, and the checkpoint before is taken."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        checkpoints = Checkpoints(root)
        for step in (1, 2):
            _save(checkpoints, step)
        newest = _markers(root)[-1]
        file = data.draw(st.sampled_from([newest, root / newest.stem / "model"]))
        content = file.read_bytes()
        at = data.draw(st.integers(0, len(content) - 1))
        other = bytes([data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))])
        damaged = data.draw(st.sampled_from([content[:at], content[:at] + other + content[at + 1 :], None]))
        if damaged is None:
            file.unlink()
        else:
            file.write_bytes(damaged)
        assert _step(checkpoints) == 1
        assert _step(Checkpoints(root)) == 1


def test_damage_stops_no_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Checkpoints that lost a byte on the way neither refuse what comes after nor make it go."""
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (10, 20, 30):
        _save(checkpoints, step)
    for marker in _markers(tmp_path):
        (tmp_path / marker.stem / "model").write_text("other 00")
    assert _step(checkpoints) is None
    assert "is skipped: model has changed since it was saved" in caplog.text
    for writer in (Checkpoints(tmp_path, keep=2), checkpoints):
        step = (_step(writer) or 0) + 1
        _save(writer, step)
        assert _step(Checkpoints(tmp_path)) == step
    _save(checkpoints, 40)
    _save(checkpoints, 50)
    assert len(list(tmp_path.iterdir())) == 4


def test_what_was_just_saved_stays(tmp_path: Path) -> None:
    """Also where damaged ones of later steps would fill the places of those that stay."""
    for step in (10, 20, 30):
        _save(Checkpoints(tmp_path), step)
    for marker in _markers(tmp_path):
        (tmp_path / marker.stem / "model").write_text("other 00")
    _save(Checkpoints(tmp_path, keep=2), 5)
    assert _step(Checkpoints(tmp_path)) == 5


def test_a_reader_that_is_overtaken_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints that it had listed are deleted before it reads them: it takes a newer one."""
    reader, writer = Checkpoints(tmp_path), Checkpoints(tmp_path, keep=1)
    _save(writer, 1)
    scan = os.scandir

    def overtaken(path: Path) -> Any:
        entries = list(scan(path))
        monkeypatch.setattr(os, "scandir", scan)
        _save(writer, 2)
        return entries

    monkeypatch.setattr(os, "scandir", overtaken)
    assert _step(reader) == 2


def test_an_older_writer_is_refused(tmp_path: Path) -> None:
    """The writer with the older step gets an error, and leaves no file."""
    ahead, behind = Checkpoints(tmp_path), Checkpoints(tmp_path)
    _save(ahead, 5)
    with pytest.raises(NewerCheckpointError, match=r"step 5 is already in .* continue from latest"):
        _save(behind, 4)
    assert _step(behind) == 5
    assert len(list(tmp_path.iterdir())) == 2


def test_a_save_whose_directory_was_cleared(tmp_path: Path) -> None:
    """A writer that was overtaken while it wrote gets the same error, whichever of its calls failed."""
    ahead, behind = Checkpoints(tmp_path), Checkpoints(tmp_path)

    def overtaken() -> None:
        with behind.saving(4) as directory:
            _save(ahead, 5)
            (directory / "model").write_text("late")

    with pytest.raises(NewerCheckpointError):
        overtaken()


def test_a_step_is_saved_once(tmp_path: Path) -> None:
    """The same step again, as after a resume or of two writers at once, changes nothing."""
    checkpoints = Checkpoints(tmp_path)
    _save(checkpoints, 5, "first")
    _save(checkpoints, 5, "second")
    latest = checkpoints.latest()
    assert latest is not None
    assert (latest.path / "model").read_text() == "first"
    with checkpoints.saving(6) as directory:
        _save(Checkpoints(tmp_path, keep=1), 6)
        (directory / "model").write_text("second")
    assert _step(checkpoints) == 6
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failed_save_leaves_what_was_there(tmp_path: Path) -> None:
    """An error in the block comes out as it is."""
    checkpoints = Checkpoints(tmp_path)
    _save(checkpoints, 1)
    with pytest.raises(ZeroDivisionError), checkpoints.saving(2) as directory:
        _fail_after((directory / "model").write_text("half"))
    with pytest.raises(FileNotFoundError), checkpoints.saving(2):
        (tmp_path / "nowhere").read_text()
    assert _step(checkpoints) == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_the_last_ones_stay(tmp_path: Path) -> None:
    """The configured number is kept, and remains of interrupted saves are deleted with the rest."""
    checkpoints = Checkpoints(tmp_path, keep=2)
    (tmp_path / "000000000003-0123456789ab").mkdir()
    (tmp_path / "notes").mkdir()
    for step in range(1, 6):
        _save(checkpoints, step)
    kept = [path.name.partition("-")[0] for path in _markers(tmp_path)]
    assert kept == ["000000000004", "000000000005"]
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(("step", "message"), [(-1, "The step is -1"), (True, "The step is True")])
def test_a_wrong_step(tmp_path: Path, step: int, message: str) -> None:
    """Is refused before anything is written."""
    with pytest.raises(CheckpointError, match=message), Checkpoints(tmp_path).saving(step):
        pass
    assert list(tmp_path.iterdir()) == []


def test_nothing_saved_is_no_checkpoint(tmp_path: Path) -> None:
    """A block that writes nothing is a mistake, and so is keeping none."""
    with pytest.raises(CheckpointError, match="Nothing was written"), Checkpoints(tmp_path).saving(1):
        pass
    with pytest.raises(CheckpointError, match="write 1 or more"):
        Checkpoints(tmp_path, keep=0)


def test_an_initial_checkpoint_is_copied_once(tmp_path: Path) -> None:
    """The initial checkpoint is copied only if no checkpoint exists, and never over one that training saved
    during the copy."""
    source = tmp_path / "initial"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "model").write_text("pretrained")
    root = tmp_path / "run"
    first = Checkpoints(root).seed(source)
    assert (first.step, (first.path / "deep" / "model").read_text()) == (0, "pretrained")
    (source / "deep" / "model").write_text("other")
    assert Checkpoints(root).seed(source) == first
    _save(Checkpoints(root), 7)
    again = Checkpoints(root).seed(source)
    assert (again.step, (again.path / "model").read_text()) == (7, "after 7")


def test_an_initial_file(tmp_path: Path) -> None:
    """A single file is accepted, and a missing one is an error."""
    (tmp_path / "model.ckpt").write_text("pretrained")
    checkpoint = Checkpoints(tmp_path / "run").seed(tmp_path / "model.ckpt")
    assert (checkpoint.path / "model.ckpt").read_text() == "pretrained"
    with pytest.raises(CheckpointError, match="There is no initial checkpoint at"):
        Checkpoints(tmp_path / "other").seed(tmp_path / "nowhere")


def test_training_that_overtakes_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that ends after training has saved its first step is thrown away."""
    source = tmp_path / "model"
    source.write_text("pretrained")
    run = Checkpoints(tmp_path / "run")

    def slow_copy(_: Path, target: Path) -> None:
        target.write_text("pretrained")
        _save(Checkpoints(tmp_path / "run"), 3)

    monkeypatch.setattr("shutil.copyfile", slow_copy)
    assert run.seed(source).step == 3
    assert _step(run) == 3


def test_a_mount_without_renames_links_and_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No operation is used that a bucket mount lacks; directories that cannot be synced are accepted."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(38, "Function not implemented")

    for name in ("rename", "replace", "link", "symlink"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr("fcntl.flock", refuse)
    monkeypatch.setattr("fcntl.lockf", refuse)
    sync = os.fsync

    def files_only(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112
            refuse()
        sync(handle)

    monkeypatch.setattr(os, "fsync", files_only)
    checkpoints = Checkpoints(tmp_path, keep=1)
    for step in (1, 2):
        _save(checkpoints, step)
    assert _step(checkpoints) == 2


def test_what_cannot_be_synced_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing disk is reported at once, and the earlier checkpoint stays the latest."""
    checkpoints = Checkpoints(tmp_path)
    _save(checkpoints, 1)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        _save(checkpoints, 2)
    assert _step(Checkpoints(tmp_path)) == 1
