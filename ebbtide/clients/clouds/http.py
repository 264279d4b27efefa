"""JSON requests, and retries of GET: every wait, page, body and depth has a bound.

What is beyond a bound is no answer of a cloud, but of a proxy or of a server that misbehaves.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from ebbtide.clients.clouds.interfaces import CloudApiError, Sample
from ebbtide.values import clock

_TIMEOUT: Final = 30  # seconds without a byte
_WHOLE: Final = 120.0
"""Time limit in seconds for an answer's body."""
_LARGEST: Final = 64 * 2**20
"""Maximum size in bytes of a body, decompressed: 5,000 SKUs of Google's price catalog take 10 MB."""
_CHUNK: Final = 2**16
_PAGES: Final = 1000
_LONGEST_WAIT: Final = 30.0
"""Maximum seconds of `Retry-After`, as for the Kubernetes API."""
_MESSAGE: Final = 500
"""Maximum characters of a server's own message."""
_TOO_MANY: Final = 429
_Session = TypeVar("_Session", bound=requests.Session)
_PROXY: Final = "Check the network's proxy, then run this again."
PROMETHEUS: Final = "api/v1/query"


class _Retry(Retry):
    """Retries whose waits have a bound: urllib3 obeys up to six hours."""

    def get_retry_after(self, response: Any) -> float | None:
        """Return the requested seconds, within the bound."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, _LONGEST_WAIT)


_RETRIES: Final = _Retry(
    total=4,
    backoff_factor=1,
    status_forcelist=(_TOO_MANY, 500, 502, 503, 504),
    allowed_methods={"GET"},
    raise_on_status=False,
)
"""Backoff as requested by `Retry-After`, else 0, 2, 4 and 8 seconds."""


def with_retries(session: _Session) -> _Session:
    """Retry the GET requests of a session on temporary errors: 429 and 5xx."""
    session.mount("https://", HTTPAdapter(max_retries=_RETRIES))
    return session


def get_json(
    session: requests.Session, url: str, parameters: Mapping[str, str], advice: Mapping[int, str]
) -> dict[str, Any]:
    """Return the JSON document at a URL.

    Args:
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
    document = document_of(response)
    if not isinstance(document, dict):
        raise CloudApiError(f"{urlsplit(url).hostname} did not return JSON. {_PROXY}")
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
        body: JSON document.

    Raises:
        CloudApiError: the server rejects the request or does not answer.
    """
    host = urlsplit(url).hostname
    try:
        response = session.request(
            method, url, params=parameters, json=body, timeout=_TIMEOUT, stream=True, allow_redirects=False
        )
        read_body(response, str(host))
    except (requests.RequestException, HTTPError) as error:
        raise CloudApiError(
            f"{host} cannot be reached ({type(error).__name__}). Check the network and its proxy, then run "
            "this again."
        ) from error
    clock.heard(str(host), response.headers.get("Date"))
    if not response.ok:
        status = response.status_code
        raise CloudApiError(refusal(str(host), status, _message(document_of(response)), advice), status)
    return response


def refusal(host: str, status: int, message: str, advice: Mapping[int, str]) -> str:
    """Return the message for a rejected request.

    Args:
        status: HTTP status.
        message: the server's own message; empty for none.
        advice: sentence with the fix, by HTTP status.
    """
    default = "It limits the rate of requests; run this again in a minute." if status == _TOO_MANY else ""
    if len(message) > _MESSAGE:
        message = f"{message[:_MESSAGE]} \u2026"
    words = f" {message.rstrip('.')}." if message else ""
    return " ".join(f"{host} returned status {status}.{words} {advice.get(status, default)}".split())


def read_body(response: requests.Response, host: str) -> None:
    """Read a body, within the bounds of size and time.

    Raises:
        CloudApiError: it is beyond one.
    """
    end, content = time.monotonic() + _WHOLE, bytearray()
    with response:
        # `read1` returns what has arrived: other ways of reading wait for a whole chunk.
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            content += chunk
            if len(content) > _LARGEST:
                raise CloudApiError(f"{host} answered with more than {_LARGEST >> 20} MiB. {_PROXY}")
            if time.monotonic() > end:
                raise CloudApiError(f"{host} did not finish its answer within {_WHOLE:.0f} s. {_PROXY}")
    response._content = bytes(content)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - requests has no other


def linked(
    session: requests.Session, url: str, parameters: Mapping[str, str], advice: Mapping[int, str], link: str
) -> Iterator[dict[str, Any]]:
    """Yield the pages of an Azure list, which continue at a URL of the same host.

    Args:
        link: name of the property with the URL, such as `nextLink`.
    """

    def following(page: Mapping[str, Any]) -> tuple[str, Mapping[str, str]] | None:
        return (of_host(page[link], url), {}) if page.get(link) else None

    return _pages(session, (url, parameters), advice, following)


def of_host(address: str, url: str) -> str:
    """Return an address to which the token for a URL may be sent: one of its host.

    Raises:
        CloudApiError: it is another's.
    """
    own, other = urlsplit(url), urlsplit(address)
    if (own.scheme, own.netloc) != (other.scheme, other.netloc):
        raise CloudApiError(
            f"{own.hostname} refers to {other.hostname}, which does not get its token. {_PROXY}"
        )
    return address


def pages(
    session: requests.Session, url: str, parameters: Mapping[str, str], advice: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    """Yield the pages of a Google list, which continue at `nextPageToken`."""

    def following(page: Mapping[str, Any]) -> tuple[str, Mapping[str, str]] | None:
        token = page.get("nextPageToken")
        return (url, {**parameters, "pageToken": token}) if token else None

    return _pages(session, (url, parameters), advice, following)


def _pages(
    session: requests.Session,
    first: tuple[str, Mapping[str, str]],
    advice: Mapping[int, str],
    following: Callable[[Mapping[str, Any]], tuple[str, Mapping[str, str]] | None],
) -> Iterator[dict[str, Any]]:
    request, requested = first, list[tuple[str, Mapping[str, str]]]()
    while True:
        if request in requested or len(requested) == _PAGES:
            raise CloudApiError(f"The list of {urlsplit(first[0]).hostname} does not end. {_PROXY}")
        requested.append(request)
        page = get_json(session, *request, advice)
        yield page
        if (then := following(page)) is None:
            return
        request = then


def document_of(response: requests.Response) -> Any:
    """Return the JSON of a response; None if it is none, or nested too deeply."""
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a nested object; empty without one."""
    return document.get(name) or {}


def _message(document: Any) -> str:
    """Return the message of an error document of Google or Azure; empty for any other document."""
    match document:
        case {"error": {"message": str(message)}} | {"Error": {"Message": str(message)}}:
            return message
        case _:
            return ""


def samples(document: Mapping[str, Any]) -> list[Sample]:
    """Return the samples of a response, an instant vector (Prometheus docs, HTTP API, 2026)."""
    return [Sample(item["metric"], float(item["value"][1])) for item in document["data"]["result"]]
