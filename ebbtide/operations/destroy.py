"""Destroy a stack: list running work, destroy through the engine, remove the stack, report leftovers.

Source of the order: docs/decisions/0008.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from ebbtide import clock
from ebbtide.interrupts import deferred_interrupts
from ebbtide.invocation import command_line
from ebbtide.kubernetes_api import ApiError
from ebbtide.operations import draining, inspection, messages
from ebbtide.operations.errors import OperationError
from ebbtide.operations.inspection import Inspection
from ebbtide.operations.locks import unlocking
from ebbtide.operations.progress import narration
from ebbtide.operations.stack import Stack
from ebbtide.operations.state import State
from ebbtide.wording import several


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a destroy.

    Attributes:
        done: true if the whole stack is destroyed.
        interrupted: true if Ctrl-C ended it.
        leftovers: true if resources remain that cost money.
        error: the first error of the engine; empty if there was none.
    """

    done: bool
    interrupted: bool = False
    leftovers: bool = False
    error: str = ""


def destroy(stack: Stack, config_file: str, console: Console, ask: Callable[[str], bool]) -> Outcome | None:
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
        _print(console, f"Stack {stack.name} has nothing to destroy.")
        return Outcome(done=True)
    cluster = inspection.inspect(stack.outputs(), state)
    if cluster.error:
        _print(console, cluster.error)
    for line in messages.running(cluster.work, clock.now()):
        _print(console, line)
    if refusals := stack.refusals():
        raise OperationError(messages.protected(stack.name, config_file, state, refusals))
    if not ask(messages.question(stack.name, state, cluster.work)):
        return None
    try:
        _drain(cluster, state, console)
    except KeyboardInterrupt:
        _print(console, messages.drained(stack.name, draining.queues(state)))
        return Outcome(done=False, interrupted=True)
    outcome = _destroyed(stack, state, console)
    if not outcome.done:
        return outcome
    remains = inspection.remaining_volumes(cluster, state)
    for line in messages.remains(state.buckets, remains, state.registries):
        _print(console, line)
    return Outcome(done=True, leftovers=bool(state.buckets or state.registries or remains))


def _drain(cluster: Inspection, state: State, console: Console) -> None:
    names = draining.queues(state)
    if not names or not cluster.work or cluster.api is None:
        return
    _print(console, "Queues are drained before deletion; pods end within their grace period.")
    try:
        remaining = draining.drain(cluster.api, names)
    except ApiError as error:
        _print(console, f"The queues cannot be drained, and the engine may time out deleting them: {error}")
        return
    if remaining:
        _print(
            console, f"{several(remaining, 'piece')} of work still reserve quota; the engine waits for them."
        )


def _destroyed(stack: Stack, state: State, console: Console) -> Outcome:
    with (
        narration(console, state.resources) as watch,
        deferred_interrupts(
            lambda: _print(console, "The engine finishes its current operations; this takes a while.")
        ) as interrupts,
    ):
        errors = unlocking(lambda: stack.destroy(watch), stack.unlock, lambda line: _print(console, line))
    # An interrupted engine exits with status 0 (pulumi 3.259); only its state reveals the interruption.
    remaining = stack.state().resources
    if not errors and not remaining:
        # Without the flag the command also deletes the stack's file (pulumi 3.259, stack_remove.go).
        remove = f"pulumi stack rm {stack.name} --preserve-config"
        _print(console, f"Stack {stack.name} is destroyed. `{remove}` removes its state and keeps its file.")
        return Outcome(done=True)
    for line in errors:
        _print(console, line)
    so_far = f"{remaining} of {several(state.resources, 'resource')} still exist"
    _print(console, f"{so_far}. Continue with: {command_line('destroy', stack.name)}")
    return Outcome(done=False, interrupted=interrupts.received, error=errors[0] if errors else so_far)


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
