"""Kubernetes' API as plain JSON, over the official client."""

import http
import json
from collections.abc import Mapping
from typing import Any, cast

from kubernetes import client  # pyright: ignore[reportMissingTypeStubs]
from kubernetes.client.exceptions import ApiException  # pyright: ignore[reportMissingTypeStubs]
from urllib3.exceptions import HTTPError

FIELD_MANAGER = "ebbtide-rehearsal"
_BEARER = ["BearerToken"]
_TIMEOUT = 30.0

Object = dict[str, Any]
"""A Kubernetes object, as JSON has it."""


class ApiRefusedError(Exception):
    """The API server said no. The message is its own.

    Attributes:
        status: of HTTP; 0 where there was no answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """The API server, as one identity. Threads may share it."""

    def __init__(self, server: str, authority: str, token: str) -> None:
        """Speak to a server.

        Args:
            server: its URL.
            authority: the file with the certificate that vouches for it.
            token: who speaks.
        """
        settings: Any = client.Configuration()
        settings.host, settings.ssl_ca_cert = server, authority
        settings.api_key, settings.api_key_prefix = {"authorization": token}, {"authorization": "Bearer"}
        settings.proxy = None  # an ambient proxy leads away from this machine
        settings.retries = False  # whoever asks knows whether to ask again
        self._client: Any = client.ApiClient(settings)

    def get(self, path: str, **query: Any) -> Object:
        """An object, or a list of them."""
        return self._call("GET", path, query)

    def find(self, path: str) -> Object | None:
        """An object, where there is one."""
        try:
            return self.get(path)
        except ApiRefusedError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def items(self, path: str, **query: Any) -> list[Object]:
        """The objects of a list."""
        return cast("list[Object]", self.get(path, **query)["items"])

    def create(self, path: str, body: Mapping[str, Any], **query: Any) -> Object:
        """Create an object; a field that the API does not know is an error."""
        return self._call("POST", path, {"fieldValidation": "Strict", **query}, body)

    def apply(self, path: str, body: Mapping[str, Any]) -> Object:
        """Make an object, or make it so (server-side apply)."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return self._call("PATCH", path, query, body, "application/apply-patch+yaml")

    def patch(self, path: str, body: Any, kind: str = "application/merge-patch+json") -> Object:
        """Change an object; by a merge patch where nothing else is said."""
        return self._call("PATCH", path, {}, body, kind)

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object; one that is gone is no error."""
        try:
            self._call("DELETE", path, {}, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
        except ApiRefusedError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def close(self) -> None:
        """Close its connections."""
        self._client.rest_client.pool_manager.clear()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any = None,
        kind: str = "application/json",
    ) -> Object:
        try:
            return self._client.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params={"Accept": "application/json", "Content-Type": kind},
                body=body,
                response_type="object",
                auth_settings=_BEARER,
                _return_http_data_only=True,
                _request_timeout=_TIMEOUT,
            )
        except ApiException as error:
            failure = cast("Any", error)
            raise ApiRefusedError(int(failure.status or 0), _message(failure.body, failure.reason)) from None
        except HTTPError as error:
            raise ApiRefusedError(0, str(error)) from None


def _message(body: Any, reason: Any) -> str:
    """What the API server says of a refusal; else what HTTP says."""
    try:
        return str(json.loads(body)["message"])
    except (KeyError, TypeError, ValueError):
        return str(body or reason)
