"""Declarations drawn from the whole catalog and over every field that reaches a cloud, valid or not."""

import copy
import re
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.catalog.machines import attachable_types, find_machine, machine_names, retired_names
from ebbtide.declaration.model.cloud import DAYS
from ebbtide.declaration.model.declare import advice, declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import BASES, Declaration

_PART = re.compile(
    r"(pools|teams|queues)\[(\d+)\]|addons\.(\w+)"
    r"|cloud\.(network|access|existing|maintenance|keys|kubernetesVersion)"
)
_NOT_LISTED = "hardware-available-in-location"
_ROUNDS = 12

Fields = dict[str, st.SearchStrategy[Any]]


def _fields(always: Fields, optional: Fields | None = None) -> st.SearchStrategy[Declaration]:
    return st.fixed_dictionaries(always, optional=optional or {})


_GKE_CAPACITIES = ("on-demand", "spot", "preemptible", "flex-start", "queued")
_CAPACITIES = {
    "gke": st.one_of(
        st.sampled_from(_GKE_CAPACITIES),
        _fields(
            {
                "kind": st.sampled_from(["flex-start", "queued"]),
                "maxRunDuration": st.sampled_from(["10m", "1h", "7d"]),
            }
        ),
        _fields(
            {
                "kind": st.just("reservation"),
                "name": st.sampled_from(["held", "projects/acme/reservations/held"]),
            }
        ),
    ),
    "aks": st.one_of(
        st.sampled_from(["on-demand", "spot"]),
        _fields(
            {"kind": st.just("spot")},
            optional={
                "evictionPolicy": st.sampled_from(["Delete", "Deallocate"]),
                "maxPrice": st.sampled_from([-1, 0.00001, 0.98765, 40.0]),
            },
        ),
        _fields(
            {"kind": st.just("reservation")},
            optional={
                "name": st.just(
                    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/r"
                    "/providers/Microsoft.Compute/capacityReservationGroups/g"
                )
            },
        ),
    ),
}
_DISK_TYPES = {
    "gke": ["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"],
    "aks": ["managed", "ephemeral", "ephemeral"],
}
_IMAGES = {"gke": ["cos", "ubuntu"], "aks": ["ubuntu", "azure-linux"]}
_SHAPES = {
    "gke": [
        {"type": "n1-custom-12-65536", "vcpus": 12, "memoryGib": 64},
        {"type": "n2-custom-4-8192", "vcpus": 4, "memoryGib": 8},
    ],
    "aks": [
        {"type": "Standard_E32ads_v6", "vcpus": 32, "memoryGib": 256},
        {"type": "Standard_D4ds_v4", "vcpus": 4, "memoryGib": 16},
        {"type": "Standard_B4s_v2", "vcpus": 4, "memoryGib": 16},
        {"type": "Standard_L8s_v3", "vcpus": 8, "memoryGib": 64},
    ],
}
_SIZES = st.integers(1, 4200) | st.sampled_from([10, 30, 64, 75, 100, 128, 150, 256, 512, 1024, 2048, 65536])
_NODES = st.one_of(
    st.integers(1, 1000).map(lambda most: {"max": most}),
    st.tuples(st.integers(0, 5), st.integers(5, 2000)).map(lambda pair: {"min": pair[0], "max": pair[1]}),
    st.integers(1, 12).map(lambda count: {"count": count}),
)
_KEYS = ["team", "acme.example/tier", "beta.kubernetes.io/kind", "cloud.google.com/lab", "a" * 63]
_VALUES = ["", "a", "Gold_1.x", "b" * 63]
_TAINTS = st.lists(
    _fields(
        {"key": st.sampled_from(["preemptible", "acme.example/only", "CriticalAddonsOnly", "sku"])},
        optional={
            "value": st.sampled_from(["true", "lab"]),
            "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
        },
    ),
    max_size=2,
)
_UPGRADE = _fields({}, optional={"maxSurge": st.integers(0, 25), "maxUnavailable": st.integers(0, 25)})
_POOL_NAMES = {"gke": r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", "aks": r"[a-z][a-z0-9]{0,11}"}
_CLUSTER_NAMES = {
    "gke": r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?",
    "aks": r"[A-Za-z0-9]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?",
}
_TEAM_NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True) | st.sampled_from(
    ["a", "ml", "a" * 63]
)
_MEMBERS = {
    "gke": [
        "ada@acme.example",
        "group:lab@acme.example",
        "builds@acme-ml.iam.gserviceaccount.com",
        "principal://iam.googleapis.com/locations/global/workforcePools/acme-people/subject/ada",
        "principalSet://iam.googleapis.com/locations/global/workforcePools/acme-people/group/lab",
    ],
    "aks": ["11111111-2222-3333-4444-555555555555", "ada@acme.example"],
}
_NETWORK = {"nodes": "10.64.0.0/22", "pods": "10.128.0.0/14", "services": "10.65.0.0/22"}
_GKE_NETWORK = {"vpc": "shared", "subnet": "nodes", "podsRange": "pods", "servicesRange": "services"}
_AKS_NETWORK = {
    "subnet": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/shared/providers"
    "/Microsoft.Network/virtualNetworks/shared/subnets/nodes"
}
_VERSIONS = {
    "gke": ["latest", "1.31", "1.35", "1.35.0-gke.1171000", "1.28"],
    "aks": ["1.32", "1.35.1", "1.28"],
}
_KEY = "projects/acme-keys/locations/{}/keyRings/ring/cryptoKeys/key"
_TPUS = ["ct5lp-hightpu-4t", "ct6e-standard-4t", "ct6e-standard-8t"]
_TOPOLOGIES = ["1x1", "2x2", "2x4", "4x4", "4x6", "8x8", "2x8", "2x2x2", "4x4x8"]
_DATES = st.dates(date(2026, 1, 1), date(2028, 1, 1))
_PROJECTS = ["acme-ml", "acme.example:ml-lab", "a12345", "p" * 30]


@st.composite
def _maintenance(draw: st.DrawFn, cloud: str) -> Declaration:
    days = st.lists(st.sampled_from(DAYS), unique=True, max_size=7)
    scopes = ["no-upgrades", "no-minor-upgrades"] if cloud == "gke" else ["no-upgrades"]
    exclusions = [
        {
            "name": f"exclusion-{number}",
            "start": f"{start}",
            "end": f"{start + timedelta(days=draw(st.integers(0, 100)))}",
            "scope": draw(st.sampled_from(scopes)),
        }
        for number, start in enumerate(draw(st.lists(_DATES, max_size=4)))
    ]
    window = {"start": "02:00", "duration": f"{draw(st.integers(4, 24))}h", "days": draw(days)}
    return {"window": window, "exclusions": exclusions}


def _machine(cloud: str) -> st.SearchStrategy[Declaration]:
    """A machine of the catalog, one that it does not have, or a retired one; with GPUs attached or not."""
    kind = CloudKind(cloud)
    spelled = machine_names(kind) + [name.lower() for name in machine_names(kind)] * (kind is CloudKind.AKS)
    names = [*spelled, *(name for name in retired_names(kind) if name.startswith("Standard_"))]
    plain = _fields({"machine": st.sampled_from([*names, *_SHAPES[cloud]])})
    if kind is CloudKind.AKS:
        return plain
    carriers = [name for name in names if (machine := find_machine(kind, name)) and machine.attachable]
    accelerator = _fields(
        {"type": st.sampled_from(attachable_types()), "count": st.sampled_from([1, 2, 4, 8])},
        optional={"driver": st.sampled_from(["default", "latest", "none"])},
    )
    attached = _fields({"machine": st.sampled_from(carriers), "accelerator": accelerator})
    return st.one_of(plain, plain, attached)


def _zones(cloud: str, location: str) -> list[list[Any]]:
    kind = CloudKind(cloud)
    region = region_of(location) if kind is CloudKind.GKE else location
    zones = list(Locations(kind).zones(region))
    numbers: list[Any] = [[int(zone) for zone in zones]] if kind is CloudKind.AKS else []
    return [[], *([zone] for zone in zones), zones[:2], zones[:3], *numbers]


def _pool_fields(cloud: str, location: str) -> Fields:
    fields: Fields = {
        "capacity": _CAPACITIES[cloud],
        "zones": st.sampled_from(_zones(cloud, location)),
        "disk": _fields({}, optional={"sizeGib": _SIZES, "type": st.sampled_from(_DISK_TYPES[cloud])}),
        "image": st.sampled_from(_IMAGES[cloud]),
        "labels": st.dictionaries(st.sampled_from(_KEYS), st.sampled_from(_VALUES), max_size=2),
        "taints": _TAINTS,
        "maxPodsPerNode": st.integers(8, 256),
        "upgrade": _UPGRADE,
    }
    if cloud == "gke":
        fields |= {
            "locationPolicy": st.sampled_from(["balanced", "any"]),
            "serviceAccount": st.just("gpu-nodes@acme-ml.iam.gserviceaccount.com"),
            "compact": st.just(value=True),
            "shutdownGrace": st.sampled_from(["0s", "30s", "120s"]),
            "autoRepair": st.booleans(),
            "autoUpgrade": st.booleans(),
            "threadsPerCore": st.sampled_from([1, 2]),
            "gvnic": st.booleans(),
        }
    return fields


@st.composite
def _pool(draw: st.DrawFn, cloud: str, location: str, **always: Any) -> Declaration:
    """A pool with a few of the fields that it may have."""
    fields = _pool_fields(cloud, location)
    written = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=3))
    drawn = {name: draw(fields[name]) for name in written}
    if cloud == "gke" and draw(st.integers(0, 4)) == 0:
        topology = {
            "machine": draw(st.sampled_from(_TPUS)),
            "tpuTopology": draw(st.sampled_from(_TOPOLOGIES)),
        }
        return {**topology, **drawn, **always}
    return {**draw(_machine(cloud)), "nodes": draw(_NODES), **drawn, **always}


@st.composite
def _team(draw: st.DrawFn, cloud: str) -> Declaration:
    files = {"gke": "filestore", "aks": "azure-files"}[cloud]
    optional = {
        "members": st.lists(st.sampled_from(_MEMBERS[cloud]), unique=True),
        "bucket": st.sampled_from([{}, {"keep": True}, {"keep": False}]),
        "registry": st.sampled_from([{}, {"keep": True}, {"keep": False}]),
        "volume": st.sampled_from([{}, {"kind": files}, {"kind": files, "sizeGib": 2048}]),
    }
    return draw(_fields({"name": _TEAM_NAMES}, optional=optional))


@st.composite
def _cloud(draw: st.DrawFn, cloud: str) -> Declaration:
    kind = CloudKind(cloud)
    written = BASES[cloud]["cloud"] | {
        "location": draw(
            st.just(BASES[cloud]["cloud"]["location"]) | st.sampled_from(sorted(Locations(kind).names()))
        )
    }
    if cloud == "gke":
        fields: Fields = {
            "project": st.sampled_from(_PROJECTS),
            "releaseChannel": st.sampled_from(["rapid", "regular", "stable", "extended", "none"]),
            "consolidation": st.sampled_from([{"profile": "balanced"}, {}]),
            "access": st.just({"networks": ["203.0.113.0/24"]}),
            "network": st.sampled_from([_NETWORK, _GKE_NETWORK]),
            "keys": st.sampled_from([region_of(written["location"]), "global", "europe-west4"]).map(
                lambda region: {"secrets": _KEY.format(region), "disks": _KEY.format(region)}
            ),
        }
    else:
        fields = {
            "resourceGroup": st.sampled_from(["g", "rg_(train).dev", "g" * 90]),
            "tier": st.sampled_from(["free", "standard"]),
            "consolidation": st.sampled_from([{"delayMinutes": 1}, {"afterAddMinutes": 0}, {}]),
            "upgradeChannel": st.sampled_from(["rapid", "stable", "patch", "node-image", "none"]),
            "access": st.just({"networks": ["203.0.113.0/24"]}),
            "network": st.sampled_from([_NETWORK, _NETWORK | {"pods": "172.30.0.0/16"}, _AKS_NETWORK]),
        }
    fields["kubernetesVersion"] = st.sampled_from(_VERSIONS[cloud])
    fields["maintenance"] = _maintenance(cloud)
    return written | draw(_fields({}, optional=fields))


@st.composite
def catalog_declarations(draw: st.DrawFn, cloud: str) -> Declaration:
    """A declaration over the whole catalog: what is wrong in it, `accepted` takes out."""
    declaration = copy.deepcopy(BASES[cloud])
    declaration["name"] = draw(
        st.sampled_from(["train", "x", "x" * 40]) | st.from_regex(_CLUSTER_NAMES[cloud], fullmatch=True)
    )
    declaration["cloud"] = draw(_cloud(cloud))
    location = declaration["cloud"]["location"]
    names = draw(
        st.lists(st.from_regex(_POOL_NAMES[cloud], fullmatch=True), unique=True, min_size=3, max_size=8)
    )
    system = declaration["pools"][0]
    if draw(st.integers(0, 4)) == 0:
        declaration["cloud"] = BASES[cloud]["cloud"] | {"existing": {"name": "shared"}}
        location = declaration["cloud"]["location"]
        system["name"] = "admin"
    elif draw(st.booleans()):
        system = draw(_pool(cloud, location, name="system", role="system"))
    declaration["pools"] = [system, *(draw(_pool(cloud, location, name=name)) for name in names)]
    if "existing" in declaration["cloud"]:
        # Whether such a cluster is on a release channel no declaration says; the fake's is.
        for pool in declaration["pools"]:
            pool.pop("autoUpgrade", None)
    declaration["teams"] = draw(st.lists(_team(cloud), max_size=2))
    if draw(st.booleans()):
        declaration["lifetime"] = {"hours": 8}
    addons: Fields = {"drivers": st.sampled_from(["managed", "daemonset", "gpu-operator", "none"])}
    if cloud == "aks":
        addons["logs"] = st.sampled_from([{}, {"retentionDays": 730, "dailyGib": 0.023}])
    else:
        addons["pipelines"] = st.just({"artifacts": "bucket"})
    declaration["addons"] = draw(_fields({}, optional=addons))
    return declaration


def accepted(declaration: Declaration) -> Declaration | None:
    """The declaration without the parts that the rules refuse, and without pools of hardware that a warning
    says the cloud may refuse; None where nothing is left of it."""
    written = copy.deepcopy(declaration)
    for _ in range(_ROUNDS):
        try:
            cluster = declare(written)
        except DeclarationError as error:
            paths = [fault.path for fault in error.faults]
        else:
            paths = [fault.path for fault in advice(cluster) if fault.rule == _NOT_LISTED]
            if not paths:
                return written
        if not _without(written, paths):
            return None
    return None


def _without(written: Declaration, paths: list[str]) -> bool:
    """Take the parts that paths lead into out of a declaration; false where one is of the whole of it."""
    gone: dict[str, set[int]] = {}
    for path in paths:
        match = _PART.match(path)
        if match is None:
            return False
        items, index, addon, cloud = match.groups()
        if items:
            gone.setdefault(items, set()).add(int(index))
        elif addon:
            written["addons"].pop(addon, None)
        elif written["cloud"].pop(cloud, None) is None:
            return False
    for items, indices in gone.items():
        kept = [item for index, item in enumerate(written[items]) if index not in indices]
        if items == "pools" and 0 in indices:
            kind = written["cloud"]["kind"]
            if written["pools"][0] == BASES[kind]["pools"][0]:
                return False
            kept.insert(0, copy.deepcopy(BASES[kind]["pools"][0]))
        written[items] = kept
    return True
