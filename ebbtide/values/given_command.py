"""The command line as typed: what continues it, and what has happened so far.

Every option that was given is repeated, so that a new one cannot be forgotten. Defaults from the environment
and from `ebbtide config` are not: they hold for the next command, too.
"""

import shlex
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ebbtide.text import command_line

_OF_PROJECT: Final = ("config_file", "cwd")
_OF_CLUSTER: Final = ("context",)
_WITH_CONFIGURATION: Final = ("up", "preview", "refresh", "destroy")
NOTHING: Final = "nothing was changed"


@dataclass(slots=True)
class GivenCommand:
    """A command line.

    Attributes:
        name: name of the command, such as `trace export`; empty outside of the command line.
        arguments: the arguments in their order, as typed.
        options: the words of each option that was typed, by its parameter.
        facts: what has happened so far; None until a command reports it, as one that only reads never does.
        is_finished: True if nothing is left to be continued.
    """

    name: str = ""
    arguments: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    facts: list[str] | None = None
    is_finished: bool = False

    def begin(self, *stack: str) -> None:
        """Begin a command that changes something, of a stack if it has one: its name may be a default."""
        self.facts = self.facts or []
        if stack:
            self.arguments = stack
            self.options = {name: words for name, words in self.options.items() if name != "stack_option"}

    def again(self, *add: str) -> str:
        """Return the command line that runs the command again.

        Args:
            *add: words of an option, in place of the same option.
        """
        return self._line(self.name, self.arguments, tuple(self.options), add)

    def on_stack(self, command: str, stack: str, *add: str) -> str:
        """Return the command line of a command for a stack: this one again, or another for the same project.

        Args:
            *add: as for `again`.
        """
        options = tuple(self.options) if command == self.name else _OF_PROJECT
        return self._line(command, (stack,), options, add)

    def on_job(self, command: str, name: str, namespace: str, *options: str) -> str:
        """Return the command line of a command for a Job, in the context that was given."""
        return self._line(command, (name,) if name else (), _OF_CLUSTER, ("-n", namespace, *options))

    def pulumi(self, *words: str) -> str:
        """Return the command line of a `pulumi` command in the project."""
        directory, file = self.options.get("cwd", ()), self.options.get("config_file", ())
        if words[0] not in _WITH_CONFIGURATION:
            file = ()
        elif directory and file:  # Pulumi takes its path from that directory
            file = (file[0], str(Path(file[1]).resolve()))
        return shlex.join(["pulumi", *words, *file, *directory])

    def happens(self, fact: str) -> None:
        """Report what is changed from now on, for the message about an interruption."""
        self.facts = [*dict.fromkeys([*(self.facts or ()), fact])]

    def finished(self, *facts: str, of: tuple[str, ...]) -> None:
        """Report that everything was done, if the command is one of these: another goes on after them."""
        self.is_finished = self.name in of
        self.facts = [*(() if self.is_finished else self.facts or ()), *facts]

    def unconfirmed(self, question: str) -> str:
        """Return the message about a question that cannot be asked without a terminal."""
        so_far = f"and so far {'; '.join(self.facts)}" if self.facts else f"so {NOTHING}"
        again = self.again("--yes")
        return f"{question} There is no terminal to confirm, {so_far}. Continue with: {again}"

    def interrupted(self) -> str:
        """Return the message about an interruption: what has happened, and what continues it."""
        facts = "; ".join(self.facts or [NOTHING])
        return f"Interrupted: {facts}." + ("" if self.is_finished else f" Continue with: {self.again()}")

    def _line(
        self, command: str, arguments: tuple[str, ...], options: tuple[str, ...], add: tuple[str, ...]
    ) -> str:
        replaced = {"namespace"} if add[:1] == ("-n",) else set[str]()
        given = (words for name, words in self.options.items() if name in {*options} - replaced)
        kept = [word for words in given if words[0] not in add[:1] for word in words]
        if not any(word.startswith("-") for word in arguments):
            return command_line(*command.split(), *arguments, *add, *kept)
        first = arguments.index("--") if "--" in arguments else 0
        rest = arguments[first + 1 :] if "--" in arguments else arguments
        return command_line(*command.split(), *arguments[:first], *add, *kept, "--", *rest)


_RUNNING: Final = list[GivenCommand]()
"""Not a context variable: the engine's threads report, too."""


def given_command() -> GivenCommand:
    """Return the command that runs; outside of the command line one without a name."""
    return _RUNNING[-1] if _RUNNING else GivenCommand()


@contextmanager
def running(command: GivenCommand) -> Generator[None]:
    """Make a command the one that runs."""
    _RUNNING.append(command)
    try:
        yield
    finally:
        _RUNNING.remove(command)
