"""Declarations for tests: two small ones to start from, and generated ones of every valid form."""

import copy
from typing import Any

from hypothesis import strategies as st

Declaration = dict[str, Any]

GKE: Declaration = {
    "name": "train",
    "owner": "vision-team",
    "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-a"},
    "pools": [
        {"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"max": 3}},
        {"name": "cpu", "machine": "n2-standard-8", "capacity": "spot", "nodes": {"max": 10}},
        {
            "name": "t4",
            "machine": "n1-highmem-8",
            "accelerator": {"type": "nvidia-tesla-t4", "count": 4},
            "capacity": "spot",
            "nodes": {"max": 4},
        },
        {
            "name": "a100",
            "machine": "a2-highgpu-1g",
            "capacity": {"kind": "queued", "maxRunDuration": "7d"},
            "nodes": {"max": 10},
        },
    ],
}

AKS: Declaration = {
    "name": "train",
    "owner": "vision-team",
    "cloud": {"kind": "aks", "subscription": "00000000-0000-0000-0000-000000000001", "location": "eastus"},
    "pools": [
        {"name": "system", "role": "system", "machine": "Standard_D4s_v5", "nodes": {"max": 4}},
        {"name": "cpu", "machine": "Standard_D8s_v5", "capacity": "spot", "nodes": {"max": 10}},
        {"name": "t4", "machine": "Standard_NC4as_T4_v3", "capacity": "spot", "nodes": {"max": 4}},
        {"name": "steady", "machine": "Standard_D8s_v5", "nodes": {"max": 2}},
    ],
}

BASES = {"gke": GKE, "aks": AKS}


def pool(declaration: Declaration, name: str) -> Declaration:
    """One pool of a declaration, to change in place."""
    return next(item for item in declaration["pools"] if item["name"] == name)


def changed(declaration: Declaration, **changes: Any) -> Declaration:
    """A copy of a declaration with other top-level fields."""
    return copy.deepcopy(declaration) | changes


def only(declaration: Declaration, **work_pool: Any) -> Declaration:
    """A copy of a declaration whose one work pool is `work`, made as given."""
    system = copy.deepcopy(declaration["pools"][0])
    return changed(declaration, pools=[system, {"name": "work", "nodes": {"max": 2}} | work_pool])


_GKE_CPU = st.sampled_from(["e2-standard-8", "n2-standard-8", "n2d-standard-16", "c3-standard-8"])
_GKE_GPU = st.sampled_from(
    [
        {"machine": "n1-highmem-8", "accelerator": {"type": "nvidia-tesla-t4", "count": 4}},
        {"machine": "n1-standard-4", "accelerator": {"type": "nvidia-tesla-t4", "driver": "latest"}},
        {"machine": "n1-standard-8", "accelerator": {"type": "nvidia-tesla-v100"}},
        {"machine": "g2-standard-8"},
        {"machine": "a2-highgpu-1g"},
    ]
)
_AKS_MACHINES = st.sampled_from(
    [
        {"machine": "Standard_D8s_v5"},
        {"machine": "Standard_E8s_v5"},
        {"machine": "Standard_NC4as_T4_v3"},
        {"machine": "Standard_NC24ads_A100_v4"},
    ]
)

_RUN = st.sampled_from([{}, {"maxRunDuration": "12h"}, {"maxRunDuration": "7d"}])
_GKE_CAPACITIES = st.one_of(
    st.sampled_from([{"kind": "on-demand"}, {"kind": "spot"}, {"kind": "preemptible"}]),
    st.just({"kind": "reservation", "name": "held-for-us"}),
)
_GKE_SCHEDULED = st.one_of(
    _RUN.map(lambda run: {"kind": "flex-start", **run}), _RUN.map(lambda run: {"kind": "queued", **run})
)
_GKE_HARDWARE = st.one_of(
    st.tuples(_GKE_CPU.map(lambda name: {"machine": name}), _GKE_CAPACITIES),
    st.tuples(_GKE_GPU, st.one_of(_GKE_CAPACITIES, _GKE_SCHEDULED)),
)
_AKS_CAPACITIES = st.one_of(
    st.just({"kind": "on-demand"}),
    st.sampled_from([{}, {"maxPrice": -1}, {"maxPrice": 0.25}, {"evictionPolicy": "Delete"}]).map(
        lambda given: {"kind": "spot", **given}
    ),
)
_AKS_HARDWARE = st.tuples(_AKS_MACHINES, _AKS_CAPACITIES)

_LABELS = st.dictionaries(
    st.sampled_from(["team", "acme.example/tier"]), st.sampled_from(["a", "gold"]), max_size=2
)
_TAINTS = st.sampled_from(
    [
        None,
        [{"key": "preemptible", "value": "true"}],
        [{"key": "dedicated", "value": "lab"}, {"key": "keep-out", "effect": "NoExecute"}],
    ]
)


@st.composite
def _work_pool(draw: st.DrawFn, name: str, cloud: str) -> Declaration:
    hardware, zones = (
        (_GKE_HARDWARE, [[], ["us-central1-a"], ["us-central1-a", "us-central1-c"]])
        if cloud == "gke"
        else (_AKS_HARDWARE, [[], ["1"], ["1", "2", "3"]])
    )
    machine, capacity = draw(hardware)
    pool: Declaration = {
        "name": name,
        **machine,
        "capacity": capacity,
        "nodes": {"max": draw(st.integers(1, 50))},
        "zones": draw(st.sampled_from(zones)),
        "labels": draw(_LABELS),
    }
    taints = draw(_TAINTS)
    if taints is not None:
        pool["taints"] = taints
    return pool


@st.composite
def declarations(draw: st.DrawFn, cloud: str | None = None) -> Declaration:
    """A valid declaration: either cloud, permanent or ephemeral, any work pools."""
    kind = cloud or draw(st.sampled_from(["gke", "aks"]))
    declaration = copy.deepcopy(BASES[kind])
    names = draw(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True), unique=True, max_size=5))
    declaration["pools"] = [declaration["pools"][0]] + [
        draw(_work_pool(name, kind)) for name in names if name != "system"
    ]
    if draw(st.booleans()):
        declaration["lifetime"] = {"hours": draw(st.integers(1, 72))}
    if kind == "gke" and draw(st.booleans()):
        declaration["cloud"]["location"] = "us-central1"
    return declaration
