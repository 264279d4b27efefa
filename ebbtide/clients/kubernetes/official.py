"""The official client: its configuration, and calls with plain JSON."""

import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes import client, config  # pyright: ignore[reportMissingTypeStubs] - it has none
from kubernetes.client.exceptions import (  # pyright: ignore[reportMissingTypeStubs] - it has none
    ApiException,
)
from urllib3.exceptions import ConnectTimeoutError, HTTPError, ProxyError, SSLError

from ebbtide.clients.kubernetes.errors import ApiError, KubeconfigError
from ebbtide.values import clock

_CONNECTIONS: Final = 64
_TIMEOUT: Final = (10.0, 60.0)  # seconds to connect, and to wait for a response
_CHUNK: Final = 1 << 16
_NOT_SENT: Final = (ConnectTimeoutError, ProxyError, SSLError)
_config: Any = config


def of_token(server: str, authority: str, token: str) -> Any:
    """See `Api.of_token`."""
    settings: Any = client.Configuration()
    settings.host, settings.ssl_ca_cert = server, authority
    settings.api_key, settings.api_key_prefix = {"authorization": token}, {"authorization": "Bearer"}
    return _client(settings)


def of_kubeconfig(kubeconfig: Mapping[str, Any], context: str) -> tuple[Any, str]:
    """See `Api.of_kubeconfig`; returns the client and the context's namespace."""
    settings: Any = client.Configuration()
    try:
        _config.load_kube_config_from_dict(
            dict(kubeconfig), context=context or None, client_configuration=settings
        )
    except (_config.ConfigException, OSError, ValueError) as error:
        raise KubeconfigError(f"The kubeconfig cannot be used: {error}") from None
    settings.ssl_ca_cert = settings.ssl_ca_cert or os.environ.get("SSL_CERT_FILE")
    chosen = context or kubeconfig["current-context"]
    return _client(settings), _namespace(kubeconfig["contexts"], chosen)


def of_user(context: str) -> tuple[Any, str]:
    """See `Api.of_user`; returns the client and the context's namespace."""
    settings: Any = client.Configuration()
    try:
        contexts, active = _config.list_kube_config_contexts()
        _config.load_kube_config(context=context or None, client_configuration=settings)
    except (_config.ConfigException, OSError) as error:
        raise KubeconfigError(_without_config(context, str(error).rstrip("."))) from None
    settings.ssl_ca_cert = settings.ssl_ca_cert or os.environ.get("SSL_CERT_FILE")
    return _client(settings), _namespace(contexts, context or active["name"])


def call(
    api_client: Any,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: Any,
) -> dict[str, Any]:
    """Send a request.

    Raises:
        ApiError: the request was rejected, or not answered.
    """
    with _errors(api_client):
        answer, _, answer_headers = api_client.call_api(
            path,
            method,
            query_params=list(query.items()),
            header_params=dict(headers),
            body=body,
            response_type="object",
            auth_settings=["BearerToken"],
            _request_timeout=_TIMEOUT,
        )
    clock.heard(str(urlsplit(str(api_client.configuration.host)).hostname), answer_headers.get("Date"))
    return answer


def lines(api_client: Any, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a text as they arrive, without their ends.

    Raises:
        ApiError: the request was rejected or not answered, the connection was lost, or nothing arrived for a
            minute.
    """
    with _errors(api_client):
        response = api_client.call_api(
            path,
            "GET",
            query_params=list(query.items()),
            header_params=dict(headers),
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
            _preload_content=False,
            _request_timeout=_TIMEOUT,
        )
        rest = b""
        try:
            for chunk in response.stream(_CHUNK):
                *complete, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in complete)
        finally:
            response.close()
        if rest:
            yield rest.decode(errors="replace")


@contextmanager
def _errors(api_client: Any) -> Generator[None]:
    """Turn the client's errors into `ApiError`."""
    try:
        yield
    except ApiException as error:
        raise _refusal(error) from None
    except (HTTPError, HTTPException, OSError) as error:
        host = api_client.configuration.host
        raise ApiError(
            0,
            f"The API server at {host} cannot be reached ({_briefly(error)})",
            is_sent=not isinstance(error, _NOT_SENT),
        ) from None


def _client(settings: Any) -> Any:
    # Callers decide about retries; the client's own retries take minutes to fail.
    settings.retries = False
    settings.proxy = _proxy(settings.host)
    settings.connection_pool_maxsize = _CONNECTIONS
    return client.ApiClient(settings)


def _namespace(contexts: Any, name: str) -> str:
    chosen = next(item for item in contexts if item["name"] == name)
    return str(chosen["context"].get("namespace") or "default")


def _without_config(context: str, why: str) -> str:
    if context:
        return f"No kubeconfig has a usable context {context}: {why}."
    return (
        f"There is no kubeconfig for a cluster: {why}. Get the cluster's credentials, or name a file in "
        "KUBECONFIG."
    )


def _proxy(server: str) -> str | None:
    """Return the proxy from the environment as `kubectl` selects it, except for localhost (Go, net/http,
    ProxyFromEnvironment). This client ignores the environment (30.1).
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(error: Any) -> ApiError:
    status = int(error.status or 0)
    # The other form is a date, which no API server sends (RFC 9110, 10.2.3).
    after = "" if error.headers is None else str(error.headers.get("Retry-After", ""))
    retry_after = float(after) if after.isdecimal() else 0.0
    try:
        status_object: Any = json.loads(error.body)
        details: Any = status_object.get("details") or {}
        return ApiError(
            status,
            str(status_object["message"]),
            reason=str(status_object.get("reason") or ""),
            causes=details.get("causes") or (),
            retry_after=retry_after,
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return ApiError(status, str(error.body or error.reason), retry_after=retry_after)


def _briefly(error: Exception) -> str:
    """Return the root cause below urllib3's exceptions: `Connection refused`, `certificate verify failed`."""
    root: BaseException = error
    while (cause := getattr(root, "reason", None) or root.__cause__) and isinstance(cause, BaseException):
        root = cause
    return (
        getattr(root, "strerror", None)
        or str(root).rpartition(">: ")[2].partition(": ")[2]
        or str(root)
        or type(root).__name__
    )
