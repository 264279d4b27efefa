"""References between resources: what has to exist, what is in use, and what is deleted with it.

Sources: the clouds' APIs: Compute, GKE v1, IAM, Cloud Storage, Artifact Registry and Filestore (2026); Azure
Resource Manager, AKS 2025-09-01, Azure Monitor 2022-06-01 (2026).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from ebbtide.analysis.providers.property_path import values_at
from ebbtide_rehearsal.cloud.store import Resource, Store


class Reference(NamedTuple):
    """A property that refers to another resource, by its id, a link or its name.

    Attributes:
        path: path of the property, without indices.
        target: type token of the other resource; empty for any.
        use: `needs`: it has to exist; `uses`: and cannot be deleted meanwhile; `part`: this one is deleted
            with it.
    """

    path: str
    target: str
    use: Literal["needs", "uses", "part"] = "needs"


_NETWORK: Final = "gcp:compute/network:Network"
_SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
_IN_NETWORK: Final = (Reference("network", _NETWORK, "uses"),)
_SUBNET: Final = "azure-native:network:Subnet"
_RESERVATIONS: Final = "azure-native:compute:CapacityReservationGroup"
_WORKSPACE: Final = "azure-native:operationalinsights:Workspace"
_IDENTITIES: Final = Reference(
    "identity.userAssignedIdentities", "azure-native:managedidentity:UserAssignedIdentity"
)
_MONITORED: Final = Reference("resourceUri", "")

REFERENCES: Final[Mapping[str, tuple[Reference, ...]]] = {
    "gcp:compute/subnetwork:Subnetwork": _IN_NETWORK,
    "gcp:compute/firewall:Firewall": _IN_NETWORK,
    "gcp:compute/router:Router": _IN_NETWORK,
    "gcp:compute/routerNat:RouterNat": (
        Reference("router", "gcp:compute/router:Router", "part"),
        Reference("subnetworks.name", _SUBNETWORK),
    ),
    "gcp:container/cluster:Cluster": (*_IN_NETWORK, Reference("subnetwork", _SUBNETWORK, "uses")),
    "gcp:container/nodePool:NodePool": (
        Reference("networkConfig.additionalNodeNetworkConfigs.subnetwork", _SUBNETWORK, "uses"),
    ),
    "gcp:filestore/instance:Instance": (Reference("networks.network", _NETWORK, "uses"),),
    "gcp:serviceaccount/iAMMember:IAMMember": (
        Reference("serviceAccountId", "gcp:serviceaccount/account:Account", "part"),
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": (
        Reference("bucket", "gcp:storage/bucket:Bucket", "part"),
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": (
        Reference("repository", "gcp:artifactregistry/repository:Repository", "part"),
    ),
    "azure-native:containerservice:ManagedCluster": (
        _IDENTITIES,
        Reference("agentPoolProfiles.vnetSubnetID", _SUBNET),
        Reference("addonProfiles.omsagent.config.logAnalyticsWorkspaceResourceID", _WORKSPACE),
    ),
    "azure-native:containerservice:AgentPool": (
        Reference("vnetSubnetID", _SUBNET, "uses"),
        Reference("capacityReservationGroupID", _RESERVATIONS, "uses"),
    ),
    "azure-native:storage:StorageAccount": (_IDENTITIES,),
    "azure-native:containerregistry:Registry": (_IDENTITIES,),
    "azure-native:authorization:RoleAssignment": (Reference("scope", ""),),
    "azure-native:monitor:DataCollectionRule": (
        Reference("destinations.logAnalytics.workspaceResourceId", _WORKSPACE),
        Reference(
            "destinations.monitoringAccounts.accountResourceId", "azure-native:monitor:AzureMonitorWorkspace"
        ),
        Reference("dataCollectionEndpointId", "azure-native:monitor:DataCollectionEndpoint"),
    ),
    "azure-native:monitor:DataCollectionRuleAssociation": (
        _MONITORED,
        Reference("dataCollectionRuleId", "azure-native:monitor:DataCollectionRule"),
    ),
    "azure-native:monitor:DiagnosticSetting": (_MONITORED, Reference("workspaceId", _WORKSPACE)),
}
"""References by type token."""


def references(token: str) -> tuple[Reference, ...]:
    """Return the references of a type; those of the cluster's controllers are in a network."""
    return _IN_NETWORK if token.startswith("compute#") else REFERENCES.get(token, ())


def referred(token: str, properties: Mapping[str, Any]) -> Iterator[tuple[Reference, str]]:
    """Yield the references in a resource's properties, each with its value."""
    for reference in references(token):
        for _, value in values_at(dict(properties), reference.path):
            for text in value if isinstance(value, list | dict) else [value]:  # pyright: ignore[reportUnknownVariableType] # JSON
                if text:
                    yield reference, str(text)  # pyright: ignore[reportUnknownArgumentType] # JSON


def is_of(reference: str, identity: str) -> bool:
    """Return whether a reference is a resource's id, a link to it, or its name."""
    text, own = reference.lower(), identity.lower()
    return text == own or own.endswith(f"/{text}") or text.endswith(f"/{own}")


def is_within(identity: str, scope: str) -> bool:
    """Return whether a resource is a scope, or below it."""
    return f"{identity.lower()}/".startswith(f"{scope.lower()}/")


def referring(store: Store, resource: Resource, use: str) -> Iterator[Resource]:
    """Yield the resources outside of a resource that refer in a way to it, or to a resource below it."""
    known = store.resources(resource.cloud)
    targets = [other for other in known if is_within(other.id, resource.id)]
    for other in known:
        if any(
            reference.use == use and reference.target == target.type and is_of(text, target.id)
            for reference, text in referred(other.type, {**other.state, **other.inputs})
            for target in targets
        ) and not is_within(other.id, resource.id):
            yield other
