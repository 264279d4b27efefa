"""The owner of a cluster, a label on everything that is billed."""

import json

import pytest

from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from tests.declarations import BASES, changed
from tests.repository import ROOT


def _recorded(cloud: str, owner: str) -> Recording:
    config = {"ebbtide:cluster": json.dumps(changed(BASES[cloud], owner=owner))}
    return record(ROOT, project="ebbtide", stack="test", config=config)


@pytest.mark.parametrize("cloud", BASES)
def test_another_owner_replaces_nothing(cloud: str) -> None:
    """A new owner does not replace the GKE cluster, whose description used to contain it."""
    changes = compare(_recorded(cloud, "vision"), _recorded(cloud, "speech"))
    assert {change.action for change in changes} == {"update"}
