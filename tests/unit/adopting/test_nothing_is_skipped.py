"""Every value of a document reaches the adoption, where it is declared, overridden or listed."""

import copy
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from ebbtide.analysis.recording.values import leaves
from ebbtide.operations.adopting import azure, google, terraform
from ebbtide.operations.adopting.found import Adoption, AdoptionError, Found
from ebbtide.values.paths import Key
from tests.unit.adopting import aks_shapes
from tests.unit.adopting.gke_shapes import SHAPES, Document

Path = tuple[Key, ...]

_WINDOWS: Final = aks_shapes.terraform(
    aks_shapes.terraform_resource(
        "azurerm_kubernetes_cluster",
        "ray",
        aks_shapes.terraform_cluster(
            aks_shapes.terraform_pool("system", "Standard_D4ds_v5"), **aks_shapes.TERRAFORM_WINDOWS
        ),
    )
)
_DOCUMENTS: Final = {
    "gke": [shape() for shape in SHAPES],
    "aks": [
        document for name in ("SPOT_DOCS", "CILIUM", "VERIFIED") for document in getattr(aks_shapes, name)
    ],
    "azurerm": [*aks_shapes.RAY, _WINDOWS],
}


def unlisted(found: Found, adoption: Adoption) -> list[tuple[str, str]]:
    """Return the resource and path of inputs that an adoption neither has nor lists."""
    rows = {(row.resource, row.path) for row in adoption.fields}
    left_out = {part.name.rpartition(" ")[2] for part in adoption.left_out}
    kept = (
        {item.name for item in found.clusters} if "existing" in adoption.declaration["cloud"] else set[str]()
    )
    return [
        (resource.name, path)
        for resource in found.resources
        for path, _ in leaves(dict(resource.inputs))
        if resource.name not in left_out | kept and (resource.name, path) not in rows
    ]


_SKIPPED: Final = {
    "gke": """
        name location network subnetwork clusterIpv4Cidr
        ipAllocationPolicy.clusterIpv4CidrBlock ipAllocationPolicy.servicesIpv4CidrBlock
        nodeConfig.diskSizeGb nodeConfig.diskType nodeConfig.imageType nodeConfig.machineType
        nodeConfig.serviceAccount nodePools.networkConfig.podIpv4CidrBlock nodePools.version
        loggingService monitoringService masterAuth.clusterCaCertificate
        controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint
        privateClusterConfig.privateEndpoint privateClusterConfig.publicEndpoint
        maintenancePolicy.window.maintenanceExclusions.no-minor-or-node-upgrades-indefinite.endTime
        maintenancePolicy.resourceVersion maintenancePolicy.window.dailyMaintenanceWindow.duration
        autoscaling.autoprovisioningNodePoolDefaults.diskType
        autoscaling.autoprovisioningNodePoolDefaults.serviceAccount
        autoscaling.resourceLimits.maximum autoscaling.resourceLimits.resourceType
    """,
    "aks": """
        name type resourceGroup agentPoolProfiles.powerState.code identity.principalId identity.tenantId
        identityProfile.kubeletidentity.clientId identityProfile.kubeletidentity.objectId
        identity.userAssignedIdentities.clientId
        identity.userAssignedIdentities.principalId
    """,
    "azurerm": """
        resources.name resources.provider schema_version
        name resource_group_name kubernetes_cluster_id node_resource_group_id
        current_kubernetes_version fqdn portal_fqdn oidc_issuer_url node_image_version
        identity.principal_id identity.tenant_id kubelet_identity.client_id kubelet_identity.object_id
        kubelet_identity.user_assigned_identity_id kube_config.client_key kube_config.host kube_config_raw
        network_profile.load_balancer_profile.effective_outbound_ips private_cluster_public_fqdn_enabled
        priority spot_max_price windows_profile.admin_password
    """,
}
"""Values that have no meaning of their own: read in another place, the state of a resource, times
that GKE computes, secrets, limits
of auto-provisioning (listed by its name), and Terraform's defaults for absent values."""


def _leaves(value: Any, above: Path = ()) -> Iterator[Path]:
    match value:
        case dict():
            for key, item in cast("Document", value).items():
                yield from _leaves(item, (*above, key))
        case list():
            for index, item in enumerate(cast("list[Any]", value)):
                yield from _leaves(item, (*above, index))
        case None | "":
            pass
        case _:
            yield above


def _changed(document: Document, path: Path) -> Iterator[Document]:
    """Yield a document without a value, and with another one."""
    for remove in (True, False):
        other: Any = copy.deepcopy(document)
        holder = other
        for key in path[:-1]:
            holder = holder[key]
        value = holder[path[-1]]
        if remove:
            del holder[path[-1]]
        elif isinstance(value, bool):
            holder[path[-1]] = not value
        else:
            holder[path[-1]] = value + 1 if isinstance(value, int) else f"{value}x"
        yield other


def _read(document: Document) -> Found | str | None:
    try:
        return google.read(document, "f") or azure.read(document, "f") or terraform.read(document, "f")
    except (AdoptionError, AttributeError, KeyError, TypeError) as error:
        return repr(error)


@pytest.mark.parametrize("kind", _DOCUMENTS)
def test_every_value_is_read(kind: str) -> None:
    """Without it, or with another value, something else is read."""
    seen: set[str] = set()
    skipped: set[str] = set()
    for document in _DOCUMENTS[kind]:
        read = _read(document)
        for path in _leaves(document):
            plain = ".".join(key for key in path if isinstance(key, str) and "/" not in key)
            if plain not in seen:
                seen.add(plain)
                if all(_read(other) == read for other in _changed(document, path)):
                    skipped.add(plain)
    prefixes = ("resources.instances.", "attributes.")
    bare = {path.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for path in skipped}
    assert sorted(bare) == sorted(_SKIPPED[kind].split())
