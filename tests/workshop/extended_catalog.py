"""A plugin of pytest: the catalog with rows as a contributor would add them.

Machine types of known families and of new ones, an accelerator that is part of a machine and one that is
attached to N1, with prices and quotas, on both clouds. Sizes and prices are made up, some of these
lower than any other.
"""

from ebbtide.declaration.catalog import disks, machines, prices, resources
from ebbtide.declaration.catalog.tables import lines, rows

_TABLES = {
    "machines": (
        "cloud,machine_type,vcpus,memory_gib,gpu_type,gpu_count,gpu_memory_gib,family,attachable_gpus",
        "gke,n2-standard-112,112,448,,0,,n2,no",
        "gke,t2d-standard-3,3,12,,0,,t2d,no",
        "gke,n5d-standard-2,2,8,,0,,n5d,no",
        "gke,n5d-standard-4,4,16,,0,,n5d,no",
        "gke,n5d-standard-8,8,32,,0,,n5d,no",
        "gke,a4x-maxgpu-8g-metal,144,960,nvidia-gb400,4,279,a4x-max8,no",
        "aks,Standard_D4as_v9,4,16,,0,,Dasv9,no",
        "aks,Standard_D4als_v9,4,8,,0,,Dalsv9,no",
        "aks,Standard_ND128isr_NDR_GB200_v6,128,900,nvidia-gb200,4,192,ND_GB200_v6,no",
    ),
    "attachable": (
        "machine_family,accelerator,count,gpu_memory_gib,max_vcpus,max_memory_gib",
        "n1,nvidia-tesla-t9,1,24,48,312",
    ),
    "prices": (
        "cloud,region,item,usd_per_hour_on_demand,usd_per_hour_spot,usd_per_hour_flex,note",
        "gke,us-central1,n2-standard-112,2.33,1.11,,",
        "gke,us-central1,t2d-standard-3,0.012,0.005,,",
        "gke,us-central1,n5d-standard-2,0.06,0.04,,",
        "gke,us-central1,n5d-standard-4,0.12,0.08,,",
        "gke,us-central1,n5d-standard-8,0.24,0.16,,",
        "gke,us-central1,a4x-maxgpu-8g-metal,60,,,",
        "gke,us-central1,gpu:nvidia-tesla-t9,0.5,0.2,,",
        "aks,westeurope,Standard_D4as_v9,0.2,0.05,,",
        "aks,eastus,Standard_D4als_v9,0.15,0.04,,",
        "aks,westeurope,Standard_D4als_v9,0.16,0.04,,",
        "aks,eastus,Standard_ND128isr_NDR_GB200_v6,48,,,",
    ),
    "boot_disks": ("cloud,machines,types", "gke,n5d-*,hyperdisk-balanced"),
    "quotas": (
        "cloud,family,accelerator,on_demand,spot",
        "gke,n5d,,N5D_CPUS,N5D_CPUS",
        "aks,Dasv9,,standardDasv9Family,lowPriorityCores",
    ),
}
_NOTE = {"as_of": "2026-11", "source": "made up"}


def _extended(table: str) -> list[dict[str, str]]:
    head, *own = (line.split(",") for line in _TABLES.get(table, ("",)))
    more = [{**dict(zip(head, line, strict=True)), **_NOTE} for line in own]
    # Of the patterns of boot disks, the first that matches decides.
    return [*more, *rows(table)] if table == "boot_disks" else [*rows(table), *more]


def _extended_lines(table: str) -> list[str]:
    more = [",".join((*line.split(","), *_NOTE.values())) for line in _TABLES.get(table, ("",))[1:]]
    return [*lines(table), *more]


for _module in (disks, resources, machines, prices):
    vars(_module).update({"rows": _extended, "lines": _extended_lines})
