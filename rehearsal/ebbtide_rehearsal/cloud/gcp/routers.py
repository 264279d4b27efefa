"""Routers and their NAT gateways."""

from typing import Final

from ebbtide_rehearsal.cloud.gcp.answers import outputs_of
from ebbtide_rehearsal.cloud.gcp.compute import COMPUTE, already_exists, no_network
from ebbtide_rehearsal.cloud.gcp.request import (
    ROUTER,
    ROUTER_NAT,
    GoogleCloud,
    Request,
    api_error,
    resource_id,
)
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind, Rule
from ebbtide_rehearsal.cloud.store import Resource


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
