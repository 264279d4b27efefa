"""A node pool in the document of a preview."""

from collections.abc import Iterator
from typing import Final

from ebbtide.model import Reservation, Spot
from ebbtide.model.pool import Accelerator
from ebbtide.preview.report import (
    AcceleratorReport,
    ChargeReport,
    DiskReport,
    NodesReport,
    PoolReport,
    TaintReport,
)
from ebbtide.reading import RecordedPool
from ebbtide.reading.admission import admits
from ebbtide.recording.values import leaves, masked
from ebbtide.wording import several

_RESERVATIONS: Final = {"specific": "", "any": "any", "any-then-fail": "any, and no other machines"}
"""Words for a reservation without a name, by affinity."""


def pool_report(
    pool: RecordedPool, queues: tuple[str, ...], falls_back_to: tuple[str, ...], charge: ChargeReport
) -> PoolReport:
    """Return a pool's part of the document.

    Args:
        pool: the pool.
        queues: its LocalQueues.
        falls_back_to: its alternative pools, the next one first.
        charge: the charge of its nodes.
    """
    capacity, nodes, hardware = pool.capacity, pool.nodes, pool.hardware
    derived = pool.labels_and_taints
    return PoolReport(
        name=pool.name,
        cluster=pool.cluster,
        cloud=pool.site.cloud,
        location=pool.site.location,
        role=pool.role.value,
        machine=pool.machine_type,
        accelerator=_accelerator(pool),
        capacity=capacity.kind,
        reservation=(capacity.name or _RESERVATIONS[capacity.affinity])
        if isinstance(capacity, Reservation)
        else "",
        max_price=capacity.max_price if isinstance(capacity, Spot) else None,
        nodes=NodesReport(nodes.min, nodes.max, nodes.count, pool.initial_nodes),
        zones=pool.zones,
        disk=DiskReport(pool.disk.size_gib, pool.disk.type),
        local_disks=", ".join(_local_disks(pool)),
        settings=tuple(_settings(pool)),
        labels=pool.labels,
        taints=tuple(
            TaintReport(taint.key, taint.value, taint.effect, taint not in derived.taints)
            for taint in derived.all_taints
        ),
        max_run_seconds=pool.max_run_seconds,
        billing=pool.billing,
        network_tags=pool.network_tags,
        overrides=masked(dict(leaves(pool.overrides))),
        urn=pool.urn,
        inline=pool.inline,
        vcpus=hardware.vcpus if hardware else None,
        memory_gib=hardware.memory_gib if hardware else None,
        admits=admits(pool),
        queues=queues,
        falls_back_to=falls_back_to,
        charge=charge,
    )


def _accelerator(pool: RecordedPool) -> AcceleratorReport | None:
    accelerator = pool.accelerator
    if accelerator is None:
        return None
    return AcceleratorReport(
        accelerator.type, accelerator.count, pool.requestable, _sharing(accelerator), pool.tpu_topology or ""
    )


def _sharing(accelerator: Accelerator) -> str:
    """Return the partitioning and sharing of GPUs in words."""
    sharing = accelerator.gpu_sharing_config
    words = (
        accelerator.gpu_partition_size or accelerator.gpu_instance_profile,
        f"{sharing.gpu_sharing_strategy} by {sharing.max_shared_clients_per_gpu}" if sharing else "",
    )
    return ", ".join(filter(None, words))


def _local_disks(pool: RecordedPool) -> Iterator[str]:
    if pool.disk.kubelet_disk_type == "Temporary":
        yield "the temporary disk for ephemeral storage"
    for config, use in (
        (pool.ephemeral_storage_local_ssd_config, "for ephemeral storage"),
        (pool.local_nvme_ssd_block_config, "as block devices"),
    ):
        if config is not None and config.local_ssd_count:
            yield f"{several(config.local_ssd_count, 'local SSD')} {use}"


def _settings(pool: RecordedPool) -> Iterator[str]:
    if pool.compact:
        yield "compact placement"
    if pool.gvnic:
        yield "gVNIC"
    if pool.image_streaming:
        yield "image streaming"
    for disk in pool.secondary_boot_disks:
        content = "images" if disk.mode == "CONTAINER_IMAGE_CACHE" else "data"
        yield f"preloaded {content} of {disk.disk_image.rpartition('/')[2]}"
