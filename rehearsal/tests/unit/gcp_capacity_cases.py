"""Node pools that GKE refuses for their kind of capacity, with the issue threads that the cases are from."""

from typing import Any

FLEX = {
    "nodeConfig__spot": None,
    "nodeConfig__flexStart": True,
    "nodeConfig__reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    "management__autoRepair": False,
    "initialNodeCount": 0,
}


def _reservation(kind: str) -> dict[str, Any]:
    return {"nodeConfig__reservationAffinity": {"consumeReservationType": kind}}


def total(least: int, most: int) -> dict[str, Any]:
    """Limits over all zones."""
    return {"autoscaling": {"totalMinNodeCount": least, "totalMaxNodeCount": most}}


# The pool that is changed, what is changed of it, the rule that is broken, and what the API says.
CAPACITY: list[tuple[str, dict[str, Any], str, str]] = [
    ("cpu", {"nodeConfig__preemptible": True}, "one kind of capacity", "both spot and preemptible"),
    (
        "a100",
        {"nodeConfig__spot": True},
        "one kind of capacity",
        "Queued_provisioning is not supported on spot",
    ),
    ("cpu", FLEX | {"nodeConfig__spot": True}, "one kind of capacity", "Flex start is not supported on spot"),
    # GoogleCloudPlatform/k8s-config-connector#11085
    ("a100", {"autoscaling": None}, "queued begins at zero", "requires autoscaling to be enabled"),
    ("a100", total(1, 4), "queued begins at zero", "requires the minimum node count to be 0"),
    ("a100", {"initialNodeCount": 1}, "queued begins at zero", "requires the initial node count to be 0"),
    # hashicorp/terraform-provider-google#18341
    (
        "a100",
        {"nodeConfig__reservationAffinity": None},
        "queued uses no reservation",
        "400: Queued_provisioning requires reservation affinity to be set to none, badRequest",
    ),
    (
        "cpu",
        FLEX | {"autoscaling": None},
        "flex-start is autoscaled from zero",
        "require autoscaling to be enabled",
    ),
    (
        "cpu",
        FLEX | total(1, 4),
        "flex-start is autoscaled from zero",
        "require the minimum node count to be 0",
    ),
    (
        "cpu",
        FLEX | {"initialNodeCount": 2},
        "flex-start is autoscaled from zero",
        "require the initial node count to be 0",
    ),
    ("cpu", FLEX | _reservation("ANY_RESERVATION"), "flex-start uses no reservation", "set to none"),
    # GoogleCloudPlatform/cluster-toolkit#4027
    (
        "a100",
        {"management__autoRepair": True},
        "flex-start repairs nothing",
        "Auto_repair must be false for flex start node pools.",
    ),
    ("a100", {"management": None}, "flex-start repairs nothing", "Auto_repair must be false"),
    (
        "a100",
        {"upgradeSettings": {"maxSurge": 1}},
        "flex-start has no upgrade settings",
        "Upgrade strategy SURGE is not supported for flex start node pools",
    ),
    (
        "a100",
        {"nodeConfig__maxRunDuration": "7d"},
        "run duration up to seven days",
        "Invalid value at 'node_pool.config.max_run_duration'",
    ),
    (
        "a100",
        {"nodeConfig__maxRunDuration": "604801s"},
        "run duration up to seven days",
        "to 604800s, got 604801s",
    ),
    (
        "a100",
        {"nodeConfig__maxRunDuration": "599s"},
        "run duration up to seven days",
        "must be 600s to 604800s",
    ),
    # GoogleCloudPlatform/cluster-toolkit#4531
    (
        "cpu",
        _reservation("ANY_RESERVATION"),
        "spot uses no reservation",
        "ANY_RESERVATION is not supported on spot",
    ),
    (
        "system",
        _reservation("SPECIFIC_RESERVATION"),
        "a specific reservation by name",
        "requires the key compute.googleapis.com/reservation-name",
    ),
    (
        "system",
        {
            "nodeConfig__reservationAffinity": {
                "consumeReservationType": "ANY_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["held"],
            }
        },
        "a specific reservation by name",
        "ANY_RESERVATION takes no key and values",
    ),
    (
        "a100",
        {"placementPolicy": {"type": "COMPACT"}},
        "compact placement",
        "not supported with queued_provisioning",
    ),
    (
        "cpu",
        FLEX | {"placementPolicy": {"type": "COMPACT"}},
        "compact placement",
        "not supported for flex start node pools of n2-standard-8",
    ),
    # dstackai/dstack#2591
    (
        "system",
        {"placementPolicy": {"type": "COMPACT"}},
        "compact placement",
        "Placement policy is not applicable to machine type e2-standard-4.",
    ),
    (
        "cpu",
        {"placementPolicy": {"type": "COMPACT"}, "nodeLocations": ["us-central1-a", "us-central1-b"]},
        "compact placement",
        "must be in a single zone",
    ),
    (
        "system",
        {"nodeConfig__kubeletConfig": {"shutdownGracePeriodSeconds": 60}},
        "shutdown grace of spot nodes",
        "can only be set on Spot node pools",
    ),
    (
        "cpu",
        {"nodeConfig__kubeletConfig": {"shutdownGracePeriodSeconds": 60}},
        "shutdown grace of spot nodes",
        "0, 30 or 120 seconds, got 60",
    ),
]
