"""GPUs that several containers share: what they are requested as, and how many there are of it."""

from typing import Any

import pytest

from ebbtide.declaration.model import declare
from ebbtide.placement.derive import profile
from ebbtide.placement.profile import AcceleratorProfile, Profile
from ebbtide.placement.queueing import flavor
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job
from tests.declarations import AKS, GKE, Declaration, only

A100 = "nvidia-tesla-a100"
CASES: list[tuple[dict[str, Any], int, int]] = [
    ({}, 1, 2),
    ({"gpuPartitionSize": "1g.5gb"}, 7, 14),
    ({"gpuSharingConfig": {"maxSharedClientsPerGpu": 8}}, 8, 1),
    ({"gpuSharingConfig": {"gpuSharingStrategy": "mps", "maxSharedClientsPerGpu": 8}}, 8, 1),
    ({"gpuPartitionSize": "2g.10gb", "gpuSharingConfig": {"maxSharedClientsPerGpu": 2}}, 6, 1),
]


def _shared(sharing: dict[str, Any], count: int = 2) -> Declaration:
    return only(
        GKE,
        machine=f"a2-highgpu-{count}g",
        accelerator={"type": A100, "count": count, **sharing},
        nodes={"max": 3},
    )


@pytest.mark.parametrize(("sharing", "shares", "most"), CASES)
def test_a_share_is_requested_like_a_gpu(sharing: dict[str, Any], shares: int, most: int) -> None:
    """The quota is the shares of all nodes; one container may request fewer of them."""
    cluster = declare(_shared(sharing))
    accelerator = profile(cluster).pool("work").accelerator
    assert accelerator == AcceleratorProfile(A100, 2 * shares, "nvidia.com/gpu", shares, most)
    offer = flavor(cluster.resolved_pools[1]).offer({"work": 3})
    assert offer["nvidia.com/gpu"] == 3 * 2 * shares
    assert Profile.load(profile(cluster).data()) == profile(cluster)


def test_mps_gives_all_of_a_single_gpu() -> None:
    """With several GPUs on a node, or several partitions, a container gets one share."""
    sharing = {"gpuSharingConfig": {"gpuSharingStrategy": "mps", "maxSharedClientsPerGpu": 8}}
    accelerator = profile(declare(_shared(sharing, count=1))).pool("work").accelerator
    assert accelerator is not None
    assert (accelerator.count, accelerator.most) == (8, 8)


def test_an_instance_profile_is_requested_like_a_gpu() -> None:
    """The device plugin's strategy `single` names every instance `nvidia.com/gpu`."""
    accelerator = {"type": "nvidia-a100-80gb", "count": 2, "gpuInstanceProfile": "MIG3g"}
    pool = {"machine": "Standard_NC48ads_A100_v4", "accelerator": accelerator, "nodes": {"count": 1}}
    gpus = profile(declare(only(AKS, **pool))).pool("work").accelerator
    assert gpus is not None
    assert (gpus.count, gpus.most) == (4, 4)


def test_nodes_say_how_their_gpus_are_shared() -> None:
    """By labels that GKE adds; the taint stays that of GPUs."""
    sharing = {"gpuPartitionSize": "1g.5gb", "gpuSharingConfig": {"maxSharedClientsPerGpu": 3}}
    pool = profile(declare(_shared(sharing))).pool("work")
    assert {key: value for key, value in pool.labels.items() if "shar" in key or "partition" in key} == {
        "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
    }
    assert "nvidia.com/gpu" in {taint.key for taint in pool.taints}


def test_a_job_cannot_request_several_shares() -> None:
    """GKE's device plugin fails the pod; the job is refused before it is submitted."""
    cluster = profile(declare(_shared({"gpuSharingConfig": {"maxSharedClientsPerGpu": 8}})))
    request: dict[str, Any] = {
        "name": "train",
        "image": "train:1",
        "pool": "work",
        "cpu": "1",
        "memory": "1Gi",
    }
    assert job(cluster, **request, gpus=1)
    with pytest.raises(WorkloadError, match="requests more than 1 fails"):
        job(cluster, **request, gpus=2)
    with pytest.raises(
        WorkloadError, match="gpus is 17, and a node of pool work has 16 shares of nvidia-tesla"
    ):
        job(cluster, **request, gpus=17)
