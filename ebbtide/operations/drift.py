"""Drift of a deployed stack: the engine reads its resources, without writing the state."""

from collections.abc import Sequence

from ebbtide.analysis.drift.build_report import baseline_of, drift_of, refreshed
from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.drift.report import Drift
from ebbtide.analysis.preview.stack_files import StackFiles, record_stack
from ebbtide.operations import access, state
from ebbtide.operations.failures import OperationError, explanation
from ebbtide.operations.stack import Stack
from ebbtide.text import command_line


def inspect(stack: Stack, files: StackFiles) -> Drift:
    """Compare a stack's state with what exists, and predict what an update would do to a person's changes.

    Args:
        stack: the stack.
        files: its files.

    Raises:
        OperationError: the state, a cloud or the cluster cannot be read, or the stack has no resources.
        ProgramError: the program fails.
    """
    document = stack.exported()
    if not document["deployment"].get("resources"):
        raise OperationError(f"Stack {stack.name} has no resources: nothing can differ from its state.")
    resources = read(stack)
    external = {item["urn"] for item in document["deployment"]["resources"] if item.get("external")}
    resources = [resource for resource in resources if resource.urn not in external]
    names = {"project": files.project, "stack": files.stack}
    before = baseline_of(document, **names)
    cloud = baseline_of(refreshed(document, resources), **names)
    after = record_stack(files, cloud.updates, deployed=cloud.state)
    return drift_of(resources, after, before, cloud)


def read(stack: Stack, urns: Sequence[str] | None = None) -> list[ReadResource]:
    """Read resources of a stack from their clouds.

    Args:
        stack: the stack.
        urns: their URNs; None for all of its state.

    Raises:
        OperationError: one of them cannot be read.
    """
    resources, errors = stack.read(None if urns is None else list(urns))
    if errors:
        lines = list(explanation(stack.name, errors))
        if state.read(stack.exported()["deployment"]).may_be_stopped:
            lines.append(access.asleep(stack.name))
        raise OperationError("\n".join(lines))
    return resources


def commands(stack: str) -> tuple[str, ...]:
    """Return the command lines that set a person's changes back."""
    return f"pulumi refresh --stack {stack}", command_line("up", stack)
