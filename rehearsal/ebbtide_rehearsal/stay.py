"""A rehearsal that stays up for commands in other terminals: `ebbtide rehearse --stay`.

The commands are the user's own: `pulumi` with its language host, `kubectl`, `ebbtide`. They work on a copy of
the project's stack files, since the engine writes its salt there.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from ebbtide.analysis.preview.stack_files import (
    PLACEHOLDER,
    StackFileError,
    StackFiles,
    read_stack,
    stack_named_by,
)
from ebbtide.autoscaler.nodes import RECLAIMABLE
from ebbtide.operations.engine.interrupts import deferred_interrupts
from ebbtide.text import did_you_mean
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.existing import introduce
from ebbtide_rehearsal.cloud.pools import all_machines, all_pools
from ebbtide_rehearsal.cloud.rest.access import rest_access
from ebbtide_rehearsal.cloud.running import CloudSettings, RunningCloud, store_file
from ebbtide_rehearsal.cloud.store import RECLAIM, InjectedFault, Store
from ebbtide_rehearsal.engine import Shell, shell
from ebbtide_rehearsal.stage import empty_directory, link_charts, mirror, running_cloud
from ebbtide_rehearsal.tools.find import Tools
from ebbtide_rehearsal.tools.items import OnStep

SPEED: Final = 60.0
"""Simulated seconds of the cloud's delays per second, as in a scenario."""
DIRECTORY: Final = "EBBTIDE_REHEARSAL"
"""Environment variable of other terminals with the directory of the rehearsal's files."""

_STEP: Final = 0.5  # seconds
_ENGINE_LINE: Final = re.compile(r"^(encryptionsalt|encryptedkey|secretsprovider):.*\n?", re.MULTILINE)
_SECRET: Final = re.compile(r":\s*\n\s+secure:\s*\S+$", re.MULTILINE)
"""A secret as the engine writes it; the rehearsal's engine has another key."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A fake cloud, and a copy of the project for commands.

    Attributes:
        project: directory of the copy.
        stack_files: directory of the copied stack files.
        shell: environment of the commands.
        exports: file with the environment, for `source`.
    """

    stack: str
    project: Path
    stack_files: Path
    shell: Shell
    cloud: RunningCloud
    exports: Path

    def create(self) -> int:
        """Create the stack and run `ebbtide up`; return its exit status.

        Raises:
            RehearsalError: the stack cannot be created.
            KeyboardInterrupt: on Ctrl-C, after the command has ended.
        """
        created = self._run("pulumi", "stack", "init", self.stack)
        if created.returncode:
            raise RehearsalError(f"`pulumi stack init {self.stack}` failed: {created.stderr.strip()}")
        with deferred_interrupts(lambda: None) as interrupts:
            status = subprocess.call(  # noqa: S603
                [sys.executable, "-m", "ebbtide", "up", self.stack, "--yes"],
                cwd=self.project,
                env=self.shell.environment(),
            )
        if interrupts.received:
            raise KeyboardInterrupt
        self._write_access()
        return status

    def wait(self, limit: timedelta | None = None) -> None:
        """Wait until Ctrl-C or the time limit.

        Meanwhile the cloud gets the users and regions of changed stack files, and the files of `KUBECONFIG`
        and `EBBTIDE_PROFILE` follow the stack.

        Args:
            limit: the time limit; none by default.

        Raises:
            RehearsalError: the fake cloud has ended.
        """
        end = None if limit is None else time.monotonic() + limit.total_seconds()
        times: dict[Path, float] = {}
        with suppress(KeyboardInterrupt):
            while end is None or time.monotonic() < end:
                self.cloud.check()
                for file in self._watched():
                    changed = file.stat().st_mtime
                    if times.get(file) != changed:
                        times[file] = changed
                        self._follow(file)
                time.sleep(_STEP)

    def _watched(self) -> Sequence[Path]:
        """Return the stack files, and the state unless an engine is changing it."""
        state = self.exports.parent / "state" / ".pulumi"
        is_locked = any((state / "locks").rglob("*.json"))
        states = () if is_locked else (state / "stacks").glob(f"*/{self.stack}.json")
        return [*self.stack_files.glob("Pulumi.*.y*ml"), *states]

    def _follow(self, file: Path) -> None:
        stack = stack_named_by(file)
        if stack is None:
            self._write_access()
            return
        with suppress(StackFileError):
            introduce(read_stack(self.project, stack, config_file=file).declaration(), self.cloud.store)

    def _write_access(self) -> None:
        for variable, output in (("KUBECONFIG", "kubeconfig"), ("EBBTIDE_PROFILE", "placementProfile")):
            command = ("pulumi", "stack", "output", output, "--show-secrets", "--stack", self.stack)
            read = self._run(*command)
            if not read.returncode:
                target = Path(self.shell.variables[variable])
                target.touch(mode=0o600)
                target.write_text(read.stdout, encoding="utf-8")

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            command,
            cwd=self.project,
            env=self.shell.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def stay(
    files: StackFiles,
    tools: Tools,
    on_step: OnStep,
    *,
    manifests: Sequence[Path] = (),
    charts: Sequence[Path] = (),
    keep: Path | None = None,
) -> Generator[Stay]:
    """Start the fake cloud for a project's stacks; it ends with the block.

    Args:
        tools: programs and data for the cloud.
        on_step: as for `tools.ensure`.
        manifests: as for `stage`.
        charts: as for `stage`.
        keep: as for `stage`.

    Raises:
        RehearsalError: setup failed.
    """
    with ExitStack() as ending:
        directory = ending.enter_context(empty_directory(keep))
        project = directory / "project"
        stack_files = copy_project(files, project)
        link_charts(project, tools, charts)
        settings = CloudSettings(speed=SPEED, declaration=files.declaration())
        cloud = ending.enter_context(running_cloud(directory, settings, tools))
        trusted = directory / "trusted.crt"
        access = ending.enter_context(rest_access(directory, cloud.store, trusted))
        own = shell(directory, cloud.providers, on_step).having(
            SSL_CERT_FILE=str(trusted),
            KUBECONFIG=str(directory / "kubeconfig.json"),
            EBBTIDE_PROFILE=str(directory / "profile.json"),
            **{DIRECTORY: str(directory)},
            **mirror(directory / "git", tools, manifests, directory / "bin"),
            **access.environment,
        )
        (directory / "bin" / "kubectl").symlink_to(tools.path("kubectl"))
        exports = directory / "env.sh"
        exports.write_text("".join(f"{line}\n" for line in (f"cd '{project}'", *own.exports())), "utf-8")
        yield Stay(files.stack, project, stack_files, own, cloud, exports)


def reclaim(pool: str) -> str:
    """Reclaim a spot node of a rehearsal that stays, from another terminal; return the node's name.

    Args:
        pool: name of the node pool.

    Raises:
        RehearsalError: this is not a terminal of a rehearsal that stays, or the pool has no node to reclaim.
    """
    directory = Path(os.environ.get(DIRECTORY, ""))
    if not os.environ.get(DIRECTORY) or not store_file(directory).exists():
        raise RehearsalError(
            "--reclaim needs a rehearsal that stays: start one with --stay, and source the file that it "
            "names."
        )
    store = Store(store_file(directory))
    names = [item.name for item in all_pools(store) if item.capacity in RECLAIMABLE]
    if pool not in names:
        raise RehearsalError(f"The rehearsal has no spot pool {pool}{did_you_mean(pool, names)}")
    running = [item for item in all_machines(store) if item.pool == pool and item.state == "running"]
    if not running:
        raise RehearsalError(f"Pool {pool} has no node now.")
    oldest = min(running, key=lambda item: (item.created, item.name))
    store.inject(InjectedFault(RECLAIM, oldest.pool_id, 1, {"count": 1}))
    return oldest.name


def copy_project(files: StackFiles, project: Path) -> Path:
    """Copy the stack files of a project, without the engine's lines and secrets, and link everything else;
    return the directory of the copied stack files.
    """
    own = files.config_file.resolve()
    inside = own.parent if own.is_relative_to(files.root.resolve()) else files.root.resolve()

    def copy_directory(source: Path, target: Path) -> None:
        target.mkdir()
        for entry in source.iterdir():
            if inside.is_relative_to(entry):
                copy_directory(entry, target / entry.name)
            elif stack_named_by(entry) is not None:
                _copy_stack_file(entry, target / entry.name)
            elif entry.name != ".git":
                (target / entry.name).symlink_to(entry)

    copy_directory(files.root.resolve(), project)
    copied = project / inside.relative_to(files.root.resolve())
    if not (copied / own.name).exists():
        _copy_stack_file(own, copied / f"Pulumi.{files.stack}.yaml")
    return copied


def _copy_stack_file(source: Path, target: Path) -> None:
    text = _ENGINE_LINE.sub("", source.read_text(encoding="utf-8"))
    target.write_text(_SECRET.sub(f": '{PLACEHOLDER}'", text), encoding="utf-8")
