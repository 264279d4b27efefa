"""An API server, asked with JSON."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final, Self, TypeAlias, cast

from ebbtide.kubernetes_api.errors import ApiError, MissingClientError

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object, as JSON has it."""

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"

_MANAGER: Final = "ebbtide"
_STRICT: Final = {"fieldValidation": "Strict"}


class Api:
    """An API server, as one identity. Threads may share it. Nothing is sent before something is asked.

    Every method raises `ApiError` where the API server refuses or does not answer; nothing is asked twice.
    A keyword is the API's own query parameter, such as `labelSelector`.

    Attributes:
        namespace: the one that the kubeconfig's context names, or else `default`.
    """

    def __init__(
        self, client: Any, namespace: str = "default", manager: str = _MANAGER, user: str = ""
    ) -> None:
        """Over a client of the official library; the class methods make one.

        Args:
            client: an `ApiClient`.
            namespace: see the attribute.
            manager: who owns the fields that are written (Kubernetes docs, server-side apply).
            user: see `as_user`.
        """
        self._client, self.namespace, self._manager = client, namespace, manager
        self._user = user

    @classmethod
    def of_token(cls, server: str, authority: str, token: str, *, manager: str = _MANAGER) -> Self:
        """A server as whoever a token speaks for.

        Args:
            server: its URL.
            authority: the file with the certificate that vouches for it.
            token: who speaks.
            manager: see the constructor.

        Raises:
            MissingClientError: the client is not installed.
        """
        return cls(_official().of_token(server, authority, token), manager=manager)

    @classmethod
    def of_kubeconfig(cls, kubeconfig: Mapping[str, Any], context: str = "") -> Self:
        """The cluster of a kubeconfig, as its user: the program that its user names for a token is run now,
        and again when the token ends.

        A kubeconfig without a certificate authority, as one for GKE's DNS endpoint is, trusts whom this
        process trusts: `SSL_CERT_FILE`, which Go programs go by, too.

        Args:
            kubeconfig: as it is.
            context: which one of its contexts; the current one where it is empty.

        Raises:
            MissingClientError: the client is not installed.
            KubeconfigError: the kubeconfig cannot be used.
        """
        return cls(*_official().of_kubeconfig(kubeconfig, context))

    @classmethod
    def of_user(cls, context: str = "") -> Self:
        """The cluster that `kubectl` would ask: of the files that `KUBECONFIG` names, or `~/.kube/config`.

        Args:
            context: which one of its contexts; the current one where it is empty.

        Raises:
            MissingClientError: the client is not installed.
            KubeconfigError: there is no kubeconfig, or none has the context.
        """
        return cls(*_official().of_user(context))

    def as_user(self, user: str) -> Self:
        """The same server as another user, by impersonation (Kubernetes docs, user impersonation); as itself
        where none is named."""
        return type(self)(self._client, self.namespace, self._manager, user)

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Object:
        """An object, or a list of them."""
        return self._call("GET", path, query, accept=accept)

    def find(self, path: str, **query: str) -> Object | None:
        """An object, where there is one."""
        try:
            return self.get(path, **query)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def items(self, path: str, **query: str) -> list[Object]:
        """The objects of a list."""
        return cast("list[Object]", self.get(path, **query).get("items") or [])

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Create an object; a field that the API does not know is an error."""
        return self._call("POST", path, {"fieldManager": self._manager, **_STRICT, **query}, body)

    def apply(self, path: str, body: Mapping[str, Any]) -> Object:
        """Make an object, or make it so (server-side apply), taking fields from others who own them."""
        query = {"fieldManager": self._manager, "force": "true", **_STRICT}
        return self._call("PATCH", path, query, body, content=APPLY)

    def put(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Put an object in the place of the one that is there."""
        return self._call("PUT", path, query, body)

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Object:
        """Change an object by a patch of one of the kinds above."""
        return self._call("PATCH", path, query, body, content=kind)

    def delete(self, path: str, **options: Any) -> None:
        """Ask for an object's end; one that is gone is no error.

        Args:
            path: of the object.
            options: of the deletion, such as `propagationPolicy`.
        """
        try:
            self._call("DELETE", path, {}, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
        except ApiError as error:
            if not error.not_found:
                raise

    def close(self) -> None:
        """Close its connections."""
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
        headers = {"Accept": accept, "Content-Type": content}
        if self._user:
            headers["Impersonate-User"] = self._user
        return _official().call(self._client, method, path, query, headers, body)


def _official() -> ModuleType:
    """What imports the official client, which takes half a second."""
    try:
        from ebbtide.kubernetes_api import official  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "kubernetes":
            raise MissingClientError from None
        raise
    return official
