"""A recorded program, put to the fake of its cloud without an engine."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import revealed
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.operations.adopting.found import Found
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud import existing
from ebbtide_rehearsal.cloud.fake_provider import LOCKS, FakeProvider
from ebbtide_rehearsal.cloud.ids import AKS_CLUSTER, AZURE, GCP, GKE_CLUSTER, GROUP, OBJECT, PACKAGES
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Clusters,
    Provider,
    RefusedError,
)
from ebbtide_rehearsal.cloud.store import Resource as Stored
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from tests.declarations import Declaration

_PACKAGES = ("gcp:", "azure-native:")
_ABOUT_THE_CALLER = ("azure-native:authorization:getClientConfig",)


def existing_cloud(store: Store, written: Declaration) -> Provider:
    """The fake of the declaration's cloud, with what the declaration needs and does not make."""
    planes = FakeControlPlanes()
    existing.make(written, store, planes)
    return FakeProvider(PACKAGES[CloudKind(written["cloud"]["kind"])], store, planes)


def make_found(found: Found, written: Declaration, store: Store, planes: Clusters) -> None:
    """Create a cluster that documents describe, and the other existing resources of its declaration."""
    if "existing" in written["cloud"]:
        existing.introduce(written, store)
    else:
        existing.make(written, store, planes)
    seed_found(found, store, planes)


def seed_found(found: Found, store: Store, planes: Clusters) -> None:
    """Create a cluster that documents describe, with its pools and schedules."""
    inputs, within = found.clusters[0].inputs, dict[str, Any]()
    provider = FakeProvider(PACKAGES[CloudKind(found.cloud)], store, planes)
    # The documents have all pools; none is GKE's own.
    own: dict[str, Any] = {"removeDefaultNodePool": True}
    if found.cloud is CloudKind.AKS:
        settings = {"subscriptionId": found.account, "location": inputs["location"]}
        provider = provider.configured(settings)
        within = {"resourceGroupName": inputs["resourceGroupName"]}
        provider.seed(GROUP, within)
        inline = (pool for pool in found.pools if pool.inline)
        own = {"agentPoolProfiles": [{"name": pool.name, **_without_ids(pool.inputs)} for pool in inline]}
    for item in found.resources:
        if not item.inline:
            added = own if item.type in (GKE_CLUSTER, AKS_CLUSTER) else {}
            provider.seed(item.type, {**within, **item.inputs, **added})


def _without_ids(inputs: Mapping[str, Any]) -> dict[str, Any]:
    ids = ("agentPoolName", "resourceName", "resourceGroupName")
    return {key: value for key, value in inputs.items() if key not in ids}


def put_object(store: Store, bucket: str, name: str, size: int = 0) -> None:
    """Put an object of `size` bytes into a bucket, as a pipeline does."""
    state = {"bucket": bucket, "name": name, "size": str(size)}
    store.put(Stored(GCP, f"b/{bucket}/o/{name}", OBJECT, state=state))


def lock(store: Store, scope: str) -> None:
    """Put a lock with the level `CanNotDelete` on a scope of Azure, as an administrator would."""
    identity = f"{scope}/providers/{LOCKS}/do-not-delete"
    store.put(Stored(AZURE, identity, LOCKS, state={"level": "CanNotDelete", "scope": scope}))


def settings_of(written: Declaration) -> dict[str, Any]:
    """The settings of the declaration's provider."""
    cloud = written["cloud"]
    if cloud["kind"] == "gke":
        return {"project": cloud["project"], "region": region_of(cloud["location"])}
    return {"subscriptionId": cloud["subscription"], "location": cloud["location"]}


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", revealed(dict(properties)))


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a value, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _texts(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from _texts(inner, f"{path}.{index}")


def _as_answered(value: Any, answers: Mapping[str, str]) -> Any:
    """A value with what the cloud answered in place of what the recording assumed."""
    match value:
        case str():
            return answers.get(value, value)
        case Mapping():
            items = cast("Mapping[str, Any]", value).items()
            return {answers.get(key, key): _as_answered(inner, answers) for key, inner in items}
        case list():
            return [_as_answered(inner, answers) for inner in cast("list[Any]", value)]
        case _:
            return value


def refusals(recording: Recording, written: Declaration) -> dict[str, str]:
    """Return the fake cloud's refusals of a declaration's recorded program, by resource. Resources that
    depend on a refused one are skipped."""
    with TemporaryDirectory() as directory:
        provider = existing_cloud(Store(Path(directory) / "cloud.sqlite"), written)
        return refusals_of(provider.configured(settings_of(written)), recording)


def refusals_of(provider: Provider, recording: Recording) -> dict[str, str]:
    """Return a provider's refusals of a recorded program, as `refusals` does."""
    refused: dict[str, str] = {}
    skipped: set[str] = set()
    answers: dict[str, str] = {}
    for invocation in recording.invocations:
        if invocation.token in _ABOUT_THE_CALLER:
            answer = provider.invoke(invocation.token, _plain(invocation.args))
            _learn(answers, _plain(invocation.answer), answer)
    for resource in recording:
        if not resource.custom or not resource.type.startswith(_PACKAGES):
            continue
        if skipped & set(resource.dependencies):
            skipped.add(resource.urn)
            continue
        reason = _refusal(provider, resource, answers)
        if reason is not None:
            refused[f"{resource.type} {resource.name}"] = reason
            skipped.add(resource.urn)
    return refused


def _refusal(provider: Provider, resource: Resource, answers: dict[str, str]) -> str | None:
    call = Call(resource.type, resource.name, resource.urn)
    wanted = _as_answered(_plain(resource.inputs), answers)
    inputs, failures = provider.check(call, {}, wanted)
    if failures:
        return "; ".join(f"{failure.property}: {failure.reason}" for failure in failures)
    try:
        made = provider.create(call, inputs)
    except RefusedError as error:
        return str(error)
    given = {text for _, text in _texts(wanted)}
    assumed = {"id": resource.id, **_plain(resource.outputs)}
    _learn(answers, assumed, {"id": made.id, **made.state}, given)
    return None


def _learn(answers: dict[str, str], assumed: Any, answered: Any, given: Collection[str] = ()) -> None:
    """Remember what the cloud answered where the recording assumed something else, and the program gave
    nothing."""
    before = dict(_texts(assumed))
    for path, text in _texts(answered):
        if before.get(path, text) not in (text, *given):
            answers.setdefault(before[path], text)
