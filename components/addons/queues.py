"""Kueue's objects for the declared queues."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from ebbtide.declaration.model.labels_and_taints import AGENT_POOL, NODE_POOL
from ebbtide.placement.queue_objects import layers, with_names
from ebbtide.placement.queueing import Queueing
from ebbtide.values.paths import Object

from .manifest import InCluster, Manifest, leaf_options

_REPLACED_WITH_ITS_QUEUE: Final = pulumi.ResourceOptions(
    replace_on_changes=["spec.clusterQueue"], delete_before_replace=True
)
"""A LocalQueue cannot move to another ClusterQueue; Workloads wait for their queue by name (Kueue 0.19.2,
localqueue_types.go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesArgs:
    """Arguments of queues.

    Attributes:
        fallbacks: the fallback orders of pools.
        queueing: the admission of workloads.
        policy: the policy that requires a queue, in layers.
        kueue: prerequisites: Kueue's kinds and webhooks.
        pools: the node pools that are in a fallback order.
        pool_names: the names of work pools in the cloud, by declared name; they differ once `ebbtide up` has
            replaced a pool. Default: the declared names.
        namespaces: prerequisites of local queues, by name of the tenant's namespace.
        deleted_with: the cluster, if its deletion deletes the queues.
    """

    fallbacks: tuple[Object, ...]
    queueing: Queueing
    policy: tuple[tuple[Object, ...], ...]
    kueue: tuple[pulumi.Resource, ...]
    pools: tuple[pulumi.Resource, ...] = ()
    pool_names: Mapping[str, pulumi.Output[str]] = field(default_factory=dict[str, pulumi.Output[str]])
    namespaces: Mapping[str, tuple[pulumi.Resource, ...]] = field(
        default_factory=dict[str, tuple[pulumi.Resource, ...]]
    )
    deleted_with: pulumi.Resource | None = None


class Queues(InCluster):
    """Fallback orders for the autoscaler, then flavors, checks, cohorts, cluster queues and local queues, all
    derived from the declaration.

    Each layer depends on the previous one, so that they are deleted in reverse: a finalizer holds a flavor
    until no queue refers to it. A local queue depends only on its cluster queue, since both grow with teams
    and queues, and the dependencies between all of them with the square.
    """

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Queues", name, opts, args.deleted_with)
        order = [self._created(name, item, args, args.pools) for item in args.fallbacks]
        before: tuple[pulumi.Resource, ...] = (*args.kueue, *order)
        *first, cluster_queues, local_queues = layers(args.queueing)
        for layer in first:
            before = tuple(self._created(name, manifest, args, before) for manifest in layer) or before
        queues = {
            item["metadata"]["name"]: self._created(name, item, args, before) for item in cluster_queues
        }
        before = tuple(
            self._created(name, item, args, (queues[item["spec"]["clusterQueue"]],)) for item in local_queues
        )
        for layer in args.policy:
            before = tuple(self._created(name, manifest, args, before) for manifest in layer)
        self.register_outputs({})

    def _created(
        self,
        name: str,
        manifest: Mapping[str, Any],
        args: QueuesArgs,
        before: tuple[pulumi.Resource, ...],
    ) -> pulumi.Resource:
        metadata = manifest["metadata"]
        manifest = _with_cloud_names(manifest, args)
        namespaces = args.namespaces.get(metadata.get("namespace", ""), ())
        logical_name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        options = leaf_options(self, args.deleted_with, (*before, *namespaces))
        if manifest["kind"] == "LocalQueue":
            options = pulumi.ResourceOptions.merge(options, _REPLACED_WITH_ITS_QUEUE)
        return Manifest(f"{name}-{manifest['kind'].lower()}-{logical_name}", manifest, options)


def _with_cloud_names(manifest: Mapping[str, Any], args: QueuesArgs) -> Mapping[str, Any]:
    """Return a manifest with the pools' names in the cloud: in flavors' labels and in fallback orders."""
    spec: Mapping[str, Any] = manifest.get("spec") or {}
    match manifest["kind"]:
        case "ResourceFlavor":
            labels: Mapping[str, Any] = spec["nodeLabels"]
            named = {key: _cloud_name(labels[key], args) for key in (NODE_POOL, AGENT_POOL) if key in labels}
            return {**manifest, "spec": {**spec, "nodeLabels": {**labels, **named}}}
        case "ComputeClass":
            rules = [
                {**rule, "nodepools": [_cloud_name(pool, args) for pool in rule["nodepools"]]}
                for rule in spec["priorities"]
            ]
            return {**manifest, "spec": {**spec, "priorities": rules}}
        case "ConfigMap" if "priorities" in manifest["data"]:
            names = {pool: _cloud_name(pool, args) for pool in args.pool_names}
            written = manifest["data"]["priorities"]
            priorities = pulumi.Output.all(**names).apply(lambda known: with_names(written, known))
            return {**manifest, "data": {"priorities": priorities}}
        case _:
            return manifest


def _cloud_name(pool: str, args: QueuesArgs) -> pulumi.Input[str]:
    """Return a pool's name in the cloud, without its dependencies: what depends on a replaced pool would be
    deleted with it."""
    if (name := args.pool_names.get(pool)) is None:
        return pool
    known: pulumi.Output[Any] = pulumi.Output(set(), name.future(), name.is_known())
    return known
