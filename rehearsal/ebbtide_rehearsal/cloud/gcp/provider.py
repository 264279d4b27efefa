"""Fake of pulumi-gcp 10.2 and of the APIs behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any, Final, cast

from ebbtide.analysis.providers.property_path import merged
from ebbtide.analysis.recording.values import UNKNOWN, Plain
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider, as_read
from ebbtide_rehearsal.cloud.fake_provider import ResourceKind as AnyKind
from ebbtide_rehearsal.cloud.gcp import bridge, clusters, kinds, node_pools
from ebbtide_rehearsal.cloud.gcp.request import (
    CLUSTER,
    GoogleCloud,
    Request,
    ResourceKind,
    api_error,
    identity_of,
    inputs_of,
    last,
    result_of,
)
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Clusters,
    DiffResult,
    Failure,
    Properties,
    Read,
    RefusedError,
)
from ebbtide_rehearsal.cloud.references import Reference, is_of
from ebbtide_rehearsal.cloud.schema import schema_violations
from ebbtide_rehearsal.cloud.store import Resource, Store

_GET_CLUSTER: Final = "gcp:container/getCluster:getCluster"
_GET_SUBNETWORK: Final = "gcp:compute/getSubnetwork:getSubnetwork"
_DEFAULT_RANGE: Final = "10.128.0.0/20"
_GET_PROJECT: Final = "gcp:organizations/getProject:getProject"
_GET_STORAGE_AGENT: Final = "gcp:storage/getProjectServiceAccount:getProjectServiceAccount"


def _get_cluster(request: Request) -> Properties:
    """Return an existing cluster. As in Terraform's data sources, a nested object is a list of one.

    Raises:
        RefusedError: there is no cluster with that name.
    """
    identity = identity_of(replace(request, type=CLUSTER))
    cluster = request.cloud.get(identity)
    if cluster is None:
        raise RefusedError(f"{identity} not found")
    request = replace(request, type=CLUSTER, id=identity, inputs=cluster.inputs)
    fields, result = request.fields, result_of(_GET_CLUSTER, request)
    endpoints: list[dict[str, Any]] = result["controlPlaneEndpointsConfigs"]
    (by_name,), (by_address,) = endpoints[0]["dnsEndpointConfigs"], endpoints[0]["ipEndpointsConfigs"]
    path = "controlPlaneEndpointsConfig"
    by_name["allowExternalTraffic"] = fields.flag(f"{path}.dnsEndpointConfig.allowExternalTraffic")
    by_address["enabled"] = fields.flag(f"{path}.ipEndpointsConfig.enabled")
    return {
        **result,
        "masterVersion": cluster.state["masterVersion"],
        "nodeLocations": cluster.state["nodeLocations"],
        "network": request.network(fields.text("network") or "default"),
        "subnetwork": request.subnetwork(fields.text("subnetwork") or "default"),
        "resourceLabels": dict[str, Plain](fields.labels("resourceLabels")),
        "deletionProtection": fields.flag("deletionProtection"),
        "releaseChannels": [{"channel": fields.text("releaseChannel.channel") or "UNSPECIFIED"}],
        "workloadIdentityConfigs": [{"workloadPool": fields.text("workloadIdentityConfig.workloadPool")}],
    }


def _get_subnetwork(request: Request) -> Properties:
    """Return a subnetwork; a project's default network has one in each region (Compute docs, subnets, IP
    ranges of auto mode VPC networks, 2026).

    Raises:
        RefusedError: there is no subnetwork with that name.
    """
    name = request.fields.text("name")
    subnetwork = request.cloud.get(request.subnetwork(name))
    if subnetwork is None and name != "default":
        raise RefusedError(f"{request.subnetwork(name)} not found")
    range_ = inputs_of(subnetwork).text("ipCidrRange") if subnetwork else _DEFAULT_RANGE
    return {**result_of(_GET_SUBNETWORK, request), "ipCidrRange": range_}


def _get_project(request: Request) -> Properties:
    """Return a project for any id, with a number derived from the id."""
    project = request.fields.text("projectId") or request.project
    return result_of(_GET_PROJECT, replace(request, inputs={"projectId": project}))


def _get_storage_agent(request: Request) -> Properties:
    return result_of(_GET_STORAGE_AGENT, request)


FUNCTIONS: Final[Mapping[str, Callable[[Request], Properties]]] = {
    _GET_CLUSTER: _get_cluster,
    _GET_PROJECT: _get_project,
    _GET_STORAGE_AGENT: _get_storage_agent,
    _GET_SUBNETWORK: _get_subnetwork,
}
"""Functions by token."""


_MODULES: Final = (kinds, clusters, node_pools)

KINDS: Final[Mapping[str, ResourceKind]] = {kind.type: kind for module in _MODULES for kind in module.KINDS}
"""Resource types by token."""


_Kind = AnyKind[Request, GoogleCloud]
_GUARDS: Final = ("deletionPolicy", "deletionProtection")


class Gcp(FakeProvider[Request, GoogleCloud]):
    """Google Cloud, as seen through its Pulumi provider.

    Creating a cluster starts a control plane; creating a node pool registers it with the controllers of
    nodes.
    """

    package = "gcp"
    version = metadata.version("pulumi-gcp")
    kinds = KINDS

    def __init__(self, store: Store, clusters: Clusters, cloud: GoogleCloud | None = None) -> None:
        """Args:
        store: store of the resources.
        clusters: the control planes.
        cloud: Google Cloud with a provider resource's settings; by default without settings.
        """
        super().__init__(cloud or GoogleCloud(store, clusters))

    def configured(self, variables: Properties) -> "Gcp":
        """See `Provider.configured`."""
        return Gcp(self.cloud.store, self.cloud.clusters, self.cloud.configured(variables))

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """See `Provider.check_config`: unknown settings are rejected."""
        text = 'Invalid or unknown key. An argument named "{}" is not expected here.'
        return [
            Failure(violation.path, text.format(violation.path))
            for violation in schema_violations(f"pulumi:providers:{self.package}", variables)
            if violation.problem == "unknown" and violation.path != "version"
        ]

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> DiffResult:
        """See `Provider.diff`."""
        del identity
        return bridge.change(_own(self.kind(call.type)), old.inputs, old.state, new)

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """See `Provider.update`."""
        if not call.preview and self.find(identity) is None:
            raise RefusedError(api_error(404, f"Not found: {identity}.", "notFound"))
        return super().update(call, identity, old, new)

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """See `Provider.invoke`."""
        function = FUNCTIONS.get(token)
        if function is None:
            raise RefusedError(f"The fake cloud does not implement the function {token}.")
        return function(Request(cloud=self.cloud, type=token, inputs=arguments))

    def identity(self, token: str, inputs: Properties) -> str:
        """See `FakeProvider.identity`."""
        return identity_of(Request(cloud=self.cloud, type=token, inputs=inputs))

    def request(
        self, call: Call, inputs: Properties, identity: str = "", old: Resource | None = None
    ) -> Request:
        """See `FakeProvider.request`."""
        return Request(cloud=self.cloud, type=call.type, id=identity, urn=call.urn, inputs=inputs, old=old)

    def completed(self, kind: _Kind, call: Call, old: Properties, new: Properties) -> dict[str, Any]:
        """See `FakeProvider.completed`."""
        return bridge.completed(_own(kind), call, old, new)

    def preview(self, kind: _Kind, request: Request, old: Read | None = None) -> dict[str, Any]:
        """See `FakeProvider.preview`: the inputs, and unknown values for what the cloud adds."""
        outputs = kind.outputs(request)
        return merged(request.inputs, outputs) if old is not None else _unknown_over(request.inputs, outputs)

    def already_exists(self, kind: _Kind, existing: Resource) -> str | None:
        """See `FakeProvider.already_exists`."""
        if _own(kind).shares_id:
            return None
        return api_error(409, f"Already exists: {existing.id}", "alreadyExists")

    def lacks(self, reference: Reference, text: str) -> bool:
        """See `FakeProvider.lacks`: every project has a default network."""
        known = self.cloud.of(reference.target)
        return last(text) != "default" and not any(is_of(text, resource.id) for resource in known)

    def not_found(self, text: str) -> str:
        """See `FakeProvider.not_found`."""
        return api_error(404, f"The resource '{text}' was not found", "notFound")

    def in_use(self, resource: Resource, user: Resource) -> str:
        """See `FakeProvider.in_use`."""
        noun = resource.type.rpartition(":")[2].lower()
        message = f"The {noun} resource '{resource.id}' is already being used by '{user.id}'"
        return api_error(400, message, "resourceInUseByAnotherResource")

    def refusal(self, kind: _Kind, request: Request, message: str) -> str:
        """See `FakeProvider.refusal`."""
        failing = _own(kind).failing
        return message if request.old is not None or not failing else f"{failing}: {message}"

    def unfinished(self, kind: _Kind, request: Request) -> str | None:
        """See `FakeProvider.unfinished`."""
        return _own(kind).unfinished(request)

    def new_state(self, kind: _Kind, request: Request) -> dict[str, Any]:
        """See `FakeProvider.new_state`."""
        return merged(request.inputs, kind.outputs(request))

    def written_state(self, kind: _Kind, resource: Resource) -> dict[str, Any]:
        """See `FakeProvider.written_state`: without the properties that change by themselves."""
        return as_read(kind.type, resource.state)

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """See `Provider.read`. The next update is compared with the result."""
        resource = self.find(identity)
        if resource is not None:
            current = self.kind(call.type).current(self.cloud, resource)
            self.cloud.store.put(resource.having(**current))
        return super().read(call, identity, known)

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """See `Provider.delete`. Deletion protection is the provider's own, in the engine's state."""
        resource = self.find(identity)
        if resource is not None:
            guards = {name: known[name] for name in _GUARDS if name in known}
            self.cloud.store.put(replace(resource, inputs={**resource.inputs, **guards}))
        super().delete(call, identity, known)

    def inputs_of(
        self, kind: _Kind, call: Call, resource: Resource, known: Properties, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """See `FakeProvider.inputs_of`."""
        del call, known
        return bridge.read_back(_own(kind), resource.inputs, state)


def _own(kind: _Kind) -> ResourceKind:
    return cast("ResourceKind", kind)


def _unknown_over(inputs: Properties, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs, with unknown values for outputs that only the cloud knows, in blocks of a list as well
    (terraform-plugin-sdk 2, helper/schema/unknown.go)."""
    added = {key for key, item in outputs.items() if key not in inputs or isinstance(item, dict)}
    pairs = {key: (_blocks(inputs.get(key)), _blocks(item)) for key, item in outputs.items()}
    blocks = {
        key: [_unknown_over(*pair) for pair in zip(given, added_to, strict=True)]
        for key, (given, added_to) in pairs.items()
        if added_to and len(given) == len(added_to)
    }
    return merged(inputs, {key: _unknown(outputs[key]) for key in added}) | blocks


def _blocks(value: object) -> list[dict[str, Any]]:
    """Return the blocks of a list; none of any other value."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _unknown(value: Plain) -> Plain:
    return {key: _unknown(item) for key, item in value.items()} if isinstance(value, dict) else UNKNOWN
