"""The Azure provider of a declaration."""

import pulumi_azure_native as azure_native

from ebbtide.model import Aks
from ebbtide.model import Cluster as Declaration

from ..clouds import require_cloud


def provider(name: str, declaration: Declaration) -> azure_native.Provider:
    """Return a provider for the declared subscription and location; they override the environment's.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """
    cloud = require_cloud(declaration, Aks)
    return azure_native.Provider(name, subscription_id=cloud.subscription, location=cloud.location)
