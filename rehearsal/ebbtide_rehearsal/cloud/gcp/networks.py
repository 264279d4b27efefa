"""Networks and their subnetworks."""

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from ebbtide.reading.inputs import Inputs
from ebbtide_rehearsal.cloud.gcp.asked import (
    CLUSTER,
    FILESTORE,
    ROUTER,
    SUBNETWORK,
    Asked,
    World,
    api_error,
    inputs_of,
    last,
    resource_id,
)
from ebbtide_rehearsal.cloud.gcp.compute import COMPUTE, SCHEMA, gce_name, invalid, links, no_network, taken
from ebbtide_rehearsal.cloud.gcp.kind import Check, Kind, Refusal, one_of
from ebbtide_rehearsal.cloud.store import Resource


def _range(value: Any) -> str | None:
    """Terraform's `ValidateIpCidrRange`."""
    try:
        ipaddress.ip_network(str(value), strict=False)
    except ValueError:
        return f"{value} is not a valid IP CIDR range: invalid CIDR address: {value}"
    return None


def _network_id(asked: Asked) -> str:
    return f"projects/{asked.project}/global/networks/{asked.name}"


def _network_outputs(asked: Asked) -> dict[str, Any]:
    return {
        "project": asked.project,
        **links(_network_id(asked)),
        "gatewayIpv4": "",
        "routingMode": "REGIONAL",
    }


def users_of_network(world: World, identity: str) -> Iterator[str]:
    """What is in a network, in the order in which the API speaks of it."""
    for kind in (SUBNETWORK, ROUTER, CLUSTER):
        for resource in world.of(kind):
            if resource_id(inputs_of(resource).text("network")) == identity:
                yield resource.id
    for resource in world.of(FILESTORE):
        for network in inputs_of(resource).parts("networks"):
            if last(network.text("network")) == last(identity):
                yield resource.id


def _network_in_use(world: World, network: Resource) -> str | None:
    for user in users_of_network(world, network.id):
        return (
            f"Error waiting for Deleting Network: The network resource '{network.id}' is already being used "
            f"by '{user}'"
        )
    return None


NETWORK_KIND: Final = Kind(
    identity=_network_id,
    outputs=_network_outputs,
    autonamed="name",
    defaults={"autoCreateSubnetworks": True},
    replaces=frozenset(
        {
            "name",
            "project",
            "autoCreateSubnetworks",
            "description",
            "internalIpv6Range",
            "networkProfile",
            "params",
        }
    ),
    checks=(
        Check("name", SCHEMA, gce_name),
        one_of("routingMode", "REGIONAL", "GLOBAL", source=SCHEMA),
    ),
    taken=taken("Network"),
    leaving=_network_in_use,
)


def _subnetwork_id(asked: Asked) -> str:
    return f"projects/{asked.project}/regions/{asked.region}/subnetworks/{asked.name}"


def _subnetwork_outputs(asked: Asked) -> dict[str, Any]:
    said = asked.said
    ranges = ipaddress.ip_network(said.text("ipCidrRange") or "0.0.0.0/0", strict=False)
    return {
        "project": asked.project,
        "region": asked.region,
        **links(_subnetwork_id(asked)),
        "gatewayAddress": str(ranges[1]),
        "network": f"{COMPUTE}{asked.network(said.text('network'))}",
    }


def ranges_of(said: Inputs) -> Iterator[tuple[str, str]]:
    """The ranges of a subnetwork, each with the API's name for its field."""
    yield "resource.ipCidrRange", said.text("ipCidrRange")
    for index, extra in enumerate(said.parts("secondaryIpRanges")):
        yield f"resource.secondaryIpRanges[{index}].ipCidrRange", extra.text("ipCidrRange")


def _strict_ranges(asked: Asked) -> str | None:
    """A range begins where its mask says (Compute API, subnetworks.insert)."""
    for field, text in ranges_of(asked.said):
        network = ipaddress.ip_network(text, strict=False)
        if str(network.network_address) != text.partition("/")[0]:
            return invalid(field, text, f"Range must be in CIDR format, such as {network}")
        if network.prefixlen > _SMALLEST_RANGE:
            return invalid(field, text, f"Prefix length must be at most {_SMALLEST_RANGE}")
    return None


_SMALLEST_RANGE: Final = 29


def _overlap(asked: Asked) -> str | None:
    """No range of a network overlaps another, of the same subnetwork or not."""
    said = asked.said
    taken = [
        (last(other.id), other.id.split("/")[3], text)
        for other in asked.world.of(SUBNETWORK)
        if other.id != _subnetwork_id(asked)
        and asked.network(inputs_of(other).text("network")) == asked.network(said.text("network"))
        for _, text in ranges_of(inputs_of(other))
    ]
    for field, text in ranges_of(said):
        wanted = ipaddress.ip_network(text, strict=False)
        for name, region, other in taken:
            if wanted.overlaps(ipaddress.ip_network(other, strict=False)):
                where = f"existing subnetwork '{name}' in region '{region}'"
                return invalid(field, text, f"Invalid IPCidrRange: {text} conflicts with {where}")
        taken.append((asked.name, asked.region, text))
    return None


def _shrinks(old: Any, new: Any) -> bool:
    """A range may grow in place, and nothing else (Terraform's `IsShrinkageIpCidr`)."""
    before, after = ipaddress.IPv4Network(old, strict=False), ipaddress.IPv4Network(new, strict=False)
    return not before.subnet_of(after)


def _subnetwork_in_use(world: World, subnetwork: Resource) -> str | None:
    for cluster in world.of(CLUSTER):
        if resource_id(inputs_of(cluster).text("subnetwork")) == subnetwork.id:
            using = api_error(
                400,
                f"The subnetwork resource '{subnetwork.id}' is already being used by '{cluster.id}'",
                "resourceInUseByAnotherResource",
            )
            return f"Error when reading or editing Subnetwork: {using}"
    return None


SUBNETWORK_KIND: Final = Kind(
    identity=_subnetwork_id,
    outputs=_subnetwork_outputs,
    autonamed="name",
    replaces=frozenset(
        {
            "name",
            "region",
            "project",
            "network",
            "description",
            "externalIpv6Prefix",
            "internalIpv6Prefix",
            "params",
            "reservedInternalRange",
            "resolveSubnetMask",
        }
    ),
    replaced_if={"ipCidrRange": _shrinks},
    same=frozenset({"region", "network", "reservedInternalRange"}),
    checks=(
        Check("name", SCHEMA, gce_name),
        Check("ipCidrRange", SCHEMA, _range),
        Check("secondaryIpRanges.rangeName", SCHEMA, gce_name),
        Check("secondaryIpRanges.ipCidrRange", SCHEMA, _range),
        one_of("stackType", "IPV4_ONLY", "IPV4_IPV6", "IPV6_ONLY", source=SCHEMA),
    ),
    refusals=(
        Refusal("a network that there is", "Compute API, subnetworks.insert (2026)", no_network),
        Refusal("ranges in CIDR form", "Compute docs, subnets: valid IPv4 ranges (2026)", _strict_ranges),
        Refusal(
            "ranges that do not overlap",
            "terraform-google-modules/terraform-google-network#20; tranquilitybase-io/tb-gcp#160",
            _overlap,
        ),
    ),
    failing="Error creating Subnetwork",
    taken=taken("Subnetwork"),
    leaving=_subnetwork_in_use,
)
