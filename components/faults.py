"""Errors of a declaration, in the form in which Pulumi reports them."""

from collections.abc import Iterable
from typing import TypeVar

import pulumi

from ebbtide.declaration.model import Aks, Cluster, DeclarationError, Fault, Gke, Pool, Site, check_pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool


def resolved_pool(pool: Pool, site: Site) -> ResolvedPool:
    """Validate and resolve a pool; one of a valid declaration is returned as it is.

    Raises:
        pulumi.InputPropertiesError: with every error and its path.
    """
    if isinstance(pool, ResolvedPool) and pool.site == site:
        return pool
    try:
        return check_pool(pool, site)
    except DeclarationError as error:
        raise input_errors(f"The node pool {pool.name} is refused.", error.faults) from None


def input_errors(message: str, faults: Iterable[Fault]) -> pulumi.InputPropertiesError:
    """Return the error of invalid inputs, with every fault and its path."""
    return pulumi.InputPropertiesError(
        message,
        [
            {"property_path": fault.path, "reason": f"{fault.problem} {fault.consequence} {fault.fix}"}
            for fault in faults
        ],
    )


_Cloud = TypeVar("_Cloud", Gke, Aks)


def require_cloud(declaration: Cluster, kind: type[_Cloud]) -> _Cloud:
    """Return the declared cloud if it is of the required kind.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = declaration.cloud
    if isinstance(cloud, kind):
        return cloud
    required = kind.__name__.lower()
    raise pulumi.RunError(
        f"{declaration.name} is declared for {cloud.kind}, not for {required}. Declare "
        f"`cloud: {{kind: {required}}}`, or deploy it with ebbtide.components.{cloud.kind}."
    )
