"""A stack with objects on its cluster, through the real `pulumi` command line: engine, language host,
Kubernetes provider and control plane are real.
"""

import copy
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from ebbtide.analysis.recording.recording import urn_name
from ebbtide.clients.kubernetes import Api
from rehearsal.tests.control_plane.live import live
from rehearsal.tests.engine.sites import Checkout
from tests.declarations import Declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

DECLARED: Declaration = {
    "name": "lined",
    "owner": "rehearsal",
    "lifetime": {"hours": 8},
    "cloud": {"kind": "gke", "project": "rehearsal", "location": "us-central1-a"},
    "pools": [
        {"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"min": 1, "max": 2}},
        {"name": "cpu-spot", "machine": "n2-standard-4", "capacity": "spot", "nodes": {"max": 1}},
    ],
    "queues": [{"name": "cpu", "pools": ["cpu-spot"]}],
    "teams": [{"name": "research", "queues": [{"queue": "cpu"}]}],
}


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Checkout]:
    """A copy of the checkout with a stack that has a queue and a team, and a fake cloud."""
    with live(tmp_path, DECLARED, request) as site:
        yield site


def test_an_existing_namespace_is_not_taken_over(site: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing one is refused as a team's own, and stays with its contents if used as it is; that of an
    interrupted update is the stack's."""
    assert site.up()[0] == 0
    monkeypatch.setenv("PATH", site.terminal.environment["PATH"])  # the credential plugin's
    kubeconfig = site.terminal.run("pulumi stack output kubeconfig --stack dev --show-secrets")
    api = Api.of_kubeconfig(json.loads(kubeconfig))
    metadata = {"name": "legacy"}
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    contents = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}
    api.create("/api/v1/namespaces/legacy/configmaps", contents)
    before = api.get("/api/v1/namespaces/legacy")

    declared = copy.deepcopy(DECLARED)
    declared["teams"].append({"name": "legacy"})
    site.declare(declared)
    status, out = site.up()
    assert status == 1, out
    assert "Nothing was changed: namespace legacy exists, and not from this stack." in " ".join(out.split())
    assert "`namespace: {name: legacy, create: false}`" in " ".join(out.split())
    assert api.get("/api/v1/namespaces/legacy") == before

    declared["teams"][-1]["namespace"] = {"name": "legacy", "create": False}
    declared["teams"].append({"name": "speech"})
    site.declare(declared)
    status, out = site.up()
    assert status == 0, out
    _forget(site, "speech-configmap")
    del declared["teams"][1]
    site.declare(declared)
    status, out = site.up()
    assert status == 0, out
    profile = "lined-addons-team-speech-configmap-ebbtide-profile"
    assert f"while it created {profile}; it exists in the cloud" in " ".join(out.split())
    assert "created: " not in out
    assert api.find("/api/v1/namespaces/legacy/configmaps/theirs")
    site.declare(DECLARED)
    assert site.up()[0] == 0
    assert api.find("/api/v1/namespaces/speech") is None


def _forget(site: Checkout, part: str) -> None:
    """Turn the creation of a stack's Kubernetes objects into one that a killed engine has not recorded."""
    (file,) = site.terminal.root.parent.rglob("state/.pulumi/stacks/*/dev.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    latest = document["checkpoint"]["latest"]
    lost = [
        item
        for item in latest["resources"]
        if item["type"].startswith("kubernetes:") and part in urn_name(item["urn"])
    ]
    assert lost
    latest["resources"] = [item for item in latest["resources"] if item not in lost]
    for item in lost:
        del item["id"], item["outputs"]
    latest["pending_operations"] = [{"type": "creating", "resource": item} for item in lost]
    file.write_text(json.dumps(document), encoding="utf-8")
