"""The record of costs: who may change it."""

import pytest

from components.addons.costs import objects
from ebbtide.declaration.model.declare import declare
from ebbtide.values.paths import Object
from tests.declarations import BASES, changed

_TEAM = {"name": "vision", "members": ["ada@acme.example"]}


@pytest.fixture(params=BASES)
def made(request: pytest.FixtureRequest) -> list[Object]:
    """The objects of the add-on for a team with a member."""
    return list(objects(declare(changed(BASES[request.param], teams=[_TEAM], addons={"costs": {}}))))


def _named(made: list[Object], kind: str, name: str) -> Object:
    return next(item for item in made if (item["kind"], item["metadata"]["name"]) == (kind, name))


def test_members_read_the_record_alone(made: list[Object]) -> None:
    """The recorder alone writes in its namespace; members of teams get and list its ConfigMaps."""
    granted: dict[str, set[str]] = {}
    for binding in made:
        if binding["kind"] == "RoleBinding" and binding["metadata"]["namespace"] == "ebbtide-costs":
            rules = _named(made, "Role", binding["roleRef"]["name"])["rules"]
            assert [(rule["apiGroups"], rule["resources"]) for rule in rules] == [([""], ["configmaps"])]
            for subject in binding["subjects"]:
                granted.setdefault(subject["name"], set()).update(rules[0]["verbs"])
    assert granted == {
        "recorder": {"get", "list", "create", "patch"},
        "ada@acme.example": {"get", "list"},
    }
