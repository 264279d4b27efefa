"""Sleep and wake of a stack's machines: the real engine, and the clouds' REST APIs from the same store."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from ebbtide.analysis.charges import deployed
from ebbtide.analysis.metrics import metric_sources
from ebbtide.clients.clouds import azure, google
from ebbtide.clients.clouds.connect import cluster_power
from ebbtide.clients.clouds.interfaces import CloudApiError, ClusterPower
from ebbtide.operations.engine.state import own_cluster
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.pools import all_pools
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.engine.running import Stack, running_on
from rehearsal.tests.unit.rest_clouds import rest_clouds
from tests.declarations import AKS, GKE, Declaration

pytestmark = pytest.mark.engine

_BASES: dict[CloudKind, Declaration] = {CloudKind.GKE: GKE, CloudKind.AKS: AKS}


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (azure, google):
        monkeypatch.setattr(module, "_STEP", 0.0)


def _ephemeral(cloud: CloudKind) -> Declaration:
    base = copy.deepcopy(_BASES[cloud])
    system, work, *_ = base["pools"]
    fixed = {**work, "name": "fixed", "nodes": {"count": 2}}
    return base | {"lifetime": {"hours": 8}, "pools": [system, work, fixed], "addons": {"metrics": {}}}


def _power(stack: Stack) -> ClusterPower:
    deployment = {"resources": stack.state()}
    cluster = own_cluster("test", deployment)
    return cluster_power(cluster.cloud, cluster.id, cluster.pools)


def _sizes(store: Store) -> dict[str, tuple[int, int, int, bool]]:
    return {
        pool.name: (pool.minimum, pool.maximum, pool.initial, pool.autoscaled) for pool in all_pools(store)
    }


def _nodes_at_least(store: Store) -> int:
    return sum(pool.initial if not pool.autoscaled else pool.minimum for pool in all_pools(store))


def _check_metrics(cloud: CloudKind, stack: Stack) -> None:
    """Check that the state has the store of the metrics: the project, or the workspace's id."""
    sources = metric_sources(deployed({"version": 3, "deployment": {"resources": stack.state()}}))
    assert sources is not None
    assert (sources.cluster, sources.gpus) == ("train", False)
    kept = {CloudKind.GKE: GKE["cloud"]["project"], CloudKind.AKS: "/providers/Microsoft.Monitor/accounts/"}
    assert kept[cloud] in sources.store


@pytest.mark.parametrize("cloud", CloudKind)
def test_machines_stop_and_start(cloud: CloudKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them stop, and come back as they were declared; to the engine nothing has changed, and a second
    stop or start does nothing."""
    with running_on(cloud, tmp_path) as (stack, store, _):
        stack.declare(_ephemeral(cloud))
        stack.up()
        _check_metrics(cloud, stack)
        before = _sizes(store)
        assert _nodes_at_least(store) > 0
        with rest_clouds(tmp_path, monkeypatch, store=store):
            power, steps = _power(stack), list[str]()
            assert power.refusal() == ""
            assert not power.is_stopped()
            power.stop(steps.append)
            assert power.is_stopped()
            assert _nodes_at_least(store) == 0
            assert not any(pool.autoscaled for pool in all_pools(store))
            printed = len(steps)
            power.stop(steps.append)
            assert len(steps) == printed > 0
            assert stack.preview().changed == {}
            power.start(steps.append)
            assert not power.is_stopped()
            assert _sizes(store) == before
            printed = len(steps)
            power.start(steps.append)
            assert len(steps) == printed
        assert stack.preview().changed == {}
        stack.refresh()
        assert stack.preview().changed == {}


def test_clusters_that_are_never_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AKS with node auto-provisioning: known before anything is asked of it, and refused by the cloud."""
    with running_on("aks", tmp_path) as (stack, store, _):
        stack.declare(_ephemeral(CloudKind.AKS))
        stack.up()
        cluster = next(item for item in store.resources() if item.type.endswith(":ManagedCluster"))
        mode = {"nodeProvisioningProfile": {"mode": "Auto"}}
        store.put(replace(cluster, inputs={**cluster.inputs, **mode}, state={**cluster.state, **mode}))
        with rest_clouds(tmp_path, monkeypatch, store=store):
            power = _power(stack)
            assert "node auto-provisioning" in power.refusal()
            with pytest.raises(CloudApiError, match="node auto provisioning"):
                power.stop(lambda _: None)
            assert not power.is_stopped()
