"""Run a program's `__main__.py` in this process, isolated as the `pulumi` command's process would be, and
explain its failures with file and line instead of a traceback.
"""

import contextlib
import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from types import ModuleType

from pulumi import InputPropertiesError, InputPropertyError, RunError

from ebbtide.analysis.recording.assumption_tables import UnansweredInvokeError
from ebbtide.analysis.recording.monitor import DuplicateResourceError, UnsupportedCallError
from ebbtide.errors import EbbtideError

# The running package: a second copy would define different classes.
_OWN = __name__.partition(".")[0]


def main_file(program: Path) -> Path:
    """Return the file to run: `__main__.py` of a directory, or the file itself.

    Raises:
        ProgramError: there is no such file.
    """
    path = program / "__main__.py" if program.is_dir() else program
    if not path.is_file():
        raise ProgramError(
            f"There is no program at {path}, which Pulumi would run. `ebbtide init` writes one."
        )
    return path


def run(main: Path) -> None:
    """Run a program's main file; pending tasks stay on the event loop."""
    runpy.run_path(str(main), run_name="__main__")


@contextlib.contextmanager
def entered(directory: Path) -> Generator[None]:
    """Enter a program's directory: make it the working directory and the first entry of the import path.

    Modules imported from the directory are removed at the end, so that the next run, or another program with
    modules of the same names, imports its own. All other imports are kept, which makes the second run fast.
    During the run, modules of the same names from elsewhere are hidden.
    """
    directory = directory.resolve()
    importable = _importable(directory)
    before = set(sys.modules)
    hidden = {
        name: module
        for name, module in sys.modules.items()
        if _head(name) in importable and not _is_from(module, directory)
    }
    for name in hidden:
        del sys.modules[name]
    path, working_directory = list(sys.path), Path.cwd()
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(working_directory)
        sys.path[:] = path
        heads = {_head(name) for name in before} - {_head(name) for name in hidden}
        for name, module in list(sys.modules.items()):
            if name not in before and _head(name) not in heads and _is_from(module, directory):
                del sys.modules[name]
        sys.modules.update(hidden)


def _head(name: str) -> str:
    return name.partition(".")[0]


def _importable(directory: Path) -> set[str]:
    """List the program's top-level modules and packages in a directory, without Ebbtide's and the standard
    library's.
    """
    modules = {entry.stem for entry in directory.glob("*.py")}
    packages = {entry.parent.name for entry in directory.glob("*/__init__.py")}
    return (modules | packages) - {_OWN, "__main__"} - sys.stdlib_module_names


def _is_from(module: ModuleType, directory: Path) -> bool:
    """Check that a module is in the directory itself, not in a virtual environment inside it."""
    if _head(module.__name__) == _OWN:
        return False
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if not isinstance(file, str):
        return False
    path = Path(file)
    return path.is_relative_to(directory) and "site-packages" not in path.parts


_OURS = Path(__file__).parent


class ProgramError(EbbtideError):
    """The program failed, or could not be run. The exception is the cause.

    Attributes:
        file: the deepest file of the program that the exception passed through, relative to the program's
            directory; empty if none.
        line: the line in that file; 0 if none.
    """

    rule = "program"

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class ProgramEndedError(Exception):
    """The program called `sys.exit` with a nonzero status."""

    def __init__(self, status: object) -> None:
        super().__init__(f"The program exited with status {status}.")


# Exceptions whose messages are complete sentences for users.
_COMPLETE = (
    ProgramEndedError,
    ProgramError,
    RunError,
    UnansweredInvokeError,
    UnsupportedCallError,
)


def explained(error: Exception, *, clean: Callable[[str], str], program: Path | None) -> ProgramError:
    """Convert a program's failure to a `ProgramError`.

    Args:
        clean: removes the configuration's secrets from a text.
        program: the program's directory or file, absolute, for file and line; None for a callable.
    """
    if isinstance(error, DuplicateResourceError):
        message, file, line = _duplicate(error, program)
        return ProgramError(clean(message), file, line)
    file, line = _position(_lines(error), program)
    return ProgramError(clean(_message(error, f" ({file}, line {line})" if file else "")), file, line)


def _message(error: Exception, position: str) -> str:
    if isinstance(error, _COMPLETE) or hasattr(error, "faults"):
        return str(error)
    if isinstance(error, InputPropertiesError):
        details = [f"{detail['property_path']}: {detail['reason']}" for detail in error.errors or []]
        return "\n".join([error.message + position, *details])
    if isinstance(error, InputPropertyError):
        return f"{error.property_path}: {error.reason}{position}"
    if isinstance(error, SyntaxError):
        return f"{error.msg}{position}"
    kind = type(error).__name__
    return (f"{kind}: {error}" if str(error) else kind) + position


def _duplicate(error: DuplicateResourceError, program: Path | None) -> tuple[str, str, int]:
    """Return the message with the places in the program where the two resources' stack traces part, and the
    second place."""
    one, other = ([_position([frame], program) for frame in reversed(frames)] for frames in error.frames)
    pairs = [pair for pair in zip(one, other, strict=False) if pair[0][0] and pair[1][0]]
    parted = next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1] if pairs else ())
    first, second = parted or [("", 0)] * 2
    places = f": one in {first[0]}, line {first[1]}, the other in {second[0]}, line {second[1]}"
    if first == second:
        places = f": both in {first[0]}, line {first[1]}, which runs twice" if first[0] else ""
    message = (
        f"Two resources have the URN {error.urn}{places}. Pulumi would reject the second, since a URN "
        "consists of the parents' types, the type and the name. Rename one of them."
    )
    return message, *second


def _position(lines: Iterable[tuple[str, int | None]], program: Path | None) -> tuple[str, int]:
    """Return the first of some files and lines that is of the program; empty and 0 if none."""
    if program is None:
        return "", 0
    directory = program if program.is_dir() else program.parent
    for file, line in lines:
        path = Path(file).resolve()  # of `<string>`, the constructor of a data class, there is no file
        is_theirs = path.is_relative_to(directory) and "site-packages" not in path.parts
        if is_theirs and path.is_file() and path.parent != _OURS:
            return str(path.relative_to(directory)), line or 0
    return "", 0


def _lines(error: Exception) -> Iterator[tuple[str, int | None]]:
    """Yield the files and lines that an exception passed through, deepest first; a syntax error's own file
    comes first.
    """
    if isinstance(error, SyntaxError) and error.filename:
        yield error.filename, error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        yield frame.filename, frame.lineno
