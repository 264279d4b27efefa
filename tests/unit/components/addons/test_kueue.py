"""Kueue as it is told to be: what it watches, how long it waits, where it runs, where it is reached."""

from typing import Any

import pytest
import yaml

from components.addons.kueue import values
from ebbtide.declaration.model.declare import declare
from tests.declarations import AKS, GKE, Declaration, changed, pool


def config(declaration: Declaration) -> dict[str, Any]:
    """The controller's configuration, as it reads it."""
    configuration = values(declare(declaration))["managerConfig"]["controllerManagerConfigYaml"]
    return yaml.safe_load(configuration)


@pytest.mark.parametrize(
    ("nodes", "capacity", "waits"),
    [
        ({"count": 2}, "on-demand", "1800s"),
        ({"min": 1, "max": 2}, "on-demand", "1800s"),
        ({"max": 2}, "spot", "3600s"),
        ({"max": 2}, "flex-start", "604800s"),
        ({"max": 2}, "queued", "3600s"),
    ],
)
def test_it_waits_as_long_as_nodes_take(nodes: Declaration, capacity: str, waits: str) -> None:
    """Longer where nodes start from zero, longest where they wait for stock after admission."""
    declaration = changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}])
    pool(declaration, "t4").update(nodes=nodes, capacity=capacity)
    if capacity == "flex-start":
        pool(declaration, "t4")["capacity"] = {"kind": "flex-start", "maxRunDuration": "1h"}
    assert config(declaration)["waitForPodsReady"]["timeout"] == waits


def test_its_memory_follows_from_the_jobs_that_may_wait() -> None:
    """Each team adds its limit of Jobs to the request and, as large ones, to the limit of memory."""

    def memory(*limits: int) -> list[str]:
        teams = [{"name": f"team-{number}", "limits": {"jobs": jobs}} for number, jobs in enumerate(limits)]
        manager = values(declare(changed(GKE, addons={"kueue": {}}, teams=teams)))["controllerManager"][
            "manager"
        ]
        return [manager["resources"][kind]["memory"] for kind in ("requests", "limits")]

    assert memory(2000) == ["256Mi", "576Mi"]
    assert memory(2000, 2000, 4000) == ["512Mi", "1664Mi"]
    assert memory(8000) == memory(2000, 2000, 4000)


def test_it_is_at_home_on_the_system_pool() -> None:
    """On AKS past the taint that keeps work away; on a cluster that is there, on the nodes that AKS calls
    system."""
    tolerations = [
        {"key": "CriticalAddonsOnly", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    ]
    declared = changed(AKS, addons={"kueue": {}})
    existing = changed(declared, pools=AKS["pools"][1:])
    existing["cloud"]["existing"] = {"name": "theirs"}
    ours, theirs = (values(declare(item))["controllerManager"] for item in (declared, existing))
    assert ours["nodeSelector"] == {"ebbtide.dev/pool": "system"}
    assert theirs["nodeSelector"] == {"kubernetes.azure.com/mode": "system"}
    assert ours["tolerations"] == theirs["tolerations"] == tolerations
