"""Access to the cluster of a stack, and to its clouds, with the user's credentials."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CloudApiError, ClusterIdentity, Inventory
from ebbtide.clients.kubernetes import Api, ApiError, KubeconfigError, MissingClientError, Object
from ebbtide.clients.kubernetes.objects import part, text
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import State
from ebbtide.placement import Profile, ProfileError
from ebbtide.text import install_command
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import ASLEEP

_DENIED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
LOGINS: Final = by_cloud(gke="gcloud auth application-default login", aks="az login")
_VARIABLES: Final = by_cloud(
    gke=("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    aks=("ARM_SUBSCRIPTION_ID",),
)
"""Variables that the providers read (pulumi-gcp 10.2, pulumi-azure-native 3.29)."""


class UnansweredError(OperationError):
    """The cluster does not answer."""


@contextmanager
def reaching(consequence: str) -> Generator[None]:
    """Turn errors of a cluster's API into a sentence.

    Args:
        consequence: a clause about what is unknown or not done, such as `running work is unknown`.

    Raises:
        OperationError: the cluster does not answer (`UnansweredError`), or denies access.
    """
    try:
        yield
    except ApiError as error:
        if error.unanswered:
            raise UnansweredError(f"The cluster is unreachable, and {consequence}: {error}") from None
        raise OperationError(f"The cluster denies access, and {consequence}: {error}") from None
    except (KubeconfigError, MissingClientError) as error:
        raise OperationError(f"The cluster is unreachable, and {consequence}: {error}") from None


@contextmanager
def reaching_own(consequence: str, stack: str, state: State) -> Generator[None]:
    """As `reaching`, for the cluster of a stack, which may be asleep.

    Args:
        consequence: as for `reaching`.

    Raises:
        OperationError: as for `reaching`, with the command that wakes the stack.
    """
    try:
        with reaching(consequence):
            yield
    except UnansweredError as error:
        if not state.may_be_stopped:
            raise
        raise UnansweredError(f"{error}. {asleep(stack)}") from None


def asleep(stack: str) -> str:
    """Return advice about a cluster that does not answer because it sleeps."""
    return f"If it sleeps, wake it first with: {given_command().on_stack('wake', stack)}"


def connected(outputs: Mapping[str, Any], consequence: str) -> tuple[Api, Profile]:
    """Return a client of the stack's cluster, which connects on first use, and the stack's profile.

    Args:
        consequence: as for `reaching`.

    Raises:
        OperationError: an output is missing or unusable.
    """
    if "kubeconfig" not in outputs:
        raise OperationError(f"The stack has no output `kubeconfig`: {consequence}.")
    try:
        profile = Profile.load(outputs.get("placementProfile") or {})
    except ProfileError as error:
        raise OperationError(
            f"The stack's output `placementProfile` is unreadable, and {consequence}: {error}"
        ) from None
    return client(outputs["kubeconfig"], consequence), profile


def client(kubeconfig: Any, consequence: str) -> Api:
    """Return a client of a kubeconfig, which connects on first use.

    Args:
        kubeconfig: the kubeconfig, which may be JSON.
        consequence: as for `reaching`.

    Raises:
        OperationError: it is unusable.
    """
    with reaching(consequence):
        return Api.of_kubeconfig(_parsed(kubeconfig))


def _parsed(kubeconfig: Any) -> Mapping[str, Any]:
    """Parse a kubeconfig, which may be JSON; empty if malformed."""
    try:
        parsed = json.loads(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    except ValueError:
        raise KubeconfigError("The output `kubeconfig` is not JSON") from None
    if not isinstance(parsed, dict):
        raise KubeconfigError("The output `kubeconfig` is not an object")
    return parsed  # pyright: ignore[reportUnknownVariableType] - JSON


@dataclass(frozen=True, slots=True)
class Clouds:
    """Projects and subscriptions.

    Attributes:
        inventories: accessible projects and subscriptions.
        reasons: for each other one, the reason and the fix.
    """

    inventories: Mapping[Account, Inventory] = field(default_factory=dict[Account, Inventory])
    reasons: Mapping[Account, str] = field(default_factory=dict[Account, str])


def reach(accounts: Iterable[Account]) -> Clouds:
    """Connect to projects and subscriptions with the user's credentials.

    Raises:
        OperationError: the credentials have no access to one.
    """
    inventories: dict[Account, Inventory] = {}
    reasons: dict[Account, str] = {}
    for account in accounts:
        try:
            inventory = connect.inventory(account)
            inventory.check()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {"azure", "google", "requests"}:
                raise
            login = LOGINS[account.cloud]
            reasons[account] = (
                f"Install its client with: {install_command('clouds')}. Then log in with `{login}`."
            )
        except CloudApiError as error:
            if error.status in _DENIED:
                raise OperationError(
                    f"Nothing was changed: the credentials have no access to {account}: {error}"
                ) from None
            reasons[account] = str(error)
        else:
            inventories[account] = inventory
    return Clouds(inventories, reasons)


def commands(cluster: ClusterIdentity) -> str:
    """Return a command that lists the disks of a cluster, or on Azure all of its remaining resources."""
    labels = (
        f"labels.goog-k8s-cluster-name={cluster.name} AND labels.goog-k8s-cluster-location={cluster.location}"
    )
    return by_cloud(
        gke=f'gcloud compute disks list --project {cluster.account.id} --filter "{labels}"',
        aks=f"az resource list --subscription {cluster.account.id} --resource-group "
        f"{cluster.node_resource_group} --output table",
    )[cluster.account.cloud]


def check_accounts(
    stack: str,
    accounts: Sequence[Account],
    config: Mapping[str, str],
    declaration: Mapping[str, Any],
    environment: Mapping[str, str],
) -> None:
    """Check that configuration and environment name the account of the stack's state, or no account.

    Args:
        accounts: projects and subscriptions in its state.
        config: its configuration, by full key.
        declaration: its declared cluster; empty without one.

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


def asleep_message(stack: str) -> str:
    """Return the message about a stack that sleeps."""
    return f"Stack {stack} is asleep. Wake it with: {given_command().on_stack('wake', stack)}"


def is_asleep(queue: Object) -> bool:
    """Return whether a ClusterQueue is held while its stack sleeps."""
    return ASLEEP in part(queue, "metadata", "annotations")
