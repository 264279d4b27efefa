"""The repository's program on AKS: the real engine against the fake of azure-native."""

import copy
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pulumi import automation

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.cloud.existing import seed_aks
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault, Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.running import OnCloud, Stack, running_on
from tests.declarations import AKS, Declaration, changed, pool

pytestmark = pytest.mark.engine

_CLUSTER = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/train"
    "/providers/Microsoft.ContainerService/managedClusters/train"
)


_RESERVATION: Final = "azure-native:compute:CapacityReservation"


@contextmanager
def _stack(directory: Path, declaration: Declaration) -> Generator[OnCloud]:
    with running_on("aks", directory) as made:
        made.stack.declare(declaration)
        yield made


def _ephemeral(**changes: Any) -> Declaration:
    return changed(copy.deepcopy(AKS), lifetime={"hours": 8}, **changes)


def _maximum(store: Store, name: str) -> int:
    return next(node_pool.maximum for node_pool in pools(store, _CLUSTER) if node_pool.name == name)


def test_an_ephemeral_cluster_from_preview_to_destroy(tmp_path: Path) -> None:
    """A preview creates nothing, a second up changes nothing, and a destroy leaves nothing."""
    with _stack(tmp_path, _ephemeral()) as (stack, store, planes):
        planned = stack.preview().changed
        assert store.resources() == []
        assert set(planned) == {"create"}
        assert stack.up().changed == planned
        assert [node_pool.name for node_pool in pools(store, _CLUSTER)] == ["cpu", "steady", "system", "t4"]
        assert '"server": "https://aks-0.test:443"' in str(stack.outputs()["kubeconfig"])
        assert stack.up().changed == {}
        assert stack.preview().changed == {}
        assert set(stack.destroy().changed) == {"delete"}
        assert store.resources() == []
        assert planes.running == {}


def test_reserved_machines_from_creation_to_removal(tmp_path: Path) -> None:
    """The reservation grows with its pool, is deleted after the pool and before its group, and a destroy
    leaves nothing."""
    reserved = {"zones": ["1", "2"], "capacity": {"kind": "reservation"}}
    declaration = _ephemeral()
    plain = {"pools": [item for item in declaration["pools"] if item["name"] != "cpu"]}
    held = pool(declaration, "cpu") | reserved
    with _stack(tmp_path, {**declaration, "pools": [*plain["pools"], held | {"nodes": {"max": 2}}]}) as (
        stack,
        store,
        _,
    ):
        stack.up()
        assert stack.up().changed == {}
        stack.declare({**declaration, "pools": [*plain["pools"], held | {"nodes": {"max": 4}}]})
        changed_names = set(stack.up().changed["update"])
        assert {"train-cpu-reservation-1", "train-cpu-reservation-2", "train-cpu"} <= changed_names
        machines = [item.state["sku"]["capacity"] for item in store.resources("azure-native", _RESERVATION)]
        assert machines == [2, 2]
        stack.declare({**declaration, **plain})
        stack.up()
        assert store.resources("azure-native", _RESERVATION) == []
        stack.declare({**declaration, "pools": [*plain["pools"], held | {"nodes": {"max": 2}}]})
        stack.up()
        stack.destroy()
        assert store.resources() == []


def _inline(stack: Stack) -> list[str]:
    """Names of the pools in the cluster's inputs, as the state has them."""
    (cluster,) = [item for item in stack.state() if item["type"].endswith(":ManagedCluster")]
    return sorted(item["name"] for item in cluster["inputs"]["agentPoolProfiles"])


def test_nothing_changes_after_a_refresh(tmp_path: Path) -> None:
    """Pools that AKS lists with the cluster are not removed by a preview, an update, or a change of the
    cluster, which sends the system pool alone."""
    declaration = _ephemeral()
    with _stack(tmp_path, declaration) as (stack, store, _):
        stack.up()
        assert _inline(stack) == ["system"]
        assert stack.refresh().changed == {"update": ["train-cluster"]}
        assert _inline(stack) == ["cpu", "steady", "system", "t4"]
        before = pools(store, _CLUSTER)
        assert stack.preview().changed == {}
        assert stack.up().changed == {}
        assert stack.refresh().changed == {}
        assert stack.up().changed == {}
        assert pools(store, _CLUSTER) == before
        pool(declaration, "system")["nodes"] = {"max": 6}
        stack.declare(declaration)
        assert stack.up().changed == {"update": ["train-cluster"]}
        assert _inline(stack) == ["system"]
        assert _maximum(store, "system") == 6
        assert [node_pool.name for node_pool in pools(store, _CLUSTER)] == [
            node_pool.name for node_pool in before
        ]


@pytest.mark.long
def test_a_change_that_failed_is_sent_again_after_a_refresh(tmp_path: Path) -> None:
    """The list of pools is ignored only where the last deployment of the same inputs succeeded."""
    declaration = _ephemeral()
    with _stack(tmp_path, declaration) as (stack, store, _):
        stack.up()
        pool(declaration, "system")["nodes"] = {"max": 6}
        stack.declare(declaration)
        target = "update azure-native:containerservice:ManagedCluster"
        store.inject(InjectedFault(API_ERROR, target, times=1, details={"message": "Conflict"}))
        with pytest.raises(automation.CommandError):
            stack.up()
        stack.refresh()
        assert stack.up().changed == {"update": ["train-cluster"]}
        assert _maximum(store, "system") == 6


_DEFINITION: Final = "train-addons-kueue-localqueues.kueue.x-k8s.io"


@pytest.mark.long
@pytest.mark.parametrize("existing", [False, True])
def test_the_managed_kueue(tmp_path: Path, existing: bool) -> None:  # noqa: FBT001
    """The extension comes before what it installs is read, and before the queues; it goes after them,
    and an existing cluster remains when its added pool is deleted."""
    declaration = _ephemeral()
    if existing:
        declaration = changed(copy.deepcopy(AKS))
        declaration["cloud"] |= {"existing": {"name": "train"}, "resourceGroup": "train"}
        declaration["pools"] = [pool(declaration, "cpu")]
    with _stack(tmp_path, declaration) as (stack, store, planes):
        if existing:
            _seed(store, planes)
        stack.up()
        queued = {"queues": [{"name": "cpu", "pools": ["cpu"]}], "addons": {"kueue": {"install": "managed"}}}
        stack.declare({**declaration, **queued})
        assert "train-kueue" in stack.preview().changed["create"]
        stack.up()
        (extension,) = store.resources("azure-native", "azure-native:kubernetesconfiguration:Extension")
        assert extension.id == f"{_CLUSTER}/providers/Microsoft.KubernetesConfiguration/extensions/kueue"
        assert extension.state["version"] == PINS["kueue-managed"].version
        names = [item["urn"].rpartition("::")[2] for item in stack.state()]
        order = ("train-kueue", _DEFINITION, "train-addons-queues-resourceflavor-cpu")
        assert sorted(order, key=names.index) == [*order]
        (definition,) = [item for item in stack.state() if item["urn"].endswith(f"::{_DEFINITION}")]
        assert (definition["id"], definition["external"]) == ("localqueues.kueue.x-k8s.io", True)
        flavor = next(item for item in stack.state() if item["type"].endswith(":ResourceFlavor"))
        assert any(urn.endswith("::train-kueue") for urn in flavor["dependencies"])
        assert stack.up().changed == {}
        stack.declare(declaration)
        deleted = stack.up().changed["delete"]
        assert ("train-kueue" in deleted, store.resources("azure-native", extension.type)) == (True, [])
        if existing:
            assert stack.refresh().changed == {}
            stack.destroy()
            assert [node_pool.name for node_pool in pools(store, _CLUSTER)] == ["system"]
            assert list(planes.running) == [_CLUSTER]


def _seed(store: Store, planes: FakeControlPlanes) -> None:
    """Create the cluster `train`, as others have."""
    seed_aks(
        store,
        planes,
        subscription="00000000-0000-0000-0000-000000000001",
        resource_group="train",
        name="train",
        location="eastus",
    )
