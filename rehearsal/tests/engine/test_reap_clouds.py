"""`ebbtide reap` on the real engine and the fake clouds' REST APIs: expired resources that no state knows."""

import json
from pathlib import Path

import pytest

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CredentialsError
from ebbtide.declaration.model import expiry
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.ids import NODE_POOL
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault, Resource
from rehearsal.tests.engine.cloud_commands import Commands
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION
from rehearsal.tests.unit.test_rest_inventory import FUTURE, GROUP, PAST, put_azure, put_cluster, put_disk

pytestmark = pytest.mark.engine

_EXPIRED = {"ebbtide-expires": PAST}


def _holds(run: Commands, stack: str, cluster: str) -> None:
    """Let a stack without an expiry have a cluster in its state."""
    outputs = {"project": PROJECT, "location": "us-central1-a", "name": cluster}
    run.project.holds(stack, {"type": "gcp:container/cluster:Cluster", "name": "train", "outputs": outputs})


def test_resources_that_no_state_knows(run: Commands) -> None:
    """Expired resources without a state are listed, and deleted with --yes despite failures; disks need
    another option, and resources in a state or with a later expiry are kept."""
    put_cluster(run.clouds, "known", **_EXPIRED)
    _holds(run, "dev", "known")
    put_disk(run.clouds, "of-known", "known", labels=_EXPIRED)
    put_cluster(run.clouds, "later", **{"ebbtide-expires": FUTURE})
    put_cluster(run.clouds, "permanent")
    put_cluster(run.clouds, "odd", **{"ebbtide-expires": "2025-01-01"})
    shared = put_cluster(run.clouds, "shared")
    before = {resource.id for resource in run.clouds.store.resources()}
    pool = f"{shared}/nodePools/lost"
    labels = {"nodeConfig": {"resourceLabels": _EXPIRED}}
    run.clouds.store.put(Resource("gcp", pool, NODE_POOL, inputs=labels))
    lost, stuck = (put_cluster(run.clouds, name, **_EXPIRED) for name in ("lost", "stuck"))
    disk = put_disk(run.clouds, "of-lost", "lost", labels=_EXPIRED)

    status, out, errors = run.run("reap")
    assert (status, errors) == (1, "")
    lines = [line.split()[:3] for line in out.splitlines()]
    start = lines.index(["KIND", "NAME", "LOCATION"])
    assert sorted(" ".join(line[:2]) for line in lines[start + 1 : start + 5]) == [
        "cluster lost",
        "cluster stuck",
        "disk of-lost",
        "node pool",
    ]
    assert all(len(line) <= 80 for line in out.splitlines() if "reap --yes" not in line)

    fault = InjectedFault(API_ERROR, "container.clusters.delete", 1, {"status": 400, "message": "Not so."})
    run.clouds.store.inject(fault)
    status, out, _ = run.run("reap", "--yes", "--format", "json")
    outcomes = {item["id"]: item["outcome"] for item in json.loads(out)["resources"]}
    assert status == 1
    assert sorted(outcomes.values()) == ["destroyed", "destroyed", "failed", "kept"]
    assert (outcomes[disk], outcomes[pool]) == ("kept", "destroyed")
    assert {resource.id for resource in run.clouds.store.resources()} - before < {lost, stuck, disk}

    status, out, _ = run.run("reap", "--yes", "--delete-data")
    assert status == 0, out
    assert {resource.id for resource in run.clouds.store.resources()} == before


def test_resources_alone(run: Commands) -> None:
    """A job of CI deletes resources without a stack, and lists the stacks for others."""
    put_cluster(run.clouds, "lost", **_EXPIRED)
    life = {"type": expiry.COMPONENT, "name": "l", "outputs": {expiry.OUTPUT: "2025-01-01T00:00Z"}}
    run.project.holds("pr-42", life)
    status, out, _ = run.run(
        "reap", "pr-*", "--only-resources", "--yes", "--format", "json", "--google-project", PROJECT
    )
    document = json.loads(out)
    assert [(item["stack"], item["outcome"]) for item in document["stacks"]] == [("pr-42", "expired")]
    assert [(item["name"], item["outcome"]) for item in document["resources"]] == [("lost", "destroyed")]
    assert status == 1


def test_the_states_of_other_projects_count(run: Commands, tmp_path: Path) -> None:
    """Clusters in states of other projects are managed, and an unreadable state prevents deletions."""
    put_cluster(run.clouds, "theirs", **_EXPIRED)
    other = tmp_path / "other"
    other.mkdir()
    (other / "Pulumi.yaml").write_text("name: other\nruntime: {name: python, options: {virtualenv: none}}\n")
    theirs = Commands(type(run.project)(other, run.project.state, run.project.environment), run.clouds)
    _holds(theirs, "dev", "theirs")
    status, out, _ = run.run("reap", "--yes", "--google-project", PROJECT)
    assert (status, out) == (0, "No stack has expired.\n")
    (file,) = run.project.state.glob(".pulumi/stacks/other/dev.json")
    file.write_text("{")
    status, out, _ = run.run("reap", "--yes", "--google-project", PROJECT)
    assert "were not searched, because a state is unreadable" in " ".join(out.split()), (status, out)
    assert run.clouds.store.resources("gcp", "gcp:container/cluster:Cluster")


def test_a_subscription_is_named(run: Commands) -> None:
    """A resource group is deleted with what is in it, unless it holds data."""
    run.clouds.azure(f"{GROUP}/old", tags=_EXPIRED)
    put_azure(run.clouds, "old", "Microsoft.ContainerService/managedClusters/old", tags=_EXPIRED)
    run.clouds.azure(f"{GROUP}/data", tags=_EXPIRED)
    kept = put_azure(run.clouds, "data", "Microsoft.Storage/storageAccounts/kept", tags=_EXPIRED)
    status, out, _ = run.run("reap", "--yes", "--azure-subscription", SUBSCRIPTION)
    assert (status, "Resources with data are kept without --delete-data." in out) == (1, True)
    left = {resource.id for resource in run.clouds.store.resources("azure-native")}
    assert left == {f"{GROUP}/data", kept}


def test_without_access_it_is_said_in_a_line(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """The expired stacks are listed all the same, and the exit status says that not all was searched."""
    status, out, errors = run.run("reap", "--google-project", "nowhere")
    assert (status, errors) == (1, "")
    start = "Unmanaged resources were not searched in project nowhere: the credentials have no access"
    assert out.splitlines()[1].startswith(start)

    def refused(_account: Account) -> None:
        raise CredentialsError("There are no valid credentials for Azure. Log in with `az login`.")

    monkeypatch.setattr(connect, "inventory", refused)
    _, out, _ = run.run("reap", "--azure-subscription", SUBSCRIPTION)
    assert out.splitlines()[1].endswith("There are no valid credentials for Azure. Log in with `az login`.")
    assert str(Account(CloudKind.AKS, SUBSCRIPTION)) in out
