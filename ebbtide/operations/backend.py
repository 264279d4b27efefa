"""The stacks of a project, in the backend that `pulumi` is logged in to."""

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from ebbtide.operations.failures import explained
from ebbtide.operations.stack import Stack, exported

_DIRECTORY: Final = "file://"


def repaired(url: str) -> bool:
    """Delete the empty attribute files of a backend; return whether there were any.

    A killed engine leaves them: its library writes one beside each file of a directory backend, not
    atomically. With an empty one every command fails with `EOF`; a missing one is harmless (gocloud.dev
    0.46.1, blob/fileblob/attrs.go; run with pulumi 3.259).

    Args:
        url: URL of the backend.
    """
    if not url.startswith(_DIRECTORY):
        return False
    directory = Path(url.removeprefix(_DIRECTORY).partition("?")[0]).expanduser()
    empty = [file for file in directory.glob(".pulumi/**/*.attrs") if file.stat().st_size == 0]
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)


_ENVIRONMENT: Final = {
    # A stack's secrets provider is in its state. Without this setting, a stack without a file gets a new
    # provider with any passphrase that is set, even a wrong one, without an error (run with pulumi 3.259).
    "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
    # With `true`, `pulumi destroy --preview-only` fails (run with pulumi 3.259); updates have `--yes`.
    "PULUMI_SKIP_CONFIRMATIONS": "false",
}


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
            self._workspace = automation.LocalWorkspace(work_dir=str(root), env_vars=_ENVIRONMENT)
            stacks = self._listed()
        self.selected = next((stack.name for stack in stacks if stack.current), None)
        self.stacks = tuple(
            stack.name
            for stack in stacks
            if stack.resource_count != 0
            and (not patterns or any(fnmatchcase(stack.name.rpartition("/")[2], item) for item in patterns))
        )

    def _listed(self) -> list[automation.StackSummary]:
        try:
            return self._workspace.list_stacks()
        except automation.CommandError as error:
            if "EOF" not in str(error) or not repaired(self._workspace.who_am_i().url or ""):
                raise
        return self._workspace.list_stacks()

    def exported(self, name: str) -> dict[str, Any]:
        """Return `Stack.exported` of a stack; needs neither the stack's file nor its passphrase.

        Args:
            name: the stack's name.

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
