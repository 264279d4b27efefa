"""`ebbtide destroy` on the real engine and the fake clouds' REST APIs: the stack's account, and leftovers."""

import json
from typing import Any

import pytest

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CredentialsError
from ebbtide_rehearsal.cloud.ids import BUCKET
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault, Resource
from rehearsal.tests.engine.cloud_commands import Commands
from rehearsal.tests.fake_clouds import put_object
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION
from rehearsal.tests.unit.test_rest_inventory import put_disk, put_others

pytestmark = pytest.mark.engine

_ZONE = "us-central1-a"


def _gke(name: str = "ml", **more: Any) -> dict[str, Any]:
    """A cluster in a state; no provider is needed to delete it."""
    outputs = {"project": PROJECT, "location": _ZONE, "name": name}
    return {"type": "gcp:container/cluster:Cluster", "name": "train", "outputs": outputs, **more}


def _state(run: Commands, stack: str) -> Any:
    return json.loads(run.project.pulumi("stack", "export", "--stack", stack))["deployment"]


def test_data_is_named_with_its_contents(run: Commands) -> None:
    """Before the question, as the cloud counts it with the user's credentials, and in the question itself."""
    inputs = {"name": "data", "project": PROJECT}
    run.clouds.store.put(Resource("gcp", "data", BUCKET, inputs=inputs))
    put_object(run.clouds.store, "data", "model.pt", 5000)
    run.project.holds("dev", _gke(), {"type": BUCKET, "name": "data", "inputs": inputs})
    status, out, _ = run.run("destroy", "dev")
    assert (status, run.clouds.store.get("gcp", "data") is None) == (1, False)
    assert "  bucket data: 1 object, 5.0 kB" in out.splitlines()
    assert "Destroy 2 resources of stack dev, with bucket data? There is no terminal" in " ".join(out.split())


def test_another_account_is_refused(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the stack's file, the environment or the credentials: a sentence, and nothing is touched."""
    run.project.holds("dev", _gke())
    file = run.project.root / "Pulumi.dev.yaml"
    before = _state(run, "dev")
    made = f"Nothing was changed: stack dev was created in project {PROJECT}, and "
    file.write_text("config:\n  gcp:project: other\n")
    status, _, errors = run.run("destroy", "dev", "--yes", "--delete-orphans")
    assert (status, errors) == (
        2,
        f"{made}`gcp:project` names project other. Name {PROJECT} there, or nothing.\n",
    )
    declared = {"kind": "gke", "project": "other", "location": _ZONE}
    file.write_text(json.dumps({"config": {"ebbtide:cluster": {"owner": "us", "cloud": declared}}}))
    assert (
        f"{made}`ebbtide:cluster.cloud.project` names project other." in run.run("destroy", "dev", "--yes")[2]
    )
    file.write_text("config: {}\n")
    with monkeypatch.context() as environment:
        environment.setenv("GOOGLE_CLOUD_PROJECT", "other")
        status, _, errors = run.run("destroy", "dev", "--yes")
        assert (status, f"{made}GOOGLE_CLOUD_PROJECT names project other." in errors) == (2, True)
    refused = {"status": 403, "message": "Required 'container.clusters.list' permission."}
    run.clouds.store.inject(InjectedFault(API_ERROR, "container.clusters.list", 1, refused))
    status, _, errors = run.run("destroy", "dev", "--yes")
    assert (status, "the credentials have no access to project acme-ml" in errors) == (2, True)
    assert _state(run, "dev") == before
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", PROJECT)
    assert run.run("destroy", "dev", "--yes")[0] == 0


def test_another_subscription_is_refused(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscription is refused if the environment names another, or the credentials lack access."""
    other = "11111111-0000-0000-0000-000000000000"
    cluster = (
        f"/subscriptions/{other}/resourceGroups/ml/providers/Microsoft.ContainerService/managedClusters/ml"
    )
    kind = "azure-native:containerservice:ManagedCluster"
    run.project.holds("dev", {"type": kind, "name": "train", "custom": True, "id": cluster})
    status, _, errors = run.run("destroy", "dev", "--yes")
    assert (status, "SubscriptionNotFound" in errors or "could not be found" in errors) == (2, True)
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", SUBSCRIPTION)
    status, _, errors = run.run("destroy", "dev", "--yes")
    assert (status, f"ARM_SUBSCRIPTION_ID names subscription {SUBSCRIPTION}." in errors) == (2, True)
    assert len(_state(run, "dev")["resources"]) > 0


def test_a_permanent_stack_is_destroyed_by_its_name(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed at a terminal, or given to a script; its protection stays without, and with another name."""
    for stack in ("prod", "typed"):
        run.project.holds(stack, _gke(stack, protect=True))
    for arguments in ((), ("--yes",), ("--yes", "--confirm-name", "dev")):
        assert run.run("destroy", "prod", *arguments)[0] == 2
    assert [item["protect"] for item in _state(run, "prod")["resources"]] == [True]
    status, out, errors = run.run("destroy", "prod", "--confirm-name", "prod")
    assert (status, errors) == (0, "")
    assert "Stack prod is destroyed." in out
    monkeypatch.setattr("ebbtide.cli.lifecycle.can_ask", lambda: True)
    assert run.run("destroy", "typed", typed="other\n")[0] == 2
    status, out, _ = run.run("destroy", "typed", typed="typed\n")
    assert status == 0
    assert "Stack typed is permanent. This would destroy 1 resource. Type typed to destroy it: " in out


def test_what_is_left_is_reported_and_deleted_on_request(run: Commands) -> None:
    """With its price; nothing of other clusters is listed or deleted."""
    put_others(run.clouds)
    before = {resource.id for resource in run.clouds.store.resources()}
    for stack in ("dev", "again"):
        run.project.holds(stack, _gke())
    disk = put_disk(run.clouds, "pvc-1", "ml")
    status, out, _ = run.run("destroy", "dev", "--yes")
    assert status == 1
    lines = out.splitlines()
    start = lines.index(f"Remaining resources of cluster ml in project {PROJECT}:")
    assert lines[start + 1 : start + 3] == [
        f"  disk pvc-1 in {_ZONE}, 10 GiB, $0.0014/h",
        "They cost at least $0.0014/h.",
    ]
    assert disk in {resource.id for resource in run.clouds.store.resources()}
    status, out, errors = run.run("destroy", "again", "--yes", "--delete-orphans")
    assert (status, errors) == (0, "")
    assert f"deleted: disk pvc-1 in {_ZONE}" in out
    assert "No resources of cluster ml remain" in out
    assert {resource.id for resource in run.clouds.store.resources()} == before


def test_a_failure_does_not_stop_the_other_deletions(run: Commands) -> None:
    """A failed deletion is reported with the remaining resources, and the others continue."""
    run.project.holds("dev", _gke())
    for name in ("pvc-1", "pvc-2"):
        put_disk(run.clouds, name, "ml")
    fault = InjectedFault(API_ERROR, "compute.delete", 1, {"status": 400, "message": "Not so."})
    run.clouds.store.inject(fault)
    status, out, _ = run.run("destroy", "dev", "--yes", "--delete-orphans")
    assert status == 1
    assert "disk pvc-1 is not deleted: localhost returned status 400. Not so." in out
    assert "deleted: disk pvc-2" in out
    assert f"  disk pvc-1 in {_ZONE}, 10 GiB" in out


def test_volumes_are_kept_when_asked(run: Commands) -> None:
    """Disks stay, though what else is left is deleted."""
    run.project.holds("dev", _gke())
    disk = put_disk(run.clouds, "pvc-1", "ml")
    status, out, _ = run.run("destroy", "dev", "--yes", "--delete-orphans", "--keep-volumes")
    assert (status, "disk pvc-1" in out) == (1, True)
    assert disk in {resource.id for resource in run.clouds.store.resources("gcp")}


def test_without_credentials_the_cloud_is_not_asked(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says so, how to, and the command that lists what is left; the stack is destroyed."""

    def refused(_account: Account) -> None:
        raise CredentialsError("There are no valid credentials for Google Cloud. Log in with `gcloud`.")

    def missing(_account: Account) -> None:
        raise ModuleNotFoundError("No module named 'google.auth'", name="google.auth")

    for stack, access, advice in (
        ("dev", refused, "There are no valid credentials for Google Cloud. Log in with `gcloud`."),
        ("bare", missing, "Install its client with: "),
    ):
        run.project.holds(stack, _gke())
        monkeypatch.setattr(connect, "inventory", access)
        status, out, errors = run.run("destroy", stack, "--yes", "--delete-orphans")
        assert (status, errors) == (0, "")
        assert f"Remaining resources of cluster ml in project {PROJECT} are unknown: {advice}" in out
        assert f"gcloud compute disks list --project {PROJECT} --filter" in out
        assert "No resources of cluster" not in out


def test_an_interrupted_creation_is_looked_for(run: Commands) -> None:
    """An interrupted creation is removed from the state if nothing of its cluster exists; otherwise it is
    named."""
    run.project.holds("dev", {"type": "acme:web:Site", "name": "site"})
    for cluster, status in (("ml", 0), ("half", 1)):
        inputs = {"project": PROJECT, "location": _ZONE, "name": cluster}
        kind = "gcp:container/cluster:Cluster"
        urn = f"urn:pulumi:dev::tried::{kind}::train"
        resource = {"urn": urn, "type": kind, "custom": True, "inputs": inputs}
        (file,) = run.project.state.glob(".pulumi/stacks/*/dev.json")
        checkpoint = json.loads(file.read_text())
        # `pulumi stack import` would drop it.
        checkpoint["checkpoint"]["latest"]["pending_operations"] = [
            {"type": "creating", "resource": resource}
        ]
        file.write_text(json.dumps(checkpoint))
        if cluster == "half":
            put_disk(run.clouds, "pvc-1", "half")
        done, out, errors = run.run("destroy", "dev", "--yes")
        assert (done, errors) == (status, ""), out
        assert "The creation of train was interrupted" in out
        assert bool(_state(run, "dev").get("pending_operations")) == (status == 1)
    assert "pulumi refresh --clear-pending-creates --stack dev" in out


def test_without_a_way_to_the_state_nothing_is_touched(
    run: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong passphrase, missing backend, missing `pulumi`: a sentence each, and exit status 2."""
    run.project.holds("dev", _gke())
    disk = put_disk(run.clouds, "pvc-1", "ml")
    cases = {
        "is not the passphrase of stack dev": {"PULUMI_CONFIG_PASSPHRASE": "another"},
        "unable to open state directory": {"PULUMI_BACKEND_URL": (run.project.root / "gone").as_uri()},
        "`pulumi` is not installed: install it": {"PATH": "/nowhere"},
    }
    for sentence, settings in cases.items():
        with monkeypatch.context() as environment:
            for name, value in settings.items():
                environment.setenv(name, value)
            status, out, errors = run.run("destroy", "dev", "--yes", "--delete-orphans")
            assert (status, sentence in errors) == (2, True), out + errors
    assert disk in {resource.id for resource in run.clouds.store.resources("gcp")}
    assert len(_state(run, "dev")["resources"]) == 1
