"""What went wrong in a program, in words for whoever wrote it and without a traceback."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from pulumi import InputPropertiesError, InputPropertyError, RunError

from ebbtide.recording.asking import UnansweredInvokeError
from ebbtide.recording.monitor import DuplicateResourceError, UnsupportedCallError

_OURS = Path(__file__).parent


class ProgramError(Exception):
    """The program failed, or could not be run. The message is for its author; the cause is the exception."""


class ProgramEndedError(Exception):
    """The program called `sys.exit` with a status that is not 0."""

    def __init__(self, status: object) -> None:
        super().__init__(f"The program ended itself with status {status}.")


# Their messages are written for whoever runs the program, and say all that there is to say.
_SAID_WELL = (
    DuplicateResourceError,
    ProgramEndedError,
    ProgramError,
    RunError,
    UnansweredInvokeError,
    UnsupportedCallError,
)


def explained(error: Exception, *, clean: Callable[[str], str], home: Path | None) -> ProgramError:
    """A program's failure as a `ProgramError`.

    Args:
        error: what was raised.
        clean: takes the configuration's secrets out of a text.
        home: the program's directory, whose files the place of the failure is looked for in; None for a
            callable.
    """
    return ProgramError(clean(_message(error, home)))


def _message(error: Exception, home: Path | None) -> str:
    if isinstance(error, _SAID_WELL) or hasattr(error, "faults"):  # a declaration's faults say where they are
        return str(error)
    if isinstance(error, InputPropertiesError):
        details = [f"{detail['property_path']}: {detail['reason']}" for detail in error.errors or []]
        return "\n".join([error.message, *details])
    if isinstance(error, InputPropertyError):
        return f"{error.property_path}: {error.reason}"
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    kind = type(error).__name__
    said = f"{kind}: {error}" if str(error) else kind
    return said + _place(error.__traceback__, home)


def _place(traceback: TracebackType | None, home: Path | None) -> str:
    """Where in the program's own files the failure was last seen."""
    place = ""
    if home is None:
        return place
    directory = (home if home.is_dir() else home.parent).resolve()
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(directory) and "site-packages" not in file.parts and file.parent != _OURS:
            place = f" ({file.relative_to(directory)}, line {traceback.tb_lineno})"
        traceback = traceback.tb_next
    return place
