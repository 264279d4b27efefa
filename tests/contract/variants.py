"""Flips of fields to further values, on further clusters: what these change is in `changes.txt` as well."""

from itertools import product

from tests.contract.cloud_flips import GKE_VPC, SUBNET, VAULT
from tests.contract.flips import (
    AKS_CPU,
    AKS_EXISTING,
    AKS_SPOT,
    GKE_CPU,
    GKE_EXISTING,
    GKE_GPU,
    GKE_SPOT,
    Flip,
    flip,
    with_value,
    work,
)
from tests.contract.pool_flips import GROUP, PERIOD
from tests.contract.tenancy_flips import AKS_ROOMY, TEAM
from tests.declarations import AKS, GKE, changed, only

_ZONE = f"{SUBNET.partition('/virtualNetworks/')[0]}/privateDnsZones/privatelink.eastus.azmk8s.io"
_AKS_SUBNET = with_value(AKS, "cloud.network", {"subnet": SUBNET})
_REGIONAL = with_value(GKE_CPU, "cloud.location", "us-central1")
_OVERNIGHT = {
    "window": {"days": ["sunday", "saturday"], "start": "22:00", "duration": "6h"},
    "exclusions": [{"name": "nodes", "start": "2026-12-20", "scope": "no-minor-or-node-upgrades"}],
}
_HELD = [
    {
        "name": name,
        "machine": "Standard_D8s_v5",
        "nodes": {"max": 2},
        "capacity": {"kind": "reservation", "name": GROUP + name},
    }
    for name in ("one", "two")
]
_PLAIN = {"name": "vision"}
_THEIRS = {"name": "theirs", "create": False}
_STEPS = {"name": "vision", "namespace": {"name": "kubeflow", "create": False}, "volume": {}}
_WITH_PIPELINES = changed(GKE, addons={"pipelines": {"artifacts": "bucket"}})
_WITH_THEIR_PIPELINES = changed(GKE_EXISTING, addons={"pipelines": {"existing": True, "retry": "any"}})
_RESERVED = {"kind": "reservation"} | PERIOD

_GKE = [
    flip("Cluster.teams", GKE_EXISTING, "teams", [{"name": "vision"}]),
    flip("GkeAccess.private", GKE, "cloud.access", {"private": True, "networks": ["10.60.0.0/16"]}),
    *(
        flip("Gke.maintenance", GKE, "cloud.maintenance", maintenance)
        for maintenance in (_OVERNIGHT, {"window": {"start": "02:00", "duration": "4h"}})
    ),
    *(
        Flip("Pool.machine", GKE_CPU, only(GKE, machine=machine, capacity="spot"))
        for machine in ("c3-standard-8", "ct5lp-hightpu-1t")
    ),
    Flip(
        "Accelerator.driver",
        GKE_GPU,
        with_value(changed(GKE_GPU, addons={"drivers": "none"}), "pools.1.accelerator.driver", "none"),
    ),
    work("Pool.image", GKE_GPU, "image", "ubuntu"),
    work("Reservation.kind", only(GKE, machine="a3-megagpu-8g"), "capacity", _RESERVED),
    *(
        work("Nodes.min", with_value(_REGIONAL, "pools.1.zones", zones), "nodes", {"min": least, "max": most})
        for zones, least, most in (
            *(([], least, most) for least, most in ((3, 9), (4, 9), (1, 1))),
            (["us-central1-a", "us-central1-c"], 3, 9),
        )
    ),
    *(
        work(f"Pool.{field}", only(GKE, machine="a3-highgpu-8g"), key, {})
        for field, key in (
            ("ephemeral_storage_local_ssd_config", "ephemeralStorageLocalSsdConfig"),
            ("local_nvme_ssd_block_config", "localNvmeSsdBlockConfig"),
        )
    ),
    work("Pool.labels", GKE_CPU, "labels", {"cloud.google.com/gke-smt-disabled": "true"}),
    work(
        "Pool.network_tags",
        with_value(GKE_CPU, "cloud.networkTags", ["ml", "no-egress"]),
        "networkTags",
        ["allow-ssh", "ml"],
    ),
    work("Pool.gpu_direct", only(GKE, machine="a3-megagpu-8g", capacity="spot"), "gpuDirect", "tcpxo"),
    Flip("Pool.tpu_topology", GKE_CPU, only(GKE, machine="ct5lp-hightpu-4t", tpuTopology="2x2")),
    work("Pool.shutdown_grace", GKE_SPOT, "shutdownGrace", "0s"),
    work(
        "Pool.overrides",
        only(GKE, machine="c2-standard-8", compact=True),
        "overrides",
        {"placementPolicy": {"policyName": "nvl72"}},
    ),
]
_AKS = [
    flip("Aks.tier", AKS, "cloud.tier", "premium"),
    flip("Aks.upgrade_channel", AKS, "cloud.upgradeChannel", "none"),
    flip(
        "AksAccess.private_dns_zone",
        _AKS_SUBNET,
        "cloud.access",
        {"private": True, "privateDnsZone": _ZONE},
        {"private": True},
    ),
    flip("AksNetwork.services", AKS, "cloud.network.services", "172.20.4.0/29"),
    Flip("Reservation.name", AKS_CPU, changed(AKS, pools=[AKS["pools"][0], *_HELD])),
    *(
        flip(
            f"AksKeys.{data}",
            changed(AKS, teams=[{"name": "vision", kind: {"keep": False}}]),
            "cloud.keys",
            {data: f"https://ours.vault.azure.net/keys/{data}/0123", "vault": VAULT},
        )
        for data, kind in (("buckets", "bucket"), ("registries", "registry"))
    ),
    flip("Cluster.pools", AKS_EXISTING, "pools", [AKS["pools"][0], *AKS_EXISTING["pools"]]),
    work("Pool.taints", AKS_SPOT, "taints", [{"key": "lab", "effect": "NoExecute"}]),
    flip("Addons.pipelines", AKS_ROOMY, "addons.pipelines", {}),
]
_TEAMS = [
    *(flip("Team.namespace", base, "teams", [_STEPS]) for base in (GKE, AKS, _WITH_PIPELINES)),
    *(
        flip("Team.namespace", TEAM, "teams", [{"name": "vision", "namespace": _THEIRS} | fields])
        for fields in ({}, {"requireQueue": True, "limits": {"jobs": 10}})
    ),
    flip("Cluster.queues", _WITH_THEIR_PIPELINES, "queues", [{"name": "work", "pools": ["work"]}]),
    *(
        flip("Team.volume", changed(base, teams=[{"name": "vision"}]), "teams.0.volume", {"kind": kind})
        for base, kind in (
            (GKE_EXISTING, "filestore"),
            (GKE_VPC, "filestore"),
            (_AKS_SUBNET, "azure-files"),
            (AKS, "azure-files"),
        )
    ),
    *(
        flip(
            "Team.bucket", base | {"lifetime": {"hours": 8}}, "teams", [{"name": "vision", "bucket": bucket}]
        )
        for base, bucket in product((GKE, AKS), ({}, {"keep": True}))
    ),
    flip("Team.bucket", AKS, "teams", [{"name": "vision", "bucket": {"keep": False}}]),
]
VARIANTS = [*_GKE, *_AKS, *_TEAMS]
