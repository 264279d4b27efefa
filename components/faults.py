"""Report errors of a pool as Pulumi reports invalid inputs."""

import pulumi

from ebbtide.model import DeclarationError, Pool, Site, check_pool
from ebbtide.model.resolved_pool import ResolvedPool


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
        raise pulumi.InputPropertiesError(
            f"The node pool {pool.name} is refused.",
            [
                {"property_path": fault.path, "reason": f"{fault.problem} {fault.consequence} {fault.fix}"}
                for fault in error.faults
            ],
        ) from None
