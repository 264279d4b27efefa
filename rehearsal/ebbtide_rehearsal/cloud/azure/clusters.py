"""AKS clusters, refusals that no rule of a declaration has, maintenance windows, and resource groups."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from ebbtide.autoscaler.nodes import Autoscaling
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.values.paths import value_at
from ebbtide_rehearsal.cloud import store
from ebbtide_rehearsal.cloud.azure import node_pools
from ebbtide_rehearsal.cloud.azure.arm import (
    CLOUD,
    TENANT,
    Arm,
    Request,
    ResourceKind,
    Rule,
    fixed,
    inner,
    items,
    outputs_of,
    refused,
)
from ebbtide_rehearsal.cloud.azure.kinds import (
    API_VERSIONS,
    CLUSTER,
    GROUP,
    assigned,
    end_contents,
    outputs,
)
from ebbtide_rehearsal.cloud.azure.node_pools import SOURCE, pool_id, refusal_if_stopped
from ebbtide_rehearsal.cloud.azure.nodes import PoolRequest
from ebbtide_rehearsal.cloud.fake_provider import first_refusal
from ebbtide_rehearsal.cloud.pools import delete_settings, put_settings
from ebbtide_rehearsal.cloud.store import Resource

_PROFILE: Final = "autoScalerProfile"


def _seconds(minutes: str) -> float:
    return int(minutes.removesuffix("m")) * 60


_READ: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "expander": ("expander", str),
    "scaleDownUnneededTime": ("idle_seconds", _seconds),
    "scaleDownDelayAfterAdd": ("delay_after_add_seconds", _seconds),
    "scaleDownUtilizationThreshold": ("utilization", float),
    "ignoreDaemonsetsUtilization": ("daemons_count", lambda ignored: not ignored),
    "maxGracefulTerminationSec": ("eviction_seconds", float),
    "skipNodesWithLocalStorage": ("skip_local_storage", lambda text: text == "true"),
    "skipNodesWithSystemPods": ("skip_system_pods", lambda text: text == "true"),
}
"""Settings that the fake cloud's autoscaler applies; it ignores the others."""


def autoscaling(state: Mapping[str, Any]) -> Autoscaling:
    """Return the settings of a cluster's autoscaler, with defaults for omitted ones."""
    profile = inner(state, _PROFILE)
    given: dict[str, Any] = {
        field: read(profile[name])
        for name, (field, read) in _READ.items()
        if profile.get(name) not in (None, "")
    }
    return Autoscaling(**given)


QUOTA: Final = "managedClusters"
_API: Final = "Microsoft.ContainerService 2025-09-01, managedClusters"


def _profile(request: Request, name: str) -> Mapping[str, Any]:
    return inner(request.inputs, name)


def _no_new_pool(request: Request) -> str | None:
    for pool in items(request.inputs, "agentPoolProfiles") if request.old is not None else []:
        if request.cloud.find(pool_id(request.id, str(pool["name"]))) is None:
            return refused(
                "BadRequest",
                "A new agent pool was introduced. Adding agent pools to an existing cluster is not "
                "allowed through "
                "managed cluster operations. For agent pool specific change, please use per agent pool "
                "operations: "
                "https://aka.ms/agent-pool-rest-api",
                target="agentPoolProfiles",
            )
    return None


def _issuer_stays(request: Request) -> str | None:
    was = inner(request.old.state, "oidcIssuerProfile").get("enabled") if request.old is not None else False
    if not was or _profile(request, "oidcIssuerProfile").get("enabled") is not False:
        return None
    return refused("OIDCIssuerFeatureCannotBeDisabled", "OIDC issuer feature cannot be disabled.")


def _fixed(request: Request) -> str | None:
    """Reject changes of what only a new cluster can have."""
    if request.old is None:
        return None
    own = (path for path in constraints_of(CLUSTER).fixed if not path.startswith("agentPoolProfiles."))
    for path in sorted(own):
        new, old = (value_at(values, path) for values in (request.inputs, request.old.state))
        if (new is not None or old is True) and (new or None) != (old or None):
            return fixed(path)
    if request.inputs.get("diskEncryptionSetID") != request.old.state.get("diskEncryptionSetID"):
        return fixed("properties.diskEncryptionSetID")
    return None


def _runs(request: Request) -> str | None:
    return None if request.old is None else refusal_if_stopped(request.old.state, "updating")


def _quota(request: Request) -> str | None:
    quotas = request.cloud.store.faults(store.QUOTA).values()
    fault = next((identity_id for identity_id in quotas if identity_id.matches(QUOTA)), None)
    current = len(request.cloud.store.resources(CLOUD, CLUSTER))
    if request.old is not None or fault is None or current < int(fault.details["limit"]):
        return None
    request.cloud.store.strike(store.QUOTA, QUOTA)
    return refused(
        "ManagedClusterCountExceedsQuotaLimit",
        f"Operation results in exceeding quota limits for managed clusters. Maximum allowed: "
        f"{fault.details['limit']}, Current usage: {current}, Additional requested: 1. Consider deleting "
        "unused "
        "clusters or requesting a quota increase. To request a quota increase, follow the instructions here: "
        "https://learn.microsoft.com/azure/quotas/quickstart-increase-quota-portal.",
    )


RULES: Final = (
    Rule("running cluster", SOURCE, _runs),
    Rule("no new pool through the cluster", "pulumi/pulumi-azure-native#579", _no_new_pool),
    Rule(
        "fixed OIDC issuer",
        "azure-aks-docs, use-oidc-issuer (2026); Azure/AKS-Construction#531",
        _issuer_stays,
    ),
    Rule(
        "fixed API server and disk encryption",
        "azure-aks-docs, private-clusters (2026-08) and azure-disk-customer-managed-keys (2026)",
        _fixed,
    ),
    Rule("sufficient cluster quota", "azure-aks-docs, quotas-skus-regions (2026)", _quota),
)


_MINOR: Final = 1

_KEPT: Final = ("apiServerAccessProfile", "oidcIssuerProfile", "securityProfile", "autoScalerProfile", "sku")
"""Properties that an update keeps if it omits them."""

_NETWORK: Final = {
    "networkPlugin": "azure",
    "loadBalancerSku": "standard",
    "outboundType": "loadBalancer",
    "serviceCidr": "10.0.0.0/16",
    "dnsServiceIP": "10.0.0.10",
    "ipFamilies": ["IPv4"],
}


def _about(request: Request) -> dict[str, Any]:
    """Return the part of a cluster's state that its node pools depend on."""
    given = str(request.inputs.get("kubernetesVersion") or "")
    return {
        "location": request.inputs["location"],
        "networkProfile": {**_NETWORK, **inner(request.inputs, "networkProfile")},
        "identity": _identity(request),
        "nodeResourceGroup": outputs_of(request)["nodeResourceGroup"],
        "kubernetesVersion": given or request.preserved("kubernetesVersion", _default_version),
        "currentKubernetesVersion": _exact(given)
        if given
        else request.preserved("currentKubernetesVersion", lambda: PINS["kubernetes"].version),
    }


def _default_version() -> str:
    return PINS["kubernetes"].version.rpartition(".")[0]


def _exact(version: str) -> str:
    """Return the patch version that AKS chooses for a version, by default the newest in the catalog."""
    if version.count(".") > _MINOR:
        return version
    return PINS["kubernetes"].version if version == _default_version() else f"{version}.0"


def _identity(request: Request) -> Mapping[str, Any]:
    if given := assigned(request):
        return given
    own = request.old.state.get("identity") if request.old is not None else None
    return own or {**inner(request.inputs, "identity"), "principalId": str(uuid4()), "tenantId": TENANT}


def _inline(request: Request) -> Iterator[PoolRequest]:
    cluster_state = _about(request)
    for profile in items(request.inputs, "agentPoolProfiles"):
        name = str(profile["name"])
        given = {key: value for key, value in profile.items() if key != "name"}
        yield PoolRequest(
            request.cloud,
            request.id,
            cluster_state,
            name,
            given,
            request.cloud.find(node_pools.pool_id(request.id, name)),
        )


def _pools_refused(request: Request) -> str | None:
    refusals = (first_refusal(node_pools.RULES, pool) for pool in _inline(request))
    return next(filter(None, refusals), None)


def _answers(request: Request) -> Mapping[str, Any]:
    """Return the outputs that AKS adds: addresses, a directory, an issuer, an identity of the kubelet."""
    preserved = {
        name: request.old.state[name]
        for name in _KEPT
        if request.old is not None and name in request.old.state and name not in request.inputs
    }
    answers = outputs_of(request)
    added: dict[str, Any] = {
        "fqdn": answers["fqdn"],
        "azurePortalFQDN": answers["fqdn"].replace(".hcp.", ".portal.hcp.", 1),
        "identityProfile": answers["identityProfile"],
        "resourceUID": request.preserved("resourceUID", lambda: uuid4().hex[:24]),
        "powerState": {"code": "Running"},
        "provisioningState": "Succeeded",
        "maxAgentPools": 100,
    }
    if entra := request.inputs.get("aadProfile"):
        added["aadProfile"] = {**inner({"": entra}, ""), "tenantID": TENANT}
    issuer = inner(request.inputs, "oidcIssuerProfile")
    if issuer.get("enabled"):
        added["oidcIssuerProfile"] = {**answers["oidcIssuerProfile"], **issuer}
    return {**preserved, **_about(request), **added}


def _happens(request: Request, cluster: Resource) -> None:
    with request.cloud.operations.on(request.id, "Creating" if request.old is None else "Updating"):
        if request.old is None:
            request.cloud.clusters.create(cluster.id, "aks")
        put_settings(request.cloud.store, cluster.id, autoscaling(cluster.state))
        for pool in _inline(request):
            state = node_pools.state_of(pool)
            if pool.old is None or pool.old.state != state:
                node_pools.settle(pool, pool.old.urn if pool.old is not None else "", pool.given, state)


def end(arm: Arm, cluster: Resource) -> None:
    """Stop a cluster and delete its pools."""
    with arm.operations.on(cluster.id, "Deleting"):
        for pool in node_pools.pools_of(arm, cluster.id):
            node_pools.end(arm, pool)
        delete_settings(arm.store, cluster.id)
        arm.clusters.delete(cluster.id)


def _with_pools(arm: Arm, cluster: Resource) -> Mapping[str, Any]:
    """Return a cluster's state with all of its pools, including those of other resources."""
    return {
        "agentPoolProfiles": [dict(resource.state) for resource in node_pools.pools_of(arm, cluster.id)],
    }


def _end_group(arm: Arm, group: Resource) -> None:
    """Delete the resources of a resource group."""
    for resource in arm.below(group.id, CLUSTER):
        end(arm, resource)
    end_contents(arm, group)


KINDS: Final = (
    ResourceKind(
        type=CLUSTER,
        api_version="2025-09-01",
        inside=("agentPoolProfiles",),
        unknown=("identity.userAssignedIdentities", "oidcIssuerProfile.issuerURL"),
        rules=(
            *RULES,
            Rule("rules of node pools", "aks/pool_rules.py", _pools_refused),
        ),
        outputs=_answers,
        apply=_happens,
        before_delete=end,
        current=_with_pools,
        events="cluster",
    ),
    ResourceKind(type=GROUP, api_version=API_VERSIONS[GROUP], outputs=outputs, before_delete=_end_group),
)
