"""Both fake providers through the same calls: what they do alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbtide.declaration.providers import schema as provider_schema
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.fake_provider import as_read
from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.provider import Call, DiffResult, Read, RefusedError
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.provider_schemas.constraints import descendants
from rehearsal.tests.control_planes import FakeControlPlanes

Fake = Gcp | AzureProvider


@dataclass(frozen=True, slots=True)
class Case:
    """A fake provider, and a type of it that needs no other.

    Attributes:
        provider: makes the provider from a store.
        type: the type's token.
        inputs: of a resource that is accepted.
        update: inputs that change in place.
        replacement: inputs that only a new resource has.
    """

    provider: Callable[[Store], Fake]
    type: str
    inputs: Mapping[str, Any]
    update: Mapping[str, Any]
    replacement: Mapping[str, Any]


def _gcp(store: Store) -> Fake:
    settings = {"project": "acme-ml", "region": "us-central1"}
    return Gcp(store, FakeControlPlanes()).configured(settings)


def _azure(store: Store) -> Fake:
    settings = {"subscriptionId": "00000000-0000-0000-0000-000000000001", "location": "eastus"}
    return AzureProvider(store, FakeControlPlanes()).configured(settings)


CASES = {
    "gcp": Case(
        _gcp,
        "gcp:storage/bucket:Bucket",
        {"name": "acme-data", "location": "US"},
        {"storageClass": "NEARLINE"},
        {"location": "EU"},
    ),
    "azure-native": Case(
        _azure,
        "azure-native:resources:ResourceGroup",
        {"resourceGroupName": "train"},
        {"tags": {"owner": "ml"}},
        {"location": "westus2"},
    ),
}


@dataclass(frozen=True, slots=True)
class Fixture:
    """A case with its store."""

    case: Case
    store: Store
    provider: Fake

    def call(self, **changes: Any) -> Call:
        """Return a call about the case's resource."""
        return Call(self.case.type, "it", f"urn:pulumi:dev::p::{self.case.type}::it", **changes)

    def checked(self, **changes: Any) -> dict[str, Any]:
        """Return the case's inputs with changes, as the provider completes them."""
        inputs, failures = self.provider.check(self.call(), {}, {**self.case.inputs, **changes})
        assert list(failures) == []
        return dict(inputs)

    def create(self) -> tuple[str, Read]:
        """Create the resource; its id, and what is read of it."""
        made = self.provider.create(self.call(), self.checked())
        read = self.provider.read(self.call(inputs=self.checked()), made.id, made.state)
        assert read is not None
        return made.id, read


@pytest.fixture(params=CASES, ids=str)
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Fixture:
    """Each provider with an empty cloud."""
    case = CASES[request.param]
    store = Store(tmp_path / "cloud.sqlite")
    return Fixture(case, store, case.provider(store))


def test_a_resource_reads_back_as_it_was_created(fake: Fixture) -> None:
    """A refresh changes nothing, and the same inputs are not a difference."""
    identity, read = fake.create()
    assert read.inputs == fake.checked()
    assert fake.provider.diff(fake.call(), identity, read, fake.checked()) == DiffResult()


def test_an_update_and_a_replacement(fake: Fixture) -> None:
    """The tables tell them apart; a resource with a name of its own is deleted first."""
    identity, read = fake.create()
    (updated,), (replaced,) = fake.case.update, fake.case.replacement
    updates, replacements = fake.checked(**fake.case.update), fake.checked(**fake.case.replacement)
    assert fake.provider.diff(fake.call(), identity, read, updates) == DiffResult((updated,))
    change = fake.provider.diff(fake.call(), identity, read, replacements)
    assert change == DiffResult((replaced,), (replaced,), delete_first=True)
    assert replaced in constraints_of(fake.case.type).replaces


def test_a_preview_stores_nothing(fake: Fixture) -> None:
    """A previewed resource has no id."""
    assert fake.provider.create(fake.call(preview=True), fake.checked()).id == ""
    assert fake.store.resources() == []


def test_an_existing_resource_is_refused(fake: Fixture) -> None:
    """The existing one stays as it is."""
    identity, read = fake.create()
    with pytest.raises(RefusedError):
        fake.provider.create(fake.call(), fake.checked())
    assert fake.provider.read(fake.call(inputs=fake.checked()), identity, read.state) == read


def test_a_deleted_resource_reads_as_absent(fake: Fixture) -> None:
    """Deleting it again is not an error."""
    identity, _ = fake.create()
    for _ in range(2):
        fake.provider.delete(fake.call(), identity, {})
    assert fake.provider.read(fake.call(), identity, {}) is None
    assert fake.store.resources() == []


def test_an_unknown_type_or_function_is_refused(fake: Fixture) -> None:
    """No answer is made up."""
    package = fake.provider.package
    with pytest.raises(RefusedError, match=f"does not implement resources of type {package}:sql:Server"):
        fake.provider.check(Call(f"{package}:sql:Server", "it", ""), {}, {})
    with pytest.raises(RefusedError, match=f"does not implement the function {package}:sql:getServer"):
        fake.provider.invoke(f"{package}:sql:getServer", {})


def test_rules_have_sources_and_tables_have_properties_of_the_sdk(fake: Fixture) -> None:
    """No constraint or default is of a property that no program could set."""
    for token, kind in fake.provider.kinds.items():
        assert kind.type == token
        assert all(rule.source for rule in kind.rules)
        known = {path for path, _ in descendants(provider_schema.arguments(token))}
        constraints = kind.constraints
        keys_of_a_map = "nodeConfig.linuxNodeConfig.sysctls."
        limits = (limit.path for limit in constraints.limits)
        limited = {path for path in limits if not path.startswith(keys_of_a_map)}
        paths = (
            constraints.replaces | constraints.computed | limited | {*constraints.defaults, *constraints.same}
        )
        assert paths | {*constraints.required, *constraints.fills} <= known | {"powerState"}


def test_what_a_cloud_changes_on_read() -> None:
    """GKE forgets the type of a named placement policy, and Cloud Storage writes locations in capitals."""
    named = {"type": "COMPACT", "policyName": "near"}
    pool = {"placementPolicy": named, "nodeConfig": {"kubeletConfig": {"podPidsLimit": 4096}}}
    answer = as_read("gcp:container/nodePool:NodePool", pool)
    assert answer["placementPolicy"] == named | {"type": ""}
    assert answer["nodeConfig"]["kubeletConfig"] == {"podPidsLimit": 4096, "cpuCfsQuota": False}
    assert as_read("gcp:storage/bucket:Bucket", {"location": "us-central1"}) == {"location": "US-CENTRAL1"}
    assert (
        as_read("azure-native:containerservice:AgentPool", {"osSKU": "AzureLinux"})["osSKU"] == "AzureLinux"
    )
