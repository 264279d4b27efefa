"""The fake Google Cloud without an engine: a provider, called in plain data."""

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from ebbtide.analysis.recording.recording import Resource as Recorded
from ebbtide.analysis.recording.values import revealed
from ebbtide.autoscaler.nodes import NodePool
from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.gcp.request import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK, Request
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.provider import Call, Created, DiffResult, Failure, Read
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from tests.declarations import GKE
from tests.synth import synth

Inputs = dict[str, Any]

PROJECT = "acme-ml"
CLUSTER_ID = f"projects/{PROJECT}/locations/us-central1-a/clusters/train"


class Cloud:
    """Google Cloud for a test, with a provider for a project in us-central1."""

    def __init__(self, directory: Path, project: str = PROJECT) -> None:
        self.store = Store(directory / "cloud.sqlite")
        self.clusters = FakeControlPlanes()
        settings = {"project": project, "region": "us-central1"}
        self.provider = Gcp(self.store, self.clusters).configured(settings)

    def check(self, type_: str, inputs: Mapping[str, Any], name: str = "it") -> tuple[Inputs, list[Failure]]:
        """The inputs as the provider completes them, and what is wrong with them."""
        completed, failures = self.provider.check(_call(type_, name), {}, inputs)
        return dict(completed), list(failures)

    def create(self, type_: str, inputs: Mapping[str, Any], name: str = "it") -> Created:
        """Make a resource whose inputs the provider has nothing against."""
        completed, failures = self.check(type_, inputs, name)
        assert failures == []
        return self.provider.create(_call(type_, name), completed)

    def read(self, identity: str) -> Read:
        """Read an existing resource."""
        result = self.provider.read(self._call_of(identity), identity, {})
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

    def request(self, type_: str, inputs: Mapping[str, Any]) -> Request:
        """Return the API's request when a resource is created."""
        completed, _ = self.check(type_, inputs)
        return self.provider.request(_call(type_, "it"), completed, self.provider.identity(type_, completed))

    def delete(self, identity: str) -> None:
        """Remove a resource."""
        self.provider.delete(self._call_of(identity), identity, {})

    def node_pools(self) -> dict[str, NodePool]:
        """Return the node pools of the controllers, by name."""
        return {pool.name: pool for identity in self.clusters.running for pool in pools(self.store, identity)}

    def _call_of(self, identity: str) -> Call:
        resource = self.store.get("gcp", identity)
        return _call(resource.type if resource else NODE_POOL, "it")


def _call(type_: str, name: str) -> Call:
    return Call(type_, name, f"urn:pulumi:test::ebbtide::{type_}::{name}")


def asked_for(declaration: Mapping[str, Any]) -> Iterator[tuple[Recorded, Inputs]]:
    """Return the program's resources of Google Cloud, in their order."""
    for resource in synth(dict(declaration)):
        if resource.custom and resource.type.startswith("gcp:"):
            yield resource, cast("Inputs", revealed(dict(resource.inputs)))


@cache
def _base() -> dict[str, Inputs]:
    """Return the program's resources by name, for an ephemeral cluster with the pools that tests start
    from."""
    return {resource.name: inputs for resource, inputs in asked_for(GKE | {"lifetime": {"hours": 8}})}


def base(name: str, /, **changes: Any) -> Inputs:
    """Inputs of the program, with some of them changed; None takes one away. `a__b` is b in a."""
    inputs = copy.deepcopy(_base()[name])
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


def with_cluster(directory: Path, **changes: Any) -> Cloud:
    """A cloud with the program's network and cluster, which may be changed."""
    cloud = Cloud(directory)
    cloud.create(NETWORK, base("train-network-vpc"))
    cloud.create(SUBNETWORK, base("train-network-subnet"))
    cloud.create(CLUSTER, base("train-cluster", **changes))
    return cloud
