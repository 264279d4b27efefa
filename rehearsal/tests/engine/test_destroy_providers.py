"""A whole stack of each cloud, made by the real engine on a fake cloud and destroyed by `ebbtide destroy`'s
operation, which asks the same fake cloud what is left."""

import copy
import io
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ebbtide.clients.clouds import azure_inventory, google_inventory
from ebbtide.operations.ending.destroy import DestroyOutcome, Options, destroy
from ebbtide.operations.engine.stack import Stack as Opened
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.rest.google_clusters import uid_of
from ebbtide_rehearsal.cloud.store import Resource
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.running import Stack, running
from rehearsal.tests.unit.rest_clouds import RestClouds, rest_clouds
from rehearsal.tests.unit.test_rest_inventory import GLOBAL, put_balancer, put_disk, put_others
from tests.declarations import AKS, GKE, Declaration

pytestmark = pytest.mark.engine

_LIFETIME = {"lifetime": {"hours": 8}}
_BALANCER = "a0d2c6f9e52f64fd19d573f1f0d5a8a1"


@dataclass(frozen=True, slots=True)
class Made:
    """A stack, and the clouds behind it."""

    stack: Stack
    clouds: RestClouds

    def up(self, declaration: Declaration) -> None:
        """Make the declared stack."""
        self.stack.declare(declaration)
        self.stack.up()

    def destroy(self, **options: Any) -> tuple[DestroyOutcome | None, str]:
        """Destroy it; the result and the output."""
        out = io.StringIO()
        opened = Opened("test", self.stack.automation, None)
        chosen = Options(config_file="Pulumi.test.yaml", confirm=lambda _: True, **options)
        return destroy(opened, chosen, Console(file=out, width=80)), out.getvalue()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Made]:
    """A stack that declares nothing yet."""
    for module in (google_inventory, azure_inventory):
        monkeypatch.setattr(module, "_POLL", 0.0)
    with rest_clouds(tmp_path, monkeypatch) as clouds:
        planes = FakeControlPlanes()
        providers = (
            FakeProvider("gcp", clouds.store, planes),
            FakeProvider("azure-native", clouds.store, planes),
        )
        with running(tmp_path / "engine", clouds.store, *providers) as stack:
            yield Made(stack, clouds)


def _agree(_question: str, _lines: Iterable[str]) -> bool:
    return True


def _decline(_question: str, _lines: Iterable[str]) -> bool:
    return False


def _name(_question: str) -> str:
    return "test"


def _clusters(made: Made) -> list[Resource]:
    return made.clouds.store.resources("gcp", "gcp:container/cluster:Cluster")


def test_nothing_of_a_gke_cluster_is_left(made: Made) -> None:
    """Resources that controllers of a GKE cluster left are deleted, those of other clusters are kept, and the
    report is checked."""
    put_others(made.clouds)
    before = {resource.id for resource in made.clouds.store.resources()}
    made.up(copy.deepcopy(GKE) | _LIFETIME | {"pools": copy.deepcopy(GKE["pools"][:1])})
    cluster = next(item.id for item in _clusters(made) if item.id not in before)
    name = cluster.rpartition("/")[2]
    put_balancer(made.clouds, _BALANCER, uid_of(cluster)[:8], name)
    put_disk(made.clouds, "pvc-1", name)
    outcome, out = made.destroy(ask_orphans=_agree)
    assert outcome == DestroyOutcome(done=True), out
    assert f"deleted: forwarding rule {_BALANCER} in us-central1" in out
    assert f"No resources of cluster {name} remain in project acme-ml." in out
    assert "could not be told" not in out
    assert "The stack no longer costs at least $0." in out
    assert {resource.id for resource in made.clouds.store.resources()} == before


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_firewall_rule_keeps_the_network_in_use(made: Made, *, is_deleted: bool) -> None:
    """A remaining firewall rule is listed as the deleted cluster's, and the engine's second attempt succeeds
    without it."""
    made.up(copy.deepcopy(GKE) | _LIFETIME | {"pools": copy.deepcopy(GKE["pools"][:1])})
    (cluster,) = _clusters(made)
    (network,) = made.clouds.store.resources("gcp", "gcp:compute/network:Network")
    rule = f"gke-{cluster.id.rpartition('/')[2]}-{uid_of(cluster.id)[:8]}-vms"
    link = f"https://www.googleapis.com/compute/v1/{network.id}"
    made.clouds.google("firewalls", GLOBAL, rule, network=link)
    outcome, out = made.destroy(ask_orphans=_agree if is_deleted else _decline)
    assert outcome is not None
    assert outcome.done == is_deleted, out
    assert "already being used by" in out
    expected = (
        f"deleted: firewall rule {rule} in global" if is_deleted else f"  firewall rule {rule} in global\n"
    )
    assert expected in out
    assert not _clusters(made)


def test_a_permanent_gke_cluster_ends_by_its_name(made: Made) -> None:
    """The protections of the engine and of Google's provider are lifted after the confirmation alone."""
    made.up(copy.deepcopy(GKE) | {"pools": copy.deepcopy(GKE["pools"][:1])})
    assert [cluster.inputs["deletionProtection"] for cluster in _clusters(made)] == [True]
    outcome, out = made.destroy(ask_name=_name)
    assert outcome == DestroyOutcome(done=True), out
    assert not _clusters(made)


def test_nothing_of_an_aks_cluster_is_left(made: Made) -> None:
    """Disks outside of the node resource group are known by its tags."""
    made.up(copy.deepcopy(AKS) | _LIFETIME | {"pools": copy.deepcopy(AKS["pools"][:1])})
    (cluster,) = made.clouds.store.resources("azure-native", "azure-native:containerservice:ManagedCluster")
    _, _, subscription, _, group, *_ = cluster.id.split("/")
    tags = {"aks-managed-cluster-name": cluster.id.rpartition("/")[2], "aks-managed-cluster-rg": group}
    disks = f"/subscriptions/{subscription}/resourceGroups/disks"
    made.clouds.azure(disks)
    disk = f"{disks}/providers/Microsoft.Compute/disks/pvc"
    made.clouds.azure(f"{disk}-1", tags=tags)
    made.clouds.azure(f"{disk}-2", tags={**tags, "aks-managed-cluster-rg": "other"})
    outcome, out = made.destroy(ask_orphans=_agree)
    assert outcome == DestroyOutcome(done=True), out
    assert "deleted: disk pvc-1 in eastus" in out
    assert f"remain in subscription {subscription}." in out
    assert {resource.id for resource in made.clouds.store.resources("azure-native")} >= {f"{disk}-2"}
    assert made.clouds.store.get("azure-native", f"{disk}-1") is None
