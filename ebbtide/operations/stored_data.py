"""People's data that a destroy or an update deletes: in buckets, file shares, registries and on disks."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from rich.filesize import decimal

from ebbtide.analysis.policy.rules.protection import DATA
from ebbtide.analysis.recording.recording import Recording
from ebbtide.clients.clouds.errors import CloudApiError
from ebbtide.clients.clouds.interfaces import Account, Contents, StoredData
from ebbtide.clients.kubernetes.parts import part, parts, text
from ebbtide.declaration.catalog import CloudKind
from ebbtide.operations import clouds
from ebbtide.operations.clouds import Clouds
from ebbtide.operations.errors import OperationError
from ebbtide.text import and_list, several

_CLAIM: Final = "kubernetes:core/v1:PersistentVolumeClaim"
_NAMED: Final = 3


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
        recording: the stack.
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
    if type_.startswith("gcp:"):
        account = Account(CloudKind.GKE, text(inputs, "project"))
    else:
        account = Account(CloudKind.AKS, id_.removeprefix("/subscriptions/").partition("/")[0])
    if text(inputs, "kind") == "FileStorage":
        kind = "file share"
    gigabytes = part(inputs, "fileShares").get("capacityGb")
    size = f"{gigabytes:g} GiB" if gigabytes else ""
    return StoredData(kind=kind, name=text(inputs, key), id=id_, account=account, size=size)


def lines(stored: Iterable[StoredData], reached: Clouds | None = None) -> Iterator[str]:
    """List data that will be deleted, with what it contains by the cloud's own count; empty for none.

    Args:
        stored: the data.
        reached: access to the clouds; None to connect with the user's credentials.
    """
    listed = list(stored)
    if not listed:
        return
    if reached is None:
        accounts = dict.fromkeys(data.account for data in listed if data.account)
        try:
            reached = clouds.reach(accounts)
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
    return _words(contents) if contents else "its contents cannot be read"


def _words(contents: Contents) -> str:
    if not contents.size and not contents.objects:
        return "empty"
    at_least = "at least " if contents.is_partial else ""
    count = "" if contents.objects is None else f"{several(f'{contents.objects:,}', 'object')}, "
    return f"{at_least}{count}{decimal(contents.size)}"


def named(stored: Collection[StoredData]) -> str:
    """Name data in a question, such as `bucket a and registry b`; empty for none."""
    names = [f"{data.kind} {data.name}" for data in stored]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return and_list([*names[:_NAMED], *more]) if names else ""
