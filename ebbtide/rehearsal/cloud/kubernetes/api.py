"""The API server of a cluster as a kubeconfig leads to it, in plain JSON, over the official client."""

import json
import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, cast

import urllib3
from kubernetes import client, config  # pyright: ignore[reportMissingTypeStubs] - it has none
from kubernetes.client.exceptions import (  # pyright: ignore[reportMissingTypeStubs] - it has none
    ApiException,
)

from ebbtide.rehearsal.cloud.kubernetes.objects import Object

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH: Final = "application/json-patch+json"

_CONNECTIONS: Final = 64
_SECONDS: Final = 60.0


class ApiError(Exception):
    """The API server refuses, or does not answer. The message is its own.

    Attributes:
        code: HTTP's; 0 where there was no answer.
        reason: the API's word for it, such as `AlreadyExists`.
        causes: what exactly is wrong, where the API says so: `reason`, `message`, `field`.
        about: the kind of what was not found, where it was not; empty for a path that does not exist.
    """

    def __init__(self, code: int, message: str, status: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        status = status or {}
        details: Mapping[str, Any] = status.get("details") or {}
        self.code = code
        self.reason = str(status.get("reason") or "")
        self.causes: list[Object] = details.get("causes") or []
        self.about = str(details.get("kind") or "")

    @property
    def not_found(self) -> bool:
        """Whether there is no such thing."""
        return self.code == HTTPStatus.NOT_FOUND

    @property
    def conflict(self) -> bool:
        """Whether others own what is to be changed, or have changed it."""
        return self.reason == "Conflict"

    @property
    def already_exists(self) -> bool:
        """Whether something of that name is there."""
        return self.reason == "AlreadyExists"


class Api:
    """A cluster's API server. Threads may share it."""

    def __init__(self, kubeconfig: Mapping[str, Any], context: str | None = None) -> None:
        """Speak to the cluster of a kubeconfig, as its user: the program that its user names for a token is
        run now, and again when the token ends.

        A kubeconfig without a certificate authority, as one for GKE's DNS endpoint is, trusts whom this
        process trusts: `SSL_CERT_FILE`, which Go programs go by, too.

        Args:
            kubeconfig: as it is.
            context: which one of its contexts; None for the current one.
        """
        settings: Any = client.Configuration()
        load = cast("Any", config).load_kube_config_from_dict
        load(dict(kubeconfig), context=context, client_configuration=settings)
        settings.ssl_ca_cert = settings.ssl_ca_cert or os.environ.get("SSL_CERT_FILE")
        settings.proxy = None  # an ambient proxy leads away from this machine
        settings.retries = False
        settings.connection_pool_maxsize = _CONNECTIONS
        self._client: Any = client.ApiClient(settings)

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> Object:
        """An object, or a list of them."""
        return self._call("GET", path, query, accept=accept)

    def find(self, path: str) -> Object | None:
        """An object, where there is one."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def items(self, path: str, query: Mapping[str, str] | None = None) -> list[Object]:
        """The objects of a list."""
        return self.get(path, query).get("items") or []

    def create(self, path: str, body: Object, query: Mapping[str, str]) -> Object:
        """Create an object."""
        return self._call("POST", path, query, body)

    def put(self, path: str, body: Object, query: Mapping[str, str]) -> Object:
        """Put an object in the place of the one that is there."""
        return self._call("PUT", path, query, body)

    def patch(self, path: str, body: Any, kind: str, query: Mapping[str, str] | None = None) -> Object:
        """Change an object, by a patch of one of the kinds above."""
        return self._call("PATCH", path, query, body, content=kind)

    def delete(self, path: str, body: Object) -> None:
        """Ask for an object's end."""
        self._call("DELETE", path, None, body)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any = None,
        *,
        content: str = JSON,
        accept: str = JSON,
    ) -> Object:
        try:
            return self._client.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": accept, "Content-Type": content},
                body=body,
                response_type="object",
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _request_timeout=_SECONDS,
            )
        except ApiException as error:
            raise _refusal(error) from None
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, f"{method} {path}: {error}") from None


def _refusal(error: Any) -> ApiError:
    try:
        status: Any = json.loads(error.body)
        return ApiError(int(error.status or 0), str(status["message"]), status)
    except (KeyError, TypeError, ValueError):
        return ApiError(int(error.status or 0), str(error.body or error.reason))
