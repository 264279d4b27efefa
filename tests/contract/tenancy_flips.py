"""Flips of the fields of queues, teams and add-ons, and of those that reach the rules alone."""

from typing import Any

from ebbtide.declaration.model.addons import ADD_ONS
from tests.contract.flips import ADMINS, AKS_EXISTING, GKE_CPU, GKE_EXISTING, GKE_GPU, Flip, flip, with_value
from tests.declarations import AKS, GKE, changed

TEAM = changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}], teams=[{"name": "vision"}])
T4 = next(at for at, pool in enumerate(GKE["pools"]) if pool["name"] == "t4")
AKS_TEAM = changed(AKS, teams=[{"name": "vision"}])
STEADY = changed(
    GKE,
    pools=[*GKE["pools"], {"name": "steady", "machine": "n2-standard-8", "nodes": {"max": 2}}],
    queues=[{"name": "cpus", "pools": ["cpu", "steady"]}],
)
AKS_STEADY = changed(AKS, queues=[{"name": "cpus", "pools": ["cpu", "steady"]}])
TWO_QUEUES = [{"name": "gpus", "pools": ["t4"]}, {"name": "cpus", "pools": ["cpu"]}]


def team(field: str, key: str, value: Any, before: Any = None) -> Flip:
    """Set a field of the one team, whose cluster has a queue over its T4 pool."""
    return flip(field, TEAM, f"teams.0.{key}", value, before)


ROOMY = with_value(changed(GKE, lifetime={"hours": 8}), "pools.0.machine", "e2-standard-8")
AKS_ROOMY = with_value(AKS, "pools.0.machine", "Standard_D8s_v5")
TENANCY = [
    flip("Pool.resource_flavor", TEAM, f"pools.{T4}.resourceFlavor", "theirs"),
    flip("Queue.name", TEAM, "queues.0.name", "others"),
    flip("Queue.pools", TEAM, "queues.0.pools", ["t4", "a100"]),
    flip("Queue.local_queues", TEAM, "queues.0.localQueues", [{"namespace": "default"}]),
    flip(
        "LocalQueue.namespace",
        TEAM,
        "queues.0.localQueues",
        [{"namespace": "lab"}],
        [{"namespace": "default"}],
    ),
    flip(
        "LocalQueue.name",
        TEAM,
        "queues.0.localQueues",
        [{"namespace": "default", "name": "mine"}],
        [{"namespace": "default"}],
    ),
    flip("Cohort.name", TEAM, "cohort.name", "research"),
    flip("Queue.borrowing_limit", TEAM, "queues.0.borrowingLimit", {"t4": 1}),
    flip("Cohort.preemption", TEAM, "cohort.preemption", {"withinClusterQueue": "Never"}),
    *(
        flip(f"{owner}.queueing_strategy", TEAM, f"{path}.queueingStrategy", "StrictFIFO")
        for owner, path in (("Queue", "queues.0"), ("Cohort", "cohort"))
    ),
    *(
        flip(f"Preemption.{field}", TEAM, f"queues.0.preemption.{key}", "Never")
        for field, key in (
            ("within_cluster_queue", "withinClusterQueue"),
            ("reclaim_within_cohort", "reclaimWithinCohort"),
        )
    ),
    flip("Queue.fallback", STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
    flip(
        "GkeConsolidation.delay_minutes",
        with_value(STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
        "cloud.consolidation.delayMinutes",
        2,
    ),
    flip("Queue.fallback", AKS_STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
    Flip(
        "Queue.together",
        *(
            changed(AKS, queues=[{"name": "gpus", "pools": ["t4"], "together": together}])
            for together in (False, True)
        ),
    ),
    team("Team.name", "name", "robots"),
    team("Team.members", "members", ["vision@acme.example"]),
    flip("Team.members", AKS_TEAM, "teams.0.members", ADMINS),
    team("Team.namespace", "namespace", {"name": "eyes"}),
    team("Namespace.name", "namespace", {"name": "eyes"}, {"name": "ears"}),
    team("Namespace.create", "namespace", {"name": "eyes", "create": False}, {"name": "eyes"}),
    team(
        "Namespace.pod_security", "namespace", {"name": "eyes", "podSecurity": "restricted"}, {"name": "eyes"}
    ),
    team("Team.require_queue", "requireQueue", value=False),
    flip(
        "Team.interactive",
        changed(TEAM, teams=[{"name": "vision", "members": ["vision@acme.example"]}]),
        "teams.0.interactive",
        value=True,
    ),
    team("Team.load_balancers", "loadBalancers", value=True),
    *(team(f"Limits.{name}", "limits", {name: 10}, {}) for name in ("jobs", "pods", "objects")),
    flip(
        "Limits.experiments",
        changed(TEAM, addons={"katib": {}}),
        "teams.0.limits",
        {"experiments": 10},
    ),
    team("Team.queues", "queues", [{"queue": "gpus", "as": "mine"}]),
    team("QueueUse.as_", "queues", [{"queue": "gpus", "as": "mine"}], [{"queue": "gpus"}]),
    team(
        "QueueUse.cluster_queue",
        "queues",
        [{"queue": "gpus", "clusterQueue": "research"}],
        [{"queue": "gpus"}],
    ),
    Flip(
        "QueueUse.queue",
        *(
            with_value(
                changed(GKE, queues=TWO_QUEUES, teams=[{"name": "vision"}]),
                "teams.0.queues",
                [{"queue": queue}],
            )
            for queue in ("gpus", "cpus")
        ),
    ),
    team("Team.guarantee", "guarantee", {"t4": 1}),
    team("Team.borrowing_limit", "borrowingLimit", {"t4": 1}),
    flip(
        "Team.lending_limit",
        with_value(TEAM, "teams.0.guarantee", {"t4": 2}),
        "teams.0.lendingLimit",
        {"t4": 1},
    ),
    team("Team.weight", "weight", 3),
    team("Team.bucket", "bucket", {}),
    team("Bucket.keep", "bucket", {"keep": False}, {}),
    team("Team.registry", "registry", {}),
    flip("Team.registry", AKS_TEAM, "teams.0.registry", {}),
    team("Registry.keep", "registry", {"keep": False}, {}),
    flip("Registry.keep", AKS_TEAM, "teams.0.registry", {"keep": False}, {}),
    team("Registry.immutable_tags", "registry", {"immutableTags": True}, {}),
    team("Registry.delete_untagged_days", "registry", {"deleteUntaggedDays": 30}, {}),
    team("Team.volume", "volume", {}),
    flip(
        "Team.storage_name",
        changed(GKE, teams=[{"name": "vision", "bucket": {}, "registry": {}}]),
        "teams.0.storageName",
        "sight",
    ),
    flip(
        "Team.storage_name",
        changed(AKS, teams=[{"name": "vision", "volume": {"kind": "azure-files"}}]),
        "teams.0.storageName",
        "sight",
    ),
    team("Volume.kind", "volume", {"kind": "filestore"}, {}),
    team("Volume.size_gib", "volume", {"kind": "filestore", "sizeGib": 2048}, {"kind": "filestore"}),
    Flip(
        "Volume.size_gib",
        *(
            changed(AKS, teams=[{"name": "vision", "volume": {"kind": "azure-files", "sizeGib": size}}])
            for size in (100, 200)
        ),
    ),
]
ADDONS = [
    flip("Addons.drivers", with_value(GKE_GPU, "pools.1.image", "ubuntu"), "addons.drivers", "daemonset"),
    flip("Addons.drivers", AKS, "addons.drivers", "gpu-operator"),
    *(
        flip(f"Addons.{name}", AKS_ROOMY if name == "logs" else ROOMY, f"addons.{name}", {})
        for name in ADD_ONS
        if name != "kueue"
    ),
    flip("Addons.metrics", AKS_ROOMY, "addons.metrics", {}),
    flip("Addons.kueue", GKE_CPU, "addons.kueue", {}),
    flip("Kueue.replicas", ROOMY, "addons.kueue.replicas", 2),
    flip("Kueue.install", AKS_ROOMY, "addons.kueue", {"install": "managed"}, {}),
    flip("Kueue.frameworks", ROOMY, "addons.kueue.frameworks", ["ray.io/rayjob"]),
    *(
        Flip(
            f"{name}.{field}",
            *(with_value(ROOMY, f"addons.{name.lower()}", value) for value in (before, after)),
        )
        for name, digest in (
            ("Kueue", "sha256:" + "0" * 64),
            ("Trainer", "0" * 40),
            ("Katib", "0" * 40),
            ("Pipelines", "0" * 40),
        )
        for before in [{"version": "9.0.0", "digest": digest}]
        for field, after in (
            ("version", before | {"version": "9.0.1"}),
            ("digest", before | {"digest": digest[:-1] + "1"}),
        )
        if field == "digest" or name in ("Kueue", "Trainer")
    ),
    flip("Pipelines.retry", ROOMY, "addons.pipelines", {"retry": "any"}, {}),
    flip("Pipelines.existing", GKE_EXISTING, "addons.pipelines", {"existing": True}, {}),
    *(
        flip(f"{name}.existing", GKE_EXISTING, f"addons.{name.lower()}", {"existing": True}, {})
        for name in ("Kueue", "Trainer", "Katib")
    ),
    flip("Pipelines.existing", AKS_EXISTING, "addons.pipelines", {"existing": True}, {}),
    flip("Pipelines.artifacts", ROOMY, "addons.pipelines", {"artifacts": "bucket"}, {}),
    flip("Logs.retention_days", AKS_ROOMY, "addons.logs", {"retentionDays": 90}, {}),
    flip("Logs.daily_gib", AKS_ROOMY, "addons.logs", {"dailyGib": 1.0}, {}),
]
NEWER = {"name": "us-east7", "zones": ["us-east7-a"], "offers": ["n2", "e2-standard-4"]}
AKS_NEWER = {"name": "eastus3", "zones": ["1"], "offers": ["Standard_NC4as_T4_v3"]}
GKE_NEWER = with_value(with_value(GKE_CPU, "cloud.location", "us-east7-a"), "cloud.regions", [NEWER])
CHECKED = [
    flip("Gke.regions", with_value(GKE_CPU, "cloud.location", "us-east7-a"), "cloud.regions", [NEWER]),
    flip("Region.name", GKE_NEWER, "cloud.regions.0.name", "us-east9"),
    flip("Region.zones", GKE_NEWER, "cloud.regions.0.zones", ["us-east7-b"]),
    flip("Region.offers", GKE_NEWER, "cloud.regions.0.offers", []),
    flip("Aks.regions", with_value(AKS, "cloud.location", "eastus3"), "cloud.regions", [AKS_NEWER]),
    *(
        flip(
            f"{name}.version",
            with_value(ROOMY, f"addons.{name.lower()}", {"version": "9.0.0", "digest": "0" * 40}),
            f"addons.{name.lower()}.version",
            "9.0.1",
        )
        for name in ("Katib", "Pipelines")
    ),
]
"""Fields that reach the rules alone: they decide what is refused and what is warned of."""
