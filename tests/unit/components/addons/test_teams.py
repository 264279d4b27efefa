"""Teams' namespaces, limits, and storage."""

from collections.abc import Iterator
from typing import Any

import pytest

from components.addons.security import member_rules, subjects
from components.addons.teams import object_quota
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.declare import declare
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import BASES, GKE, changed
from tests.synth import synth

QUEUED = changed(GKE, queues=[{"name": "gpus", "pools": ["t4", "cpu"]}], teams=[{"name": "vision"}])


def team(cloud: str, **fields: Any) -> Recording:
    """A cluster with one team."""
    return synth(changed(BASES[cloud], teams=[{"name": "vision"} | fields]))


def test_every_kind_that_members_create_is_counted() -> None:
    """A limit for each built-in kind that members create, and none for custom kinds, which the quota would
    refuse for minutes after their installation."""
    addons: dict[str, Any] = {"trainer": {}, "katib": {}, "pipelines": {}, "costs": {}}
    team = {"name": "vision", "members": ["ada@acme.example"], "interactive": True}
    cluster = declare(changed(QUEUED, teams=[team], addons=addons))
    quota = object_quota(cluster, cluster.teams[0])
    assert quota is not None
    counted = {name.removeprefix("count/").partition(".")[0] for name in quota["spec"]["hard"]}
    created = {item for item, verb in _may(member_rules(cluster, cluster.teams[0])) if verb == "create"}
    custom = {
        kind for add_on in cluster.installed for right in add_on.spec.rights for kind in right.resources
    }
    assert created - custom - {"pods/exec", "pods/portforward"} <= counted
    assert not custom & counted


def _may(rules: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield resource, verb


def test_members_may_run_work_and_no_more() -> None:
    """Members can submit, follow and stop work, but cannot read Secrets or create objects whose cost outlives
    the cluster."""
    addons: dict[str, Any] = {"trainer": {}, "katib": {}}
    cluster = declare(changed(QUEUED, addons=addons))
    may = set(_may(member_rules(cluster, cluster.teams[0])))
    assert {
        ("jobs", "create"),
        ("cronjobs", "create"),
        ("services", "create"),
        ("pods/log", "get"),
        ("trainjobs", "create"),
        ("experiments", "create"),
    } <= may
    assert ("workloads", "list") in may
    assert {verb for resource, verb in may if resource == "secrets"} == {"create", "delete"}
    # The answer to a change has the object.
    changed_kinds = {kind for kind, verb in may if verb in ("patch", "update", "deletecollection")}
    assert changed_kinds <= {kind for kind, verb in may if verb == "get"}
    assert not {resource for resource, verb in may if verb == "create"} & {
        "persistentvolumeclaims",
        "roles",
        "rolebindings",
        "localqueues",
        "pods",
        "namespaces",
    }
    assert not {resource for resource, _ in may} & {"*"}


@pytest.mark.parametrize(
    ("cloud", "member", "kinds"),
    [
        (CloudKind.GKE, "ada@acme.example", {"User"}),
        (CloudKind.GKE, "group:vision@acme.example", {"Group"}),
        (CloudKind.AKS, "ada@acme.example", {"User"}),
        (CloudKind.AKS, "11111111-1111-1111-1111-111111111111", {"User", "Group"}),
    ],
)
def test_members_are_known_as_what_they_are(cloud: CloudKind, member: str, kinds: set[str]) -> None:
    """An object id of Entra's alone does not say whether it is a user's or a group's."""
    assert {subject["kind"] for subject in subjects(member, cloud)} == kinds
    assert {subject["name"] for subject in subjects(member, cloud)} == {member.removeprefix("group:")}


def test_no_identity_is_more_than_its_bucket() -> None:
    """A team has no role on the project or the subscription."""
    for cloud in BASES:
        for item in team(cloud, bucket={}):
            if "vision" in item.name:
                assert not item.type.startswith("gcp:projects/")
                scope: Any = item.inputs.get("scope", "storageAccounts")
                assert "storageAccounts" in scope
