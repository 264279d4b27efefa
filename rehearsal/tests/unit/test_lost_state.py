"""Resources of teams of a stack whose state is lost, in the fake clouds."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from ebbtide.analysis.recording.recording import Recording
from ebbtide.clients.kubernetes.objects import text
from ebbtide.declaration.project.adopt_file import AdoptedResource, read_adopt_file, write_adopt_file
from ebbtide.operations import access
from ebbtide.operations.engine.stack import Preview, Stack
from ebbtide.operations.leftovers.stack import find_teams
from ebbtide.placement.profile_sources import KEY
from ebbtide.values.kueue_api import object_path
from ebbtide_rehearsal.cloud.store import Resource
from rehearsal.tests.unit.rest_clouds import RestClouds, rest_clouds
from tests.declarations import AKS, GKE, Declaration, pool
from tests.synth import synth

_GRANTS = ("IAMMember", "RoleAssignment")


class _Stack:
    """A stack without a state on a cluster that answers."""

    name = "dev"

    def exported(self) -> dict[str, Any]:
        return {"deployment": {}}

    def outputs(self) -> Mapping[str, Any]:
        return {}

    def preview(self) -> Preview:
        return Preview((), (), "{}")


class _Project:
    """A project whose stack adopts a pool, and what exists of its teams.

    Attributes:
        recording: its program.
        objects: the objects in its cluster, by path.
        teams: the resources of its teams, and Kueue's objects.
    """

    def __init__(self, root: Path, clouds: RestClouds, declared: Declaration) -> None:
        declared = copy.deepcopy(declared) | {"adopt": "adopt.dev.json"}
        volume = "filestore" if declared["cloud"]["kind"] == "gke" else "azure-files"
        declared["teams"] = [
            {"name": "research", "bucket": {}, "registry": {}, "volume": {"kind": volume}},
            {"name": "vision", "bucket": {}, "namespace": {"name": "shared", "create": False}},
        ]
        declared["pools"] = [pool(declared, name) for name in ("system", "cpu")]
        declared["queues"] = [{"name": "cpu", "pools": ["cpu"]}]
        (root / "Pulumi.yaml").write_text("{name: ebbtide, runtime: python}\n")
        (root / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"ebbtide:cluster": declared}}))
        self.root, self._clouds = root, clouds
        self.file = root / "adopt.dev.json"
        self.recording: Recording = synth({key: value for key, value in declared.items() if key != "adopt"})
        self.teams = [
            item
            for item in self.recording
            if item.custom and not item.read and not item.type.endswith(_GRANTS)
            if any(f"-team-{name}" in item.name for name in ("research", "vision")) or ":kueue" in item.type
        ]
        self.objects: dict[str, Any] = {}
        for item in self.teams:
            if item.type.startswith("kubernetes:"):
                path = object_path(item.type.removesuffix("Patch"), str(item.id))
                self.objects[path] = copy.deepcopy(dict(item.inputs))
            else:
                cloud = "gcp" if item.type.startswith("gcp:") else "azure-native"
                clouds.store.put(Resource(cloud, str(item.id), item.type, inputs=dict(item.inputs)))
        write_adopt_file(self.file, [AdoptedResource("gcp:container/nodePool:NodePool", "train-cpu", "p")])

    def find(self, path: str) -> Any:
        """Return an object in the cluster; None if it does not exist."""
        return self.objects.get(path)

    def label(self, identity: str, **labels: str) -> None:
        """Replace the labels of a resource in the cloud."""
        (item,) = (item for item in self._clouds.store.resources() if item.id == identity)
        self._clouds.store.put(replace(item, inputs={"labels": labels, "tags": labels}))

    def found(self, *others: Any) -> set[str]:
        """Find the resources of teams, and return their ids."""
        find_teams(cast("Stack", _Stack()), self.file, self.recording, lambda: others, lambda _: None)
        return {item.id for item in read_adopt_file(self.file)} - {"p"}


@pytest.fixture(params=["gke", "aks"])
def project(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stack whose state is lost."""
    with rest_clouds(tmp_path, monkeypatch) as clouds:
        made = _Project(tmp_path, clouds, GKE if request.param == "gke" else AKS)

        def client(*_: object) -> _Project:
            return made

        monkeypatch.setattr(access, "client", client)
        yield made


def test_the_resources_of_teams_are_found(project: _Project) -> None:
    """Identities, storage and registries in the cloud, namespaces and all in them; a patch of an existing
    object is none of them."""
    expected = {str(item.id) for item in project.teams if not item.type.endswith("Patch")}
    assert project.found() == expected
    assert {"research", "research/worker", "shared/worker", "research/cpu", "train"} <= expected


def test_resources_with_other_labels_are_not_adopted(project: _Project) -> None:
    """A resource of another cluster or team, with its parts, and a namespace of another team stay as they
    are."""
    everything = project.found()
    write_adopt_file(project.file, [])
    storage = [item for item in project.teams if item.type.endswith((":Bucket", ":StorageAccount"))]
    labels = {"ebbtide-cluster": "other", "ebbtide-team": "research"}
    for item in storage:
        project.label(str(item.id), **labels)
    project.objects["/api/v1/namespaces/research"]["metadata"]["labels"]["ebbtide.dev/team"] = "other"
    (tenant,) = {item.parent for item in project.teams if item.id == "research/worker"}
    foreign = {str(item.id) for item in project.teams if item.parent == tenant} | {"research/cpu"}
    assert "train-research-shared" in foreign
    stored = tuple(str(item.id) for item in storage)
    assert project.found() == {id_ for id_ in everything - foreign if not id_.startswith(stored)}


def test_queues_of_others_are_not_adopted(project: _Project) -> None:
    """Kueue's objects stay as they are unless a queue of a team submits to one of them."""
    queueing = {str(item.id) for item in project.teams if ":kueue" in item.type}
    everything = project.found()
    write_adopt_file(project.file, [])
    for path, item in project.objects.items():
        if "/localqueues/" in path:
            item["spec"]["clusterQueue"] = "theirs"
    assert project.found() == everything - queueing


@pytest.mark.parametrize("unreadable", [None, "", "{"])
def test_resources_of_another_stack_stay_its_own(project: _Project, unreadable: str | None) -> None:
    """Another stack of the backend has them in its state; its namespaces are those where it has a profile of
    the same cluster, or an unreadable one."""
    everything = project.found()
    write_adopt_file(project.file, [])
    (profile,) = (item for item in project.teams if item.id == "shared/ebbtide-profile")
    data = json.loads(text(profile.inputs, "data", KEY))
    elsewhere = {**data, "location": "elsewhere"}
    cloud = min(id_ for id_ in everything if "team-research" in id_)
    profiles = {"shared": json.dumps(data) if unreadable is None else unreadable}
    profiles["research"] = json.dumps(elsewhere)
    resources = [
        {"type": profile.type, "id": f"{name}/ebbtide-profile", "inputs": {"data": {KEY: written}}}
        for name, written in profiles.items()
    ]
    other = {"deployment": {"resources": [*resources, {"type": "any", "id": cloud}]}}
    assert project.found(other) == {
        id_ for id_ in everything if id_ != cloud and not id_.startswith("shared/")
    }
