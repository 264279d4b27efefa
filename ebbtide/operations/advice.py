"""Advice on a failed engine run: causes in brief, help against known ones, and a file with all errors."""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ebbtide.text import command_line

_LINES: Final = 6
"""Lines of an error that are shown."""

_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\)|^  File \"", re.MULTILINE)
_RPC_DETAILS: Final = re.compile(r"^\s*details = \"(.*)\"$", re.MULTILINE)
_EXCEPTION: Final = re.compile(
    r"^[\w.]+(?:: .*)?(?:\n(?!Traceback|  File |During |The above )\S.*)*", re.MULTILINE
)
"""The last lines of a traceback: an exception's type and message."""

_NOISE: Final = re.compile(
    r"sdk\.helper_schema:|^update failed$|resource monitor (?:has terminated|shut down)", re.IGNORECASE
)
"""Second reports of a failure: by the bridge of Terraform providers, which logs it too, and by the engine
when it stops (pulumi-terraform-bridge, pkg/tfshim/sdk-v2; pulumi 3.259, pkg/resource/deploy)."""

_HEADING: Final = re.compile(r"\d+ errors? occurred:\s*\*\s*")

_LOGINS: Final = {
    "executable gke-gcloud-auth-plugin failed": "gcloud auth login",
    "executable kubelogin failed|az login|require the (?:az|azure) cli for authentication": "az login",
    "could not find default credentials|invalid_grant|invalid_rapt": "gcloud auth application-default login",
}
"""Commands that log in, by the message without a login: of the credential plugins of kubeconfigs (client-go),
of Azure's provider (pulumi-azure-native#3349), and of Google's (golang.org/x/oauth2/google)."""


class _Cause(NamedTuple):
    pattern: str
    advice: str


_CAUSES: Final = (
    _Cause(
        r"Power State\(Stopped\)|Kubernetes cluster is unreachable",
        "The cluster is stopped or does not answer. If it sleeps, wake it first with: {wake}",
    ),
    _Cause(
        "SERVICE_DISABLED|has not been used in project|MissingSubscriptionRegistration|not registered to use",
        "An API is not enabled. Enable it (`gcloud services enable NAME`, or `az provider register "
        "--namespace NAME`), wait a few minutes, and run the same command again.",
    ),
    _Cause(
        "ZONE_RESOURCE_POOL_EXHAUSTED|GCE_STOCKOUT|does not have enough resources|SkuNotAvailable|"
        "AllocationFailed|OverconstrainedAllocation",
        "The cloud is out of stock of these machines there. Try again later, or declare other zones, "
        "another machine or another capacity.",
    ),
    _Cause(
        r"quota[\s\w']*exceeded|exceed\w* \w*\s?quota|insufficient.*quota|quota limits",
        "A quota is too low. `{quota}` shows which limit to request.",
    ),
    _Cause(
        "Error 403|PERMISSION_DENIED|AuthorizationFailed|does not have authorization|is forbidden",
        "A permission is missing, which the message names. Ask the owner of the project or subscription for "
        "a role with it, and run the same command again.",
    ),
    _Cause(
        r"conflicts? with \"|field manager|Apply failed with \d+ conflict",
        "Another field manager owns a field of this Kubernetes object. Remove the field there, or from the "
        "declaration.",
    ),
    _Cause(
        'namespaces "[^"]*" already exists',
        "The namespace exists, and not from this stack. Write `namespace: {{name: NAME, create: false}}` in "
        "the team to use it as it is, or choose another name.",
    ),
    _Cause(
        "already ?exists|Error 409",
        "It exists in the cloud but not in the stack. Delete it there, declare another name, or adopt it "
        "with `pulumi import`.",
    ),
)
"""Patterns of error messages with advice, the most specific first. Sources: the errors that the rehearsal's
fake clouds return, with their origins there."""


def advice(stack: str, errors: Iterable[str]) -> Iterator[str]:
    """Return advice for the errors of a failed update, without duplicates.

    Args:
        stack: the stack's name.
        errors: the engine's errors.
    """
    causes = (
        next((cause for cause in _CAUSES if re.search(cause.pattern, error, re.IGNORECASE)), None)
        for error in errors
    )
    quota, wake = (command_line(command, stack) for command in ("quota", "wake"))
    for cause in dict.fromkeys(causes):
        if cause is not None:
            yield cause.advice.format(quota=quota, wake=wake)


def missing_login(errors: Iterable[str]) -> str:
    """Return the command that logs in, if an error is due to a missing or expired login; empty otherwise."""
    text = "\n".join(errors)
    logins = (login for pattern, login in _LOGINS.items() if re.search(pattern, text, re.IGNORECASE))
    return next(logins, "")


def causes(errors: Sequence[str]) -> list[str]:
    """Return the causes among the errors of an engine run, in brief.

    A failed resource also ends the program, whose traceback then has nothing to add; otherwise the last line
    of the traceback is the cause.

    Args:
        errors: the engine's errors, each beginning with the name of its resource.
    """
    reports = [error for error in errors if not _TRACEBACK.search(error)]
    own = [error for error in reports if not _NOISE.search(error)]
    return list(dict.fromkeys(_brief(error) for error in own or reports or map(_raised, errors)))


def _brief(error: str) -> str:
    lines = [line for line in _HEADING.sub("", error).splitlines() if line.strip()]
    return "\n".join([*lines[:_LINES], *(["…"] if len(lines) > _LINES else [])])


def _raised(error: str) -> str:
    """Return the exception of a program's traceback."""
    if details := _RPC_DETAILS.findall(error):
        return details[-1]
    found = [match[0] for match in _EXCEPTION.finditer(error)]
    return f"The program failed: {found[-1]}" if found else error


def kept(stack: str, errors: Iterable[str]) -> str:
    """Write all errors to a new file that only its owner can read; return its path."""
    descriptor, name = tempfile.mkstemp(prefix=f"ebbtide-{stack.rpartition('/')[2]}-", suffix=".log")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{error}\n\n" for error in errors)
    return name


def explanation(stack: str, errors: Sequence[str], *, verbose: bool = False) -> Iterator[str]:
    """Yield the lines about a failed engine run: causes, advice, and where all errors are.

    Args:
        stack: the stack's name.
        errors: the engine's errors.
        verbose: True for all errors as the engine reports them.
    """
    login, brief = missing_login(errors), causes(errors)
    if verbose:
        yield from errors
    elif login:
        yield f"The engine found no valid login: log in with `{login}`."
    else:
        yield from brief
    if not login:
        yield from advice(stack, errors)
    if not verbose and (login or brief != list(errors)):
        yield f"All errors of the engine: {kept(stack, errors)}"
