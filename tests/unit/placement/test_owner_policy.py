"""The policy that keeps members of a namespace off what belongs to others there."""

from typing import Any

import pytest

from components.addons.security import member_rules
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import member_policy
from ebbtide.placement.profile import CREATED_FOR
from ebbtide.work import submission
from tests.declarations import GKE, Declaration, changed, pool

_TEAMS = [
    {"name": "vision", "members": ["ada@acme.example"], "queues": [{"queue": "large", "as": "big"}]},
    {"name": "speech"},
]
_QUEUES = [{"name": "large", "pools": ["a100"]}, {"name": "gpus", "pools": ["t4"]}]


_DECLARED = changed(GKE, teams=_TEAMS, queues=_QUEUES)


def _spec(declaration: Declaration) -> dict[str, Any]:
    policy, binding = member_policy.objects(declare(declaration))["owners"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"] == "ebbtide-owners-train"
    return policy["spec"]


def test_every_kind_that_members_write_is_checked() -> None:
    """Also the kinds of add-ons: each that the role of members has, at each operation that it has."""
    declaration = changed(_DECLARED, addons={"trainer": {}, "katib": {}})
    cluster = declare(declaration)
    checked = {
        (group, resource): set(rule["operations"])
        for rule in _spec(declaration)["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for rule in member_rules(cluster, cluster.teams[0]):
        for resource in rule["resources"]:
            needed = {"CREATE"} if "create" in rule["verbs"] and "/" not in resource else set[str]()
            needed |= {"UPDATE"} if {"update", "patch"} & {*rule["verbs"]} else set()
            if needed:
                assert needed <= checked[rule["apiGroups"][0], resource]
    assert {"DELETE"} <= checked["", "configmaps"] & checked["", "services"] & checked["", "pods"]


@pytest.mark.parametrize("limited", [True, False])
def test_nodes_run_as_long_as_their_pools_limit(limited: bool) -> None:  # noqa: FBT001
    """By the local queues of each namespace that lead to a pool of queued provisioning, if it has a limit."""
    declaration = changed(_DECLARED)
    duration = {"maxRunDuration": "2d"} if limited else {}
    pool(declaration, "a100")["capacity"] = {"kind": "queued", **duration}
    tests = [item["expression"] for item in _spec(declaration)["validations"]]
    checks = [text for text in tests if "maxRunDurationSeconds" in text]
    assert bool(checks) is limited
    for text in checks:
        assert "{'speech/large': 172800, 'vision/big': 172800}" in text


def test_what_an_interrupted_creation_left_is_everybodys() -> None:
    """A later creation of any member deletes it by its label."""
    tests = "\n".join(item["expression"] for item in _spec(_DECLARED)["validations"])
    assert submission.CREATED_FOR == CREATED_FOR
    assert f"labels[?'{CREATED_FOR}'].hasValue()" in tests


def test_administrators_are_exempt() -> None:
    """Each check ends with the same right, to change the policy of members."""
    spec = _spec(_DECLARED)
    assert all(item["expression"].endswith("|| variables.administrator") for item in spec["validations"])
    (administrator,) = [item for item in spec["variables"] if item["name"] == "administrator"]
    assert ".name('ebbtide-members-train').check('update')" in administrator["expression"]
