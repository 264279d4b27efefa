"""Every GPU pool has exactly one driver, and nothing that installs it runs elsewhere."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from tests.declarations import AKS, GKE, Declaration, changed
from tests.manifests import assert_valid
from tests.running import KUBERNETES, MODES, manifest, operator, over_images
from tests.synth import synth


def cloud_drivers(recording: Recording) -> dict[str, bool]:
    """Return, by GPU pool, whether the cloud installs the driver."""
    drivers: dict[str, bool] = {}
    for item in recording.of_type("gcp:container/nodePool:NodePool"):
        for gpu in manifest(item)["nodeConfig"].get("guestAccelerators") or ():
            version = gpu["gpuDriverInstallationConfig"]["gpuDriverVersion"]
            drivers[manifest(item)["name"]] = version != "INSTALLATION_DISABLED"
    for item in recording.of_type("azure-native:containerservice:AgentPool"):
        if (profile_ := manifest(item).get("gpuProfile")) is not None:
            drivers[manifest(item)["agentPoolName"]] = profile_["driver"] == "Install"
    return drivers


def pools_of(affinity: Mapping[str, Any]) -> list[str]:
    """The pools that a node affinity leads to, and no other."""
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("ebbtide.dev/pool", "In")
    return expression["values"]


def daemon_sets(recording: Recording) -> Iterator[tuple[str, dict[str, Any]]]:
    """Our DaemonSets: what each is for, and its pods' spec."""
    for item in recording.of_type("kubernetes:apps/v1:DaemonSet"):
        daemon_set = manifest(item)
        yield daemon_set["metadata"]["name"], daemon_set["spec"]["template"]["spec"]


@pytest.mark.parametrize(("base", "addons"), MODES)
def test_every_gpu_pool_has_one_driver(base: Declaration, addons: dict[str, Any]) -> None:
    """The cloud, an installer or the operator: never none, never two."""
    for declaration in over_images(changed(base, addons=addons)):
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
    for declaration in over_images(changed(base, addons=addons)):
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
    """DaemonSets tolerate only the taints of the pools that they select."""
    for declaration in over_images(changed(base, addons=addons)):
        by_name = {pool.name: pool for pool in profile(declare(declaration)).pools}
        for _, spec in daemon_sets(synth(declaration)):
            led_to = pools_of(spec["affinity"])
            assert all(by_name[name].accelerator is not None for name in led_to)
            wanted = {
                (taint.key, taint.value, taint.effect) for name in led_to for taint in by_name[name].taints
            }
            tolerated = {
                (toleration["key"], toleration.get("value", ""), toleration["effect"])
                for toleration in spec["tolerations"]
            }
            assert tolerated == wanted


def test_installers_are_valid() -> None:
    """Google's installers, on both images."""
    for declaration in over_images(changed(GKE, addons={"drivers": "daemonset"})):
        for item in synth(declaration).of_type("kubernetes:apps/v1:DaemonSet"):
            assert_valid(manifest(item), KUBERNETES)


def test_instances_of_a_gpu_have_a_plugin_of_their_own() -> None:
    """The plugin for GPU instances exposes each as `nvidia.com/gpu`, and whole GPUs keep the other plugin."""
    accelerator = {"type": "nvidia-a100-80gb", "gpuInstanceProfile": "MIG1g"}
    divided = {"name": "a100", "machine": "Standard_NC24ads_A100_v4", "accelerator": accelerator}
    recording = synth(changed(AKS, pools=[*AKS["pools"], divided | {"nodes": {"count": 1}}]))
    plugins = {
        manifest(item)["metadata"]["name"]: manifest(item)["spec"]["template"]["spec"]
        for item in recording.of_type("kubernetes:apps/v1:DaemonSet")
    }
    assert set(plugins) == {"ebbtide-nvidia-device-plugin", "ebbtide-nvidia-device-plugin-mig"}
    whole, parts = (plugins[name]["containers"][0] for name in sorted(plugins))
    assert "add" not in whole["securityContext"]["capabilities"]
    assert parts["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert {"name": "MIG_STRATEGY", "value": "single"} in parts["env"]


def test_gpus_of_amd_get_nothing_of_nvidia() -> None:
    """AKS installs no driver on MI300X, no plugin of NVIDIA runs there, and Jobs request AMD's resource."""
    machine = {"name": "amd", "machine": "Standard_ND96isr_MI300X_v5", "nodes": {"max": 2}}
    declaration = changed(AKS, pools=[*AKS["pools"], machine], addons={"kueue": {}, "metrics": {}})
    recording = synth(declaration)
    assert cloud_drivers(recording)["amd"] is False
    assert not [name for name, spec in daemon_sets(recording) if "amd" in pools_of(spec["affinity"])]
    made = profile(declare(declaration))
    pool = made.pool("amd")
    assert pool.accelerator is not None
    assert (pool.accelerator.resource, pool.accelerator.count, pool.image) == ("amd.com/gpu", 8, "")
    assert ("amd.com/gpu", "present") in [(taint.key, taint.value) for taint in pool.taints]
    assert pool.labels["accelerator"] == "amd"
    assert [queue.name for queue in made.queues if "amd" in queue.pools] == ["mi300x"]
    (cluster_queue,) = (
        manifest(item)
        for item in recording.of_type("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue")
        if manifest(item)["metadata"]["name"] == "mi300x"
    )
    assert "amd.com/gpu" in cluster_queue["spec"]["resourceGroups"][0]["coveredResources"]
