"""Prices of a stack: of its nodes, and of everything else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.analysis.costs.charges import CLOUD_NAT, charges, cloud_nat, node_price
from ebbtide.analysis.reading import read_clusters, read_pools
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.recording import Recording, stack_and_project
from ebbtide.declaration.catalog.amounts import Amount, total


@dataclass(frozen=True, slots=True)
class BilledItem:
    """An item that is billed independently of nodes, with its amount."""

    name: str
    amount: Amount


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices of a stack, USD per hour.

    Attributes:
        idle: amount without work.
        idle_of_nodes: part of `idle` for nodes.
        items: items billed independently of nodes: control plane, addresses, gateways, disks of add-ons.
        has_nat: True if the stack created a Cloud NAT gateway, which is billed by node.
        nodes: amount for a node, by the pool's name in the cloud.
    """

    idle: Amount
    idle_of_nodes: Amount
    items: tuple[BilledItem, ...]
    has_nat: bool
    nodes: Mapping[str, Amount]

    def without_nodes(self) -> Amount:
        """Return the amount for everything but nodes."""
        return self.at({})

    def at(self, counts: Mapping[str, int]) -> Amount:
        """Return the total amount at node counts, by the pools' names in the cloud."""
        gateway = cloud_nat(sum(counts.values())) if self.has_nat else Amount()
        fixed = total(item.amount for item in self.items)
        return fixed + self.of_nodes(counts) + gateway

    def of_nodes(self, counts: Mapping[str, int]) -> Amount:
        """Return the amount for the nodes only."""
        return total(
            self.nodes.get(name, Amount(unknown=(f"pool {name}",))) * count for name, count in counts.items()
        )


def rates(exported: Mapping[str, Any]) -> Rates:
    """Return the prices of a stack, from the document of `pulumi stack export`.

    Raises:
        StateError: the document is not an exported state.
    """
    return rates_of(deployed(exported))


def deployed(exported: Mapping[str, Any]) -> Recording:
    """Return the recording of a stack, from the document of `pulumi stack export`.

    Raises:
        StateError: the document is not an exported state.
    """
    stack, project = stack_and_project(exported["deployment"]["resources"][0]["urn"])
    return recording_of(json.dumps(exported), project=project, stack=stack, file="The state")


def rates_of(recording: Recording) -> Rates:
    """Return the prices of a recorded stack."""
    pools = read_pools(recording)
    items = charges(recording, read_clusters(recording), pools)
    return Rates(
        idle=total(charge.idle for charge in items),
        idle_of_nodes=total(charge.idle for charge in items if charge.pool),
        items=tuple(
            BilledItem(charge.item, charge.idle)
            for charge in items
            if not charge.pool and charge.item != CLOUD_NAT
        ),
        has_nat=any(charge.item == CLOUD_NAT for charge in items),
        nodes={pool.name: node_price(pool) for pool in pools},
    )
