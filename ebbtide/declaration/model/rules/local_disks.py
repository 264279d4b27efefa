"""Rules for disks that are part of the machine: local SSDs on GKE, the temporary disk on AKS."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind, LocalSsds, has_temporary_disk, local_ssds
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.rules.rule import PoolIn, pool_rule
from ebbtide.text import or_list

_NO_POOL = "The node pool could not be created."
_DOCS = "GKE docs, local-ssd (2026); catalog/data/local_ssds.csv"


def _configs(pool: Pool) -> Iterator[tuple[str, int | None]]:
    """Yield each declared use of local SSDs with the number of disks."""
    if pool.ephemeral_storage_local_ssd_config is not None:
        yield "ephemeralStorageLocalSsdConfig", pool.ephemeral_storage_local_ssd_config.local_ssd_count
    if pool.local_nvme_ssd_block_config is not None:
        yield "localNvmeSsdBlockConfig", pool.local_nvme_ssd_block_config.local_ssd_count


@pool_rule(
    "one use of local SSDs",
    "gcloud reference, container node-pools create: at most one of the flags (2026)",
    CloudKind.GKE,
)
def _one_use(pool: PoolIn) -> Iterator[Fault]:
    if len(list(_configs(pool.pool))) > 1:
        yield Fault(
            pool.at("localNvmeSsdBlockConfig"),
            "The local SSDs are declared as ephemeral storage and as block devices.",
            _NO_POOL,
            "Write one of ephemeralStorageLocalSsdConfig and localNvmeSsdBlockConfig.",
        )


@pool_rule("machine has local SSDs", _DOCS, CloudKind.GKE)
def _count(pool: PoolIn) -> Iterator[Fault]:
    name = pool.pool.machine.type if pool.pool.machine else ""
    known = local_ssds(name)
    for field, count in _configs(pool.pool):
        if known is not None and not known.counts:
            yield Fault(
                pool.at(field),
                f"{name} has no local SSDs.",
                _NO_POOL,
                f"Remove {field}, or {_other(name)}.",
            )
        elif count is None and (known is None or not known.fixed):
            yield Fault(
                pool.at(f"{field}.localSsdCount"),
                f"The number of local SSDs is missing: {name} supports several."
                if known
                else f"The number of local SSDs is missing, and that of {name} is not known.",
                "The nodes would have none.",
                f"Write localSsdCount: {_choice(known)}.",
            )
        elif known is not None and count is not None and count not in known.counts:
            yield Fault(
                pool.at(f"{field}.localSsdCount"),
                f"{name} has {or_list(known.counts)} local SSDs, not {count}.",
                _NO_POOL,
                "Remove localSsdCount." if known.fixed else f"Write localSsdCount: {_choice(known)}.",
            )


def _other(name: str) -> str:
    with_disks = f"{name}-lssd"
    return f"write machine: {with_disks}" if local_ssds(with_disks) else "write another machine"


def _choice(known: LocalSsds | None) -> str:
    return or_list(known.counts) if known else "1, for example"


@pool_rule(
    "machine has temporary disk",
    "azure-native 3.29.0, AgentPool.kubeletDiskType; Azure docs, azure-vms-no-temp-disk (2026)",
    CloudKind.AKS,
)
def _temporary(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.machine
    if pool.pool.disk.kubelet_disk_type != "Temporary" or machine is None:
        return
    if not has_temporary_disk(machine.family):
        yield Fault(
            pool.at("disk.kubeletDiskType"),
            f"{machine.name} has no temporary disk.",
            _NO_POOL,
            "Remove kubeletDiskType, or write a machine with one, such as Standard_D8ds_v5.",
        )
