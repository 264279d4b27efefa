"""Power state of a cluster, and operations that AKS rejects because of it.

A stopped cluster can only be started or deleted (azure-aks-docs, start-stop-cluster, 2026). The message is
that for a second stop (MicrosoftDocs/azure-docs#85161).
"""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.errors import refused
from ebbtide_rehearsal.cloud.azure.values import inner

SOURCE: Final = "azure-aks-docs, start-stop-cluster (2026); MicrosoftDocs/azure-docs#85161"


def power(cluster: Mapping[str, Any]) -> str:
    """Return the power state from a cluster's state: `Running` or `Stopped`."""
    return str(inner(cluster, "powerState").get("code") or "Running")


def message(cluster: Mapping[str, Any], doing: str) -> str:
    """Format AKS's message for an operation that the power state forbids.

    Args:
        cluster: the cluster's state.
        doing: the operation, such as `starting`.
    """
    return (
        f"managed cluster is in Provisioning State({cluster['provisioningState']}) and Power "
        f"State({power(cluster)}), {doing} cannot be performed"
    )


def refusal_if_stopped(cluster: Mapping[str, Any], doing: str) -> str | None:
    """Return the refusal of an operation on a stopped cluster; None on a running one."""
    return refused("BadRequest", message(cluster, doing)) if power(cluster) == "Stopped" else None
