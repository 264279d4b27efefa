"""A cluster as a provider sees it."""

from dataclasses import dataclass, field
from functools import cached_property

from ebbtide.kubernetes_api import Api, ApiError
from ebbtide_rehearsal.cloud.kubernetes.discovery import Discovery, Endpoint, UnknownKindError
from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind, kind_of
from ebbtide_rehearsal.cloud.kubernetes.kubeconfig import DEFAULT_NAMESPACE
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    Object,
    name_of,
    namespace_of,
    with_metadata,
)
from ebbtide_rehearsal.cloud.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long is waited, in seconds of the wall clock.

    Attributes:
        ready: for an object to be as it should; the real provider's is ten minutes.
        gone: for an object to be gone; likewise.
        settled: for a service's endpoints to stay as they are; the real provider's is ten seconds.
        step: between two looks.
        retries: how often something is tried again whose kind or namespace is not there yet: after one
            second, two, four and so on, times `retry`; as often as the real provider does.
        retry: before the first of them; the real provider's is one second.
        worth_telling: a wait as long as this is in the timeline.
    """

    ready: float = 120.0
    gone: float = 120.0
    settled: float = 1.0
    step: float = 0.25
    retries: int = 5
    retry: float = 0.5
    worth_telling: float = 5.0


@dataclass(frozen=True)
class Cluster:
    """A cluster that can be reached.

    Attributes:
        api: its API server.
        store: of the stand-in cloud, for its timeline.
        patience: how long is waited.
        namespace: of what names none.
    """

    api: Api
    store: Store
    patience: Patience = field(default_factory=Patience)
    namespace: str = DEFAULT_NAMESPACE

    @cached_property
    def discovery(self) -> Discovery:
        """The kinds that it knows."""
        return Discovery(self.api)

    def knows(self, kind: Kind) -> Endpoint | None:
        """Where it has the objects of a kind; None where it knows of no such kind."""
        try:
            return self.discovery.find(kind)
        except UnknownKindError:
            return None

    def placed(self, manifest: Object) -> tuple[Endpoint, Object]:
        """Where an object is to be, and the object with the namespace that it then has.

        Raises:
            UnknownKindError: nothing defines its kind.
        """
        endpoint = self.discovery.find(kind_of(manifest))
        namespace = (namespace_of(manifest) or self.namespace) if endpoint.namespaced else None
        return endpoint, with_metadata(manifest, namespace=namespace)

    def path(self, manifest: Object) -> str:
        """Path of an object.

        Raises:
            UnknownKindError: nothing defines its kind.
        """
        endpoint, placed = self.placed(manifest)
        return endpoint.path(namespace_of(placed), name_of(placed))

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object; None where there is none, or no such kind."""
        endpoint = self.knows(kind)
        return self.api.find(endpoint.path(namespace, name)) if endpoint else None

    def warnings(self, manifest: Object) -> list[str]:
        """What was last said of an object, by whoever warned of it; the newest last."""
        if not namespace_of(manifest):
            return []
        endpoint = Endpoint(Kind("", "v1", "Event"), "events", namespaced=True)
        about = f"involvedObject.name={name_of(manifest)},involvedObject.kind={manifest['kind']},type=Warning"
        try:
            events = self.api.items(endpoint.path(namespace_of(manifest)), fieldSelector=about)
        except ApiError:
            return []
        return [f"[{event.get('reason')}] {event.get('message')}" for event in events]
