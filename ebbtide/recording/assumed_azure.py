"""Assumed responses of Azure.

Sources: names of inputs and outputs are those of pulumi-azure-native 3.29.0; ids have Azure Resource
Manager's format. Host names, the OIDC issuer URL and the kubeconfig follow the AKS documentation
(`use-oidc-issuer`, `kubelogin-authentication`). Not compared with a live cloud: they are displayed only, and
decide nothing.
"""

import base64
import json
from collections.abc import Mapping
from typing import Final

from ebbtide.recording.assumed_values import ADDRESS, CERTIFICATE_BASE64, WORD, uuid_for
from ebbtide.recording.assumption_tables import Answer, Assumptions, Question, ResourceRule
from ebbtide.recording.templates import (
    Derivation,
    Facts,
    Template,
    invoke_rule,
    rendered_properties,
    resource_rule,
)
from ebbtide.recording.values import Plain, revealed

# Microsoft's own applications, equal in every tenant (AKS documentation, `kubelogin-authentication`).
_AKS_SERVER: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"
_AKS_CLIENT: Final = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"

# A single subscription and tenant for all ids, so that they are consistent.
_TENANT: Final = uuid_for("tenant")
_SUBSCRIPTION: Final = uuid_for("subscription")


def _named(key: str) -> Derivation:
    """The name of a resource that declares none: the logical name and random letters."""

    def derive(facts: Facts) -> str | None:
        logical = facts.question.name
        return facts.question.text(key) or (f"{logical}{WORD}" if logical else None)

    return derive


_GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"


def _rule(name_key: str, path: str, outputs: Mapping[str, Template] | None = None) -> ResourceRule:
    """Build a rule for ids of the form `RESOURCE_GROUP/providers/PATH/NAME`."""
    derived: dict[str, Derivation] = {
        "name": _named(name_key),
        name_key: _named(name_key),
        "subscriptionId": lambda _: _SUBSCRIPTION,
        "tenantId": lambda _: _TENANT,
    }
    return resource_rule(derived, f"{_GROUP}/providers/{path}", {"name": "{name}", **(outputs or {})})


_DERIVED: Final[Mapping[str, Derivation]] = {
    "name": _named("resourceName"),
    "subscriptionId": lambda _: _SUBSCRIPTION,
    "tenantId": lambda _: _TENANT,
}


def _virtual_network(question: Question) -> Answer:
    """Return the network, with an id for each subnet declared inline."""
    answer = _rule("virtualNetworkName", "Microsoft.Network/virtualNetworks/{name}")(question)
    declared = question.inputs.get("subnets")
    subnets: list[Plain] = []
    for subnet in declared if isinstance(declared, list) else []:
        name = subnet.get("name") if isinstance(subnet, dict) else None
        subnets.append({"id": f"{answer.id}/subnets/{name}"} if isinstance(name, str) else {})
    return Answer(answer.id, {**answer.outputs, **({"subnets": subnets} if subnets else {})})


def _identified(rule: ResourceRule) -> ResourceRule:
    """Extend a rule with user-assigned identities, which are a list of ids in inputs and an object in
    outputs.
    """

    def identified(question: Question) -> Answer:
        answer = rule(question)
        identity = revealed(question.inputs.get("identity"))
        ids = identity.get("userAssignedIdentities") if isinstance(identity, dict) else None
        if not isinstance(ids, list):
            return answer
        identities: dict[str, Plain] = {
            id_: {"clientId": uuid_for(f"client {id_}"), "principalId": uuid_for(f"principal {id_}")}
            for id_ in ids
            if isinstance(id_, str)
        }
        # A cluster with a system-assigned identity has no other.
        return Answer(answer.id, {**answer.outputs, "identity": {"userAssignedIdentities": identities}})

    return identified


_CLUSTER_OUTPUTS: Final[Mapping[str, Template]] = {
    "fqdn": f"{{dnsPrefix}}-{WORD}.hcp.{{location}}.azmk8s.io",
    "nodeResourceGroup": "MC_{resourceGroupName}_{name}_{location}",
    "oidcIssuerProfile": {"issuerURL": "https://{location}.oic.prod-aks.azure.com/{tenantId}/{uuid_issuer}/"},
    "identityProfile": {
        "kubeletidentity": {
            "clientId": "{uuid_kubelet_client}",
            "objectId": "{uuid_kubelet_object}",
            "resourceId": "/subscriptions/{subscriptionId}/resourceGroups/{nodeResourceGroup}"
            "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}-agentpool",
        }
    },
    "identity": {"principalId": "{uuid_principal}", "tenantId": "{tenantId}"},
}


def _node_group(facts: Facts) -> str:
    """AKS's default name for the node resource group."""
    return "MC_{resourceGroupName}_{name}_{location}".format_map(facts)


def _managed_cluster(question: Question) -> Answer:
    derived: dict[str, Derivation] = {
        **_DERIVED,
        "nodeResourceGroup": _node_group,
    }
    facts = Facts(question, derived)
    path = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{name}}"
    outputs = rendered_properties({"name": "{name}", **_CLUSTER_OUTPUTS}, facts)
    if "oidcIssuerProfile" not in question.inputs:
        del outputs["oidcIssuerProfile"]
    return Answer(path.format_map(facts), outputs)


def _role_assignment(question: Question) -> Answer:
    name = question.text("roleAssignmentName") or uuid_for(f"role assignment {question.name}")
    scope = question.text("scope") or f"/subscriptions/{_SUBSCRIPTION}"
    return Answer(f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}", {"name": name})


def _credentials(question: Question) -> dict[str, Plain]:
    """A kubeconfig as AKS returns it for a cluster with Entra ID: base64, with kubelogin authentication."""
    name = question.text("resourceName") or f"{WORD}-cluster"
    group = question.text("resourceGroupName") or f"{WORD}-group"
    user = f"clusterUser_{group}_{name}"
    kubeconfig: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": f"https://{name.lower()}-{WORD}.hcp.{WORD}.azmk8s.io:443",
                    "certificate-authority-data": CERTIFICATE_BASE64,
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
        "preferences": {},
        "users": [
            {
                "name": user,
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": "kubelogin",
                        "args": [
                            "get-token",
                            *("--environment", "AzurePublicCloud"),
                            *("--server-id", _AKS_SERVER),
                            *("--client-id", _AKS_CLIENT),
                            *("--tenant-id", _TENANT),
                            *("--login", "devicecode"),
                        ],
                        "env": None,
                        "provideClusterInfo": False,
                    }
                },
            }
        ],
    }
    # JSON is valid YAML.
    text = json.dumps(kubeconfig, indent=2)
    return {"kubeconfigs": [{"name": "clusterUser", "value": base64.b64encode(text.encode()).decode()}]}


def _unlisted(question: Question) -> Answer:
    return Answer(f"{question.name}-{WORD}-id")


_RESOURCES: Final[Mapping[str, ResourceRule]] = {
    "azure-native:resources:ResourceGroup": resource_rule(
        {"name": _named("resourceGroupName"), "subscriptionId": lambda _: _SUBSCRIPTION},
        "/subscriptions/{subscriptionId}/resourceGroups/{name}",
        {"name": "{name}"},
    ),
    "azure-native:network:VirtualNetwork": _virtual_network,
    "azure-native:network:Subnet": _rule(
        "subnetName", "Microsoft.Network/virtualNetworks/{virtualNetworkName}/subnets/{name}"
    ),
    "azure-native:network:NatGateway": _rule("natGatewayName", "Microsoft.Network/natGateways/{name}"),
    "azure-native:network:PublicIPAddress": _rule(
        "publicIpAddressName", "Microsoft.Network/publicIPAddresses/{name}", {"ipAddress": ADDRESS}
    ),
    "azure-native:network:NetworkSecurityGroup": _rule(
        "networkSecurityGroupName", "Microsoft.Network/networkSecurityGroups/{name}"
    ),
    "azure-native:network:RouteTable": _rule("routeTableName", "Microsoft.Network/routeTables/{name}"),
    "azure-native:managedidentity:UserAssignedIdentity": _rule(
        "resourceName",
        "Microsoft.ManagedIdentity/userAssignedIdentities/{name}",
        {"principalId": "{uuid_principal}", "clientId": "{uuid_client}", "tenantId": "{tenantId}"},
    ),
    "azure-native:managedidentity:FederatedIdentityCredential": _rule(
        "federatedIdentityCredentialResourceName",
        "Microsoft.ManagedIdentity/userAssignedIdentities/{resourceName}/federatedIdentityCredentials/{name}",
    ),
    "azure-native:authorization:RoleAssignment": _role_assignment,
    "azure-native:containerservice:ManagedCluster": _managed_cluster,
    "azure-native:containerservice:AgentPool": _rule(
        "agentPoolName", "Microsoft.ContainerService/managedClusters/{resourceName}/agentPools/{name}"
    ),
    "azure-native:containerservice:MaintenanceConfiguration": _rule(
        "configName",
        "Microsoft.ContainerService/managedClusters/{resourceName}/maintenanceConfigurations/{name}",
    ),
    "azure-native:storage:StorageAccount": _rule(
        "accountName",
        "Microsoft.Storage/storageAccounts/{name}",
        {
            "primaryEndpoints": {
                "blob": "https://{name}.blob.core.windows.net/",
                "dfs": "https://{name}.dfs.core.windows.net/",
                "file": "https://{name}.file.core.windows.net/",
            }
        },
    ),
    "azure-native:storage:BlobContainer": _rule(
        "containerName",
        "Microsoft.Storage/storageAccounts/{accountName}/blobServices/default/containers/{name}",
    ),
    "azure-native:storage:FileShare": _rule(
        "shareName", "Microsoft.Storage/storageAccounts/{accountName}/fileServices/default/shares/{name}"
    ),
    "azure-native:containerregistry:Registry": _rule(
        "registryName",
        "Microsoft.ContainerRegistry/registries/{name}",
        {"loginServer": "{name:lower}.azurecr.io"},
    ),
    "azure-native:operationalinsights:Workspace": _rule(
        "workspaceName",
        "Microsoft.OperationalInsights/workspaces/{name}",
        {"customerId": "{uuid_workspace}"},
    ),
}

TABLES: Final = Assumptions(
    resources={type_: _identified(rule) for type_, rule in _RESOURCES.items()},
    packages={"azure-native": _identified(_unlisted)},
    invokes={
        "azure-native:authorization:getClientConfig": invoke_rule(
            _DERIVED,
            {
                "clientId": "{uuid_client}",
                "objectId": "{uuid_object}",
                "subscriptionId": "{subscriptionId}",
                "tenantId": "{tenantId}",
            },
        ),
        "azure-native:containerservice:listManagedClusterUserCredentials": _credentials,
        "azure-native:containerservice:listManagedClusterAdminCredentials": _credentials,
        "azure-native:storage:listStorageAccountKeys": invoke_rule(
            _DERIVED, {"keys": [{"keyName": "key1", "permissions": "FULL", "value": "{uuid_key}"}]}
        ),
        "azure-native:containerservice:getManagedCluster": invoke_rule(
            {**_DERIVED, "nodeResourceGroup": _node_group},
            {
                "id": f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{name}}",
                "name": "{name}",
                "location": "{location}",
                "type": "Microsoft.ContainerService/ManagedClusters",
                **_CLUSTER_OUTPUTS,
            },
        ),
    },
)
"""Assumed responses of Azure."""
