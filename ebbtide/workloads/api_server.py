"""The cluster's API server, with whatever rights and context `kubectl` would have."""

import http
import json
import socket
from collections.abc import Mapping
from typing import Any, Final, Self, TypeGuard, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ebbtide.workloads.errors import WorkloadError
from ebbtide.workloads.objects import Object

MISSING: Final = "Speaking to a cluster needs the official Kubernetes client: pip install 'ebbtide[cluster]'."
_TIMEOUT: Final = (10.0, 60.0)  # seconds to connect, and to wait for an answer
_KUBECTL: Final = "check that `kubectl get namespaces` reaches it"


class ClusterError(WorkloadError):
    """The cluster cannot be asked, or says no; the message says what to do."""


class UnansweredError(ClusterError):
    """The API server does not answer, or not now: asking again later may do."""


class RefusedError(ClusterError):
    """The API server said no.

    Attributes:
        status: of HTTP.
        reason: the API's word for it (`AlreadyExists`); empty where it gives none.
        said: what it said.
    """

    def __init__(self, status: int, reason: str, said: str) -> None:
        super().__init__(_known(status) or f"The API server refused: {said}")
        self.status, self.reason, self.said = status, reason, said


def _known(status: int) -> str:
    if status == http.HTTPStatus.UNAUTHORIZED:
        return (
            "The API server does not know you: log in to the cloud again, or get new credentials for the "
            f"cluster, and {_KUBECTL}."
        )
    return ""


class ApiServer:
    """An API server, asked with JSON over the official client: its typed models know only the fields of one
    version of Kubernetes, and nothing of Kueue.

    Attributes:
        namespace: the one that the kubeconfig's context names, or else `default`.
    """

    def __init__(self, client: Any, namespace: str) -> None:
        self._client, self.namespace = client, namespace

    @classmethod
    def connect(cls, context: str = "") -> Self:
        """The API server of the user's kubeconfig. Nothing is sent yet.

        Args:
            context: of the kubeconfig; the current one where it is empty.

        Raises:
            ClusterError: the client is not installed, or no kubeconfig has the context.
        """
        try:
            from kubernetes import client, config  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]
        except ModuleNotFoundError:
            raise ClusterError(MISSING) from None
        kube: Any = config
        settings: Any = client.Configuration()
        try:
            contexts, active = kube.list_kube_config_contexts()
            kube.load_kube_config(context=context or None, client_configuration=settings)
        except (kube.ConfigException, OSError) as error:
            raise ClusterError(_without_config(context, str(error))) from None
        # Whoever asks knows whether to ask again; the client's own retries take minutes to say no.
        settings.retries = False
        settings.proxy = _proxy(settings.host)
        chosen = next((item for item in contexts if item["name"] == context), active)
        return cls(client.ApiClient(settings), chosen["context"].get("namespace") or "default")

    @property
    def host(self) -> str:
        """Its address."""
        return str(self._client.configuration.host)

    def get(self, path: str, **query: str) -> Object:
        """An object, or a list of them.

        Raises:
            RefusedError: the API server said no.
            UnansweredError: it did not answer.
        """
        return self._call("GET", path, query)

    def find(self, path: str, **query: str) -> Object | None:
        """The same, or None where there is none, its kind is not installed, or one may not look."""
        try:
            return self.get(path, **query)
        except RefusedError as error:
            if error.status in {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.FORBIDDEN}:
                return None
            raise

    def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Create an object; a field that the API does not know is an error.

        Args:
            path: of its kind.
            body: the object.
            dry_run: whether to do all but keep it: validation, quota and webhooks have their say.

        Raises:
            RefusedError: the API server said no.
            UnansweredError: it did not answer.
        """
        query = {"fieldValidation": "Strict", "fieldManager": "ebbtide"}
        return self._call("POST", path, query | ({"dryRun": "All"} if dry_run else {}), body)

    def _call(self, method: str, path: str, query: Mapping[str, str], body: Any = None) -> Object:
        from kubernetes.client.exceptions import (  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]
            ApiException,
        )
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return self._client.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params={"Accept": "application/json", "Content-Type": "application/json"},
                body=body,
                response_type="object",
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _request_timeout=_TIMEOUT,
            )
        except ApiException as error:
            failure = cast("Any", error)
            if not failure.status:  # the client's word for a certificate that it does not trust
                raise self._unreached(str(failure.reason).rpartition("\n")[2]) from None
            raise _refused(failure) from None
        except (HTTPError, socket.gaierror) as error:
            raise self._unreached(_briefly(error)) from None

    def _unreached(self, why: str) -> UnansweredError:
        return UnansweredError(
            f"The API server at {self.host} cannot be reached ({why}): {_KUBECTL} from this machine."
        )


def _refused(failure: Any) -> ClusterError:
    status = int(failure.status)
    try:
        said = json.loads(failure.body)
    except (TypeError, ValueError):
        said = {}
    answer = cast("Object", said if isinstance(said, dict) else {})
    message = str(answer.get("message") or failure.body or failure.reason)
    if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR or status == http.HTTPStatus.TOO_MANY_REQUESTS:
        return UnansweredError(f"The API server could not answer (status {status}): {message}")
    return RefusedError(status, str(answer.get("reason") or ""), message)


def _briefly(error: BaseException) -> str:
    """What lies under urllib3's layers: `Connection refused`, `Name or service not known`."""
    found = error
    while inner := next(
        (it for it in (getattr(found, "reason", None), found.__cause__, *found.args) if _is_error(it)), None
    ):
        found = inner
    return getattr(found, "strerror", None) or str(found)


def _is_error(item: object) -> TypeGuard[BaseException]:
    return isinstance(item, BaseException)


def _without_config(context: str, why: str) -> str:
    if context:
        return f"No kubeconfig has a context {context} that can be used: {why.rstrip('.')}."
    return (
        f"There is no kubeconfig to reach a cluster with: {why.rstrip('.')}. Get the cluster's credentials, "
        "or name a file in KUBECONFIG."
    )


def _proxy(host: str) -> str | None:
    """The one that the environment names, as `kubectl` takes it; this client does not by itself (30.1)."""
    parts = urlsplit(host)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
