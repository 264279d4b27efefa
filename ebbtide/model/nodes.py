"""Capacity of a node for work: allocatable resources of the machine, less the requests of DaemonSets."""

from ebbtide.catalog import CLOUD_SPECS, Resources, footprint, has_footprint
from ebbtide.model.addons import Addons
from ebbtide.model.completion import complete_pool, machine_of
from ebbtide.model.gpus import has_gpus
from ebbtide.model.pool import Pool
from ebbtide.model.site import Site

NONE = Addons()
"""No add-ons, for a pool without a cluster."""


def _of_gpus(pool: Pool, site: Site, addons: Addons) -> tuple[str, ...]:
    if pool.accelerator is None or not has_gpus(pool, site):
        return ()
    if pool.accelerator.driver != "none" or addons.drivers in ("managed", "none"):
        exporter = ("dcgm-exporter-node",) if addons.metrics is not None else ()
        return (CLOUD_SPECS[site.cloud].gpu_node_footprint, *exporter)
    if addons.drivers == "daemonset":
        return (CLOUD_SPECS[site.cloud].gpu_node_footprint, "driver-daemonset")
    return ("gpu-operator-node",)


def daemons(pool: Pool, site: Site, addons: Addons = NONE) -> Resources:
    """Return the requests of the cloud's and the add-ons' DaemonSets on a node of a complete pool."""
    items = (
        CLOUD_SPECS[site.cloud].node_footprint,
        *_of_gpus(pool, site, addons),
        *(item for add_on in addons.declared if has_footprint(item := f"{add_on.spec.name}-node")),
    )
    total = Resources(0, 0)
    for item in items:
        total += footprint(item).requests
    return total


def offered(pool: Pool, site: Site, addons: Addons = NONE) -> Resources | None:
    """Return a node's capacity for work in a complete pool, in whole millicores and MiB; None for an unknown
    machine."""
    machine = machine_of(pool, site)
    if machine is None:
        return None
    overhead = daemons(pool, site, addons)
    has = machine.allocatable
    return Resources(
        max(0, int(has.cpu_m - overhead.cpu_m)),
        max(0, int(has.memory_mib - overhead.memory_mib)),
    )


def most_nodes(pool: Pool, site: Site) -> int:
    """Return the maximum number of nodes of a pool: its fixed count, the autoscaler's maximum, or the nodes
    of its TPU slice."""
    nodes = complete_pool(pool, site).nodes
    return nodes.count or nodes.max or 0
