"""Failures of the `pulumi` command, as messages for users."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from pulumi.automation import errors

from ebbtide.operations.errors import OperationError
from ebbtide.operations.locks import LockedError, locks_of
from ebbtide.text import and_list

_KNOWN: Final[Mapping[str, str]] = {
    "incorrect passphrase": (
        "PULUMI_CONFIG_PASSPHRASE is not the passphrase of stack {stack}: nothing was changed."
    ),
    "passphrase must be set": (
        "Stack {stack} is encrypted with a passphrase, and none is set: write it to "
        "PULUMI_CONFIG_PASSPHRASE, or name its file in PULUMI_CONFIG_PASSPHRASE_FILE."
    ),
    "PULUMI_ACCESS_TOKEN must be set": (
        "`pulumi` is not logged in to a backend: run `pulumi login`, or set PULUMI_BACKEND_URL."
    ),
}
"""Messages of pulumi 3.259 (pkg/secrets/passphrase, pkg/backend/httpstate), and the replacements."""


@contextmanager
def explained(stack: str, diagnostics: list[str] | None = None) -> Generator[None]:
    """Turn a failed command into an error.

    Args:
        stack: the stack's name.
        diagnostics: the engine's errors so far; if there are none, the command's output is added to it.

    Raises:
        OperationError: the command failed before the engine started, or there are no diagnostics.
    """
    try:
        yield
    except FileNotFoundError:
        raise OperationError(
            "`pulumi` is not installed: install it (https://www.pulumi.com/docs/install), or put it on PATH."
        ) from None
    except errors.InvalidVersionError as error:
        raise OperationError(str(error)) from None
    except errors.StackNotFoundError:
        raise OperationError(
            f"There is no stack {stack} in the backend that `pulumi` is logged in to: `pulumi stack ls "
            f"--all` lists the existing ones, and `pulumi stack init {stack}` creates it."
        ) from None
    except errors.ConcurrentUpdateError as error:
        locks = locks_of(str(error))
        by = f", by {and_list(map(str, locks))}" if locks else ""
        raise LockedError(
            locks,
            f"Another update of stack {stack} is in progress{by}. Wait for its end; if it no longer runs, "
            f"unlock the stack with `pulumi cancel --stack {stack}`.",
        ) from None
    except errors.CommandError as error:
        output = output_of(error)
        for message, sentence in _KNOWN.items():
            if message in output:
                raise OperationError(sentence.format(stack=stack)) from None
        if diagnostics is None:
            raise OperationError(f"`pulumi` failed: {output}") from None
        if not diagnostics:
            diagnostics.append(output)


def output_of(error: errors.CommandError) -> str:
    """Return the standard error of `pulumi`, or else its standard output."""
    code, _, rest = str(error).partition("\n stdout: ")
    stdout, _, stderr = rest.partition("\n stderr: ")
    return (stderr.strip() or stdout.strip() or code.strip()).removeprefix("error: ")
