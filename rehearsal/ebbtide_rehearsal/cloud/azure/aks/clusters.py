"""Resource type of a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from ebbtide.declaration.catalog import PINS
from ebbtide_rehearsal.cloud.autoscaling import delete_settings, put_settings
from ebbtide_rehearsal.cloud.azure.aks import autoscaler, cluster_rules, pool_rules, pools
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest
from ebbtide_rehearsal.cloud.azure.answers import outputs_of
from ebbtide_rehearsal.cloud.azure.arm import TENANT, Arm
from ebbtide_rehearsal.cloud.azure.identities import principals
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.core.resource_kind import first_refusal
from ebbtide_rehearsal.cloud.store import Resource

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
    """Return the identity; user-assigned identities are a list in inputs, and an object in the state."""
    identity: Mapping[str, Any] = inner(request.inputs, "identity")
    known = {resource.id.lower(): resource.state for resource in principals(request.cloud).values()}
    listed = identity.get("userAssignedIdentities")
    if listed:
        given = {
            str(name): {
                "clientId": known.get(str(name).lower(), {}).get("clientId", ""),
                "principalId": known.get(str(name).lower(), {}).get("principalId", ""),
            }
            for name in listed
        }
        return {"type": identity.get("type", "UserAssigned"), "userAssignedIdentities": given}
    own = request.old.state.get("identity") if request.old is not None else None
    return own or {**identity, "principalId": str(uuid4()), "tenantId": TENANT}


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
            request.cloud.find(pools.pool_id(request.id, name)),
        )


def _pools_refused(request: Request) -> str | None:
    refusals = (first_refusal(pool_rules.RULES, pool) for pool in _inline(request))
    return next(filter(None, refusals), None)


def _outputs(request: Request) -> Mapping[str, Any]:
    """Return the outputs that AKS adds: addresses, a directory, an issuer, an identity of the kubelet."""
    preserved = {
        name: request.old.state[name]
        for name in _KEPT
        if request.old is not None and name in request.old.state and name not in request.inputs
    }
    answers = outputs_of(request)
    outputs: dict[str, Any] = {
        "fqdn": answers["fqdn"],
        "azurePortalFQDN": answers["fqdn"].replace(".hcp.", ".portal.hcp.", 1),
        "identityProfile": answers["identityProfile"],
        "resourceUID": request.preserved("resourceUID", lambda: uuid4().hex[:24]),
        "powerState": {"code": "Running"},
        "provisioningState": "Succeeded",
        "maxAgentPools": 100,
    }
    if entra := request.inputs.get("aadProfile"):
        outputs["aadProfile"] = {**inner({"": entra}, ""), "tenantID": TENANT}
    issuer = inner(request.inputs, "oidcIssuerProfile")
    if issuer.get("enabled"):
        outputs["oidcIssuerProfile"] = {**answers["oidcIssuerProfile"], **issuer}
    return {**preserved, **_about(request), **outputs}


def _happens(request: Request, cluster: Resource) -> None:
    with request.cloud.operations.on(request.id, "Creating" if request.old is None else "Updating"):
        if request.old is None:
            request.cloud.clusters.create(cluster.id, "aks")
        put_settings(request.cloud.store, cluster.id, autoscaler.autoscaling(cluster.state))
        for pool in _inline(request):
            state = pools.state_of(pool)
            if pool.old is None or pool.old.state != state:
                pools.settle(pool, pool.old.urn if pool.old is not None else "", pool.given, state)


def end(arm: Arm, cluster: Resource) -> None:
    """Stop a cluster and delete its pools."""
    with arm.operations.on(cluster.id, "Deleting"):
        for pool in pools.pools_of(arm, cluster.id):
            pools.end(arm, pool)
        delete_settings(arm.store, cluster.id)
        arm.clusters.delete(cluster.id)


def _with_pools(arm: Arm, cluster: Resource) -> Mapping[str, Any]:
    """Return a cluster's state with all of its pools, including those of other resources."""
    return {
        "agentPoolProfiles": [dict(resource.state) for resource in pools.pools_of(arm, cluster.id)],
    }


KINDS: Final = (
    ResourceKind(
        type=CLUSTER,
        api_version="2025-09-01",
        inside=("agentPoolProfiles",),
        unknown=("identity.userAssignedIdentities", "oidcIssuerProfile.issuerURL"),
        rules=(
            *cluster_rules.RULES,
            Rule("rules of node pools", "aks/pool_rules.py", _pools_refused),
        ),
        outputs=_outputs,
        apply=_happens,
        before_delete=end,
        current=_with_pools,
        events="cluster",
    ),
)
