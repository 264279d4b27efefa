"""Google Cloud: resources of a project that belong to a cluster or expire.

Sources: Compute Engine v1 and Kubernetes Engine v1 REST references (2026). A cluster's resources:

- Disks have the labels `goog-k8s-cluster-name` and `goog-k8s-cluster-location`, and the cluster's id in
  `goog-gke-cluster-id-base32` (exported disk in avnit/geminipoc, ComputeDisk).
- Firewall rules are named `gke-NAME-HASH-…`, and apply to nodes with the tag `gke-NAME-HASH-node`; HASH is
  the first 8 digits of the cluster's id, and NAME may be truncated (GKE docs, firewall-rules;
  estrobbe-public/PublicPortfolio, where firewall rules of hash 0712d06d belong to a disk's id a4jna3p5…).
- Load balancers of Services are named `a` and the Service's UID, and their firewall rules `k8s-fw-` and that
  name (kubernetes/cloud-provider, DefaultLoadBalancerName). Newer ones and those of Ingresses are named in
  annotations of the object (kubernetes/ingress-gce, pkg/annotations).
- Network endpoint groups have the UID of the namespace kube-system in their description, as `cluster-uid`
  (kubernetes/ingress-gce, pkg/neg/types).
"""

import base64
import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, cast

from google.auth.transport.requests import AuthorizedSession

from ebbtide.clients.clouds.google import GoogleEndpoints
from ebbtide.clients.clouds.http import document_of, get_json, pages, part, post_json, send
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

PAGE_SIZE = 500
"""Maximum number of resources of a page (Compute Engine v1, `maxResults`)."""

OBJECTS_OF_PAGE = 1000
"""Maximum number of objects of a page (Cloud Storage JSON API v1, `maxResults`)."""

_MOST_OBJECTS: Final = 10_000
"""Number of objects after which a bucket is not counted further: each thousand is a request."""
_POLL = 2.0  # seconds
_TIMEOUT: Final = 1800.0  # seconds; deleting a cluster takes minutes
_EXPIRES: Final = "ebbtide-expires"
_NAME, _LOCATION = "goog-k8s-cluster-name", "goog-k8s-cluster-location"
_ID: Final = "goog-gke-cluster-id-base32"
_HASH: Final = 8
_EMPTY: Final = "NO_RESULTS_ON_PAGE"
"""Warning code of an empty list. With any other warning, the list is incomplete."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A resource type of Compute Engine.

    Attributes:
        noun: display name.
        collection: name in URLs.
        is_global: True if it has no zone or region, and no aggregated list.
        of_load_balancer: True if it is a component of a load balancer and has its name.
    """

    noun: str
    collection: str
    is_global: bool = False
    of_load_balancer: bool = False


_KINDS: Final = (
    _Kind("forwarding rule", "forwardingRules", of_load_balancer=True),
    _Kind("target proxy", "targetHttpProxies", of_load_balancer=True),
    _Kind("target proxy", "targetHttpsProxies", of_load_balancer=True),
    _Kind("URL map", "urlMaps", of_load_balancer=True),
    _Kind("target pool", "targetPools", of_load_balancer=True),
    _Kind("backend service", "backendServices", of_load_balancer=True),
    _Kind("network endpoint group", "networkEndpointGroups"),
    _Kind("health check", "healthChecks", of_load_balancer=True),
    _Kind("health check", "httpHealthChecks", is_global=True, of_load_balancer=True),
    _Kind("firewall rule", "firewalls", is_global=True),
    _Kind("address", "addresses", of_load_balancer=True),
    _Kind("disk", "disks"),
    _Kind("snapshot", "snapshots", is_global=True),
)
"""In order of deletion: each is used by those before it."""


@dataclass(frozen=True, slots=True)
class GoogleInventory:
    """Resources of a project."""

    account: Account
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def check(self) -> None:
        """See `Inventory.check`: permission to list clusters is required to delete them."""
        self.clusters()

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """See `Inventory.identify`: adds GKE's id of the cluster."""
        existing = next((item for item in self.clusters() if _id_of(item) == cluster.id), None)
        return cluster if existing is None else replace(cluster, uid=str(existing["id"]))

    def of_cluster(self, cluster: ClusterIdentity) -> Sequence[CloudResource]:
        """See `Inventory.of_cluster`.

        If the cluster's id is unknown, it is read from its disks' labels. Without an id, firewall rules are
        not included, since another cluster may have had the same name.
        """
        items = {kind: list(self._items(kind)) for kind in _KINDS}
        marked = _Marked(_with_uid(cluster, [item for kind in items for item in items[kind]]))
        names = marked.load_balancers(
            item for kind in items if kind.noun == "firewall rule" for item in items[kind]
        )
        clusters = [_cluster(item) for item in self.clusters() if _id_of(item) == cluster.id]
        parts = [
            _resource(kind, item, cluster.id)
            for kind in _KINDS
            for item in items[kind]
            if marked.has(kind, item, names)
        ]
        return [*clusters, *parts]

    def expiring(self) -> Sequence[CloudResource]:
        """See `Inventory.expiring`: clusters, node pools, and labelled resources of Compute Engine."""
        clusters = self.clusters()
        owners = {(item["name"], item["location"]): _id_of(item) for item in clusters}
        listed = [
            *(_cluster(item) for item in clusters),
            *(_pool(cluster, pool) for cluster in clusters for pool in cluster.get("nodePools") or ()),
            *(
                _resource(kind, item, _labelled(item, self.account, owners))
                for kind in _KINDS
                for item in self._items(kind)
            ),
        ]
        return [resource for resource in listed if resource.expires]

    def grants(self, principals: Collection[str]) -> Sequence[CloudGrant]:
        """See `Inventory.grants`: bindings of the project's own policy (Resource Manager API v1,
        `projects.getIamPolicy`, 2026)."""
        url = f"{self.endpoints.resource_manager}/projects/{self.account.id}:getIamPolicy"
        advice = {403: f"Ask an owner of {self.account.id} for roles/iam.securityReviewer."}
        policy = post_json(self.session, url, {"options": {"requestedPolicyVersion": 3}}, advice)
        return [
            CloudGrant(
                id=f"{self.account.id}/{binding['role']}/{member}", role=binding["role"], principal=member
            )
            for binding in policy.get("bindings", [])
            for member in binding.get("members", [])
            if member in principals
        ]

    def existing(self, ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """See `Inventory.existing`: the name of a bucket may be another project's, which denies access (`get`
        of Kubernetes Engine API v1, Cloud Storage JSON API v1, IAM API v1, Filestore API v1, Artifact
        Registry API v1, 2026)."""
        found: dict[str, Mapping[str, str]] = {}
        for identity in ids:
            try:
                found[identity] = get_json(self.session, self._address(identity), {}, {}).get("labels") or {}
            except CloudApiError as error:
                if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
                    raise
        return found

    def _address(self, identity: str) -> str:
        """Return the URL of a resource that Pulumi imports."""
        match identity.split("/"):
            case [bucket]:
                return f"{self.endpoints.storage}/b/{bucket}"
            case [*_, "clusters", _]:
                return f"{self.endpoints.container}/{identity}"
            case [*_, "serviceAccounts", _]:
                return f"{self.endpoints.iam}/{identity}"
            case [*_, "instances", _]:
                return f"{self.endpoints.filestore}/{identity}"
            case _:
                return f"{self.endpoints.artifact_registry}/{identity}"

    def contents(self, data: StoredData) -> Contents | None:
        """See `Inventory.contents`: objects of a bucket are counted up to a limit; a registry has its size
        (Cloud Storage JSON API v1, `objects.list`; Artifact Registry API v1, `sizeBytes`, 2026).
        """
        if data.kind == "registry":
            url = f"{self.endpoints.artifact_registry}/{data.id}"
            advice = {403: f"Ask an owner of {self.account.id} for roles/artifactregistry.reader."}
            return Contents(int(get_json(self.session, url, {}, advice).get("sizeBytes", 0)))
        if data.kind != "bucket":
            return None
        url = f"{self.endpoints.storage}/b/{data.name}/o"
        parameters = {"fields": "items(size),nextPageToken", "maxResults": str(OBJECTS_OF_PAGE)}
        advice = {403: f"Ask an owner of {self.account.id} for roles/storage.objectViewer."}
        sizes: list[int] = []
        for page in pages(self.session, url, parameters, advice):
            sizes += [int(item["size"]) for item in page.get("items", [])]
            if len(sizes) >= _MOST_OBJECTS and page.get("nextPageToken"):
                return Contents(sum(sizes), len(sizes), is_partial=True)
        return Contents(sum(sizes), len(sizes))

    def delete(self, resource: CloudResource) -> None:
        """See `Inventory.delete`."""
        is_cluster = "/clusters/" in resource.id
        base = self.endpoints.container if is_cluster else self.endpoints.compute
        try:
            operation = document_of(send(self.session, "DELETE", f"{base}/{resource.id}", self._advice()))
        except CloudApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return
            raise
        scope = resource.id.rpartition("/clusters/")[0] if is_cluster else resource.id.rsplit("/", 2)[0]
        self._finish(f"{base}/{scope}/operations/{operation['name']}", operation)

    def _finish(self, url: str, operation: Item) -> None:
        end = time.monotonic() + _TIMEOUT
        while operation.get("status") != "DONE":
            if time.monotonic() > end:
                raise CloudApiError(f"The deletion has not ended after {_TIMEOUT / 60:.0f} minutes: {url}")
            time.sleep(_POLL)
            operation = get_json(self.session, url, {}, self._advice())
        error: Any = operation.get("error")
        if error:
            errors = cast("list[Item]", error.get("errors") or [error])
            raise CloudApiError("; ".join(str(item.get("message", "")) for item in errors))

    def clusters(self, advice: Mapping[int, str] | None = None) -> list[dict[str, Any]]:
        """Return the project's clusters.

        Args:
            advice: a sentence for the user by HTTP status, in place of that for all resources.

        Raises:
            CloudApiError: the cloud rejects the request, or a zone does not answer, so that the list may be
                incomplete.
        """
        url = f"{self.endpoints.container}/projects/{self.account.id}/locations/-/clusters"
        answer = get_json(self.session, url, {}, self._advice() | dict(advice or {}))
        if missing := answer.get("missingZones"):
            raise CloudApiError(f"Kubernetes Engine does not list its clusters in {', '.join(missing)} now.")
        return answer.get("clusters", [])

    def _items(self, kind: _Kind) -> Iterator[Item]:
        scope = "global" if kind.is_global else "aggregated"
        url = f"{self.endpoints.compute}/projects/{self.account.id}/{scope}/{kind.collection}"
        for page in pages(self.session, url, {"maxResults": str(PAGE_SIZE)}, self._advice()):
            if kind.is_global:
                yield from page.get("items", [])
                continue
            for location, listed in page.get("items", {}).items():
                warning = part(listed, "warning").get("code", _EMPTY)
                if warning != _EMPTY:
                    raise CloudApiError(
                        f"Compute Engine does not list {kind.noun}s of {location}: {warning}."
                    )
                yield from listed.get(kind.collection, [])

    def _advice(self) -> dict[int, str]:
        roles = "roles/compute.viewer and roles/container.clusterViewer"
        return {
            403: f"Ask an owner of {self.account.id} for {roles}; to delete, for the roles that the stack "
            "was created with.",
            404: "Check the project.",
        }


@dataclass(frozen=True, slots=True)
class _Marked:
    """Matcher of a cluster's resources."""

    cluster: ClusterIdentity

    def load_balancers(self, firewalls: Iterator[Item]) -> frozenset[str]:
        """Return the names of its load balancers, from its identity and its firewall rules."""
        rules = (str(rule["name"]) for rule in firewalls if self._applies(rule))
        names = {name.removeprefix("k8s-fw-") for name in rules if name.startswith("k8s-fw-")}
        return self.cluster.load_balancers | names

    def has(self, kind: _Kind, item: Item, load_balancers: frozenset[str]) -> bool:
        """Return whether a resource is the cluster's."""
        labels = part(item, "labels")
        name = str(item["name"])
        if _path(item) in self.cluster.handles:
            return True
        if labels.get(_NAME) == self.cluster.name and labels.get(_LOCATION) == self.cluster.location:
            return True
        if kind.of_load_balancer and name in load_balancers:
            return True
        if kind.noun == "network endpoint group":
            uid = _described(item).get("cluster-uid")
            return bool(uid) and uid == self.cluster.namespace_uid
        return kind.noun == "firewall rule" and (
            self._applies(item) or name in load_balancers or name.removeprefix("k8s-fw-") in load_balancers
        )

    def _applies(self, rule: Item) -> bool:
        """Return whether a firewall rule is named with the cluster's hash, or applies only to its nodes."""
        tags: list[str] = rule.get("targetTags") or []
        if tags and all(self._is_own(tag, "node") for tag in tags):
            return True
        return self._is_own(str(rule["name"]), "[a-z0-9-]+")

    def _is_own(self, name: str, rest: str) -> bool:
        digits = self.cluster.uid[:_HASH]
        match = re.fullmatch(f"gke-(?P<name>.+)-{digits}-{rest}", name) if digits else None
        return match is not None and self.cluster.name.startswith(match["name"])


def _with_uid(cluster: ClusterIdentity, items: Sequence[Item]) -> ClusterIdentity:
    """Return a cluster with its id from the labels of its disks, if it is unknown."""
    for item in () if cluster.uid else items:
        labels = part(item, "labels")
        text = str(labels.get(_ID) or "").upper()
        if text and (labels.get(_NAME), labels.get(_LOCATION)) == (cluster.name, cluster.location):
            padded = text + "=" * (-len(text) % 8)
            return replace(cluster, uid=base64.b32decode(padded).hex())
    return cluster


def _cluster(item: Item) -> CloudResource:
    return CloudResource(
        kind="cluster",
        id=_id_of(item),
        name=item["name"],
        location=item["location"],
        expires=str(part(item, "resourceLabels").get(_EXPIRES, "")),
        cluster=_id_of(item),
        price_item="control-plane:gke-standard",
    )


def _pool(cluster: Item, pool: Item) -> CloudResource:
    labels = part(part(pool, "config"), "resourceLabels")
    return CloudResource(
        kind="node pool",
        id=f"{_id_of(cluster)}/nodePools/{pool['name']}",
        name=pool["name"],
        location=cluster["location"],
        expires=str(labels.get(_EXPIRES, "")),
        cluster=_id_of(cluster),
        group=_id_of(cluster),
    )


def _resource(kind: _Kind, item: Item, cluster: str) -> CloudResource:
    price, quantity = _price(kind, item)
    return CloudResource(
        kind=kind.noun,
        id=_path(item),
        name=item["name"],
        location=_last(str(item.get("zone") or item.get("region") or "global")),
        expires=str(part(item, "labels").get(_EXPIRES, "")),
        cluster=cluster,
        holds_data=kind.collection in {"disks", "snapshots"},
        price_item=price,
        quantity=quantity,
    )


def _price(kind: _Kind, item: Item) -> tuple[str, float]:
    """Return the item in the price table, and its quantity."""
    match kind.collection:
        case "disks":
            return f"{_last(str(item.get('type') or 'pd-standard'))}-gib", float(item["sizeGb"])
        case "forwardingRules":
            return "lb-rule", 1
        case "addresses":
            return "nat-ip", 1
        case _:
            return "", 1


def _labelled(item: Item, account: Account, owners: Mapping[tuple[str, str], str]) -> str:
    """Return the id of the cluster in a resource's labels, existing or not; empty without one."""
    labels = part(item, "labels")
    name, location = str(labels.get(_NAME, "")), str(labels.get(_LOCATION, ""))
    if not (name and location):
        return ""
    return owners.get((name, location), f"projects/{account.id}/locations/{location}/clusters/{name}")


def _described(item: Item) -> Item:
    """Return the description of a resource, which controllers write as JSON; empty if it is not JSON."""
    try:
        description: Any = json.loads(item.get("description") or "{}")
    except ValueError:
        return {}
    return cast("Item", description) if isinstance(description, dict) else {}


def _id_of(cluster: Item) -> str:
    """Return `projects/P/locations/L/clusters/N` of a cluster, whose URL may have zones or regions."""
    _, _, path = str(cluster["selfLink"]).partition("/projects/")
    return f"projects/{path.split('/')[0]}/locations/{cluster['location']}/clusters/{cluster['name']}"


def _path(item: Item) -> str:
    """Return the id of a resource, `projects/…`, from its URL."""
    return "projects/" + str(item["selfLink"]).partition("/projects/")[2]


def _last(path: str) -> str:
    return path.rpartition("/")[2]
