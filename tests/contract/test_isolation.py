"""Network policies between pods, and permissions of the add-ons' pods on a node, on both clouds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from components.addons.katib import INJECTED
from components.addons.katib import patches as katib_patches
from components.addons.patches import EVERYONE, Object, for_readers
from ebbtide.analysis.recording.recording import Recording
from ebbtide.values.selectors import selects
from tests.declarations import BASES
from tests.manifests import HOME, KATIB, PIPELINES, PIPELINES_CLUSTER, after, upstream
from tests.running import full, in_cluster, manifest
from tests.synth import synth

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Pod:
    """A pod, or an address outside of the pods' network, which has no namespace."""

    namespace: str = ""
    labels: Labels = field(default_factory=dict[str, str])


OUTSIDE = Pod()
TEAM = Pod("vision", {"batch.kubernetes.io/job-name": "train"})


@dataclass(frozen=True)
class Network:
    """Network policies, and the labels of namespaces."""

    policies: tuple[Object, ...]
    namespaces: Mapping[str, Labels]

    def lets(self, source: Pod, target: Pod, port: int) -> bool:
        """Return whether a connection is allowed: by any policy, or because no policy selects the target."""
        chosen = self._selecting(target, "Ingress")
        rules = [rule for spec in chosen for rule in spec["ingress"]]
        return not chosen or any(self._admits(rule, source, target, port) for rule in rules)

    def reaches(self, source: Pod, address: str) -> bool:
        """Return whether a pod may connect to an address outside of the pods' network."""
        chosen = self._selecting(source, "Egress")
        peers = [peer for spec in chosen for rule in spec["egress"] for peer in rule["to"]]
        return not chosen or any(_contains(peer["ipBlock"], address) for peer in peers if "ipBlock" in peer)

    def _selecting(self, pod: Pod, direction: str) -> list[Mapping[str, Any]]:
        """Return the specs of the policies on a pod's connections in a direction."""
        return [
            item["spec"]
            for item in self.policies
            if item["metadata"]["namespace"] == pod.namespace
            and direction in item["spec"]["policyTypes"]
            and selects(item["spec"]["podSelector"], pod.labels)
        ]

    def _admits(self, rule: Mapping[str, Any], source: Pod, target: Pod, port: int) -> bool:
        ports = rule.get("ports")
        if ports is not None and all(item["port"] != port for item in ports):
            return False
        return "from" not in rule or any(self._is(peer, source, target) for peer in rule["from"])

    def _is(self, peer: Mapping[str, Any], source: Pod, target: Pod) -> bool:
        """Return whether a source is a peer; none of the policies has a range of addresses."""
        if not source.namespace:
            return False
        labels = {
            "kubernetes.io/metadata.name": source.namespace,
            **self.namespaces.get(source.namespace, {}),
        }
        inside = (
            selects(peer["namespaceSelector"], labels)
            if "namespaceSelector" in peer
            else source.namespace == target.namespace
        )
        return bool(inside and selects(peer.get("podSelector", {}), source.labels))


def _contains(block: Mapping[str, Any], address: str) -> bool:
    ranges = [block["cidr"], *block.get("except", ())]
    inside, *excluded = (ip_address(address) in ip_network(item) for item in ranges)
    return inside and not any(excluded)


def namespaces(recording: Recording) -> dict[str, dict[str, str]]:
    """Labels of the namespaces that a recording makes or labels itself, by name."""
    return {
        item["metadata"]["name"]: item["metadata"].get("labels", {})
        for item in map(manifest, in_cluster(recording))
        if item.get("kind") == "Namespace"
    }


def network(recording: Recording, *more: Object) -> Network:
    """The network of a recording, with policies that upstream brings."""
    own = [item for item in map(manifest, in_cluster(recording)) if item.get("kind") == "NetworkPolicy"]
    return Network((*own, *more), namespaces(recording))


def pods(objects: Iterable[Object], namespace: str) -> dict[str, Pod]:
    """A pod of each Deployment, by the Deployment's name."""
    return {
        item["metadata"]["name"]: Pod(namespace, item["spec"]["template"]["metadata"]["labels"])
        for item in objects
        if item["kind"] == "Deployment"
    }


@pytest.fixture(scope="module", params=list(BASES))
def recording(request: pytest.FixtureRequest) -> Recording:
    """A cluster with every add-on."""
    return synth(full(request.param))


@pytest.mark.usefixtures("minimal_and_released")
def test_no_team_reaches_pipelines(recording: Recording) -> None:
    """Neither their API nor what is behind it; a run's own pods reach what they need."""
    objects = upstream(PIPELINES)
    theirs = [item for item in objects if item["kind"] == "NetworkPolicy"]
    lets = network(recording, *theirs).lets
    by_name = pods(objects, "kubeflow")
    for pod in by_name.values():
        for port in (3000, 3306, 8080, 8111, 8333, 8443, 8887, 8888, 9333, 18888):
            assert not lets(TEAM, pod, port)
            assert not lets(OUTSIDE, pod, port)
    step = Pod("kubeflow", {"pipeline/runid": "1", "workflows.argoproj.io/workflow": "flip-coin"})
    for name, port in (
        ("ml-pipeline", 8887),
        ("ml-pipeline", 8888),
        ("metadata-grpc-deployment", 8080),
        ("seaweedfs", 8333),
    ):
        assert lets(step, by_name[name], port)
    assert not lets(step, by_name["mysql"], 3306)
    # The store's other servers ask for no password.
    assert not any(lets(step, by_name["seaweedfs"], port) for port in (8111, 8888, 9333))
    for client in ("ml-pipeline", "metadata-grpc-deployment", "cache-server"):
        assert lets(by_name[client], by_name["mysql"], 3306)
    assert lets(OUTSIDE, by_name["workflow-controller"], 9090)


@pytest.mark.usefixtures("minimal_and_released")
def test_katib_works_across_namespaces(recording: Recording) -> None:
    """Trials report, the controller asks suggestions, the API server asks the webhook; no more than that."""
    objects = after(upstream(KATIB), katib_patches(HOME, {})).values()
    lets = network(recording).lets
    by_name = pods(objects, "katib")
    suggestion = Pod("vision", {"katib.kubeflow.org/deployment": "tune-random"})
    assert lets(TEAM, by_name["katib-db-manager"], 6789)
    assert not lets(Pod("elsewhere"), by_name["katib-db-manager"], 6789)
    assert lets(by_name["katib-controller"], suggestion, 6789)
    assert not lets(by_name["katib-controller"], TEAM, 6789)
    assert lets(OUTSIDE, by_name["katib-controller"], 10250)
    assert lets(by_name["katib-db-manager"], by_name["katib-mysql"], 3306)
    for name, port in (("katib-mysql", 3306), ("katib-ui", 8080)):
        assert not lets(TEAM, by_name[name], port)


@pytest.mark.parametrize(
    ("namespace", "ports"), [("kueue-system", (443, 8443, 10250)), ("kubeflow-system", (8443, 10250, 10443))]
)
def test_controllers_are_reached_on_their_ports(
    recording: Recording, namespace: str, ports: tuple[int, ...]
) -> None:
    """The API server calls webhooks, and what is authorized reads metrics; profilers are for no one."""
    lets = network(recording).lets
    for port in ports:
        assert lets(OUTSIDE, Pod(namespace), port)
    assert not lets(TEAM, Pod(namespace), 8082)


def test_teams_are_apart(recording: Recording) -> None:
    """A team's pods are reached from its own namespace alone."""
    lets = network(recording).lets
    assert lets(TEAM, Pod("vision"), 29500)
    assert not lets(Pod("audio"), TEAM, 29500)
    assert not lets(OUTSIDE, TEAM, 29500)


METADATA_SERVICE = "169.254.169.254"


def test_no_pod_reaches_the_instance_metadata_service_of_aks() -> None:
    """Pods of teams and add-ons reach any address but that of the metadata service, and all other pods."""
    recorded = network(synth(full("aks")))
    for namespace in ("vision", "audio", "kubeflow", "katib", "kueue-system", "kubeflow-system"):
        assert not recorded.reaches(Pod(namespace), METADATA_SERVICE)
        assert recorded.reaches(Pod(namespace), "203.0.113.1")
        (policy,) = [
            item["spec"]
            for item in recorded.policies
            if item["metadata"]["namespace"] == namespace and "Egress" in item["spec"]["policyTypes"]
        ]
        assert {"namespaceSelector": {}} in policy["egress"][0]["to"]


def test_the_metadata_server_of_gke_knows_pods_only() -> None:
    """Every node pool of GKE runs the server that gives a pod its own identity, and pods reach it."""
    recording = synth(full("gke"))
    pools = recording.of_type("gcp:container/nodePool:NodePool")
    modes = {manifest(item)["nodeConfig"]["workloadMetadataConfig"]["mode"] for item in pools}
    assert modes == {"GKE_METADATA"}
    (cluster,) = recording.of_type("gcp:container/cluster:Cluster")
    assert manifest(cluster)["workloadIdentityConfig"]["workloadPool"]
    assert network(recording).reaches(TEAM, METADATA_SERVICE)


def enforced(labels: Labels) -> str | None:
    """The Pod Security Standard of a namespace."""
    return labels.get("pod-security.kubernetes.io/enforce")


def test_every_namespace_of_ours_has_a_standard(recording: Recording) -> None:
    """Controllers satisfy `restricted`, teams' work `baseline`; an existing namespace keeps its labels."""
    assert {name: enforced(labels) for name, labels in namespaces(recording).items()} == {
        "ebbtide-costs": "restricted",
        "kueue-system": "restricted",
        "kubeflow-system": "restricted",
        "vision": "baseline",
        "audio": "baseline",
        "default": None,
    }


@pytest.mark.parametrize("cloud", BASES)
def test_only_drivers_are_privileged(cloud: str) -> None:
    """And in a namespace that no team works in."""
    labels_by_namespace = namespaces(synth(full(cloud, drivers="gpu-operator")))
    privileged = [name for name, labels in labels_by_namespace.items() if enforced(labels) == "privileged"]
    assert privileged == ["gpu-operator"]


def test_no_secret_of_the_stack_is_where_a_job_mounts_it(recording: Recording) -> None:
    """A pod mounts any Secret of its namespace, such as the key of the team's storage account."""
    objects = [item for item in map(manifest, in_cluster(recording)) if item.get("kind") == "Secret"]
    secrets = {item["metadata"]["namespace"] for item in objects}
    assert secrets.isdisjoint({"vision", "audio", "default"})
    volumes = [
        item["spec"] for item in map(manifest, recording.of_type("kubernetes:core/v1:PersistentVolume"))
    ]
    references: list[Object] = [item["csi"] for item in volumes if "csi" in item]
    mounted = [item["nodeStageSecretRef"] for item in references if "nodeStageSecretRef" in item]
    assert mounted == [{key: item["metadata"][key] for key in ("name", "namespace")} for item in objects]


def test_members_only_read_outside_of_their_namespaces(recording: Recording) -> None:
    """Such as the record of costs: neither a member nor a pod of a team may change it."""
    objects = [item for item in map(manifest, in_cluster(recording)) if "kind" in item]
    roles = {
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item["rules"]
        for item in objects
        if item["kind"] in ("Role", "ClusterRole")
    }
    read: list[str] = []
    for item in objects:
        namespace = item["metadata"].get("namespace")
        names = {subject["name"] for subject in item.get("subjects", ())}
        if names.isdisjoint({"vision@acme.example", "system:serviceaccounts"}) or namespace == "vision":
            continue
        read.append(namespace)
        for rule in roles[(item["roleRef"]["kind"], namespace, item["roleRef"]["name"])]:
            assert {*rule["verbs"]} <= {"get", "list", "watch"}, (namespace, rule)
    assert "ebbtide-costs" in read


@pytest.mark.usefixtures("minimal_and_released")
def test_the_kustomizations_namespaces_have_one() -> None:
    """Katib's is ours to label; that of pipelines comes labeled, and keeps it."""
    katib = after(upstream(KATIB), katib_patches(HOME, {}))["Namespace/katib"]
    assert enforced(katib["metadata"]["labels"]) == "restricted"
    assert INJECTED not in katib["metadata"]["labels"]
    (kubeflow,) = [item for item in upstream(PIPELINES_CLUSTER) if item["kind"] == "Namespace"]
    assert enforced(kubeflow["metadata"]["labels"]) == "baseline"


@pytest.mark.usefixtures("minimal_and_released")
@pytest.mark.parametrize("name", [PIPELINES_CLUSTER, PIPELINES, KATIB])
def test_nothing_is_bound_to_everyone(name: str) -> None:
    """GKE refuses such bindings where insecure ones are off."""
    for item in after(upstream(name), (for_readers(()),)).values():
        assert all(subject["name"] != EVERYONE for subject in item.get("subjects") or ())
