"""The component `ebbtide:index:NodePool`."""

from typing import Any, assert_never

import pulumi

from ebbtide.declaration.model import Aks, Cluster, Gke
from ebbtide.declaration.model.package_schema import NODE_POOL
from ebbtide.placement.derive import profile

from ..cluster import billing_labels, of_pool
from .declared import Declared


class NodePoolComponent(pulumi.ComponentResource):
    """A node pool of an existing cluster: the component of its cloud, under the same name.

    The cloud's provider may be among the component's `providers`; otherwise one is created for the declared
    account.
    """

    outputs: dict[str, Any]

    def __init__(
        self, name: str, declared: Declared, inputs: pulumi.Inputs, opts: pulumi.ResourceOptions
    ) -> None:
        waiting = declared.waiting
        super().__init__(NODE_POOL, name, dict(inputs), pulumi.ResourceOptions.merge(opts, waiting.options()))
        self.outputs = {
            "poolName": _pool(name, declared.cluster, self, opts.providers or {}),
            "placementProfile": waiting.resolved(profile(declared.cluster).output()),
        }
        self.register_outputs(self.outputs)


def _pool(name: str, declaration: Cluster, parent: pulumi.Resource, providers: Any) -> pulumi.Output[str]:
    """Create the pool and return its name in the cloud."""
    (pool,) = declaration.pools
    labels = of_pool(billing_labels(declaration, None), pool.name)
    inside = pulumi.ResourceOptions(parent=parent)
    match declaration.cloud:
        case Gke() as cloud:
            from .. import gke  # noqa: PLC0415 - the provider of its own cloud alone

            if "gcp" not in providers:
                gcp = gke.provider(f"{name}-gcp", declaration, inside)
                inside = pulumi.ResourceOptions(parent=parent, providers=[gcp])
            grants = gke.key_grants(name, cloud, inside)
            gke_args = gke.NodePoolArgs(
                pool=pool,
                site=declaration.site,
                cluster=declaration.physical_name,
                project=cloud.project,
                labels=labels,
                disk_key=cloud.keys.disks,
                network_tags=cloud.network_tags,
                depends_on=grants.disks if grants else (),
            )
            return gke.NodePool(name, gke_args, inside).pool_name
        case Aks() as cloud:
            from .. import aks  # noqa: PLC0415 - the provider of its own cloud alone

            if "azure-native" not in providers:
                azure = aks.provider(f"{name}-azure", declaration, inside)
                inside = pulumi.ResourceOptions(parent=parent, providers=[azure])
            aks_args = aks.NodePoolArgs(
                pool=pool,
                site=declaration.site,
                cluster=declaration.physical_name,
                resource_group=cloud.resource_group or declaration.physical_name,
                subnet=cloud.network.subnet,
                labels=labels,
            )
            return aks.NodePool(name, aks_args, inside).pool_name
        case _:
            assert_never(declaration.cloud)
