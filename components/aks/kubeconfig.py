"""Kubeconfig of the cluster, without credentials."""

import base64
import binascii
from typing import Any

import pulumi
import yaml
from pulumi_azure_native import containerservice

from ..kubernetes import exec_kubeconfig

_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Azure Kubernetes Service AAD Server, Microsoft's own application, the same in every tenant (azure-aks-docs,
kubelogin-authentication, 2026)."""

PUBLIC_NAME = "none"
"""Value for the private DNS zone of a private cluster without one, which is reached by its public name."""

_INSTALL_HINT = "Install kubelogin: az aks install-cli, or https://azure.github.io/kubelogin/install.html"


class CredentialsError(ValueError):
    """The response of the credentials call is not a kubeconfig; the message names the missing part, without
    content."""


def _encoded(credentials: containerservice.ListManagedClusterUserCredentialsResult) -> str:
    """Return the first kubeconfig of the credentials call.

    Raises:
        CredentialsError: there is none.
    """
    if not credentials.kubeconfigs:
        raise CredentialsError(
            "AKS returned no kubeconfig for this cluster. Check `az aks get-credentials --file -`. In a "
            "unit test, return one from the mocks for "
            "azure-native:containerservice:listManagedClusterUserCredentials."
        )
    return credentials.kubeconfigs[0].value


def server_and_authority(encoded: str) -> tuple[str, str]:
    """Return the URL of the API server and its certificate authority.

    Its user is not used: it signs in through a browser, which a CI job does not have.

    Args:
        encoded: a kubeconfig, YAML in base64, as `listClusterUserCredential` returns it.

    Returns:
        The server's URL, and its authority's certificate in base64.

    Raises:
        CredentialsError: it is not a kubeconfig, or has no server.
    """
    try:
        # The C loader is ten times as fast, and is part of PyYAML's wheels.
        kubeconfig: Any = yaml.load(base64.b64decode(encoded), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        cluster = kubeconfig["clusters"][0]["cluster"]
        return str(cluster["server"]), str(cluster["certificate-authority-data"])
    except (binascii.Error, yaml.YAMLError, TypeError, LookupError):
        raise CredentialsError(
            "AKS returned a kubeconfig without a server and its certificate authority. Check `az aks "
            "get-credentials --file -` for this cluster."
        ) from None


def kubeconfig_text(cluster: str, server: str, authority: str, login: str) -> str:
    """Build a kubeconfig, as JSON, whose user gets tokens from kubelogin.

    Args:
        cluster: name of cluster, user and context.
        server: URL of the API server.
        authority: certificate of its authority, in base64.
        login: kubelogin's source of tokens: `azurecli` or `workloadidentity`.
    """
    return exec_kubeconfig(
        cluster,
        {"server": server, "certificate-authority-data": authority},
        {
            "command": "kubelogin",
            "args": [
                "get-token",
                *("--login", login),
                *("--server-id", _SERVER),
                *("--environment", "AzurePublicCloud"),
            ],
            "installHint": _INSTALL_HINT,
            "provideClusterInfo": False,
        },
    )


def kubeconfig(
    cluster: pulumi.Input[str],
    resource_group: pulumi.Input[str],
    login: str,
    *,
    zone: str | None = None,
    opts: pulumi.InvokeOutputOptions,
) -> pulumi.Output[str]:
    """Return the kubeconfig of a cluster, a secret, with server and authority from the credentials call.

    Args:
        cluster: name of the cluster.
        resource_group: name of the cluster's resource group.
        login: kubelogin's source of tokens.
        zone: private DNS zone of a private cluster that the stack created.
        opts: options of the credentials call; it depends on the cluster if the stack created it.
    """
    credentials = containerservice.list_managed_cluster_user_credentials_output(
        resource_group_name=resource_group,
        resource_name=cluster,
        server_fqdn="public" if zone == PUBLIC_NAME else None,
        opts=opts,
    )

    def text(of: list[Any]) -> str:
        name, encoded = of
        return kubeconfig_text(name, *server_and_authority(encoded), login)

    encoded = credentials.apply(_encoded)
    return pulumi.Output.secret(pulumi.Output.all(cluster, encoded).apply(text))
