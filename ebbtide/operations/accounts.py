"""Comparison of the project or subscription of a stack's state with the configured one.

A destroy with other credentials would find nothing to delete, and drop existing resources from the state.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ebbtide.clients.clouds.interfaces import Account
from ebbtide.clients.kubernetes.parts import text
from ebbtide.declaration.catalog import CLOUD_SPECS, CloudKind
from ebbtide.operations.errors import OperationError

_VARIABLES: Final = {
    CloudKind.GKE: ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    CloudKind.AKS: ("ARM_SUBSCRIPTION_ID",),
}
"""Variables that the providers read (pulumi-gcp 10.2, pulumi-azure-native 3.29)."""


def check(
    stack: str,
    accounts: Sequence[Account],
    config: Mapping[str, str],
    declaration: Mapping[str, Any],
    environment: Mapping[str, str],
) -> None:
    """Check that configuration and environment name the account of the stack's state, or no account.

    Args:
        stack: the stack's name.
        accounts: projects and subscriptions in its state.
        config: its configuration, by full key.
        declaration: its declared cluster; empty without one.
        environment: the environment's variables.

    Raises:
        OperationError: they name another account; the message has a line for each.
    """
    faults: list[str] = []
    for cloud in dict.fromkeys(account.cloud for account in accounts):
        own = [account for account in accounts if account.cloud is cloud]
        for source, account in _named(cloud, config, declaration, environment):
            if account.id not in {known.id for known in own}:
                faults.append(
                    f"Nothing was changed: stack {stack} was created in {own[0]}, and {source} names "
                    f"{account}. Name {own[0].id} there, or nothing."
                )
    if faults:
        raise OperationError("\n".join(faults))


def _named(
    cloud: CloudKind,
    config: Mapping[str, str],
    declaration: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Iterator[tuple[str, Account]]:
    field, key = CLOUD_SPECS[cloud].account, CLOUD_SPECS[cloud].account_config
    is_of_cloud = text(declaration, "cloud", "kind") == cloud.value
    if is_of_cloud and (id_ := text(declaration, "cloud", field)):
        yield f"`ebbtide:cluster.cloud.{field}`", Account(cloud, id_)
    if id_ := config.get(key):
        yield f"`{key}`", Account(cloud, id_)
    for variable in _VARIABLES[cloud]:
        if id_ := environment.get(variable):
            yield variable, Account(cloud, id_)
