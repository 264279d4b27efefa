"""Fallback of queues, as declared to the clouds and the cluster."""

import pytest

from ebbtide.analysis.preview.build_preview import preview_of
from tests.declarations import AKS, GKE, Declaration, changed
from tests.running import manifest
from tests.synth import synth

ASKED = {"name": "cpus", "pools": ["cpu", "steady"], "fallback": True}
STEADY = {"name": "steady", "machine": "n2-standard-8", "nodes": {"max": 2}}
ON_GKE = changed(GKE, pools=[*GKE["pools"], STEADY], queues=[ASKED])
ON_AKS = changed(AKS, queues=[ASKED])
POOLS = {"gke": "gcp:container/nodePool:NodePool", "aks": "azure-native:containerservice:AgentPool"}


@pytest.mark.parametrize("declaration", [ON_GKE, ON_AKS], ids=["gke", "aks"])
def test_a_preview_lists_fallback_pools(declaration: Declaration) -> None:
    """The preview lists only the declared fallback pools."""
    fallbacks = {pool.name: pool.falls_back_to for pool in preview_of(synth(declaration)).pools}
    assert fallbacks.pop("cpu") == ("steady",)
    assert set(fallbacks.values()) == {()}


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
