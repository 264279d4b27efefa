"""The cost recorder's objects: what its pod may do, and who may change its record."""

import pytest

from components.addons.costs import objects
from ebbtide.declaration.catalog.resources import footprint
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


def test_the_pod_of_the_recorder(made: list[Object]) -> None:
    """The pod writes to no file, has no privilege and no more memory than the system pool reserves for it."""
    pod = _named(made, "CronJob", "recorder")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    limit = f"{footprint('costs').most.memory_mib:.0f}Mi"
    assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"] == limit


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
