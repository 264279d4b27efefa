"""GKE clusters and node pools, as `gcloud container clusters describe --format json` prints them.

Names of Google's API are those of Kubernetes Engine v1 (googleapis, google/container/v1/
cluster_service.proto, 2026), those of Pulumi's inputs the installed SDK's (`inputs`). The tables here have
the properties that are in another place; all others have the same name.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from ebbtide.analysis.changes.property_path import replaced
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import CLUSTER, NODE_POOL
from ebbtide.analysis.recording.values import Plain
from ebbtide.clients.kubernetes.objects import part
from ebbtide.declaration.catalog.clouds import is_gke_zone
from ebbtide.declaration.model.cloud import DAYS
from ebbtide.operations.adopting.found import AdoptionError, Found, FoundResource, LeftOut
from ebbtide.operations.adopting.inputs import fitted, moved, removed, without_secrets
from ebbtide.values.cloud_kind import CloudKind

_LINK: Final = re.compile(
    r"https://[^/]*container[^/]*/v1[a-z0-9]*/"
    r"projects/(?P<project>[^/]+)/(?:locations|zones)/(?P<location>[^/]+)/clusters/(?P<cluster>[^/]+)"
    r"(?:/nodePools/(?P<pool>[^/]+))?"
)
_DESCRIBE: Final = "gcloud container clusters describe NAME --location LOCATION --format json"

_OF_CLUSTER: Final = {
    "locations": "nodeLocations",
    "networkConfig.network": "network",
    "networkConfig.subnetwork": "subnetwork",
    "networkConfig.enableL4ilbSubsetting": "networkConfig.enableL4IlbSubsetting",
    "networkConfig": "",
    "legacyAbac.enabled": "enableLegacyAbac",
    "shieldedNodes.enabled": "enableShieldedNodes",
    "defaultMaxPodsConstraint.maxPodsPerNode": "defaultMaxPodsPerNode",
    "loggingConfig.componentConfig": "loggingConfig",
    "monitoringConfig.componentConfig": "monitoringConfig",
    "monitoringConfig.managedPrometheusConfig": "monitoringConfig.managedPrometheus",
    "autoscaling": "clusterAutoscaling",
    "clusterAutoscaling.enableNodeAutoprovisioning": "clusterAutoscaling.enabled",
    "clusterAutoscaling.autoprovisioningNodePoolDefaults": "clusterAutoscaling.autoProvisioningDefaults",
    "addonsConfig.rayOperatorConfig": "addonsConfig.rayOperatorConfigs",
}
"""Paths of a cluster in the API, and the paths of its inputs, in order. Empty for an object whose properties
are the resource's own."""

_OF_POOL: Final = {
    "config": "nodeConfig",
    "locations": "nodeLocations",
    "nodeConfig.accelerators": "nodeConfig.guestAccelerators",
    "nodeConfig.loggingConfig.variantConfig.variant": "nodeConfig.loggingVariant",
    "nodeConfig.resourceManagerTags.tags": "nodeConfig.resourceManagerTags",
    "maxPodsConstraint.maxPodsPerNode": "maxPodsPerNode",
    "nodeDrainConfig": "nodeDrainConfigs",
}
"""The same for a node pool."""

_COPIES: Final = {
    CLUSTER: (
        *("nodePools", "nodeConfig", "initialNodeCount", "nodeVersion", "clusterIpv4Cidr"),
        *("loggingService", "monitoringService", "masterAuth.clusterCaCertificate"),
        *("masterAuth.clientKey", "masterAuth.clientCertificate", "privateClusterConfig.peeringName"),
        *("privateClusterConfig.privateEndpoint", "privateClusterConfig.publicEndpoint"),
        "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint",
        *("ipAllocationPolicy.clusterIpv4CidrBlock", "ipAllocationPolicy.servicesIpv4CidrBlock"),
        *("enterpriseConfig.clusterTier", "fleet.membership", "fleet.membershipId"),
        *("fleet.membershipLocation", "fleet.preRegistered"),
    ),
    NODE_POOL: (
        *("version", "networkConfig.podIpv4CidrBlock", "nodeConfig.effectiveTaints"),
        "nodeConfig.nodeImageConfigs",  # of the day
        *("nodeConfig.bootDisk.sizeGb", "nodeConfig.bootDisk.diskType"),
    ),
}
"""Inputs that a cluster and its pools have in a second place, under another name, in each other, or from the
release channel, and attributes that the provider only exports (terraform-provider-google-beta 7.45.0,
container_cluster.html.markdown)."""

_NO_CHANNEL: Final = "UNSPECIFIED"
_UNSPECIFIED: Final = re.compile(r"_UNSPECIFIED$")
_PROVISIONING: Final = ("resourceLimits", "autoProvisioningDefaults", "autoProvisioningLocations")
_ANYWHERE: Final = "0.0.0.0/0"
_WEEKDAYS: Final = {day[:2].upper(): day for day in DAYS}
_RECURRENCE: Final = re.compile(r"FREQ=(?:DAILY|WEEKLY;BYDAY=(?P<days>[A-Z,]+))")


def read(document: object, file: str) -> Found | None:
    """Return the clusters and pools in a document of the API: one, or a list of them; None for other
    documents.

    Args:
        document: the parsed JSON.
        file: its file, for messages.

    Raises:
        AdoptionError: it lacks what identifies a cluster.
    """
    items = cast("list[object]", document) if isinstance(document, list) else [document]
    objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    known = [item for item in objects if _is_ours(item)]
    if not known:
        return None
    resources: list[FoundResource] = []
    left_out: list[LeftOut] = []
    for item in known:
        link = _LINK.fullmatch(str(item.get("selfLink")))
        if link is None:
            raise AdoptionError(
                f"{file} is not a whole description of a GKE cluster: it has no `selfLink`. Write it again "
                f"with `{_DESCRIBE}`."
            )
        if link["pool"]:
            _add_pool(item, link, resources, left_out)
        else:
            resources.append(_cluster(item, link))
            for pool in item.get("nodePools") or ():
                _add_pool(pool, link, resources, left_out)
    return found_of(resources, left_out, file)


def found_of(resources: Iterable[FoundResource], left_out: Iterable[LeftOut], file: str) -> Found:
    """Return the clusters and pools of a project.

    Raises:
        AdoptionError: they are of several projects.
    """
    resources, left_out = tuple(resources), tuple(left_out)
    projects = sorted({item.id.split("/")[1] for item in resources})
    if len(projects) > 1:
        raise AdoptionError(f"{file} has clusters of several projects: {', '.join(projects)}.")
    return Found(cloud=CloudKind.GKE, account="".join(projects), resources=resources, left_out=left_out)


def _is_ours(item: Mapping[str, Any]) -> bool:
    if _LINK.fullmatch(str(item.get("selfLink"))):
        return True
    return "selfLink" not in item and ("currentMasterVersion" in item or "nodePools" in item)


def _cluster(item: Mapping[str, Any], link: re.Match[str]) -> FoundResource:
    facts, document = Inputs(item), moved(item, _OF_CLUSTER)
    document |= document.pop("", {})
    document["networkingMode"] = "VPC_NATIVE" if facts.flag("ipAllocationPolicy.useIpAliases") else "ROUTES"
    document["maintenancePolicy"] = _maintenance(item)
    document["enableAutopilot"] = facts.flag("autopilot.enabled") or None
    private = document.setdefault("privateClusterConfig", {})
    private.setdefault("enablePrivateNodes", facts.flag("networkConfig.defaultEnablePrivateNodes"))
    if not facts.flag("masterAuthorizedNetworksConfig.enabled"):
        document.pop("masterAuthorizedNetworksConfig", None)
    return found_resource(CLUSTER, document, _id(link))


def _add_pool(
    item: Mapping[str, Any],
    link: re.Match[str],
    resources: list[FoundResource],
    left_out: list[LeftOut],
) -> None:
    """Add a pool to the resources, or to those that are not adopted."""
    name, facts = str(item.get("name") or link["pool"] or ""), Inputs(item)
    if facts.flag("autoscaling.autoprovisioned"):
        reason = "GKE's node auto-provisioning created it, and deletes it when it is idle."
        left_out.append(LeftOut(name=f"pool {name}", reason=reason))
        return
    if str(item.get("status")) == "STOPPING":
        left_out.append(LeftOut(name=f"pool {name}", reason="It is being deleted."))
        return
    document = moved(item, _OF_POOL)
    if facts.flag("autoscaling.enabled"):
        document["autoscaling"].pop("enabled")
    else:
        document.pop("autoscaling", None)
        document["nodeCount"] = document.pop("initialNodeCount", 0)
    # Absent booleans are false.
    repaired, upgraded = (facts.flag(f"management.auto{name}") for name in ("Repair", "Upgrade"))
    document["management"] = {"autoRepair": repaired, "autoUpgrade": upgraded}
    document["nodeConfig"] = dict(document.get("nodeConfig") or {})
    names = {"acceleratorType": "type", "acceleratorCount": "count"}
    document["nodeConfig"]["guestAccelerators"] = [
        {names.get(key, key): value for key, value in accelerator.items()}
        for accelerator in facts.objects("config.accelerators")
    ] or None
    resource = found_resource(NODE_POOL, document, f"{_id(link)}/nodePools/{name}")
    if reason := unsupported(resource):
        left_out.append(LeftOut(name=f"pool {name}", reason=reason))
    else:
        resources.append(resource)


def _id(link: re.Match[str]) -> str:
    return f"projects/{link['project']}/locations/{link['location']}/clusters/{link['cluster']}"


def found_resource(token: str, attributes: Mapping[str, Any], id_: str) -> FoundResource:
    """Return a cluster or a node pool.

    Args:
        attributes: its attributes under Pulumi's or Terraform's names.
        id_: `projects/P/locations/L/clusters/C`, and of a pool `/nodePools/N` after it.
    """
    keys = id_.split("/")
    fits = fitted(token, _without_unspecified(attributes))
    inputs, place = fits.inputs, {"project": keys[1], "location": keys[3]}
    for path in _COPIES[token]:
        inputs = replaced(inputs, path, removed)
    inputs |= {**place, "name": keys[-1]}
    if token == NODE_POOL:
        inputs |= {"cluster": keys[5]}
        inputs.pop("nodeCount" if "autoscaling" in inputs else "initialNodeCount", None)
        inputs = replaced(inputs, "nodeConfig.resourceLabels", _users)
        inputs = replaced(inputs, "nodeConfig.labels", _users)
    else:
        if is_gke_zone(keys[3]):
            zones = Inputs(inputs).texts("nodeLocations")
            inputs["nodeLocations"] = list[Plain](zone for zone in zones if zone != keys[3])
        inputs.setdefault("releaseChannel", {"channel": _NO_CHANNEL})
        if Inputs(inputs).text("databaseEncryption.state") == "DECRYPTED":
            del inputs["databaseEncryption"]
        inputs = replaced(inputs, "resourceLabels", _users)
        for name in _PROVISIONING:  # the pools that GKE would create by itself
            inputs = replaced(inputs, f"clusterAutoscaling.{name}", removed)
    inputs, withheld = without_secrets(inputs)
    return FoundResource(
        type=token,
        id=id_,
        name=keys[-1],
        withheld=withheld,
        inputs={key: value for key, value in inputs.items() if value not in (None, {}, [])},
        output_only=tuple(fits.output_only),
    )


def unsupported(pool: FoundResource) -> str:
    """Return why Ebbtide cannot declare a node pool; empty if it can."""
    image = Inputs(pool.inputs).text("nodeConfig.imageType")
    return "Its nodes run Windows, which Ebbtide does not support." if image.startswith("WINDOWS") else ""


def _users(labels: Any) -> dict[str, Any] | None:
    """Return labels without Google's own, whose prefixes are reserved: the provider keeps those of nodes
    (hashicorp/terraform-provider-google#7928)."""
    items = cast("dict[str, Any]", labels).items()
    return {key: value for key, value in items if not key.startswith(("goog-", "cloud.google.com/"))} or None


def _maintenance(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the maintenance policy in Terraform's form, whose windows and exclusions are flat."""
    facts = Inputs(item)
    window = "maintenancePolicy.window"
    policy: dict[str, Any] = {}
    if start := facts.text(f"{window}.dailyMaintenanceWindow.startTime"):
        policy["dailyMaintenanceWindow"] = {"startTime": start}
    recurring = f"{window}.recurringWindow"
    if recurrence := facts.text(f"{recurring}.recurrence"):
        times = {key: facts.text(f"{recurring}.window.{key}") for key in ("startTime", "endTime")}
        policy["recurringWindow"] = {**times, "recurrence": recurrence}
    policy["maintenanceExclusions"] = [
        {
            "exclusionName": name,
            "startTime": exclusion.get("startTime"),
            "endTime": None if "endTimeBehavior" in options else exclusion.get("endTime"),
            "exclusionOptions": options,
        }
        for name, exclusion in part(item, *window.split("."), "maintenanceExclusions").items()
        for options in (exclusion.get("maintenanceExclusionOptions") or {"scope": "NO_UPGRADES"},)
    ]
    return policy if any(policy.values()) else None


def cloud_fields(found: Found) -> dict[str, Any]:
    """Return the declaration's `cloud` for a whole cluster."""
    (cluster,) = found.clusters
    inputs = Inputs(cluster.inputs)
    disks = {Inputs(pool.inputs).text("nodeConfig.bootDiskKmsKey") for pool in found.pools}
    fields: dict[str, Any] = {
        "kind": CloudKind.GKE.value,
        "project": found.account,
        "location": inputs.text("location"),
        "kubernetesVersion": inputs.text("minMasterVersion"),
        "releaseChannel": inputs.text("releaseChannel.channel").lower().replace(_NO_CHANNEL.lower(), "none"),
        "access": _access(inputs),
        "network": {
            "vpc": inputs.text("network"),
            "subnet": inputs.text("subnetwork"),
            "podsRange": inputs.text("ipAllocationPolicy.clusterSecondaryRangeName"),
            "servicesRange": inputs.text("ipAllocationPolicy.servicesSecondaryRangeName"),
        },
        "keys": {
            "secrets": inputs.text("databaseEncryption.keyName"),
            "disks": disks.pop() if len(disks) == 1 else "",
            "grant": False,
        },
        "maintenance": _declared_maintenance(inputs),
        "consolidation": {
            "profile": (inputs.text("clusterAutoscaling.autoscalingProfile") or "BALANCED")
            .lower()
            .replace("_", "-")
        },
    }
    if not fields["keys"]["secrets"] and not fields["keys"]["disks"]:
        del fields["keys"]
    return fields


def _access(inputs: Inputs) -> dict[str, Any]:
    """Return the access to the control plane; an IP endpoint that is open to the internet stays so, since
    kubeconfigs may use it."""
    path = "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled"
    authorized = "masterAuthorizedNetworksConfig"
    blocks = [block.text("cidrBlock") for block in inputs.parts(f"{authorized}.cidrBlocks")]
    if inputs.flag("privateClusterConfig.enablePrivateEndpoint"):
        return {"private": True, "networks": blocks}
    if inputs.is_false(path):
        return {}
    return {"networks": blocks or ([] if inputs.has(authorized) else [_ANYWHERE])}


def _declared_maintenance(inputs: Inputs) -> dict[str, Any] | None:
    """Return the declared window and exclusions; None for a policy that the declaration cannot express."""
    policy = "maintenancePolicy"
    recurring = _RECURRENCE.fullmatch(inputs.text(f"{policy}.recurringWindow.recurrence"))
    if recurring is None:
        return None
    start, end = (_moment(inputs.text(f"{policy}.recurringWindow.{name}Time")) for name in ("start", "end"))
    days = [_WEEKDAYS.get(day, "") for day in (recurring["days"] or "").split(",") if day]
    exclusions = inputs.parts(f"{policy}.maintenanceExclusions")
    if start is None or end is None or not all(days) or not all(map(_is_bounded, exclusions)):
        return None
    return {
        "window": {
            "start": f"{start:%H:%M}",
            "duration": f"{int((end - start).total_seconds() // 60)}m",
            "days": days,
        },
        "exclusions": [
            {
                "name": exclusion.text("exclusionName"),
                "start": exclusion.text("startTime")[:10],
                **({"end": f"{ends - timedelta(seconds=1):%Y-%m-%d}"} if ends else {}),
                "scope": exclusion.text("exclusionOptions.scope").lower().replace("_", "-"),
            }
            for exclusion in exclusions
            for ends in (_moment(exclusion.text("endTime")),)
        ],
    }


def _is_bounded(exclusion: Inputs) -> bool:
    return bool(exclusion.text("exclusionOptions.endTimeBehavior")) or (
        _moment(exclusion.text("endTime")) is not None
    )


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _without_unspecified(value: Any) -> Any:
    """Return a document without unspecified values of enums, which mean the default."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            key: _without_unspecified(item)
            for key, item in items
            if not (isinstance(item, str) and bool(_UNSPECIFIED.search(item)))
        }
    if isinstance(value, list):
        return [_without_unspecified(item) for item in cast("list[Any]", value)]
    return value
