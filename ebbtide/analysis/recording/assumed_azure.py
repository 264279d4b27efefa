"""Azure's responses: templates of ids in Azure Resource Manager's form, and of outputs; assumed values.

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

from ebbtide.analysis.recording.assumption_tables import (
    ADDRESS,
    CERTIFICATE_BASE64,
    WORD,
    Answer,
    Assumptions,
    Derivation,
    Facts,
    Question,
    ResourceRule,
    ResourceTemplate,
    Template,
    invoke_rule,
    resource_rule,
    uuid_for,
)
from ebbtide.analysis.recording.values import Plain, revealed
from ebbtide.declaration.model.physical_names import NODE_RESOURCE_GROUP

GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"

_PROVIDERS: Final = f"{GROUP}/providers"
_IDENTITY: Final = f"{_PROVIDERS}/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_NETWORK: Final = f"{_PROVIDERS}/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"
_CLUSTER: Final = f"{_PROVIDERS}/Microsoft.ContainerService/managedClusters/{{resourceName}}"
_RESERVATIONS: Final = (
    f"{_PROVIDERS}/Microsoft.Compute/capacityReservationGroups/{{capacityReservationGroupName}}"
)
_ACCOUNT: Final = f"{_PROVIDERS}/Microsoft.Storage/storageAccounts/{{accountName}}"

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
    "azure-native:compute:CapacityReservationGroup": ResourceTemplate(_RESERVATIONS),
    "azure-native:compute:CapacityReservation": ResourceTemplate(
        f"{_RESERVATIONS}/capacityReservations/{{capacityReservationName}}"
    ),
    "azure-native:kubernetesconfiguration:Extension": ResourceTemplate(
        f"{_PROVIDERS}/{{clusterRp}}/{{clusterResourceName}}/{{clusterName}}"
        "/providers/Microsoft.KubernetesConfiguration/extensions/{extensionName}"
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
    "azure-native:storage:BlobServiceProperties": ResourceTemplate(
        f"{_ACCOUNT}/blobServices/{{blobServicesName}}"
    ),
    "azure-native:storage:ManagementPolicy": ResourceTemplate(
        f"{_ACCOUNT}/managementPolicies/{{managementPolicyName}}"
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
# A single subscription and tenant for all ids, so that they are consistent.
TENANT: Final = uuid_for("tenant")
_SUBSCRIPTION: Final = uuid_for("subscription")


def credentials(
    kind: str, name: str, group: str, *, tenant: str, server: str, certificate: str
) -> dict[str, Plain]:
    """Return AKS's credentials response for a cluster with Entra ID: a kubeconfig with kubelogin.

    Args:
        kind: `clusterUser` or `clusterAdmin`.
        group: name of its resource group.
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


def _named(key: str) -> Derivation:
    """Return the derived name of a resource that declares none: the logical name and random letters."""

    def derive(facts: Facts) -> str | None:
        logical = facts.question.name
        return facts.question.text(key) or (f"{logical}{WORD}" if logical else None)

    return derive


def _rule(type_: str) -> ResourceRule:
    """Build a rule from a type's templates; the last input in its id is the resource's name."""
    template = RESOURCES[type_]
    name_key = template.id.rpartition("{")[2].rstrip("}")
    derived = {**_DERIVED, "name": _named(name_key), name_key: _named(name_key)}
    return resource_rule(derived, template.id, {"name": "{name}", **template.outputs})


_DERIVED: Final[Mapping[str, Derivation]] = {
    "name": _named("resourceName"),
    "subscriptionId": lambda _: _SUBSCRIPTION,
    "tenantId": lambda _: TENANT,
    "nodeResourceGroup": NODE_RESOURCE_GROUP.format_map,
    "suffix": lambda _: WORD,
    "address": lambda _: ADDRESS,
}


def _virtual_network(question: Question) -> Answer:
    """Return the network, with an id for each subnet declared inline."""
    answer = _rule("azure-native:network:VirtualNetwork")(question)
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
        # A cluster with a system-assigned identity has no other identity.
        return Answer(answer.id, {**answer.outputs, "identity": {"userAssignedIdentities": identities}})

    return identified


def _managed_cluster(question: Question) -> Answer:
    answer = _rule("azure-native:containerservice:ManagedCluster")(question)
    outputs = dict(answer.outputs)
    if "oidcIssuerProfile" not in question.inputs:
        del outputs["oidcIssuerProfile"]
    return Answer(answer.id, outputs)


def _role_assignment(question: Question) -> Answer:
    name = question.text("roleAssignmentName") or uuid_for(f"role assignment {question.name}")
    scope = question.text("scope") or f"/subscriptions/{_SUBSCRIPTION}"
    return Answer(f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}", {"name": name})


def _credentials(question: Question) -> dict[str, Plain]:
    name = question.text("resourceName") or f"{WORD}-cluster"
    group = question.text("resourceGroupName") or f"{WORD}-group"
    server = f"https://{name.lower()}-{WORD}.hcp.{WORD}.azmk8s.io:443"
    return credentials(
        "clusterUser", name, group, tenant=TENANT, server=server, certificate=CERTIFICATE_BASE64
    )


def _unlisted(question: Question) -> Answer:
    return Answer(f"{question.name}-{WORD}-id")


_SPECIAL: Final[Mapping[str, ResourceRule]] = {
    "azure-native:network:VirtualNetwork": _virtual_network,
    "azure-native:authorization:RoleAssignment": _role_assignment,
    "azure-native:containerservice:ManagedCluster": _managed_cluster,
}

TABLES: Final = Assumptions(
    resources={type_: _identified(_SPECIAL.get(type_) or _rule(type_)) for type_ in RESOURCES},
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
            _DERIVED,
            {
                "id": RESOURCES["azure-native:containerservice:ManagedCluster"].id,
                "name": "{name}",
                "location": "{location}",
                "type": "Microsoft.ContainerService/ManagedClusters",
                **CLUSTER_OUTPUTS,
            },
        ),
    },
)
"""Assumed responses of Azure."""
