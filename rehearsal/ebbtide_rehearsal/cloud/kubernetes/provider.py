"""The Kubernetes provider to the engine: before it knows its cluster, and with it."""

from collections.abc import Sequence
from importlib import metadata
from typing import Final

from ebbtide.kubernetes_api import Api, ApiError, KubeconfigError
from ebbtide_rehearsal.cloud.kubernetes import kubeconfig, resources, settings
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster, Patience
from ebbtide_rehearsal.cloud.kubernetes.component import construct
from ebbtide_rehearsal.cloud.kubernetes.sources import Sources
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Change,
    Constructed,
    Construction,
    Failure,
    Made,
    Properties,
    Provider,
    Read,
    RefusedError,
)
from ebbtide_rehearsal.cloud.store import Store

VERSION: Final = metadata.version("pulumi-kubernetes")
USUAL: Final = Patience()


class KubernetesProvider:
    """In place of the Kubernetes provider."""

    def __init__(
        self,
        store: Store,
        sources: Sources,
        patience: Patience = USUAL,
        variables: Properties | None = None,
    ) -> None:
        """A provider, for the engine to configure.

        Args:
            store: of the stand-in cloud.
            sources: where charts and kustomizations are.
            patience: how long is waited for objects.
            variables: inputs of the provider resource; None for a provider that was not configured.
        """
        self.package, self.version = "kubernetes", VERSION
        self._store, self._sources, self._patience = store, sources, patience
        self._variables: Properties = variables or {}
        self._known: Cluster | None = None

    def configured(self, variables: Properties) -> Provider:
        """One for a cluster, which is not asked for anything yet."""
        return KubernetesProvider(self._store, self._sources, self._patience, variables)

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """Options that a rehearsal has nothing for."""
        return settings.wrong_with(variables)

    def change_config(self, old: Properties, new: Properties) -> Change:
        """Another cluster replaces all that is in it."""
        return kubeconfig.change(old, new)

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """Inputs with a name and a namespace."""
        return resources.checked(self._reached(), call, old, new), ()

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> Change:  # noqa: ARG002 - the state has it
        """What is changed in place, and what needs another object."""
        return resources.compared(self._reached(), self._variables, call, old, new)

    def create(self, call: Call, inputs: Properties) -> Made:
        """Make the object, and wait until it is as it should be."""
        cluster = self._reached()
        if cluster is None and call.preview:
            return Made("", inputs)
        return resources.created(cluster or self._cluster(), self._variables, call, inputs)

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """The object as it is."""
        cluster = self._reached()
        if cluster is None and settings.on(self._variables, "deleteUnreachable"):
            return None
        return resources.read(cluster or self._cluster(), call, identity, known)

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:  # noqa: ARG002 - the state has it
        """Change the object, and wait until it is as it should be."""
        cluster = self._reached()
        if cluster is None and call.preview:
            return new
        return resources.updated(cluster or self._cluster(), self._variables, call, old, new)

    def delete(self, call: Call, identity: str, known: Properties) -> None:  # noqa: ARG002 - the state has it
        """Ask for the object's end, and wait until it is gone."""
        cluster = self._reached()
        if cluster is None and settings.on(self._variables, "deleteUnreachable"):
            return
        resources.deleted(cluster or self._cluster(), call, known)

    def invoke(self, token: str, arguments: Properties) -> Properties:  # noqa: ARG002 - there are none
        """The provider's functions are none that a rehearsal has."""
        raise RefusedError(f"The rehearsal's Kubernetes provider has no function {token}.")

    def construct(self, construction: Construction) -> Constructed:
        """Make the objects of a chart or a kustomization."""
        return construct(self._cluster, self._sources, self._variables, construction)

    def _reached(self) -> Cluster | None:
        try:
            return self._cluster()
        except RefusedError:
            return None

    def _cluster(self) -> Cluster:
        """The cluster; raises RefusedError where it cannot be reached."""
        if self._known is None:
            try:
                self._known = _reach(self._variables, self._store, self._patience)
            except (ApiError, KubeconfigError, OSError, ValueError) as error:
                raise RefusedError(f"configured Kubernetes cluster is unreachable: {error}") from None
        return self._known


def _reach(variables: Properties, store: Store, patience: Patience) -> Cluster:
    active = kubeconfig.active(variables)
    if active is None:
        raise kubeconfig.KubeconfigError("the kubeconfig leads to no cluster")
    config = kubeconfig.loaded(str(variables["kubeconfig"]))
    context = variables.get("context")
    api = Api.of_kubeconfig(config, str(context or ""))
    api.get("/version")
    return Cluster(api, store, patience, active[1])
