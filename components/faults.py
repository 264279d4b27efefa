"""Report errors of a pool as Pulumi reports invalid inputs."""

import pulumi

from ebbtide.model import DeclarationError, Pool, Site, check_pool


def checked_pool(pool: Pool, site: Site) -> Pool:
    """Validate and complete a pool.

    Raises:
        pulumi.InputPropertiesError: with every error and its path.
    """
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
