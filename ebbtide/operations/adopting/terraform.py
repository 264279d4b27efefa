"""Clusters in a Terraform state, or in an exported Pulumi state of another program.

pulumi-gcp is generated from Google's Terraform provider: a resource's attributes are Pulumi's properties
(`inputs`). azure-native is not: the names that differ are rows of `tables/azurerm.csv`
(terraform-provider-azurerm 69697b7f, 2026-08-21, internal/services/containers). Sources: Terraform docs,
internals/json-format, and the state's format version 4 (2026).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from ebbtide.analysis.changes.property_path import replaced
from ebbtide.analysis.reading import aks
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import CLUSTER, NODE_POOL
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.recording import stack_and_project
from ebbtide.operations.adopting import azure, google
from ebbtide.operations.adopting.found import AdoptionError, Found, FoundResource, LeftOut
from ebbtide.operations.adopting.inputs import fitted, merged_deeply, moved, removed, without_secrets

_TYPES: Final = {"google_container_cluster": CLUSTER, "google_container_node_pool": NODE_POOL}
_VERSION: Final = 4
_AZURE_TYPES: Final = ("azurerm_kubernetes_cluster", "azurerm_kubernetes_cluster_node_pool")
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


def read(document: object, file: str) -> Found | None:
    """Return the clusters and pools of a Terraform state, also as `terraform show -json` prints it; None for
    other documents.

    Raises:
        AdoptionError: it is a state without a cluster.
    """
    state = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if "terraform_version" not in state:
        return None
    if not (state.get("version") == _VERSION or "values" in state):
        raise AdoptionError(
            f"{file} is a Terraform state in a form that Ebbtide does not read. Write it again with "
            "`terraform state pull`, or with `terraform show -json`."
        )
    values = cast("dict[str, Any]", state.get("values") or {})
    shown = cast("dict[str, Any]", values.get("root_module") or {})
    pairs = [*_shown(shown)] if shown else [*_stored(state)]
    if on_azure := [(kind, values) for kind, values in pairs if kind in _AZURE_TYPES]:
        return azure.found_in([*_as_in_azure(on_azure, file)], file)
    return _found([(_TYPES[kind], values) for kind, values in pairs if kind in _TYPES], file)


def _stored(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in state.get("resources") or ():
        for instance in resource.get("instances") or () if resource.get("mode") == "managed" else ():
            yield str(resource.get("type")), instance.get("attributes") or {}


def _shown(module: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in module.get("resources") or ():
        if resource.get("mode") == "managed":
            yield str(resource.get("type")), resource.get("values") or {}
    for child in module.get("child_modules") or ():
        yield from _shown(child)


def read_pulumi(document: object, text: str, file: str) -> Found | None:
    """Return the clusters and pools of a `pulumi stack export`; None for other documents.

    Args:
        document: the parsed JSON.
        file: its file, for messages.

    Raises:
        AdoptionError: it is a state without a cluster.
        StateError: it is not a valid state.
    """
    deployment = cast("dict[str, Any]", document).get("deployment") if isinstance(document, dict) else None
    if not isinstance(deployment, dict):
        return None
    resources = cast("list[dict[str, Any]]", cast("dict[str, Any]", deployment).get("resources") or [])
    stack, project = stack_and_project(str(resources[0].get("urn"))) if resources else ("", "")
    recording = recording_of(text, project=project, stack=stack, file=file)
    known = {*_TYPES.values(), *azure.TYPES}
    plain: list[tuple[str, Mapping[str, Any]]] = []
    withheld: dict[str, tuple[str, ...]] = {}
    for item in recording:
        if item.type in known and not item.read:
            inputs, withheld[str(item.id).lower()] = without_secrets(item.inputs)
            outputs, _ = without_secrets(item.outputs)
            for path in withheld[str(item.id).lower()]:
                outputs = replaced(outputs, path, removed)
            plain.append((item.type, {**merged_deeply(outputs, inputs), "id": item.id}))
    on_azure = [values for token, values in plain if token in azure.TYPES]
    found = azure.read(on_azure, file) if on_azure else _found(plain, file)
    return found and replace(
        found,
        resources=tuple(
            replace(item, withheld=tuple(dict.fromkeys((*withheld.get(item.id.lower(), ()), *item.withheld))))
            for item in found.resources
        ),
    )


def _found(pairs: list[tuple[str, Mapping[str, Any]]], file: str) -> Found:
    resources: dict[str, FoundResource] = {}
    left_out: list[LeftOut] = []
    for token, values in pairs:
        for kind, attributes, id_ in _with_inline_pools(token, values):
            resource = google.found_resource(kind, attributes, id_)
            if reason := google.unsupported(resource) if kind == NODE_POOL else "":
                left_out.append(LeftOut(name=f"pool {resource.name}", reason=reason))
            elif kind == token or id_ not in resources:
                resources[id_] = resource
    if not resources:
        raise AdoptionError(f"{file} is a state without a cluster of GKE or AKS, or a node pool of one.")
    return google.found_of(resources.values(), left_out, file)


def _with_inline_pools(token: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield a resource, and of a cluster its pools, which Terraform also has in the cluster."""
    id_ = str(values.get("id"))
    yield token, values, id_
    inline = values.get("node_pool") or values.get("nodePools") or () if token == CLUSTER else ()
    for pool in inline:
        yield NODE_POOL, pool, f"{id_}/nodePools/{pool.get('name')}"


@cache
def azure_names(resource: str) -> dict[str, str | None]:
    """Return the paths of inputs by those of Terraform's attributes, where the names differ; None for an
    attribute that is not an input.

    Args:
        resource: `cluster` or `pool`.
    """
    text = (files("ebbtide.operations.adopting") / "tables" / "azurerm.csv").read_text()
    rows = (row for row in csv.DictReader(text.splitlines()) if row["resource"] == resource)
    return {row["attribute"]: row["input"] or None for row in rows}


def _as_in_azure(stored: Iterable[tuple[str, Mapping[str, Any]]], file: str) -> Iterator[Mapping[str, Any]]:
    """Yield clusters and pools as Azure Resource Manager has them."""
    for kind, values in stored:
        attributes = cast("dict[str, Any]", _unwrapped(values))
        id_ = str(attributes.get("id"))
        if not azure.ID.fullmatch(id_):
            raise AdoptionError(
                f"{file} has an {kind} without an id of Azure. Write it again with `terraform state pull`, "
                "after `terraform apply`."
            )
        is_cluster = kind == _AZURE_TYPES[0]
        yield {"id": id_, **(_azure_cluster if is_cluster else _azure_pool)(attributes)}
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


def _azure_cluster(attributes: Mapping[str, Any]) -> dict[str, Any]:
    has = {name for name, value in attributes.items() if value not in (None, [], "")}
    document = moved(_present(attributes), azure_names("cluster"))
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
    node_pool = _azure_pool({"mode": "System", "os_type": "Linux", **attributes["default_node_pool"]})
    fits = fitted(aks.CLUSTER, document)
    unread = [
        LeftOut(
            name=f"{path} of cluster {attributes['name']}",
            reason=f"It is not converted from a Terraform state. Read the cluster with `{azure.SHOW}`.",
        )
        for path in dict.fromkeys(path.partition(".")[0].partition("[")[0] for path in fits.output_only)
    ]
    return {**document, "agentPoolProfiles": [node_pool], azure.UNREAD: unread}


def _azure_pool(attributes: Mapping[str, Any]) -> dict[str, Any]:
    only_critical = attributes.get("only_critical_addons_enabled")
    known = {key: value for key, value in attributes.items() if key != "only_critical_addons_enabled"}
    document = moved(_present(known), azure_names("pool"))
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
