"""Requests, responses and routes of the REST APIs."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        method: HTTP method, such as `GET`.
        path: decoded path, without the query.
        query: query parameters.
        headers: headers by lower-case name.
        body: parameters of a form, or a JSON object; empty for no body.
        origin: requested scheme, host and port.
        names: variable parts of the path.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    origin: str
    names: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Response:
    """A response with headers or a status other than 200.

    Attributes:
        status: HTTP status.
        document: JSON document.
        headers: headers.
    """

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class RefusedRequestError(Exception):
    """A rejected request.

    Attributes:
        status: HTTP status.
        message: the cloud's message.
        code: the cloud's error code; empty for the usual code of the status.
        headers: headers of the response.
    """

    def __init__(
        self, status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Reject a request with a status."""
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers or {}


@dataclass(frozen=True, slots=True)
class Route:
    """An operation of an API.

    Attributes:
        operation: the cloud's name, such as `compute.regions.get`; also the target of injected faults.
        method: HTTP method.
        path: pattern of the whole path; its groups are the request's names.
        handle: returns the response, or its document.
    """

    operation: str
    method: str
    path: re.Pattern[str]
    handle: Callable[[Request], Mapping[str, Any] | Response]


class RestApi(Protocol):
    """The APIs of a cloud."""

    @property
    def routes(self) -> Sequence[Route]:
        """Routes of its operations."""
        ...

    def owns(self, path: str) -> bool:
        """Return whether a path belongs to the cloud, so that errors have its form."""
        ...

    def refusal(self, error: RefusedRequestError) -> Mapping[str, Any]:
        """Return the document of an error."""
        ...


def bearer(request: Request) -> str:
    """Return the bearer token of a request; empty for none."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token if kind == "Bearer" else ""
