"""The Kubernetes API as plain JSON, over the official client, whose typed models cover a single version of
Kubernetes and no custom resources such as Kueue's.

Only this package imports the client, and only on first use: code that only writes manifests does not need it.
"""

from ebbtide.clients.kubernetes.api import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    METADATA,
    STRATEGIC_MERGE_PATCH,
    Api,
    Object,
)
from ebbtide.clients.kubernetes.errors import ApiError, KubeconfigError, MissingClientError

__all__ = [
    "APPLY",
    "JSON",
    "JSON_PATCH",
    "MERGE_PATCH",
    "METADATA",
    "STRATEGIC_MERGE_PATCH",
    "Api",
    "ApiError",
    "KubeconfigError",
    "MissingClientError",
    "Object",
]
