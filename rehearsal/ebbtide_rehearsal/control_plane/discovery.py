"""The kinds that a cluster serves, and strict validation of a program's Kubernetes objects by a dry run.

pulumi-kubernetes (4.25, provider/pkg/provider/provider.go, normalizeInputs) drops fields of built-in kinds
that its own client does not know, before the API server sees them. So the objects are those of a recording
of the program.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, cast

from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import UNKNOWN, leaves, revealed
from ebbtide.clients.kubernetes import JSON, Api, ApiError
from ebbtide.clients.kubernetes.api import APPLY
from ebbtide.clients.kubernetes.objects import parts
from ebbtide.errors import EbbtideError

_AGGREGATED: Final = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_QUERY: Final = {
    "dryRun": "All",
    "fieldManager": "ebbtide-strict",
    "fieldValidation": "Strict",
    "force": "true",
}
_ABOUT_FIELDS: Final = ("field not declared in schema", "unknown field", "duplicate field")
"""Parts of the API server's messages about fields; other refusals may come from assumed values."""


class UnknownKindError(EbbtideError):
    """The cluster does not serve a kind."""


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind and its location in the API.

    Attributes:
        api_version: as in manifests: `v1`, `batch/v1`.
        kind: as in manifests.
        plural: the name in paths.
        namespaced: true if its objects are in namespaces.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def token(self) -> str:
        """The type token of pulumi-kubernetes, as `kubernetes:core/v1:Pod`."""
        group = self.api_version if "/" in self.api_version else f"core/{self.api_version}"
        return f"kubernetes:{group}:{self.kind}"

    def path(self, namespace: str) -> str:
        """Return the path of the collection."""
        root = "apis" if "/" in self.api_version else "api"
        location = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"/{root}/{self.api_version}{location}/{self.plural}"


class Discovery:
    """The kinds of a cluster, cached; an unknown one is queried again. Safe for threads.

    Source: kubernetes.io/docs/concepts/overview/kubernetes-api, aggregated discovery (Kubernetes 1.30 and
    later, 2026).
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._resources: tuple[ApiResource, ...] = ()
        self._lock = Lock()

    def of(self, manifest: Mapping[str, Any]) -> ApiResource:
        """Return the kind of a manifest.

        Raises:
            UnknownKindError: the cluster does not serve it.
            ApiError: the cluster does not answer.
        """
        api_version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
        for resource in self._known_or_new():
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise UnknownKindError(f'no matches for kind "{kind}" in version "{api_version}"')

    def at(self, api_version: str, plural: str) -> ApiResource | None:
        """Return the kind with a name in paths; None if the cluster serves none.

        Raises:
            ApiError: the cluster does not answer.
        """
        matches = (
            resource
            for resource in self._known_or_new()
            if (resource.api_version, resource.plural) == (api_version, plural)
        )
        return next(matches, None)

    def _known_or_new(self) -> Iterator[ApiResource]:
        """Yield known kinds, then those of a new query."""
        yield from self._resources
        served = tuple(
            resource
            for root in ("/api", "/apis")
            for resource in _resources(self._api.get(root, accept=_AGGREGATED))
        )
        with self._lock:
            self._resources = served
        yield from served


def _resources(answer: Mapping[str, Any]) -> Iterator[ApiResource]:
    for group in parts(answer, "items"):
        name = group["metadata"].get("name")
        for version in parts(group, "versions"):
            api_version = f"{name}/{version['version']}" if name else version["version"]
            for resource in parts(version, "resources"):
                yield ApiResource(
                    api_version,
                    resource["responseKind"]["kind"],
                    resource["resource"],
                    resource.get("scope") == "Namespaced",
                )


def wrong_fields(recording: Recording, api: Api) -> Iterator[str]:
    """Yield a sentence for each object of a program with a field that the API server does not know.

    Objects with unknown values are skipped, as are those of charts and kustomizations.

    Args:
        api: a cluster with the namespaces and kinds of the program.

    Raises:
        ApiError: the API server does not answer.
    """
    known = Discovery(api)
    for resource in recording:
        manifest = cast("dict[str, Any]", revealed(dict(resource.inputs)))
        values = [value for _, value in leaves(dict(resource.inputs))]
        if resource.read or "apiVersion" not in manifest or any(value is UNKNOWN for value in values):
            continue
        metadata = cast("dict[str, str]", manifest.get("metadata") or {})
        try:
            path = known.of(manifest).path(metadata.get("namespace", "default"))
            api.patch(f"{path}/{metadata['name']}", manifest, APPLY, **_QUERY)
        except UnknownKindError:
            continue  # not served any more, or not yet
        except ApiError as error:
            if any(text in str(error) for text in _ABOUT_FIELDS):
                yield f"{manifest['kind']} {metadata['name']}: {error}"
