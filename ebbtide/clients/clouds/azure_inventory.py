"""Azure: resources of a subscription that belong to a cluster or expire.

Sources: Azure Resource Manager REST reference, Resources 2021-04-01 (`Resources_List`, `ResourceGroups_List`,
`Providers_Get`, `Resources_DeleteById`) and asynchronous operations, Microsoft.ContainerService 2025-09-01
(2026). A cluster's resources:

- AKS keeps what it creates in the node resource group, which it deletes with the cluster, and tags it with
  `aks-managed-cluster-name` and `aks-managed-cluster-rg` (AKS docs, faq, 2026).
- `k8s-azure-cluster-name` is `kubernetes` for every AKS cluster, and identifies none.
- Disks and snapshots in other resource groups are identified by their ids in the cluster's volumes.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import requests
from azure.core.credentials import TokenCredential

from ebbtide.clients.clouds.azure import LOGIN, azure_session, management_endpoint
from ebbtide.clients.clouds.http import get_json, linked, of_host, send
from ebbtide.clients.clouds.interfaces import (
    Account,
    CloudApiError,
    CloudGrant,
    CloudResource,
    ClusterIdentity,
    Contents,
    StoredData,
)

Item = Mapping[str, Any]

_VERSION: Final = {"api-version": "2021-04-01"}
_CLUSTERS: Final = {"api-version": "2025-09-01"}
_PARTS: Final = 9
"""Number of segments in the id of a resource that lists have; those of its parts have more."""
_OF_PARTS: Final = {"microsoft.managedidentity": "2023-01-31", "microsoft.storage": "2023-01-01"}
"""API versions by namespace."""
_SCALE_SET: Final = "microsoft.compute/virtualmachinescalesets"
_EXPIRES: Final = "ebbtide-expires"
_OF_CLUSTER: Final = ("aks-managed-cluster-name", "aks-managed-cluster-rg")
_POLL = 2.0  # seconds
_TIMEOUT: Final = 3600.0  # seconds; deleting a resource group takes minutes

_KINDS: Final = {
    "microsoft.containerservice/managedclusters": "cluster",
    "microsoft.network/loadbalancers": "load balancer",
    "microsoft.network/networkinterfaces": "network interface",
    "microsoft.network/publicipaddresses": "public IP address",
    "microsoft.network/networksecuritygroups": "network security group",
    "microsoft.compute/virtualmachines": "virtual machine",
    _SCALE_SET: "virtual machine scale set",
    "microsoft.compute/disks": "disk",
    "microsoft.compute/snapshots": "snapshot",
}
_ORDER: Final = list(_KINDS)
_DATA: Final = frozenset(
    {
        "microsoft.compute/disks",
        "microsoft.compute/snapshots",
        "microsoft.storage/storageaccounts",
        "microsoft.containerregistry/registries",
    }
)
_PRICES: Final = {
    "microsoft.network/loadbalancers": "lb-rule",
    "microsoft.network/publicipaddresses": "public-ip",
    "microsoft.containerservice/managedclusters": "control-plane:aks-standard",
}


@dataclass(frozen=True, slots=True)
class AzureInventory:
    """Resources of a subscription."""

    account: Account
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def check(self) -> None:
        """See `Inventory.check`."""
        with self._session() as session:
            get_json(session, f"{self.endpoint}{self._scope}", {"api-version": "2022-12-01"}, self._advice)

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """See `Inventory.identify`: the ids are already in the stack's state."""
        return cluster

    def of_cluster(self, cluster: ClusterIdentity) -> Sequence[CloudResource]:
        """See `Inventory.of_cluster`: the node resource group comes last, with its contents."""
        handles = {handle.lower() for handle in cluster.handles}
        names = (cluster.name.lower(), cluster.resource_group.lower())
        with self._session() as session:
            groups = [
                item
                for item in self._groups(session)
                if cluster.node_resource_group
                and item["name"].lower() == cluster.node_resource_group.lower()
                and (item.get("managedBy") or cluster.id).lower() == cluster.id.lower()
            ]
            within = {item["id"].lower() for item in groups}
            own = [
                item
                for item in self._resources(session)
                if item["id"].lower() in {cluster.id.lower(), *handles}
                or _group_of(item["id"]) in within
                or tuple(_tag(item, tag).lower() for tag in _OF_CLUSTER) == names
            ]
        listed = [_resource(item, cluster.id, within) for item in sorted(own, key=_rank)]
        return [*listed, *(_group(item, own, cluster.id) for item in groups)]

    def expiring(self) -> Sequence[CloudResource]:
        """See `Inventory.expiring`: resource groups, and resources in other groups.

        A node resource group is deleted with its cluster. The machines of a node pool that was added to
        another stack's cluster are deleted with the node pool.
        """
        with self._session() as session:
            groups = {item["id"].lower(): item for item in self._groups(session)}
            resources = sorted(self._resources(session), key=_rank)
        existing = {item["id"].lower() for item in resources}
        whole = {
            id_: item
            for id_, item in groups.items()
            if _tag(item, _EXPIRES) and str(item.get("managedBy") or "").lower() not in existing
        }
        listed: list[CloudResource] = []
        for item in resources:
            owner = str(groups.get(_group_of(item["id"]), {}).get("managedBy") or "")
            if not _tag(item, _EXPIRES) or _group_of(item["id"]) in whole:
                continue
            if owner.lower() not in existing:
                listed.append(_resource(item, "", frozenset()))
            elif item["type"].lower() == _SCALE_SET and not _tag(groups[_group_of(item["id"])], _EXPIRES):
                listed.append(_pool(item, owner))
        contents = {id_: [item for item in resources if _group_of(item["id"]) == id_] for id_ in whole}
        return [*listed, *(_group(item, contents[id_], "") for id_, item in whole.items())]

    def grants(self, principals: Collection[str]) -> Sequence[CloudGrant]:
        """See `Inventory.grants`: role assignments in the subscription (Authorization 2022-04-01,
        `RoleAssignments_ListForSubscription`)."""
        path = f"{self._scope}/providers/Microsoft.Authorization/roleAssignments"
        with self._session() as session:
            listed = list(self._pages(session, path, {"api-version": "2022-04-01"}))
        return [
            CloudGrant(id=item["id"], role=about["roleDefinitionId"], principal=about["principalId"])
            for item in listed
            for about in [item["properties"]]
            if about["principalId"] in principals
        ]

    def existing(self, ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """See `Inventory.existing` (Managed Identity 2023-01-31, `FederatedIdentityCredentials_Get`; Storage
        2023-01-01, `BlobContainers_Get` and `FileShares_Get`)."""
        with self._session() as session:
            listed = (*self._groups(session), *self._resources(session))
            tags: dict[str, Mapping[str, str]] = {
                item["id"].lower(): item.get("tags") or {} for item in listed
            }
            wholes = {identity: "/".join(identity.split("/")[:_PARTS]).lower() for identity in ids}
            return {
                identity: tags[whole]
                for identity, whole in wholes.items()
                if whole in tags and (whole == identity.lower() or self._exists(session, identity))
            }

    def _exists(self, session: requests.Session, identity: str) -> bool:
        """Return whether a part of a resource exists."""
        namespace = identity.rpartition("/providers/")[2].partition("/")[0].lower()
        version = {"api-version": _OF_PARTS[namespace]}
        try:
            get_json(session, f"{self.endpoint}{identity}", version, self._advice)
        except CloudApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    def contents(self, data: StoredData) -> Contents | None:
        """See `Inventory.contents`: by the last hourly metrics of a storage account, and the usages of a
        registry (Azure Monitor, supported metrics of Microsoft.Storage/storageAccounts/blobServices and
        fileServices; Registries_ListUsages 2023-07-01; 2026).
        """
        if data.kind == "registry":
            url = f"{self.endpoint}{data.id}/listUsages"
            with self._session() as session:
                usages = get_json(session, url, {"api-version": "2023-07-01"}, self._advice)["value"]
            sizes = (int(item["currentValue"]) for item in usages if item["name"] == "Size")
            return next(map(Contents, sizes), None)
        service, metric = ("fileServices", "File") if data.kind == "file share" else ("blobServices", "Blob")
        names = (f"{metric}Capacity", f"{metric}Count")
        parameters = {
            "api-version": "2023-10-01",
            "metricnames": ",".join(names),
            "aggregation": "Average",
            "interval": "PT1H",
        }
        url = f"{self.endpoint}{data.id}/{service}/default/providers/Microsoft.Insights/metrics"
        with self._session() as session:
            metrics = get_json(session, url, parameters, self._advice)["value"]
        values = {str(item["name"]["value"]): _latest(item) for item in metrics}
        size, count = (values.get(name) for name in names)
        return None if size is None else Contents(size, count)

    def clusters(self) -> list[dict[str, Any]]:
        """Return the subscription's AKS clusters with their pools (`ManagedClusters_List`).

        Raises:
            CloudApiError: the cloud rejects the request or does not answer.
        """
        path = f"{self._scope}/providers/Microsoft.ContainerService/managedClusters"
        with self._session() as session:
            return list(self._pages(session, path, _CLUSTERS))

    def schedules(self, cluster: str) -> list[dict[str, Any]]:
        """Return the maintenance schedules of an AKS cluster
        (`MaintenanceConfigurations_ListByManagedCluster`).

        Args:
            cluster: its resource id.

        Raises:
            CloudApiError: the cloud rejects the request or does not answer.
        """
        with self._session() as session:
            return list(self._pages(session, f"{cluster}/maintenanceConfigurations", _CLUSTERS))

    def delete(self, resource: CloudResource) -> None:
        """See `Inventory.delete`."""
        advice = self._advice_of("Contributor")
        with self._session() as session:
            version = self._version(session, resource)
            try:
                response = send(
                    session, "DELETE", f"{self.endpoint}{resource.id}", advice, {"api-version": version}
                )
            except CloudApiError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return
                raise
            end = time.monotonic() + _TIMEOUT
            url = response.headers.get("Location", "")
            while response.status_code == HTTPStatus.ACCEPTED and url:
                if time.monotonic() > end:
                    raise CloudApiError(f"The deletion of {resource.name} has not ended after an hour.")
                time.sleep(_POLL)
                response = send(session, "GET", of_host(url, self.endpoint), self._advice)
                url = response.headers.get("Location", url)

    def _version(self, session: requests.Session, resource: CloudResource) -> str:
        """Return the newest API version of a resource's type, without previews."""
        if "/providers/" not in resource.id:
            return _VERSION["api-version"]
        namespace, *parts = resource.id.rpartition("/providers/")[2].split("/")
        type_ = "/".join(parts[::2]).lower()
        url = f"{self.endpoint}{self._scope}/providers/{namespace}"
        types = get_json(session, url, _VERSION, self._advice)["resourceTypes"]
        versions = next(item["apiVersions"] for item in types if item["resourceType"].lower() == type_)
        return max(version for version in versions if not version.endswith("-preview"))

    def _groups(self, session: requests.Session) -> list[dict[str, Any]]:
        return list(self._pages(session, f"{self._scope}/resourcegroups"))

    def _resources(self, session: requests.Session) -> list[dict[str, Any]]:
        return list(self._pages(session, f"{self._scope}/resources"))

    def _pages(
        self, session: requests.Session, path: str, version: Mapping[str, str] = _VERSION
    ) -> Iterator[dict[str, Any]]:
        for page in linked(session, f"{self.endpoint}{path}", version, self._advice, "nextLink"):
            yield from page["value"]

    def _session(self) -> requests.Session:
        return azure_session(self.credential, f"{self.endpoint}/.default")

    @property
    def _scope(self) -> str:
        return f"/subscriptions/{self.account.id}"

    @property
    def _advice(self) -> dict[int, str]:
        return self._advice_of("Reader")

    def _advice_of(self, role: str) -> dict[int, str]:
        return {
            401: f"Log in with `{LOGIN}`, to the directory of subscription {self.account.id}.",
            403: f"Ask an owner of subscription {self.account.id} for the role {role}.",
            404: "Check the subscription.",
        }


def _latest(metric: Item) -> int | None:
    """Return the last value of a metric; None if it has none, as in the first hours."""
    series: list[Item] = metric.get("timeseries") or []
    values = [point["average"] for item in series for point in item["data"] if "average" in point]
    return int(values[-1]) if values else None


def _resource(item: Item, cluster: str, groups: frozenset[str] | set[str]) -> CloudResource:
    type_ = item["type"].lower()
    group = _group_of(item["id"])
    return CloudResource(
        kind=_KINDS.get(type_) or str(item["type"]),
        id=item["id"],
        name=item["name"],
        location=item.get("location", "global"),
        expires=_tag(item, _EXPIRES),
        cluster=cluster or (item["id"] if _KINDS.get(type_) == "cluster" else ""),
        group=item["id"].rpartition("/providers/")[0] if group in groups else "",
        holds_data=type_ in _DATA,
        price_item=_PRICES.get(type_, ""),
    )


def _group(item: Item, contents: Sequence[Item], cluster: str) -> CloudResource:
    return CloudResource(
        kind="resource group",
        id=item["id"],
        name=item["name"],
        location=item.get("location", "global"),
        expires=_tag(item, _EXPIRES),
        cluster=cluster,
        holds_data=any(resource["type"].lower() in _DATA for resource in contents),
    )


def _pool(scale_set: Item, cluster: str) -> CloudResource:
    """Return the node pool of a scale set (AKS tags scale sets with `aks-managed-poolName`)."""
    name = _tag(scale_set, "aks-managed-poolName")
    return CloudResource(
        kind="node pool",
        id=f"{cluster}/agentPools/{name}",
        name=name,
        location=scale_set.get("location", "global"),
        expires=_tag(scale_set, _EXPIRES),
        cluster=cluster,
    )


def _tag(item: Item, name: str) -> str:
    """Return a tag's value; tag names are case-insensitive (Azure docs, tag-resources, 2026)."""
    tags: Mapping[str, str] = item.get("tags") or {}
    return next((value for key, value in tags.items() if key.lower() == name.lower()), "")


def _group_of(identity: str) -> str:
    """Return the id of a resource's group, in lower case: Azure ids are case-insensitive."""
    return "/".join(identity.lower().split("/")[:5])


def _rank(item: Item) -> int:
    """Return a type's index in the order of deletion."""
    type_ = item["type"].lower()
    return _ORDER.index(type_) if type_ in _ORDER else len(_ORDER)
