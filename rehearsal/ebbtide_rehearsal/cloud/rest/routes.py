"""Requests, responses and routes of the REST APIs."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        method: such as `GET`.
        path: decoded, without the query.
        query: its parameters.
        headers: by lower-case name.
        body: the parameters of a form, or a JSON object; empty without one.
        origin: scheme, host and port that it was sent to.
        names: the variable parts of the path.
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
    """A response with another status than 200, or with headers.

    Attributes:
        status: HTTP status.
        document: its document.
        headers: its headers.
    """

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class RefusedRequestError(Exception):
    """A refused request.

    Attributes:
        status: HTTP status.
        message: the cloud's message.
        code: the cloud's name of the error; empty for the usual one of the status.
        headers: of the response.
    """

    def __init__(
        self, status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Refuse with a status."""
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers or {}


@dataclass(frozen=True, slots=True)
class Route:
    """An operation of an API.

    Attributes:
        operation: the cloud's own name, such as `compute.regions.get`: the target of injected faults.
        method: the HTTP method.
        path: matches the whole path; its groups are the request's names.
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
        """Its operations."""
        ...

    def owns(self, path: str) -> bool:
        """Return whether a path is below the cloud's, so that refusals have its form."""
        ...

    def refusal(self, error: RefusedRequestError) -> Mapping[str, Any]:
        """Return the document of a refusal."""
        ...


def bearer(request: Request) -> str:
    """Return the token of a request; empty without one."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token if kind == "Bearer" else ""
