"""What is wrong, in words."""

import pulumi
import pytest

from ebbtide.complaints import complaint, own_fault
from ebbtide.model import DeclarationError, Fault
from ebbtide.preview.stack_files import StackFileError
from ebbtide.recording.failures import ProgramError
from ebbtide.recording.record import record

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
        "Write a zone or a region of Google Cloud, such as us-central1-a. " * 2,
    ),
]

_TEXT = """\
The declaration has 2 faults.

pools[1].nodes.max
  problem      The maximum 0 is below 1.
  consequence  The pool would never have a node.
  fix          Write 1 or more.

cloud.location
  problem      There is no location us-centrall1-a; did you mean us-central1-a?
  fix          Write a zone or a region of Google Cloud, such as us-central1-a. Write a zone or a
               region of Google Cloud, such as us-central1-a."""


def test_faults_are_blocks() -> None:
    """Path, problem, consequence, fix; what a fault does not have is left out."""
    assert complaint(DeclarationError(_FAULTS)) == _TEXT


def _refuse() -> None:
    raise DeclarationError(_FAULTS)


def test_faults_are_found_behind_what_the_program_made_of_them() -> None:
    """A program reports a bad declaration in its own way; the faults themselves are still there."""

    def program() -> None:
        try:
            _refuse()
        except DeclarationError as error:
            raise pulumi.RunError(str(error)) from None

    with pytest.raises(ProgramError) as caught:
        record(program, project="shop", stack="dev")
    assert complaint(caught.value) == _TEXT


def test_one_fault() -> None:
    """Is one."""
    text = complaint(
        DeclarationError([Fault("", "It is empty.", "Nothing would be made.", "Declare a pool.")])
    )
    assert text == (
        "The declaration has a fault.\n\nthe declaration\n  problem      It is empty.\n"
        "  consequence  Nothing would be made.\n  fix          Declare a pool."
    )


def test_errors_that_say_it_well() -> None:
    """Are repeated."""
    assert complaint(StackFileError("There is no stack dve.")) == "There is no stack dve."
    assert complaint(ProgramError("No pools.")) == "No pools."
    assert complaint(FileNotFoundError(2, "No such file or directory", "x/y.json")) == (
        "x/y.json: No such file or directory."
    )


def test_an_error_of_ours_is_owned() -> None:
    """With its place, and whose fault it is."""
    error = KeyError("x")
    assert complaint(error) is None
    try:
        raise error
    except KeyError as raised:
        text = own_fault(raised)
    assert text.startswith("Ebbtide itself failed: KeyError: 'x' (")
    assert "test_complaints.py, line " in text
    assert text.endswith("This is no fault of the declaration; please report it with that line.")
