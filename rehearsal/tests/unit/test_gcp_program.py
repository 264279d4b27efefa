"""Requests of the program to Google Cloud, for every declaration in the repository, on the fake cloud."""

from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.gcp.provider import KINDS
from ebbtide_rehearsal.cloud.provider import DiffResult
from rehearsal.tests.unit.gcp_cloud import Cloud, asked_for
from tests.declarations import GKE, Declaration, changed
from tests.repository import STACK_FILES, declaration, relative
from tests.running import full

FULL = full("gke", pipelines={"artifacts": "bucket"})
KEY = "projects/acme-ml/locations/us-central1/keyRings/clusters/cryptoKeys/train"
REGIONAL = changed(GKE, cloud=GKE["cloud"] | {"location": "us-central1"})
DECLARATIONS = {
    "small": GKE,
    "regional": REGIONAL,
    "everything": changed(FULL, cloud=FULL["cloud"] | {"keys": {"secrets": KEY, "disks": KEY}}),
    **{
        relative(file): declaration(file)
        for file in STACK_FILES
        if declaration(file)["cloud"]["kind"] == "gke" and "existing" not in declaration(file)["cloud"]
    },
}


@pytest.mark.parametrize("declared", DECLARATIONS.values(), ids=DECLARATIONS.keys())
def test_all_of_it_comes_and_goes(tmp_path: Path, declared: Declaration) -> None:
    """Each resource is created with the id that the preview assumes, reads back as declared, has no
    difference afterwards, and can be deleted; nothing is left."""
    cloud = Cloud(tmp_path, declared["cloud"]["project"])
    ephemeral = {"name": "it-test", **declared, "lifetime": {"hours": 8}}
    made: list[str] = []
    for resource, inputs in asked_for(ephemeral):
        created = cloud.create(resource.type, inputs, resource.name)
        assert created.id == resource.id
        assert (cloud.read(created.id).inputs, []) == cloud.check(resource.type, inputs)
        assert cloud.diff(created.id, inputs) == DiffResult()
        made.append(created.id)

    assert {pool["name"] for pool in declared["pools"]} <= cloud.node_pools().keys()
    for identity in reversed(made):
        cloud.delete(identity)
    assert cloud.store.resources() == []
    assert cloud.clusters.running == {}


def test_every_type_is_tried() -> None:
    """The program creates every type of the table."""
    made = {resource.type for resource, _ in asked_for(DECLARATIONS["everything"])}
    assert made == KINDS.keys()


def test_what_happens_is_told(tmp_path: Path) -> None:
    """The timeline has clusters and node pools, and no other resources."""
    cloud = Cloud(tmp_path)
    for resource, inputs in asked_for(GKE):
        cloud.create(resource.type, inputs, resource.name)
    events = [(event.kind, event.text) for event in cloud.store.events()]
    assert events[0] == ("cluster-created", "The cluster train was created.")
    assert ("node-pool-created", "The node pool cpu was created.") in events
    assert len(events) == 1 + len(GKE["pools"])
