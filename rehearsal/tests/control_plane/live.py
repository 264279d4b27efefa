"""A project with a stack on a fake cloud whose clusters are real, for commands that a user types."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from rich.console import Console

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.existing import tools_of
from ebbtide_rehearsal.cloud.provider import BEHIND
from ebbtide_rehearsal.stay import stay
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.progress import narration
from ebbtide_rehearsal.tools.table import needed
from rehearsal.tests.engine.sites import Checkout, checkout_in
from rehearsal.tests.engine.terminal import Terminal
from tests.declarations import Declaration

_CLOUDS: Final[dict[str, Declaration]] = {
    "gke": {"kind": "gke", "project": "rehearsal", "location": "us-central1-a"},
    "aks": {
        "kind": "aks",
        "subscription": "00000000-0000-0000-0000-000000000001",
        "location": "eastus",
    },
}
_MACHINES: Final = {"gke": ("e2-standard-4", "n2-standard-4"), "aks": ("Standard_D4as_v5",) * 2}


def declared(cloud: str = "gke", *, nodes: int = 2, **fields: Any) -> Declaration:
    """An ephemeral cluster with a system pool, a pool `cpu` of spot machines, its queue, and a team; or other
    fields."""
    system, work = _MACHINES[cloud]
    return {
        "name": "rehearsed",
        "owner": "rehearsal",
        "lifetime": {"hours": 8},
        "cloud": _CLOUDS[cloud],
        "pools": [
            {"name": "system", "role": "system", "machine": system, "nodes": {"min": 2, "max": 3}},
            {"name": "cpu", "machine": work, "capacity": "spot", "nodes": {"max": nodes}},
        ],
        "queues": [{"name": "cpu", "pools": ["cpu"]}],
        "teams": [{"name": "research", "queues": [{"queue": "cpu"}]}],
        **fields,
    }


def on_existing(cloud: str = "gke", **fields: Any) -> Declaration:
    """The same on an existing cluster of others, with one node of the pool `cpu`."""
    made = declared(cloud, nodes=1, **fields)
    del made["lifetime"]
    group = {"resourceGroup": "ml"} if cloud == "aks" else {}
    return made | {"cloud": made["cloud"] | {"existing": {"name": "shared"}} | group}


def kubeconfig_of(site: Checkout) -> Path:
    """Return the administrator's kubeconfig of a site's only cluster."""
    (cluster,) = (item for item in site.store.resources() if item.cloud == BEHIND)
    return Path(cluster.state["kubeconfig"])


def api_of(site: Checkout) -> Api:
    """Return the API of a site's only cluster."""
    return Api.of_kubeconfig(json.loads(kubeconfig_of(site).read_text()))


@contextmanager
def live(directory: Path, declared: Declaration, request: pytest.FixtureRequest) -> Generator[Checkout]:
    """A copy of the checkout with a declared stack that has no resources yet."""
    root = checkout_in(directory)
    tools = (*needed(()), *tools_of(declared))
    (root / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"ebbtide:cluster": declared}}))
    with (
        narration(Console(stderr=True)) as say,
        stay(read_stack(root, "dev"), ensure(tools, on_step=say), say, keep=directory / "stay") as up,
    ):
        request.node.user_properties.extend(up.shell.versions.items())
        own = up.shell.having(HOME=str(directory), PULUMI_SKIP_CONFIRMATIONS="true")
        site = Checkout(Terminal(up.project, own.environment()), up.cloud.store)
        site.terminal.run("pulumi stack init dev")
        yield site
