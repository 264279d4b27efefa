"""Deletion of everything on the cluster, with a cluster that the stack created and from an existing one."""

import pytest

from tests.declarations import BASES
from tests.running import EVERYTHING, full, in_cluster, manifest
from tests.synth import synth

WITHOUT_CLAIMS = ("-kueue-chart", "-drivers-operator")
"""Charts that install no claim and no load balancer: Kueue's, which a rehearsal installs, and the GPU
operator's (NVIDIA/gpu-operator, deployments/gpu-operator, 2026)."""


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("drivers", ["managed", "gpu-operator"])
def test_everything_goes_with_a_cluster_of_ours(cloud: str, drivers: str) -> None:
    """Leaves go with the cluster, and charts that install no claim; components, other charts and directories
    never say so, or a claim inside would be lost."""
    recording = synth(full(cloud, drivers=drivers))
    for item in recording:
        without_claims = item.type.endswith(":Chart") and item.name.endswith(WITHOUT_CLAIMS)
        if item.type.startswith("kubernetes:"):
            assert (item.deleted_with is not None) == (item.custom or without_claims), item.urn
        elif not item.custom:
            assert item.deleted_with is None


@pytest.mark.parametrize("cloud", BASES)
def test_everything_is_deleted_from_a_cluster_that_stays(cloud: str) -> None:
    """Nothing is left on an existing cluster; a claim alone is deleted with its namespace, after its pods."""
    declaration = full(cloud)
    declaration["pools"] = declaration["pools"][1:]
    declaration["addons"] = {key: value for key, value in EVERYTHING.items() if key != "pipelines"}
    declaration["cloud"]["existing"] = {"name": "theirs"}
    recording = synth(declaration)
    for item in in_cluster(recording):
        if item.deleted_with is None:
            continue
        assert manifest(item)["kind"] == "PersistentVolumeClaim"
        assert recording[item.deleted_with].type == "kubernetes:core/v1:Namespace"


CLAIMS = {"shared": "made by hand, on a volume whose bucket or file system is a resource of its own"}
"""Every claim that is made here, and how what is behind it goes. Those of upstream's kustomizations are named
in `tests/unit/components/addons/patched.py`."""


@pytest.mark.parametrize("cloud", BASES)
def test_every_claim_and_service_is_known(cloud: str) -> None:
    """Nothing makes a disk or a load balancer behind Pulumi's back."""
    recording = synth(full(cloud))
    claims = [
        manifest(item) for item in in_cluster(recording) if manifest(item)["kind"] == "PersistentVolumeClaim"
    ]
    assert {claim["metadata"]["name"] for claim in claims} == set(CLAIMS)
    volumes = {
        manifest(item)["metadata"]["name"]
        for item in in_cluster(recording)
        if manifest(item)["kind"] == "PersistentVolume"
    }
    for claim in claims:
        assert claim["spec"]["storageClassName"] == ""
        assert claim["spec"]["volumeName"] in volumes
    assert not [item for item in in_cluster(recording) if manifest(item)["kind"] == "Service"]
