"""Errors of the clouds' APIs."""

from ebbtide.errors import EbbtideError


class CloudApiError(EbbtideError):
    """A cloud rejects a request, or does not answer.

    Attributes:
        status: HTTP status; 0 without an answer.
    """

    rule = "cloud-api"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class CredentialsError(CloudApiError):
    """Credentials for a cloud are missing or have expired."""

    rule = "credentials"
