"""Resolved pools: facts that are derived once, from the pool, its site and the add-ons."""

from typing import Any

import pytest

from components.gke import NodePool, NodePoolArgs
from ebbtide.analysis.recording.record import record
from ebbtide.declaration.catalog.machines import Machine, find_machine
from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.declare import check_pool, declare
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.pool_inputs import PoolField, pool_fields
from ebbtide.declaration.model.resolved_pool import ResolvedPool, resolve
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, GKE, Declaration, changed
from tests.synth import synth

_SITE = Site("gke", "us-central1")


@pytest.mark.parametrize("written", [GKE, AKS])
def test_facts_are_derived_once(written: Declaration) -> None:
    """A declaration's pools are resolved, and resolving them again returns the same objects."""
    cluster = declare(written)
    assert all(isinstance(pool, ResolvedPool) for pool in cluster.pools)
    assert all(old is new for old, new in zip(cluster.pools, cluster.resolved_pools, strict=True))
    for pool in cluster.resolved_pools:
        assert resolve(pool, cluster.site, cluster.addons) is pool
        assert pool.labels_and_taints is pool.labels_and_taints


def test_a_stack_resolves_each_pool_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules, placement and every component read the same facts."""
    found: list[str] = []

    def find(cloud: CloudKind, name: str) -> Machine | None:
        found.append(name)
        return find_machine(cloud, name)

    monkeypatch.setattr("ebbtide.declaration.model.resolved_pool.find_machine", find)
    synth(changed(GKE, name="resolved-once"))
    assert found == [pool["machine"] for pool in GKE["pools"]]


def test_a_changed_copy_has_no_facts_of_the_original() -> None:
    """Copies are plain pools, and a copied cluster resolves its pools again."""
    cluster = declare(GKE)
    copied = cluster.work_pools[0].model_copy(update={"machine": None})
    assert type(copied) is Pool
    only_system = cluster.model_copy(update={"pools": cluster.pools[:1]})
    assert [pool.name for pool in only_system.resolved_pools] == [cluster.pools[0].name]


def test_add_ons_are_part_of_the_facts() -> None:
    """A pool that is resolved with other add-ons has another capacity for work."""
    cluster = declare(changed(GKE, addons={"drivers": "daemonset"}))
    gpus = next(pool for pool in cluster.resolved_pools if pool.has_gpus)
    alone = resolve(gpus, cluster.site)
    assert not gpus.has_cloud_driver
    assert alone is not gpus
    assert alone.daemon_requests.cpu_m != gpus.daemon_requests.cpu_m


def test_zones_of_a_region() -> None:
    """A pool without zones has those of its cluster."""
    pool = Pool(name="p", machine="n2-standard-8")
    assert resolve(pool, _SITE).zone_count == 3
    assert resolve(pool, Site("gke", "us-central1-a")).zone_count == 1
    assert resolve(pool.model_copy(update={"zones": ("us-central1-a",)}), _SITE).zone_count == 1


def test_a_component_checks_no_pool_of_a_declaration_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a pool that is not resolved, or for another site, is validated by the component."""
    checked: list[str] = []

    def check(pool: Pool, site: Site) -> ResolvedPool:
        checked.append(pool.name)
        return check_pool(pool, site)

    monkeypatch.setattr("components.replacement.check_pool", check)
    cluster = declare(GKE)
    work = cluster.work_pools[0]
    copied = work.model_copy(update={"name": "copied"})

    def program() -> None:
        for pool, site in ((work, cluster.site), (copied, cluster.site)):
            NodePool(pool.name, NodePoolArgs(pool=pool, site=site, cluster="train", project="acme-ml"))

    recording = record(program, project="own", stack="dev")
    assert checked == ["copied"]
    pools = [resource.inputs["name"] for resource in recording.of_type("gcp:container/nodePool:NodePool")]
    assert pools == [work.name, "copied"]


@pytest.mark.parametrize(
    ("fields", "cpu_m", "memory_mib"),
    [
        ({"maxPodsPerNode": 200}, 400, 0),
        ({"maxPodsPerNode": 110}, 0, 0),
        ({"imageStreaming": True}, 0, 144),
        ({"secondaryBootDisks": [{"diskImage": "global/images/i", "mode": "CONTAINER_IMAGE_CACHE"}]}, 0, 144),
        ({"secondaryBootDisks": [{"diskImage": "global/images/i"}]}, 0, 0),
        (
            {"overrides": {"nodeConfig": {"linuxNodeConfig": {"hugepagesConfig": {"hugepageSize2m": 512}}}}},
            0,
            1024,
        ),
    ],
)
def test_less_is_allocatable(fields: dict[str, Any], cpu_m: float, memory_mib: float) -> None:
    """GKE reserves more for many pods, and for image streaming, which a disk with images switches on."""
    plain = Pool(name="p", machine="n2-standard-8")
    has = resolve(plain, _SITE).allocatable
    less = resolve(Pool(name="p", machine="n2-standard-8", **fields), _SITE).allocatable
    assert has is not None
    assert less is not None
    assert (has.cpu_m - less.cpu_m, round(has.memory_mib - less.memory_mib)) == (cpu_m, memory_mib)


_WITHOUT = {"locationPolicy", "tpuTopology", "drainTimeout", "protect", "resourceFlavor", "overrides"}
"""Fields without an input of their own: in `autoscaling` and `placementPolicy`, or read by Ebbtide or the
engine alone."""


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
    assert {field.path for field in fields if field.is_written(spot)} == {"gvnic", "capacity.maxPrice"}
