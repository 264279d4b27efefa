"""The Google Cloud provider of a declaration."""

import pulumi_gcp as gcp

from ebbtide.model import Cluster as Declaration
from ebbtide.model import Gke

from ..clouds import require_cloud


def provider(name: str, declaration: Declaration) -> gcp.Provider:
    """Return a provider for the declared project and region; they override the environment's.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = require_cloud(declaration, Gke)
    return gcp.Provider(name, project=cloud.project, region=declaration.site.region)
