"""Kubernetes' API as plain JSON, over the official client: its typed models know only the fields of one
version of Kubernetes, and nothing of Kueue.

The one room that imports the client, and not before it is used: who only writes manifests need not have it.
"""

from ebbtide.kubernetes_api.api import APPLY, JSON, JSON_PATCH, MERGE_PATCH, Api, Object
from ebbtide.kubernetes_api.errors import ApiError, KubeconfigError, MissingClientError

__all__ = [
    "APPLY",
    "JSON",
    "JSON_PATCH",
    "MERGE_PATCH",
    "Api",
    "ApiError",
    "KubeconfigError",
    "MissingClientError",
    "Object",
]
