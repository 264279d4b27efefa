"""AKS rules for clusters, except for network and pools."""

import re
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any, Final

from ebbtide.declaration.catalog import CloudKind, kubernetes_versions
from ebbtide_rehearsal.cloud import faults
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.aks.pools import pool_id
from ebbtide_rehearsal.cloud.azure.aks.power import SOURCE, refusal_if_stopped
from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.azure.errors import (
    NOT_FOUND,
    invalid,
    location_unavailable,
    missing,
    no_resource_id,
    not_found,
    refused,
)
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, Rule
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.regions import locations

QUOTA: Final = "managedClusters"
_LONGEST_GROUP: Final = 80
_VERSION: Final = re.compile(r"1\.[3-4]\d(\.\d+)?")
_API: Final = "Microsoft.ContainerService 2025-09-01, managedClusters"


def _profile(request: Request, name: str) -> Mapping[str, Any]:
    return inner(request.inputs, name)


def _region_exists(request: Request) -> str | None:
    location, known = str(request.inputs["location"]), locations(request.cloud.store, CloudKind.AKS).regions()
    if location.replace(" ", "").lower() in known:
        return None
    return location_unavailable(location, "resource type 'Microsoft.ContainerService/managedClusters'", known)


def _version(request: Request) -> str | None:
    version = str(request.inputs.get("kubernetesVersion") or "")
    tier = str(_profile(request, "sku").get("tier") or "Free").lower()
    oldest = kubernetes_versions(CloudKind.AKS, tier)[0]
    if not version or (_VERSION.fullmatch(version) and version.split(".")[:2] >= oldest.split(".")):
        return None
    return refused("AgentPoolK8sVersionNotSupported", f"Version {version} is not supported in this region.")


def _references(request: Request) -> str | None:
    subnets = {
        f"agentPoolProfiles[{number}].vnetSubnetID": pool.get("vnetSubnetID")
        for number, pool in enumerate(items(request.inputs, "agentPoolProfiles"))
    }
    for path, value in {**subnets, "diskEncryptionSetID": request.inputs.get("diskEncryptionSetID")}.items():
        if value and not str(value).startswith("/"):
            return no_resource_id(str(value), f"properties.{path}")
    return None


def _has_pools(request: Request) -> str | None:
    given: list[Mapping[str, Any]] = items(request.inputs, "agentPoolProfiles")
    if request.old is not None:
        return None
    if not given:
        return missing("agentPoolProfiles")
    if all(pool.get("mode") != "System" for pool in given):
        return refused("MustDefineAtLeastOneSystemPool", "Must define at least one system pool.")
    return None


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


def _has_an_identity(request: Request) -> str | None:
    identity = _profile(request, "identity")
    if not identity and not request.inputs.get("servicePrincipalProfile"):
        return missing("servicePrincipalProfile")
    for identity_id in items(identity, "userAssignedIdentities"):
        if request.cloud.lacks(str(identity_id)):
            return not_found(str(identity_id))
    return None


def _has_a_host_name(request: Request) -> str | None:
    if request.inputs.get("dnsPrefix") or request.inputs.get("fqdnSubdomain"):
        return None
    return missing("dnsPrefix")


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


def _workload_identity(request: Request) -> str | None:
    enabled = inner(_profile(request, "securityProfile"), "workloadIdentity").get("enabled")
    if not enabled or _profile(request, "oidcIssuerProfile").get("enabled"):
        return None
    return refused("BadRequest", "Enabling workload identity requires the OIDC issuer to be enabled.")


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


def _networks(request: Request) -> str | None:
    for text in items(_profile(request, "apiServerAccessProfile"), "authorizedIPRanges"):
        try:
            ip_network(str(text))
        except ValueError:
            details = f"{text} is not an IP address or a range in CIDR notation"
            return invalid("apiServerAccessProfile.authorizedIPRanges", details)
    return None


def _private(request: Request) -> str | None:
    access = _profile(request, "apiServerAccessProfile")
    is_private = access.get("enablePrivateCluster") is True
    was = inner(request.old.state, "apiServerAccessProfile") if request.old is not None else {}
    if request.old is not None and is_private != (was.get("enablePrivateCluster") is True):
        return refused(
            "PropertyChangeNotAllowed",
            "Changing property 'apiServerAccessProfile.enablePrivateCluster' is not allowed.",
        )
    if is_private and items(access, "authorizedIPRanges"):
        return invalid("apiServerAccessProfile.authorizedIPRanges", "a private cluster has none")
    nameless = access.get("privateDNSZone") == "none"
    if is_private and nameless and access.get("enablePrivateClusterPublicFQDN") is False:
        return invalid("apiServerAccessProfile.privateDNSZone", "none needs a public FQDN")
    return None


def _keys(request: Request) -> str | None:
    kms = inner(_profile(request, "securityProfile"), "azureKeyVaultKms")
    if kms.get("enabled") and not kms.get("keyId"):
        return missing("securityProfile.azureKeyVaultKms.keyId")
    if request.old is not None and request.inputs.get("diskEncryptionSetID") != request.old.state.get(
        "diskEncryptionSetID"
    ):
        return refused(
            "PropertyChangeNotAllowed", "Changing property 'properties.diskEncryptionSetID' is not allowed."
        )
    return None


def _node_group(request: Request) -> str | None:
    name = request.inputs.get("nodeResourceGroup")
    if name is None or request.old is not None:
        return None
    if len(name) > _LONGEST_GROUP:
        return invalid("nodeResourceGroup", f"it has more than {_LONGEST_GROUP} characters")
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


RULES: Final = (
    Rule("a cluster that runs", SOURCE, _runs),
    Rule("a region of AKS", "Azure/AKS#5099; catalog/data/locations.csv", _region_exists),
    Rule("a version", "dspace-group/simphera-reference-architecture-azure#29", _version),
    Rule("references by resource ids", "hashicorp/terraform-provider-azurerm#1166", _references),
    Rule("born with a system pool", "Azure/ARO-HCP#629; Azure/AKS#1568", _has_pools),
    Rule("no new pool through the cluster", "pulumi/pulumi-azure-native#579", _no_new_pool),
    Rule("an identity", _API, _has_an_identity),
    Rule("a host name", _API, _has_a_host_name),
    Rule("no local accounts only with Entra", f"{_API}, disableLocalAccounts", _local_accounts),
    Rule("Azure RBAC only with Entra", "azure-aks-docs, manage-azure-rbac (2026)", _azure_rbac),
    Rule(
        "workload identity only with an issuer",
        "azure-aks-docs, workload-identity-deploy-cluster (2026)",
        _workload_identity,
    ),
    Rule(
        "an issuer stays", "azure-aks-docs, use-oidc-issuer (2026); Azure/AKS-Construction#531", _issuer_stays
    ),
    Rule("cost analysis only on paid tiers", f"{_API}, ManagedClusterCostAnalysis", _cost_analysis),
    Rule("networks that parse", "azure-aks-docs, api-server-authorized-ip-ranges (2026)", _networks),
    Rule("a private API server", "azure-aks-docs, private-clusters (2026-08)", _private),
    Rule("keys", "azure-aks-docs, use-kms-etcd-encryption; azure-disk-customer-managed-keys (2026)", _keys),
    Rule("a node resource group of its own", "azure-aks-docs, faq (2026)", _node_group),
    Rule("the workspace is there", "azure-aks-docs, monitor-aks (2026)", _workspace_exists),
    Rule("clusters within the quota", "azure-aks-docs, quotas-skus-regions (2026)", _quota),
)
