"""References of the fake clouds' resources: the same contract for each row of the table."""

from typing import Any, cast

import pytest

from ebbtide.analysis.providers.property_path import replaced
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.provider import Call, Read, RefusedError
from ebbtide_rehearsal.cloud.references import REFERENCES, is_of, referred
from ebbtide_rehearsal.cloud.store import Resource, Store
from rehearsal.tests.fake_clouds import Asked, existing_cloud, refusals_of, settings_of
from rehearsal.tests.unit.test_gcp_program import DECLARATIONS
from tests.contract.cloud_flips import VAULT
from tests.declarations import Declaration, changed
from tests.running import full
from tests.synth import synth

Fake = FakeProvider[Any, Any]
_AKS = full("aks", logs={}, metrics={})
_KEYS = {data: f"https://ours.vault.azure.net/keys/{data}" for data in ("buckets", "registries")}
_RESERVED = {"name": "held", "machine": "Standard_D8s_v5", "nodes": {"count": 2}}
CASES: dict[str, Declaration] = {
    "gcp": DECLARATIONS["everything"],
    "azure-native": changed(
        _AKS,
        cloud=_AKS["cloud"] | {"keys": _KEYS | {"vault": VAULT}},
        pools=[*_AKS["pools"], _RESERVED | {"capacity": {"kind": "reservation"}}],
    ),
}


@pytest.fixture(params=CASES, ids=str, scope="module")
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Fake, Store]:
    """A cloud with everything that a program makes."""
    written = changed(CASES[request.param], lifetime={"hours": 8})
    store = Store(tmp_path_factory.mktemp("cloud") / "cloud.sqlite")
    provider = cast("Fake", existing_cloud(store, written).configured(settings_of(written)))
    assert refusals_of(cast("Asked", provider), synth(written)) == {}
    return provider, store


def _call(resource: Resource) -> Call:
    return Call(resource.type, "it", resource.urn)


def _changed(resource: Resource, path: str) -> dict[str, Any]:
    """Return a resource's inputs with references to what does not exist."""

    def lost(value: Any) -> Any:
        return f"{value}-gone" if isinstance(value, str) else [f"{item}-gone" for item in value]

    return replaced(resource.inputs, path, lost)


def test_a_referenced_resource_has_to_exist(cloud: tuple[Fake, Store]) -> None:
    """A resource that refers to one that does not exist is refused, and stays as it was."""
    provider, store = cloud
    tried: set[tuple[str, str]] = set()
    for resource in filter(lambda item: item.urn, store.resources(provider.package)):
        for reference, text in referred(resource.type, resource.inputs):
            if not provider.lacks(reference, f"{text}-gone"):
                continue  # in a resource group of others, which has everything
            read = Read(resource.id, resource.inputs, resource.state)
            inputs = _changed(resource, reference.path)
            with pytest.raises(RefusedError, match=r"-gone' .*was not found"):
                provider.update(_call(resource), resource.id, read, inputs)
            assert store.get(provider.package, resource.id) == resource
            tried.add((resource.type, reference.path))
    expected = {
        (token, reference.path)
        for token, references in REFERENCES.items()
        for reference in references
        if token.startswith(provider.package)
    }
    assert tried == expected


def test_a_used_resource_stays(cloud: tuple[Fake, Store]) -> None:
    """A resource that others use cannot be deleted."""
    provider, store = cloud
    used = [
        target
        for resource in store.resources(provider.package)
        for reference, text in referred(resource.type, resource.inputs)
        for target in store.resources(provider.package, reference.target)
        if reference.use == "uses" and is_of(text, target.id)
    ]
    assert used
    for target in used:
        with pytest.raises(RefusedError, match=r"(?:used|in use) by"):
            provider.delete(_call(target), target.id, {})
