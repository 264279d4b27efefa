"""Rows of a pool's fields: inputs that the provider has, read as they are written."""

import json
from functools import reduce
from typing import Any

import pytest

from ebbtide.declaration.model.base import POOL_TYPES
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.pool_inputs import Row, fields_of, inputs_of, rows
from ebbtide.declaration.providers.schema import alternatives, item_of, properties, properties_of, word
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import path_keys, python_name, value_at
from tests.contract.flips import Flip
from tests.contract.pool_flips import AKS_POOL, GKE_POOL


def test_rows_have_inputs_of_the_provider() -> None:
    """Each path exists in the SDK's classes, under the derived Python names."""
    for cloud in CloudKind:
        for row in rows(cloud):
            _assert_known(cloud, row)


def _assert_known(cloud: CloudKind, row: Row) -> None:
    known: Any = properties(POOL_TYPES[cloud])
    kind: Any = None
    for key, python in zip(path_keys(row.path), row.keys, strict=True):
        if isinstance(key, str):
            assert known[key].python == python, row.path
            kind = alternatives(known[key].hint)[0]
        else:
            kind = item_of(kind)
        known = properties_of(kind) if word(kind) == "object" else {}


@pytest.mark.parametrize("flip", [*GKE_POOL, *AKS_POOL], ids=lambda flip: flip.field)
def test_fields_are_read_as_they_are_written(flip: Flip) -> None:
    """Both directions of each row agree in every change of a pool."""
    for written in (flip.before, flip.after):
        pool = declare(written).resolved_pools[-1]
        inputs = json.loads(json.dumps(inputs_of(pool)).replace('"disk_image"', '"diskImage"'))
        read = fields_of(pool.site.cloud, lambda path, inputs=inputs: value_at(inputs, python_name(path)))
        on_nodes: dict[str, Any] = {
            "labels": pool.labels_and_taints.labels,
            "taints": pool.labels_and_taints.taints,
        }
        for row in rows(pool.site.cloud):
            part: Any = reduce(lambda at, name: getattr(at, name, None), row.parents, pool)
            if isinstance(part, row.owner):
                found = reduce(lambda at, name: at[name], row.parents, read)[row.name]
                expected = on_nodes.get(row.name, getattr(part, row.name))
                assert (found and row.form.write(found)) == (expected and row.form.write(expected)) or not (
                    found or expected
                )
