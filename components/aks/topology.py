"""All resources of an AKS cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import resources

from ebbtide.declaration.model.capacity import Reservation
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.resolved_pool import ResolvedPool

from .. import topology
from ..inputs import require_cloud
from ..replacement import NEW_NAME, node_pools, replacements
from ..topology import Labels, of_pool
from .cluster import Cluster, ClusterArgs, MaintenanceSchedules, kubeconfig
from .identity import Identity, IdentityArgs, Members
from .ignored_changes import OUTPUT
from .monitoring import LogCollection, LogStore, MetricStore
from .network import Network, NetworkArgs
from .node_pool import (
    CapacityReservation,
    CapacityReservationArgs,
    NodePool,
    NodePoolArgs,
    group_id,
    without_aliases,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The cluster that node pools belong to: a new or an existing one."""

    cluster_name: pulumi.Output[str]
    resource_group: pulumi.Output[str]
    subnet: pulumi.Input[str] | None
    own_subnet: pulumi.Output[str] | None = None
    cluster: Cluster | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    reserved: Mapping[str, CapacityReservation] = field(default_factory=dict[str, CapacityReservation])


class Topology(topology.Topology):
    """Resource group, network, identity, cluster and node pools; for an existing cluster, only node pools.

    The Kubernetes provider depends on the cluster, which includes the system pool, and on the administrators'
    role assignments: a new role assignment may take five minutes to take effect.

    Raises:
        pulumi.RunError: the declaration is for another cloud.
    """

    cloud: Aks
    resource_group: pulumi.Output[str]
    """Name of the cluster's resource group."""
    pools: dict[str, NodePool]
    """Work pools by name; the system pool of a created cluster is part of the cluster."""
    cluster: Cluster | None
    """None for an existing cluster."""
    own_subnet: pulumi.Output[str] | None
    """Resource id of the nodes' subnet; None for an existing network."""

    def __init__(
        self, name: str, declaration: Declaration, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        cloud = self.cloud = require_cloud(declaration, Aks)
        unaliased = pulumi.ResourceOptions(transformations=[without_aliases])
        # Separate pools have no location, and an existing cluster is not among the stack's resources.
        own = {"location": cloud.location} if cloud.existing else {}
        super().__init__(name, declaration, pulumi.ResourceOptions.merge(opts, unaliased), own)
        base = _existing(declaration, cloud) if cloud.existing else _own(name, declaration, cloud, self)
        self.cluster = base.cluster
        if base.cluster:
            self.own_outputs = {OUTPUT: base.cluster.deployed_inputs}
        self.cluster_name = base.cluster_name
        self.resource_group = base.resource_group
        self.own_subnet = base.own_subnet
        self.kubeconfig = kubeconfig(
            base.cluster_name,
            base.resource_group,
            cloud.access.login,
            zone=cloud.access.private_dns_zone if cloud.access.private else None,
            opts=pulumi.InvokeOutputOptions(
                parent=self, depends_on=[base.cluster.resource] if base.cluster else None
            ),
        )
        _refuse_replacements(declaration, cloud)
        self.pools = node_pools(
            NodePool,
            name,
            (
                NodePoolArgs(
                    pool=pool,
                    site=declaration.site,
                    cluster=base.cluster_name,
                    resource_group=base.resource_group,
                    subnet=base.subnet,
                    reservation=_group(pool, declaration, cloud),
                    labels=of_pool(self.labels, pool.name),
                    # Azure deletes a reservation only after the pool that uses it.
                    deleted_with=base.cluster.resource
                    if base.cluster and pool.name not in base.reserved
                    else None,
                    protect=pool.protect and not declaration.is_ephemeral,
                    depends_on=(*base.depends_on, *_of(pool, base.reserved)),
                )
                for pool in (declaration.work_pools if base.cluster else declaration.resolved_pools)
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self._reached(name, [base.cluster.resource, *base.cluster.administrators] if base.cluster else None)


def _own(name: str, declaration: Declaration, cloud: Aks, parent: Topology) -> _Base:
    inside = pulumi.ResourceOptions(parent=parent)
    labels = parent.labels
    group = _resource_group(name, declaration, cloud, labels, inside)
    network = Network(
        f"{name}-network",
        NetworkArgs(
            name=declaration.name,
            resource_group=group,
            location=cloud.location,
            network=cloud.network,
            storage=any(
                team.volume is not None and team.volume.kind == "azure-files" for team in declaration.teams
            ),
            labels=labels,
        ),
        inside,
    )
    reserved = {
        pool.name: CapacityReservation(
            f"{name}-{pool.name}-reservation",
            CapacityReservationArgs(
                pool=pool,
                cluster=declaration.name,
                resource_group=group,
                location=cloud.location,
                labels=of_pool(labels, pool.name),
            ),
            inside,
        )
        for pool in declaration.resolved_pools
        if pool.reserves_machines
    }
    identity = (
        # An adopted cluster has an identity already, with its owner's grants.
        None
        if "type" in (cloud.overrides.get("identity") or {})
        else Identity(
            f"{name}-identity",
            IdentityArgs(
                name=f"{declaration.name}-control-plane",
                resource_group=group,
                location=cloud.location,
                subscription=cloud.subscription,
                subnet=network.subnet,
                pool_subnets=_pool_subnets(declaration, cloud),
                reservations=_reservations(declaration),
                own_reservations={pool: own.group for pool, own in reserved.items()},
                dns_zone=_dns_zone(cloud),
                keys=cloud.keys,
                labels=labels,
            ),
            inside,
        )
    )
    grants = identity.grants if identity else ()
    system = declaration.system_pool
    declared = declaration.addons.logs
    logs = LogStore(f"{name}-logs", declaration, declared, group, labels, inside) if declared else None
    cluster = Cluster(
        f"{name}-cluster",
        ClusterArgs(
            declaration=declaration,
            cloud=cloud,
            resource_group=group,
            subnet=network.subnet,
            identity=identity.identity if identity else None,
            labels=labels,
            addon_profiles=logs.addon_profiles if logs else {},
            reservation=_group(system, declaration, cloud) if system else None,
            depends_on=(*grants, *_of(system, reserved)),
        ),
        inside,
    )
    if cloud.maintenance is not None:
        MaintenanceSchedules(f"{name}-maintenance", cloud.maintenance, cluster, group, inside)
    if declaration.members:
        workspace = logs.workspace if logs else None
        Members(f"{name}-members", declaration, cloud, cluster.resource.id, workspace, inside)
    if logs is not None:
        LogCollection(f"{name}-log-collection", logs, cluster.resource, inside)
    if declaration.addons.metrics is not None:
        MetricStore(f"{name}-metrics", declaration, cluster.resource, group, labels, inside)
    return _Base(
        cluster_name=cluster.cluster_name,
        resource_group=group,
        subnet=network.subnet,
        own_subnet=None if cloud.network.subnet else network.subnet,
        cluster=cluster,
        depends_on=grants,
        reserved=reserved,
    )


def _resource_group(
    name: str, declaration: Declaration, cloud: Aks, labels: Labels, inside: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    """Return the name of the cluster's resource group, which is created unless it exists.

    Deleting a group deletes everything in it, also what is not the stack's.
    """
    group = cloud.resource_group or declaration.name
    if not cloud.create_resource_group:
        return pulumi.Output.from_input(group)
    return resources.ResourceGroup(
        f"{name}-group", resource_group_name=group, location=cloud.location, tags=labels, opts=inside
    ).name


def _dns_zone(cloud: Aks) -> str | None:
    """Return the resource id of the declared private DNS zone; None if AKS creates one, or there is none."""
    zone = cloud.access.private_dns_zone
    return zone if cloud.access.private and zone.startswith("/") else None


def _pool_subnets(declaration: Declaration, cloud: Aks) -> tuple[str, ...]:
    """Return the subnets of pools other than the cluster's, each once; Azure compares ids without case."""
    subnets = {pool.subnet.lower(): pool.subnet for pool in declaration.pools if pool.subnet}
    subnets.pop((cloud.network.subnet or "").lower(), None)
    return tuple(subnets.values())


def _reservations(declaration: Declaration) -> tuple[str, ...]:
    capacities = (pool.capacity for pool in declaration.pools)
    groups = (capacity.name for capacity in capacities if isinstance(capacity, Reservation))
    return tuple(group for group in groups if group)


def _group(pool: ResolvedPool, declaration: Declaration, cloud: Aks) -> str | None:
    """Return the resource id of the capacity reservation group that the stack creates for a pool, if any."""
    return _own_group(declaration, cloud, pool.name) if pool.reserves_machines else None


def _own_group(declaration: Declaration, cloud: Aks, pool: str) -> str:
    group = cloud.resource_group or declaration.name
    return group_id(cloud.subscription, group, declaration.name, pool)


def _refuse_replacements(declaration: Declaration, cloud: Aks) -> None:
    """Refuse to replace a pool for which the stack has reserved machines: Azure deletes no reservation that
    the old pool uses, and changes neither its machine type nor its zones.

    Raises:
        pulumi.RunError: such a pool would be replaced.
    """
    for name, replacement in replacements().items():
        deployed = str(replacement.inputs.get("capacityReservationGroupID"))
        if deployed.lower() == _own_group(declaration, cloud, name).lower():
            raise pulumi.RunError(
                f"The pool {name} cannot be replaced under its name: its capacity reservation belongs to the "
                f"old pool until that is deleted. {NEW_NAME.format(name=name)}"
            )


def _of(
    pool: ResolvedPool | None, reserved: Mapping[str, CapacityReservation]
) -> tuple[pulumi.Resource, ...]:
    """Return the reservations that the stack creates for a pool, which it needs."""
    own = reserved.get(pool.name) if pool else None
    return own.reservations if own else ()


def _existing(declaration: Declaration, cloud: Aks) -> _Base:
    name = declaration.physical_name
    return _Base(
        cluster_name=pulumi.Output.from_input(name),
        resource_group=pulumi.Output.from_input(cloud.resource_group or name),
        subnet=cloud.network.subnet,
    )
