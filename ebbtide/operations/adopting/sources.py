"""Documents about a cluster, recognised by their content."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ebbtide.analysis.device_plugins import daemon_sets_of
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.errors import EbbtideError
from ebbtide.operations.adopting import azure, google, terraform
from ebbtide.operations.adopting.found import AdoptionError, Found, FoundResource, LeftOut, merged
from ebbtide.operations.adopting.kueue_objects import kueue_objects
from ebbtide.text import did_you_mean, or_list
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, parse_json, read_text

KINDS: Final = (
    "`gcloud container clusters describe --format json`",
    "`az aks show --output json`",
    "`terraform state pull`",
    "`pulumi stack export`",
    "`kubectl get --output json` of Kueue's objects or DaemonSets",
)
"""Documents that are read."""

_PROVISIONING: Final = (
    "Ebbtide has declared pools alone. If the stack has the cluster, its first update switches this off: the "
    "pools stay, and GKE creates no others."
)


def read_files(paths: Sequence[Path]) -> Found:
    """Read documents about one cluster.

    Raises:
        AdoptionError: files that cannot be read or are no such documents, all at once.
    """
    documents: list[Found] = []
    faults: list[str] = []
    for path in paths:
        try:
            documents.append(_read(path))
        except EbbtideError as error:
            faults.append(str(error))
    if faults:
        raise AdoptionError("\n".join(faults))
    return merged(documents)


def _read(path: Path) -> Found:
    try:
        text = read_text(path, LARGEST_GENERATED)
    except UserFileError as error:
        raise AdoptionError(f"{path}: {error} Write the path of a file with {or_list(KINDS)}.") from error
    try:
        document: Any = parse_json(text)
    except ValueError as error:
        raise AdoptionError(
            f"{path} is not JSON, or only a part of it: {error}. Write it again with {or_list(KINDS)}."
        ) from None
    file = str(path)
    try:
        found = (
            google.read(document, file)
            or azure.read(document, file)
            or terraform.read(document, file)
            or terraform.read_pulumi(document, text, file)
            or read_objects(document, file)
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise AdoptionError(
            f"{path} has a value of another type than its tool writes. Write it again with {or_list(KINDS)}, "
            "and do not edit it."
        ) from error
    if found is None:
        raise AdoptionError(
            f"{path} is not a document about a cluster that Ebbtide knows. Write one with {or_list(KINDS)}."
        )
    return found


def read_objects(document: object, source: str) -> Found | None:
    """Return the objects in a document of Kubernetes; None if it has none that are read.

    Args:
        document: a List, or one object, as `kubectl get --output json` prints it.
        source: the file or the kubeconfig's context that it is from, for messages.

    Raises:
        AdoptionError: an object of Kueue's cannot be read.
    """
    objects, daemon_sets = kueue_objects(document, source), daemon_sets_of(document)
    return Found(objects=objects, daemon_sets=daemon_sets) if objects or daemon_sets else None


def one_cluster(
    found: Found, name: str | None, *, location: str | None = None, resource_group: str | None = None
) -> Found:
    """Return one of the clusters that were found, with its pools.

    Args:
        found: all of them.
        name: its name; None for the only one.
        location: its zone or region; None for any.
        resource_group: its resource group on Azure; None for any.

    Raises:
        AdoptionError: there is no such cluster, several, or one that cannot be adopted.
    """
    names = [cluster.name for cluster in found.clusters]
    if not names:
        raise AdoptionError(
            "No cluster was found, only pools or objects of one. Add the description of the cluster, which "
            f"{KINDS[0]} or {KINDS[1]} prints."
        )
    if name is not None and name not in names:
        raise AdoptionError(
            f"There is no cluster {name}{did_you_mean(name, names)} Found: {', '.join(names)}."
        )
    chosen = [
        cluster
        for cluster in found.clusters
        if name in (None, cluster.name)
        and location in (None, cluster.inputs.get("location"))
        and (resource_group or "").lower() in ("", str(cluster.inputs.get("resourceGroupName")).lower())
    ]
    if not chosen:
        place = " and ".join(filter(None, (location, resource_group)))
        raise AdoptionError(
            f"There is no cluster{f' {name}' if name else ''} in {place}. Found: {_placed(found.clusters)}."
        )
    if len(chosen) > 1:
        raise AdoptionError(
            f"There are several clusters: {_placed(chosen)}. Name one with --cluster, and --location or "
            "--resource-group."
        )
    (cluster,) = chosen
    if Inputs(cluster.inputs).flag("enableAutopilot"):
        raise AdoptionError(
            f"{cluster.name} is an Autopilot cluster: GKE manages its nodes, so it has no pools to declare. "
            "Create a Standard cluster beside it, and move the work there."
        )
    # Its pools and schedules.
    of_cluster = (item for item in found.resources if item.id.startswith(f"{cluster.id}/"))
    left_out = list(found.left_out)
    known = tuple(f"{item.id}/" for item in found.clusters)
    others = (item for item in found.pools if not item.id.startswith(known))
    left_out += [LeftOut(name=f"pool {item.name}", reason="It is of another cluster.") for item in others]
    if Inputs(cluster.inputs).flag("clusterAutoscaling.enabled"):
        left_out.append(LeftOut(name="node auto-provisioning", reason=_PROVISIONING))
    return replace(found, resources=(cluster, *of_cluster), left_out=tuple(left_out))


def _placed(clusters: Sequence[FoundResource]) -> str:
    return ", ".join(f"{item.name} in {item.inputs.get('location')}" for item in clusters)
