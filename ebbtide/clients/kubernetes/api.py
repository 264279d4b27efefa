"""A JSON client for an API server."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import ModuleType
from typing import Any, Final, Self

from ebbtide.clients.kubernetes.errors import ApiError, MissingClientError
from ebbtide.clients.kubernetes.objects import items_of
from ebbtide.values import clock
from ebbtide.values.paths import Object

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""The objects of a list without anything but their metadata (Kubernetes API concepts, metadata-only fetches,
1.35)."""
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
"""For built-in kinds: elements of lists such as conditions are merged by their key (Kubernetes API concepts,
1.36)."""

_MANAGER: Final = "ebbtide"
_STRICT: Final = {"fieldValidation": "Strict"}
_PAUSES: Final = (0.3, 1.0, 3.0)
"""Seconds before each repetition of a request."""
_LONGEST_PAUSE: Final = 30.0
"""Maximum of a pause that the API server asks for, in seconds."""
_LAST: Final = 60.0
"""Seconds after which a request is not repeated any more."""


class Api:
    """A client for an API server with a single identity. It is thread-safe and connects on first use.

    Requests whose answer is lost, and those that the API server answers with 429 or 5xx, are repeated, up to
    three times within a minute: after a lost answer, `create` can find its own object and raise
    `AlreadyExists`. Every method raises `ApiError` if the API server rejects the request or does not answer.
    Keyword arguments are the API's query parameters, such as `labelSelector`.

    Attributes:
        namespace: the namespace of the kubeconfig's context, or else `default`.
    """

    def __init__(
        self, client: Any, namespace: str = "default", manager: str = _MANAGER, user: str = ""
    ) -> None:
        """Wrap a client of the official library; use the class methods to create one.

        Args:
            namespace: as the attribute.
            manager: the field manager of writes (Kubernetes docs, server-side apply).
            user: see `as_user`.
        """
        self._client, self.namespace, self._manager = client, namespace, manager
        self._user = user

    @classmethod
    def of_token(cls, server: str, authority: str, token: str, *, manager: str = _MANAGER) -> Self:
        """Connect to a server with a bearer token.

        Args:
            server: URL of the server.
            authority: file with its certificate authority.
            manager: as for the constructor.

        Raises:
            MissingClientError: the client is not installed.
        """
        return cls(_official().of_token(server, authority, token), manager=manager)

    @classmethod
    def of_kubeconfig(cls, kubeconfig: Mapping[str, Any], context: str = "") -> Self:
        """Connect to the cluster of a kubeconfig as its user. A credential plugin runs now, and again when
        its token expires.

        A kubeconfig without a certificate authority, such as one for GKE's DNS endpoint, trusts the process's
        authorities: `SSL_CERT_FILE`, as in Go programs.

        Args:
            kubeconfig: content of the kubeconfig.
            context: name of the context; empty for the current one.

        Raises:
            MissingClientError: the client is not installed.
            KubeconfigError: the kubeconfig cannot be used.
        """
        return cls(*_official().of_kubeconfig(kubeconfig, context))

    @classmethod
    def of_user(cls, context: str = "") -> Self:
        """Connect to the cluster that `kubectl` would use: from the files in `KUBECONFIG`, or
        `~/.kube/config`.

        Args:
            context: name of the context; empty for the current one.

        Raises:
            MissingClientError: the client is not installed.
            KubeconfigError: there is no kubeconfig, or it does not have the context.
        """
        return cls(*_official().of_user(context))

    def as_user(self, user: str) -> Self:
        """Return a client of the same server that impersonates a user (Kubernetes docs, user impersonation);
        without a name, the client acts as this user."""
        return type(self)(self._client, self.namespace, self._manager, user)

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Object:
        """Return an object, or a list of objects."""
        return self._call("GET", path, query, accept=accept)

    def find(self, path: str, **query: str) -> Object | None:
        """Return an object; None if it does not exist."""
        try:
            return self.get(path, **query)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a list."""
        return items_of(self.get(path, **query))

    def lines(self, path: str, **query: str) -> Iterator[str]:
        """Yield the lines of a text, such as a pod's log; with `follow=true`, as they are written."""
        return _official().lines(self._client, path, query, self._headers("*/*"))

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Create an object; an unknown field is an error."""
        return self._call("POST", path, {"fieldManager": self._manager, **_STRICT, **query}, body)

    def apply(self, path: str, body: Mapping[str, Any]) -> Object:
        """Create or update an object by server-side apply, forcing ownership of conflicting fields."""
        query = {"fieldManager": self._manager, "force": "true", **_STRICT}
        return self._call("PATCH", path, query, body, content=APPLY)

    def put(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Replace an object."""
        return self._call("PUT", path, query, body)

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Object:
        """Patch an object, by default with a JSON merge patch."""
        return self._call("PATCH", path, query, body, content=kind)

    def delete(self, path: str, *, uid: str = "", **options: Any) -> None:
        """Delete an object; a missing object is not an error.

        Args:
            uid: its UID: another object that has its name by now is not deleted, which is not an error.
            options: delete options, such as `propagationPolicy`.
        """
        only = {"preconditions": {"uid": uid}} if uid else {}
        try:
            self._call("DELETE", path, {}, {"apiVersion": "v1", "kind": "DeleteOptions", **only, **options})
        except ApiError as error:
            if not (error.not_found or (uid and error.conflict)):
                raise

    def now(self) -> datetime:
        """Return the time, which is the server's if this machine's clock is wrong."""
        self.get("/version")
        return clock.now()

    def close(self) -> None:
        """Close the connections."""
        self._client.rest_client.pool_manager.clear()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any = None,
        *,
        content: str = JSON,
        accept: str = JSON,
    ) -> Object:
        headers = {**self._headers(accept), "Content-Type": content}
        end = time.monotonic() + _LAST
        for pause in _PAUSES:
            try:
                return _official().call(self._client, method, path, query, headers, body)
            except ApiError as error:
                if not error.repeatable or time.monotonic() > end:
                    raise
                time.sleep(min(max(pause, error.retry_after), _LONGEST_PAUSE))
        return _official().call(self._client, method, path, query, headers, body)

    def _headers(self, accept: str) -> dict[str, str]:
        user = {"Impersonate-User": self._user} if self._user else {}
        return {"Accept": accept, **user}


def _official() -> ModuleType:
    """Import the official client, which takes half a second."""
    try:
        from ebbtide.clients.kubernetes import official  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "kubernetes":
            raise MissingClientError from None
        raise
    return official
