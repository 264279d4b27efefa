"""Azure Resource Manager as configured for a provider: requests, resource types, errors, locks, operations.

Outputs come from the templates that previews also use: `ebbtide.analysis.recording.assumed_azure`.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeAlias, cast
from uuid import uuid4

from ebbtide.analysis.providers.property_path import merged
from ebbtide.analysis.recording.assumed_azure import NODE_RESOURCE_GROUP, RESOURCES
from ebbtide.analysis.recording.assumption_tables import Text, rendered_properties
from ebbtide_rehearsal.cloud import fake_provider
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.ids import last, within
from ebbtide_rehearsal.cloud.provider import Clusters, RefusedError
from ebbtide_rehearsal.cloud.store import Resource, Store

BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
CONFLICT: Final = 409


def refused(code: str, message: str, *, status: int = BAD_REQUEST, target: str = "") -> str:
    """Format an error of Azure Resource Manager.

    Args:
        code: Azure's error code.
        status: the HTTP status.
        target: the invalid property; empty if Azure names none.
    """
    suffix = f' Target="{target}"' if target else ""
    return f'Status={status} Code="{code}" Message="{message}"{suffix}'


def invalid(parameter: str, details: str = "") -> str:
    """Format AKS's refusal of a value (Azure/AKS#3300; with details XenitAB/terraform-modules#755)."""
    why = f" Error details: {details}." if details else ""
    more = "Please see https://aka.ms/aks-naming-rules for more details."
    return refused(
        "InvalidParameter", f"The value of parameter {parameter} is invalid.{why} {more}", target=parameter
    )


def missing(parameter: str) -> str:
    """Format AKS's refusal of an omitted parameter (pulumi/pulumi-azure-native#2943, Azure/ARO-HCP#629)."""
    return refused("InvalidParameter", f"Required parameter {parameter} is missing (null).", target=parameter)


def fixed(parameter: str) -> str:
    """Format AKS's refusal to change an immutable property (pulumi/pulumi-azure-native#959)."""
    return refused(
        "PropertyChangeNotAllowed", f"Changing property '{parameter}' is not allowed.", target=parameter
    )


def no_parent(action: str, kind: str, parent: str) -> str:
    """Format Azure Resource Manager's refusal of a resource whose parent does not exist."""
    return refused(
        "ParentResourceNotFound",
        f"Failed to perform '{action}' on resource(s) of type '{kind}', because the parent resource "
        f"'{parent}' could not be found.",
        status=NOT_FOUND,
    )


def not_found(identity: str) -> str:
    """Format Azure Resource Manager's error for a resource that does not exist."""
    group, _, path = identity.partition("/providers/")
    words = path.split("/")
    name = "/".join([words[0], *words[1::2], *words[2::2]])
    return refused(
        "ResourceNotFound",
        f"The Resource '{name}' under resource group '{group.rpartition('/')[2]}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
        status=NOT_FOUND,
    )


def inner(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object in another one; empty if absent."""
    value = of.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(of: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list in an object; empty if absent."""
    value = of.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []


_WAIT = (
    "is in progress, please wait for it to finish before starting a new operation. "
    "See https://aka.ms/aks-pending-operation for more details"
)


class Operations:
    """Operations in progress, by resource id."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._underway: dict[str, str] = {}

    @contextmanager
    def on(
        self, identity: str, doing: str, otherwise: Callable[[str, str], str] | None = None
    ) -> Generator[None]:
        """Run an operation until the end of the block.

        Args:
            identity: id of its resource. No operation may be in progress on it, above it or below it.
            doing: Azure's name of the operation, such as `Creating`.
            otherwise: returns the refusal for the id and the name of the operation in progress; by default
                AKS's.

        Raises:
            RefusedError: another operation is in progress.
        """
        with self._lock:
            for other, word in self._underway.items():
                if within(other, identity) or within(identity, other):
                    raise RefusedError((otherwise or _pending)(other, word))
            self._underway[identity] = doing
        try:
            yield
        finally:
            with self._lock:
                del self._underway[identity]


def _pending(identity: str, doing: str) -> str:
    """Format AKS's refusal of concurrent operations (cilium/cilium#25944;
    Azure/terraform-azurerm-avm-ptn-aks-production#25).

    Pools of one cluster may be created concurrently since 2020 (Azure/AKS#1913); the azurerm provider has
    no lock for it (2026-08).
    """
    is_pool = "/agentpools/" in identity.lower()
    operation = (
        f"Another agentpool operation ({last(identity)} - {doing})"
        if is_pool
        else f"Another operation ({doing})"
    )
    return refused("OperationNotAllowed", f"Operation is not allowed: {operation} {_WAIT}", status=CONFLICT)


CLOUD: Final = "azure-native"
"""Cloud of all of its resources in the store."""

TENANT: Final = "11111111-7e4a-4a17-9c5e-000000000001"
DEPLOYER: Final = "11111111-7e4a-4a17-9c5e-000000000002"
"""Object id of the service principal that runs the program."""
DEPLOYER_CLIENT: Final = "11111111-7e4a-4a17-9c5e-000000000003"


@dataclass(frozen=True, slots=True)
class Arm:
    """Azure Resource Manager.

    Attributes:
        store: store of its resources.
        clusters: control planes.
        operations: operations in progress.
        subscription: id of the default subscription; empty if the provider has none.
        location: default region; empty if the provider has none.
    """

    store: Store
    clusters: Clusters
    operations: Operations
    subscription: str = ""
    location: str = ""

    def find(self, identity: str) -> Resource | None:
        """Return the resource of an id, ignoring case."""
        resource = self.store.get(CLOUD, identity)
        if resource is not None:
            return resource
        return next(
            (resource for resource in self.store.resources(CLOUD) if ids.same(resource.id, identity)), None
        )

    def below(self, scope: str, kind: str | None = None) -> list[Resource]:
        """Return the resources below a scope."""
        resource = self.store.resources(CLOUD, kind)
        return [
            resource
            for resource in resource
            if ids.within(resource.id, scope) and not ids.same(resource.id, scope)
        ]

    def lacks(self, identity: str) -> bool:
        """Return whether a resource is known not to exist: the fake has its resource group, but not the
        resource. Nothing is known of other groups, such as that of an existing cluster's network.
        """
        group = ids.group_of(identity)
        return bool(group) and self.find(group) is not None and self.find(identity) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(fake_provider.BaseRequest[Arm]):
    """A resource to be created or updated on Azure."""

    def preserved(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value that Azure chose at creation; for a new resource, choose it."""
        return self.old.state[name] if self.old is not None and name in self.old.state else make()


Rule: TypeAlias = fake_provider.Rule[Request]


@dataclass(frozen=True, kw_only=True)
class ResourceKind(fake_provider.ResourceKind[Request, Arm]):
    """A resource type of Azure.

    Attributes:
        api_version: API version in azure-native 3.29.
        unique: code of Azure's refusal, and the properties that no two resources share; None for none.
        inside: properties with resources that also have a separate type; azure-native does not change them
            if the program omits them.
        unknown: paths in the inputs that only Azure knows.
    """

    api_version: str
    unique: tuple[str, Sequence[str]] | None = None
    inside: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def path(self) -> str:
        """Template of its ids, with names of inputs; the last one is the resource's name."""
        return RESOURCES[self.type].id

    @property
    def parent(self) -> str:
        """Token of the parent's type; empty for a resource in a resource group or a scope."""
        above = self.path.rpartition("/")[0].rpartition("/")[0]
        return next((token for token, template in RESOURCES.items() if _is_parent(template.id, above)), "")


def _is_parent(path: str, above: str) -> bool:
    return "/providers/" in path and (path == above or above.startswith(f"{path}/"))


_LONGEST_GROUP = 80


class _Facts(dict[str, str]):
    """Facts that a template references, from a request or chosen by Azure."""

    def __init__(self, request: Request) -> None:
        inputs = {key: value for key, value in request.inputs.items() if isinstance(value, str)}
        super().__init__(
            inputs,
            name=ids.last(request.id),
            resourceGroupName=ids.last(ids.group_of(request.id)),
            subscriptionId=request.cloud.subscription,
            tenantId=TENANT,
            location=str(request.inputs.get("location", "")).replace(" ", "").lower(),
            dnsPrefix=str(request.inputs.get("dnsPrefix") or request.inputs.get("fqdnSubdomain")),
        )
        group = NODE_RESOURCE_GROUP.format_map(self)[:_LONGEST_GROUP]
        self.setdefault("nodeResourceGroup", request.preserved("nodeResourceGroup", lambda: group))

    def __getitem__(self, key: str) -> Text:
        return Text(super().__getitem__(key))

    def __missing__(self, key: str) -> str:
        chosen = str(uuid4()) if key.startswith("uuid_") else uuid4().hex[:8]
        return self.setdefault(key, chosen)


def outputs_of(request: Request) -> dict[str, Any]:
    """Return the outputs of a requested resource, existing or new."""
    rendered = rendered_properties(RESOURCES[request.type].outputs, _Facts(request))
    if request.old is None:
        return rendered
    existing = {name: request.old.state[name] for name in rendered if name in request.old.state}
    return merged(rendered, existing)


_TYPE: Final = "Microsoft.Authorization/locks"


def lock(store: Store, scope: str, name: str = "do-not-delete") -> None:
    """Put a lock with the level `CanNotDelete` on a scope, as an administrator would."""
    identity = f"{scope}/providers/{_TYPE}/{name}"
    store.put(Resource(CLOUD, identity, _TYPE, state={"level": "CanNotDelete", "scope": scope}))


def locked(arm: Arm, identity: str) -> str | None:
    """Return the refusal to delete a resource in the scope of a lock, or one that contains a locked one.

    Source: learn.microsoft.com, azure-resource-manager/management/lock-resources (2026).
    """
    scopes = [str(lock.state["scope"]) for lock in arm.store.resources(CLOUD, _TYPE)]
    locks = [scope for scope in scopes if ids.within(identity, scope) or ids.within(scope, identity)]
    if not locks:
        return None
    return refused(
        "ScopeLocked",
        f"The scope '{identity}' cannot perform delete operation because following scope(s) are locked: "
        f"'{', '.join(locks)}'. Please remove the lock and try again.",
        status=CONFLICT,
    )
