"""Clusters as the replay of jobs with Kueue reads them: JSON, from a recorded program or a profile."""

from collections.abc import Mapping
from typing import Any, Final, cast

import yaml

from ebbtide.analysis.charges import CLOUD_NAT, charges, cloud_nat, coverages
from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.errors import EbbtideError
from ebbtide.placement.profile import PoolProfile, Profile
from ebbtide.placement.profile_sources import is_profile_text
from ebbtide.values.cloud_kind import by_cloud
from ebbtide.values.kueue_api import TYPES

_NAMESPACE: Final = "kubernetes:core/v1:Namespace"
_CHART: Final = "kubernetes:helm.sh/v4:Chart"
_ALL_NODES: Final = 10**6


class ReplayError(EbbtideError):
    """A stack cannot be replayed."""

    rule = "replay"


def recorded_cluster(name: str, recording: Recording) -> dict[str, Any]:
    """Return the cluster of a recorded program.

    Raises:
        ReplayError: the program has no placement profile.
    """
    text = next((value for value in recording.outputs.values() if is_profile_text(str(value))), None)
    if text is None:
        raise ReplayError(
            f"{name} has no placement profile among its outputs, so the capacity of its nodes is unknown. "
            "Export one, as the program of `ebbtide` projects does."
        )
    profiles = {pool.name: pool for pool in Profile.load(str(text)).pools}
    pools = read_pools(recording)
    cluster: dict[str, Any] = {
        "name": name,
        "pools": [_recorded_pool(pool, profiles[pool.name]) for pool in pools if pool.name in profiles],
        "objects": [dict(resource.inputs) for resource in recording if resource.type.startswith(TYPES)],
        "namespaces": {
            metadata["name"]: metadata.get("labels", {})
            for metadata in (
                cast("Any", resource.inputs)["metadata"]
                for resource in recording
                if resource.type == _NAMESPACE
            )
        },
        **_charges(recording),
    }
    configuration = _configuration(recording)
    return cluster | ({"configuration": configuration} if configuration else {})


def _configuration(recording: Recording) -> Mapping[str, Any] | None:
    """Return the configuration of Kueue's controller in the values of its chart, if the stack installs it."""
    for resource in recording:
        if resource.type == _CHART:
            values = cast("Mapping[str, Any]", resource.inputs.get("values") or {})
            if config := values.get("managerConfig"):
                return yaml.safe_load(config["controllerManagerConfigYaml"])
    return None


def profiled_pool(profile: PoolProfile) -> dict[str, Any]:
    """Return what a pool's profile has of it: its nodes for pods."""
    accelerator = profile.accelerator
    return {
        "name": profile.name,
        "machine": profile.machine,
        "capacity": profile.capacity,
        "labels": dict(profile.labels),
        "cpu": profile.cpu_m,
        "memory": profile.memory_mib,
        "accelerator": {
            "type": accelerator.type,
            "count": accelerator.count // accelerator.shares,
            "resource": accelerator.resource,
            "shares": accelerator.shares,
        }
        if accelerator
        else None,
        "system": profile.role == "system",
        **dict(zip(("begins", "ends"), profile.period, strict=False)),
    }


def _recorded_pool(pool: RecordedPool, profile: PoolProfile) -> dict[str, Any]:
    """Return a pool; one without its own zones has the cluster's zone, or the region, whose zones share its
    minimum and maximum."""
    initial = pool.idle_nodes if pool.initial_nodes is None else pool.initial_nodes
    autoscaled = pool.nodes.count is None
    taints, node = pool.labels_and_taints.all_taints, pool.priced_node
    return profiled_pool(profile) | {
        "cloud": pool.site.cloud.value,
        "region": pool.site.region,
        "zones": pool.zones or (by_cloud(gke=pool.site.location, aks="0")[pool.site.cloud],),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in taints
        ],
        "minimum": pool.idle_nodes if autoscaled else initial,
        "maximum": pool.max_nodes if autoscaled else initial,
        "initial": initial,
        "autoscaled": autoscaled,
        # Besides a machine that a reservation bills; None if it is unknown.
        "hourly": node.disk_amount().known if pool.reserves_machines else node.hourly(pool.capacity.kind),
        "maxRunSeconds": pool.max_run_seconds,
        "together": pool.slice_nodes,
    }


def _charges(recording: Recording) -> dict[str, Any]:
    """Return the charges besides nodes, and the gaps in all prices."""
    others, without_price, estimated = list[dict[str, Any]](), Amount(), list[str]()
    for charge in charges(recording, read_clusters(recording), read_pools(recording)):
        if charge.pool:
            without_price += charge.maximum
            estimated += charge.maximum.estimated
        elif charge.begins and charge.ends:
            period = {"begins": charge.begins, "ends": charge.ends}
            others.append({"item": charge.item, "hourly": charge.maximum.known, **period})
            without_price += charge.maximum
            estimated += charge.maximum.estimated
        elif charge.item == CLOUD_NAT:
            fixed, one, most = (cloud_nat(nodes).known for nodes in (0, 1, _ALL_NODES))
            by_nodes = {"byNode": one - fixed, "mostByNodes": most - fixed}
            others.append({"item": charge.item, "hourly": fixed, **by_nodes})
            without_price += charge.idle
        else:
            others.append({"item": charge.item, "hourly": charge.idle.known})
            without_price += charge.idle
    committed = coverages(recording, read_pools(recording))
    return {
        "charges": others,
        **({"commitments": [item.document() for item in committed]} if committed else {}),
        "withoutPrice": without_price.unknown,
        "estimated": tuple(dict.fromkeys(estimated)),
    }
