"""Projects and subscriptions of recorded clusters and pools."""

from collections.abc import Iterator, Mapping
from typing import Final

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.catalog import CLOUD_SPECS, CloudKind

_PREFIXES: Final = {CloudKind.GKE: "gcp:container/", CloudKind.AKS: "azure-native:containerservice"}


def read_accounts(recording: Recording, cloud: CloudKind, config: Mapping[str, str]) -> list[str]:
    """Return the projects, or on Azure the subscriptions, of a cloud's clusters and pools.

    Args:
        recording: the recording.
        cloud: the cloud.
        config: the stack's configuration, for resources without a project or subscription.
    """
    key = CLOUD_SPECS[cloud].account_config
    field = key.partition(":")[2]
    providers = {resource.urn: resource for resource in recording}

    def accounts(resource: Resource) -> Iterator[object]:
        provider = providers.get(resource.provider or "")
        yield resource.inputs.get(field)
        yield provider.inputs.get(field) if provider else None
        yield config.get(key)

    own = (resource for resource in recording if resource.type.startswith(_PREFIXES[cloud]))
    first = (next((str(value) for value in accounts(resource) if value), "") for resource in own)
    return sorted({account for account in first if account})
