"""AKS clusters and their pools: documents of the Azure CLI, of Azure Resource Manager, and of Terraform.

The CLI prints the properties of Azure Resource Manager in one object with the resource, and spells some names
in another way (`osDiskSizeGb`); the installed SDK has the provider's names (`inputs`). Terraform's names that
differ are rows of `tables/azurerm.csv` (terraform-provider-azurerm 69697b7f, 2026-08-21,
internal/services/containers).
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, Final, cast

from ebbtide.analysis.adopting.found import AdoptionError, Found, FoundResource, LeftOut
from ebbtide.analysis.adopting.inputs import fitted, moved
from ebbtide.analysis.providers.changes import FieldChange
from ebbtide.analysis.providers.property_path import plain_path
from ebbtide.analysis.reading.aks import AGENT_POOL, CLUSTER, MAINTENANCE
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.pool import field_by_input
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.values.paths import is_within

_ID: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.ContainerService/managedClusters/(?P<cluster>[^/]+)"
    r"(?:/agentPools/(?P<pool>[^/]+)|/maintenanceConfigurations/(?P<schedule>[^/]+))?",
    re.IGNORECASE,
)

TYPES: Final = (CLUSTER, AGENT_POOL, MAINTENANCE)
"""Types of the resources that are read."""
TERRAFORM_TYPES: Final = ("azurerm_kubernetes_cluster", "azurerm_kubernetes_cluster_node_pool")
"""Terraform's types of them."""

_SHOW: Final = "az aks show --resource-group GROUP --name NAME --output json"
_SETS: Final = "VirtualMachineScaleSets"


def read(document: object, file: str) -> Found | None:
    """Return the clusters, pools and maintenance schedules in a document: one, or a list of them; None for
    other documents.

    Args:
        document: the parsed JSON.
        file: its file, for messages.

    Raises:
        AdoptionError: it lacks what identifies a cluster, or has one that is not supported.
    """
    return _found([item for item in _listed(document) if _is_ours(item, file)], file)


def read_terraform(stored: Iterable[tuple[str, Mapping[str, Any]]], file: str) -> Found | None:
    """Return the clusters and pools of a Terraform state.

    Args:
        stored: type and attributes of each resource.
        file: its file, for messages.

    Raises:
        AdoptionError: as for `read`.
    """
    return _found(list(_of_terraform(stored, file)), file)


def _found(items: list[Mapping[str, Any]], file: str) -> Found | None:
    if not items:
        return None
    found = _Reading()
    for item in items:
        found.add(item)
    if len(found.subscriptions) > 1:
        raise AdoptionError(
            f"{file} has clusters of several subscriptions: {', '.join(found.subscriptions)}. A stack "
            "declares one cluster: write the file again with that cluster alone."
        )
    return Found(
        cloud=CloudKind.AKS,
        account=next(iter(found.subscriptions)),
        resources=tuple(found.resources),
        left_out=tuple(found.left_out),
    )


def _listed(document: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a document: of a list, or of a page of Azure Resource Manager."""
    if isinstance(document, dict):
        page = cast("dict[str, Any]", document).get("value")
        document = page if isinstance(page, list) else [document]  # pyright: ignore[reportUnknownVariableType] # JSON
    for item in cast("list[object]", document) if isinstance(document, list) else ():
        if isinstance(item, dict):
            yield cast("dict[str, Any]", item)


def _is_ours(item: Mapping[str, Any], file: str) -> bool:
    if _ID.fullmatch(str(item.get("id"))):
        return True
    if "agentPoolProfiles" in {**item, **(item.get("properties") or {})}:
        raise AdoptionError(
            f"{file} is not a whole description of an AKS cluster: it has no `id`. Write it again with "
            f"`{_SHOW}`, without `--query`."
        )
    return False


class _Reading:
    """The resources of documents.

    Attributes:
        subscriptions: their subscriptions.
        resources: the resources.
        left_out: parts that are not adopted.
    """

    def __init__(self) -> None:
        self.subscriptions: dict[str, None] = {}
        self.resources: list[FoundResource] = []
        self.left_out: list[LeftOut] = []
        self._systems: dict[str, str] = {}

    def add(self, item: Mapping[str, Any]) -> None:
        """Add a document of Azure Resource Manager or the CLI, with the pools in it."""
        match = _ID.fullmatch(str(item["id"]))
        assert match  # noqa: S101 - the caller has checked it
        names = {"cluster": "", "pool": "", "schedule": "", **match.groupdict("")}
        self.subscriptions[names["subscription"]] = None
        flat: dict[str, Any] = {**item, **(item.get("properties") or {})}
        if names["pool"]:
            self._pool(flat, names)
        elif names["schedule"]:
            self._schedule(flat, names)
        else:
            self._cluster(flat, names)

    def _cluster(self, item: Mapping[str, Any], names: Mapping[str, str]) -> None:
        _check_supported(item, names["cluster"])
        document = {
            key: value
            for key, value in item.items()
            if key not in ("id", "name", "type", "resourceGroup", "properties", "agentPoolProfiles")
        }
        document |= {"resourceName": names["cluster"], "resourceGroupName": names["group"]}
        document["identity"] = _identity(item.get("identity") or {})
        document["networkProfile"] = _without_copies(item.get("networkProfile") or {})
        if Inputs(document).text("servicePrincipalProfile.clientId") == "msi":
            del document["servicePrincipalProfile"]
        if _is_of_aks(item):
            del document["identityProfile"]
        self._put(CLUSTER, _path(names), names["cluster"], document)
        for pool in item.get("agentPoolProfiles") or ():
            self._pool(pool, {**names, "pool": str(pool.get("name"))})
        for part in item.get(_UNREAD, ()):
            self.left_out.append(part)

    def _pool(self, item: Mapping[str, Any], names: Mapping[str, str]) -> None:
        properties: dict[str, Any] = item.get("properties") or {}
        kind = str(properties.get("type") or item.get("typePropertiesType") or item.get("type") or _SETS)
        reason = _not_adoptable(item, kind)
        is_system = str(item.get("mode")) == "System"
        first = self._systems.setdefault(names["cluster"], names["pool"]) if is_system else ""
        if is_system and first != names["pool"]:
            reason = (
                f"A declaration has one system pool, {first} of this cluster. AKS keeps this one beside it."
            )
        if reason:
            part = LeftOut(name=f"pool {names['pool']}", reason=reason)
            self.left_out += [part] if part not in self.left_out else []
            return
        document = {
            key: value
            for key, value in item.items()
            if key not in ("id", "name", "type", "typePropertiesType", "resourceGroup", "properties")
            # The state of the pool, and the autoscaler's count.
            and key != "powerState"
            and not (key == "count" and item.get("enableAutoScaling"))
        }
        document |= {
            "type": kind,
            "agentPoolName": names["pool"],
            "resourceName": names["cluster"],
            "resourceGroupName": names["group"],
        }
        self._put(AGENT_POOL, _path(names), names["pool"], document, inline=is_system)

    def _schedule(self, item: Mapping[str, Any], names: Mapping[str, str]) -> None:
        document = {key: item.get(key) for key in ("maintenanceWindow", "timeInWeek", "notAllowedTime")}
        document |= {
            "configName": names["schedule"],
            "resourceName": names["cluster"],
            "resourceGroupName": names["group"],
        }
        self._put(MAINTENANCE, _path(names), names["schedule"], document)

    def _put(
        self, token: str, id_: str, name: str, document: Mapping[str, Any], *, inline: bool = False
    ) -> None:
        fits = fitted(token, document)
        self.resources = [item for item in self.resources if (item.type, item.id) != (token, id_)]
        self.resources.append(
            FoundResource(
                type=token,
                id=id_,
                name=name,
                inputs=fits.inputs,
                output_only=tuple(fits.output_only),
                inline=inline,
            )
        )


def _path(names: Mapping[str, str]) -> str:
    """Return a resource's id, which the CLI prints with a group in other letters."""
    group = f"/subscriptions/{names['subscription']}/resourceGroups/{names['group']}"
    cluster = f"{group}/providers/Microsoft.ContainerService/managedClusters/{names['cluster']}"
    if names["pool"]:
        return f"{cluster}/agentPools/{names['pool']}"
    return f"{cluster}/maintenanceConfigurations/{names['schedule']}" if names["schedule"] else cluster


def _check_supported(item: Mapping[str, Any], cluster: str) -> None:
    facts = Inputs(item)
    if facts.text("sku.name") == "Automatic":
        raise AdoptionError(
            f"{cluster} is an AKS Automatic cluster, whose nodes AKS manages itself: it has no pools to "
            "declare. Ebbtide supports clusters of the SKU Base."
        )
    for field in ("location", "agentPoolProfiles"):
        if not item.get(field):
            raise AdoptionError(
                f"The description of the AKS cluster {cluster} has no `{field}`: it is not whole. Write it "
                f"again with `{_SHOW}`."
            )


def _not_adoptable(item: Mapping[str, Any], kind: str) -> str:
    """Return why a pool cannot be declared; empty if it can."""
    if str(item.get("osType")) == "Windows":
        return "It has Windows nodes, and Ebbtide declares Linux nodes alone."
    if kind != _SETS:
        return f"It consists of {kind}, and Ebbtide declares pools of {_SETS} alone."
    if str(item.get("mode")) not in ("System", "User"):
        return f"Its mode is {item.get('mode')}, and Ebbtide declares pools of the modes System and User."
    if Inputs(item).text("powerState.code") == "Stopped":
        return "It is stopped, and a declared pool runs. Start it first: `az aks nodepool start`."
    return ""


def _identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity as the provider has it: identities are a list of ids."""
    assigned = identity.get("userAssignedIdentities")
    return {"type": identity.get("type"), "userAssignedIdentities": list(assigned or ())}


def _without_copies(network: Mapping[str, Any]) -> dict[str, Any]:
    """Return a network profile without the lists that repeat its single ranges."""
    copies = {
        many
        for one, many in (("podCidr", "podCidrs"), ("serviceCidr", "serviceCidrs"))
        if network.get(many) == [network.get(one)]
    }
    return {key: value for key, value in network.items() if key not in copies}


def _is_of_aks(item: Mapping[str, Any]) -> bool:
    """Return whether AKS has created the kubelet's identity, in the resource group of the nodes."""
    kubelet = Inputs(item).text("identityProfile.kubeletidentity.resourceId").lower()
    group = str(item.get("nodeResourceGroup")).lower()
    return f"/resourcegroups/{group}/" in kubelet


_UNREAD: Final = "unreadParts"


@cache
def terraform_names(resource: str) -> dict[str, str | None]:
    """Return the paths of inputs by those of Terraform's attributes, where the names differ; None for an
    attribute that is not an input.

    Args:
        resource: `cluster` or `pool`.
    """
    text = (resources.files("ebbtide.analysis.adopting") / "tables" / "azurerm.csv").read_text()
    rows = (row for row in csv.DictReader(text.splitlines()) if row["resource"] == resource)
    return {row["attribute"]: row["input"] or None for row in rows}


def _of_terraform(stored: Iterable[tuple[str, Mapping[str, Any]]], file: str) -> Iterator[Mapping[str, Any]]:
    """Yield clusters and pools as Azure Resource Manager has them."""
    for kind, values in stored:
        attributes = cast("dict[str, Any]", _unwrapped(values))
        id_ = str(attributes.get("id"))
        if not _ID.fullmatch(id_):
            raise AdoptionError(
                f"{file} has an {kind} without an id of Azure. Write it again with `terraform state pull`, "
                "after `terraform apply`."
            )
        is_cluster = kind == TERRAFORM_TYPES[0]
        yield {"id": id_, **(_terraform_cluster if is_cluster else _terraform_pool)(attributes)}


def _unwrapped(value: Any) -> Any:
    """Return attributes in which a block that occurs once is an object."""
    if isinstance(value, dict):
        return {key: _unwrapped(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        items = [_unwrapped(item) for item in cast("list[Any]", value)]
        return cast("Any", items[0]) if len(items) == 1 and isinstance(items[0], dict) else items
    return value


def _terraform_cluster(attributes: Mapping[str, Any]) -> dict[str, Any]:
    has = {name for name, value in attributes.items() if value not in (None, [], "")}
    document = moved(_present(attributes), terraform_names("cluster"))
    facts = Inputs(document)
    document.setdefault("sku", {})["name"] = "Base"  # azurerm has no other
    access = document.setdefault("apiServerAccessProfile", {})
    access["disableRunCommand"] = access.pop("runCommandEnabled", True) is False
    if not access.get("enablePrivateCluster"):
        access.pop("enablePrivateClusterPublicFQDN", None)
        access.pop("privateDNSZone", None)
    if "azure_active_directory_role_based_access_control" in has:
        document["aadProfile"] = {"managed": True, **document.get("aadProfile", {})}
    if facts.has("securityProfile.azureKeyVaultKms"):
        document["securityProfile"]["azureKeyVaultKms"]["enabled"] = True
    if "monitor_metrics" in has:
        monitor = document.setdefault("azureMonitorProfile", {})
        monitor["metrics"] = {"enabled": True, **monitor.get("metrics", {})}
    for profile in document.get("addonProfiles", {}).values():
        profile.setdefault("enabled", True)
        if "config" in profile:
            profile["config"] = _texts(profile["config"])
    if "autoScalerProfile" in document:
        document["autoScalerProfile"] = _texts(document["autoScalerProfile"], booleans=_BOOLEANS)
    node_pool = _terraform_pool({"mode": "System", "os_type": "Linux", **attributes["default_node_pool"]})
    fits = fitted(CLUSTER, document)
    unread = [
        LeftOut(
            name=f"{path} of cluster {attributes['name']}",
            reason=f"It is not converted from a Terraform state. Read the cluster with `{_SHOW}`.",
        )
        for path in dict.fromkeys(path.partition(".")[0].partition("[")[0] for path in fits.output_only)
    ]
    return {**document, "agentPoolProfiles": [node_pool], _UNREAD: unread}


def _terraform_pool(attributes: Mapping[str, Any]) -> dict[str, Any]:
    only_critical = attributes.get("only_critical_addons_enabled")
    known = {key: value for key, value in attributes.items() if key != "only_critical_addons_enabled"}
    document = moved(_present(known), terraform_names("pool"))
    if only_critical:
        document["nodeTaints"] = [_CRITICAL]
    if document.get("enableAutoScaling"):
        document["minCount"] = attributes.get("min_count") or 0
    if document.get("scaleSetPriority") != "Spot":
        # Terraform's defaults, which AKS has for spot pools alone.
        for name in ("scaleSetPriority", "scaleSetEvictionPolicy", "spotMaxPrice", "spot_max_price"):
            document.pop(name, None)
    ports = Inputs(document)
    if low := ports.number("linuxOSConfig.sysctls.net_ipv4_ip_local_port_range_min"):
        sysctls = document["linuxOSConfig"]["sysctls"]
        high = sysctls.pop("net_ipv4_ip_local_port_range_max", "")
        del sysctls["net_ipv4_ip_local_port_range_min"]
        sysctls["netIpv4IpLocalPortRange"] = f"{low} {high}"
    return {"name": attributes["name"], **document}


_CRITICAL: Final = "CriticalAddonsOnly=true:NoSchedule"
_BOOLEANS: Final = (
    "ignoreDaemonsetsUtilization",
    "daemonsetEvictionForEmptyNodes",
    "daemonsetEvictionForOccupiedNodes",
)
"""The settings of the autoscaler that are not text in the API."""


def _texts(values: Mapping[str, Any], booleans: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return settings that are text in the API, as Azure spells booleans."""
    return {
        key: str(value).lower() if isinstance(value, bool) and key not in booleans else value
        for key, value in values.items()
    }


def _present(value: Any) -> Any:
    """Return attributes without the empty values that Terraform has for absent ones."""
    if isinstance(value, dict):
        items = {key: _present(item) for key, item in cast("dict[str, Any]", value).items()}
        return {key: item for key, item in items.items() if item is False or item not in _EMPTY}
    if isinstance(value, list):
        return [_present(item) for item in cast("list[Any]", value)]
    return value


_EMPTY: Final[tuple[Any, ...]] = (None, "", 0, [], {})


def cloud_fields(found: Found) -> dict[str, Any]:
    """Return the declaration's `cloud` of a whole cluster."""
    (cluster,) = found.clusters
    inputs = Inputs(cluster.inputs)
    system = next((Inputs(pool.inputs) for pool in found.pools if pool.inline), Inputs({}))
    secrets, disks = inputs.text("securityProfile.azureKeyVaultKms.keyId"), inputs.text("diskEncryptionSetID")
    channel = inputs.text("autoUpgradeProfile.upgradeChannel") or "none"
    # The owner of the keys has granted the roles.
    keys = {"secrets": secrets or None, "disks": disks or None, "grant": False} if secrets or disks else {}
    return {
        "kind": CloudKind.AKS.value,
        # The stack's own identity, which the subnet is granted to, would take the place of the cluster's.
        "overrides": {
            "identity": {
                "type": inputs.text("identity.type"),
                "userAssignedIdentities": list(inputs.texts("identity.userAssignedIdentities")),
            }
        },
        "subscription": found.account,
        "resourceGroup": inputs.text("resourceGroupName"),
        # Everything in a group is deleted with it, also what is not the cluster's.
        "createResourceGroup": False,
        "location": inputs.text("location"),
        "tier": inputs.text("sku.tier").lower() or "free",
        "upgradeChannel": channel,
        "kubernetesVersion": _version(found, inputs.text("kubernetesVersion"), channel),
        "access": _access(inputs),
        "network": {
            "pods": inputs.text("networkProfile.podCidr"),
            "services": inputs.text("networkProfile.serviceCidr"),
            "subnet": system.text("vnetSubnetID"),
            "managed": not system.has("vnetSubnetID"),
        },
        "keys": keys,
        "maintenance": _maintenance(found),
        "consolidation": {
            "delayMinutes": _minutes(inputs, "scaleDownUnneededTime"),
            "afterAddMinutes": _minutes(inputs, "scaleDownDelayAfterAdd"),
        },
    }


def _access(inputs: Inputs) -> dict[str, Any]:
    """Return the access to the control plane."""
    profile = "apiServerAccessProfile"
    admins = list(inputs.texts("aadProfile.adminGroupObjectIDs"))
    if not inputs.flag(f"{profile}.enablePrivateCluster"):
        return {"admins": admins, "networks": list(inputs.texts(f"{profile}.authorizedIPRanges"))}
    zone = inputs.text(f"{profile}.privateDNSZone") or "system"
    return {"admins": admins, "private": True, "privateDnsZone": zone if "/" in zone else zone.lower()}


_PATCHED: Final = frozenset({"patch", "stable", "rapid"})
"""Channels that install newer patches; those after `patch` also newer versions (azure-aks-docs,
auto-upgrade-cluster, 2026-06-26)."""


def _version(found: Found, version: str, channel: str) -> str | None:
    """Return the version to declare: none that the upgrade channel changes, or that would upgrade a pool."""
    minor = ".".join(version.split(".")[:2])
    pools = {Inputs(pool.inputs).text("orchestratorVersion") or version for pool in found.pools}
    if any(".".join(pool.split(".")[:2]) != minor for pool in pools):
        return None
    if channel not in _PATCHED:
        return version if pools <= {version} else minor
    return minor if channel == "patch" else None


def _minutes(inputs: Inputs, setting: str) -> int | None:
    """Return a time of the autoscaler; None for AKS's default, and for one that is not in minutes."""
    path = f"autoScalerProfile.{setting}"
    time = inputs.text(path)
    is_default = time == constraints_of(CLUSTER).fills[path]
    return int(time.removesuffix("m")) if re.fullmatch(r"\d+m", time) and not is_default else None


def _maintenance(found: Found) -> dict[str, Any] | None:
    """Return the window of both of AKS's schedules; None if they differ, or have one that is not weekly or
    daily."""
    windows = {
        str(item.inputs.get("maintenanceWindow")) for item in found.resources if item.type == MAINTENANCE
    }
    schedule = next((Inputs(item.inputs) for item in found.resources if item.type == MAINTENANCE), None)
    if schedule is None or len(windows) > 1:
        return None
    window = "maintenanceWindow"
    every = (
        schedule.number(f"{window}.schedule.weekly.intervalWeeks"),
        schedule.number(f"{window}.schedule.daily.intervalDays"),
    )
    if every not in ((1, None), (None, 1)) or schedule.text(f"{window}.utcOffset") not in ("", "+00:00"):
        return None
    day = schedule.text(f"{window}.schedule.weekly.dayOfWeek").lower()
    return {
        "window": {
            "days": [day] if day else [],
            "start": schedule.text(f"{window}.startTime"),
            "duration": f"{schedule.number(f'{window}.durationHours')}h",
        },
        "exclusions": [
            {"name": f"exclusion-{number}", "start": span.text("start")[:10], "end": span.text("end")[:10]}
            for number, span in enumerate(schedule.parts(f"{window}.notAllowedDates"), start=1)
        ],
    }


def obstacle(found: Found) -> str:
    """Return why Ebbtide cannot take over the cluster itself, as a sentence; empty if it can.

    Differences that the comparison of inputs shows are not repeated here.
    """
    (cluster,) = found.clusters
    inputs = Inputs(cluster.inputs)
    if not inputs.flag("aadProfile.managed"):
        return (
            "It has no logins of Entra ID, which Ebbtide would switch on, and AKS never switches off again."
        )
    if inputs.text("servicePrincipalProfile.clientId"):
        return "It runs as a service principal, and a cluster of Ebbtide as a managed identity."
    return ""


def with_separate_pools(recording: Recording) -> Recording:
    """Return a recording in which the inline pools of a cluster are pools of their own, as they are found."""
    return replace(recording, resources=tuple(_separated(recording)))


def _separated(recording: Recording) -> Iterator[Resource]:
    for resource in recording:
        profiles = Inputs(resource.inputs).objects("agentPoolProfiles") if resource.type == CLUSTER else ()
        if not profiles:
            yield resource
            continue
        inputs = {key: value for key, value in resource.inputs.items() if key != "agentPoolProfiles"}
        yield replace(resource, inputs=inputs)
        cluster = {key: inputs[key] for key in ("resourceName", "resourceGroupName")}
        for profile in profiles:
            own = {key: value for key, value in profile.items() if key != "name"}
            yield replace(
                resource,
                urn=f"{resource.urn}/{profile['name']}",
                type=AGENT_POOL,
                inputs={"agentPoolName": profile["name"], **cluster, **own},
            )


_FIXED: Final = frozenset({*field_by_input(CloudKind.AKS, "fixed"), "vnetSubnetID", "osType", "type"})
_FIXED_OF_CLUSTER: Final = frozenset({"apiServerAccessProfile.enablePrivateCluster"})


def is_refused(token: str, change: FieldChange) -> bool:
    """Return whether AKS refuses a change that azure-native sends: of an immutable property. An omitted one
    stays, and so does the cloud's default (see `NodePool` of the components, and azure-aks-docs,
    private-clusters, 2026-08)."""
    path = plain_path(change.path)
    fixed = {AGENT_POOL: _FIXED, CLUSTER: _FIXED_OF_CLUSTER}.get(token, frozenset[str]())
    if change.new is None or not any(is_within(path, item) for item in fixed):
        return False
    return change.old is not None or change.new != constraints_of(token).fills.get(path)
