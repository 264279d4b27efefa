"""Changes of existing pools that GKE cannot make: refused before the update, with what to write instead."""

import copy
from typing import Any

import pulumi
import pytest

from components.aks.node_pool import POOLS as AKS_POOLS
from components.gke.node_pool import POOLS
from components.replacement import ImmutableInputError, ImmutableInputs
from ebbtide.declaration.model.base import POOL_TYPES
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import properties, properties_of
from ebbtide.values.paths import is_within, value_at
from ebbtide_rehearsal.cloud.ids import NODE_POOL, SUBNETWORK
from tests.declarations import AKS, GKE, Declaration, only, pool
from tests.synth import synth

HOOK = {"before_update": ("ebbtide:gke:fixed-pool-inputs",)}
T4 = {"type": "nvidia-tesla-t4", "count": 1}


def _inputs(declaration: Declaration) -> dict[str, Any]:
    return dict(synth(declaration).named("train-work", "ebbtide:gke:NodePool").inputs)


def _hooked(old: Declaration, new: Declaration) -> None:
    """The hook, called as the engine calls it."""
    args = pulumi.ResourceHookArgs(
        urn="u", id="", name="n", type="t", old_inputs=_inputs(old), new_inputs=_inputs(new)
    )
    POOLS.refuse(args)


CPU = only(GKE, machine="n2-standard-8")
AMD = only(GKE, machine="n2d-standard-4")
SPOT = only(GKE, machine="n2-standard-8", capacity="spot")
GPU = only(GKE, machine="n1-standard-8", accelerator=T4, capacity="spot")


def _work(declaration: Declaration, **changes: Any) -> Declaration:
    after = copy.deepcopy(declaration)
    pool(after, "work").update(changes)
    return after


def _keyed(declaration: Declaration, key: str) -> Declaration:
    after = copy.deepcopy(declaration)
    ring = "projects/acme-ml/locations/us-central1/keyRings/ml/cryptoKeys"
    after["cloud"]["keys"] = {"disks": f"{ring}/{key}"}
    return after


REFUSED: list[tuple[Declaration, Declaration, str]] = [
    (SPOT, CPU, "capacity (nodeConfig.spot) from true to false."),
    (CPU, SPOT, "capacity (nodeConfig.spot) from false to true."),
    (SPOT, _work(SPOT, capacity="preemptible"), "capacity (nodeConfig.preemptible) from false to true."),
    (
        CPU,
        _work(CPU, capacity={"kind": "reservation", "name": "held"}),
        "capacity (nodeConfig.reservationAffinity) from none to ",
    ),
    (GPU, _work(GPU, accelerator=T4 | {"count": 2}), "accelerator (nodeConfig.guestAccelerators) from "),
    (GPU, _work(GPU, accelerator=T4 | {"driver": "latest"}), "accelerator (nodeConfig.guestAccelerators)"),
    (CPU, _work(CPU, maxPodsPerNode=32), "maxPodsPerNode (maxPodsPerNode) from none to 32."),
    (
        CPU,
        _work(CPU, serviceAccount="gpu-nodes@acme-ml.iam.gserviceaccount.com"),
        "serviceAccount (nodeConfig.",
    ),
    (CPU, _work(CPU, compact=True), "compact (placementPolicy) from none to COMPACT."),
    (_keyed(CPU, "one"), _keyed(CPU, "two"), "cloud.keys.disks (nodeConfig.bootDiskKmsKey)"),
    (
        CPU,
        _work(CPU, overrides={"nodeConfig": {"minCpuPlatform": "Intel Ice Lake"}}),
        "overrides.nodeConfig.minCpuPlatform (nodeConfig.minCpuPlatform) from none to Intel Ice Lake.",
    ),
    (
        AMD,
        _work(AMD, overrides={"nodeConfig": {"confidentialNodes": {"confidentialInstanceType": "SEV"}}}),
        "(nodeConfig.confidentialNodes.confidentialInstanceType) from none to SEV.",
    ),
    (
        CPU,
        _work(
            CPU, overrides={"nodeConfig": {"shieldedInstanceConfig": {"enableIntegrityMonitoring": False}}}
        ),
        "(nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring) from true to false.",
    ),
    (CPU, _work(CPU, threadsPerCore=1), "threadsPerCore (nodeConfig.advancedMachineFeatures.threadsPerCore)"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_change_that_would_delete_the_pool_is_refused(
    old: Declaration, new: Declaration, message: str
) -> None:
    """With its name in the declaration, and what to write instead."""
    with pytest.raises(ImmutableInputError) as refused:
        _hooked(old, new)
    error = str(refused.value)
    assert error.startswith("GKE cannot change these fields of the node pool work: ")
    assert message in error
    assert error.endswith(
        f"The pool would have to be deleted with its workloads. `ebbtide up {pulumi.get_stack()}` creates "
        "the new pool beside it, lets its work finish, and then deletes it."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"machine": "n2-standard-16"},
        {"disk": {"sizeGib": 200}},
        {"nodes": {"max": 9}},
        {"labels": {"a": "b"}, "taints": [{"key": "a"}], "networkTags": ["a"]},
        {"zones": ["us-central1-b"]},
        {"image": "ubuntu", "autoRepair": False, "upgrade": {"maxSurge": 2}},
        {"overrides": {"nodeConfig": {"kubeletConfig": {"podPidsLimit": 4096}}}},
    ],
    ids=", ".join,
)
def test_a_change_that_keeps_the_pool_passes(changes: dict[str, Any]) -> None:
    """GKE makes it in place, or makes the nodes anew a few at a time."""
    _hooked(CPU, _work(CPU, **changes))


def test_a_pool_of_an_older_program_is_not_refused() -> None:
    """A pool whose component recorded no inputs is accepted, because its earlier inputs are unknown."""
    args = pulumi.ResourceHookArgs(
        urn="u", id="", name="n", type="t", old_inputs={}, new_inputs=_inputs(SPOT)
    )
    POOLS.refuse(args)


def test_whole_numbers_are_floats_to_the_engine() -> None:
    """An accelerator's count comes back as another type."""
    old = _inputs(GPU)
    old["guestAccelerators"] = [{**old["guestAccelerators"][0], "count": 1.0}]
    assert POOLS.changes(old, _inputs(GPU)) == ()


def test_the_system_pool_is_renamed() -> None:
    """The new pool exists before the old one is deleted, without the command line."""
    old = {"name": "system", "mode": "System", "spot": True}
    args = pulumi.ResourceHookArgs(
        urn="u", id="", name="n", type="t", old_inputs=old, new_inputs=old | {"spot": False}
    )
    with pytest.raises(
        ImmutableInputError, match="with another name: the new pool is created before system is"
    ):
        POOLS.refuse(args)


def test_every_pool_is_guarded_by_the_one_hook() -> None:
    """A destroy needs no hook."""
    guarded = {item.name: item for item in synth(GKE) if item.hooks and item.type != SUBNETWORK}
    assert set(guarded) == {"train-system", "train-cpu", "train-t4", "train-a100"}
    for item in guarded.values():
        assert not item.custom
        assert dict(item.hooks) == HOOK


@pytest.mark.parametrize("row", POOLS.rows, ids=lambda row: row.wire)
def test_the_table_names_inputs_that_replace_a_pool(row: Any) -> None:
    """Each is one that the SDK has, and that the provider replaces a pool for, as the fake cloud knows."""
    assert row.wire in constraints_of(NODE_POOL).replaces
    known = properties(NODE_POOL)
    for wire, python in zip(row.wire.split("."), row.python.split("."), strict=True):
        assert known[wire].python == python
        if wire in ("nodeConfig", "networkConfig", "shieldedInstanceConfig", "advancedMachineFeatures"):
            known = properties_of(known[wire].hint)


@pytest.mark.parametrize("pools", [POOLS, AKS_POOLS], ids=lambda pools: pools.cloud)
def test_every_input_that_replaces_a_pool_is_compared(pools: ImmutableInputs) -> None:
    """A path of the schema is one of a row, an exception with its reason, or compared in overrides."""
    assert pools.exceptions.keys() <= constraints_of(POOL_TYPES[pools.cloud]).replaces
    assert pools.constants.keys() <= set(pools.overridable())
    for path in pools.overridable():
        value: Any = "changed"
        for key in reversed(path.split(".")):
            value = {key: value}
        (change,) = pools.changes({"mode": "User"}, {"mode": "User", "overrides": value})
        assert is_within(path, change.field.wire)


@pytest.mark.parametrize(("pools", "declaration"), [(POOLS, GKE), (AKS_POOLS, AKS)], ids=["gke", "aks"])
def test_overrides_alone_set_what_has_no_row(pools: ImmutableInputs, declaration: Declaration) -> None:
    """The program's pools have no value at such a path, or the constant."""
    for resource in synth(declaration).of_type(POOL_TYPES[pools.cloud]):
        for path in pools.overridable():
            assert value_at(dict(resource.inputs), path) == pools.constants.get(path), path
