"""Enabled APIs, and the user's own permissions, in a project or subscription.

Sources: Service Usage API v1, `services.get`, and Resource Manager API v1,
`projects.testIamPermissions` (Google's REST reference, 2026); azure-rest-api-specs, Resources 2021-04-01,
`Providers_Get`, and Authorization 2022-04-01, permissions; azure-docs, role-based-access-control-manage-
access-rest (2026): the permissions of the caller at the scope of a subscription.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

import requests
from azure.core.credentials import TokenCredential
from google.auth.transport.requests import AuthorizedSession

from ebbtide.clients.clouds.azure import azure_session, management_endpoint
from ebbtide.clients.clouds.google import GoogleEndpoints
from ebbtide.clients.clouds.http import get_json, post_json

_PROVIDERS: Final = "2021-04-01"
_PERMISSIONS: Final = "2022-04-01"


@dataclass(frozen=True, slots=True)
class GoogleRights:
    """Rights in a project of Google Cloud."""

    project: str
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def disabled(self, apis: Collection[str]) -> list[str]:
        """See `Rights.disabled`."""
        return [api for api in sorted(apis) if not self._is_enabled(api)]

    def _is_enabled(self, api: str) -> bool:
        url = f"{self.endpoints.service_usage}/projects/{self.project}/services/{api}"
        advice = {403: f"Ask an owner of {self.project} for roles/serviceusage.serviceUsageViewer."}
        return get_json(self.session, url, {}, advice).get("state") == "ENABLED"

    def lacking(self, permissions: Collection[str]) -> list[str]:
        """See `Rights.lacking`."""
        if not permissions:
            return []  # the API refuses a request without any
        url = f"{self.endpoints.resource_manager}/projects/{self.project}:testIamPermissions"
        advice = {403: f"Enable the API cloudresourcemanager.googleapis.com in {self.project}."}
        wanted = sorted(permissions)
        granted = post_json(self.session, url, {"permissions": wanted}, advice).get("permissions", [])
        return [permission for permission in wanted if permission not in granted]


@dataclass(frozen=True, slots=True)
class AzureRights:
    """Rights in a subscription of Azure."""

    subscription: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def disabled(self, apis: Collection[str]) -> list[str]:
        """See `Rights.disabled`."""
        with self._session() as session:
            return [api for api in sorted(apis) if not self._is_registered(session, api)]

    def _is_registered(self, session: requests.Session, namespace: str) -> bool:
        provider = self._get(session, f"providers/{namespace}", _PROVIDERS)
        return provider.get("registrationState") == "Registered"

    def lacking(self, permissions: Collection[str]) -> list[str]:
        """See `Rights.lacking`. A role's actions may have `*`, and exceptions."""
        with self._session() as session:
            roles = self._get(session, "providers/Microsoft.Authorization/permissions", _PERMISSIONS)["value"]
        return [action for action in sorted(permissions) if not any(_grants(role, action) for role in roles)]

    def _session(self) -> requests.Session:
        return azure_session(self.credential, f"{self.endpoint}/.default")

    def _get(self, session: requests.Session, path: str, version: str) -> dict[str, Any]:
        url = f"{self.endpoint}/subscriptions/{self.subscription}/{path}"
        advice = {403: f"Ask an owner of subscription {self.subscription} for the role Reader."}
        return get_json(session, url, {"api-version": version}, advice)


def _grants(role: dict[str, Any], action: str) -> bool:
    """Return whether a role has an action; names are compared without case."""

    def has(patterns: list[str]) -> bool:
        return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)

    return has(role.get("actions") or []) and not has(role.get("notActions") or [])
