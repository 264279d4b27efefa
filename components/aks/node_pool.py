"""One node pool and its declaration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi_azure_native import containerservice

from ebbtide.declaration.model import Pool, Site

from ..faults import resolved_pool
from ..overrides import overridden, without_none
from ..ownership import Labels
from ..replacements import Replacement, all_but, drain_input
from .agent_pool import pool_inputs
from .immutable import POOLS


def without_aliases(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Remove a resource's aliases; for a component, those of every Azure resource below it.

    For `ResourceOptions.transformations`, which run after the SDK has put the aliases into the options, and
    before it applies them.
    """
    if not args.type_.startswith("azure-native:"):
        return None
    args.opts.aliases = None
    return pulumi.ResourceTransformationResult(args.props, args.opts)


_TYPE: Final = "azure-native:containerservice:AgentPool"
_LIMITS: Final = ("min_count", "max_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolArgs:
    """Arguments of a node pool.

    Attributes:
        pool: the declared pool; the component fills in its defaults.
        site: the cluster around it, for validation.
        cluster: name of the cluster.
        resource_group: name of the cluster's resource group.
        subnet: resource id of the nodes' subnet. Default: the cluster's.
        labels: billing labels, which Azure calls tags.
        deleted_with: the cluster, if its deletion deletes the pool.
        depends_on: the prerequisites of a node: the grants of the cluster's identity.
        cloud_name: name in the cloud when the pool is created. Default: the pool's.
        replaced_by: the replacement, to keep the pool as it is, without its autoscaler (see `replacements`).
            Default: the pool matches its declaration.
    """

    pool: Pool
    site: Site
    cluster: pulumi.Input[str]
    resource_group: pulumi.Input[str]
    subnet: pulumi.Input[str] | None = None
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])
    deleted_with: pulumi.Resource | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    cloud_name: str | None = None
    replaced_by: Replacement | None = None


class NodePool(pulumi.ComponentResource):
    """An AKS agent pool of any capacity type, usable on its own.

    Its spot label and taint are declared, although AKS adds them: otherwise the next preview would remove
    them. There is no count while the autoscaler sets it. A property that AKS cannot change on an existing
    pool is also an input of this component, so that the preview refuses a change of it (see
    `immutable_inputs`); a new name creates a new pool before the old one is deleted.

    Raises:
        pulumi.InputPropertiesError: the pool breaks a rule of AKS; every error is listed.
    """

    resource: containerservice.AgentPool
    """The escape hatch: the provider's resource."""
    pool_name: pulumi.Output[str]

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pool = resolved_pool(args.pool, args.site)
        inputs: dict[str, Any] = overridden(
            _TYPE,
            pool_inputs(pool, subnet=args.subnet, labels=args.labels),
            pool.overrides,
        )
        ignored = ["agentPoolName"]
        own: Mapping[str, Any] = {
            **POOLS.of_pool(pool.name, inputs["mode"], inputs),
            **without_none({"overrides": pool.overrides or None, "machine": pool.declared_shape}),
            **drain_input(pool),
        }
        if args.replaced_by is not None:
            inputs = {key: value for key, value in inputs.items() if key not in _LIMITS}
            inputs |= {"enable_auto_scaling": False, "count": args.replaced_by.nodes}
            ignored = all_but(_TYPE, frozenset({"enableAutoScaling", "count", "minCount", "maxCount"}))
            own = args.replaced_by.inputs
        super().__init__(
            "ebbtide:aks:NodePool",
            name,
            own,
            pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(hooks=POOLS.refusing(), transformations=[without_aliases])
            ),
        )
        self.resource = containerservice.AgentPool(
            name,
            agent_pool_name=args.cloud_name or pool.name,
            resource_name_=args.cluster,
            resource_group_name=args.resource_group,
            **inputs,
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=args.deleted_with,
                depends_on=args.depends_on,
                # The provider would delete the old pool first. If the new one is created first, one of the
                # same name is refused, and nothing is lost.
                delete_before_replace=False,
                # A pool that `ebbtide up` has replaced keeps its replacement's name.
                ignore_changes=ignored,
            ),
        )
        self.pool_name = self.resource.name
        self.register_outputs({"pool_name": self.pool_name})
