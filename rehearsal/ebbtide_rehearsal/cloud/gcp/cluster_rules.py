"""GKE's refusals of clusters that no rule of a declaration has: state, and conflicts of properties."""

from typing import Final

from ebbtide_rehearsal.cloud.gcp.request import BAD_REQUEST, Request, api_error, inputs_of, last
from ebbtide_rehearsal.cloud.gcp.resource_kind import Rule


def _bad(message: str) -> str:
    return api_error(400, message, BAD_REQUEST)


def _network(request: Request) -> str | None:
    name = last(request.fields.text("network") or "default")
    if name == "default" or request.cloud.get(request.network(request.fields.text("network"))) is not None:
        return None
    return _bad(f'Network "{name}" does not exist.')


def _subnetwork(request: Request) -> str | None:
    fields = request.fields
    reference = fields.text("subnetwork")
    if not reference or last(fields.text("network") or "default") == "default":
        return None
    subnetwork = request.cloud.get(request.subnetwork(reference))
    if subnetwork is None:
        return _bad(f'Subnetwork "{last(reference)}" does not exist.')
    if last(inputs_of(subnetwork).text("network")) != last(fields.text("network")):
        return _bad(
            f'Subnetwork "{subnetwork.id}" is not valid for Network "{last(fields.text("network"))}".'
        )
    return None


def _ranges(request: Request) -> str | None:
    """Reject a secondary range that does not exist, or that pods and services share."""
    fields = request.fields
    pods = fields.text("ipAllocationPolicy.clusterSecondaryRangeName")
    services = fields.text("ipAllocationPolicy.servicesSecondaryRangeName")
    if pods and pods == services:
        return _bad(
            f"Pod secondary range name ({pods}) should not be the same as service secondary range name."
        )
    subnetwork = request.cloud.get(request.subnetwork(fields.text("subnetwork")))
    if subnetwork is None:
        return None
    range_names = {extra.text("rangeName") for extra in inputs_of(subnetwork).parts("secondaryIpRanges")}
    for label, name in (("Pod", pods), ("Services", services)):
        if name and name not in range_names:
            network = last(fields.text("network"))
            return _bad(
                f'{label} secondary range "{name}" not found in network "{network}", subnetwork '
                f'"{last(subnetwork.id)}".'
            )
    return None


def _private_endpoint(request: Request) -> str | None:
    fields = request.fields
    if fields.flag("privateClusterConfig.enablePrivateEndpoint") and not fields.flag(
        "privateClusterConfig.enablePrivateNodes"
    ):
        return _bad("Private endpoint can be enabled only for clusters with private nodes.")
    return None


RULES: Final = (
    Rule("existing network", "gitpod-io/gitpod-gke-guide#21", _network),
    Rule("subnetwork of the network", "hashicorp/terraform-provider-google#7895", _subnetwork),
    Rule(
        "ranges of the subnetwork",
        "fabianlee/gcp-gke-clusters-ingress#2; gruntwork-io/terraform-google-gke#118",
        _ranges,
    ),
    Rule("private endpoint needs private nodes", "GKE docs, private-clusters (2026)", _private_endpoint),
)
