"""Fake of azure-native 3.29 and of Azure Resource Manager behind it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any, Final, cast

from ebbtide.analysis.providers import azure
from ebbtide.analysis.providers.azure import RANDOMLY_NAMED
from ebbtide.analysis.providers.property_path import plain_path
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.assumed_azure import RESOURCES, credentials
from ebbtide.analysis.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud import fake_provider
from ebbtide_rehearsal.cloud.azure import bridge, clusters, ids, kinds, node_pools
from ebbtide_rehearsal.cloud.azure.arm import (
    CLOUD,
    CONFLICT,
    DEPLOYER,
    DEPLOYER_CLIENT,
    TENANT,
    Arm,
    Operations,
    Request,
    ResourceKind,
    inner,
    locked,
    no_parent,
    not_found,
    refused,
)
from ebbtide_rehearsal.cloud.azure.bridge import API_VERSION, imported, refreshed
from ebbtide_rehearsal.cloud.azure.ids import names
from ebbtide_rehearsal.cloud.azure.kinds import CLUSTER
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.fake_provider import ResourceKind as AnyKind
from ebbtide_rehearsal.cloud.provider import Call, Clusters, DiffResult, Properties, Read, RefusedError
from ebbtide_rehearsal.cloud.references import Reference
from ebbtide_rehearsal.cloud.store import Resource, Store

_MODULES: Final = (kinds, clusters, node_pools)

KINDS: Final[Mapping[str, ResourceKind]] = {kind.type: kind for module in _MODULES for kind in module.KINDS}
"""Resource types by token."""


def user_credentials(arm: Arm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's credentials. Without Entra that would be a local account
    (hashicorp/terraform-provider-azurerm#15489).

    Raises:
        RefusedError: there is no such cluster, or it admits no users.
    """
    cluster = _cluster(arm, arguments)
    if not inner(cluster.state, "aadProfile").get("managed"):
        _refuse_without_accounts(cluster)
    return _credentials(arm, cluster, "clusterUser")


def admin_credentials(arm: Arm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return an administrator's credentials: a local account (Azure/bicep#11601).

    Raises:
        RefusedError: there is no such cluster, or it has no local accounts.
    """
    cluster = _cluster(arm, arguments)
    _refuse_without_accounts(cluster)
    return _credentials(arm, cluster, "clusterAdmin")


def _cluster(arm: Arm, arguments: Mapping[str, Any]) -> Resource:
    identity = ids.identity(RESOURCES[CLUSTER].id, arm.subscription, arguments)
    cluster = arm.find(identity)
    if cluster is None:
        raise RefusedError(not_found(identity))
    return cluster


def _refuse_without_accounts(cluster: Resource) -> None:
    if cluster.state.get("disableLocalAccounts"):
        message = (
            "Getting static credential is not allowed because this cluster is set to disable local accounts."
        )
        raise RefusedError(refused("BadRequest", message))


def _credentials(arm: Arm, cluster: Resource, kind: str) -> dict[str, Any]:
    endpoint = arm.clusters.endpoint(cluster.id)
    return credentials(
        kind,
        ids.last(cluster.id),
        ids.last(ids.group_of(cluster.id)),
        tenant=TENANT,
        server=f"https://{endpoint.host}",
        certificate=endpoint.certificate_authority,
    )


_GETTER: Final = re.compile(r"(azure-native:\w+:)get(\w+)")


def _client_config(arm: Arm, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "clientId": DEPLOYER_CLIENT,
        "objectId": DEPLOYER,
        "subscriptionId": arm.subscription,
        "tenantId": TENANT,
    }


def _account_keys(arm: Arm, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return kinds.keys(_resource(arm, KINDS[kinds.ACCOUNT], arguments))


FUNCTIONS: Final[Mapping[str, Callable[[Arm, Mapping[str, Any]], Mapping[str, Any]]]] = {
    "azure-native:authorization:getClientConfig": _client_config,
    "azure-native:containerservice:listManagedClusterAdminCredentials": admin_credentials,
    "azure-native:containerservice:listManagedClusterUserCredentials": user_credentials,
    "azure-native:storage:listStorageAccountKeys": _account_keys,
}
"""Functions other than the `get` of a type in `KINDS`."""


def result_of(arm: Arm, token: str, arguments: Properties) -> Properties:
    """Return the result of a function.

    Raises:
        RefusedError: the function fails, or the fake does not have it.
    """
    function = FUNCTIONS.get(token)
    if function is not None:
        return function(arm, arguments)
    getter = _GETTER.fullmatch(token)
    kind = KINDS.get("".join(getter.groups())) if getter else None
    if kind is None:
        raise RefusedError(f"The fake cloud does not implement the function {token}.")
    resource = _resource(arm, kind, arguments)
    return {"id": resource.id, **resource.state, **kind.current(arm, resource), API_VERSION: kind.api_version}


def _resource(arm: Arm, kind: ResourceKind, arguments: Mapping[str, Any]) -> Resource:
    identity = ids.identity(kind.path, arm.subscription, arguments)
    resource = arm.find(identity)
    if resource is None:
        raise RefusedError(not_found(identity))
    return resource


_STAYS = ("name", "location")


def _previewed(kind: ResourceKind, inputs: Properties, old: Properties | None = None) -> dict[str, Any]:
    """Return the outputs that a preview knows; the SDK treats missing ones as unknown.

    Args:
        kind: the resource's type.
        inputs: the requested inputs.
        old: its state; None if it is to be created.
    """
    state: dict[str, Any] = {key: value for key, value in inputs.items() if key not in names(kind.path)}
    for path in kind.unknown:
        state = _unknown(state, path.split("."))
    if old is not None:
        state |= {name: old[name] for name in _STAYS if name in old}
    return state


def _unknown(state: Mapping[str, Any], steps: list[str]) -> dict[str, Any]:
    """Return the state with the value at a path unknown, if its parent exists."""
    name, *rest = steps
    if not rest:
        return {**state, name: UNKNOWN}
    inner = state.get(name)
    if not isinstance(inner, Mapping):
        return dict(state)
    return {**state, name: _unknown(cast("Mapping[str, Any]", inner), rest)}


def _change(kind: ResourceKind, old: Read, new: Properties) -> DiffResult:
    """Return the effect of changed inputs on a resource."""

    def needs_new(path: str, before: Any, after: Any) -> bool:
        if before is None and old.state.get(path) == after:
            return False
        return azure.needs_new(kind.type, plain_path(path))

    return fake_provider.change(
        old.inputs,
        new,
        is_same=azure.is_same,
        needs_new=needs_new,
        keeps_name=old.inputs.get(RANDOMLY_NAMED) is not True,
    )


_NOT_FOUND: Final = 404
_Kind = AnyKind[Request, Arm]


class AzureProvider(FakeProvider[Request, Arm]):
    """Azure, as seen through its Pulumi provider."""

    package = CLOUD
    version = metadata.version("pulumi-azure-native")
    refuses_unknown = False
    kinds = KINDS

    def __init__(self, store: Store, clusters: Clusters, arm: Arm | None = None) -> None:
        """Args:
        store: store of the resources.
        clusters: the control planes.
        arm: Azure as configured for a provider resource; by default without a subscription.
        """
        super().__init__(arm or Arm(store, clusters, Operations()))

    def configured(self, variables: Properties) -> "AzureProvider":
        """See `Provider.configured`."""
        fields = Inputs(variables)
        subscription, location = fields.text("subscriptionId"), fields.text("location")
        arm = replace(self.cloud, subscription=subscription, location=location)
        return AzureProvider(arm.store, arm.clusters, arm)

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> DiffResult:
        """See `Provider.diff`."""
        del identity
        return _change(_own(self.kind(call.type)), old, new)

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """See `Provider.invoke`."""
        return result_of(self.cloud, token, arguments)

    def find(self, identity: str) -> Resource | None:
        """See `FakeProvider.find`: ids are case-insensitive."""
        return self.cloud.find(identity)

    def identity(self, token: str, inputs: Properties) -> str:
        """See `FakeProvider.identity`."""
        path = _own(self.kind(token)).path
        if not self.cloud.subscription and "{subscriptionId}" in path:
            raise RefusedError(
                "no subscription ID: set azure-native:subscriptionId, or subscriptionId on the provider."
            )
        return ids.identity(path, self.cloud.subscription, inputs)

    def request(
        self, call: Call, inputs: Properties, identity: str = "", old: Resource | None = None
    ) -> Request:
        """See `FakeProvider.request`: properties that azure-native does not know are recorded and dropped."""
        if not call.preview:
            unknown = bridge.unknown(call.type, inputs)
            for path in unknown:
                self.cloud.store.log_event(
                    "property-ignored",
                    f"azure-native knows no property {path} of {call.type}, and omits it from {call.name}.",
                    property=path,
                    urn=call.urn,
                )
            inputs = bridge.sent(inputs, unknown)
        return Request(cloud=self.cloud, type=call.type, id=identity, urn=call.urn, inputs=inputs, old=old)

    def completed(self, kind: _Kind, call: Call, old: Properties, new: Properties) -> dict[str, Any]:
        """See `FakeProvider.completed`."""
        return bridge.completed(_own(kind), self.cloud, call.name, old, new)

    def preview(self, kind: _Kind, request: Request, old: Read | None = None) -> dict[str, Any]:
        """See `FakeProvider.preview`."""
        return _previewed(_own(kind), request.inputs, old.state if old is not None else None)

    def already_exists(self, kind: _Kind, existing: Resource) -> str:
        """See `FakeProvider.already_exists`."""
        del kind
        return f"cannot create already existing resource '{existing.id}'"

    def put(self, kind: _Kind, request: Request) -> Properties:
        """See `FakeProvider.put`: a resource whose parent does not exist is rejected."""
        parent = _own(kind).parent
        if parent:
            identity = self.identity(parent, request.inputs)
            if self.find(identity) is None:
                raise RefusedError(no_parent("write", ids.azure_type(_own(kind).path), identity))
        group = ids.group_of(request.id)
        in_group = "resourceGroupName" in request.inputs and not ids.same(group, request.id)
        if in_group and self.find(group) is None:
            message = f"Resource group '{ids.last(group)}' could not be found."
            raise RefusedError(refused("ResourceGroupNotFound", message, status=_NOT_FOUND))
        self._refuse_duplicate(_own(kind), request)
        return super().put(kind, request)

    def _refuse_duplicate(self, kind: ResourceKind, request: Request) -> None:
        code, names_ = kind.unique or ("", ())
        own = [str(request.inputs.get(name)).lower() for name in names_]
        for other in self.cloud.store.resources(CLOUD, kind.type) if code else ():
            values = [str(other.inputs.get(name)).lower() for name in names_]
            if own == values and not ids.same(other.id, request.id):
                message = f"Another resource already exists with the same {', '.join(names_)}: {other.id}"
                raise RefusedError(refused(code, message, status=CONFLICT))

    def lacks(self, reference: Reference, text: str) -> bool:
        """See `FakeProvider.lacks`: other resource groups than the fake's have everything."""
        del reference
        return self.cloud.lacks(text)

    def not_found(self, text: str) -> str:
        """See `FakeProvider.not_found`."""
        return not_found(text)

    def in_use(self, resource: Resource, user: Resource) -> str:
        """See `FakeProvider.in_use`."""
        kind = resource.type.rpartition(":")[2]
        message = f"{kind} {ids.last(resource.id)} is in use by {user.id} and cannot be deleted."
        return refused(f"InUse{kind}CannotBeDeleted", message)

    def new_state(self, kind: _Kind, request: Request) -> dict[str, Any]:
        """See `FakeProvider.new_state`."""
        own = _own(kind)
        given = {key: value for key, value in request.inputs.items() if key not in ids.names(own.path)}
        identity = {"name": ids.last(request.id), "type": ids.azure_type(own.path)}
        return {**given, **identity, **kind.outputs(request)}

    def state(self, kind: _Kind, resource: Resource) -> dict[str, Any]:
        """See `FakeProvider.state`."""
        return {**super().state(kind, resource), bridge.API_VERSION: _own(kind).api_version}

    def delete_refusal(self, kind: _Kind, resource: Resource) -> str | None:
        """See `FakeProvider.delete_refusal`."""
        return locked(self.cloud, resource.id) or super().delete_refusal(kind, resource)

    def remove(self, resource: Resource) -> None:
        """See `FakeProvider.remove`: child resources are deleted with it."""
        for below in self.cloud.below(resource.id):
            super().remove(below)
        super().remove(resource)

    def inputs_of(
        self, kind: _Kind, call: Call, resource: Resource, known: Properties, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """See `FakeProvider.inputs_of`."""
        if call.inputs:
            return refreshed(_own(kind), call.inputs, known, state)
        return imported(_own(kind), resource.id, state)


def _own(kind: _Kind) -> ResourceKind:
    return cast("ResourceKind", kind)
