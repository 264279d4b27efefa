"""The cloud of a component."""

from typing import TypeVar

import pulumi

from ebbtide.model import Aks, Cluster, Gke

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
