"""Where the API server has objects of a kind."""

from collections.abc import Mapping
from typing import Any

from ebbtide.kubernetes_api import Api, ApiError

_NOT_FOUND = 404


def collection(api: Api, body: Mapping[str, Any]) -> str:
    """The path of the collection that an object belongs to; its namespace is `default` where it says none.

    Raises:
        ApiError: the API server knows no such kind.
    """
    version, kind = body["apiVersion"], body["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    known = api.find(root)
    for resource in known["resources"] if known else ():
        if resource["kind"] == kind and "/" not in resource["name"]:
            if not resource["namespaced"]:
                return f"{root}/{resource['name']}"
            namespace = body.get("metadata", {}).get("namespace", "default")
            return f"{root}/namespaces/{namespace}/{resource['name']}"
    raise ApiError(_NOT_FOUND, f"The cluster has no {kind} of {version}.")
