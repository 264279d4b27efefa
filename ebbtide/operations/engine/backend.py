"""The stacks of a project, in the backend that `pulumi` is logged in to."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from ebbtide.operations.engine.failures import OperationError, explained, output_of
from ebbtide.operations.engine.stack import Stack, exported

_DIRECTORY: Final = "file://"
_PARTLY_WRITTEN: Final = re.compile(
    r"\A((failed to load (checkpoint|stack tags)|failed to read stack tags file|reading history file \S+"
    r'|error listing stacks|list (bucket|stacks at "\S*")|could not list bucket|read "\S+"): )*EOF$'
    r"|\.pulumi/locks/.*code=NotFound",
    re.MULTILINE,
)
"""Errors of a command that reads a file while another engine writes or deletes it (pulumi 3.259,
pkg/backend/diy)."""
_INVALID: Final = re.compile(r"^(failed to load checkpoint: )?(place \d+: .*)")
"""Errors of a command that reads a state that is no JSON (pulumi 3.259)."""
_ATTEMPTS: Final = 20
_REPAIR_AT: Final = 10
_PAUSE: Final = 0.1
_ENVIRONMENT: Final = {
    # A stack's secrets provider is in its state. Without this setting, a stack without a file gets a new
    # provider with any passphrase that is set, even a wrong one, without an error (run with pulumi 3.259).
    "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
    # With `true`, `pulumi destroy --preview-only` fails (run with pulumi 3.259); updates have `--yes`.
    "PULUMI_SKIP_CONFIRMATIONS": "false",
}


class _Pulumi(automation.PulumiCommand):
    """The `pulumi` command, repeated if it meets a file of the backend that another engine is writing.

    The library of a directory backend writes a file of attributes beside each file, not atomically: while
    it is empty, every command that reads or lists the file fails with `EOF`, before it has done anything. A
    killed engine leaves it so; without it, nothing is missing (gocloud.dev 0.46.1, blob/fileblob/attrs.go).
    """

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
    ) -> automation.CommandResult:
        """Run a command.

        Raises:
            CommandError: the command fails.
            OperationError: a state is no JSON.
        """

        def url() -> str:
            read = super(_Pulumi, self).run(["whoami", "--json"], cwd, additional_env)
            return str(json.loads(read.stdout).get("url") or "")

        for attempt in range(_ATTEMPTS):
            try:
                return super().run([*args], cwd, additional_env, on_output, on_error)
            except automation.CommandError as error:
                reason = output_of(error)
                if invalid := _INVALID.search(reason):
                    raise OperationError("\n".join(_unreadable(url(), invalid[2]))) from None
                if not _PARTLY_WRITTEN.search(reason) or attempt == _ATTEMPTS - 1:
                    raise
                if attempt == _REPAIR_AT:
                    repaired(url())
            time.sleep(_PAUSE)
        raise AssertionError  # the last attempt returns or raises


def _path(url: str) -> Path | None:
    """Return the directory of a backend; None for a bucket or a service."""
    if not url.startswith(_DIRECTORY):
        return None
    return Path(url.removeprefix(_DIRECTORY).partition("?")[0]).expanduser() / ".pulumi"


def repaired(url: str) -> bool:
    """Delete the empty files of attributes of a backend; return whether there were any."""
    directory = _path(url)
    empty = [file for file in directory.rglob("*.attrs") if not file.stat().st_size] if directory else []
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)


def _unreadable(url: str, reason: str) -> Iterator[str]:
    """Yield a message for each state of a backend that is no JSON."""
    directory = _path(url)
    files = sorted(directory.glob("stacks/**/*.json")) if directory else []
    broken = [(file, problem) for file in files if (problem := _problem(file))]
    for file, problem in broken:
        backup = file.with_name(f"{file.name}.bak")
        fix = (
            f"Its backup from before the last change is {backup}: while no update runs, copy it over that "
            f"file, then compare it with the cloud by `pulumi refresh --stack {file.stem}`."
            if _problem(backup) is None
            else "It has no readable backup beside it; the states after earlier updates are in "
            f"{directory}/history."
        )
        yield f"The state of stack {file.stem}, {file}, is no JSON: {problem}. {fix}"
    if not broken:
        yield (
            f"A state in {url} is unreadable: {reason}. Beside each state in .pulumi/stacks is its backup "
            "from before the last change, with the suffix .bak."
        )


def _problem(file: Path) -> str | None:
    """Return why a file is no JSON; None if it is."""
    try:
        json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        return str(error)
    return None


class Backend:
    """The stacks of a project, through the user's own `pulumi`, backend and login.

    Attributes:
        stacks: names of the stacks that have resources, or may have.
        selected: name of the stack that `pulumi stack select` selected; None for none.
    """

    def __init__(self, root: Path, patterns: Collection[str] = ()) -> None:
        """Open the backend.

        Args:
            root: the project's directory.
            patterns: names of stacks such as `dev` or `pr-*`, to which `stacks` is limited; empty for all.

        Raises:
            OperationError: `pulumi` is missing, too old or not logged in, or the backend is unreachable.
        """
        with explained(""):
            self._workspace = automation.LocalWorkspace(
                work_dir=str(root), env_vars=_ENVIRONMENT, pulumi_command=_Pulumi()
            )
            stacks = self._workspace.list_stacks()
        self.selected = next((stack.name for stack in stacks if stack.current), None)
        self.stacks = tuple(
            stack.name
            for stack in stacks
            if stack.resource_count != 0
            and (not patterns or any(fnmatchcase(stack.name.rpartition("/")[2], item) for item in patterns))
        )

    def exported(self, name: str) -> dict[str, Any]:
        """Return `Stack.exported` of a stack; needs neither the stack's file nor its passphrase.

        Raises:
            OperationError: the state is unreadable.
        """
        return exported(self._workspace, name)

    def exported_by_all(self) -> Iterator[dict[str, Any]]:
        """Yield `Stack.exported` of the stacks of all projects in the backend.

        Raises:
            OperationError: a state is unreadable.
        """
        with explained(""):
            stacks = self._workspace.list_stacks(include_all=True)
        for stack in stacks:
            yield self.exported(stack.name)

    def opened(self, name: str, config_file: Path | None = None) -> Stack:
        """Open a stack.

        Args:
            name: the stack's name, with its organization if the backend has organizations.
            config_file: the stack's file, if it is not beside the project's.

        Raises:
            OperationError: the stack does not exist.
        """
        with explained(name):
            stack = automation.Stack.select(name, self._workspace)
            # Selecting a stack would change the target of the user's next `pulumi up`.
            if self.selected is None:
                command = ["stack", "unselect"]
                self._workspace.pulumi_command.run(command, self._workspace.work_dir, _ENVIRONMENT)
            elif self.selected != name:
                self._workspace.select_stack(self.selected)
        return Stack(name, stack, config_file)
