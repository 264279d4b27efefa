"""What every graph keeps of the things that run on the cluster, on both clouds, whatever is declared."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import pytest
from hypothesis import given, settings

from ebbtide.model import declare
from ebbtide.placement.derive import profile
from ebbtide.placement.profile import PoolProfile
from ebbtide.recording.recording import Recording, Resource, Secret
from tests.declarations import AKS, BASES, GKE, Declaration, changed, pool
from tests.synth import synth
from tests.unit.placement.test_quotas import queued

KUBERNETES = "1.37"
CHART = "kubernetes:helm.sh/v4:Chart"
BUILT_IN = ("v1", "apps/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1")

generated = settings(max_examples=15, deadline=None)

EVERYTHING: dict[str, Any] = {
    "kueue": {"replicas": 2},
    "pipelines": {},
    "trainer": {},
    "katib": {},
}
TEAMS: list[dict[str, Any]] = [
    {"name": "vision", "members": ["vision@acme.example"], "bucket": {}, "volume": {}},
    {"name": "speech", "namespace": {"name": "default", "create": False}},
]


def full(cloud: str, **addons: Any) -> Declaration:
    """A declaration with every add-on, and teams that have everything."""
    files = {"gke": "filestore", "aks": "azure-files"}[cloud]
    teams = [*TEAMS, {"name": "audio", "volume": {"kind": files}, "weight": 2}]
    declaration = changed(BASES[cloud], teams=teams, addons=EVERYTHING | addons)
    pool(declaration, "system")["nodes"] = {"max": 6}
    declaration["queues"] = [{"name": "gpus", "pools": ["t4"]}, {"name": "cpu", "pools": ["cpu"]}]
    return declaration


def in_cluster(recording: Recording) -> list[Resource]:
    """Objects in the cluster: neither components nor what stands for many objects."""
    return [item for item in recording if item.custom and item.type.startswith("kubernetes:")]


def manifest(item: Resource) -> dict[str, Any]:
    """An object as the API server would see it, secrets in the open."""
    return cast("dict[str, Any]", _plain(item.inputs))


def _plain(value: Any) -> Any:
    match value:
        case Secret():
            return _plain(value.value)
        case Mapping():
            items = cast("Mapping[str, Any]", value)
            return {key: _plain(inner) for key, inner in items.items()}
        case list() | tuple():
            return [_plain(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def after(recording: Recording, item: Resource) -> set[str]:
    """URNs of everything that is there before a resource is made; children of what it waits for among
    them."""
    seen: set[str] = set()
    rest = list(item.dependencies)
    while rest:
        urn = rest.pop()
        if urn not in seen:
            seen.add(urn)
            rest += recording[urn].dependencies
    return seen


def brings(recording: Recording, namespace: str) -> set[str]:
    """URNs of what makes a namespace, or labels one that is there."""
    direct = {
        item.urn
        for item in recording
        if item.type in ("kubernetes:core/v1:Namespace", "kubernetes:core/v1:NamespacePatch")
        and manifest(item)["metadata"]["name"] == namespace
    }
    with_pipelines = {
        item.urn
        for item in recording
        if namespace == "kubeflow" and item.type.endswith(":Directory") and item.name.endswith("-cluster")
    }
    return direct | with_pipelines


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("drivers", ["managed", "gpu-operator"])
def test_nothing_is_made_before_its_namespace(cloud: str, drivers: str) -> None:
    """Every object waits for what brings its namespace; `kube-system` is always there."""
    recording = synth(full(cloud, drivers=drivers))
    for item in in_cluster(recording):
        namespace = manifest(item)["metadata"].get("namespace")
        if namespace not in (None, "kube-system"):
            assert brings(recording, namespace) & after(recording, item), item.urn


@pytest.mark.parametrize("cloud", BASES)
def test_nothing_is_made_before_kueue(cloud: str) -> None:
    """Its kinds, and whatever its webhooks are asked about, wait for its chart."""
    recording = synth(full(cloud))
    (chart,) = [item for item in recording.of_type(CHART) if item.inputs["name"] == "kueue"]
    ours = {
        item.urn
        for item in recording.of_type("kubernetes:core/v1:Namespace")
        if item.urn in after(recording, chart)
    }
    for item in (*in_cluster(recording), *recording.of_type(CHART)):
        if item.urn not in ours and item is not chart:
            assert chart.urn in after(recording, item), item.urn


@generated
@given(queued())
def test_nothing_is_made_before_what_it_names(declaration: Declaration) -> None:
    """A queue waits for its cohort, flavors and checks, and a local queue for its queue."""
    recording = synth(declaration)
    made = {
        (manifest(item)["kind"], manifest(item)["metadata"]["name"]): item.urn
        for item in in_cluster(recording)
    }
    for item in in_cluster(recording):
        spec = manifest(item).get("spec", {})
        before = after(recording, item)
        if manifest(item)["kind"] == "LocalQueue":
            assert made["ClusterQueue", spec["clusterQueue"]] in before
        if manifest(item)["kind"] == "ClusterQueue":
            assert made["Cohort", spec["cohortName"]] in before
            for group in spec["resourceGroups"]:
                assert {made["ResourceFlavor", one["name"]] for one in group["flavors"]} <= before


@generated
@given(queued())
def test_quotas_are_what_nodes_offer(declaration: Declaration) -> None:
    """The sum of all quota of a flavor is what the pool's nodes offer by the profile, at most."""
    recording = synth(declaration)
    told = {one.name: one for one in profile(declare(declaration)).pools}
    total: dict[tuple[str, str], int] = {}
    for item in in_cluster(recording):
        for group in manifest(item).get("spec", {}).get("resourceGroups", ()):
            for one in group["flavors"]:
                for resource in one["resources"]:
                    key = (one["name"], resource["name"])
                    total[key] = total.get(key, 0) + amount(resource["nominalQuota"], resource["name"])
    for (name, resource), found in total.items():
        assert found == told[name].max_nodes * _of_a_node(told[name], resource)


def _of_a_node(one: PoolProfile, resource: str) -> int:
    if resource in ("cpu", "memory"):
        return one.cpu_m if resource == "cpu" else one.memory_mib
    has = one.accelerator
    return has.count if has is not None and has.resource == resource else 0


def amount(text: str, resource: str) -> int:
    """A quantity in millicores, MiB or pieces."""
    number, unit = re.fullmatch(r"(\d+)(\D*)", text).groups()  # pyright: ignore[reportOptionalMemberAccess]
    scale = {"Mi": 1, "Gi": 1024, "Ti": 1024**2, "m": 1}
    return int(number) * scale.get(unit, 1000 if resource == "cpu" else 1)


@generated
@given(queued())
def test_flavors_tolerate_every_taint_that_is_made(declaration: Declaration) -> None:
    """What a flavor admits gets onto its nodes, past the taints that the cloud was told to set and those it
    adds."""
    told = {one.name: one for one in profile(declare(declaration)).pools}
    for item in in_cluster(synth(declaration)):
        if manifest(item)["kind"] != "ResourceFlavor":
            continue
        spec = manifest(item)["spec"]
        tolerated = {(one["key"], one.get("value", ""), one["effect"]) for one in spec["tolerations"]}
        name = manifest(item)["metadata"]["name"]
        assert {(one.key, one.value, one.effect) for one in told[name].taints} == tolerated
        assert spec["nodeLabels"].items() <= told[name].labels.items()


MODES: list[tuple[Declaration, dict[str, Any]]] = [
    (GKE, {}),
    (GKE, {"drivers": "daemonset"}),
    (GKE, {"drivers": "gpu-operator"}),
    (AKS, {}),
    (AKS, {"drivers": "gpu-operator"}),
]


def _images(declaration: Declaration) -> list[Declaration]:
    """The declaration, and on GKE the same with its GPU pools on Ubuntu."""
    if declaration["cloud"]["kind"] != "gke":
        return [declaration]
    ubuntu = changed(declaration)
    for name in ("t4", "a100"):
        pool(ubuntu, name)["image"] = "ubuntu"
    return [declaration, ubuntu]


def cloud_drivers(recording: Recording) -> dict[str, bool]:
    """GPU pools as the cloud is told of them: whether it installs the driver."""
    found: dict[str, bool] = {}
    for item in recording.of_type("gcp:container/nodePool:NodePool"):
        for gpu in manifest(item)["nodeConfig"].get("guestAccelerators") or ():
            version = gpu["gpuDriverInstallationConfig"]["gpuDriverVersion"]
            found[manifest(item)["name"]] = version != "INSTALLATION_DISABLED"
    for item in recording.of_type("azure-native:containerservice:AgentPool"):
        if (profile_ := manifest(item).get("gpuProfile")) is not None:
            found[manifest(item)["agentPoolName"]] = profile_["driver"] == "Install"
    return found


def pools_of(affinity: Mapping[str, Any]) -> list[str]:
    """The pools that a node affinity leads to, and no other."""
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("ebbtide.dev/pool", "In")
    return expression["values"]


def daemon_sets(recording: Recording) -> Iterator[tuple[str, dict[str, Any]]]:
    """Our DaemonSets: what each is for, and its pods' spec."""
    for item in recording.of_type("kubernetes:apps/v1:DaemonSet"):
        found = manifest(item)
        yield found["metadata"]["name"], found["spec"]["template"]["spec"]


def operator(recording: Recording) -> dict[str, Any] | None:
    """Values of NVIDIA's operator, where it is there."""
    charts = [item for item in recording.of_type(CHART) if item.inputs["name"] == "gpu-operator"]
    return manifest(charts[0])["values"] if charts else None


@pytest.mark.parametrize(("base", "addons"), MODES)
def test_every_gpu_pool_has_one_driver(base: Declaration, addons: dict[str, Any]) -> None:
    """The cloud, an installer or the operator: never none, never two."""
    for declaration in _images(changed(base, addons=addons)):
        recording = synth(declaration)
        sources = {name: int(theirs) for name, theirs in cloud_drivers(recording).items()}
        assert sources
        for name, spec in daemon_sets(recording):
            if "installer" in name:
                for led_to in pools_of(spec["affinity"]):
                    sources[led_to] += 1
        if (values := operator(recording)) is not None and values["driver"]["enabled"]:
            for led_to in pools_of(values["node-feature-discovery"]["worker"]["affinity"]):
                sources[led_to] += 1
        assert set(sources.values()) == {1}


@pytest.mark.parametrize(("base", "addons"), MODES)
def test_every_gpu_pool_has_one_device_plugin(base: Declaration, addons: dict[str, Any]) -> None:
    """GKE's own unless a label keeps it off, ours on AKS, or the operator's."""
    for declaration in _images(changed(base, addons=addons)):
        recording = synth(declaration)
        plugins = dict.fromkeys(cloud_drivers(recording), 0)
        for item in recording.of_type("gcp:container/nodePool:NodePool"):
            labels = manifest(item)["nodeConfig"]["labels"]
            if manifest(item)["name"] in plugins and "gke-no-default-nvidia-gpu-device-plugin" not in labels:
                plugins[manifest(item)["name"]] += 1
        for name, spec in daemon_sets(recording):
            if "device-plugin" in name:
                for led_to in pools_of(spec["affinity"]):
                    plugins[led_to] += 1
        if (values := operator(recording)) is not None:
            for led_to in pools_of(values["node-feature-discovery"]["worker"]["affinity"]):
                plugins[led_to] += 1
        assert set(plugins.values()) == {1}


@pytest.mark.parametrize(("base", "addons"), MODES)
def test_daemon_sets_tolerate_their_pools_taints_alone(base: Declaration, addons: dict[str, Any]) -> None:
    """Each taint of the pools that they are led to, and nothing beside: not everything, and never for
    ever."""
    for declaration in _images(changed(base, addons=addons)):
        told = {one.name: one for one in profile(declare(declaration)).pools}
        for _, spec in daemon_sets(synth(declaration)):
            led_to = pools_of(spec["affinity"])
            assert all(told[name].accelerator is not None for name in led_to)
            wanted = {
                (taint.key, taint.value, taint.effect) for name in led_to for taint in told[name].taints
            }
            found = {(one["key"], one.get("value", ""), one["effect"]) for one in spec["tolerations"]}
            assert found == wanted


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("drivers", ["managed", "gpu-operator"])
def test_built_in_kinds_are_valid(cloud: str, drivers: str) -> None:
    """What the API server of that version would refuse is seen here, a misspelt field too."""
    recording = synth(full(cloud, drivers=drivers))
    seen = 0
    for item in in_cluster(recording):
        if manifest(item)["apiVersion"] in BUILT_IN:
            kubernetes_validate.validate(manifest(item), KUBERNETES, strict=True)
            seen += 1
    assert seen


def test_installers_are_valid() -> None:
    """Google's installers, on both images."""
    for declaration in _images(changed(GKE, addons={"drivers": "daemonset"})):
        for item in synth(declaration).of_type("kubernetes:apps/v1:DaemonSet"):
            kubernetes_validate.validate(manifest(item), KUBERNETES, strict=True)


def _words(value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case Mapping():
            for key, inner in cast("Mapping[str, Any]", value).items():
                if isinstance(inner, str):
                    yield key, inner
                else:
                    yield from _words(inner)
        case list():
            for inner in cast("list[Any]", value):
                yield from _words(inner)
        case _:
            return


@pytest.mark.parametrize(("base", "addons"), MODES)
def test_nothing_floats(base: Declaration, addons: dict[str, Any]) -> None:
    """Every image has a tag that is a version, or a digest; every chart a version; every kustomization a
    release."""
    for declaration in _images(changed(base, addons=EVERYTHING | addons, queues=[])):
        pool(declaration, "system")["nodes"] = {"max": 6}
        for item in synth(declaration):
            if not item.type.startswith("kubernetes:"):
                continue
            words = list(_words(manifest(item)))
            assert not [text for _, text in words if re.search(r":(latest|master|main)\b", text)]
            for key, text in words:
                if key == "image":
                    assert re.search(r":v?\d[\w.]*(@sha256:[0-9a-f]{64})?$|-nvidia-installer:fixed$", text), (
                        text
                    )
                if key == "directory":
                    assert re.search(r"\?ref=v?\d+\.\d+\.\d+$", text), text
            if item.type == CHART:
                assert re.fullmatch(r"v?\d+\.\d+\.\d+", str(item.inputs["version"]))


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("drivers", ["managed", "gpu-operator"])
def test_everything_goes_with_a_cluster_of_ours(cloud: str, drivers: str) -> None:
    """Leaves go with the cluster; components, charts and directories never say so, or a claim inside would be
    lost."""
    recording = synth(full(cloud, drivers=drivers))
    for item in recording:
        if item.type.startswith("kubernetes:"):
            assert (item.deleted_with is not None) == item.custom, item.urn
        if not item.custom:
            assert item.deleted_with is None


@pytest.mark.parametrize("cloud", BASES)
def test_everything_is_deleted_from_a_cluster_that_stays(cloud: str) -> None:
    """Nothing is left on somebody else's cluster; a claim alone goes with its namespace, after its pods."""
    declaration = full(cloud)
    declaration["pools"] = declaration["pools"][1:]
    declaration["addons"] = {key: value for key, value in EVERYTHING.items() if key != "pipelines"}
    declaration["cloud"]["existing"] = {"name": "theirs"}
    recording = synth(declaration)
    for item in in_cluster(recording):
        if item.deleted_with is None:
            continue
        assert manifest(item)["kind"] == "PersistentVolumeClaim"
        assert recording[item.deleted_with].type == "kubernetes:core/v1:Namespace"


CLAIMS = {"shared": "made by hand, on a volume whose bucket or file system is a resource of its own"}
"""Every claim that is made here, and how what is behind it goes. Those of upstream's kustomizations are named
in `tests/unit/components/addons/test_going_down.py`."""


@pytest.mark.parametrize("cloud", BASES)
def test_every_claim_and_service_is_known(cloud: str) -> None:
    """Nothing makes a disk or a load balancer behind Pulumi's back."""
    recording = synth(full(cloud))
    claims = [
        manifest(item) for item in in_cluster(recording) if manifest(item)["kind"] == "PersistentVolumeClaim"
    ]
    assert {claim["metadata"]["name"] for claim in claims} == set(CLAIMS)
    volumes = {
        manifest(item)["metadata"]["name"]
        for item in in_cluster(recording)
        if manifest(item)["kind"] == "PersistentVolume"
    }
    for claim in claims:
        assert claim["spec"]["storageClassName"] == ""
        assert claim["spec"]["volumeName"] in volumes
    assert not [item for item in in_cluster(recording) if manifest(item)["kind"] == "Service"]


@pytest.mark.parametrize("cloud", BASES)
def test_nothing_of_ours_runs_on_work_pools(cloud: str) -> None:
    """Charts are led to the system pool, past its taints."""
    recording = synth(full(cloud, drivers="gpu-operator"))
    kueue = next(item for item in recording.of_type(CHART) if item.inputs["name"] == "kueue")
    assert manifest(kueue)["values"]["controllerManager"]["nodeSelector"] == {"ebbtide.dev/pool": "system"}
    values = operator(recording)
    assert values is not None
    for part in (
        values["operator"],
        values["node-feature-discovery"]["master"],
        values["node-feature-discovery"]["gc"],
    ):
        assert part["nodeSelector"] == {"ebbtide.dev/pool": "system"}


@pytest.mark.parametrize("cloud", BASES)
def test_no_component_without_a_need(cloud: str) -> None:
    """A cluster with pools alone has nothing on it."""
    declaration = changed(BASES[cloud])
    declaration["pools"] = declaration["pools"][:2]
    assert not [
        item for item in synth(declaration) if item.type.startswith(("ebbtide:addons:", "kubernetes:"))
    ]


QUEUED_GPUS: Declaration = {
    "name": "g-dws-test-cluster",
    "owner": "dws-test",
    "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1", "releaseChannel": "rapid"},
    "lifetime": {"hours": 8},
    "pools": [
        {
            "name": "system-nodepool",
            "role": "system",
            "machine": "e2-small",
            "capacity": "spot",
            "nodes": {"min": 1, "max": 3},
            "zones": ["us-central1-f"],
        },
        {
            "name": "dws-t4-nodepool",
            "machine": "n1-standard-2",
            "accelerator": {"type": "nvidia-tesla-t4", "driver": "latest"},
            "capacity": "queued",
            "nodes": {"max": 1},
            "zones": ["us-central1-c"],
        },
    ],
    "queues": [{"name": "dws", "pools": ["dws-t4-nodepool"]}],
    "teams": [
        {
            "name": "dws-test",
            "namespace": {"name": "default", "create": False},
            "queues": [{"queue": "dws", "as": "dws-local-queue"}],
        }
    ],
}


def test_the_job_of_the_queued_story_would_be_admitted() -> None:
    """Its queue is there under its name, in `default`, which is labelled and not ours, and quota holds what
    it asks."""
    recording = synth(QUEUED_GPUS)
    by_kind = {manifest(item)["kind"]: manifest(item) for item in in_cluster(recording)}
    local = by_kind["LocalQueue"]
    assert local["metadata"] == {"name": "dws-local-queue", "namespace": "default"}
    queue = by_kind["ClusterQueue"]
    assert local["spec"]["clusterQueue"] == queue["metadata"]["name"]
    (patch,) = recording.of_type("kubernetes:core/v1:NamespacePatch")
    assert manifest(patch)["metadata"]["labels"]["ebbtide.dev/queues"] == "true"
    (group,) = by_kind["Cohort"]["spec"]["resourceGroups"]
    offered = {
        resource["name"]: amount(resource["nominalQuota"], resource["name"])
        for resource in group["flavors"][0]["resources"]
    }
    asked = {"cpu": 100, "memory": 100, "nvidia.com/gpu": 1}
    assert set(asked) <= set(queue["spec"]["resourceGroups"][0]["coveredResources"])
    assert all(asked[name] <= offered[name] for name in asked)
    assert queue["spec"]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "default"}
    assert "LimitRange" not in by_kind
