"""Clusters and pools that another tool created: imported, kept and let go, on the real engine."""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide_rehearsal.cloud import existing
from ebbtide_rehearsal.cloud.ids import AKS_CLUSTER, GKE_CLUSTER
from ebbtide_rehearsal.cloud.rest import azure, google_clusters
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.engine.sites import Site, as_of_others, kill, site_on, until
from rehearsal.tests.unit.rest_clouds import rest_clouds
from tests.declarations import Declaration, pool

pytestmark = pytest.mark.engine


@pytest.fixture
def aks(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """A cluster on AKS with a system pool and a pool of spot machines, not yet created."""
    yield from site_on("aks", tmp_path, request)


def _cloud(site: Site) -> dict[str, Any]:
    """Return the inputs of every resource in the cloud, by id."""
    return {item.id: item.inputs for item in site.store.resources() if item.cloud != "behind"}


def _planned(site: Site) -> dict[str, list[str]]:
    """Return the resources of `pulumi preview`, by operation, without those that it would replace for the
    principal of an identity whose tags change: it is unknown until the update, and stays.
    """
    plan: dict[str, Any] = json.loads(site.terminal.run("pulumi preview --stack dev --json"))
    steps: dict[str, list[str]] = {}
    for step in plan["steps"]:
        if step.get("replaceReasons") == ["principalId"]:
            continue
        steps.setdefault(step["op"], []).append(f"{step['urn']} {step.get('replaceReasons')}")
    return steps


def _adopted(site: Site) -> Declaration:
    """Adopt a cluster by an import that changes nothing, killed once, and an update in place; return its
    declaration."""
    assert site.up()[0] == 0
    count = as_of_others(site)
    declared = site.declared() | {"owner": "research-team"}
    site.declare(declared)
    before = _cloud(site)

    status, out = site.run("preview", confirmed=False)
    assert (status, f"{count} to adopt" in out) == (0, True), out
    process = site.start("adopt", "--into-state")
    until(process, "adopted: ")
    kill(process)
    status, out = site.run("adopt", "--into-state")
    assert (status, sum("importID" in item for item in site.state())) == (0, count), out
    assert _cloud(site) == before
    assert "adopt" not in site.declared()
    planned = _planned(site)
    replaced = {op: planned[op] for op in planned.keys() - {"same", "create", "update", "read"}}
    assert replaced == {}

    declared = site.declared()
    pool(declared, "cpu")["capacity"] = "on-demand"
    site.declare(declared)
    status, out = site.up()
    assert (status, "cpu is adopted, and would be replaced" in " ".join(out.split())) == (1, True), out
    assert _cloud(site) == before

    pool(declared, "cpu")["capacity"] = "spot"
    site.declare(declared)
    status, out = site.up()
    assert status == 0, out
    assert "  update train-cluster in place: " in out
    assert not {"created again", "deleted"} & {line.partition(":")[0] for line in out.splitlines()}
    return declared


@pytest.mark.long
def test_a_cluster_of_others_is_adopted(aks: Site) -> None:
    """The import changes nothing in the cloud, the first update replaces nothing, the second is unchanged."""
    _adopted(aks)
    assert "Stack dev: no change." in aks.up()[1]


def test_an_adopted_cluster_is_the_stacks_own(gke: Site) -> None:
    """A second update changes nothing, one of a field changes it, and a destroy removes all."""
    declared = _adopted(gke)
    assert "Stack dev: no change." in gke.up()[1]

    pool(declared, "cpu")["nodes"] = {"max": 7}
    gke.declare(declared)
    assert gke.up()[0] == 0
    (cpu,) = (item for item in gke.store.resources("nodes") if item.id.endswith("/cpu"))
    assert cpu.state["maximum"] == 7
    assert gke.run("destroy")[0] == 0
    assert _cloud(gke) == {}


def test_pools_of_a_foreign_cluster(gke: Site) -> None:
    """The cluster stays with its owner; after an undo, a destroy removes what the stack has created alone."""
    declared = gke.declared()
    declared["pools"] = [pool(declared, "cpu")]
    declared["cloud"]["existing"] = {"name": "shared"}
    gke.declare(declared)
    existing.make(declared, gke.store, gke.planes)
    assert gke.up()[0] == 0
    as_of_others(gke)
    before = _cloud(gke)
    declared = gke.declared()
    declared["pools"].append(pool(declared, "cpu") | {"name": "more"})
    gke.declare(declared)

    status, out = gke.up()
    assert (status, "adopted: " in out, gke.pools() >= {"cpu", "more"}) == (0, True, True), out
    status, out = gke.run("adopt", "--undo")
    assert status == 0, out
    planned = _planned(gke)
    assert "import" in planned, planned
    assert "create" not in planned, planned
    status, out = gke.run("destroy")
    assert status == 0, out
    assert _cloud(gke).keys() == before.keys()


_DESCRIBED: Final = {"gke": (GKE_CLUSTER, google_clusters.described), "aks": (AKS_CLUSTER, azure.described)}


@pytest.fixture
def lost(
    tmp_path: Path, cloud: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Generator[Site]:
    """A cluster of a stack whose state and file are lost, and the description of the cluster."""
    with rest_clouds(tmp_path, monkeypatch, store=Store(tmp_path / "cloud.sqlite")):
        for site in site_on(cloud, tmp_path, request):
            assert site.up()[0] == 0
            token, described = _DESCRIBED[cloud]
            (cluster,) = (item for item in site.store.resources() if item.type == token)
            (site.terminal.root / "cluster.json").write_text(json.dumps(described(site.store, cluster)))
            site.terminal.run("pulumi stack rm dev --force --yes && pulumi stack init dev")
            yield site


@pytest.mark.long
@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_the_cluster_of_a_lost_stack(lost: Site, cloud: str) -> None:
    """Accounts and grants of the nodes are neither created again nor taken away by a destroy after an undo; a
    role assignment that Azure refuses is named with what to do."""
    status, out = lost.run("adopt", "--from", "cluster.json", "--overwrite", confirmed=False)
    assert status == 0, out
    before = _cloud(lost)
    status, out = lost.run("adopt", "--into-state")
    if cloud == "aks":
        assert (status, _cloud(lost)) == (1, before), out
        assert "Take them into the state" not in out, out
        refused = re.findall(r"az role assignment delete --ids (\S+)", out)
        assert refused == [id_ for id_ in before if "/managedClusters/" in id_ and "/roleAssignments/" in id_]
        for identity in refused:
            lost.store.remove("azure-native", identity)
        status, out = lost.run("adopt", "--into-state")
    assert status == 0, out
    assert lost.up()[0] == 0
    assert "Stack dev: no change." in lost.up()[1]
    lasting = {id_ for id_ in before if "/roleAssignments/" not in id_}
    assert {id_ for id_ in _cloud(lost) if "/roleAssignments/" not in id_} == lasting
    for words in (("adopt", "--undo"), ("destroy",)):
        status, out = lost.run(*words)
        assert status == 0, out
    assert _cloud(lost).keys() >= lasting
