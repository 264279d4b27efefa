"""Which cluster a kubeconfig leads to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import yaml

from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, objects_at
from ebbtide_rehearsal.cloud.provider import Change, Properties

DEFAULT_NAMESPACE: Final = "default"

_OF_THE_CLUSTER: Final = ("kubeconfig", "context", "cluster")


class KubeconfigError(ValueError):
    """There is nothing in it that leads to a cluster; the message says what is missing."""


def loaded(text: str) -> dict[str, Any]:
    """A kubeconfig, from its text (JSON or YAML) or from the file that the text names.

    Raises:
        KubeconfigError: it is none.
    """
    try:
        file = Path(text).expanduser()
        source = file.read_text("utf-8") if len(text) < 4096 and file.is_file() else text  # noqa: PLR2004 - no path is longer
        found: Any = yaml.load(source, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise KubeconfigError(f"failed to parse kubeconfig: {error}") from None
    if not isinstance(found, dict):
        raise KubeconfigError("failed to parse kubeconfig: it is no object with clusters, users and contexts")
    return cast("dict[str, Any]", found)


def _named(config: Mapping[str, Any], kind: str, name: Any) -> Object | None:
    found = [item for item in objects_at(config, f"{kind}s") if item.get("name") == name]
    return cast("Object", found[0].get(kind) or {}) if found else None


def active(variables: Properties) -> tuple[Object, str] | None:
    """The cluster that a provider's inputs lead to, as its kubeconfig has it, and the default namespace
    there; None where they lead to none."""
    try:
        config = loaded(str(variables.get("kubeconfig") or ""))
    except KubeconfigError:
        return None
    context = _named(config, "context", variables.get("context") or config.get("current-context"))
    if context is None:
        return None
    cluster = _named(config, "cluster", variables.get("cluster") or context.get("cluster"))
    namespace = str(variables.get("namespace") or context.get("namespace") or DEFAULT_NAMESPACE)
    return (cluster, namespace) if cluster is not None else None


def change(old: Properties, new: Properties) -> Change:
    """What other inputs mean for a provider, and so for all that was made with it: everything is made again
    where they lead to another cluster, or where that cannot be known yet.

    Source: pulumi-kubernetes 4.32, provider/pkg/provider/provider.go, `DiffConfig`.
    """
    changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if not changed:
        return Change()
    identifiers = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if all(identifiers):
        replaces = ["clusterIdentifier"] if identifiers[0] != identifiers[1] else []
        return Change(changed, replaces)
    unknown = [key for key in _OF_THE_CLUSTER if new.get(key) is UNKNOWN]
    if unknown:
        return Change(unknown, unknown)
    before, after = active(old), active(new)
    if before is not None and after is not None and before[0] != after[0]:
        return Change(changed, [key for key in changed if key in _OF_THE_CLUSTER])
    return Change(changed)
