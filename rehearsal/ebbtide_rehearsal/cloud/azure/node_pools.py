"""AKS node pools, standalone or inside their cluster, and AKS's refusals that no rule of a declaration has.

azure-native replaces a pool only if its machine type changes (`provider/pkg/gen/replacement.go`, 3.29); AKS
rejects the other changes here. An omitted property is unchanged. A stopped cluster can only be started or
deleted (azure-aks-docs, start-stop-cluster, 2026); the message is that for a second stop
(MicrosoftDocs/azure-docs#85161).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ebbtide.analysis.recording.assumed_azure import RESOURCES
from ebbtide.declaration.catalog.machines import Machine, quota_names
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud import store as faults
from ebbtide_rehearsal.cloud.azure import ids, nodes
from ebbtide_rehearsal.cloud.azure.arm import (
    CLOUD,
    CONFLICT,
    Arm,
    Request,
    ResourceKind,
    Rule,
    fixed,
    inner,
    items,
    missing,
    refused,
)
from ebbtide_rehearsal.cloud.azure.kinds import AGENT_POOL
from ebbtide_rehearsal.cloud.azure.nodes import (
    FIXED,
    SPOT_TAINT,
    PoolRequest,
    PoolRule,
    default_disk_gib,
    machine,
    node_pool,
)
from ebbtide_rehearsal.cloud.fake_provider import first_refusal
from ebbtide_rehearsal.cloud.pools import forget, register
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.store import InjectedFault, Resource, Store

SOURCE: Final = "azure-aks-docs, start-stop-cluster (2026); MicrosoftDocs/azure-docs#85161"


def power(cluster: Mapping[str, Any]) -> str:
    """Return the power state from a cluster's state: `Running` or `Stopped`."""
    return str(inner(cluster, "powerState").get("code") or "Running")


def message(cluster: Mapping[str, Any], doing: str) -> str:
    """Format AKS's message for an operation that the power state forbids.

    Args:
        doing: the operation, such as `starting`.
    """
    return (
        f"managed cluster is in Provisioning State({cluster['provisioningState']}) and Power "
        f"State({power(cluster)}), {doing} cannot be performed"
    )


def refusal_if_stopped(cluster: Mapping[str, Any], doing: str) -> str | None:
    """Return the refusal of an operation on a stopped cluster; None on a running one."""
    return refused("BadRequest", message(cluster, doing)) if power(cluster) == "Stopped" else None


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] # JSON
    return value.lower() if isinstance(value, str) else value


def _same_properties(pool: PoolRequest) -> str | None:
    old: Mapping[str, Any] = pool.old.state if pool.old is not None else {}
    implied: Mapping[str, Any] = {"scaleSetPriority": "Regular", "gpuProfile": {"driver": "Install"}}
    for name in FIXED if pool.old is not None else ():
        new = pool.given.get(name)
        if new is not None and _comparable(old.get(name, implied.get(name))) != _comparable(new):
            return fixed(f"properties.{name}")
    return None


def _same_machine(pool: PoolRequest) -> str | None:
    new = pool.given.get("vmSize")
    if pool.old is None or new is None or new == pool.old.state["vmSize"]:
        return None
    return refused(
        "PropertyChangeNotAllowed",
        "Changing property 'agentPoolProfile.vmSize' is not allowed in an api-version before "
        "'2026-01-02-preview'.",
        target="agentPoolProfile.vmSize",
    )


def _a_system_pool_remains(pool: PoolRequest) -> str | None:
    was_system = pool.old is not None and pool.old.state["mode"] == "System"
    if not was_system or pool.is_system:
        return None
    others = pool.cloud.below(pool.cluster, AGENT_POOL)
    if any(other.state["mode"] == "System" and other.state["name"] != pool.name for other in others):
        return None
    return refused("MustDefineAtLeastOneSystemPool", "Must define at least one system pool.")


def _spot_taint_stays(pool: PoolRequest) -> str | None:
    """Reject a change that omits the spot taint added by AKS."""
    if pool.old is None or not pool.is_spot or SPOT_TAINT in items(pool.given, "nodeTaints"):
        return None
    return fixed("properties.nodeTaints")


def _count_is_set(pool: PoolRequest) -> str | None:
    """Reject a pool without a count, unless the autoscaler sets it (Azure/AKS#1627, Azure/ARO-HCP#3659). A
    pool whose autoscaler is enabled by this change and whose type is omitted needs a count."""
    if pool.given.get("count") is not None:
        return None
    if pool.is_autoscaled:
        is_new_to_it = pool.old is not None and not pool.old.state.get("enableAutoScaling")
        is_asked_for = is_new_to_it and pool.given.get("type") is None
    else:
        is_asked_for = pool.old is None or pool.old.state.get("count") is None
    return missing("properties.count") if is_asked_for else None


def _size_is_sold(pool: PoolRequest) -> str | None:
    size = str(pool.properties["vmSize"])
    machine_type, known = machine(pool.cloud.store, size), locations(pool.cloud.store, CloudKind.AKS)
    region = str(pool.location).replace(" ", "").lower()
    if machine_type is not None:
        offering = known.offering(machine_type.family, "")
        if offering is None or known.offers(offering, region, machine_type.name):
            return None
    return refused(
        "BadRequest",
        f"The VM size of {size} is not allowed in your subscription in location '{pool.location}'. For more "
        "details, please visit https://aka.ms/aks/quotas-skus-regions",
    )


REGIONAL: Final = "cores"
"""Total Regional vCPUs; spot counts towards `lowPriorityCores` only."""


def _names(machine_type: Machine, *, spot: bool) -> tuple[str, ...]:
    own = quota_names(CloudKind.AKS, machine_type.family, machine_type.accelerator, spot=spot)
    return own if spot else (*own, REGIONAL)


def _used(pool: PoolRequest, name: str) -> int:
    """Return the vCPUs used by other pools."""
    return sum(_vcpus(pool.cloud.store, other.state, name) for other in _others(pool))


def _others(pool: PoolRequest) -> Iterator[Any]:
    own = f"{pool.cluster}/agentPools/{pool.name}"
    for other in pool.cloud.store.resources(CLOUD, AGENT_POOL):
        if not ids.same(other.id, own):
            yield other


def _vcpus(store: Store, state: Mapping[str, Any], name: str) -> int:
    machine_type = machine(store, str(state["vmSize"]))
    if machine_type is None or name not in _names(machine_type, spot=state.get("scaleSetPriority") == "Spot"):
        return 0
    return machine_type.vcpus * int(state.get("count") or 0)


def _within(pool: PoolRequest) -> str | None:
    needed = pool.machine.vcpus * pool.nodes
    quotas = pool.cloud.store.faults(faults.QUOTA).values()
    for name in _names(pool.machine, spot=pool.is_spot) if needed and pool.old is None else ():
        fault = next((other for other in quotas if other.matches(name)), None)
        if fault is None:
            continue
        remaining = max(int(fault.details["limit"]) - _used(pool, name), 0)
        if needed > remaining:
            pool.cloud.store.strike(faults.QUOTA, name)
            return _exceeded(pool, fault, name, needed, remaining)
    return None


def _exceeded(pool: PoolRequest, fault: InjectedFault, name: str, needed: int, remaining: int) -> str:
    pool.cloud.store.log_event(
        "quota-exceeded",
        f"Node pool {pool.name} wants {needed} vCPUs, and the quota {name} has {remaining} left of "
        f"{fault.details['limit']}.",
        pool=pool.name,
        quota=name,
    )
    if name == REGIONAL:
        return refused(
            "ErrCode_InsufficientVCPUQuota",
            f"Insufficient regional vcpu quota left for location {pool.location}. left regional vcpu "
            f"quota {remaining}, "
            f"requested quota {needed}. If you want to increase the quota, please follow this instruction: "
            "https://learn.microsoft.com/azure/quotas/view-quotas. Surge nodes would also consume vcpu "
            "quota, "
            "please consider use smaller maxSurge or use maxUnavailable to proceed upgrade without surge "
            "nodes.",
        )
    return refused(
        "ErrCode_InsufficientVCPUQuota",
        f"Insufficient vcpu quota requested {needed}, remaining {remaining} for family {name} for region "
        f"{pool.location}. Surge nodes would also consume vcpu quota.",
    )


RULES: Final[tuple[PoolRule, ...]] = (
    PoolRule(
        "fixed properties",
        "pulumi/pulumi-azure-native#959; azure-aks-docs, create-node-pools (2026) and spot-node-pool "
        "(2025-04)",
        _same_properties,
    ),
    PoolRule("fixed machine type", "Azure/bicep-registry-modules#7130", _same_machine),
    PoolRule("remaining system pool", "Azure/AKS#1568", _a_system_pool_remains),
    PoolRule(
        "available machine type",
        "hashicorp-education/learn-terraform-provision-aks-cluster#15; catalog/data/offerings.csv",
        _size_is_sold,
    ),
    PoolRule("count when the autoscaler is enabled", "pulumi/pulumi-azure-native#2943", _count_is_set),
    PoolRule(
        "fixed spot taint",
        "azure-aks-docs, use-node-taints (2026); pulumi/pulumi-azure-native#959",
        _spot_taint_stays,
    ),
    PoolRule(
        "sufficient vCPU quota",
        "1ChristianAlex/motordesk#14; azure-aks-docs, quotas-skus-regions (2026)",
        _within,
    ),
)
"""Rules in the order of their check; the first broken one determines the response."""


_IMAGE: Final = "AKSUbuntu-2404gen2containerd-2026.11.01"


def pool_id(cluster: str, name: str) -> str:
    """Return the id of a node pool."""
    return f"{cluster}/agentPools/{name}"


def pools_of(arm: Arm, cluster: str) -> list[Resource]:
    """Return the node pools of a cluster, those of its inline list first."""
    return sorted(arm.below(cluster, AGENT_POOL), key=lambda pool: bool(pool.urn))


def state_of(pool: PoolRequest) -> dict[str, Any]:
    """Return the state of a pool."""
    properties = pool.properties
    version = str(properties.get("orchestratorVersion") or pool.cluster_state["currentKubernetesVersion"])
    disk = properties.get("osDiskSizeGB") or default_disk_gib(pool.machine)
    state = {
        **properties,
        "name": pool.name,
        "count": pool.nodes if pool.old is None or properties.get("count") is None else properties["count"],
        "osDiskSizeGB": disk,
        "nodeLabels": nodes.answered_labels(pool),
        "nodeTaints": nodes.answered_taints(pool),
        "orchestratorVersion": version,
        "currentOrchestratorVersion": version if version.count(".") > 1 else PINS["kubernetes"].version,
        "nodeImageVersion": _IMAGE,
        "provisioningState": "Succeeded",
    }
    if pool.is_spot:
        state = {"scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1, **state}
    if pool.machine.accelerator:
        state = {"gpuProfile": {"driver": "Install"}, **state}
    return state


def settle(pool: PoolRequest, urn: str, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> Resource:
    """Save a pool, register it with the controllers of nodes, and log it."""
    resource = Resource(CLOUD, pool_id(pool.cluster, pool.name), AGENT_POOL, urn, inputs, state)
    pool.cloud.store.put(resource)
    register(pool.cloud.store, node_pool(pool, state))
    action = "created" if pool.old is None else "changed"
    pool.cloud.store.log_event(
        f"node-pool-{action}", f"The node pool {pool.name} was {action}.", id=resource.id
    )
    return resource


def end(arm: Arm, pool: Resource) -> None:
    """Remove a pool's nodes."""
    cluster, name = pool.id.rpartition("/agentPools/")[::2]
    forget(arm.store, cluster, name)
    arm.store.log_event("node-pool-deleted", f"The node pool {name} was deleted.", id=pool.id)


def last_pool(arm: Arm, pool: Resource) -> str | None:
    """Return the refusal to delete the last pool of a cluster, or its last system pool; None for others.

    Sources: pulumi/pulumi-azure-native#1575, Azure/AKS#2560; azure-aks-docs, create-node-pools (2026).
    """
    cluster = pool.id.rpartition("/agentPools/")[0]
    others = [other for other in pools_of(arm, cluster) if not ids.same(other.id, pool.id)]
    if not others:
        return refused("OperationNotAllowed", "There has to be at least one agent pool.", status=CONFLICT)
    if pool.state["mode"] == "System" and all(other.state["mode"] != "System" for other in others):
        return refused("MustDefineAtLeastOneSystemPool", "Must define at least one system pool.")
    return None


def _request(request: Request) -> PoolRequest:
    cluster_id, name = request.id.rpartition("/agentPools/")[::2]
    cluster = request.cloud.find(cluster_id)
    if cluster is None:
        raise LookupError(cluster_id)  # a missing parent was rejected before
    in_id = ids.names(RESOURCES[AGENT_POOL].id)
    given = {key: value for key, value in request.inputs.items() if key not in in_id}
    return PoolRequest(request.cloud, cluster.id, cluster.state, name, given, request.old)


def _apply(request: Request, pool: Resource) -> None:
    with request.cloud.operations.on(request.id, "Creating" if request.old is None else "Updating"):
        settle(_request(request), request.urn, pool.inputs, pool.state)


def _of_stopped(request: Request) -> str | None:
    return refusal_if_stopped(_request(request).cluster_state, "creating or updating agent pools")


def _before_delete(arm: Arm, pool: Resource) -> str | None:
    cluster = arm.find(pool.id.rpartition("/agentPools/")[0])
    stopped = refusal_if_stopped(cluster.state, "deleting agent pools") if cluster else None
    message = stopped or last_pool(arm, pool)
    if message is None:
        with arm.operations.on(pool.id, "Deleting"):
            end(arm, pool)
    return message


KINDS: Final = (
    ResourceKind(
        type=AGENT_POOL,
        api_version="2025-09-01",
        rules=(
            Rule("running cluster", SOURCE, _of_stopped),
            Rule(
                "rules of node pools",
                "aks/pool_rules.py",
                lambda request: first_refusal(RULES, _request(request)),
            ),
        ),
        outputs=lambda request: state_of(_request(request)),
        apply=_apply,
        before_delete=_before_delete,
    ),
)
