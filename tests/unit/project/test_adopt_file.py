"""The file of adopted resources: every fault at once with its position, and the import in the program."""

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.recording.program import ProgramError
from ebbtide.declaration.project.adopt_file import (
    AdoptedResource,
    AdoptFileError,
    read_adopt_file,
    write_adopt_file,
)
from tests.declarations import AKS, GKE, changed
from tests.synth import synth

_POOL = "gcp:container/nodePool:NodePool"
_FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"


def _file(directory: Path, *resources: dict[str, Any]) -> Path:
    file = directory / "adopt.dev.json"
    lines = ",\n".join(json.dumps(item) for item in resources)
    file.write_text(f'{{"resources": [\n{lines}\n]}}\n')
    return file


def test_every_fault_has_its_position(tmp_path: Path) -> None:
    """An invalid file gets one answer with all faults: line, path, problem, consequence and fix."""
    good = {"type": _POOL, "name": "train-cpu", "id": "acme-ml/us-central1-a/train/cpu"}
    file = _file(
        tmp_path,
        good,
        {**good, "id": "acme-ml/us-central1-a/train/other"},
        {**good, "name": "train-t4", "nmae": "x"},
        {"type": "NodePool", "name": "train-a100"},
        {"type": "pulumi:providers:gcp", "name": "train-gcp", "id": 4},
        {**good, "name": "train-steady"},
        {"type": _FLAVOR, "name": "train-cpu", "id": "cpu", "found": "spec"},
    )
    with pytest.raises(AdoptFileError) as error:
        read_adopt_file(file)
    lines = [line.removeprefix(f"{file}:").split(". ")[0] for line in str(error.value).splitlines()]
    assert lines == [
        f"3:45: resources[1].name: {_POOL} has the name train-cpu twice, first in resources[0]",
        "4:106: resources[2].nmae: There is no nmae here; did you mean name? The key would have no effect",
        "5:2: resources[3].type: NodePool is not a type",
        "5:1: resources[3].id: There is no id",
        "6:2: resources[4].type: pulumi:providers:gcp exists in Pulumi's state alone",
        "6:55: resources[4].id: The id is the number 4",
        f"7:69: resources[5].id: {_POOL} has the id {good['id']} twice, first in resources[0]",
        '8:96: resources[6].found: The field found is the text "spec"',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "The file has no list `resources`."),
        ('{"resources": [', "or the file is truncated"),
        ('{"resources": ["train"], "version": 1}', "There is no version here."),
        (None, "The file cannot be read"),
    ],
)
def test_an_unusable_file_is_refused_with_its_name(tmp_path: Path, text: str | None, problem: str) -> None:
    """A missing, truncated or different file is an error that names it."""
    file = tmp_path / "adopt.dev.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(AdoptFileError) as error:
        read_adopt_file(file)
    assert str(file) in str(error.value)
    assert problem in str(error.value)


def test_a_written_file_is_read_again(tmp_path: Path) -> None:
    """Types, names, ids and found fields survive, also quotes in an id."""
    resources = (
        AdoptedResource(_POOL, 'a"b', "x/y"),
        AdoptedResource(_FLAVOR, "flavor", "cpu", {"spec": {"nodeLabels": {"a": "1"}}}),
    )
    for written in (resources, ()):
        write_adopt_file(tmp_path / "adopt.dev.json", written)
        assert read_adopt_file(tmp_path / "adopt.dev.json") == written
    assert [file.name for file in tmp_path.iterdir()] == ["adopt.dev.json"]


def test_adopted_resources_are_imported(tmp_path: Path) -> None:
    """The program imports the resources of the file alone; Kubernetes objects take over foreign fields."""
    flavor = "train-addons-queues-resourceflavor-cpu"
    file = _file(
        tmp_path,
        {"type": _POOL, "name": "train-cpu", "id": "acme-ml/us-central1-a/train/cpu"},
        {"type": _FLAVOR, "name": flavor, "id": "cpu"},
    )
    before, after = synth(GKE), synth(changed(GKE, adopt=str(file)))
    assert {item.name: item.import_id for item in after if item.import_id} == {
        "train-cpu": "acme-ml/us-central1-a/train/cpu",
        flavor: "cpu",
    }
    changes = {item.name for item in after if item.inputs != before[item.urn].inputs}
    assert changes == {flavor}
    assert after.named(flavor).inputs["metadata"] == {
        "name": "cpu",
        "annotations": {"pulumi.com/patchForce": "true"},
    }


def test_a_resource_that_the_program_lacks_is_an_error(tmp_path: Path) -> None:
    """All unknown names and types are reported, with the nearest ones."""
    file = _file(
        tmp_path,
        {"type": _POOL, "name": "train-cpus", "id": "1"},
        {"type": "gcp:container/nodePools:NodePools", "name": "train-t4", "id": "2"},
    )
    with pytest.raises(ProgramError) as error:
        synth(changed(GKE, adopt=str(file)))
    first, second = str(error.value).splitlines()
    assert (
        f"{file}:2:1: resources[0]: The program has no {_POOL} named train-cpus; did you mean train-cpu? "
        in first
    )
    assert (
        "3:1: resources[1]: The program has no resource of the type gcp:container/nodePools:NodePools; "
        in second
    )
    assert f"did you mean {_POOL}? It would not be adopted." in second
    with pytest.raises(ProgramError, match=f"no resource of the type {_POOL}"):
        synth(changed(AKS, adopt=str(file)))
