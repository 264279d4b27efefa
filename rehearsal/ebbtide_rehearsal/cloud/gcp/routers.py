"""Routers and their NAT gateways."""

from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.asked import CLOUD, ROUTER_NAT, Asked, World, api_error, last, resource_id
from ebbtide_rehearsal.cloud.gcp.compute import COMPUTE, SCHEMA, gce_name, invalid, links, no_network, taken
from ebbtide_rehearsal.cloud.gcp.kind import Check, Kind, Refusal, one_of
from ebbtide_rehearsal.cloud.store import Resource

_SHORTEST_NAT: Final = 2


def _router_id(asked: Asked) -> str:
    return f"projects/{asked.project}/regions/{asked.region}/routers/{asked.name}"


def _without_gateways(world: World, router: Resource) -> None:
    """A router's NAT gateways are part of it (Compute API, Router.nats)."""
    project, region, name = router.id.split("/")[1::2]
    for gateway in world.of(ROUTER_NAT):
        if gateway.id.startswith(f"{project}/{region}/{name}/"):
            world.store.remove(CLOUD, gateway.id)


ROUTER_KIND: Final = Kind(
    identity=_router_id,
    outputs=lambda asked: {
        "project": asked.project,
        "region": asked.region,
        **links(_router_id(asked)),
        "network": f"{COMPUTE}{asked.network(asked.said.text('network'))}",
    },
    autonamed="name",
    replaces=frozenset(
        {"name", "region", "project", "network", "nccGateway", "params", "encryptedInterconnectRouter"}
    ),
    same=frozenset({"region", "network", "nccGateway"}),
    checks=(
        Check("name", SCHEMA, gce_name),
        one_of("bgp.advertiseMode", "DEFAULT", "CUSTOM", source=SCHEMA),
    ),
    refusals=(Refusal("a network that there is", "Compute API, routers.insert (2026)", no_network),),
    failing="Error creating Router",
    taken=taken("Router"),
    gone=_without_gateways,
)


def _nat_name(value: Any) -> str | None:
    """Terraform's `ValidateRFC1035Name(2, 63)`, which a router's own name need not keep."""
    if len(str(value)) < _SHORTEST_NAT:
        return f'"name" ("{value}") must be at least {_SHORTEST_NAT} characters long'
    return gce_name(value)


def _nat_id(asked: Asked) -> str:
    return f"{asked.project}/{asked.region}/{last(asked.said.text('router'))}/{asked.name}"


def _no_router(asked: Asked) -> str | None:
    reference = asked.said.text("router")
    identity = (
        resource_id(reference) or f"projects/{asked.project}/regions/{asked.region}/routers/{reference}"
    )
    if asked.world.get(identity) is not None:
        return None
    return api_error(404, f"The resource '{identity}' was not found", "notFound")


def _no_listed_subnetwork(asked: Asked) -> str | None:
    for listed in asked.said.parts("subnetworks"):
        identity = asked.subnetwork(listed.text("name"))
        if asked.world.get(identity) is None:
            return api_error(404, f"The resource '{identity}' was not found", "notFound")
    return None


def _list_and_mode(asked: Asked) -> str | None:
    lists = asked.said.text("sourceSubnetworkIpRangesToNat") == "LIST_OF_SUBNETWORKS"
    if lists == bool(asked.said.parts("subnetworks")):
        return None
    why = (
        "At least one subnetwork must be specified"
        if lists
        else "Subnetworks can only be specified with LIST_OF_SUBNETWORKS"
    )
    return invalid("resource.nats[0].subnetworks", "", why)


ROUTER_NAT_KIND: Final = Kind(
    identity=_nat_id,
    outputs=lambda asked: {"project": asked.project, "region": asked.region},
    autonamed="name",
    defaults={
        "icmpIdleTimeoutSec": 30,
        "tcpEstablishedIdleTimeoutSec": 1200,
        "tcpTimeWaitTimeoutSec": 120,
        "tcpTransitoryIdleTimeoutSec": 30,
        "type": "PUBLIC",
        "udpIdleTimeoutSec": 30,
    },
    replaces=frozenset({"name", "router", "region", "project", "endpointTypes", "initialNatIps", "type"}),
    same=frozenset({"router", "region", "subnetworks.name"}),
    checks=(
        Check("name", SCHEMA, _nat_name),
        one_of(
            "sourceSubnetworkIpRangesToNat",
            "ALL_SUBNETWORKS_ALL_IP_RANGES",
            "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES",
            "LIST_OF_SUBNETWORKS",
            source=SCHEMA,
        ),
        one_of("natIpAllocateOption", "MANUAL_ONLY", "AUTO_ONLY", source=SCHEMA),
        one_of("logConfig.filter", "ERRORS_ONLY", "TRANSLATIONS_ONLY", "ALL", source=SCHEMA),
        one_of("type", "PUBLIC", "PRIVATE", source=SCHEMA),
    ),
    refusals=(
        Refusal("a router that there is", "Compute API, routers.patch (2026)", _no_router),
        Refusal("subnetworks that there are", "Compute API, routers.patch (2026)", _no_listed_subnetwork),
        Refusal("a list where it says so", "Compute API, Router.nats (2026)", _list_and_mode),
    ),
    failing="Error creating RouterNat",
    taken=taken("RouterNat"),
)
