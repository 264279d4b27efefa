"""The fake of a cloud without an engine: a provider, called in plain data."""

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from ebbtide.analysis.recording.recording import Resource as Recorded
from ebbtide.analysis.recording.values import revealed
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import PACKAGES
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.provider import Call, Created, DiffResult, Failure, Read
from ebbtide_rehearsal.cloud.store import Resource, Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.fake_clouds import settings_of
from tests.declarations import AKS, GKE, Declaration
from tests.synth import synth

Inputs = dict[str, Any]

PROJECT = "acme-ml"
CLUSTER_ID = f"projects/{PROJECT}/locations/us-central1-a/clusters/train"


class Cloud:
    """A cloud for a test, with a provider as a declaration configures it."""

    def __init__(self, directory: Path, declaration: Declaration = GKE) -> None:
        self.store = Store(directory / "cloud.sqlite")
        self.clusters = FakeControlPlanes()
        package = PACKAGES[CloudKind(declaration["cloud"]["kind"])]
        self.provider = FakeProvider(package, self.store, self.clusters, settings_of(declaration))

    def check(self, type_: str, inputs: Mapping[str, Any], name: str = "it") -> tuple[Inputs, list[Failure]]:
        """The inputs as the provider completes them, and what is wrong with them."""
        completed, failures = self.provider.check(_call(type_, name), {}, inputs)
        return dict(completed), list(failures)

    def create(self, type_: str, inputs: Mapping[str, Any], name: str = "it") -> Created:
        """Make a resource whose inputs the provider has nothing against."""
        completed, failures = self.check(type_, inputs, name)
        assert failures == []
        return self.provider.create(_call(type_, name), completed)

    def create_all(self, declaration: Mapping[str, Any]) -> None:
        """Make the program's resources."""
        for resource, inputs in asked_for(declaration):
            self.create(resource.type, inputs, resource.name)

    def found(self, identity: str) -> Resource:
        """An existing resource."""
        resource = self.provider.find(identity)
        assert resource is not None
        return resource

    def read(self, identity: str) -> Read:
        """Read an existing resource as the engine does, which knows its inputs."""
        resource = self.found(identity)
        call = Call(resource.type, "it", resource.urn, inputs=resource.inputs)
        result = self.provider.read(call, identity, {})
        assert result is not None
        return result

    def diff(self, identity: str, inputs: Mapping[str, Any]) -> DiffResult:
        """Compare changed inputs."""
        call, old = self._call_of(identity), self.read(identity)
        completed, _ = self.provider.check(call, old.inputs, inputs)
        return self.provider.diff(call, identity, old, completed)

    def update(self, identity: str, inputs: Mapping[str, Any]) -> Inputs:
        """The state of a resource that was changed."""
        call, old = self._call_of(identity), self.read(identity)
        completed, failures = self.provider.check(call, old.inputs, inputs)
        assert list(failures) == []
        return dict(self.provider.update(call, identity, old, completed))

    def delete(self, identity: str) -> None:
        """Remove a resource."""
        self.provider.delete(self._call_of(identity), identity, {})

    def node_pools(self) -> dict[str, NodePool]:
        """Return the node pools of the controllers, by name."""
        return {pool.name: pool for identity in self.clusters.running for pool in pools(self.store, identity)}

    def _call_of(self, identity: str) -> Call:
        return _call(self.found(identity).type, "it")


def _call(type_: str, name: str) -> Call:
    return Call(type_, name, f"urn:pulumi:test::ebbtide::{type_}::{name}")


def asked_for(declaration: Mapping[str, Any]) -> Iterator[tuple[Recorded, Inputs]]:
    """Return the program's resources of a cloud, in their order."""
    for resource in synth(dict(declaration)):
        if resource.custom and resource.type.startswith(("gcp:", "azure-native:")):
            yield resource, cast("Inputs", revealed(dict(resource.inputs)))


@cache
def _base(cloud: str) -> dict[str, Inputs]:
    """Return the program's resources by name, for an ephemeral cluster with the pools that tests start
    from."""
    written = (GKE if cloud == "gke" else AKS) | {"lifetime": {"hours": 8}}
    return {resource.name: inputs for resource, inputs in asked_for(written)}


def base(name: str, /, cloud: str = "gke", **changes: Any) -> Inputs:
    """Inputs of the program, with some of them changed; None takes one away. `a__b` is b in a."""
    inputs = copy.deepcopy(_base(cloud)[name])
    for path, value in changes.items():
        *above, last = path.split("__")
        inner = inputs
        for key in above:
            inner = inner.setdefault(key, {})
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = value
    return inputs


def with_cluster(directory: Path, cloud: str = "gke", **changes: Any) -> Cloud:
    """A cloud with all that the program makes before its pools; the cluster may be changed."""
    made = Cloud(directory, GKE if cloud == "gke" else AKS)
    kinds = {"gke": "gcp:container/nodePool:", "aks": "azure-native:containerservice:AgentPool"}
    for resource, inputs in asked_for((GKE if cloud == "gke" else AKS) | {"lifetime": {"hours": 8}}):
        if not resource.type.startswith(kinds[cloud]):
            own = base("train-cluster", cloud, **changes) if resource.name == "train-cluster" else inputs
            made.create(resource.type, own, resource.name)
    return made
