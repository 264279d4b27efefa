"""The review's predictions for every field of the declaration, against the real engine's preview."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
from pulumi.automation import CommandError
from pulumi.automation.events import EngineEvent

from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_review import refusals
from ebbtide.analysis.review.difference import compare
from ebbtide_rehearsal.cloud.existing import seed_aks, seed_gke
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.running import Stack, running_on
from tests.contract.cluster_flips import AKS_CLOUD, CLUSTER, GKE_CLOUD
from tests.contract.flips import Flip
from tests.contract.pool_flips import AKS_POOL, GKE_POOL
from tests.declarations import Declaration
from tests.repository import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.long]

_PACKAGES: Final = ("gcp:", "azure-native:")
_ACTIONS: Final = {
    "create": "create",
    "update": "update",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "delete": "delete",
}
_REFUSED: Final = {"": "refused"}
_NOT_PREVIEWED: Final = {
    # The engine's preview itself fails: there are no credentials of a cluster in a subscription without it.
    "Aks.subscription",
    # The network has to exist, and the fake cloud has none that no program has made.
    "GkeNetwork.vpc",
    "GkeNetwork.subnet",
    "GkeNetwork.pods_range",
    "GkeNetwork.services_range",
}
"""Fields whose changes the engine cannot preview against the fake cloud."""
_MACHINE_NOT_SOLD: Final = "n9-standard-8"
"""Machine of the cases for unknown machine types, which the fake cloud refuses to create."""


def _ephemeral(declaration: Declaration) -> Declaration:
    """A declaration whose cluster is not protected, so that the plan of a replacement is seen."""
    if "existing" in declaration["cloud"]:
        return declaration
    return {"lifetime": {"hours": 8}} | declaration


def _cases(*lists: Sequence[Flip]) -> list[tuple[str, list[Flip]]]:
    """The cases by the declaration that they start from, so that each is deployed once."""
    cases = [
        Flip(case.field, _ephemeral(case.before), _ephemeral(case.after))
        for cases in lists
        for case in cases
        if case.before["cloud"]["kind"] == case.after["cloud"]["kind"]
        and case.field not in _NOT_PREVIEWED
        and _MACHINE_NOT_SOLD not in json.dumps(case.before)
    ]
    keyed = sorted(cases, key=lambda case: json.dumps(case.before, sort_keys=True))
    groups = groupby(keyed, key=lambda case: json.dumps(case.before, sort_keys=True))
    return [(key, list(group)) for key, group in groups]


GROUPS = [group for _, group in _cases(CLUSTER, GKE_CLOUD, GKE_POOL, AKS_CLOUD, AKS_POOL)]


def _recorded(declaration: Declaration, before: Baseline | None = None) -> Recording:
    config = {"ebbtide:cluster": json.dumps(declaration)}
    updates = before.updates if before else None
    deployed = before.state if before else None
    return record(ROOT, project="ebbtide", stack="test", config=config, updates=updates, deployed=deployed)


def _predicted(before: Baseline, declaration: Declaration) -> dict[str, str]:
    """The predicted action by name; `refused` for the whole update."""
    assert before.recording is not None
    after = _recorded(declaration, before)
    changes = compare(before.recording, after, deployed=before.deployed)
    if refusals(after, changes):
        return _REFUSED
    return {
        change.resource.name: change.action
        for change in changes
        if change.resource.type.startswith(_PACKAGES)
    }


@dataclass
class _Steps:
    """The engine's plan: its action by name."""

    actions: dict[str, str] = field(default_factory=dict[str, str])

    def see(self, event: EngineEvent) -> None:
        """Note an operation."""
        if event.resource_pre_event is None:
            return
        metadata = event.resource_pre_event.metadata
        action = _ACTIONS.get(metadata.op.value)
        if action and metadata.type.startswith(_PACKAGES):
            name = metadata.urn.rpartition("::")[2]
            self.actions[name] = "replace" if self.actions.get(name) == "replace" else action


def _planned(stack: Stack) -> dict[str, str]:
    steps = _Steps()
    try:
        stack.automation.preview(on_event=steps.see)
    except CommandError as error:
        if re.search("cannot change (these fields|while)|marked for protection|is protected", str(error)):
            return _REFUSED
        raise
    return steps.actions


def _seed(group: Sequence[Flip], store: Store, clusters: FakeControlPlanes) -> None:
    """Create the clusters that declarations take as existing."""
    clouds = [declaration["cloud"] for case in group for declaration in (case.before, case.after)]
    existing = {cloud["existing"]["name"]: cloud for cloud in clouds if "existing" in cloud}
    for name, cloud in existing.items():
        if cloud["kind"] == "gke":
            seed_gke(store, clusters, project=cloud["project"], location=cloud["location"], name=name)
        else:
            where = {"subscription": cloud["subscription"], "location": cloud["location"]}
            seed_aks(store, clusters, resource_group=name, name=name, **where)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: "-".join(case.field for case in group)[:60])
def test_predictions_agree_with_the_engine(group: list[Flip], tmp_path: Path) -> None:
    """Update, replacement or refusal of each cloud resource; and nothing changes against the state itself."""
    declaration = group[0].before
    different: dict[str, Any] = {}
    with running_on(declaration["cloud"]["kind"], tmp_path) as (stack, store, clusters):
        _seed(group, store, clusters)
        stack.declare(declaration)
        stack.up()
        exported = stack.automation.export_stack()
        text = json.dumps({"version": exported.version, "deployment": exported.deployment})
        state = recording_of(text, project="ebbtide", stack="test", file="state.json")
        versions = (Baseline("main", _recorded(declaration)), Baseline("state.json", state, deployed=True))
        assert _predicted(versions[1], declaration) == {}
        for case in group:
            stack.declare(case.after)
            planned = _planned(stack)
            for version in versions:
                predicted = _predicted(version, case.after)
                if predicted != planned:
                    items = predicted.items() ^ planned.items()
                    different[f"{case.field} ({version.name})"] = (
                        {key: item for key, item in predicted.items() if (key, item) in items},
                        {key: item for key, item in planned.items() if (key, item) in items},
                    )
    assert different == {}
