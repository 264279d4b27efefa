"""What keeps one from an API server, and what it says when it refuses."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from ebbtide.invocation import pip_install


class ApiError(Exception):
    """The API server refuses, or does not answer.

    Attributes:
        status: of HTTP; 0 where there was no answer.
        message: the API server's own; where there was no answer, what kept it away.
        reason: the API's word for it, such as `AlreadyExists`; empty where it gives none.
        causes: what exactly is wrong, where the API says so: `reason`, `message`, `field`.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        causes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.reason = status, message, reason
        self.causes = tuple(causes)

    @property
    def not_found(self) -> bool:
        """Whether there is no such thing."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def forbidden(self) -> bool:
        """Whether whoever asks may not."""
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def conflict(self) -> bool:
        """Whether others own what is to be changed, or have changed it."""
        return self.reason == "Conflict"

    @property
    def already_exists(self) -> bool:
        """Whether something of that name is there."""
        return self.reason == "AlreadyExists"

    @property
    def unanswered(self) -> bool:
        """Whether there was no answer, or none now: asking again later may do."""
        return (
            self.status in {0, HTTPStatus.TOO_MANY_REQUESTS}
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )


class KubeconfigError(Exception):
    """No kubeconfig leads to an API server; the message says why, and what to do."""


class MissingClientError(Exception):
    """The official client is not installed; the message says how to come by it."""

    def __init__(self) -> None:
        super().__init__(
            "Speaking to a cluster needs the official Kubernetes client, which is not installed. Install it "
            f"with: {pip_install('cluster')}."
        )
