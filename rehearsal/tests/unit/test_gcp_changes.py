"""Differences of inputs, and checks of inputs before a plan."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.autoscaler.nodes import Machine
from ebbtide_rehearsal.cloud.gcp.request import (
    ACCOUNT,
    BUCKET,
    CLUSTER,
    FILESTORE,
    NETWORK,
    NODE_POOL,
    SUBNETWORK,
)
from ebbtide_rehearsal.cloud.pools import put
from ebbtide_rehearsal.cloud.provider import Call, DiffResult, Read, RefusedError
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, PROJECT, Cloud, base, with_cluster

SAME: list[tuple[str, dict[str, Any]]] = [
    ("train-cluster", {"network": "train"}),
    ("train-cluster", {"network": "projects/acme-ml/global/networks/train"}),
    ("train-cpu", {"nodeLocations": []}),
    ("train-cpu", {"nodeConfig": None}),
]

IDS = {
    "train-cpu": f"{CLUSTER_ID}/nodePools/cpu",
    "train-cluster": CLUSTER_ID,
    "train-network-subnet": "projects/acme-ml/regions/us-central1/subnetworks/train",
}


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    """The program's network, cluster and spot pool."""
    cloud = with_cluster(tmp_path)
    cloud.create(NODE_POOL, base("train-cpu"))
    return cloud


def test_the_same_in_other_words(cloud: Cloud) -> None:
    """A link, an id and a name are one reference; an empty list is none; what is computed stays when it is
    omitted."""
    for name, changes in SAME:
        assert cloud.diff(IDS[name], base(name, **changes)) == DiffResult(), (name, changes)


@pytest.mark.parametrize(
    ("kind", "inputs", "path", "reason"),
    [
        (NODE_POOL, {}, "cluster", "it: cluster is missing"),
        # hashicorp/terraform-provider-google#11247
        (
            NODE_POOL,
            {"nodeConfig": {"spto": True}},
            "nodeConfig.spto",
            "it: nodeConfig.spto is unknown",
        ),
        (
            NODE_POOL,
            {"cluster": "c", "nodeConfig": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
            "nodeConfig.taints[0].effect",
            "is NoSchedule, against its limit: enum NO_SCHEDULE|PREFER_NO_SCHEDULE|NO_EXECUTE",
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"diskSizeGb": 5}},
            "nodeConfig.diskSizeGb",
            "limit: minimum 10",
        ),
        (CLUSTER, {"name": "c" * 41}, "name", "limit: pattern ^[a-z]"),
        (CLUSTER, {"name": "Train"}, "name", "is Train"),
        (CLUSTER, {"name": "1st"}, "name", "is 1st"),
        (CLUSTER, {"name": "train-"}, "name", "is train-"),
        (CLUSTER, {"releaseChannel": {"channel": "FAST"}}, "releaseChannel.channel", "is FAST"),
        (NETWORK, {"name": "Lab"}, "name", "limit: pattern ^[a-z]"),
        (SUBNETWORK, {"network": "n", "ipCidrRange": "10.0.0.0"}, "ipCidrRange", None),
        (SUBNETWORK, {"network": "n", "ipCidrRange": "ten"}, "ipCidrRange", "is ten"),
        (ACCOUNT, {"accountId": "abc"}, "accountId", "limit: pattern ^[a-z]"),
        (BUCKET, {"name": "b"}, "location", "is missing"),
        (FILESTORE, {"tier": "BASIC_HDD", "networks": []}, "fileShares", "is missing"),
    ],
)
def test_refused_before_anything_is_planned(
    tmp_path: Path, kind: str, inputs: dict[str, Any], path: str, reason: str | None
) -> None:
    """The provider's own schema refuses, with the property and its limit."""
    _, failures = Cloud(tmp_path).check(kind, inputs)
    reasons = {failure.property: failure.reason for failure in failures}
    if reason is None:
        assert path not in reasons
    else:
        assert reason in reasons.get(path, str(reasons))
        assert path in reasons


def test_both_counts_are_refused_of_a_new_pool_alone(cloud: Cloud) -> None:
    """The provider looks when it creates one, so an older pool may have both."""
    fixed = base("train-cpu", name="fixed", autoscaling=None, initialNodeCount=1)
    with pytest.raises(
        RefusedError, match=r"^Cannot set both initial_node_count and node_count on node pool"
    ):
        cloud.create(NODE_POOL, fixed | {"nodeCount": 2})
    assert "fixed" not in cloud.node_pools()

    made = cloud.create(NODE_POOL, fixed)
    newer = base("train-cpu", name="fixed", autoscaling=None, initialNodeCount=None)
    assert cloud.diff(made.id, newer | {"nodeCount": 1}) == DiffResult()
    assert cloud.diff(made.id, newer | {"nodeCount": 2}) == DiffResult(("nodeCount",))
    cloud.update(made.id, fixed | {"nodeCount": 2})
    assert cloud.node_pools()["fixed"].initial == 2


def test_a_count_that_the_state_has_already_resizes_nothing(cloud: Cloud) -> None:
    """Without a refresh, an autoscaled pool that is given the count that it was created with keeps its size
    until the update after, since the provider compares with its state."""
    scaled = base("train-cpu", name="scaled", initialNodeCount=1)
    made = cloud.create(NODE_POOL, scaled)
    for number in range(4):
        name = f"scaled-{number}"
        put(cloud.store, Machine(CLUSTER_ID, "scaled", name, "us-central1-a", "gke", 0.1, 0, "running", 0))
    fixed = base("train-cpu", name="scaled", autoscaling=None, initialNodeCount=None, nodeCount=1)
    completed, _ = cloud.check(NODE_POOL, fixed)
    call = Call(NODE_POOL, "it", "urn")
    stored = cloud.store.get("gcp", made.id)
    assert stored is not None
    stale = Read(made.id, stored.inputs, made.state)
    assert cloud.provider.diff(call, made.id, stale, completed) == DiffResult(("autoscaling",))
    assert cloud.provider.update(call, made.id, stale, completed)["nodeCount"] == 4
    assert cloud.node_pools()["scaled"].initial == 4

    assert cloud.diff(made.id, fixed) == DiffResult(("nodeCount",))
    assert cloud.update(made.id, fixed)["nodeCount"] == 1
    assert cloud.node_pools()["scaled"].initial == 1


def test_settings_of_the_provider(tmp_path: Path) -> None:
    """An ambient project is never made up, a slip in the provider's own inputs is found, and another project
    is another provider."""
    provider = Cloud(tmp_path).provider
    with pytest.raises(RefusedError, match="project: required field is not set"):
        provider.configured({}).create(Call(NETWORK, "lab", "urn"), {"name": "lab"})
    assert [failure.property for failure in provider.check_config({"projekt": PROJECT})] == ["projekt"]
    assert provider.check_config({"project": PROJECT, "version": "10.2.0"}) == []
    assert provider.change_config({"project": "a"}, {"project": "b"}) == DiffResult(("project",))
