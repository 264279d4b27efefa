"""Clusters of public examples are adopted without a replacement, and nearly all of their fields are declared.

`python -m tests.unit.adopting.test_gke_shapes` writes the golden tables again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.analysis.changes.property_path import plain_path
from ebbtide.analysis.recording.values import masked
from ebbtide.analysis.review.difference import compare
from ebbtide.declaration.model.pool_inputs import field_by_input
from ebbtide.operations.adopting import google
from ebbtide.operations.adopting.found import CHANGED, LEFT, OVERRIDDEN, Adoption
from ebbtide.operations.adopting.proof import name_of
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.adopting.gke_shapes import SHAPES, Document, cluster, merged, pool
from tests.unit.adopting.test_gke import WORKLOAD_IDENTITY, adopted
from tests.unit.adopting.test_nothing_is_skipped import unlisted

_GOLDEN = Path(__file__).parent / "gke_tables.yaml"
_ENOUGH = 0.95


def table(adoption: Adoption) -> dict[str, Any]:
    """Return the result of an adoption: numbers of fields, and those that are not simply declared."""
    own = [item for item in adoption.fields if item.status == OVERRIDDEN]
    return {
        "fields": {name: list(counts) for name, counts in adoption.counts().items()},
        "overridden": sorted({f"{item.resource}: {plain_path(item.path)}" for item in own}),
        **{
            status: [f"{item.resource}: {item.path}" for item in adoption.fields if item.status == status]
            for status in (CHANGED, LEFT)
        },
        "updated": [
            f"{item.resource}: {item.path} {masked(item.old)} > {masked(item.new)}"
            for item in adoption.updates
        ],
        "not adopted": [part.name for part in adoption.left_out],
    }


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_public_shape_is_adopted(shape: Callable[[], Document]) -> None:
    """Cluster and pools are adopted whole, with 95 % of their fields at least; the first update replaces
    nothing and changes the listed fields alone."""
    adoption = adopted(shape())
    found = google.read(shape(), "cluster.json")
    assert found
    assert unlisted(found, adoption) == []
    assert "existing" not in adoption.declaration["cloud"]
    read, declared, overridden, *_ = adoption.counts()["total"]
    assert declared + overridden >= _ENOUGH * read
    pools = {item["name"] for item in adoption.declaration["pools"]}
    kept = [row for row in adoption.fields if row.resource in pools and row.status == LEFT]
    assert not [row.path for row in kept if plain_path(row.path) in field_by_input(CloudKind.GKE)]
    assert table(adoption) == yaml.safe_load(_GOLDEN.read_text())[shape.__name__]
    changes = compare(adoption.before, adoption.recording, deployed=True)
    assert {change.action for change in changes} == {"create", "update"}
    changed = {(name_of(change.resource), item.path) for change in changes for item in change.fields}
    assert changed == {(item.resource, item.path) for item in adoption.updates}
    assert [item.path for item in adoption.updates if item.recreates] == []


@pytest.mark.parametrize(
    "config",
    [
        {"kubeletConfig": None},
        {"kubeletConfig": {"insecureKubeletReadonlyPortEnabled": None, "cpuManagerPolicy": "none"}},
        {"workloadMetadataConfig": None},
        {"workloadMetadataConfig": {"mode": "GCE_METADATA"}},
        {"linuxNodeConfig": {"cgroupMode": "CGROUP_MODE_V2"}, "kubeletConfig": {"cpuCfsQuota": False}},
    ],
    ids=str,
)
@pytest.mark.parametrize("pools_only", [False, True])
def test_the_first_update_recreates_no_nodes(config: Document, *, pools_only: bool) -> None:
    """Settings of nodes stay as they are, absent ones too: pods keep their CPU limits and their identity."""
    document = cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4")], **WORKLOAD_IDENTITY)
    for item in document["nodePools"]:
        item["config"] = merged(item["config"], config)
    adoption = adopted(document, pools_only=pools_only)
    assert [row.path for row in adoption.updates if row.recreates] == []
    kept = ("nodeConfig.kubeletConfig", "nodeConfig.linuxNodeConfig", "nodeConfig.workloadMetadataConfig")
    assert [row.path for row in adoption.updates if row.path.startswith(kept)] == []


def test_a_pool_of_an_image_that_is_gone_says_that_its_nodes_are_recreated() -> None:
    """COS became COS_CONTAINERD: no field or override keeps it, and the report names the change."""
    old = pool("admin", "e2-standard-4", config={"imageType": "COS"})
    adoption = adopted(cluster("lab", "us-central1-a", [old]))
    assert [(row.path, row.new) for row in adoption.updates if row.recreates] == [
        ("nodeConfig.imageType", "COS_CONTAINERD")
    ]


def main() -> None:
    """Write the golden tables."""
    tables = {shape.__name__: table(adopted(shape())) for shape in SHAPES}
    _GOLDEN.write_text(yaml.safe_dump(tables, sort_keys=False, width=200, default_flow_style=None))


if __name__ == "__main__":
    main()
