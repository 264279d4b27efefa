"""Allocatable resources of nodes, as the clouds report them."""

import pytest

from components.addons.patches import has_pods
from ebbtide.declaration.catalog.machines import Machine
from ebbtide.declaration.catalog.resources import NodeSettings, footprint
from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind
from tests.manifests import KATIB, PIPELINES, PIPELINES_CLUSTER, mebibytes, requests
from tests.unit.components.addons.patched import KUSTOMIZED

_GKE, _AKS = CloudKind.GKE, CloudKind.AKS


def _machine(cloud: CloudKind, vcpus: int, memory_gib: float) -> Machine:
    return Machine(cloud, "custom", vcpus, memory_gib, "n2")


@pytest.mark.parametrize(
    ("vcpus", "gib", "cpu_m", "memory_kib"),
    [(4, 32, 3920, 29_085_928), (16, 128, 15_890, 122_210_676), (64, 512, 63_770, 510_603_916)],
)
def test_reported_by_gke(vcpus: int, gib: int, cpu_m: int, memory_kib: int) -> None:
    """The CPU that n2-highmem nodes reported, and at most their memory (2i2c-org/infrastructure#2121)."""
    has = _machine(_GKE, vcpus, gib).allocatable()
    assert has.cpu_m == cpu_m
    assert 0 <= memory_kib / 1024 - has.memory_mib < 32


@pytest.mark.parametrize(("mib", "more"), [(600, 0), (2000, 20), (8000, 72), (200_000, 430)])
def test_image_streaming(mib: int, more: int) -> None:
    """GKE reserves the memory of its autoscaler's own cases (reserved_test.go, 7d250507)."""
    machine = _machine(_GKE, 4, mib / 1024)
    streamed = machine.allocatable(NodeSettings(image_streaming=True))
    assert machine.allocatable().memory_mib - streamed.memory_mib == pytest.approx(more, abs=1)


@pytest.mark.parametrize(("pods", "reserved"), [(None, 90), (32, 90), (110, 90), (111, 490), (256, 490)])
def test_many_pods_on_gke(pods: int | None, reserved: int) -> None:
    """GKE reserves 400 m more for over 110 pods (reserved_test.go, 7d250507)."""
    assert 8000 - _machine(_GKE, 8, 32).allocatable(NodeSettings(pods)).cpu_m == reserved


@pytest.mark.parametrize(("pods", "reserved"), [(None, 5050), (250, 5050), (110, 2250), (30, 650)])
def test_pods_on_aks(pods: int | None, reserved: int) -> None:
    """AKS reserves 20 MB for each pod that a node may have, and 50 MB."""
    machine, fewest = _machine(_AKS, 8, 64), NodeSettings(10)
    has = machine.allocatable(NodeSettings(pods))
    assert machine.allocatable(fewest).memory_mib - has.memory_mib == reserved - 250


@pytest.mark.parametrize(("gib", "capacity_kib"), [(4, 4_025_836), (16, 16_403_296)])
def test_kernel_on_aks(gib: int, capacity_kib: int) -> None:
    """No more is allocatable than nodes' capacity leaves (Azure/AKS#3525, #1216)."""
    assert _machine(_AKS, 4, gib).allocatable().memory_mib <= capacity_kib / 1024 - gib * 256 - 100


@pytest.mark.released(PIPELINES_CLUSTER, PIPELINES, KATIB)
@pytest.mark.parametrize("addon", KUSTOMIZED)
def test_a_footprint_is_what_the_objects_say(addon: str) -> None:
    """Requests, pods, disks, load balancers and webhooks are those of the rendered kustomization."""
    made = KUSTOMIZED[addon].objects().items()
    all_requests = [requests(item) for _, item in made]
    entry = footprint(addon)
    assert entry.requests.cpu_m == sum(cpu for cpu, _ in all_requests)
    assert entry.requests.memory_mib == sum(memory for _, memory in all_requests)
    pod_requests = [requests(item) for _, item in made if has_pods(item)]
    assert (entry.most.cpu_m, entry.most.memory_mib) == tuple(map(max, zip(*pod_requests, strict=True)))
    assert entry.pods == sum(item["spec"].get("replicas", 1) for _, item in made if has_pods(item))
    assert sorted(entry.volumes_gib) == sorted(
        mebibytes(item["spec"]["resources"]["requests"]["storage"]) / 1024
        for key, item in made
        if key.startswith("PersistentVolumeClaim/")
    )
    assert entry.load_balancers == len(
        [
            item
            for key, item in made
            if key.startswith("Service/") and item["spec"].get("type") == "LoadBalancer"
        ]
    )
    assert entry.webhooks == len([key for key, _ in made if "WebhookConfiguration/" in key])
    assert entry.verified


@pytest.mark.parametrize("row", rows("footprints"), ids=lambda row: row["item"])
def test_every_footprint_is_sourced(row: dict[str, str]) -> None:
    """Each says when and where it was read, and what it is can be read back."""
    assert row["as_of"]
    assert row["source"]
    assert footprint(row["item"]).requests.cpu_m > 0
    assert footprint(row["item"]).requests.holds(footprint(row["item"]).most)
    assert (footprint(row["item"]).most.cpu_m > 0) != row["item"].endswith(("-node", "-daemonset"))


@pytest.mark.parametrize("addon", ["kueue", "pipelines", "trainer", "katib"])
def test_what_a_preview_cannot_see_is_counted(addon: str) -> None:
    """Every chart and kustomization has its pods counted, since a preview shows one resource for it."""
    assert footprint(addon).pods
