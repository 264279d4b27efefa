"""Errors of the clouds' APIs."""

from ebbtide.errors import EbbtideError


class CloudApiError(EbbtideError):
    """A cloud refuses a request, or does not answer."""

    rule = "cloud-api"


class CredentialsError(CloudApiError):
    """There are no credentials of a cloud, or they have expired."""

    rule = "credentials"
