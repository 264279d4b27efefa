"""The user's credentials for registries."""

from functools import cache

from ebbtide.registries.docker_login import docker_login


@cache
def user_credentials(host: str) -> tuple[str, str] | None:
    """Return user name and password for a registry; None for anonymous access.

    For a registry of Google Cloud or Azure they are a short-lived token of the user's login to the cloud, for
    any other those of `docker login`.

    Raises:
        CredentialsError: the user is not logged in to the cloud.
        CloudApiError: the cloud does not answer.
    """
    if host == "gcr.io" or host.endswith((".gcr.io", ".pkg.dev")):
        from ebbtide.cloud_apis.google_registry import google_login  # noqa: PLC0415

        return google_login()
    if host.endswith(".azurecr.io"):
        from ebbtide.cloud_apis.azure_registry import azure_login  # noqa: PLC0415

        return azure_login(host)
    return docker_login(host)
