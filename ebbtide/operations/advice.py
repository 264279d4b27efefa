"""Advice for known causes of a failed update, in addition to the cloud's own message."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ebbtide.invocation import command_line


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
        "The cloud has no such machines there now. Try again later, or declare other zones, another machine "
        "or another capacity.",
    ),
    _Cause(
        r"quota[\s\w']*exceeded|exceed\w* \w*\s?quota|insufficient.*quota|quota limits",
        "A quota is too low. `{quota}` shows which limit to request.",
    ),
    _Cause(
        "could not find default credentials|az login|invalid_grant|unable to authenticate",
        "The cloud does not know you. Log in with `gcloud auth application-default login` or `az login`.",
    ),
    _Cause(
        "Error 403|PERMISSION_DENIED|AuthorizationFailed|does not have authorization|is forbidden",
        "A permission is missing, which the message names. Ask the owner of the project or subscription for "
        "a role with it, and run the same command again.",
    ),
    _Cause(
        r"conflicts? with \"|field manager|Apply failed with \d+ conflict",
        "Another program manages a field of this Kubernetes object. Stop it from doing so, or remove the "
        "field from the declaration.",
    ),
    _Cause(
        "already ?exists|Error 409",
        "It exists in the cloud and not in the stack. Delete it there, declare another name, or adopt it "
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
