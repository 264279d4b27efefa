"""JSON requests, and retries of GET."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.values import clock

_TIMEOUT: Final = 30  # seconds
_TOO_MANY: Final = 429
_RETRIES: Final = Retry(
    total=4,
    backoff_factor=1,
    status_forcelist=(_TOO_MANY, 500, 502, 503, 504),
    allowed_methods={"GET"},
    raise_on_status=False,
)
"""Backoff as requested by `Retry-After`, else 0, 2, 4 and 8 seconds."""

_Session = TypeVar("_Session", bound=requests.Session)


def with_retries(session: _Session) -> _Session:
    """Retry the GET requests of a session on temporary errors: 429 and 5xx."""
    session.mount("https://", HTTPAdapter(max_retries=_RETRIES))
    return session


def get_json(
    session: requests.Session, url: str, parameters: Mapping[str, str], advice: Mapping[int, str]
) -> dict[str, Any]:
    """Return the JSON document at a URL.

    Args:
        parameters: query parameters.
        advice: sentence with the fix, by HTTP status.

    Raises:
        CloudApiError: the server rejects the request, does not answer, or did not return JSON.
    """
    return _json(send(session, "GET", url, advice, parameters), url)


def post_json(
    session: requests.Session, url: str, body: Mapping[str, Any], advice: Mapping[int, str]
) -> dict[str, Any]:
    """Post a JSON document, and return the JSON document of the response. There are no retries.

    Args:
        advice: as for `get_json`.

    Raises:
        CloudApiError: as for `get_json`.
    """
    return _json(send(session, "POST", url, advice, body=body), url)


def _json(response: requests.Response, url: str) -> dict[str, Any]:
    document = _document(response)
    if not isinstance(document, dict):
        raise CloudApiError(
            f"{urlsplit(url).hostname} did not return JSON. Check the network's proxy, then run this again."
        )
    return cast("dict[str, Any]", document)


def send(
    session: requests.Session,
    method: str,
    url: str,
    advice: Mapping[int, str],
    parameters: Mapping[str, str] | None = None,
    *,
    body: Mapping[str, Any] | None = None,
) -> requests.Response:
    """Send a request.

    Args:
        method: HTTP method, such as `DELETE`.
        advice: sentence with the fix, by HTTP status.
        parameters: query parameters.
        body: JSON document.

    Raises:
        CloudApiError: the server rejects the request or does not answer.
    """
    host = urlsplit(url).hostname
    try:
        response = session.request(method, url, params=parameters, json=body, timeout=_TIMEOUT)
    except requests.RequestException as error:
        raise CloudApiError(
            f"{host} cannot be reached ({type(error).__name__}). Check the network and its proxy, then run "
            "this again."
        ) from error
    clock.heard(str(host), response.headers.get("Date"))
    if not response.ok:
        status = response.status_code
        raise CloudApiError(refusal(str(host), status, _message(_document(response)), advice), status)
    return response


def refusal(host: str, status: int, message: str, advice: Mapping[int, str]) -> str:
    """Return the message for a rejected request.

    Args:
        host: the server.
        status: HTTP status.
        message: the server's own message; empty for none.
        advice: sentence with the fix, by HTTP status.
    """
    default = "It limits the rate of requests; run this again in a minute." if status == _TOO_MANY else ""
    words = f" {message.rstrip('.')}." if message else ""
    return " ".join(f"{host} returned status {status}.{words} {advice.get(status, default)}".split())


def pages(
    session: requests.Session, url: str, parameters: Mapping[str, str], advice: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    """Yield the pages of a Google list, which continue at `nextPageToken`."""
    token = ""
    while True:
        page = get_json(session, url, {**parameters, **({"pageToken": token} if token else {})}, advice)
        yield page
        token = page.get("nextPageToken", "")
        if not token:
            return


def _document(response: requests.Response) -> Any:
    try:
        return response.json()
    except requests.JSONDecodeError:
        return None


def _message(document: Any) -> str:
    """Return the message of an error document of Google or Azure; empty for any other document."""
    match document:
        case {"error": {"message": str(message)}} | {"Error": {"Message": str(message)}}:
            return message
        case _:
            return ""
