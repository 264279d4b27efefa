"""APIs that are enabled, and permissions of the user, in projects and subscriptions.

The state is in the store: by default every API is enabled and the user is an owner; tests put a project's
service, a subscription's provider, or the permissions of the user there. Sources: Service Usage API v1,
`services.get`, and Resource Manager API v1, `projects.testIamPermissions` (Google's REST reference, 2026);
azure-rest-api-specs, Resources 2021-04-01, `Providers_Get`, and Authorization 2022-04-01, permissions.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from ebbtide_rehearsal.cloud.rest.server import RefusedRequestError, Request, Route
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "rights"
_API: Final = "api"
_GRANT: Final = "grant"
_OWNER: Final = ("*",)
_MOST_PERMISSIONS: Final = 100


def disabled(account: str, api: str) -> Resource:
    """Return an API that is not enabled.

    Args:
        account: project or subscription.
        api: API of Google Cloud, or namespace of a resource provider.
    """
    return Resource(_CLOUD, f"{account}/{api}", _API)


def granted(account: str, *actions: str, without: tuple[str, ...] = ()) -> Resource:
    """Return the permissions of the user, which replace those of an owner.

    Args:
        account: project or subscription.
        actions: permissions; `*` matches any text.
        without: exceptions.
    """
    return Resource(_CLOUD, account, _GRANT, state={"actions": [*actions], "notActions": [*without]})


def is_enabled(store: Store, account: str, api: str) -> bool:
    """Return whether an API is enabled; names of resource providers are compared without case."""
    ids = {resource.id.lower() for resource in store.resources(_CLOUD, _API)}
    return f"{account}/{api}".lower() not in ids


def _role(store: Store, account: str) -> Mapping[str, Any]:
    own = store.get(_CLOUD, account)
    return own.state if own else {"actions": [*_OWNER], "notActions": []}


def google_routes(store: Store) -> Iterator[Route]:
    """Yield the routes of Google Cloud."""

    def service(request: Request) -> Mapping[str, Any]:
        state = "ENABLED" if is_enabled(store, request.names["project"], request.names["api"]) else "DISABLED"
        return {"name": request.path.removeprefix("/v1/"), "state": state}

    def test(request: Request) -> Mapping[str, Any]:
        asked = list(request.body.get("permissions") or [])
        if not asked or len(asked) > _MOST_PERMISSIONS or any("*" in name for name in asked):
            raise RefusedRequestError(400, "Request contains an invalid argument.")
        role = _role(store, request.names["project"])
        held = [name for name in asked if _has(role["actions"], name) and not _has(role["notActions"], name)]
        return {"permissions": held} if held else {}

    project = r"/v1/projects/(?P<project>[^/:]+)"
    yield Route(
        "serviceusage.services.get", "GET", re.compile(rf"{project}/services/(?P<api>[^/]+)"), service
    )
    path = re.compile(f"{project}:testIamPermissions")
    yield Route("cloudresourcemanager.projects.testIamPermissions", "POST", path, test)


def _has(patterns: list[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def azure_routes(store: Store) -> Iterator[Route]:
    """Yield the routes of Azure; a provider's registration is in `Microsoft.Resources/providers/read`."""

    def permissions(request: Request) -> Mapping[str, Any]:
        role = _role(store, request.names["subscription"])
        return {"value": [{**role, "dataActions": [], "notDataActions": []}]}

    path = r"(?i:/subscriptions/)(?P<subscription>[^/]+)(?i:/providers/Microsoft\.Authorization/permissions)"
    yield Route("Microsoft.Authorization/permissions/read", "GET", re.compile(path), permissions)
