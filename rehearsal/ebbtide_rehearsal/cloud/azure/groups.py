"""Resource groups."""

from typing import Final

from ebbtide.catalog import CloudKind
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks import clusters
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.errors import location_unavailable
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.store import Resource


def _region_exists(arm: Arm, wish: Wish) -> RefusedError | None:
    location, known = str(wish.inputs["location"]), locations(arm.store, CloudKind.AKS).regions()
    if location.replace(" ", "").lower() in known:
        return None
    return location_unavailable(location, "resource group", known)


def _leaves(arm: Arm, group: Resource) -> None:
    """Deleting a resource group deletes all that is in it, whoever has made it (learn.microsoft.com,
    azure-resource-manager/management/delete-resource-group, 2026)."""
    for one in arm.below(group.id, CLUSTER):
        clusters.end(arm, one)
    others = [one for one in arm.below(group.id) if one.urn]
    if others:
        arm.store.say(
            "group-deleted",
            f"Resource group {ids.last(group.id)} is deleted with what is still in it: "
            f"{', '.join(ids.last(one.id) for one in others)}.",
            group=group.id,
            with_it=[one.id for one in others],
        )


KINDS: Final = (
    Kind(
        token="azure-native:resources:ResourceGroup",  # noqa: S106 - a type's name
        api_version="2024-03-01",
        path=ids.GROUP,
        needed=("location",),
        replaces=frozenset({"location"}),
        refusals=(
            Refusal("a region of Azure", "Azure/azure-cli#16368; catalog/data/locations.csv", _region_exists),
        ),
        limits={"resourceGroupName": Limit(r"^[-\w\._\(\)]+$", shortest=1, longest=90)},
        outputs=lambda _arm, _wish: {"properties": {"provisioningState": "Succeeded"}},
        leaving=_leaves,
    ),
)
