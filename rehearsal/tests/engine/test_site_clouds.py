"""Commands on a deployed stack that ask its cloud's REST APIs: quotas, power, and what is left."""

from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.store import API_ERROR, QUOTA, InjectedFault
from rehearsal.tests.engine.cloud_commands import commands_on
from tests.declarations import pool

pytestmark = pytest.mark.engine


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
