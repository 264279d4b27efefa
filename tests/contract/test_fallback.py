"""Fallback of queues, as declared to the clouds and the cluster."""

from typing import Any

import pytest
import yaml

from ebbtide.analysis.preview.build_preview import preview_of
from tests.declarations import AKS, GKE, Declaration, changed
from tests.running import after, in_cluster, manifest
from tests.synth import synth

ASKED = {"name": "cpus", "pools": ["cpu", "steady"], "fallback": True}
STEADY = {"name": "steady", "machine": "n2-standard-8", "nodes": {"max": 2}}
ON_GKE = changed(GKE, pools=[*GKE["pools"], STEADY], queues=[ASKED])
ON_AKS = changed(AKS, queues=[ASKED])
ORDER = {"gke": "cloud.google.com/v1:ComputeClass", "aks": "core/v1:ConfigMap"}
POOLS = {"gke": "gcp:container/nodePool:NodePool", "aks": "azure-native:containerservice:AgentPool"}


def _order(recording: Any, cloud: str) -> Any:
    (item,) = [
        item
        for item in recording.of_type(f"kubernetes:{ORDER[cloud]}")
        if manifest(item)["metadata"]["name"] != "ebbtide-profile"
    ]
    return item


@pytest.mark.parametrize(("cloud", "declaration"), [("gke", ON_GKE), ("aks", ON_AKS)])
def test_the_order_is_there_before_work_is_admitted(cloud: str, declaration: Declaration) -> None:
    """The priority ConfigMap is created after its pools and before work is admitted, and deleted with a
    cluster of the stack."""
    recording = synth(declaration)
    order = _order(recording, cloud)
    assert {item.urn for item in recording.of_type(POOLS[cloud])} <= after(recording, order)
    for item in in_cluster(recording):
        if manifest(item)["kind"] in ("ResourceFlavor", "LocalQueue"):
            assert order.urn in after(recording, item)
    assert order.deleted_with is not None


@pytest.mark.parametrize("declaration", [ON_GKE, ON_AKS], ids=["gke", "aks"])
def test_a_preview_lists_fallback_pools(declaration: Declaration) -> None:
    """The preview lists only the declared fallback pools."""
    fallbacks = {pool.name: pool.falls_back_to for pool in preview_of(synth(declaration)).pools}
    assert fallbacks.pop("cpu") == ("steady",)
    assert set(fallbacks.values()) == {()}


def test_an_order_is_taken_from_a_cluster_that_stays() -> None:
    """A ComputeClass on an existing cluster is deleted for real, before the pools that it names."""
    declaration = changed(ON_GKE, pools=ON_GKE["pools"][1:])
    declaration["cloud"]["existing"] = {"name": "theirs"}
    assert _order(synth(declaration), "gke").deleted_with is None


@pytest.mark.parametrize(("fallback", "expander"), [(False, "least-waste"), (True, "priority")])
def test_the_expander_is_changed_only_where_asked(fallback: bool, expander: str) -> None:  # noqa: FBT001
    """`priority` without its ConfigMap picks at random."""
    recording = synth(changed(AKS, queues=[ASKED | {"fallback": fallback}]))
    (cluster,) = recording.of_type("azure-native:containerservice:ManagedCluster")
    assert manifest(cluster)["autoScalerProfile"]["expander"] == expander


@pytest.mark.parametrize("drivers", ["managed", "daemonset"])
def test_gpus_of_a_class_keep_their_driver(drivers: str) -> None:
    """Our installer tolerates the taint of the class, and the cloud's own is configured as on any other
    pool."""
    t4 = next(pool for pool in GKE["pools"] if pool["name"] == "t4")
    declaration = changed(
        GKE,
        pools=[*GKE["pools"], t4 | {"name": "steady", "capacity": "on-demand"}],
        queues=[{"name": "gpus", "pools": ["t4", "steady"], "fallback": True}],
        addons={"drivers": drivers},
    )
    recording = synth(declaration)
    versions = {
        manifest(item)["name"]: gpu["gpuDriverInstallationConfig"]["gpuDriverVersion"]
        for item in recording.of_type(POOLS["gke"])
        for gpu in manifest(item)["nodeConfig"].get("guestAccelerators") or ()
        if manifest(item)["name"] in ("t4", "steady")
    }
    assert set(versions.values()) == {"DEFAULT" if drivers == "managed" else "INSTALLATION_DISABLED"}
    tolerated = [
        toleration
        for item in recording.of_type("kubernetes:apps/v1:DaemonSet")
        for toleration in manifest(item)["spec"]["template"]["spec"]["tolerations"]
        if toleration["key"] == "cloud.google.com/compute-class"
    ]
    assert all(toleration["value"] == "gpus" for toleration in tolerated)
    assert bool(tolerated) == (drivers == "daemonset")


def test_the_map_is_read_as_it_is_meant() -> None:
    """The ConfigMap's single entry is YAML with a list of patterns for each whole number."""
    order = yaml.safe_load(manifest(_order(synth(ON_AKS), "aks"))["data"]["priorities"])
    assert order == {1: ["^aks-system-", "^aks-t4-"], 10: ["^aks-steady-"], 20: ["^aks-cpu-"]}
