"""Declarations that pass the rules are accepted by the fake clouds: a refusal is a missing rule."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rehearsal.tests.fake_clouds import refusals
from tests.catalog_declarations import accepted, catalog_declarations
from tests.synth import synth

_EXAMPLES = int(os.environ.get("EBBTIDE_CATALOG_EXAMPLES", "8"))
"""Declarations for each cloud: a few in every run, and hundreds after a change of rules or catalog."""


@pytest.mark.parametrize("cloud", ["gke", "aks"])
@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_no_accepted_declaration_is_refused(cloud: str, data: st.DataObject) -> None:
    """A declaration over the whole catalog that the rules accept is created on its cloud to the end."""
    left: Any = accepted(data.draw(catalog_declarations(cloud)))
    assume(left is not None)
    assert refusals(synth(left), left) == {}
