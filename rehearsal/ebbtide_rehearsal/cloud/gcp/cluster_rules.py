"""API rules for clusters."""

import ipaddress
import re
from datetime import datetime, timedelta
from typing import Final

from ebbtide.declaration.catalog import CloudKind, kubernetes_versions
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide_rehearsal.cloud.gcp.labels import bad_labels
from ebbtide_rehearsal.cloud.gcp.request import BAD_REQUEST, Request, api_error, inputs_of, last
from ebbtide_rehearsal.cloud.gcp.resource_kind import Rule
from ebbtide_rehearsal.cloud.regions import locations

_VERSION: Final = re.compile(r"^(latest|-|1\.[3-4]\d(\.\d+(-gke\.\d+)?)?)$")
_MOST_NETWORKS: Final = 100


def _bad(message: str) -> str:
    return api_error(400, message, BAD_REQUEST)


def _location(request: Request) -> str | None:
    known = locations(request.cloud.store, CloudKind.GKE).names()
    return None if request.location in known else _bad(f'Location "{request.location}" does not exist.')


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


def _nodes(request: Request) -> str | None:
    fields = request.fields
    if (
        fields.flag("enableAutopilot")
        or fields.parts("nodePools")
        or (fields.number("initialNodeCount") or 0) > 0
    ):
        return None
    return _bad("Cluster.initial_node_count must be greater than zero.")


def _workload_pool(request: Request) -> str | None:
    pool = request.fields.text("workloadIdentityConfig.workloadPool")
    wanted = f"{request.project}.svc.id.goog"
    if pool in ("", wanted):
        return None
    return _bad(f'Currently, the only supported workload pool is the default "{wanted}", got "{pool}".')


def _version(request: Request) -> str | None:
    version = request.fields.text("minMasterVersion")
    channel = request.fields.text("releaseChannel.channel").lower()
    oldest = kubernetes_versions(CloudKind.GKE, channel)[0] if channel not in ("", "unspecified") else ""
    is_known = not version or _VERSION.match(version)
    if is_known and (version in ("", "latest", "-") or version.split(".")[:2] >= oldest.split(".")):
        return None
    return _bad(f'Master version "{version}" is unsupported.')


def _labels(request: Request) -> str | None:
    reason = bad_labels(request.fields.labels("resourceLabels"))
    return _bad(reason) if reason else None


def _networks(request: Request) -> str | None:
    blocks = request.fields.parts("masterAuthorizedNetworksConfig.cidrBlocks")
    if len(blocks) > _MOST_NETWORKS:
        return _bad(f"Too many authorized networks: {len(blocks)}, the limit is {_MOST_NETWORKS}.")
    for block in blocks:
        text = block.text("cidrBlock")
        try:
            ipaddress.ip_network(text)
        except ValueError:
            return _bad(f'Invalid master authorized networks: network "{text}" is not a valid CIDR block.')
    return None


_LONGEST_EXCLUSION: Final = timedelta(days=90)
_MOST_OF_ALL_UPGRADES: Final = 3
_KEY: Final = re.compile(r"^projects/[^/]+/locations/(?P<location>[^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+$")


def _keys(request: Request) -> str | None:
    for path in ("databaseEncryption.keyName", "nodeConfig.bootDiskKmsKey"):
        key = request.fields.text(path)
        match, region = _KEY.match(key), region_of(request.location)
        if key and not match:
            return _bad(f"Invalid Cloud KMS key name: {key}.")
        if match and match["location"] != region:
            return _bad(f"Cloud KMS key {key} is not in the location of the cluster, {region}.")
    return None


def _maintenance(request: Request) -> str | None:
    """Exclusions of all upgrades have a maximum length and number."""
    of_all = [
        exclusion
        for exclusion in request.fields.parts("maintenancePolicy.maintenanceExclusions")
        if exclusion.text("exclusionOptions.scope") in ("", "NO_UPGRADES")
    ]
    for exclusion in of_all:
        moments = [datetime.fromisoformat(exclusion.text(name)) for name in ("startTime", "endTime")]
        if moments[1] - moments[0] > _LONGEST_EXCLUSION:
            name = exclusion.text("exclusionName")
            return _bad(f"Maintenance exclusion {name} is longer than 90 days, the limit for NO_UPGRADES.")
    if len(of_all) > _MOST_OF_ALL_UPGRADES:
        return _bad(f"Too many maintenance exclusions with scope NO_UPGRADES: {len(of_all)}, the limit is 3.")
    return None


def _policy(request: Request) -> str | None:
    fields = request.fields
    if fields.text("datapathProvider") == "ADVANCED_DATAPATH" and fields.flag("networkPolicy.enabled"):
        return _bad(
            "Enabling NetworkPolicy for clusters with DatapathProvider=ADVANCED_DATAPATH is not allowed."
        )
    return None


def _private(request: Request) -> str | None:
    """Private nodes require alias IP addresses, not routes."""
    fields = request.fields
    private_nodes = fields.flag("privateClusterConfig.enablePrivateNodes")
    if fields.flag("privateClusterConfig.enablePrivateEndpoint") and not private_nodes:
        return _bad("Private endpoint can be enabled only for clusters with private nodes.")
    if private_nodes and fields.text("networkingMode") == "ROUTES":
        return _bad("Private clusters must be VPC-native: ip_allocation_policy.use_ip_aliases must be true.")
    return None


_CLUSTER_API: Final = "GKE v1 API, projects.locations.clusters (2026)"

RULES: Final = (
    Rule(
        "a location that exists",
        "terraform-google-modules/terraform-google-kubernetes-engine#444; catalog/data/locations.csv",
        _location,
    ),
    Rule("a network that there is", "gitpod-io/gitpod-gke-guide#21", _network),
    Rule("a subnetwork of the network", "hashicorp/terraform-provider-google#7895", _subnetwork),
    Rule(
        "ranges of the subnetwork",
        "fabianlee/gcp-gke-clusters-ingress#2; gruntwork-io/terraform-google-gke#118",
        _ranges,
    ),
    Rule("a node to begin with", f"{_CLUSTER_API}, initialNodeCount", _nodes),
    Rule("the project's own identities", "GKE docs, workload-identity (2026)", _workload_pool),
    Rule("a version", f"{_CLUSTER_API}, initialClusterVersion", _version),
    Rule("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
    Rule("keys by their names", "GKE docs, encrypting-secrets and using-cmek (2026)", _keys),
    Rule("exclusions within limits", "GKE docs, maintenance-windows-and-exclusions (2026-06)", _maintenance),
    Rule("authorized networks", "GKE docs, authorized-networks (2026): up to 100", _networks),
    Rule("one network policy engine", "GKE docs, dataplane-v2 (2026)", _policy),
    Rule("private nodes are VPC-native", "GKE docs, private-clusters (2026)", _private),
)
