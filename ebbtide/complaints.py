"""What is wrong, said to whoever called: one block for each fault of a declaration, a sentence for
anything else.
"""

import traceback
from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ebbtide.model import Fault

_WIDTH: Final = 100


def complaint(error: BaseException) -> str | None:
    """An error in words.

    Args:
        error: what a command ended with.

    Returns:
        Text for standard error; None for an error that is a fault of ours (see `own_fault`).
    """
    # Imported here because the first loads pydantic and the second Pulumi; whoever raised them has.
    for raised in _chain(error):
        faults: Iterable[Fault] | None = getattr(raised, "faults", None)
        if faults is not None:
            return _faults(list(faults))
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if kinds & _SAID_WELL:
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'}: {error.strerror}."
    return None


def own_fault(error: BaseException) -> str:
    """An error that nobody who calls can do anything about, with the place to report."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return (
        f"Ebbtide itself failed: {type(error).__name__}: {error}{place}. This is no fault of the "
        "declaration; please report it with that line."
    )


# By name, so that reporting one kind of error does not import what raises the others.
_SAID_WELL: Final = {
    "ebbtide.kubernetes_api.errors.ApiError",
    "ebbtide.kubernetes_api.errors.KubeconfigError",
    "ebbtide.kubernetes_api.errors.MissingClientError",
    "ebbtide.operations.errors.OperationError",
    "ebbtide.placement.errors.ProfileError",
    "ebbtide.recording.failures.ProgramError",
    "ebbtide.preview.stack_config.StackFileError",
    "ebbtide.workloads.errors.WorkloadError",
    "ebbtide.rehearsal.failures.RehearsalError",
    "ebbtide.rehearsal.cloud.kubernetes.discovery.UnknownKindError",
    "ebbtide.rehearsal.tools.errors.ToolError",
    "ebbtide.rehearsal.control_plane.failures.ControlPlaneError",
}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came from, however it was raised."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _faults(faults: "list[Fault]") -> str:
    number = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
    return "\n\n".join([f"The declaration has {number}.", *map(_fault, faults)])


def _fault(fault: "Fault") -> str:
    lines = [fault.path or "the declaration"]
    for label, text in (("problem", fault.problem), ("consequence", fault.consequence), ("fix", fault.fix)):
        if text:
            lines.append(
                fill(
                    text,
                    _WIDTH,
                    initial_indent=f"  {label:<13}",
                    subsequent_indent=" " * 15,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
    return "\n".join(lines)
