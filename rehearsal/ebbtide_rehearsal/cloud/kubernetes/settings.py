"""What a provider is told, and what of it a rehearsal has."""

import os
from collections.abc import Sequence
from typing import Final

from ebbtide.recording.values import UNKNOWN, Plain
from ebbtide_rehearsal.cloud.provider import Failure, Properties

_TAKEN: Final = frozenset(
    {
        "kubeconfig",
        "context",
        "cluster",
        "namespace",
        "clusterIdentifier",
        "deleteUnreachable",
        "enableServerSideApply",
        "enablePatchForce",
        "upsertExistingObjects",
        "enableConfigMapMutable",
        "enableSecretMutable",
        "version",
        "pluginDownloadURL",
        # What only warns, which nobody hears in a rehearsal.
        "suppressDeprecationWarnings",
        "suppressHelmHookWarnings",
    }
)

_VARIABLES: Final = {"deleteUnreachable": "PULUMI_K8S_DELETE_UNREACHABLE"}


def on(variables: Properties, name: str, *, usually: bool = False) -> bool:
    """Whether an option of the provider is on."""
    value = variables.get(name)
    if value is None:
        value = os.environ.get(_VARIABLES.get(name, ""))
    return usually if value in (None, "") else value in (True, "true")


def wrong_with(variables: Properties) -> Sequence[Failure]:
    """Options that a rehearsal has nothing for: better refused than left without effect."""
    return [
        Failure(name, f'The rehearsal\'s Kubernetes provider has no "{name}".')
        for name, value in variables.items()
        if name not in _TAKEN and _says_something(value)
    ] + [
        Failure(name, "The rehearsal's Kubernetes provider always uses server-side apply.")
        for name, value in variables.items()
        if name == "enableServerSideApply" and value in (False, "false")
    ]


def _says_something(value: Plain) -> bool:
    return value is UNKNOWN or value not in (None, "", False, "false", [], {}, "{}", "[]")
