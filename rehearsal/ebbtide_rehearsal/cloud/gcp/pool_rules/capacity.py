"""Rules for capacity kinds: the matrix of spot, preemptible, flex-start, queued and reservations."""

from typing import Final

from ebbtide.analysis.reading.gke import seconds as seconds_of
from ebbtide.declaration.catalog import is_tpu, machine_series
from ebbtide.declaration.catalog.machine_series import SPOT_OR_FLEX_START
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import (
    FLEX_DOCS,
    QUEUED_DOCS,
    TOOLKIT,
    PoolRequest,
    pool_rule,
)

_SHORTEST_RUN: Final = 600
_LONGEST_RUN: Final = 7 * 24 * 3600
_COMPACT_FLEX: Final = ("a3-ultragpu-", "a4-", "h4d-")
_GRACES: Final = (0, 30, 120)
_RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"


def _one_kind(pool: PoolRequest) -> str | None:
    fields = pool.fields
    spot, preemptible = fields.flag("nodeConfig.spot"), fields.flag("nodeConfig.preemptible")
    if spot and preemptible:
        return "Cannot specify both spot and preemptible."
    if (spot or preemptible) and pool.queued:
        return "Queued_provisioning is not supported on spot or preemptible node pools."
    if (spot or preemptible) and pool.scheduled:
        return "Flex start is not supported on spot or preemptible node pools."
    return None


def _not_on_demand(pool: PoolRequest) -> str | None:
    if pool.machine is None or pool.machine.name not in SPOT_OR_FLEX_START:
        return None
    if pool.capacity in ("on-demand", "reservation"):
        return f"Machine type {pool.machine.name} is only supported with Spot or Flex start."
    return None


def _queued_begins_at_zero(pool: PoolRequest) -> str | None:
    fields = pool.fields
    if not pool.queued:
        return None
    if not fields.has("autoscaling"):
        return "Queued_provisioning requires autoscaling to be enabled."
    least = fields.number("autoscaling.totalMinNodeCount") or fields.number("autoscaling.minNodeCount")
    if least:
        return "Queued_provisioning requires the minimum node count to be 0."
    if pool.request.old is None and (fields.number("initialNodeCount") or fields.number("nodeCount")):
        return "Queued_provisioning requires the initial node count to be 0."
    return None


def _queued_uses_no_reservation(pool: PoolRequest) -> str | None:
    if pool.queued and pool.reservation != "NO_RESERVATION":
        return "Queued_provisioning requires reservation affinity to be set to none"
    return None


def _flex_is_autoscaled(pool: PoolRequest) -> str | None:
    if not pool.scheduled:
        return None
    if not pool.fields.has("autoscaling"):
        return "Flex start node pools require autoscaling to be enabled."
    least = pool.fields.number("autoscaling.totalMinNodeCount") or pool.fields.number(
        "autoscaling.minNodeCount"
    )
    if least:
        return "Flex start node pools require the minimum node count to be 0."
    if pool.request.old is None and pool.fields.number("initialNodeCount"):
        return "Flex start node pools require the initial node count to be 0."
    return None


def _flex_uses_no_reservation(pool: PoolRequest) -> str | None:
    if pool.scheduled and pool.reservation != "NO_RESERVATION":
        return "Flex start node pools require reservation affinity to be set to none."
    return None


def _flex_repairs_nothing(pool: PoolRequest) -> str | None:
    repairs = pool.fields.flag("management.autoRepair") or not pool.fields.has("management")
    return "Auto_repair must be false for flex start node pools." if pool.scheduled and repairs else None


def _flex_has_no_upgrade_settings(pool: PoolRequest) -> str | None:
    if pool.scheduled and pool.fields.has("upgradeSettings"):
        strategy = pool.fields.text("upgradeSettings.strategy") or "SURGE"
        return f"Upgrade strategy {strategy} is not supported for flex start node pools; only SHORT_LIVED is."
    return None


def _run_duration(pool: PoolRequest) -> str | None:
    text = pool.fields.text("nodeConfig.maxRunDuration")
    if not text:
        return None
    seconds = seconds_of(text)
    if seconds is None:
        return f"Invalid value at 'node_pool.config.max_run_duration' (google.protobuf.Duration), \"{text}\""
    if not _SHORTEST_RUN <= seconds <= _LONGEST_RUN:
        return f"Max run duration must be {_SHORTEST_RUN}s to {_LONGEST_RUN}s, got {text}."
    return None


def _spot_uses_no_reservation(pool: PoolRequest) -> str | None:
    uses = pool.reservation in ("ANY_RESERVATION", "SPECIFIC_RESERVATION", "ANY_RESERVATION_THEN_FAIL")
    if uses and pool.capacity in ("spot", "preemptible"):
        return f"Reservation affinity {pool.reservation} is not supported on spot or preemptible node pools."
    return None


def _specific_reservation(pool: PoolRequest) -> str | None:
    at = "nodeConfig.reservationAffinity"
    if pool.reservation != "SPECIFIC_RESERVATION":
        named = pool.fields.text(f"{at}.key") or pool.fields.texts(f"{at}.values")
        return f"Reservation affinity {pool.reservation} takes no key and values." if named else None
    if pool.fields.text(f"{at}.key") != _RESERVATION_KEY or not pool.fields.texts(f"{at}.values"):
        return f"Specific reservation affinity requires the key {_RESERVATION_KEY} and one reservation."
    return None


def _compact(pool: PoolRequest) -> str | None:
    if pool.fields.text("placementPolicy.type") != "COMPACT":
        return None
    machine = pool.machine
    tpu = machine is not None and is_tpu(machine.accelerator)
    if pool.queued and not tpu:
        return "Compact placement is not supported with queued_provisioning."
    if pool.scheduled and machine is not None and not machine.name.startswith(_COMPACT_FLEX) and not tpu:
        return f"Compact placement is not supported for flex start node pools of {machine.name}."
    series = machine_series(machine.name) if machine is not None else None
    if machine is not None and series is not None and not series.compact and not tpu:
        return f"Placement policy is not applicable to machine type {machine.name}."
    if len(pool.zones) > 1:
        return "Compact placement node pools must be in a single zone."
    return None


def _grace(pool: PoolRequest) -> str | None:
    seconds = pool.fields.number("nodeConfig.kubeletConfig.shutdownGracePeriodSeconds")
    if seconds is None:
        return None
    if pool.capacity != "spot":
        return "Shutdown grace period can only be set on Spot node pools."
    if seconds not in _GRACES:
        return f"Shutdown grace period must be 0, 30 or 120 seconds, got {seconds}."
    return None


_CONNECTOR: Final = "GoogleCloudPlatform/k8s-config-connector#11085"

RULES: Final = (
    pool_rule("one kind of capacity", f"{TOOLKIT}; GKE v1 API, NodeConfig.spot (2026)", _one_kind),
    pool_rule(
        "machines that are not sold on demand",
        "Compute Engine docs, accelerator-optimized-machines (2026)",
        _not_on_demand,
    ),
    pool_rule("queued begins at zero", f"{_CONNECTOR}; {QUEUED_DOCS}", _queued_begins_at_zero),
    pool_rule(
        "queued uses no reservation", "hashicorp/terraform-provider-google#18341", _queued_uses_no_reservation
    ),
    pool_rule("flex-start is autoscaled from zero", f"{FLEX_DOCS}; {TOOLKIT}", _flex_is_autoscaled),
    pool_rule("flex-start uses no reservation", FLEX_DOCS, _flex_uses_no_reservation),
    pool_rule(
        "flex-start repairs nothing",
        f"{FLEX_DOCS}; GoogleCloudPlatform/cluster-toolkit#4027",
        _flex_repairs_nothing,
    ),
    pool_rule(
        "flex-start has no upgrade settings",
        "GKE v1 API, UpgradeSettings.strategy SHORT_LIVED (2026)",
        _flex_has_no_upgrade_settings,
    ),
    pool_rule("run duration up to seven days", FLEX_DOCS, _run_duration),
    pool_rule(
        "spot uses no reservation", "GoogleCloudPlatform/cluster-toolkit#4531", _spot_uses_no_reservation
    ),
    pool_rule(
        "a specific reservation by name", "GKE docs, consuming-reservations (2026)", _specific_reservation
    ),
    pool_rule(
        "compact placement",
        f"{TOOLKIT}; GKE docs, compact-placement (2026); catalog/data/machine_series.csv; "
        "dstackai/dstack#2591",
        _compact,
    ),
    pool_rule(
        "shutdown grace of spot nodes",
        "GKE docs, spot-vms (2026-08); GoogleCloudPlatform/magic-modules#17556",
        _grace,
    ),
)
