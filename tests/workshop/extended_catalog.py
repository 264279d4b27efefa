"""A plugin of pytest: the catalog with rows as a contributor would add them.

Machine types of known families and of new ones, an accelerator that is part of a machine and one that is
attached to N1, with prices and quotas, on both clouds. Sizes are the clouds' own; prices are made up, some of
them lower than any other.
"""

from ebbtide.catalog import footprints, machines, prices, quotas
from ebbtide.catalog.tables import rows

_TABLES = {
    "machines": (
        "cloud,machine_type,vcpus,memory_gib,gpu_type,gpu_count,gpu_memory_gib,family,attachable_gpus",
        "gke,n2-standard-48,48,192,,0,,n2,no",
        "gke,t2d-standard-1,1,4,,0,,t2d,no",
        "gke,n4-standard-2,2,8,,0,,n4,no",
        "gke,n4-standard-4,4,16,,0,,n4,no",
        "gke,n4-standard-8,8,32,,0,,n4,no",
        "gke,a4x-highgpu-4g,140,884,nvidia-gb200,4,186,a4x,no",
        "aks,Standard_D4as_v6,4,16,,0,,Dasv6,no",
        "aks,Standard_D4als_v6,4,8,,0,,Dalsv6,no",
        "aks,Standard_ND96isr_MI300X_v5,96,1850,amd-mi300x,8,192,ND_MI300X_v5,no",
    ),
    "attachable": (
        "machine_family,accelerator,count,gpu_memory_gib,max_vcpus,max_memory_gib",
        "n1,nvidia-tesla-t9,1,24,48,312",
    ),
    "prices": (
        "cloud,region,item,usd_per_hour_on_demand,usd_per_hour_spot,usd_per_hour_flex,note",
        "gke,us-central1,n2-standard-48,2.33,1.11,,",
        "gke,us-central1,t2d-standard-1,0.012,0.005,,",
        "gke,us-central1,n4-standard-2,0.06,0.04,,",
        "gke,us-central1,n4-standard-4,0.12,0.08,,",
        "gke,us-central1,a4x-highgpu-4g,60,,,",
        "gke,us-central1,gpu:nvidia-tesla-t9,0.5,0.2,,",
        "aks,westeurope,Standard_D4as_v6,0.2,0.05,,",
        "aks,eastus,Standard_D4als_v6,0.15,0.04,,",
        "aks,westeurope,Standard_D4als_v6,0.16,0.04,,",
        "aks,eastus,Standard_ND96isr_MI300X_v5,48,,,",
    ),
    "quotas": (
        "cloud,family,accelerator,on_demand,spot",
        "gke,n4,,N4_CPUS,N4_CPUS",
        "aks,Dasv6,,standardDasv6Family,lowPriorityCores",
    ),
}
_NOTE = {"as_of": "2026-11", "source": "made up"}


def _extended(table: str) -> list[dict[str, str]]:
    head, *lines = (line.split(",") for line in _TABLES.get(table, ("",)))
    return [*rows(table), *({**dict(zip(head, line, strict=True)), **_NOTE} for line in lines)]


for _module in (footprints, machines, prices, quotas):
    vars(_module)["rows"] = _extended
