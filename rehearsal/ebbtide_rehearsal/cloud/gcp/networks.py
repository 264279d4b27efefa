"""Networks, subnetworks, firewall rules, and routers with their NAT gateways."""

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from ebbtide.analysis.reading.facts import Inputs
from ebbtide_rehearsal.cloud.gcp.request import (
    CLUSTER,
    COMPUTE,
    FILESTORE,
    FIREWALL,
    NETWORK,
    NODE_POOL,
    ROUTER,
    ROUTER_NAT,
    SUBNETWORK,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    already_exists,
    api_error,
    inputs_of,
    invalid,
    last,
    no_network,
    outputs_of,
    resource_id,
)
from ebbtide_rehearsal.cloud.store import Resource


def users_of_network(cloud: GoogleCloud, identity: str) -> Iterator[str]:
    """Yield the ids of resources in a network, in the API's order."""
    for kind in (SUBNETWORK, FIREWALL, ROUTER, CLUSTER):
        for resource in cloud.of(kind):
            if _is(inputs_of(resource).text("network"), identity):
                yield resource.id
    for resource in cloud.of(FILESTORE):
        for network in inputs_of(resource).parts("networks"):
            if last(network.text("network")) == last(identity):
                yield resource.id
    for resource in cloud.store.resources("gcp"):  # such as firewall rules of the cluster's controllers
        if resource.type.startswith("compute#") and _network_of(resource) == identity:
            yield resource.id


def _is(reference: str, identity: str) -> bool:
    """Return whether a name, a path or a self link is that of a resource."""
    return (resource_id(reference) or reference) in (identity, last(identity))


def _network_of(resource: Resource) -> str:
    return resource_id(str(resource.state.get("network") or ""))


def _network_in_use(cloud: GoogleCloud, network: Resource) -> str | None:
    for user in users_of_network(cloud, network.id):
        return (
            f"Error waiting for Deleting Network: The network resource '{network.id}' is already being used "
            f"by '{user}'"
        )
    return None


def _subnetwork_outputs(request: Request) -> dict[str, Any]:
    range_ = ipaddress.ip_network(request.fields.text("ipCidrRange") or "0.0.0.0/0", strict=False)
    network = request.network(request.fields.text("network"))
    return {**outputs_of(request), "gatewayAddress": str(range_[1]), "network": f"{COMPUTE}{network}"}


def ranges_of(fields: Inputs) -> Iterator[tuple[str, str]]:
    """Return the ranges of a subnetwork, each with the API's name for its field."""
    yield "resource.ipCidrRange", fields.text("ipCidrRange")
    for index, extra in enumerate(fields.parts("secondaryIpRanges")):
        yield f"resource.secondaryIpRanges[{index}].ipCidrRange", extra.text("ipCidrRange")


def _overlap(request: Request) -> str | None:
    """Reject overlapping ranges in a network, within or across subnetworks."""
    fields = request.fields
    taken = [
        (last(other.id), other.id.split("/")[3], text)
        for other in request.cloud.of(SUBNETWORK)
        if other.id != request.id
        and request.network(inputs_of(other).text("network")) == request.network(fields.text("network"))
        for _, text in ranges_of(inputs_of(other))
    ]
    for field, text in ranges_of(fields):
        wanted = ipaddress.ip_network(text, strict=False)
        for name, region, other in taken:
            if wanted.overlaps(ipaddress.ip_network(other, strict=False)):
                where = f"existing subnetwork '{name}' in region '{region}'"
                return invalid(field, text, f"Invalid IPCidrRange: {text} conflicts with {where}")
        taken.append((request.name, request.region, text))
    return None


def _used(subnetwork: Resource, user: Resource) -> str:
    using = api_error(
        400,
        f"The subnetwork resource '{subnetwork.id}' is already being used by '{user.id}'",
        "resourceInUseByAnotherResource",
    )
    return f"Error when reading or editing Subnetwork: {using}"


def _subnetwork_in_use(cloud: GoogleCloud, subnetwork: Resource) -> str | None:
    for cluster in cloud.of(CLUSTER):
        if resource_id(inputs_of(cluster).text("subnetwork")) == subnetwork.id:
            return _used(subnetwork, cluster)
    for pool in cloud.of(NODE_POOL):
        for interface in inputs_of(pool).parts("networkConfig.additionalNodeNetworkConfigs"):
            if _is(interface.text("subnetwork"), subnetwork.id):
                return _used(subnetwork, pool)
    return None


def _without_gateways(cloud: GoogleCloud, router: Resource) -> None:
    """Delete a router's NAT gateways, which are part of it (Compute API, Router.nats)."""
    project, region, name = router.id.split("/")[1::2]
    cloud.forget_below(f"{project}/{region}/{name}", ROUTER_NAT)


def _no_router(request: Request) -> str | None:
    reference = request.fields.text("router")
    identity = (
        resource_id(reference) or f"projects/{request.project}/regions/{request.region}/routers/{reference}"
    )
    if request.cloud.get(identity) is not None:
        return None
    return api_error(404, f"The resource '{identity}' was not found", "notFound")


def _no_listed_subnetwork(request: Request) -> str | None:
    for listed in request.fields.parts("subnetworks"):
        identity = request.subnetwork(listed.text("name"))
        if request.cloud.get(identity) is None:
            return api_error(404, f"The resource '{identity}' was not found", "notFound")
    return None


KINDS: Final = (
    ResourceKind(
        type=NETWORK,
        outputs=lambda request: {**outputs_of(request), "gatewayIpv4": "", "routingMode": "REGIONAL"},
        autonamed="name",
        already_exists=already_exists("Network"),
        before_delete=_network_in_use,
    ),
    ResourceKind(
        type=SUBNETWORK,
        outputs=_subnetwork_outputs,
        autonamed="name",
        rules=(
            Rule("existing network", "Compute API, subnetworks.insert (2026)", no_network),
            Rule(
                "no overlapping ranges",
                "terraform-google-modules/terraform-google-network#20; tranquilitybase-io/tb-gcp#160",
                _overlap,
            ),
        ),
        failing="Error creating Subnetwork",
        already_exists=already_exists("Subnetwork"),
        before_delete=_subnetwork_in_use,
    ),
    ResourceKind(
        type=FIREWALL,
        outputs=outputs_of,
        autonamed="name",
        rules=(Rule("existing network", "Compute API, firewalls.insert (2026)", no_network),),
        failing="Error creating Firewall",
        already_exists=already_exists("Firewall"),
    ),
    ResourceKind(
        type=ROUTER,
        outputs=lambda request: {
            **outputs_of(request),
            "project": request.project,
            "network": f"{COMPUTE}{request.network(request.fields.text('network'))}",
        },
        autonamed="name",
        rules=(Rule("existing network", "Compute API, routers.insert (2026)", no_network),),
        failing="Error creating Router",
        already_exists=already_exists("Router"),
        after_delete=_without_gateways,
    ),
    ResourceKind(
        type=ROUTER_NAT,
        outputs=lambda request: {"project": request.project, **outputs_of(request)},
        autonamed="name",
        rules=(
            Rule("existing router", "Compute API, routers.patch (2026)", _no_router),
            Rule("existing subnetworks", "Compute API, routers.patch (2026)", _no_listed_subnetwork),
        ),
        failing="Error creating RouterNat",
        already_exists=already_exists("RouterNat"),
    ),
)
