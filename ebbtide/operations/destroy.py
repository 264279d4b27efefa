"""Destroy a stack: list running work, destroy through the engine, remove the stack, report leftovers.

Source of the order: docs/decisions/0008.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console

from ebbtide.interrupting import patience
from ebbtide.invocation import command_line
from ebbtide.kubernetes_api import ApiError
from ebbtide.operations import finding, holding, words
from ebbtide.operations.errors import OperationError
from ebbtide.operations.finding import Findings
from ebbtide.operations.progress import narration
from ebbtide.operations.stack import Stack
from ebbtide.operations.state import State
from ebbtide.wording import several


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of a destroy.

    Attributes:
        done: true if the whole stack is destroyed.
        interrupted: true if Ctrl-C ended it.
        left: true if leftovers still cost money.
    """

    done: bool
    interrupted: bool = False
    left: bool = False


def destroy(stack: Stack, config_file: str, console: Console, ask: Callable[[str], bool]) -> Ending | None:
    """Destroy a stack.

    Args:
        stack: the stack.
        config_file: the name of the stack's file.
        console: the output.
        ask: asks the user to confirm.

    Returns:
        The result; None if the user declined, and nothing was changed.

    Raises:
        OperationError: the engine refuses, or the stack does not exist; nothing was changed.
    """
    state = stack.state()
    if not state.resources:
        _say(console, f"Stack {stack.name} has nothing to destroy.")
        return Ending(done=True)
    found = finding.find(stack.outputs(), state)
    if found.trouble:
        _say(console, found.trouble)
    for line in words.running(found.work, datetime.now(UTC)):
        _say(console, line)
    if refusals := stack.refusals():
        raise OperationError(words.protected(stack.name, config_file, state, refusals))
    if not ask(words.question(stack.name, state, found.work)):
        return None
    try:
        _hold(found, state, console)
    except KeyboardInterrupt:
        _say(console, words.held(stack.name, holding.queues(state)))
        return Ending(done=False, interrupted=True)
    ending = _gone(stack, state, console)
    if not ending.done:
        return ending
    remains = finding.left(found, state)
    for line in words.remains(state.buckets, remains, state.registries):
        _say(console, line)
    return Ending(done=True, left=bool(state.buckets or state.registries or remains))


def _hold(found: Findings, state: State, console: Console) -> None:
    names = holding.queues(state)
    if not names or not found.work or found.api is None:
        return
    _say(console, "Queues are held until their work has ended; its pods have their grace period.")
    try:
        using = holding.hold(found.api, names)
    except ApiError as error:
        _say(console, f"The queues cannot be held, and the engine may wait for them in vain: {error}")
        return
    if using:
        _say(console, f"{several(using, 'piece')} of work still hold quota: the engine waits for them.")


def _gone(stack: Stack, state: State, console: Console) -> Ending:
    with (
        narration(console, state.resources) as tell,
        patience(
            lambda: _say(console, "The engine ends what it has begun; this takes a while.")
        ) as interrupts,
    ):
        wrong = stack.destroy(tell)
    # An interrupted engine exits with status 0 (pulumi 3.259); only its state reveals the interruption.
    remaining = stack.state().resources
    if not wrong and not remaining:
        # Without the flag the command also deletes the stack's file (pulumi 3.259, stack_remove.go).
        remove = f"pulumi stack rm {stack.name} --preserve-config"
        _say(console, f"Stack {stack.name} is destroyed. `{remove}` removes its state and keeps its file.")
        return Ending(done=True)
    for line in wrong:
        _say(console, line)
    so_far = f"{remaining} of {several(state.resources, 'resource')} are still there"
    _say(console, f"{so_far}, and the engine knows them. Go on with: {command_line('destroy', stack.name)}")
    return Ending(done=False, interrupted=interrupts.seen)


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
