"""AKS clusters and their pools in a Terraform state, as Azure Resource Manager has them.

Names that differ are rows of `tables/azurerm.csv` (terraform-provider-azurerm 69697b7f, 2026-08-21,
internal/services/containers).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, cast

from ebbtide.analysis.reading.aks import CLUSTER
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.operations.adopting.azure import ID, SHOW, UNREAD, found_in
from ebbtide.operations.adopting.found import AdoptionError, Found, LeftOut
from ebbtide.operations.adopting.inputs import fitted, moved

TYPES: Final = ("azurerm_kubernetes_cluster", "azurerm_kubernetes_cluster_node_pool")
"""Terraform's types of clusters and pools."""
_SCHEDULES: Final = {
    "maintenance_window_auto_upgrade": "aksManagedAutoUpgradeSchedule",
    "maintenance_window_node_os": "aksManagedNodeOSUpgradeSchedule",
    "maintenance_window": "default",
}
"""AKS's maintenance schedules, by the cluster's block of each."""
_FREQUENCIES: Final = {
    "Daily": ("daily", "intervalDays"),
    "Weekly": ("weekly", "intervalWeeks"),
    "AbsoluteMonthly": ("absoluteMonthly", "intervalMonths"),
    "RelativeMonthly": ("relativeMonthly", "intervalMonths"),
}
_DATE: Final = len("2026-01-31")
_CRITICAL: Final = "CriticalAddonsOnly=true:NoSchedule"
_BOOLEANS: Final = (
    "ignoreDaemonsetsUtilization",
    "daemonsetEvictionForEmptyNodes",
    "daemonsetEvictionForOccupiedNodes",
)
"""The settings of the autoscaler that are not text in the API."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", 0, [], {})


def read(stored: Iterable[tuple[str, Mapping[str, Any]]], file: str) -> Found | None:
    """Return the clusters, pools and maintenance schedules of a Terraform state.

    Args:
        stored: type and attributes of each resource.
        file: its file, for messages.

    Raises:
        AdoptionError: as for `azure.read`.
    """
    return found_in(list(_of_terraform(stored, file)), file)


@cache
def terraform_names(resource: str) -> dict[str, str | None]:
    """Return the paths of inputs by those of Terraform's attributes, where the names differ; None for an
    attribute that is not an input.

    Args:
        resource: `cluster` or `pool`.
    """
    text = (resources.files("ebbtide.operations.adopting") / "tables" / "azurerm.csv").read_text()
    rows = (row for row in csv.DictReader(text.splitlines()) if row["resource"] == resource)
    return {row["attribute"]: row["input"] or None for row in rows}


def _of_terraform(stored: Iterable[tuple[str, Mapping[str, Any]]], file: str) -> Iterator[Mapping[str, Any]]:
    """Yield clusters and pools as Azure Resource Manager has them."""
    for kind, values in stored:
        attributes = cast("dict[str, Any]", _unwrapped(values))
        id_ = str(attributes.get("id"))
        if not ID.fullmatch(id_):
            raise AdoptionError(
                f"{file} has an {kind} without an id of Azure. Write it again with `terraform state pull`, "
                "after `terraform apply`."
            )
        is_cluster = kind == TYPES[0]
        yield {"id": id_, **(_terraform_cluster if is_cluster else _terraform_pool)(attributes)}
        if is_cluster:
            yield from _schedules(attributes, id_)


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
            reason=f"It is not converted from a Terraform state. Read the cluster with `{SHOW}`.",
        )
        for path in dict.fromkeys(path.partition(".")[0].partition("[")[0] for path in fits.output_only)
    ]
    return {**document, "agentPoolProfiles": [node_pool], UNREAD: unread}


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


def _schedules(attributes: Mapping[str, Any], cluster: str) -> Iterator[dict[str, Any]]:
    """Yield the maintenance schedules that Terraform has in the cluster (kubernetes_cluster_resource.go)."""
    for block, name in _SCHEDULES.items():
        window: dict[str, Any] = _present(attributes.get(block) or {})
        if not window:
            continue
        schedule: dict[str, Any] = {"id": f"{cluster}/maintenanceConfigurations/{name}"}
        spans = _blocks(window.pop("not_allowed", None))
        if name == "default":
            allowed = [
                {"day": item["day"], "hourSlots": item["hours"]} for item in _blocks(window["allowed"])
            ]
            yield schedule | {"timeInWeek": allowed, "notAllowedTime": spans}
            continue
        every, interval = _FREQUENCIES[window.pop("frequency")]
        days = ("day_of_week", "day_of_month", "week_index")
        recurrence = {interval: window.pop("interval"), **{key: window.pop(key, None) for key in days}}
        window |= {"schedule": {every: recurrence}, "durationHours": window.pop("duration")}
        window["start_date"] = window.get("start_date", "")[:_DATE]
        window["notAllowedDates"] = [{key: time[:_DATE] for key, time in span.items()} for span in spans]
        yield schedule | {"maintenanceWindow": window}


def _blocks(value: Any) -> list[dict[str, Any]]:
    """Return blocks of which a single one is an object."""
    return [value] if isinstance(value, dict) else list(value or ())


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
