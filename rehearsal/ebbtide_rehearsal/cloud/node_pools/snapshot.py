"""Snapshots of a cluster, read from its API and the fake cloud's store."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.autoscaler.scheduling import ZONE, Object, Pod, read_pod
from ebbtide.autoscaler.snapshot import ClusterSnapshot, PodSet, ProvisioningRequest, read_budget, read_node
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide_rehearsal.cloud.pools import machines, pools, settings_of
from ebbtide_rehearsal.cloud.store import Store

_CLAIMS: Final = "/api/v1/persistentvolumeclaims"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
_CLASSES: Final = "/apis/cloud.google.com/v1/computeclasses"
_PRIORITIES: Final = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-priority-expander"
_ZONES: Final = (ZONE, "topology.gke.io/zone", "topology.disk.csi.azure.com/zone")


class SnapshotReader:
    """Reads snapshots of a cluster."""

    def __init__(self, api: Api, store: Store, cluster: str) -> None:
        """Read a cluster from its API and from the fake cloud's state, by its id."""
        self._api, self._store, self._cluster = api, store, cluster
        self._requests: Mapping[str, Object] = {}

    def snapshot(self) -> ClusterSnapshot:
        """Return a snapshot of the cluster."""
        raw = self._api.items("/api/v1/pods")
        zones = self._volume_zones() if any(_claims(pod) for pod in raw) else {}
        priorities = self._api.find(_PRIORITIES)
        requests = self._items(_REQUESTS)
        self._requests = {text(request, "metadata", "uid"): request for request in requests}
        nodes = [read_node(node) for node in self._api.items("/api/v1/nodes")]
        return ClusterSnapshot(
            now=self._store.clock.now(),
            pools=pools(self._store, self._cluster),
            machines=machines(self._store, self._cluster),
            nodes={node.name: node for node in nodes},
            pods=[read_pod(pod, _zones(pod, zones)) for pod in raw],
            daemons=[_daemon(daemon_set) for daemon_set in self._api.items("/apis/apps/v1/daemonsets")],
            budgets=[
                read_budget(budget) for budget in self._api.items("/apis/policy/v1/poddisruptionbudgets")
            ],
            requests=[self._request(request) for request in requests],
            classes={
                text(compute_class, "metadata", "name"): part(compute_class, "spec")
                for compute_class in self._items(_CLASSES)
            },
            priorities=text(priorities, "data", "priorities") if priorities else "",
            autoscaling=settings_of(self._store, self._cluster),
        )

    def raw_request(self, request: ProvisioningRequest) -> Object:
        """Return a ProvisioningRequest as of the last snapshot."""
        return self._requests[request.uid]

    def _items(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a kind, which may not be installed."""
        response = self._api.find(path)
        return response["items"] if response else []

    def _volume_zones(self) -> dict[str, frozenset[str]]:
        """Return the zones of claims' volumes, by the claims' namespace and name."""
        volumes = {
            text(volume, "metadata", "name"): _volume_zone(volume) for volume in self._api.items(_VOLUMES)
        }
        return {
            f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}": zone
            for claim in self._api.items(_CLAIMS)
            if (zone := volumes.get(text(claim, "spec", "volumeName"), frozenset()))
        }

    def _request(self, raw: Object) -> ProvisioningRequest:
        namespace = text(raw, "metadata", "namespace")
        return ProvisioningRequest(
            namespace=namespace,
            name=text(raw, "metadata", "name"),
            uid=text(raw, "metadata", "uid"),
            kind=text(raw, "spec", "provisioningClassName"),
            sets=tuple(
                PodSet(read_pod(template), int(pod_set["count"]))
                for pod_set in parts(raw, "spec", "podSets")
                if (template := self._template(namespace, text(pod_set, "podTemplateRef", "name")))
            ),
            parameters=part(raw, "spec", "parameters"),
            conditions=_conditions(raw, "True"),
            denied=_conditions(raw, "False"),
        )

    def _template(self, namespace: str, name: str) -> Object:
        template = self._api.find(f"/api/v1/namespaces/{namespace}/podtemplates/{name}")
        return part(template, "template") if template else {}


def _conditions(raw: Object, status: str) -> frozenset[str]:
    return frozenset(
        condition["type"] for condition in parts(raw, "status", "conditions") if condition["status"] == status
    )


def _claims(pod: Object) -> list[str]:
    namespace = text(pod, "metadata", "namespace")
    named = [text(volume, "persistentVolumeClaim", "claimName") for volume in parts(pod, "spec", "volumes")]
    return [f"{namespace}/{name}" for name in named if name]


def _zones(pod: Object, zones: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the common zones of all of a pod's volumes; empty for any. No common zone is {""}."""
    bound = [zones[claim] for claim in _claims(pod) if claim in zones]
    if not bound:
        return frozenset()
    first, *others = bound
    return first.intersection(*others) or frozenset({""})


def _volume_zone(volume: Object) -> frozenset[str]:
    terms = parts(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
    return frozenset(
        value
        for term in terms
        for expression in parts(term, "matchExpressions")
        if expression["key"] in _ZONES
        for value in expression.get("values") or ()
    )


def _daemon(raw: Object) -> Pod:
    return read_pod(part(raw, "spec", "template"))
