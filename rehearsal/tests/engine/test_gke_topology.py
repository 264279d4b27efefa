"""The program on the real engine, with a fake Google Cloud and no control plane."""

import copy
from collections.abc import Generator
from pathlib import Path

import pytest
from pulumi.automation import CommandError

from ebbtide_rehearsal.cloud.store import NO_STOCK, InjectedFault
from rehearsal.tests.engine.running import OnCloud, running_on
from rehearsal.tests.unit.fake_cloud import CLUSTER_ID
from tests.declarations import GKE, Declaration, pool

pytestmark = pytest.mark.engine

MADE = [
    "train-cluster",
    "train-cpu",
    "train-identity-account",
    "train-identity-artifactregistry.reader",
    "train-identity-container.defaultNodeServiceAccount",
    "train-network-nat",
    "train-network-router",
    "train-network-subnet",
    "train-network-vpc",
    "train-system",
    "train-t4",
]


@pytest.fixture
def rehearsed(tmp_path: Path) -> Generator[OnCloud]:
    """A stack that declares nothing yet."""
    with running_on("gke", tmp_path) as made:
        yield made


@pytest.fixture
def declared() -> Declaration:
    """An ephemeral cluster with a system pool, a spot pool and a spot pool with GPUs, and nothing on it."""
    return copy.deepcopy(GKE) | {"lifetime": {"hours": 8}, "pools": copy.deepcopy(GKE["pools"][:3])}


def test_it_comes_stays_changes_and_goes(rehearsed: OnCloud, declared: Declaration) -> None:
    """Previewed, made, unchanged by a second up and by a refresh, changed in place, and gone without a
    trace."""
    stack = rehearsed.stack
    stack.declare(declared)
    assert stack.preview().steps == {"create": MADE}
    assert rehearsed.store.resources() == []

    assert stack.up().steps == {"create": MADE}
    assert stack.outputs()["clusterName"] == "train"
    assert rehearsed.planes.endpoint(CLUSTER_ID).host in stack.outputs()["kubeconfig"]
    assert {resource.id for resource in rehearsed.store.resources("nodes")} == {
        f"{CLUSTER_ID}/{name}" for name in ("system", "cpu", "t4")
    }

    assert stack.preview().changed == {}
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    assert stack.up().changed == {}

    pool(declared, "cpu")["nodes"] = {"max": 20}
    pool(declared, "t4")["labels"] = {"team": "vision"}
    stack.declare(declared)
    assert stack.preview().changed == {"update": ["train-cpu", "train-t4"]}
    assert stack.up().changed == {"update": ["train-cpu", "train-t4"]}
    changed = rehearsed.store.get("nodes", f"{CLUSTER_ID}/cpu")
    assert changed is not None
    assert changed.state["maximum"] == 20

    assert stack.destroy().steps == {"delete": MADE}
    assert rehearsed.store.resources() == []
    assert rehearsed.planes.running == {}


def test_gpu_networks_come_and_go_around_their_pool(rehearsed: OnCloud, declared: Declaration) -> None:
    """Networks of GPU NICs are created before the pool that uses them, on a cluster that exists, and deleted
    after it; the cluster keeps multi-networking, and nothing is left at the end."""
    stack = rehearsed.stack
    stack.declare(declared)
    stack.up()
    gpus = {"name": "h200", "machine": "a3-ultragpu-8g", "gpuDirect": "rdma", "nodes": {"max": 2}}
    stack.declare(declared | {"pools": [*declared["pools"], {**gpus, "capacity": "spot"}]})
    changed = stack.up().changed
    assert changed["update"] == ["train-cluster"]
    assert {"train-gpu-rdma", "train-gpu-rdma-7-subnet", "train-h200"} <= {*changed["create"]}
    assert stack.up().changed == {}
    stack.declare(declared)
    assert stack.up().changed == {"delete": changed["create"]}
    assert stack.destroy().steps == {"delete": MADE}
    assert rehearsed.store.resources() == []


def test_keys_of_stored_data(rehearsed: OnCloud, declared: Declaration) -> None:
    """Another key for a registry is refused in the preview; the grants alone remain after a destroy."""
    stack = rehearsed.stack
    ring = "projects/acme-keys/locations/us-central1/keyRings/ml/cryptoKeys"
    declared["teams"] = [{"name": "vision", "bucket": {}, "registry": {}}]
    declared["cloud"]["keys"] = {"buckets": f"{ring}/data", "registries": f"{ring}/images"}
    stack.declare(declared)
    stack.up()
    assert stack.up().changed == {}
    declared["cloud"]["keys"]["registries"] = f"{ring}/others"
    stack.declare(declared)
    with pytest.raises(CommandError, match="only a new registry can have it"):
        stack.preview()
    stack.destroy()
    left = {(item.type, item.inputs["cryptoKeyId"]) for item in rehearsed.store.resources()}
    assert left == {
        ("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember", f"{ring}/{key}") for key in ("data", "images")
    }


@pytest.mark.long
def test_a_spot_pool_after_the_cloud_has_marked_it(rehearsed: OnCloud, declared: Declaration) -> None:
    """The cloud's own label and taint on a spot pool replace nothing, refreshed or not
    (hashicorp/terraform-provider-google#7928)."""
    stack = rehearsed.stack
    stack.declare(declared)
    stack.up()
    spot = rehearsed.store.get("gcp", f"{CLUSTER_ID}/nodePools/cpu")
    assert spot is not None
    config = spot.state["nodeConfig"]
    mark = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}
    rehearsed.store.put(
        spot.having(
            nodeConfig={
                **config,
                "labels": {**config["labels"], "cloud.google.com/gke-spot": "true"},
                "effectiveTaints": [*config["effectiveTaints"], mark],
            }
        )
    )

    assert stack.up().changed == {}
    stack.refresh()
    assert stack.preview().changed.keys() <= {"update"}
    stack.up()
    assert stack.refresh().changed == {}


def test_what_only_a_new_pool_can_have_is_refused(rehearsed: OnCloud, declared: Declaration) -> None:
    """In the preview already, and nothing is deleted."""
    stack = rehearsed.stack
    stack.declare(declared)
    stack.up()
    before = rehearsed.store.resources()
    pool(declared, "cpu")["capacity"] = "on-demand"
    stack.declare(declared)
    for run in (stack.preview, stack.up):
        with pytest.raises(CommandError, match=r"capacity \(nodeConfig.spot\) from true to false"):
            run()
    assert rehearsed.store.resources() == before


@pytest.mark.long
def test_a_pool_whose_first_nodes_do_not_come(rehearsed: OnCloud, declared: Declaration) -> None:
    """A pool without its first nodes is in the engine's state, and the next up continues with it."""
    stack = rehearsed.stack
    stack.declare(declared)
    sold_out = rehearsed.store.inject(InjectedFault(NO_STOCK, "system"))
    with pytest.raises(CommandError, match="NodePool system was created in the error state"):
        stack.up()
    rehearsed.store.remove_fault(sold_out)
    assert stack.up().changed.get("update") == ["train-system"]
    assert stack.up().changed == {}
