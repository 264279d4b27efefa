"""Recordings for tests, built without running a program."""

import copy
from typing import Any

from ebbtide.analysis.charges import charges
from ebbtide.analysis.policy.check import Finding, check, policy_of
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording, Resource

GKE = "gcp:container/cluster:Cluster"
GKE_POOL = "gcp:container/nodePool:NodePool"
AKS = "azure-native:containerservice:ManagedCluster"
AKS_POOL = "azure-native:containerservice:AgentPool"

_INPUTS: dict[str, dict[str, Any]] = {
    GKE: {
        "name": "train",
        "location": "us-central1-a",
        "removeDefaultNodePool": True,
        "resourceLabels": {"ebbtide-expires": "2026-11-22t20-00z"},
        "privateClusterConfig": {"enablePrivateNodes": True},
        "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}},
    },
    GKE_POOL: {
        "name": "cpu",
        "cluster": "train",
        "location": "us-central1-a",
        "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4},
        "nodeConfig": {
            "machineType": "n2-standard-8",
            "spot": True,
            "labels": {"ebbtide.dev/pool": "cpu"},
            "taints": [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}],
        },
    },
    AKS: {
        "resourceName": "train",
        "location": "eastus",
        "tags": {"ebbtide-expires": "2026-11-22t20-00z"},
        "apiServerAccessProfile": {"authorizedIPRanges": ["203.0.113.0/24"]},
        "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}],
    },
    AKS_POOL: {
        "agentPoolName": "cpu",
        "resourceName": "train",
        "mode": "User",
        "vmSize": "Standard_D8s_v5",
        "enableAutoScaling": True,
        "minCount": 0,
        "maxCount": 4,
        "nodeTaints": ["ebbtide.dev/pool=cpu:NoSchedule"],
    },
}


def resource(type_: str, changes: dict[str, Any] | None = None, **options: Any) -> Resource:
    """A resource that breaks no rule, with some inputs changed by dotted path; None removes one."""
    inputs = copy.deepcopy(_INPUTS.get(type_, {}))
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        target: dict[str, Any] = inputs
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = value
        if value is None:
            del target[last]
    name = options.pop("name", type_.rpartition(":")[2].lower())
    urn = f"urn:pulumi:dev::ebbtide::{type_}::{name}"
    return Resource(urn=urn, type=type_, name=name, inputs=inputs, **options)


def system_pool(**changes: Any) -> Resource:
    """A GKE system pool: one on-demand node at least, no taint."""
    nodes = {"totalMinNodeCount": 1, "totalMaxNodeCount": 1}
    config = {"machineType": "e2-standard-2", **changes}
    return resource(GKE_POOL, {"name": "system", "autoscaling": nodes, "nodeConfig": config}, name="system")


def findings(
    *resources: Resource, policy: object = None, stack: str = "dev", **options: Any
) -> tuple[Finding, ...]:
    """Findings of a stack of these resources."""
    recording = Recording(project="ebbtide", stack=stack, resources=resources)
    clusters, pools = read_clusters(recording), read_pools(recording)
    cost = charges(recording, clusters, pools)
    return check(recording, clusters, pools, cost, policy_of(policy), **options)
