"""Errors of a command, with advice to install what it needs: text on standard error, and with `--format json`
also a document for tools."""

import contextlib
import errno
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ebbtide.cli.consoles import console
from ebbtide.errors import EbbtideError
from ebbtide.text import install_command

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.declaration.model.faults import DeclarationError
    from ebbtide.declaration.project.diagnostics import Report, Style
    from ebbtide.declaration.project.source import Source

_NOT_WRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing; `consoles.write` adds the name of a file."""

_WIDEST: Final = 100
"""Maximum number of columns; longer lines are hard to read."""
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "gke": ("pulumi", "pulumi_gcp", "pulumi_kubernetes"),
    "aks": ("pulumi", "pulumi_azure_native", "pulumi_kubernetes"),
    "kfp": ("kfp",),
    "train": ("kubeflow",),
    "gcs": ("gcsfs",),
    "abfs": ("adlfs",),
    "cluster": ("kubernetes", "pathspec"),
    "registry": ("dxf", "requests"),
    "clouds": ("azure.identity", "google.auth", "requests"),
    "rehearse": (
        "ebbtide_rehearsal",
        "aiohttp",
        "certifi",
        "filelock",
        "google.rpc",
        "kubernetes",
        "platformdirs",
        "requests",
        "trustme",
    ),
    "replay": ("kueue_replay", "msgspec"),
}
"""Modules of each extra, as in pyproject.toml; `rehearse` and `replay` have a distribution of their own."""
_NEEDED_BY: Final[Mapping[str, tuple[str, ...]]] = {"replay": ("rehearse",)}
"""Extras that an extra needs."""
OF_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "destroy": ("gke", "cluster", "clouds"),
    "drift": ("gke", "cluster"),
    "doctor": ("gke", "cluster", "clouds"),
    "extend": ("gke", "cluster"),
    "prices refresh": ("gke", "clouds"),
    "quota": ("gke", "clouds"),
    "reap": ("gke", "cluster", "clouds"),
    "rehearse": ("gke", "rehearse"),
    "replay": ("gke", "rehearse", "replay"),
    "trace export": ("cluster",),
    "trace fetch": ("gke", "rehearse", "replay"),
    "sleep": ("gke", "cluster", "clouds"),
    "status": ("gke", "cluster"),
    "wake": ("gke", "cluster", "clouds"),
}
"""Extras of each command; aks is an alternative to gke."""
_CLOUDS: Final = ("gke", "aks")
_LOGIN: Final = " Then log in with `gcloud auth application-default login` or `az login`."


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
        screen = console(sys.stderr)
        width = min(screen.width, _WIDEST) if screen.is_terminal else None
        for style, line in self._lines(width):
            screen.print(line, style=style or None, markup=False, soft_wrap=True)

    def _lines(self, width: int | None) -> "Iterable[tuple[Style, str]]":
        from ebbtide.declaration.project.diagnostics import declaration_lines, wrapped

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
    from ebbtide.declaration.project.diagnostics import (
        FaultReport,
        Report,
        declaration_report,
        declaration_text,
    )
    from ebbtide.declaration.project.source import Position

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
    from ebbtide.analysis.preview.stack_files import broken_extensions  # loads Pulumi

    for path, source, error in broken_extensions(files):
        for item in explain(error, source).report.errors:
            where = f"{item.heading}: " if item.heading else ""
            text = " ".join(filter(None, (item.message, item.suggestion)))
            yield f"{path.name} extends this declaration, and is invalid with it. {where}{text}"


def unexplained(error: BaseException) -> Explained:
    """Return the report of a bug for an error that cannot be explained."""
    from ebbtide.declaration.project.diagnostics import FaultReport, Report

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


def _chain(error: BaseException | None, *, suppressed: bool = True) -> Iterator[BaseException]:
    """Yield an error and its causes and contexts, also those that `from None` suppresses."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        context = error.__context__ if suppressed or not error.__suppress_context__ else None
        error = error.__cause__ or context


def advice(error: BaseException, command: str) -> str | None:
    """Return installation advice for a command's error; None unless a module of an extra is missing.

    Args:
        error: the command's error; the missing module may be among its causes.
        command: name of the command.
    """
    for name in _missing_modules(error):
        owners = [
            extra for extra, modules in MODULES.items() if any(_within(name, module) for module in modules)
        ]
        if owners:
            required = [
                extra for extra in OF_COMMANDS.get(command, ()) if extra in owners or _is_missing(extra)
            ]
            others = filter(_is_missing, _NEEDED_BY.get(owners[0], ()))
            extras = required if owners[0] in required else [*others, owners[0]]
            either = " For a cluster on AKS, write aks instead of gke." if extras[0] == "gke" else ""
            if len(owners) == 1 and owners[0] in _CLOUDS:
                either = ""
            login = _LOGIN if owners == ["clouds"] else ""
            return (
                f"`ebbtide {command}` needs {name.partition('.')[0]}, which is not installed. Install it "
                f"with: {install_command(*extras)}.{either}{login}"
            )
    return None


def require(extra: str) -> None:
    """Check for modules that a command imports only after minutes.

    Raises:
        ModuleNotFoundError: a module of the extra, or of one that it needs, is missing.
    """
    for module in (module for name in (extra, *_NEEDED_BY.get(extra, ())) for module in MODULES[name]):
        if not is_installed(module):
            raise ModuleNotFoundError(name=module)


def _missing_modules(error: BaseException) -> Iterator[str]:
    for item in _chain(error, suppressed=False):
        if isinstance(item, ModuleNotFoundError) and item.name:
            # google.protobuf is a dependency of Pulumi, and missing without it.
            yield "pulumi" if item.name.startswith("google") and not is_installed("pulumi") else item.name


def _within(name: str, module: str) -> bool:
    """Return whether a missing module is a module of an extra, a submodule or a parent package."""
    return f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.")


def _is_missing(extra: str) -> bool:
    """Return whether a module of an extra is missing; for a cloud's extra, also of the other cloud's."""
    return all(
        not all(map(is_installed, MODULES[name])) for name in (_CLOUDS if extra in _CLOUDS else (extra,))
    )


def is_installed(module: str) -> bool:
    """Return whether a module can be imported."""
    with contextlib.suppress(ModuleNotFoundError):  # of a missing parent package
        return find_spec(module) is not None
    return False
