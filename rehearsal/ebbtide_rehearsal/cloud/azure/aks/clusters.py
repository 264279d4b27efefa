"""The type of a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from ebbtide.catalog import PINS
from ebbtide_rehearsal.cloud.autoscaling import dismiss, instruct
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks import autoscaler, cluster_network_rules, cluster_rules, pools
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER, CLUSTER_PATH, DISK, POOL_NAME
from ebbtide_rehearsal.cloud.azure.aks.asked import PoolAsked
from ebbtide_rehearsal.cloud.azure.arm import TENANT, Arm
from ebbtide_rehearsal.cloud.azure.identities import principals
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource

_LONGEST_GROUP: Final = 80
_MINOR: Final = 1

_KEPT: Final = ("apiServerAccessProfile", "oidcIssuerProfile", "securityProfile", "autoScalerProfile", "sku")
"""What stays as it is where a change leaves it out."""

_NETWORK: Final = {
    "networkPlugin": "azure",
    "loadBalancerSku": "standard",
    "outboundType": "loadBalancer",
    "serviceCidr": "10.0.0.0/16",
    "dnsServiceIP": "10.0.0.10",
    "ipFamilies": ["IPv4"],
}


def _about(arm: Arm, wish: Wish) -> dict[str, Any]:
    """What pools have to know of their cluster, as it is to be."""
    name, group = ids.last(wish.id), ids.last(ids.group_of(wish.id))
    place = str(wish.inputs["location"]).replace(" ", "").lower()
    nodes = wish.inputs.get("nodeResourceGroup") or f"MC_{group}_{name}_{place}"[:_LONGEST_GROUP]
    given = str(wish.inputs.get("kubernetesVersion") or "")
    return {
        "location": wish.inputs["location"],
        "networkProfile": {**_NETWORK, **inner(wish.inputs, "networkProfile")},
        "identity": _identity(arm, wish),
        "nodeResourceGroup": wish.kept("nodeResourceGroup", lambda: nodes),
        "kubernetesVersion": given or wish.kept("kubernetesVersion", _default_version),
        "currentKubernetesVersion": _exact(given)
        if given
        else wish.kept("currentKubernetesVersion", lambda: PINS["kubernetes"].version),
    }


def _default_version() -> str:
    return PINS["kubernetes"].version.rpartition(".")[0]


def _exact(version: str) -> str:
    """The patch version that AKS takes a version for: where none is said, the newest that there is here."""
    if version.count(".") > _MINOR:
        return version
    return PINS["kubernetes"].version if version == _default_version() else f"{version}.0"


def _identity(arm: Arm, wish: Wish) -> Mapping[str, Any]:
    """Identities are asked for as a list, and answered as an object."""
    asked: Mapping[str, Any] = inner(wish.inputs, "identity")
    known = {one.id.lower(): one.state for one in principals(arm).values()}
    listed = asked.get("userAssignedIdentities")
    if listed:
        given = {
            str(name): {
                "clientId": known.get(str(name).lower(), {}).get("clientId", ""),
                "principalId": known.get(str(name).lower(), {}).get("principalId", ""),
            }
            for name in listed
        }
        return {"type": asked.get("type", "UserAssigned"), "userAssignedIdentities": given}
    own = wish.was.state.get("identity") if wish.was is not None else None
    return own or {**asked, "principalId": str(uuid4()), "tenantId": TENANT}


def _inline(arm: Arm, wish: Wish) -> Iterator[PoolAsked]:
    about = _about(arm, wish)
    for profile in items(wish.inputs, "agentPoolProfiles"):
        name = str(profile["name"])
        given = {key: value for key, value in profile.items() if key != "name"}
        yield PoolAsked(arm, wish.id, about, name, given, arm.find(pools.pool_id(wish.id, name)))


def _pools_refused(arm: Arm, wish: Wish) -> RefusedError | None:
    return next((error for pool in _inline(arm, wish) if (error := pools.refusal(pool)) is not None), None)


def _outputs(arm: Arm, wish: Wish) -> Mapping[str, Any]:
    kept = {
        name: wish.was.state[name]
        for name in _KEPT
        if wish.was is not None and name in wish.was.state and name not in wish.inputs
    }
    return {**kept, **_about(arm, wish), **_addresses(wish), **_profiles(arm, wish)}


def _addresses(wish: Wish) -> Mapping[str, Any]:
    place = str(wish.inputs["location"]).replace(" ", "").lower()
    prefix = wish.inputs.get("dnsPrefix") or wish.inputs.get("fqdnSubdomain")
    host = wish.kept("fqdn", lambda: f"{prefix}-{uuid4().hex[:8]}.hcp.{place}.azmk8s.io")
    return {
        "fqdn": host,
        "azurePortalFQDN": host.replace(".hcp.", ".portal.hcp.", 1),
        "resourceUID": wish.kept("resourceUID", lambda: uuid4().hex[:24]),
        "powerState": {"code": "Running"},
        "provisioningState": "Succeeded",
        "maxAgentPools": 100,
    }


def _profiles(arm: Arm, wish: Wish) -> Mapping[str, Any]:
    """What AKS adds to what is asked for: a directory, an issuer, an identity for kubelet."""
    found: dict[str, Any] = {}
    entra = wish.inputs.get("aadProfile")
    if entra:
        found["aadProfile"] = {**entra, "tenantID": TENANT}
    issuer = inner(wish.inputs, "oidcIssuerProfile")
    old = inner(wish.was.state, "oidcIssuerProfile") if wish.was is not None else {}
    if issuer.get("enabled"):
        place = str(wish.inputs["location"]).replace(" ", "").lower()
        address = f"https://{place}.oic.prod-aks.azure.com/{TENANT}/{uuid4()}/"
        found["oidcIssuerProfile"] = {**issuer, "issuerURL": old.get("issuerURL", address)}
    found["identityProfile"] = wish.kept("identityProfile", lambda: _kubelet(arm, wish))
    return found


def _kubelet(arm: Arm, wish: Wish) -> Mapping[str, Any]:
    group, name = _about(arm, wish)["nodeResourceGroup"], ids.last(wish.id)
    place = ids.identity(ids.GROUP, arm.subscription, {"resourceGroupName": group})
    identities = f"{place}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    return {
        "kubeletidentity": {
            "clientId": str(uuid4()),
            "objectId": str(uuid4()),
            "resourceId": f"{identities}/{name}-agentpool",
        }
    }


def _happens(arm: Arm, wish: Wish, made: Resource) -> None:
    with arm.operations.on(wish.id, "Creating" if wish.was is None else "Updating"):
        if wish.was is None:
            arm.clusters.create(made.id, "aks")
        instruct(arm.store, made.id, autoscaler.autoscaling(made.state))
        for pool in _inline(arm, wish):
            state = pools.state_of(pool)
            if pool.was is None or pool.was.state != state:
                pools.settle(pool, pool.was.urn if pool.was is not None else "", pool.given, state)


def end(arm: Arm, cluster: Resource) -> None:
    """Stop a cluster, whose pools go with it."""
    with arm.operations.on(cluster.id, "Deleting"):
        for pool in pools.pools_of(arm, cluster.id):
            pools.end(arm, pool)
        dismiss(arm.store, cluster.id)
        arm.clusters.delete(cluster.id)


def _seen(arm: Arm, cluster: Resource) -> Mapping[str, Any]:
    """A cluster shows all of its pools, whoever has made them."""
    return {
        **cluster.state,
        "agentPoolProfiles": [dict(one.state) for one in pools.pools_of(arm, cluster.id)],
    }


_REPLACED_NETWORK: Final = (
    "serviceCidr",
    "serviceCidrs",
    "dnsServiceIP",
    "networkMode",
    "networkPlugin",
    "networkPluginMode",
    "podCidr",
    "networkDataplane",
    "networkPolicy",
    "outboundType",
)
"""Since azure-native 3.21 (pulumi/pulumi-azure-native#4771); before that all of `networkProfile`."""

KINDS: Final = (
    Kind(
        token=CLUSTER,
        api_version="2025-09-01",
        path=CLUSTER_PATH,
        needed=("location",),
        replaces=frozenset(
            {
                "diskEncryptionSetID",
                "dnsPrefix",
                "fqdnSubdomain",
                "linuxProfile",
                "location",
                "nodeResourceGroup",
                "windowsProfile",
                *(f"networkProfile.{name}" for name in _REPLACED_NETWORK),
            }
        ),
        limits={
            "resourceName": Limit(
                r"^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$", shortest=1, longest=63
            ),
            "agentPoolProfiles[].name": POOL_NAME,
            "agentPoolProfiles[].osDiskSizeGB": DISK,
        },
        defaults={
            "disableLocalAccounts": False,
            "enableRBAC": True,
            "sku": {"name": "Base", "tier": "Free"},
            "supportPlan": "KubernetesOfficial",
        },
        inside=("agentPoolProfiles",),
        unknown=("identity.userAssignedIdentities", "oidcIssuerProfile.issuerURL"),
        refusals=(
            *cluster_rules.RULES,
            *cluster_network_rules.RULES,
            *autoscaler.RULES,
            Refusal("the rules of node pools", "aks/pools.py, RULES", _pools_refused),
        ),
        outputs=_outputs,
        happens=_happens,
        leaving=end,
        seen=_seen,
        events="cluster",
    ),
)
