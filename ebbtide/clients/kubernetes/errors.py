"""Errors of the Kubernetes API and of its client."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from ebbtide.errors import EbbtideError
from ebbtide.text import install_command


class ApiError(EbbtideError):
    """The API server rejected the request or did not answer.

    Attributes:
        status: HTTP status; 0 without an answer.
        message: message of the API server, or of the connection error.
        reason: reason given by the API, such as `AlreadyExists`; empty for none.
        causes: details of the error, if any: `reason`, `message`, `field`.
        retry_after: seconds after which the API server accepts the request again; 0 if it names none.
        is_sent: whether the request may have reached the API server.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        causes: Sequence[Mapping[str, Any]] = (),
        retry_after: float = 0,
        is_sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.reason = status, message, reason
        self.causes = tuple(causes)
        self.retry_after, self.is_sent = retry_after, is_sent

    @property
    def not_found(self) -> bool:
        """The object or the resource type does not exist."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def forbidden(self) -> bool:
        """The identity lacks permission."""
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def conflict(self) -> bool:
        """Another field manager owns the field, or another client changed the object."""
        return self.reason == "Conflict"

    @property
    def already_exists(self) -> bool:
        """An object with that name exists."""
        return self.reason == "AlreadyExists"

    @property
    def unanswered(self) -> bool:
        """There was no answer, or a temporary error: a retry may succeed."""
        return (
            self.status in {0, HTTPStatus.TOO_MANY_REQUESTS}
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )

    @property
    def repeatable(self) -> bool:
        """An immediate repetition may succeed. A refused connection is reported at once; an eviction that a
        PodDisruptionBudget forbids has its own pace (Kubernetes docs, API-initiated eviction)."""
        guarded = any(cause.get("reason") == "DisruptionBudget" for cause in self.causes)
        return self.unanswered and self.is_sent and not guarded


class KubeconfigError(EbbtideError):
    """No usable kubeconfig; the message has the reason and the fix."""


class MissingClientError(EbbtideError):
    """The official client is not installed; the message has the command to install it."""

    def __init__(self) -> None:
        super().__init__(
            "Access to a cluster needs the official Kubernetes client, which is not installed. Install it "
            f"with: {install_command('cluster')}."
        )
