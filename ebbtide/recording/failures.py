"""Messages for a program's failures, with file and line instead of a traceback."""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from pulumi import InputPropertiesError, InputPropertyError, RunError

from ebbtide.recording.asking import UnansweredInvokeError
from ebbtide.recording.monitor import DuplicateResourceError, UnsupportedCallError

_OURS = Path(__file__).parent


class ProgramError(Exception):
    """The program failed, or could not be run. The message is for its author; the cause is the exception.

    Attributes:
        file: the deepest of the program's own files that the exception passed through, relative to the
            program's directory; empty where it passed through none.
        line: the line of that file; 0 where there is none.
    """

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class ProgramEndedError(Exception):
    """The program called `sys.exit` with a status that is not 0."""

    def __init__(self, status: object) -> None:
        super().__init__(f"The program ended itself with status {status}.")


# Their messages are complete sentences for the user who runs the program.
_COMPLETE = (
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
        home: the program's directory or file, absolute, to give file and line in; None for a callable.
    """
    file, line = _place(error, home)
    return ProgramError(clean(_message(error, f" ({file}, line {line})" if file else "")), file, line)


def _message(error: Exception, place: str) -> str:
    if isinstance(error, _COMPLETE) or hasattr(error, "faults"):
        return str(error)
    if isinstance(error, InputPropertiesError):
        details = [f"{detail['property_path']}: {detail['reason']}" for detail in error.errors or []]
        return "\n".join([error.message + place, *details])
    if isinstance(error, InputPropertyError):
        return f"{error.property_path}: {error.reason}{place}"
    if isinstance(error, SyntaxError):
        return f"{error.msg}{place}"
    kind = type(error).__name__
    return (f"{kind}: {error}" if str(error) else kind) + place


def _place(error: Exception, home: Path | None) -> tuple[str, int]:
    """The deepest file and line of the program's own that an exception passed through; empty and 0 for
    none."""
    if home is None:
        return "", 0
    directory = home if home.is_dir() else home.parent
    for file, line in _lines(error):
        path = Path(file).resolve()
        if path.is_relative_to(directory) and "site-packages" not in path.parts and path.parent != _OURS:
            return str(path.relative_to(directory)), line or 0
    return "", 0


def _lines(error: Exception) -> Iterator[tuple[str, int | None]]:
    """The files and lines that an exception passed through, deepest first; of a syntax error, its own
    first."""
    if isinstance(error, SyntaxError) and error.filename:
        yield error.filename, error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        yield frame.filename, frame.lineno
