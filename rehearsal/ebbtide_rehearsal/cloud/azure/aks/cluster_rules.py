"""AKS's refusals of clusters that no rule of a declaration has: state, quota, fixed properties, conflicts."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any, Final

from ebbtide_rehearsal.cloud import faults
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.aks.pools import pool_id
from ebbtide_rehearsal.cloud.azure.aks.power import SOURCE, refusal_if_stopped
from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.azure.errors import (
    NOT_FOUND,
    fixed,
    invalid,
    not_found,
    refused,
)
from ebbtide_rehearsal.cloud.azure.network import SUBNET, Range, network_of, overlapping, ranges
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, Rule
from ebbtide_rehearsal.cloud.azure.values import inner, items

_PLANNING: Final = "azure-aks-docs, concepts-network-ip-address-planning (2026)"
_SERVICES: Final = "10.0.0.0/16"
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


def _existing_identity(request: Request) -> str | None:
    for identity_id in items(_profile(request, "identity"), "userAssignedIdentities"):
        if request.cloud.lacks(str(identity_id)):
            return not_found(str(identity_id))
    return None


def _local_accounts(request: Request) -> str | None:
    is_entra = _profile(request, "aadProfile").get("managed") is True
    if request.inputs.get("disableLocalAccounts") is not True or is_entra:
        return None
    return refused(
        "BadRequest",
        "Disabling local accounts is only allowed for clusters with AKS-managed Azure AD enabled.",
    )


def _azure_rbac(request: Request) -> str | None:
    entra = _profile(request, "aadProfile")
    if not entra.get("enableAzureRBAC") or (entra.get("managed") and request.inputs.get("enableRBAC", True)):
        return None
    return invalid("aadProfile.enableAzureRBAC", "it needs AKS-managed Azure AD and Kubernetes RBAC")


def _cost_analysis(request: Request) -> str | None:
    enabled = inner(_profile(request, "metricsProfile"), "costAnalysis").get("enabled")
    if not enabled or _profile(request, "sku").get("tier") in ("Standard", "Premium"):
        return None
    return invalid("metricsProfile.costAnalysis", "it needs the tier Standard or Premium")


def _issuer_stays(request: Request) -> str | None:
    was = inner(request.old.state, "oidcIssuerProfile").get("enabled") if request.old is not None else False
    if not was or _profile(request, "oidcIssuerProfile").get("enabled") is not False:
        return None
    return refused("OIDCIssuerFeatureCannotBeDisabled", "OIDC issuer feature cannot be disabled.")


def _fixed(request: Request) -> str | None:
    """Reject changes of what only a new cluster can have."""
    if request.old is None:
        return None
    is_private = _profile(request, "apiServerAccessProfile").get("enablePrivateCluster") is True
    was_private = inner(request.old.state, "apiServerAccessProfile").get("enablePrivateCluster") is True
    if is_private != was_private:
        return fixed("apiServerAccessProfile.enablePrivateCluster")
    if request.inputs.get("diskEncryptionSetID") != request.old.state.get("diskEncryptionSetID"):
        return fixed("properties.diskEncryptionSetID")
    return None


def _node_group(request: Request) -> str | None:
    name = request.inputs.get("nodeResourceGroup")
    if name is None or request.old is not None:
        return None
    if (
        request.cloud.find(ids.identity(ids.GROUP, request.cloud.subscription, {"resourceGroupName": name}))
        is not None
    ):
        return invalid("nodeResourceGroup", f"the resource group {name} already exists")
    return None


def _workspace_exists(request: Request) -> str | None:
    config = inner(inner(_profile(request, "addonProfiles"), "omsagent"), "config")
    workspace = str(config.get("logAnalyticsWorkspaceResourceID") or "")
    if not workspace or not request.cloud.lacks(workspace):
        return None
    return refused(
        "ResourceNotFound", f"The Log Analytics workspace '{workspace}' was not found.", status=NOT_FOUND
    )


def _runs(request: Request) -> str | None:
    return None if request.old is None else refusal_if_stopped(request.old.state, "updating")


def _quota(request: Request) -> str | None:
    quotas = request.cloud.store.faults(faults.QUOTA).values()
    fault = next((identity_id for identity_id in quotas if identity_id.matches(QUOTA)), None)
    current = len(request.cloud.store.resources(CLOUD, CLUSTER))
    if request.old is not None or fault is None or current < int(fault.details["limit"]):
        return None
    request.cloud.store.strike(faults.QUOTA, QUOTA)
    return refused(
        "ManagedClusterCountExceedsQuotaLimit",
        f"Operation results in exceeding quota limits for managed clusters. Maximum allowed: "
        f"{fault.details['limit']}, Current usage: {current}, Additional requested: 1. Consider deleting "
        "unused "
        "clusters or requesting a quota increase. To request a quota increase, follow the instructions here: "
        "https://learn.microsoft.com/azure/quotas/quickstart-increase-quota-portal.",
    )


def _network(request: Request) -> Mapping[str, Any]:
    return inner(request.inputs, "networkProfile")


def _services(request: Request) -> Range:
    return ip_network(str(_network(request).get("serviceCidr") or _SERVICES))


def _subnet_ranges(request: Request) -> list[Range]:
    """Return the ranges of all known subnets in the networks of the cluster's pools."""
    subnets = [
        str(profile.get("vnetSubnetID") or "") for profile in items(request.inputs, "agentPoolProfiles")
    ]
    networks = {network_of(subnet) for subnet in subnets if subnet}
    return [
        range_
        for network in networks
        for subnet in request.cloud.below(network, SUBNET)
        for range_ in ranges(subnet.state)
    ]


def _services_beside_subnets(request: Request) -> str | None:
    services = _services(request)
    taken = next(overlapping(services, _subnet_ranges(request)), None)
    if taken is None:
        return None
    return refused(
        "ServiceCidrOverlapExistingSubnetsCidr",
        f"The specified service CIDR {services} is conflicted with an existing subnet CIDR {taken}",
        target="networkProfile.serviceCIDR",
    )


def _pods_beside_the_rest(request: Request) -> str | None:
    text = _network(request).get("podCidr")
    others = [*_subnet_ranges(request), _services(request)]
    taken = next(overlapping(ip_network(str(text)), others), None) if text else None
    if taken is None:
        return None
    return invalid("networkProfile.podCidr", f"the pod CIDR {text} overlaps {taken}")


RULES: Final = (
    Rule("running cluster", SOURCE, _runs),
    Rule("no new pool through the cluster", "pulumi/pulumi-azure-native#579", _no_new_pool),
    Rule("existing identity", _API, _existing_identity),
    Rule("disabled local accounts need Entra ID", f"{_API}, disableLocalAccounts", _local_accounts),
    Rule("Azure RBAC needs Entra ID", "azure-aks-docs, manage-azure-rbac (2026)", _azure_rbac),
    Rule(
        "fixed OIDC issuer",
        "azure-aks-docs, use-oidc-issuer (2026); Azure/AKS-Construction#531",
        _issuer_stays,
    ),
    Rule("cost analysis needs paid tier", f"{_API}, ManagedClusterCostAnalysis", _cost_analysis),
    Rule(
        "fixed API server and disk encryption",
        "azure-aks-docs, private-clusters (2026-08) and azure-disk-customer-managed-keys (2026)",
        _fixed,
    ),
    Rule("new node resource group", "azure-aks-docs, faq (2026)", _node_group),
    Rule("existing workspace", "azure-aks-docs, monitor-aks (2026)", _workspace_exists),
    Rule("sufficient cluster quota", "azure-aks-docs, quotas-skus-regions (2026)", _quota),
    Rule("services outside of existing subnets", "Azure/AKS#1117; Azure/AKS#3551", _services_beside_subnets),
    Rule("pods outside of other ranges", _PLANNING, _pods_beside_the_rest),
)
