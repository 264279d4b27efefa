"""Which kinds a cluster knows."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final

from ebbtide.errors import EbbtideError
from ebbtide.kubernetes_api import JSON, Api
from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, name_of, objects_at

_AGGREGATED: Final = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class UnknownKindError(EbbtideError):
    """The cluster does not know a kind: nothing defines it, or nothing does so yet."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a cluster has the objects of a kind.

    Attributes:
        kind: the kind.
        plural: as paths have it.
        namespaced: whether they are in namespaces.
    """

    kind: Kind
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Path of an object, or without a name of all in the namespace."""
        root = f"/apis/{self.kind.api_version}" if self.kind.group else f"/api/{self.kind.version}"
        where = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}{where}/{self.plural}" + (f"/{name}" if name else "")


class Discovery:
    """The kinds of a cluster, as they were when they were last asked for. Threads may share it.

    One answer tells them all, an aggregated API that cannot be reached among them (Kubernetes 1.30 and later,
    kubernetes.io/docs/concepts/overview/kubernetes-api, aggregated discovery, 2026).
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[Kind, Endpoint] = {}
        self._lock = Lock()

    def find(self, kind: Kind) -> Endpoint:
        """Where objects of a kind are. One that is not known is asked for again.

        Raises:
            UnknownKindError: the cluster does not know it.
            ApiError: the cluster does not answer.
        """
        known = self._known.get(kind)
        if known is None:
            self.refresh()
            known = self._known.get(kind)
        if known is None:
            raise UnknownKindError(kind)
        return known

    def refresh(self) -> None:
        """Ask the cluster anew."""
        found = {
            endpoint.kind: endpoint
            for root in ("/api", "/apis")
            for endpoint in _endpoints(self._api.get(root, accept=_AGGREGATED))
        }
        with self._lock:
            self._known = found

    def version(self) -> str:
        """The API server's version, such as `v1.36.2`."""
        return str(self._api.get("/version")["gitVersion"])

    def api_versions(self) -> list[str]:
        """Versions of groups, and kinds with them, as a chart asks for: `apps/v1`, `apps/v1/Deployment`."""
        self.refresh()
        kinds = list(self._known)
        return sorted({kind.api_version for kind in kinds} | {str(kind) for kind in kinds})


def _endpoints(answer: Object) -> Iterator[Endpoint]:
    for group in objects_at(answer, "items"):
        for version in objects_at(group, "versions"):
            for resource in objects_at(version, "resources"):
                kind = Kind(
                    str(name_of(group)), str(version["version"]), str(resource["responseKind"]["kind"])
                )
                yield Endpoint(kind, str(resource["resource"]), resource.get("scope") == "Namespaced")
