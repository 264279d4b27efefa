"""Inspection of a stack before it is destroyed: running work, users' objects, volumes, and stored data."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from rich.filesize import decimal

from ebbtide.analysis.policy.protection import DATA
from ebbtide.analysis.recording.recording import Recording
from ebbtide.clients.clouds.interfaces import CloudApiError, Contents, StoredData
from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.operations import access
from ebbtide.operations.access import Clouds
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import State, account_of
from ebbtide.operations.leftovers import users
from ebbtide.operations.leftovers.users import CloudNames, UserObject
from ebbtide.operations.work import Work, list_volumes, take_snapshot, work
from ebbtide.text import and_list, several
from ebbtide.values import durations
from ebbtide.values.cloud_kind import CloudKind

_CLAIM: Final = "kubernetes:core/v1:PersistentVolumeClaim"
_NAMED: Final = 3
_UNKNOWN_WORK = "running work is unknown"
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume.

    Attributes:
        disk: the disk's name, if the driver reports it.
        size: its capacity as a Kubernetes quantity.
        claim: namespace and name of the claim.
        retained: true for reclaim policy Retain.
    """

    name: str
    disk: str
    size: str
    claim: str
    retained: bool

    @property
    def namespace(self) -> str:
        """The claim's namespace."""
        return self.claim.partition("/")[0]


def read_volume(volume: Object) -> Volume:
    """Parse a PersistentVolume."""
    claim = part(volume, "spec", "claimRef")
    return Volume(
        name=volume["metadata"]["name"],
        disk=text(volume, "spec", "csi", "volumeHandle").rpartition("/")[2],
        size=text(volume, "spec", "capacity", "storage"),
        claim=f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        retained=text(volume, "spec", "persistentVolumeReclaimPolicy") == "Retain",
    )


def of_state(deployment: Mapping[str, Any]) -> list[StoredData]:
    """Return the data that a destroy deletes.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
    """
    kept = ("retainOnDelete", "external", "delete")
    return [
        data
        for item in parts(deployment, "resources")
        if not any(item.get(flag) for flag in kept)
        and (data := _data(str(item["type"]), text(item, "id"), item.get("inputs") or {}))
    ]


def of_recording(recording: Recording, urns: Collection[str]) -> list[StoredData]:
    """Return the data of these resources of a deployed stack.

    Args:
        urns: URNs of the deleted resources.
    """
    return [
        data
        for item in recording
        if item.urn in urns
        and not item.retain_on_delete
        and (data := _data(item.type, item.id or "", item.inputs))
    ]


def _data(type_: str, id_: str, inputs: Mapping[str, Any]) -> StoredData | None:
    """Return the data in a resource; None for any other resource, and for a claim of data that is another."""
    if type_ == _CLAIM:
        if text(inputs, "spec", "volumeName"):
            return None
        name = f"{text(inputs, 'metadata', 'name')} in {text(inputs, 'metadata', 'namespace')}"
        size = text(inputs, "spec", "resources", "requests", "storage")
        return StoredData(kind="disk of claim", name=name, size=size)
    if type_ not in DATA:
        return None
    kind, key = DATA[type_]
    account = account_of(text(inputs, "project"), id_)
    if text(inputs, "kind") == "FileStorage":
        kind = "file share"
    gigabytes = part(inputs, "fileShares").get("capacityGb")
    size = f"{gigabytes:g} GiB" if gigabytes else ""
    return StoredData(kind=kind, name=text(inputs, key), id=id_, account=account, size=size)


def stored_lines(stored: Iterable[StoredData], reached: Clouds | None = None) -> Iterator[str]:
    """List data that will be deleted, with what it contains by the cloud's own count; empty for none.

    Args:
        reached: access to the clouds; None to connect with the user's credentials.
    """
    listed = list(stored)
    if not listed:
        return
    if reached is None:
        accounts = dict.fromkeys(data.account for data in listed if data.account)
        try:
            reached = access.reach(accounts)
        except OperationError as error:
            reached = Clouds(reasons=dict.fromkeys(accounts, str(error)))
    yield "Deleted with everything in it:"
    for data in listed:
        size = f", {data.size}" if data.size else ""
        yield f"  {data.kind} {data.name}{size}: {_contents(data, reached)}"


def _contents(data: StoredData, reached: Clouds) -> str:
    if data.account is None:
        return "its contents cannot be read"
    inventory = reached.inventories.get(data.account)
    if inventory is None:
        reason = reached.reasons.get(data.account, f"There is no access to {data.account}.")
        return f"its contents cannot be read. {reason}"
    try:
        contents = inventory.contents(data)
    except CloudApiError as error:
        return f"its contents cannot be read. {error}"
    return _amount(contents) if contents else "its contents cannot be read"


def _amount(contents: Contents) -> str:
    if not contents.size and not contents.objects:
        return "empty"
    at_least = "at least " if contents.is_partial else ""
    count = "" if contents.objects is None else f"{several(contents.objects, 'object')}, "
    return f"{at_least}{count}{decimal(contents.size)}"


def named(stored: Collection[StoredData]) -> str:
    """Name data in a question, such as `bucket a and registry b`; empty for none."""
    names = [f"{data.kind} {data.name}" for data in stored]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return and_list([*names[:_NAMED], *more]) if names else ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of a cluster before a destroy.

    Attributes:
        work: work that would end with the stack.
        error: reason why the cluster is unreachable; empty if it was reached.
        api: client of the cluster; None if it is unreachable.
        objects: users' objects that own cloud resources, in order of deletion.
        names: names of the cluster's cloud resources.
        is_unanswered: True if the API server does not answer.
    """

    work: tuple[Work, ...] = ()
    volumes: tuple[Volume, ...] = ()
    error: str = ""
    api: Api | None = None
    objects: tuple[UserObject, ...] = ()
    names: CloudNames = field(default_factory=CloudNames)
    is_unanswered: bool = False


def inspect(outputs: Mapping[str, Any], state: State) -> Inspection:
    """Inspect a stack's cluster, if it is reachable."""
    try:
        api, profile = access.connected(outputs, _UNKNOWN_WORK)
        with access.reaching(_UNKNOWN_WORK):
            objects = take_snapshot(api)
            owned = users.list_objects(api, CloudKind(profile.cloud), state)
            names = users.cloud_names(api)
    except access.UnansweredError as error:
        return Inspection(error=str(error), is_unanswered=True)
    except OperationError as error:
        return Inspection(error=str(error))
    return Inspection(
        work=tuple(work(objects, profile, state)),
        volumes=tuple(map(read_volume, objects.volumes)),
        api=api,
        objects=tuple(owned),
        names=names,
    )


def remaining_volumes(cluster: Inspection, state: State) -> list[Volume]:
    """Return the volumes whose disks outlive the destroyed stack.

    On an existing cluster, those of deleted namespaces that still exist, or that are retained if it is
    unreachable. Of a deleted cluster, retained volumes and those whose claims the stack did not delete: a
    cloud deletes no disk with a cluster (GKE docs, deleting a cluster, 2026).
    """
    if state.owns_cluster:
        return [item for item in cluster.volumes if item.retained or item.namespace not in state.namespaces]
    existing = None
    with suppress(ApiError):
        existing = {volume.name for volume in volumes_of(cluster.api)} if cluster.api else None
    return [
        volume
        for volume in cluster.volumes
        if volume.namespace in state.namespaces
        and (volume.retained if existing is None else volume.name in existing)
    ]


def volumes_of(api: Api) -> tuple[Volume, ...]:
    """Return the current volumes of a cluster.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    return tuple(map(read_volume, list_volumes(api)))


def running_lines(work: Sequence[Work], now: datetime, heading: str = "Unfinished work") -> Iterator[str]:
    """List the running work, one line each, under a heading; empty if none."""
    if not work:
        return
    pods = sum(workload.pods for workload in work)
    yield f"{heading}: {several(len(work), 'piece')}, {several(pods, 'pod')}."
    for workload in work[:_SHOWN]:
        yield f"  {_work_line(workload, now)}"
    if len(work) > _SHOWN:
        yield f"  … and {len(work) - _SHOWN} more, created later."


def _work_line(work: Work, now: datetime) -> str:
    if work.queue:
        status = f"pending in queue {work.queue}"
    elif work.pools:
        status = f"{several(work.pods, 'pod')} on {', '.join(work.pools)}"
    elif work.pods:
        status = f"{several(work.pods, 'pod')}, on none of its pools"
    else:
        status = "no pod"
    return f"{work.kind} {work.name} in {work.namespace}: {status}, for {durations.rounded(now - work.since)}"


def findings(cluster: Inspection, now: datetime, *, keeps_volumes: bool) -> Iterator[str]:
    """List what ends with a stack: running work, and users' objects that own cloud resources."""
    if cluster.error:
        yield cluster.error
    yield from running_lines(cluster.work, now)
    yield from users_objects(cluster.objects, keeps_volumes=keeps_volumes)


def users_objects(objects: Sequence[UserObject], *, keeps_volumes: bool) -> Iterator[str]:
    """List users' objects that own cloud resources, one line each; empty if there are none."""
    deleted = [item for item in objects if not (keeps_volumes and item.is_volume)]
    kept = [item for item in objects if keeps_volumes and item.is_volume]
    for heading, listed in (
        ("Deleted first, with the load balancers and disks that they own:", deleted),
        ("Kept, with the disks that they own:", kept),
    ):
        if listed:
            yield heading
        for item in listed[:_SHOWN]:
            yield f"  {item}"
        if len(listed) > _SHOWN:
            yield f"  … and {len(listed) - _SHOWN} more."
