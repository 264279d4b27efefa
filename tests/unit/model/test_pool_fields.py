"""Metadata of a pool's fields, from which rules, refusals and the page on overrides follow."""

import pytest

from ebbtide.declaration.model import Pool, Spot
from ebbtide.declaration.model.pool import PoolField, pool_fields

_WITHOUT = {"locationPolicy", "tpuTopology", "drainTimeout", "overrides"}
"""Fields without an input of their own: in `autoscaling` and `placementPolicy`, or read by Ebbtide alone."""


def _only(field: PoolField) -> bool:
    return field.only is not None


def test_every_field_has_its_inputs() -> None:
    """A new field without metadata is found, and could be overridden unnoticed otherwise."""
    fields = {field.path for field in pool_fields() if field.owner is Pool}
    with_inputs = {field.path.partition(".")[0] for field in pool_fields() if field.inputs}
    assert fields - with_inputs == _WITHOUT


@pytest.mark.parametrize("field", list(filter(_only, pool_fields())), ids=lambda field: field.path)
def test_a_field_of_one_cloud_has_no_input_of_the_other(field: PoolField) -> None:
    """The rule that refuses the field there would contradict it."""
    assert field.only is not None
    assert all(inputs.cloud is field.only.cloud for inputs in field.inputs)


def test_a_field_is_written_with_another_value_than_the_default() -> None:
    """For a field of a part, only if the pool has that part."""
    fields = [field for field in pool_fields() if field.only]
    plain = Pool(name="p", machine="n2-standard-8")
    spot = Pool(name="p", machine="n2-standard-8", capacity=Spot(max_price=0.5), gvnic=False)
    assert not any(field.is_written(plain) for field in fields)
    assert {field.path for field in fields if field.is_written(spot)} == {
        "gvnic",
        "capacity.maxPrice",
    }
