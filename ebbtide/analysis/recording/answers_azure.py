"""Azure's responses as templates: ids in Azure Resource Manager's form, and the outputs that are not inputs.

The last input in an id names the resource: `{name}` in the outputs. Previews fill in values that only Azure
knows (`{tenantId}`, `{subscriptionId}`, `{nodeResourceGroup}`, `{suffix}`, `{uuid_…}`) with assumed ones, the
rehearsal's fake cloud with its own. Sources: names of inputs and outputs are those of pulumi-azure-native
3.29.0. Host names and the OIDC issuer URL follow the AKS documentation (`use-oidc-issuer`). Not compared with
a live cloud.
"""

import base64
import json
from collections.abc import Mapping
from typing import Final

from ebbtide.analysis.recording.templates import ResourceTemplate, Template
from ebbtide.analysis.recording.values import Plain

GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"

_PROVIDERS: Final = f"{GROUP}/providers"
_IDENTITY: Final = f"{_PROVIDERS}/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_NETWORK: Final = f"{_PROVIDERS}/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"
_CLUSTER: Final = f"{_PROVIDERS}/Microsoft.ContainerService/managedClusters/{{resourceName}}"
_ACCOUNT: Final = f"{_PROVIDERS}/Microsoft.Storage/storageAccounts/{{accountName}}"

NODE_RESOURCE_GROUP: Final = "MC_{resourceGroupName}_{name}_{location}"
"""AKS's default for a cluster's node resource group."""
KUBELET_IDENTITY: Final = (
    "/subscriptions/{subscriptionId}/resourceGroups/{nodeResourceGroup}"
    "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}-agentpool"
)

CLUSTER_OUTPUTS: Final[Mapping[str, Template]] = {
    "fqdn": "{dnsPrefix}-{suffix}.hcp.{location}.azmk8s.io",
    "nodeResourceGroup": "{nodeResourceGroup}",
    "oidcIssuerProfile": {"issuerURL": "https://{location}.oic.prod-aks.azure.com/{tenantId}/{uuid_issuer}/"},
    "identityProfile": {
        "kubeletidentity": {
            "clientId": "{uuid_kubelet_client}",
            "objectId": "{uuid_kubelet_object}",
            "resourceId": KUBELET_IDENTITY,
        }
    },
    "identity": {"principalId": "{uuid_principal}", "tenantId": "{tenantId}"},
}
"""Outputs of a cluster with a system-assigned identity and an OIDC issuer."""

RESOURCES: Final[Mapping[str, ResourceTemplate]] = {
    "azure-native:resources:ResourceGroup": ResourceTemplate(GROUP),
    "azure-native:network:VirtualNetwork": ResourceTemplate(_NETWORK),
    "azure-native:network:Subnet": ResourceTemplate(f"{_NETWORK}/subnets/{{subnetName}}"),
    "azure-native:network:NatGateway": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Network/natGateways/{{natGatewayName}}"
    ),
    "azure-native:network:PublicIPAddress": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Network/publicIPAddresses/{{publicIpAddressName}}",
        {"ipAddress": "{address}"},
    ),
    "azure-native:network:NetworkSecurityGroup": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}"
    ),
    "azure-native:network:RouteTable": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Network/routeTables/{{routeTableName}}"
    ),
    "azure-native:managedidentity:UserAssignedIdentity": ResourceTemplate(
        _IDENTITY,
        {"principalId": "{uuid_principal}", "clientId": "{uuid_client}", "tenantId": "{tenantId}"},
    ),
    "azure-native:managedidentity:FederatedIdentityCredential": ResourceTemplate(
        f"{_IDENTITY}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}"
    ),
    "azure-native:authorization:RoleAssignment": ResourceTemplate(
        "{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}"
    ),
    "azure-native:containerservice:ManagedCluster": ResourceTemplate(_CLUSTER, CLUSTER_OUTPUTS),
    "azure-native:containerservice:AgentPool": ResourceTemplate(f"{_CLUSTER}/agentPools/{{agentPoolName}}"),
    "azure-native:containerservice:MaintenanceConfiguration": ResourceTemplate(
        f"{_CLUSTER}/maintenanceConfigurations/{{configName}}"
    ),
    "azure-native:storage:StorageAccount": ResourceTemplate(
        _ACCOUNT,
        {
            "primaryEndpoints": {
                "blob": "https://{name}.blob.core.windows.net/",
                "dfs": "https://{name}.dfs.core.windows.net/",
                "file": "https://{name}.file.core.windows.net/",
            }
        },
    ),
    "azure-native:storage:BlobContainer": ResourceTemplate(
        f"{_ACCOUNT}/blobServices/default/containers/{{containerName}}"
    ),
    "azure-native:storage:FileShare": ResourceTemplate(
        f"{_ACCOUNT}/fileServices/default/shares/{{shareName}}"
    ),
    "azure-native:containerregistry:Registry": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.ContainerRegistry/registries/{{registryName}}",
        {"loginServer": "{name:lower}.azurecr.io"},
    ),
    "azure-native:operationalinsights:Workspace": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.OperationalInsights/workspaces/{{workspaceName}}",
        {"customerId": "{uuid_workspace}"},
    ),
    "azure-native:monitor:DataCollectionRule": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Insights/dataCollectionRules/{{dataCollectionRuleName}}",
        {"immutableId": "dcr-{uuid_rule}"},
    ),
    "azure-native:monitor:DataCollectionEndpoint": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Insights/dataCollectionEndpoints/{{dataCollectionEndpointName}}",
        {"immutableId": "dce-{uuid_endpoint}"},
    ),
    "azure-native:monitor:AzureMonitorWorkspace": ResourceTemplate(
        f"{_PROVIDERS}/Microsoft.Monitor/accounts/{{azureMonitorWorkspaceName}}",
        {"accountId": "{uuid_account}"},
    ),
    "azure-native:monitor:DataCollectionRuleAssociation": ResourceTemplate(
        "{resourceUri}/providers/Microsoft.Insights/dataCollectionRuleAssociations/{associationName}"
    ),
    "azure-native:monitor:DiagnosticSetting": ResourceTemplate(
        "{resourceUri}/providers/Microsoft.Insights/diagnosticSettings/{name}"
    ),
}
"""Templates of resources by type."""

# Microsoft's own applications, the same in every tenant (AKS documentation, `kubelogin-authentication`).
_AKS_SERVER: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"
_AKS_CLIENT: Final = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"


def credentials(
    kind: str, name: str, group: str, *, tenant: str, server: str, certificate: str
) -> dict[str, Plain]:
    """Return AKS's credentials response for a cluster with Entra ID: a kubeconfig with kubelogin.

    Args:
        kind: `clusterUser` or `clusterAdmin`.
        name: name of the cluster.
        group: name of its resource group.
        tenant: id of its tenant.
        server: address of its API server.
        certificate: certificate of its authority, PEM in base64.
    """
    user = f"{kind}_{group}_{name}"
    login: dict[str, object] = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "kubelogin",
        "args": [
            "get-token",
            *("--environment", "AzurePublicCloud"),
            *("--server-id", _AKS_SERVER),
            *("--client-id", _AKS_CLIENT),
            *("--tenant-id", tenant),
            *("--login", "devicecode"),
        ],
        "env": None,
        "provideClusterInfo": False,
    }
    kubeconfig: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": certificate}}
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
        "preferences": {},
        "users": [{"name": user, "user": {"exec": login}}],
    }
    text = json.dumps(kubeconfig, indent=2)  # JSON is valid YAML
    return {"kubeconfigs": [{"name": kind, "value": base64.b64encode(text.encode()).decode()}]}
