"""Everything around an add-on follows from its class: a made-up one is known wherever the others are."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from components.addons.addons import Addons, AddonsArgs, component
from components.addons.teams import TeamResources
from ebbtide.analysis.charges import footprints_with_disks
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.declaration.model.addons import Addons as Declared
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.resolved_pool import resolve
from ebbtide.declaration.model.rules.system_pool import system_pods
from tests.contract.flips import GKE_EXISTING
from tests.declarations import GKE, changed, pool
from tests.made_up_add_on import CHART, register
from tests.running import in_cluster, manifest
from tests.synth import synth


@pytest.fixture(autouse=True)
def _gadget(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def declaration(**more: Any) -> dict[str, Any]:
    """A cluster with the add-on, a queue and a team."""
    written = changed(GKE, addons={"gadget": {}}, queues=[{"name": "cpu", "pools": ["cpu"]}])
    pool(written, "system")["nodes"] = {"max": 6}
    return written | {"teams": [{"name": "vision", "members": ["vision@acme.example"]}]} | more


def problems(written: dict[str, Any]) -> dict[str, str]:
    """The faults of a declaration, by path."""
    with pytest.raises(DeclarationError) as refused:
        declare(written)
    return {fault.path: fault.problem for fault in refused.value.faults}


def installed(cluster: Cluster) -> Recording:
    """Record everything that runs on a cluster."""

    def program() -> None:
        provider = kubernetes.Provider("kubernetes", kubeconfig="{}")
        args = AddonsArgs(declaration=cluster, create_resources=lambda _: TeamResources(annotations={}))
        Addons("train", args, pulumi.ResourceOptions(providers=[provider]))

    return record(program, project="test", stack="test")


@pytest.mark.parametrize("name", list(ADD_ONS))
def test_every_add_on_is_found_by_its_name(name: str) -> None:
    """An add-on has a field, and a footprint and a component if it runs on the cluster."""
    add_on = ADD_ONS[name]
    assert isinstance(getattr(Declared.model_validate({name: {}}), name), add_on)
    if add_on.spec.namespace:
        assert component(add_on()).__name__ == add_on.__name__  # pyright: ignore[reportFunctionMemberAccess]


def test_the_declaration_knows_it() -> None:
    """The add-on is parsed and counted on the system pool and on each node, and the system pool has no taint
    for it."""
    cluster = declare(declaration())
    words, need = system_pods(cluster)
    assert words == "the cluster's own pods, Kueue and Acme Gadget"
    parts = (footprint(item).requests.cpu_m for item in ("gke", "kueue", "gadget"))
    assert need.cpu_m == sum(parts)
    work = next(item for item in cluster.resolved_pools if item.name == "cpu")
    per_node = work.daemon_requests.cpu_m - resolve(work, cluster.site).daemon_requests.cpu_m
    assert per_node == footprint("gadget-node").requests.cpu_m
    assert cluster.system_pool is not None
    assert cluster.system_pool.taints == ()


_REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], dict[str, str]]] = {
    "shape": (
        lambda: declaration(addons={"gadget": {"wheels": 1}}),
        {"addons.gadget.wheels": "There is no wheels here."},
    ),
    "namespace": (
        lambda: declaration(teams=[{"name": "gadget-system"}]),
        {"teams[0].name": "The namespace gadget-system belongs to Acme Gadget."},
    ),
    "taints": (
        lambda: declaration(
            pools=[{**GKE["pools"][0], "nodes": {"max": 6}, "taints": [{"key": "a"}]}, *GKE["pools"][1:]]
        ),
        {"pools[0].taints[0]": "The pods of Gadget's probes tolerate no taint, and every pool has one."},
    ),
    "version": (
        lambda: declaration(
            cloud={**GKE["cloud"], "kubernetesVersion": "1.33", "releaseChannel": "extended"}
        ),
        {"addons.gadget": "Acme Gadget needs Kubernetes 1.34 or later, and kubernetesVersion is 1.33."},
    ),
}


@pytest.mark.parametrize("case", list(_REFUSED))
def test_the_rules_know_it(case: str) -> None:
    """By its title, its namespace, its pods without tolerations and its least Kubernetes version."""
    written, expected = _REFUSED[case]
    assert problems(written()) == expected


def test_the_cluster_has_it() -> None:
    """The add-on is installed before Kueue, which admits its work; teams get its permissions, labels and
    policies."""
    recording = installed(declare(declaration()))
    chart = recording.named("train-gadget-chart")
    assert (chart.inputs["chart"], chart.inputs["version"]) == (CHART, "4.5.6")
    kueue = recording.named("train-kueue-chart")
    assert chart.urn in kueue.dependencies
    config: Any = manifest(kueue)["values"]["managerConfig"]["controllerManagerConfigYaml"]
    assert "acme.example/gadgetjob" in yaml.safe_load(config)["integrations"]["frameworks"]
    team = "train-team-vision"
    namespace = recording.named(f"{team}-namespace-vision")
    assert chart.urn in namespace.dependencies
    assert manifest(namespace)["metadata"]["labels"]["acme.example/watched"] == "yes"
    groups = [rule["apiGroups"] for rule in manifest(recording.named(f"{team}-role-member"))["rules"]]
    assert ["acme.example"] in groups
    policy = manifest(recording.named(f"{team}-networkpolicy-gadget-controller"))["spec"]
    assert policy["podSelector"]["matchExpressions"][0]["key"] == "acme.example/probe"


def test_the_review_knows_its_disks() -> None:
    """A disk of 33 GiB for each installation."""
    assert footprints_with_disks()["ebbtide:addons:Gadget"].volumes_gib == (33,)


@pytest.mark.parametrize("name", ["kueue", "trainer", "katib"])
def test_nothing_of_an_existing_add_on_is_installed(name: str) -> None:
    """The stack has the queues, and the members' rights to the add-on's kinds, but none of its objects."""
    team = {"name": "vision", "members": ["ada@acme.example"]}
    written = changed(GKE_EXISTING, queues=[{"name": "cpus", "pools": ["work"]}], teams=[team])
    recording = synth(changed(written, addons={"kueue": {}, name: {"existing": True}}))
    kind = ADD_ONS[name]
    assert not [item.urn for item in recording if f":addons:{kind.__name__}" in item.urn]
    objects = [manifest(item) for item in in_cluster(recording) if not item.read]
    kinds = {item["kind"] for item in objects}
    assert {"ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass"} <= kinds
    assert kind.spec.namespace not in [item["metadata"]["name"] for item in objects]
    rules = [rule for item in objects if item["kind"] == "Role" for rule in item["rules"]]
    assert {right.group for right in kind.spec.rights} <= {rule["apiGroups"][0] for rule in rules}


def test_trials_of_an_existing_katib_are_checked_in_the_teams_namespaces() -> None:
    """Katib creates what a trial names with its own rights; namespaces of others are not restricted."""
    team = {"name": "vision", "members": ["ada@acme.example"]}
    recording = synth(changed(GKE_EXISTING, teams=[team], addons={"katib": {"existing": True}}))
    binding, *others = [
        manifest(item)
        for item in in_cluster(recording)
        if manifest(item)["metadata"]["name"] == "ebbtide-trials-train"
        and manifest(item)["kind"] == "ValidatingAdmissionPolicyBinding"
    ]
    assert others == []
    (names,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert names["values"] == ["vision"]
    (source,) = [
        manifest(item)["spec"]["ingress"][0]["from"]
        for item in in_cluster(recording)
        if manifest(item)["metadata"]["name"] == "katib-controller"
    ]
    namespaces = [item["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for item in source]
    assert namespaces == ["katib", "kubeflow"]
