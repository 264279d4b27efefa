"""Errors of a command: text on standard error, and with `--format json` also a document for tools."""

import errno
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.declaration.model import DeclarationError
    from ebbtide.declaration.project.diagnostics import Report, Style
    from ebbtide.declaration.project.source import Source

_NOT_WRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing; `consoles.write` adds the name of a file."""

_WIDEST: Final = 100
"""Maximum number of columns; longer lines are hard to read."""


@dataclass(frozen=True, slots=True)
class Explained:
    """An error for the user.

    Attributes:
        report: the error as data.
        text: the error as plain, unwrapped text.
        refusal: the declaration's validation error, if it ended the command.
        is_internal: True for a bug in Ebbtide.
    """

    report: "Report"
    text: str
    refusal: "DeclarationError | None" = None
    is_internal: bool = False

    def show(self) -> None:
        """Write the text to standard error: wrapped and coloured on a terminal, plain otherwise."""
        from ebbtide.cli.consoles import console  # noqa: PLC0415

        screen = console(sys.stderr)
        width = min(screen.width, _WIDEST) if screen.is_terminal else None
        for style, line in self._lines(width):
            screen.print(line, style=style or None, markup=False, soft_wrap=True)

    def _lines(self, width: int | None) -> "Iterable[tuple[Style, str]]":
        from ebbtide.declaration.project.diagnostics import declaration_lines, wrapped  # noqa: PLC0415

        if self.refusal is not None:
            return declaration_lines(self.refusal, self.report, width)
        return (("", wrapped(line, width) if line.strip() else "") for line in self.text.splitlines())


def explain(error: BaseException, source: "Source | None" = None, advice: str | None = None) -> Explained:
    """Explain an error to the user.

    Args:
        error: the error that ended a command.
        source: the file of the command's cluster declaration.
        advice: message that replaces the error's own, such as an installation command.
    """
    from ebbtide.declaration.project.diagnostics import (  # noqa: PLC0415
        FaultReport,
        Report,
        declaration_report,
        declaration_text,
    )
    from ebbtide.declaration.project.source import Position  # noqa: PLC0415

    chain = list(_chain(error))
    program = _of_rule(chain, "program")
    file, line = getattr(program, "file", "") or None, getattr(program, "line", 0) or None
    refusal: DeclarationError | None = next((cause for cause in chain if hasattr(cause, "faults")), None)  # pyright: ignore[reportAssignmentType]
    if refusal is not None:
        source = getattr(refusal, "source", source)
        position = Position(file, line) if file and line else None
        report = declaration_report(refusal, source, position)
        return Explained(report, declaration_text(refusal, source), refusal)
    broken = _of_rule(chain, "yaml-syntax")
    text = advice or message_of(error)
    if text is None:
        return unexplained(error)
    if broken is not None:
        fault = FaultReport(
            file=str(getattr(broken, "file", "")),
            line=getattr(broken, "line", 0) or None,
            column=getattr(broken, "column", 0) or None,
            message=getattr(broken, "problem", ""),
            suggestion=getattr(broken, "fix", "") or None,
            rule=broken.rule,
        )
    elif program is not None:
        fault = FaultReport(file=file, line=line, message=text, rule=program.rule)
    else:
        rule = error.rule if isinstance(error, EbbtideError) else "command"
        fault = FaultReport(message=text, rule=rule)
    return Explained(Report(errors=(fault,)), text)


def extension_errors(files: "StackFiles") -> Iterator[str]:
    """Yield the errors of the other stacks that extend a stack's file, as sentences."""
    from ebbtide.analysis.preview.stack_files import broken_extensions  # noqa: PLC0415 - loads Pulumi

    for path, source, error in broken_extensions(files):
        for item in explain(error, source).report.errors:
            where = f"{item.heading}: " if item.heading else ""
            text = " ".join(filter(None, (item.message, item.suggestion)))
            yield f"{path.name} extends this declaration, and is invalid with it. {where}{text}"


def unexplained(error: BaseException) -> Explained:
    """Return the report of a bug for an error that cannot be explained."""
    from ebbtide.declaration.project.diagnostics import FaultReport, Report  # noqa: PLC0415

    text = bug_report(error)
    return Explained(Report(errors=(FaultReport(message=text, rule="internal"),)), text, is_internal=True)


def message_of(error: BaseException) -> str | None:
    """Return an error's message if it is written for users; None for other errors, which are bugs."""
    if isinstance(error, EbbtideError):
        return str(error)
    if isinstance(error, OSError):
        stream = "Standard output" if error.errno in _NOT_WRITTEN else "A file"
        return f"{error.filename or stream}: {error.strerror}."
    return None


def bug_report(error: BaseException) -> str:
    """Return the message for a bug in Ebbtide, with the position to report."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    position = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = "".join(traceback.format_exception_only(error)).strip()
    return (
        f"Internal error in Ebbtide: {text}{position}. The declaration is not the cause; please report this "
        "line."
    )


def _of_rule(chain: Iterable[BaseException], rule: str) -> EbbtideError | None:
    """Return the first error of a kind; its attributes are read by name, so its module is not imported."""
    return next((error for error in chain if isinstance(error, EbbtideError) and error.rule == rule), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes and contexts."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
