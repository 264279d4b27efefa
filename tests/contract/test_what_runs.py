"""Properties of all workloads on the cluster in every graph, on both clouds."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from ebbtide.analysis.recording.recording import Recording
from tests.declarations import BASES, Declaration, changed, pool
from tests.manifests import assert_valid
from tests.running import (
    BUILT_IN,
    CHART,
    EVERYTHING,
    KUBERNETES,
    MODES,
    after,
    full,
    in_cluster,
    manifest,
    operator,
    over_images,
)
from tests.synth import synth


def brings(recording: Recording, namespace: str) -> set[str]:
    """Return the URNs of the resources that create a namespace, or label an existing one."""
    direct = {
        item.urn
        for item in recording
        if item.type in ("kubernetes:core/v1:Namespace", "kubernetes:core/v1:NamespacePatch")
        and manifest(item)["metadata"]["name"] == namespace
    }
    ending = {"kubeflow": "-pipelines-cluster", "katib": "-katib-objects"}.get(namespace)
    with_add_ons = {
        item.urn
        for item in recording
        if ending is not None and item.type.endswith(":Directory") and item.name.endswith(ending)
    }
    return direct | with_add_ons


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("drivers", ["managed", "gpu-operator"])
def test_nothing_is_made_before_its_namespace(cloud: str, drivers: str) -> None:
    """Every object waits for what brings its namespace; `kube-system` and `default` are always there, and the
    role over events about nodes needs no label of `default`."""
    recording = synth(full(cloud, drivers=drivers))
    for item in in_cluster(recording):
        namespace = manifest(item)["metadata"].get("namespace")
        about_nodes = namespace == "default" and "-addons-costs-" in item.name
        if namespace not in (None, "kube-system") and not about_nodes:
            assert brings(recording, namespace) & after(recording, item), item.urn


@pytest.mark.parametrize("cloud", BASES)
def test_nothing_but_its_kinds_of_work_is_made_before_kueue(cloud: str) -> None:
    """Kueue's custom resources and objects that its webhooks review depend on its chart, which depends on
    Trainer, because Kueue ignores training jobs whose runtimes it cannot find."""
    recording = synth(full(cloud))
    kueue, trainer = (
        next(item for item in recording.of_type(CHART) if item.inputs["name"] == name)
        for name in ("kueue", "kubeflow-trainer")
    )
    before = after(recording, kueue)
    assert trainer.urn in before
    early = [item for item in in_cluster(recording) if item.urn in before]
    system = {"kueue-system", "kubeflow-system"}
    assert {manifest(item)["metadata"]["name"] for item in early} == {*system, "ebbtide-controllers-train"}
    for item in (*in_cluster(recording), *recording.of_type(CHART)):
        # Webhooks are asked neither about network policies of the two namespaces nor about policies.
        about = manifest(item)
        unasked = about.get("metadata", {}).get("namespace") in system
        unasked = unasked or about.get("kind", "").startswith("ValidatingAdmissionPolicy")
        if item.urn not in before and item is not kueue and not unasked:
            assert kueue.urn in after(recording, item), item.urn


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("drivers", ["managed", "gpu-operator"])
def test_built_in_kinds_are_valid(cloud: str, drivers: str) -> None:
    """Objects are valid by the API schema of that Kubernetes version, which also finds misspelt fields."""
    recording = synth(full(cloud, drivers=drivers))
    validated = 0
    for item in in_cluster(recording):
        if manifest(item)["apiVersion"] in BUILT_IN:
            assert_valid(manifest(item), KUBERNETES)
            validated += 1
    assert validated


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
    for declaration in over_images(changed(base, addons=EVERYTHING | addons, queues=[])):
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
                    assert re.search(r"\?ref=[0-9a-f]{40}$", text), text
            if item.type == CHART:
                assert re.fullmatch(r"v?\d+\.\d+\.\d+", str(item.inputs["version"]))


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
