"""A stack with objects on its cluster, through the real `pulumi` command line: engine, language host,
Kubernetes provider and control plane are real.
"""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from ebbtide.analysis.recording.recording import urn_name
from rehearsal.tests.control_plane.live import api_of, declared, live
from rehearsal.tests.engine.sites import Checkout

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Checkout]:
    """A copy of the checkout with a stack that has a queue and a team, and a fake cloud."""
    with live(tmp_path, declared(), request) as site:
        yield site


def test_an_existing_namespace_is_not_taken_over(site: Checkout) -> None:
    """An existing one is refused as a team's own, and stays with its contents if used as it is; that of an
    interrupted update is the stack's."""
    assert site.up()[0] == 0
    api = api_of(site)
    metadata = {"name": "legacy"}
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    contents = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}
    api.create("/api/v1/namespaces/legacy/configmaps", contents)
    before = api.get("/api/v1/namespaces/legacy")

    changed = declared()
    changed["teams"].append({"name": "legacy"})
    site.declare(changed)
    status, out = site.up()
    assert status == 1, out
    assert "Nothing was changed: namespace legacy exists, and not from this stack." in " ".join(out.split())
    assert "`namespace: {name: legacy, create: false}`" in " ".join(out.split())
    assert api.get("/api/v1/namespaces/legacy") == before

    changed["teams"][-1]["namespace"] = {"name": "legacy", "create": False}
    changed["teams"].append({"name": "speech"})
    site.declare(changed)
    status, out = site.up()
    assert status == 0, out
    _forget(site, "speech-configmap")
    del changed["teams"][1]
    site.declare(changed)
    status, out = site.up()
    assert status == 0, out
    profile = "rehearsed-addons-team-speech-configmap-ebbtide-profile"
    assert f"while it created {profile}; it exists in the cloud" in " ".join(out.split())
    assert "created: " not in out
    assert api.find("/api/v1/namespaces/legacy/configmaps/theirs")
    site.declare(declared())
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
