"""Kueue as it is told to be: what it watches, how long it waits, where it runs, where it is reached."""

from typing import Any

import pytest
import yaml

from components.addons.kueue import WEBHOOK_PORT, configuration, values
from components.addons.manifest import has_cloud_resources
from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.declare import declare
from tests.declarations import AKS, GKE, Declaration, changed, pool

OPEN_ON_GKE = {443, 10250}
"""Ports on which the control plane of a private GKE cluster reaches nodes (GKE docs, private clusters,
2026)."""


def config(declaration: Declaration) -> dict[str, Any]:
    """The controller's configuration, as it reads it."""
    configuration = values(declare(declaration))["managerConfig"]["controllerManagerConfigYaml"]
    return yaml.safe_load(configuration)


def test_it_sees_labelled_namespaces_alone() -> None:
    """The selector of its webhooks, which the chart takes from here, is the label and nothing else."""
    assert config(GKE)["managedJobsNamespaceSelector"] == {"matchLabels": {"ebbtide.dev/queues": "true"}}
    assert config(GKE)["manageJobsWithoutQueueName"] is False


def test_ports_for_a_private_control_plane() -> None:
    """Kueue's servers listen on ports that GKE opens for the control plane, and its services target them."""
    configuration = config(GKE)
    assert {configuration["webhook"]["port"], configuration["visibilityServer"]["bindPort"]} == OPEN_ON_GKE
    (port,) = values(declare(GKE))["webhookService"]["ports"]
    assert port["targetPort"] == configuration["webhook"]["port"] == WEBHOOK_PORT


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


def test_frameworks_in_use() -> None:
    """Jobs and pods, what the add-ons bring, what is declared; each once."""
    assert config(GKE)["integrations"]["frameworks"] == ["batch/job", "pod"]
    addons = {"trainer": {}, "kueue": {"frameworks": ["ray.io/rayjob", "pod"]}}
    assert config(changed(GKE, addons=addons))["integrations"]["frameworks"] == [
        "batch/job",
        "pod",
        "jobset.x-k8s.io/jobset",
        "trainer.kubeflow.org/trainjob",
        "ray.io/rayjob",
    ]


def test_the_configuration_is_of_the_api_that_stays() -> None:
    """Kueue refuses a configuration of a version that it no longer knows."""
    assert configuration(declare(GKE))["apiVersion"] == "config.kueue.x-k8s.io/v1beta2"


def test_it_requests_what_the_catalog_says() -> None:
    """The room that is kept for it on the system pool is the room that it takes."""
    requests = values(declare(GKE))["controllerManager"]["manager"]["resources"]["requests"]
    need = footprint("kueue").requests
    assert requests == {"cpu": f"{need.cpu_m:.0f}m", "memory": f"{need.memory_mib:.0f}Mi"}


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


def test_its_image_is_the_released_one() -> None:
    """The chart's own values name a staging repository and a branch."""
    image = values(declare(GKE))["controllerManager"]["manager"]["image"]
    assert f"{image['repository']}:{image['tag']}" == f"registry.k8s.io/kueue/kueue:v{PINS['kueue'].version}"


@pytest.mark.parametrize(("replicas", "budget"), [(1, False), (2, True)])
def test_a_budget_only_where_one_may_go(replicas: int, budget: bool) -> None:  # noqa: FBT001
    """With a single controller a budget would keep its node from ever being drained."""
    addons = {"kueue": {"replicas": replicas}}
    manager = values(declare(changed(GKE, addons=addons)))["controllerManager"]
    assert (manager["replicas"], manager["podDisruptionBudget"]["enabled"]) == (replicas, budget)


def test_replicas_are_spread_over_nodes() -> None:
    """Several prefer nodes of their own, and start on one node nevertheless."""
    alone, several = (
        values(declare(changed(GKE, addons={"kueue": {"replicas": count}})))["controllerManager"]
        for count in (1, 2)
    )
    assert alone["topologySpreadConstraints"] == []
    (constraint,) = several["topologySpreadConstraints"]
    assert (constraint["topologyKey"], constraint["whenUnsatisfiable"]) == (
        "kubernetes.io/hostname",
        "ScheduleAnyway",
    )


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


HOLDERS: list[tuple[str, dict[str, Any], bool]] = [
    ("PersistentVolumeClaim", {}, True),
    ("StatefulSet", {"volumeClaimTemplates": [{}]}, True),
    ("StatefulSet", {}, False),
    ("Service", {"type": "LoadBalancer"}, True),
    ("Service", {"type": "ClusterIP"}, False),
    ("Deployment", {}, False),
    ("Deployment", {"template": {"spec": {"volumes": [{"emptyDir": {}}]}}}, False),
    ("Deployment", {"template": {"spec": {"volumes": [{"persistentVolumeClaim": {}}]}}}, True),
    ("StatefulSet", {"template": {"spec": {"volumes": [{"persistentVolumeClaim": {}}]}}}, True),
]


@pytest.mark.parametrize(("kind", "spec", "holds"), HOLDERS)
def test_what_the_cloud_keeps_something_for(kind: str, spec: dict[str, Any], holds: bool) -> None:  # noqa: FBT001
    """Disks and load balancers outlive a cluster, and a claim waits for its pods; all else ends with it."""
    assert has_cloud_resources(kind, {"spec": spec}) is holds
