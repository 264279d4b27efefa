"""Local queues of each pool, read from Kueue's objects."""

from typing import Any

import pulumi_gcp as gcp
import pulumi_kubernetes as k8s

from ebbtide.analysis.reading.pools import read_cluster_queues, read_flavors, read_pools, read_queues
from ebbtide.analysis.recording.record import record

_API = "kueue.x-k8s.io/v1beta2"


def _object(kind: str, name: str, spec: dict[str, Any], namespace: str | None = None) -> None:
    k8s.apiextensions.CustomResource(
        f"{kind}-{name}".lower(),
        api_version=_API,
        kind=kind,
        metadata={"name": name, "namespace": namespace},
        spec=spec,
    )


def _flavor(name: str, labels: dict[str, str]) -> None:
    _object("ResourceFlavor", name, {"nodeLabels": labels})


def _cluster_queue(name: str, *flavors: str) -> None:
    _object("ClusterQueue", name, {"resourceGroups": [{"flavors": [{"name": flavor} for flavor in flavors]}]})


def test_queues_lead_to_the_pools_of_their_flavors() -> None:
    """A flavor's labels are a pool's where those that both have are the same; what the cloud adds says
    nothing.
    """

    def program() -> None:
        for pool in ("a", "b", "c"):
            gcp.container.NodePool(
                pool, name=pool, cluster="train", node_config={"labels": {"pool": pool, "kind": "gpu"}}
            )
        _flavor("a", {"pool": "a", "cloud.google.com/gke-spot": "true"})
        _flavor("b", {"pool": "b", "kind": "gpu"})
        _flavor("nowhere", {"pool": "z", "kind": "gpu"})
        _flavor("unlabelled", {})
        _cluster_queue("both", "a", "b")
        _cluster_queue("lost", "nowhere", "unlabelled", "missing")
        _object("LocalQueue", "gpus", {"clusterQueue": "both"}, "vision")
        _object("LocalQueue", "lost", {"clusterQueue": "lost"}, "vision")
        _object("LocalQueue", "stray", {"clusterQueue": "missing"}, "vision")

    recording = record(program, project="shop", stack="dev")
    pools = read_pools(recording)
    flavors = read_flavors(recording, pools)
    assert flavors == {"a": [0], "b": [1], "nowhere": [], "unlabelled": []}
    assert read_queues(recording, pools, flavors) == [("vision/gpus",), ("vision/gpus",), ()]


def test_a_team_counts_on_what_others_lend() -> None:
    """A queue uses at most its own quota and what the others of its cohort lend."""

    def quota(flavor: str, **quotas: str) -> dict[str, Any]:
        return {"name": flavor, "resources": [{"name": "nvidia.com/gpu", **quotas}]}

    def program() -> None:
        _object("Cohort", "all", {"resourceGroups": [{"flavors": [quota("t4", nominalQuota="8")]}]})
        for name, quotas in (
            ("lends", {"nominalQuota": "4", "lendingLimit": "1"}),
            ("borrows", {"nominalQuota": "2"}),
        ):
            groups = [{"flavors": [quota("t4", **quotas, borrowingLimit="3")]}]
            _object("ClusterQueue", name, {"cohortName": "all", "resourceGroups": groups})
            _object("LocalQueue", name, {"clusterQueue": name}, "vision")

    queues = read_cluster_queues(record(program, project="shop", stack="dev"))
    quotas = {queue.name: quota for queue in queues for quota in queue.quotas}
    assert (quotas["lends"].nominal, quotas["lends"].cohort, quotas["lends"].borrowing_limit) == (4, 14, 3)
    assert (quotas["borrows"].nominal, quotas["borrows"].cohort) == (2, 11)
