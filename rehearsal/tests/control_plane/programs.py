"""Small programs on the real engine, with the real Kubernetes provider."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pulumi import automation

from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.engine import forget_earlier_programs, workspace

Program = Callable[[], None]


class Stack:
    """A stack of programs of the tests' own. Every method raises `automation.CommandError`, with all that the
    engine printed, where the engine fails; the counts are of steps by operation, those without a change left
    out."""

    def __init__(self, stack: automation.Stack) -> None:
        self._stack = stack

    def up(self, program: Program) -> dict[str, int]:
        """`pulumi up` with a program."""
        return _changes(self._stack.up(program=_alone(program)).summary.resource_changes or {})

    def destroy(self) -> list[str]:
        """`pulumi destroy`; names of what was deleted, in order."""
        deleted: list[str] = []

        def see(event: Any) -> None:
            if event.res_outputs_event is not None:
                deleted.append(event.res_outputs_event.metadata.urn.rpartition("::")[2])

        self._stack.destroy(on_event=see)
        return deleted

    def state(self) -> dict[str, dict[str, Any]]:
        """The resources in the engine's state, by type and name."""
        deployment = self._stack.export_stack().deployment or {}
        return {_key(item["urn"]): item for item in deployment.get("resources", [])}


def _alone(program: Program) -> Program:
    """A program in a process that has run others."""

    def run() -> None:
        forget_earlier_programs()
        program()

    return run


def _key(urn: str) -> str:
    types, _, name = urn.split("::", 2)[2].partition("::")
    return f"{types.split('$')[-1]} {name}"


def _changes(summary: Any) -> dict[str, int]:
    named = {str(getattr(operation, "value", operation)): count for operation, count in summary.items()}
    counts = Counter(named)
    return {operation: count for operation, count in counts.items() if operation != "same" and count}


def stack(directory: Path, tools: ControlPlaneTools, environment: Mapping[str, str] | None = None) -> Stack:
    """An empty stack.

    Args:
        directory: where the engine keeps all it has; charts are looked up below its `project`.
        tools: with the engine and the Kubernetes provider.
        environment: for the engine and the provider.
    """
    pulumi, kubernetes = (tools.path(name) for name in ("pulumi", "pulumi-resource-kubernetes"))
    options = workspace(directory, pulumi, kubernetes, "tried", environment or {})
    return Stack(automation.create_stack("test", "tried", _nothing, opts=options))


def _nothing() -> None:
    """No program: each run brings its own."""
