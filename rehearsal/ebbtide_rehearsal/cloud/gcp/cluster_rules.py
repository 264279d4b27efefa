"""What the API refuses of a cluster."""

import ipaddress
import re
from datetime import datetime, timedelta
from typing import Final

from ebbtide.catalog import CloudKind
from ebbtide_rehearsal.cloud.gcp.asked import BAD_REQUEST, Asked, api_error, inputs_of, last
from ebbtide_rehearsal.cloud.gcp.kind import Refusal
from ebbtide_rehearsal.cloud.gcp.labels import bad_labels
from ebbtide_rehearsal.cloud.regions import locations

_VERSION: Final = re.compile(r"^(latest|-|1\.\d{2}(\.\d+(-gke\.\d+)?)?)$")
_MOST_NETWORKS: Final = 100
_COMPONENTS: Final = {
    "SYSTEM_COMPONENTS",
    "APISERVER",
    "CONTROLLER_MANAGER",
    "SCHEDULER",
    "WORKLOADS",
    "KCP_CONNECTION",
    "KCP_SSHD",
    "KCP_HPA",
}


def _bad(message: str) -> str:
    return api_error(400, message, BAD_REQUEST)


def _location(asked: Asked) -> str | None:
    known = locations(asked.world.store, CloudKind.GKE).names()
    return None if asked.location in known else _bad(f'Location "{asked.location}" does not exist.')


def _network(asked: Asked) -> str | None:
    name = last(asked.said.text("network") or "default")
    if name == "default" or asked.world.get(asked.network(asked.said.text("network"))) is not None:
        return None
    return _bad(f'Network "{name}" does not exist.')


def _subnetwork(asked: Asked) -> str | None:
    said = asked.said
    reference = said.text("subnetwork")
    if not reference or last(said.text("network") or "default") == "default":
        return None
    found = asked.world.get(asked.subnetwork(reference))
    if found is None:
        return _bad(f'Subnetwork "{last(reference)}" does not exist.')
    if last(inputs_of(found).text("network")) != last(said.text("network")):
        return _bad(f'Subnetwork "{found.id}" is not valid for Network "{last(said.text("network"))}".')
    return None


def _ranges(asked: Asked) -> str | None:
    """Pods and services stand in ranges of the subnetwork, each in one of its own."""
    said = asked.said
    pods = said.text("ipAllocationPolicy.clusterSecondaryRangeName")
    services = said.text("ipAllocationPolicy.servicesSecondaryRangeName")
    if pods and pods == services:
        return _bad(
            f"Pod secondary range name ({pods}) should not be the same as service secondary range name."
        )
    found = asked.world.get(asked.subnetwork(said.text("subnetwork")))
    if found is None:
        return None
    there = {extra.text("rangeName") for extra in inputs_of(found).parts("secondaryIpRanges")}
    for what, name in (("Pod", pods), ("Services", services)):
        if name and name not in there:
            network = last(said.text("network"))
            return _bad(
                f'{what} secondary range "{name}" not found in network "{network}", subnetwork '
                f'"{last(found.id)}".'
            )
    return None


def _nodes(asked: Asked) -> str | None:
    said = asked.said
    if said.flag("enableAutopilot") or said.parts("nodePools") or (said.number("initialNodeCount") or 0) > 0:
        return None
    return _bad("Cluster.initial_node_count must be greater than zero.")


def _workload_pool(asked: Asked) -> str | None:
    pool = asked.said.text("workloadIdentityConfig.workloadPool")
    wanted = f"{asked.project}.svc.id.goog"
    if pool in ("", wanted):
        return None
    return _bad(f'Currently, the only supported workload pool is the default "{wanted}", got "{pool}".')


def _version(asked: Asked) -> str | None:
    version = asked.said.text("minMasterVersion")
    if not version or _VERSION.match(version):
        return None
    return _bad(f'Master version "{version}" is unsupported.')


def _labels(asked: Asked) -> str | None:
    reason = bad_labels(asked.said.labels("resourceLabels"))
    return _bad(reason) if reason else None


def _networks(asked: Asked) -> str | None:
    blocks = asked.said.parts("masterAuthorizedNetworksConfig.cidrBlocks")
    if len(blocks) > _MOST_NETWORKS:
        return _bad(f"Too many authorized networks: {len(blocks)}, the limit is {_MOST_NETWORKS}.")
    for block in blocks:
        text = block.text("cidrBlock")
        try:
            ipaddress.ip_network(text)
        except ValueError:
            return _bad(f'Invalid master authorized networks: network "{text}" is not a valid CIDR block.')
    return None


_LONGEST_EXCLUSION: Final = timedelta(days=30)
_KEY: Final = re.compile(r"^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$")


def _keys(asked: Asked) -> str | None:
    for path in ("databaseEncryption.keyName", "nodeConfig.bootDiskKmsKey"):
        key = asked.said.text(path)
        if key and not _KEY.match(key):
            return _bad(f"Invalid Cloud KMS key name: {key}.")
    return None


def _maintenance(asked: Asked) -> str | None:
    """Exclusions of all upgrades are short."""
    for exclusion in asked.said.parts("maintenancePolicy.maintenanceExclusions"):
        moments = [datetime.fromisoformat(exclusion.text(name)) for name in ("startTime", "endTime")]
        scope = exclusion.text("exclusionOptions.scope") or "NO_UPGRADES"
        if scope == "NO_UPGRADES" and moments[1] - moments[0] > _LONGEST_EXCLUSION:
            name = exclusion.text("exclusionName")
            return _bad(f"Maintenance exclusion {name} is longer than 30 days, the limit for NO_UPGRADES.")
    return None


def _policy(asked: Asked) -> str | None:
    said = asked.said
    if said.text("datapathProvider") == "ADVANCED_DATAPATH" and said.flag("networkPolicy.enabled"):
        return _bad(
            "Enabling NetworkPolicy for clusters with DatapathProvider=ADVANCED_DATAPATH is not allowed."
        )
    return None


def _components(asked: Asked) -> str | None:
    for component in asked.said.texts("loggingConfig.enableComponents"):
        if component not in _COMPONENTS:
            field = "cluster.logging_config.component_config.enable_components"
            return _bad(f"Invalid value at '{field}', \"{component}\"")
    return None


def _private(asked: Asked) -> str | None:
    """Private nodes need addresses of their own network, not routes."""
    said = asked.said
    private_nodes = said.flag("privateClusterConfig.enablePrivateNodes")
    if said.flag("privateClusterConfig.enablePrivateEndpoint") and not private_nodes:
        return _bad("Private endpoint can be enabled only for clusters with private nodes.")
    if private_nodes and said.text("networkingMode") == "ROUTES":
        return _bad("Private clusters must be VPC-native: ip_allocation_policy.use_ip_aliases must be true.")
    return None


_CLUSTER_API: Final = "GKE v1 API, projects.locations.clusters (2026)"

RULES: Final = (
    Refusal(
        "a location that exists",
        "terraform-google-modules/terraform-google-kubernetes-engine#444; catalog/data/locations.csv",
        _location,
    ),
    Refusal("a network that there is", "gitpod-io/gitpod-gke-guide#21", _network),
    Refusal("a subnetwork of the network", "hashicorp/terraform-provider-google#7895", _subnetwork),
    Refusal(
        "ranges of the subnetwork",
        "fabianlee/gcp-gke-clusters-ingress#2; gruntwork-io/terraform-google-gke#118",
        _ranges,
    ),
    Refusal("a node to begin with", f"{_CLUSTER_API}, initialNodeCount", _nodes),
    Refusal("the project's own identities", "GKE docs, workload-identity (2026)", _workload_pool),
    Refusal("a version", f"{_CLUSTER_API}, initialClusterVersion", _version),
    Refusal("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
    Refusal("keys by their names", "GKE docs, encrypting-secrets and using-cmek (2026)", _keys),
    Refusal("exclusions within limits", "GKE docs, maintenance-windows-and-exclusions (2026)", _maintenance),
    Refusal("authorized networks", "GKE docs, authorized-networks (2026): up to 100", _networks),
    Refusal("one network policy engine", "GKE docs, dataplane-v2 (2026)", _policy),
    Refusal("components that log", f"{_CLUSTER_API}, LoggingComponentConfig", _components),
    Refusal("private nodes are VPC-native", "GKE docs, private-clusters (2026)", _private),
)
