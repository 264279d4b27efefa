"""Checkpoints that survive a kill at any moment, for training code. A volume needs only the standard library,
a bucket also its cloud's library.

A checkpoint is a directory and a marker file:

    000000000042-9f8a6c01b2d4/…      what the training code wrote
    000000000042-9f8a6c01b2d4.json   written last: each file's size and digest, and a digest of the marker

A checkpoint is complete if both exist undamaged; everything else is ignored. Nothing is ever renamed,
replaced or locked, and there is no pointer to the latest checkpoint: it is the one with the highest step, so
that no writer can move it back. Names are unique, so that no two writers ever write the same file.

Reason: a bucket mount has no atomic rename, no hard links and no locks, and the last writer of a file wins. A
bucket used by its address offers no more. Assumptions, for buckets and volumes:

- A file that is closed without an error is in the bucket, complete, as one object, and readers that open it
  afterwards find it. Cloud Storage FUSE: close-to-open consistency; since 3.0 a file does not exist before it
  is closed, and fsync has no effect (GoogleCloudPlatform/gcsfuse, docs/semantics.md, 2026). Blobfuse:
  uploaded on close, and the close fails if the upload fails (Azure/azure-storage-fuse wiki, Blobfuse
  Limitations, 2022-10 and 2025-12; `lazy-write` must stay off).
- On a volume, synced files survive the node. Files are closed first and then synced, through a separate
  handle, since Blobfuse drops its local copy on fsync.
- A listing may be a minute old: both mounts cache. A reader of an old listing sees an older checkpoint, never
  a broken one, so a mount's cache should be short if several nodes write.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.in_pods.storage import CheckpointError, copy, digest, storage_of

_NAME = re.compile(r"(\d{12,})-[0-9a-f]{12}")
_log = logging.getLogger("ebbtide.checkpoints")


class NewerCheckpointError(CheckpointError):
    """Another writer is ahead. Nothing was saved: continue from `latest()`, or stop."""


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A complete checkpoint.

    Attributes:
        step: the step after which it was saved; 0 for the initial one.
        path: directory with its files. It exists until there are `keep` newer checkpoints: if another writer
            saves them while it is read, a file is missing; call `latest()` again. For a bucket, it is a local
            copy until another checkpoint is read.
    """

    step: int
    path: Path


class Checkpoints:
    """The checkpoints of one training run.

    One process should save, but others do no harm, such as a pod that is still running after its replacement
    started. The files of a killed save are removed when a later checkpoint is complete; before that, the save
    could still be in progress.

    Args:
        root: directory of the run: on a volume or a bucket mount, created if it does not exist; or in a
            bucket, as `gs://bucket/run` or `abfss://container@account.dfs.core.windows.net/run`.
        keep: number of complete checkpoints to keep. Three leave two as fallbacks, and time for a reader to
            finish.
    """

    def __init__(self, root: str | Path, *, keep: int = 3) -> None:
        if keep < 1:
            raise CheckpointError(f"keep is {keep}; the latest checkpoint is always kept: write 1 or more.")
        self.root = root
        self.keep = keep
        self._broken: set[str] = set()
        self._storage = storage_of(root)

    def latest(self) -> Checkpoint | None:
        """Return the newest complete checkpoint, with all bytes verified by their digests; None if there is
        none. Damaged ones are skipped and logged to `ebbtide.checkpoints`."""
        while True:
            for name in self._marked():
                fault = self._damage(name)
                if fault is None:
                    return Checkpoint(_step(name), self._storage.fetch(name))
                if not self._storage.exists(_marker(name)):
                    break  # removed for newer ones since the listing: list again
                self._broken.add(name)
                _log.warning("Checkpoint %s is skipped: %s.", name, fault)
            else:
                return None

    @contextmanager
    def saving(self, step: int) -> Generator[Path]:
        """Open a directory for a checkpoint; when the block ends, the checkpoint is complete.

        A kill at any moment leaves either this checkpoint or the previous one. If the block raises, the
        previous one remains. An existing step is not saved again.

        Args:
            step: the completed step, 0 or more; higher than any saved one.

        Raises:
            NewerCheckpointError: a later step of another writer exists.
            CheckpointError: the step is not a whole number, or nothing was written.
            OSError: a file could not be written; the previous checkpoint is unchanged.
        """
        if step < 0 or isinstance(step, bool):
            raise CheckpointError(f"The step is {step}; it is a whole number, 0 or more.")
        name = f"{step:012d}-{os.urandom(6).hex()}"
        directory = self._storage.stage(name)
        try:
            yield directory
            self._publish(name, directory)
        except BaseException as error:
            self._storage.remove_all(name)
            if isinstance(error, FileNotFoundError):
                self._refuse_behind(step)  # removed by a writer that is ahead
            raise

    def seed(self, source: str | Path) -> Checkpoint:
        """Copy an initial checkpoint to the run's directory, unless a checkpoint exists.

        It becomes step 0, which precedes every step of training: a repeated or late call overwrites nothing.

        Args:
            source: path of a file or of a directory with files, or an address in a bucket.

        Returns:
            The latest checkpoint: the copy, if there was no other.

        Raises:
            CheckpointError: there is nothing at `source`.
        """
        existing = self.latest()
        if existing is not None:
            return existing
        with suppress(NewerCheckpointError), self.saving(0) as directory:
            try:
                copy(source, directory)
            except FileNotFoundError:
                if not directory.exists():
                    raise  # removed by a writer that is ahead
                raise CheckpointError(f"There is no initial checkpoint at {source}.") from None
        existing = self.latest()
        if existing is None:
            raise CheckpointError(f"The copy of {source} in {self.root} cannot be read back.")
        return existing

    def _names(self, kind: str) -> list[str]:
        """Return names of markers (`.json`) or directories (empty), highest step first."""
        names = [
            entry.removesuffix(kind)
            for entry in self._storage.names()
            if entry.endswith(kind) and _NAME.fullmatch(entry.removesuffix(kind))
        ]
        return sorted(names, key=lambda name: (_step(name), name), reverse=True)

    def _marked(self) -> list[str]:
        return self._names(".json")

    def _damage(self, name: str, *, deep: bool = True) -> str | None:
        """Return the problem of a checkpoint; None if there is none. Without `deep`, only sizes are
        checked."""
        try:
            files = _unsealed(_step(name), self._storage.read(_marker(name)))
            for path, (size, saved) in files.items():
                if self._storage.size(name, path) != size:
                    return f"{path} has another size than when it was saved"
                if deep and digest(self._storage.fetch(name) / path) != saved:
                    return f"{path} has changed since it was saved"
        except (OSError, ValueError, TypeError) as error:
            return f"it cannot be read ({error})"
        return None

    def _refuse_behind(self, step: int) -> None:
        for name in self._marked():
            if _step(name) <= step:
                return
            # Full verification: a damaged one must not block later saves.
            if self._damage(name) is None:
                raise NewerCheckpointError(
                    f"Step {step} is not saved: step {_step(name)} is already in {self.root}. Another writer "
                    "is ahead of this one; continue from latest(), or stop."
                )

    def _publish(self, name: str, directory: Path) -> None:
        step = _step(name)
        self._refuse_behind(step)
        if any(_step(other) == step and self._damage(other) is None for other in self._marked()):
            self._storage.remove_all(name)
            return
        files = {
            file.relative_to(directory).as_posix(): [file.stat().st_size, digest(file)]
            for file in sorted(directory.rglob("*"))
            if file.is_file()
        }
        if not files:
            raise CheckpointError(f"Nothing was written into {directory}: there is nothing to save.")
        self._storage.publish(name)
        self._storage.write(_marker(name), _sealed(step, files))
        self._clear(name)

    def _clear(self, saved: str) -> None:
        """Remove checkpoints older than the newest `keep`, and remains of saves that ended early.

        Only steps below the newest complete one are removed: a save of such a step in progress would be
        rejected anyway. The marker is removed first, so that a half-removed checkpoint is ignored. The
        checkpoint that was just saved always stays: no complete one was ahead of it a moment ago.
        """
        whole = [
            name
            for name in self._marked()
            if name not in self._broken and self._damage(name, deep=False) is None
        ]
        keep = {saved, *whole[: self.keep]}
        newest = _step(whole[0]) if whole else 0
        for name in {*self._marked(), *self._names("")}:
            if name not in keep and _step(name) < newest:
                with suppress(OSError, CheckpointError):
                    self._storage.remove(_marker(name))
                    self._storage.remove_all(name)


def _step(name: str) -> int:
    return int(name.partition("-")[0])


def _marker(name: str) -> str:
    return f"{name}.json"


def _sealed(step: int, files: dict[str, Any]) -> str:
    """Return a marker's text, canonical for its content, so that any changed byte is detected."""
    content = {"step": step, "files": files}
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content | {"seal": seal}, sort_keys=True)


def _unsealed(step: int, text: str) -> dict[str, tuple[int, str]]:
    """Parse a marker: the files that it lists, with size and digest.

    Raises:
        ValueError: the marker is damaged.
    """
    files: dict[str, Any] = dict(json.loads(text)).get("files", {})
    if text != _sealed(step, files):
        raise ValueError("the marker is incomplete")
    return {path: (size, saved) for path, (size, saved) in files.items()}
