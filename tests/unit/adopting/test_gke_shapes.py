"""Clusters of public examples are adopted without a replacement, and nearly all of their fields are declared.

`python -m tests.unit.adopting.test_gke_shapes` writes the golden tables again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.analysis.adopting import google
from ebbtide.analysis.adopting.adoption import LEFT, OVERRIDDEN, Adoption
from ebbtide.analysis.adopting.proof import name_of
from ebbtide.analysis.providers.property_path import plain_path
from ebbtide.analysis.recording.values import masked
from ebbtide.analysis.review.difference import compare
from tests.unit.adopting.gke_shapes import SHAPES, Document
from tests.unit.adopting.test_gke import adopted
from tests.unit.adopting.test_nothing_is_skipped import unlisted

_GOLDEN = Path(__file__).parent / "gke_tables.yaml"
_ENOUGH = 0.95


def table(adoption: Adoption) -> dict[str, Any]:
    """Return the result of an adoption: numbers of fields, and those that are not simply declared."""
    own = [item for item in adoption.fields if item.status == OVERRIDDEN]
    return {
        "fields": {name: list(counts) for name, counts in adoption.counts().items()},
        "overridden": sorted({f"{item.resource}: {plain_path(item.path)}" for item in own}),
        "left": [f"{item.resource}: {item.path}" for item in adoption.fields if item.status == LEFT],
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
    read, declared, overridden, _ = adoption.counts()["total"]
    assert declared + overridden >= _ENOUGH * read
    assert table(adoption) == yaml.safe_load(_GOLDEN.read_text())[shape.__name__]
    changes = compare(adoption.before, adoption.recording, deployed=True)
    assert {change.action for change in changes} == {"create", "update"}
    changed = {(name_of(change.resource), item.path) for change in changes for item in change.fields}
    assert changed == {(item.resource, item.path) for item in adoption.updates}


def main() -> None:
    """Write the golden tables."""
    tables = {shape.__name__: table(adopted(shape())) for shape in SHAPES}
    _GOLDEN.write_text(yaml.safe_dump(tables, sort_keys=False, width=200, default_flow_style=None))


if __name__ == "__main__":
    main()
