"""Queues offer what the pools do, and admit the work that they should."""

import re

import pytest
from hypothesis import given, settings

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.placement.profile import PoolProfile, Profile
from ebbtide.placement.profile_sources import CONFIG_MAP
from tests.declarations import AKS, GKE, Declaration, changed
from tests.running import FALLING_BACK, after, in_cluster, manifest
from tests.synth import synth
from tests.unit.placement.test_queueing import queued


def _check_order(recording: Recording) -> None:
    """A queue depends on its cohort, flavors and checks, and a local queue on its queue."""
    made = {
        (manifest(item)["kind"], manifest(item)["metadata"]["name"]): item.urn
        for item in in_cluster(recording)
    }
    for item in in_cluster(recording):
        spec = manifest(item).get("spec", {})
        before = after(recording, item)
        if manifest(item)["kind"] == "LocalQueue":
            assert made["ClusterQueue", spec["clusterQueue"]] in before
        if manifest(item)["kind"] == "ClusterQueue":
            assert made["Cohort", spec["cohortName"]] in before
            for group in spec["resourceGroups"]:
                assert {made["ResourceFlavor", flavor["name"]] for flavor in group["flavors"]} <= before


def _check_quotas(declaration: Declaration, recording: Recording) -> None:
    """The sum of all quota of a flavor is what the nodes of its pools offer by the profile, at most."""
    by_name = {pool.name: pool for pool in profile(declare(declaration)).pools}
    total: dict[tuple[str, str], int] = {}
    for item in in_cluster(recording):
        for group in manifest(item).get("spec", {}).get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    key = (flavor["name"], resource["name"])
                    total[key] = total.get(key, 0) + amount(resource["nominalQuota"], resource["name"])
    pools = _pools_of_flavors(declaration)
    for (name, resource), quota in total.items():
        assert quota == sum(
            by_name[pool].max_nodes * _of_a_node(by_name[pool], resource) for pool in pools[name]
        )


def _pools_of_flavors(declaration: Declaration) -> dict[str, list[str]]:
    """The pools of each flavor: its own, or all of the queue that falls back."""
    named: dict[str, list[str]] = {
        pool.get("resourceFlavor", pool["name"]): [pool["name"]] for pool in declaration["pools"]
    }
    return named | {f"{queue['name']}.pools": queue["pools"] for queue in declaration.get("queues", ())}


def _of_a_node(pool: PoolProfile, resource: str) -> int:
    if resource in ("cpu", "memory"):
        return pool.cpu_m if resource == "cpu" else pool.memory_mib
    has = pool.accelerator
    return has.count if has is not None and has.resource == resource else 0


def amount(text: str, resource: str) -> int:
    """A quantity in millicores, MiB or pieces."""
    number, unit = re.fullmatch(r"(\d+)(\D*)", text).groups()  # pyright: ignore[reportOptionalMemberAccess]
    scale = {"Mi": 1, "Gi": 1024, "Ti": 1024**2, "m": 1}
    return int(number) * scale.get(unit, 1000 if resource == "cpu" else 1)


def _check_flavors(declaration: Declaration, recording: Recording) -> None:
    """Work that a flavor admits tolerates every taint of its nodes, declared or added by the cloud."""
    by_name = {pool.name: pool for pool in profile(declare(declaration)).pools}
    for item in in_cluster(recording):
        if manifest(item)["kind"] != "ResourceFlavor":
            continue
        spec = manifest(item)["spec"]
        tolerated = {
            (toleration["key"], toleration.get("value", ""), toleration["effect"])
            for toleration in spec["tolerations"]
        }
        pools = [by_name[name] for name in _pools_of_flavors(declaration)[manifest(item)["metadata"]["name"]]]
        assert {
            (taint.key, taint.value, taint.effect) for pool in pools for taint in pool.taints
        } == tolerated
        assert all(spec["nodeLabels"].items() <= pool.labels.items() for pool in pools)
        assert not any(
            spec["nodeLabels"].items() <= other.labels.items()
            for other in by_name.values()
            if other not in pools
        )


@settings(max_examples=25, deadline=None)
@given(queued())
def test_queues_of_any_declaration(declaration: Declaration) -> None:
    """Order, quotas and tolerations of Kueue's objects in a graph follow from the pools."""
    recording = synth(declaration)
    _check_order(recording)
    _check_quotas(declaration, recording)
    _check_flavors(declaration, recording)


def _teams(count: int) -> Declaration:
    """Return a declaration with teams that use the same two queues, and have a registry each."""
    queues = [{"name": "t4", "pools": ["t4"]}, {"name": "any", "pools": ["t4"]}]
    teams: list[Declaration] = [{"name": f"team-{index}", "registry": {}} for index in range(count)]
    return changed(GKE, queues=queues, teams=teams)


def test_dependencies_are_linear() -> None:
    """Each further team adds the same number of dependencies, and a local queue depends on its own cluster
    queue and namespace."""
    edges: list[int] = []
    for count in (1, 2, 3):
        recording = synth(_teams(count))
        edges.append(sum(len(item.dependencies) for item in recording))
        for item in recording:
            if item.type.endswith(":LocalQueue"):
                namespace, name = manifest(item)["metadata"]["namespace"], manifest(item)["metadata"]["name"]
                queue, team = (recording[urn].name for urn in item.dependencies)
                assert queue.endswith(f"-clusterqueue-{namespace}.{name}")
                assert team.endswith(f"-namespace-{namespace}")
    assert edges[2] - edges[1] == edges[1] - edges[0]


def test_a_local_queue_is_replaced_with_its_cluster_queue() -> None:
    """Kueue forbids the update, and both have the same name."""
    queues = [{"name": "t4", "pools": ["t4"]}, {"name": "any", "pools": ["t4"]}]
    uses = (
        [{"queue": "t4", "as": "big"}, {"queue": "any"}],
        [{"queue": "any", "as": "big"}, {"queue": "t4"}],
    )
    before, after_ = (
        synth(changed(GKE, queues=queues, teams=[{"name": "vision", "queues": use}])) for use in uses
    )
    big = {
        change.action: change.new
        for change in compare(before, after_)
        if change.resource.name.endswith("localqueue-vision/big")
    }
    assert list(big) == ["replace"]
    assert big["replace"] is not None
    assert big["replace"].delete_before_replace


def test_a_teams_profile_has_its_own_queues() -> None:
    """The ConfigMap in a team's namespace has all pools, but neither local queues nor registries of other
    teams, and does not grow with their number."""
    profiles = {
        manifest(item)["metadata"]["namespace"]: Profile.load(manifest(item)["data"]["profile.json"])
        for item in synth(_teams(3)).of_type("kubernetes:core/v1:ConfigMap")
        if manifest(item)["metadata"]["name"] == CONFIG_MAP
    }
    whole = profile(declare(_teams(3)))
    assert set(profiles) == {"team-0", "team-1", "team-2"}
    for name, own in profiles.items():
        assert own.pools == whole.pools
        assert [team.name for team in own.teams] == [name]
        assert {local.team for queue in own.queues for local in queue.local_queues} == {name}
        assert [queue.name for queue in own.queues] == [queue.name for queue in whole.queues]


@pytest.mark.parametrize(
    ("declaration", "falling"),
    [
        (FALLING_BACK, "t4"),
        (changed(AKS, queues=[{"name": "cpus", "pools": ["cpu", "steady"], "fallback": True}]), "cpu"),
    ],
    ids=["gke", "aks"],
)
def test_a_preview_lists_fallback_pools(declaration: Declaration, falling: str) -> None:
    """The preview lists only the declared fallback pools."""
    fallbacks = {pool.name: pool.falls_back_to for pool in preview_of(synth(declaration)).pools}
    assert fallbacks.pop(falling) == ("steady",)
    assert set(fallbacks.values()) == {()}
