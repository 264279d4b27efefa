"""Teams of a stack whose state is lost: a real API server, and the fake clouds."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.analysis.recording.recording import urn_name
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.provider import BEHIND
from rehearsal.tests.control_plane.live import live
from rehearsal.tests.engine.sites import Checkout
from tests.declarations import Declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

_CLOUDS: Final[dict[str, Any]] = {
    "gke": {"kind": "gke", "project": "rehearsal", "location": "us-central1-a"},
    "aks": {
        "kind": "aks",
        "subscription": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": "ml",
        "location": "eastus",
    },
}
_MACHINES: Final = {"gke": "n2-standard-4", "aks": "Standard_D4s_v5"}
_VOLUMES: Final = {"gke": "filestore", "aks": "azure-files"}


def _declared(cloud: str) -> Declaration:
    """Return a pool, a team with all kinds of storage and, on GKE, its queue, on an existing cluster."""
    volume = {"kind": _VOLUMES[cloud]}
    team: Declaration = {"name": "research", "bucket": {}, "registry": {}, "volume": volume}
    queues: Declaration = {
        "gke": {"queues": [{"name": "cpu", "pools": ["cpu"]}], "addons": {"kueue": {"existing": True}}},
        "aks": {},
    }
    return {
        "name": "added",
        "owner": "rehearsal",
        "cloud": {**_CLOUDS[cloud], "existing": {"name": "shared"}},
        "pools": [{"name": "cpu", "machine": _MACHINES[cloud], "nodes": {"max": 1}}],
        "teams": [team if queues[cloud] else {**team, "requireQueue": False}],
        **queues[cloud],
    }


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_team_of_a_lost_stack(cloud: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The import finds identities, storage and namespaces by their names and labels, and adopts them with the
    pool; the update keeps them, and an undo lets them go."""
    declared = _declared(cloud)
    with live(tmp_path, declared, request) as site:
        status, out = site.up()
        assert status == 0, out
        before = {item["id"]: item for item in site.state() if _is_adopted(item)}
        (pool,) = (item for item in before.values() if item["type"].endswith((":NodePool", ":AgentPool")))
        adopted = {"type": pool["type"], "name": urn_name(pool["urn"]), "id": pool["id"]}
        (site.terminal.root / "adopt.dev.json").write_text(json.dumps({"resources": [adopted]}))
        site.terminal.run("pulumi stack rm dev --force --yes --preserve-config && pulumi stack init dev")
        site.declare({**declared, "adopt": "adopt.dev.json"})

        status, out = _unassigned(site, lambda: site.run("adopt", "--into-state"))
        assert status == 0, out
        assert {item["id"] for item in site.state() if item.get("importID")} == before.keys()
        status, out = _unassigned(site, site.up)
        assert (status, "replace" in out) == (0, False), out
        assert "Stack dev: no change." in site.up()[1]

        kept = {item.id for item in site.store.resources()}
        status, out = site.run("adopt", "--undo")
        assert (status, [item for item in site.state() if item.get("importID")]) == (0, []), out
        assert {item.id for item in site.store.resources()} == kept
        (cluster,) = (item for item in site.store.resources() if item.cloud == BEHIND)
        api = Api.of_kubeconfig(json.loads(Path(cluster.state["kubeconfig"]).read_text()))
        assert api.get("/api/v1/namespaces/research")["status"]["phase"] == "Active"


def _unassigned(site: Checkout, run: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Run a command; if roles that are assigned already are in its way, delete them, and run it again."""
    status, out = run()
    roles = re.findall(r"az role assignment delete --ids (\S+)", out)
    for role in roles:
        site.store.remove("azure-native", role)
    return run() if roles else (status, out)


def _is_adopted(item: dict[str, Any]) -> bool:
    """Return whether a resource exists outside of the state, and is not read; grants are created again."""
    return (
        bool(item.get("custom"))
        and not item.get("external")
        and not re.search("^pulumi:|IAMMember$|RoleAssignment$|Patch$", item["type"])
    )
