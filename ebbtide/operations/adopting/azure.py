"""AKS clusters and their pools: documents of the Azure CLI and of Azure Resource Manager.

The CLI prints the properties of Azure Resource Manager in one object with the resource, and spells some names
in another way (`osDiskSizeGb`); the installed SDK has the provider's names (`inputs`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ebbtide.analysis.changes.inputs import FieldChange
from ebbtide.analysis.reading.aks import AGENT_POOL, CLUSTER, MAINTENANCE
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.operations.adopting.found import AdoptionError, Found, FoundResource, LeftOut
from ebbtide.operations.adopting.inputs import fitted, without_secrets
from ebbtide.values.cloud_kind import CloudKind

ID: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.ContainerService/managedClusters/(?P<cluster>[^/]+)"
    r"(?:/agentPools/(?P<pool>[^/]+)|/maintenanceConfigurations/(?P<schedule>[^/]+))?",
    re.IGNORECASE,
)
"""The id of a cluster, or of a part of one."""

TYPES: Final = (CLUSTER, AGENT_POOL, MAINTENANCE)
"""Types of the resources that are read."""
SHOW: Final = "az aks show --resource-group GROUP --name NAME --output json"
"""The command that prints a cluster."""
_SETS: Final = "VirtualMachineScaleSets"
UNREAD: Final = "unreadParts"
"""Key of the parts of a document that are not adopted."""
_PATCHED: Final = frozenset({"patch", "stable", "rapid"})
"""Channels that install newer patches; those after `patch` also newer versions (azure-aks-docs,
auto-upgrade-cluster, 2026-06-26)."""


def read(document: object, file: str) -> Found | None:
    """Return the clusters, pools and maintenance schedules in a document: one, or a list of them; None for
    other documents.

    Args:
        document: the parsed JSON.
        file: its file, for messages.

    Raises:
        AdoptionError: it lacks what identifies a cluster, or has one that is not supported.
    """
    return found_in([item for item in _listed(document) if _is_ours(item, file)], file)


def found_in(items: list[Mapping[str, Any]], file: str) -> Found | None:
    """Return the clusters, pools and maintenance schedules in documents with an id; None without any.

    Raises:
        AdoptionError: as for `read`.
    """
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
    if ID.fullmatch(str(item.get("id"))):
        return True
    if "agentPoolProfiles" in {**item, **(item.get("properties") or {})}:
        raise AdoptionError(
            f"{file} is not a whole description of an AKS cluster: it has no `id`. Write it again with "
            f"`{SHOW}`, without `--query`."
        )
    return False


class _Reading:
    """The resources of documents.

    Attributes:
        left_out: parts that are not adopted.
    """

    def __init__(self) -> None:
        self.subscriptions: dict[str, None] = {}
        self.resources: list[FoundResource] = []
        self.left_out: list[LeftOut] = []
        self._systems: dict[str, str] = {}

    def add(self, item: Mapping[str, Any]) -> None:
        """Add a document of Azure Resource Manager or the CLI, with the pools in it."""
        match = ID.fullmatch(str(item["id"]))
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
        document["identity"] = _identity(item.get("identity") or {})
        document["networkProfile"] = _without_copies(item.get("networkProfile") or {})
        if Inputs(document).text("servicePrincipalProfile.clientId") == "msi":
            del document["servicePrincipalProfile"]
        if _is_of_aks(item):
            del document["identityProfile"]
        self._put(CLUSTER, names, names["cluster"], document)
        for pool in item.get("agentPoolProfiles") or ():
            self._pool(pool, {**names, "pool": str(pool.get("name"))})
        for part in item.get(UNREAD, ()):
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
        document |= {"type": kind, "agentPoolName": names["pool"]}
        self._put(AGENT_POOL, names, names["pool"], document, inline=is_system)

    def _schedule(self, item: Mapping[str, Any], names: Mapping[str, str]) -> None:
        document = {key: item.get(key) for key in ("maintenanceWindow", "timeInWeek", "notAllowedTime")}
        document["configName"] = names["schedule"]
        self._put(MAINTENANCE, names, names["schedule"], document)

    def _put(
        self,
        token: str,
        names: Mapping[str, str],
        name: str,
        document: Mapping[str, Any],
        *,
        inline: bool = False,
    ) -> None:
        own, id_ = {"resourceName": names["cluster"], "resourceGroupName": names["group"]}, _path(names)
        fits = fitted(token, {**document, **own})
        self.resources = [item for item in self.resources if (item.type, item.id) != (token, id_)]
        inputs, withheld = without_secrets(fits.inputs)
        self.resources.append(
            FoundResource(
                type=token,
                id=id_,
                name=name,
                inputs=inputs,
                withheld=withheld,
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
                f"again with `{SHOW}`."
            )


def _not_adoptable(item: Mapping[str, Any], kind: str) -> str:
    """Return why a pool cannot be declared; empty if it can."""
    mode = item.get("mode")
    reasons = {
        "It has Windows nodes, and Ebbtide declares Linux nodes alone.": str(item.get("osType")) == "Windows",
        f"It consists of {kind}, and Ebbtide declares pools of {_SETS} alone.": kind != _SETS,
        f"Its description has no `mode`: it is not whole. Write it again with `{SHOW}`.": mode is None,
        f"Its mode is {mode}, and Ebbtide declares pools of the modes System and User.": str(mode)
        not in ("System", "User"),
        "It is being deleted.": str(item.get("provisioningState")) == "Deleting",
        "It is stopped, and a declared pool runs. Start it first: `az aks nodepool start`.": Inputs(
            item
        ).text("powerState.code")
        == "Stopped",
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


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
            "It has no logins of Entra ID, which Ebbtide would switch on, and AKS never switches off. To "
            "adopt the cluster, switch them on first (`az aks update --enable-aad`); to adopt pools alone, "
            "add one of the mode User (`az aks nodepool add --mode User`)."
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


def is_kept(token: str, change: FieldChange) -> bool:
    """Return whether a value stays because the program omits it: the import forgets it, and AKS keeps what
    an update omits."""
    return token in (CLUSTER, AGENT_POOL) and change.new is None
