"""Small programs on the real engine, with the Kubernetes provider of the stand-in cloud."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pulumi import automation

from ebbtide_rehearsal.cloud.protocol import serve
from ebbtide_rehearsal.cloud.provider import Provider
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.engine import forget_earlier_programs, workspace

_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the engine's mark of a secret

Program = Callable[[], None]


class Stack:
    """A stack of programs of the tests' own. Every method raises `automation.CommandError`, with all that the
    engine printed, where the engine fails; the counts are of steps by operation, those without a change left
    out."""

    def __init__(self, stack: automation.Stack) -> None:
        self._stack = stack

    def preview(self, program: Program) -> dict[str, int]:
        """`pulumi preview` of a program."""
        found = self._stack.preview(program=_alone(program)).change_summary
        return _changes(found)

    def up(self, program: Program) -> dict[str, int]:
        """`pulumi up` with a program."""
        return _changes(self._stack.up(program=_alone(program)).summary.resource_changes or {})

    def refresh(self) -> dict[str, int]:
        """`pulumi refresh`."""
        return _changes(self._stack.refresh().summary.resource_changes or {})

    def destroy(self) -> list[str]:
        """`pulumi destroy`; names of what was deleted, in order."""
        deleted: list[str] = []

        def see(event: Any) -> None:
            if event.res_outputs_event is not None:
                deleted.append(event.res_outputs_event.metadata.urn.rpartition("::")[2])

        self._stack.destroy(on_event=see)
        return deleted

    def is_secret(self, resource: str, output: str) -> bool:
        """Whether an output of a resource is encrypted in the engine's state."""
        return _SECRET in self.state()[resource]["outputs"][output].values()

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


def _changes(found: Any) -> dict[str, int]:
    named = {str(getattr(operation, "value", operation)): count for operation, count in found.items()}
    counts = Counter(named)
    return {operation: count for operation, count in counts.items() if operation != "same" and count}


@contextmanager
def running(directory: Path, pulumi: Path, store: Store, *providers: Provider) -> Generator[Stack]:
    """A stack whose engine attaches to these providers, served here.

    Args:
        directory: where the engine keeps all it has.
        pulumi: the engine.
        store: of the stand-in cloud.
        providers: one a package.
    """
    served = {provider.package: serve(provider, store) for provider in providers}
    ports = ",".join(f"{name}:{port}" for name, (_, port) in served.items())
    options = workspace(directory, pulumi, "tried", {"PULUMI_DEBUG_PROVIDERS": ports})
    try:
        yield Stack(automation.create_stack("test", "tried", _nothing, opts=options))
    finally:
        for server, _ in served.values():
            server.stop(grace=None).wait()


def _nothing() -> None:
    """No program: each run brings its own."""
