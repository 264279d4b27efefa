"""Errors of a command as text and as data."""

import json

import jsonschema
import pulumi
import pytest
import typer

from ebbtide.analysis.preview.stack_files import StackFileError
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.cli import entry_point
from ebbtide.cli.error_output import explain
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.project.diagnostics import Report
from ebbtide.values.documents import json_schema

_FAULTS = [
    Fault(
        "pools[1].nodes.max",
        "The maximum 0 is below 1.",
        "The pool would never have a node.",
        "Write 1 or more.",
    ),
    Fault(
        "cloud.location",
        "There is no location us-centrall1-a; did you mean us-central1-a?",
        "",
        "Write a zone or a region of Google Cloud, such as us-central1-a.",
    ),
]

_TEXT = """\
The declaration has 2 errors.

pools[1].nodes.max
  The maximum 0 is below 1. The pool would never have a node.
  Write 1 or more.

cloud.location
  There is no location us-centrall1-a; did you mean us-central1-a?
  Write a zone or a region of Google Cloud, such as us-central1-a."""


def test_every_fault_is_a_block() -> None:
    """Each fault has its path, its message and its suggestion."""
    assert explain(DeclarationError(_FAULTS)).text == _TEXT


def _refuse() -> None:
    raise DeclarationError(_FAULTS)


def test_faults_are_found_behind_the_programs_own_error() -> None:
    """A program that reports a bad declaration in its own way loses none of the faults."""

    def program() -> None:
        try:
            _refuse()
        except DeclarationError as error:
            raise pulumi.RunError(str(error)) from None

    with pytest.raises(ProgramError) as caught:
        record(program, project="shop", stack="dev")
    assert explain(caught.value).text == _TEXT


def test_one_fault() -> None:
    """A single fault of the whole declaration is reported in the singular."""
    fault = Fault("", "It is empty.", "Nothing would be made.", "Declare a pool.")
    assert explain(DeclarationError([fault])).text == (
        "The declaration has 1 error.\n\nThe declaration\n  It is empty. Nothing would be made.\n"
        "  Declare a pool."
    )


@pytest.mark.parametrize(
    ("error", "message", "rule"),
    [
        (StackFileError("There is no stack dve."), "There is no stack dve.", "stack-file"),
        (ProgramError("No pools."), "No pools.", "program"),
        (
            FileNotFoundError(2, "No such file or directory", "x/y.json"),
            "x/y.json: No such file or directory.",
            "command",
        ),
    ],
)
def test_messages_for_users_are_repeated(error: Exception, message: str, rule: str) -> None:
    """An error that was written for users is shown as it is, and its kind is the rule's id."""
    explained = explain(error)
    assert explained.text == message
    assert [(fault.message, fault.rule) for fault in explained.report.errors] == [(message, rule)]
    assert not explained.is_internal


def test_a_bug_of_ours_is_admitted() -> None:
    """Any other exception is reported as Ebbtide's own failure, with the line to report."""
    with pytest.raises(KeyError) as raised:
        dict[str, str]()["x"]
    explained = explain(raised.value)
    assert explained.is_internal
    assert explained.report.errors[0].rule == "internal"
    assert explained.text.startswith("Internal error in Ebbtide: KeyError: 'x' (")
    assert "test_error_output.py, line " in explained.text
    assert explained.text.endswith("The declaration is not the cause; please report this line.")


class _UnspeakableError(Exception):
    """An error whose message and attributes raise."""

    def __str__(self) -> str:
        raise RecursionError

    @property
    def faults(self) -> object:
        """Return the faults of a declaration's error."""
        raise ValueError


def test_the_handler_raises_no_other_error(capsys: pytest.CaptureFixture[str]) -> None:
    """An error that cannot be explained is reported as a bug, with exit status 3."""

    def command() -> None:
        raise _UnspeakableError

    with pytest.raises(typer.Exit) as ended:
        entry_point._reporting(command)()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert ended.value.exit_code == 3
    assert "Internal error in Ebbtide" in capsys.readouterr().err


def test_an_interruption_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    """An error that Python 3.11 raised for a Ctrl-C within a class ends a command as a Ctrl-C."""

    def command() -> None:
        raise RuntimeError from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        entry_point._reporting(command)()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert not capsys.readouterr().err


def test_the_document_matches_its_schema() -> None:
    """The JSON document of errors is valid under the schema that `ebbtide schema errors` prints."""
    report = explain(DeclarationError(_FAULTS)).report
    jsonschema.validate(json.loads(report.json_document()), json_schema(Report))
