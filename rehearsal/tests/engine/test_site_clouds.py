"""Commands on a deployed stack that ask its cloud's REST APIs: quotas, power, and what is left."""

from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.ids import GKE_CLUSTER
from ebbtide_rehearsal.cloud.rest.google_clusters import uid_of
from ebbtide_rehearsal.cloud.store import API_ERROR, QUOTA, InjectedFault
from rehearsal.tests.engine.cloud_commands import commands_on
from rehearsal.tests.unit.test_rest_inventory import put_balancer
from tests.declarations import pool

pytestmark = pytest.mark.engine

_BALANCER = "a0d2c6f9e52f64fd19d573f1f0d5a8a1"
_IN_USE = {
    "message": "googleapi: Error 400: The network resource 'train' is already being used by 'k8s-fw-1'"
}


def test_a_quota_forbids_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """`ebbtide up --quotas` names the limit to request and creates nothing; with the limit it creates the
    stack, also where the cloud does not answer about quotas."""
    with commands_on("gke", tmp_path, monkeypatch, request) as (site, run):
        low = site.store.inject(InjectedFault(QUOTA, "N2_CPUS", details={"limit": 1}))
        status, out, _ = run.run("up", "dev", "--yes", "--quotas")
        assert (status, site.pools()) == (1, set()), out
        assert "REQUEST" in out
        site.store.remove_fault(low)
        refused = {"status": 403, "message": "Required 'compute.regions.get' permission."}
        site.store.inject(InjectedFault(API_ERROR, "compute.*", 1, refused))
        status, out, errors = run.run("up", "dev", "--yes", "--quotas")
        assert (status, errors) == (0, ""), out
        assert "Quotas are not checked: " in out
        status, out, errors = run.run("up", "dev", "--yes", "--quotas")
        assert (status, errors) == (0, ""), out
        assert "Stack dev: no change." in out


@pytest.mark.long
def test_a_destroy_continues_after_the_cluster_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The deletion of the network fails; the next destroy finds what is left of the cluster by the id that
    GKE gave it, deletes it, and states that nothing is left."""
    with commands_on("gke", tmp_path, monkeypatch, request) as (site, run):
        assert site.up()[0] == 0
        (cluster,) = site.store.resources("gcp", GKE_CLUSTER)
        name = cluster.id.rpartition("/")[2]
        orphans = put_balancer(run.clouds, _BALANCER, uid_of(cluster.id)[:8], name)
        fault = site.store.inject(
            InjectedFault(API_ERROR, "delete gcp:compute/network:Network *", details=_IN_USE)
        )
        status, out, errors = run.run("destroy", "dev", "--yes")
        assert (status, errors) == (1, ""), out
        assert _IN_USE["message"] in out
        assert f"Remaining resources of cluster {name} in project acme-ml:" in out
        assert site.store.resources("gcp", GKE_CLUSTER) == []
        site.store.remove_fault(fault)
        status, out, errors = run.run("destroy", "dev", "--yes", "--delete-orphans")
        assert (status, errors) == (0, ""), out
        assert f"An earlier destroy has deleted cluster {name}; this one continues." in out
        assert f"deleted: firewall rule k8s-fw-{_BALANCER} in global" in out
        assert f"No resources of cluster {name} remain in project acme-ml." in out
        assert "could not be told" not in out
        assert orphans.isdisjoint(item.id for item in site.store.resources("gcp"))


@pytest.mark.long
def test_a_sleeping_cluster_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """AKS stops the API server and refuses changes: each command says how to wake it, and changes nothing;
    awake, all goes on; asleep again, it is destroyed as a whole."""
    with commands_on("aks", tmp_path, monkeypatch, request) as (site, run):
        assert site.up()[0] == 0
        pools = site.pools()
        status, out, errors = run.run("sleep", "dev")
        assert (status, errors) == (0, ""), out
        assert "Stack dev is asleep: it saves $" in out
        assert run.run("sleep", "dev")[1].startswith("Stack dev is asleep. Wake it with: ")
        status, out = site.run("status", confirmed=False)
        assert (status, len(out.splitlines())) == (2, 1), out
        assert out.startswith("The cluster is unreachable, and its status is unknown: ")
        assert "If it sleeps, wake it first with: " in out
        status, _, errors = run.run("status", "dev")
        assert (status, errors) == (2, "Stack dev is asleep. Wake it with: ebbtide wake dev\n")

        declared = site.declared()
        pool(declared, "cpu")["capacity"] = "on-demand"
        site.declare(declared)
        status, out = site.up()
        assert (status, "If it sleeps, wake it first with: " in out.splitlines()[-1]) == (2, True), out
        pool(declared, "cpu").update(capacity="spot", nodes={"max": 9})
        site.declare(declared)
        status, out = site.up()
        assert (status, "Power State(Stopped), " in out) == (1, True), out
        assert "If it sleeps, wake it first with: " in out

        status, out, errors = run.run("wake", "dev")
        assert (status, errors) == (0, ""), out
        assert site.pools() == pools
        status, out = site.up()
        assert status == 0, out
        assert run.run("sleep", "dev")[0] == 0
        status, out, errors = run.run("destroy", "dev", "--yes")
        assert (status, errors) == (0, ""), out
        assert "If it sleeps, wake it first with: " in out
        assert "and is deleted without them" in out
        assert "No resources of cluster " in out
