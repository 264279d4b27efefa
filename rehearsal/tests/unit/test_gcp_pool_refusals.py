"""GKE's refusals of node pools, case by case: from the providers' documentation and issue threads."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.faults import QUOTA, InjectedFault
from ebbtide_rehearsal.cloud.gcp.pool_rules import RULES
from ebbtide_rehearsal.cloud.gcp.request import NODE_POOL
from ebbtide_rehearsal.cloud.provider import RefusedError
from rehearsal.tests.unit.gcp_capacity_cases import total
from rehearsal.tests.unit.gcp_cloud import base, with_cluster
from rehearsal.tests.unit.gcp_pool_cases import CASES


@pytest.mark.parametrize(
    ("pool", "changes", "rule", "message"), CASES, ids=[f"{case[2]}-{case[3][:30]}" for case in CASES]
)
def test_a_pool_that_is_refused(
    tmp_path: Path, pool: str, changes: dict[str, Any], rule: str, message: str
) -> None:
    """The pool as the program asks for it is accepted; changed so it is not, by that rule, and nothing is
    left of it."""
    cloud = with_cluster(tmp_path)
    cloud.delete(cloud.create(NODE_POOL, base(f"train-{pool}")).id)
    before = cloud.store.resources()

    with pytest.raises(RefusedError) as refused:
        cloud.create(NODE_POOL, base(f"train-{pool}", **changes))

    broken = next(candidate for candidate in RULES if candidate.name == rule)
    refusal = broken.refusal(cloud.request(NODE_POOL, base(f"train-{pool}", **changes)))
    assert str(refused.value) == f"error creating NodePool: {refusal}"
    assert message in str(refused.value)
    assert cloud.store.resources() == before


def test_identities_need_the_clusters(tmp_path: Path) -> None:
    """GKE's metadata server exists only with Workload Identity."""
    cloud = with_cluster(tmp_path, workloadIdentityConfig=None)
    with pytest.raises(RefusedError, match="GKE_METADATA requires Workload Identity"):
        cloud.create(NODE_POOL, base("train-cpu"))


def test_a_quota_is_exceeded_where_it_was_asked_for(tmp_path: Path) -> None:
    """m-lab/etl#798: two machines of four cores where there are six; what fits goes through, and a pool that
    begins empty needs none."""
    cloud = with_cluster(tmp_path)
    cloud.store.inject(InjectedFault(QUOTA, "CPUS", details={"limit": 6}))
    cloud.store.inject(InjectedFault(QUOTA, "N2_CPUS", details={"limit": 0}))

    with pytest.raises(RefusedError) as refused:
        cloud.create(NODE_POOL, base("train-system", initialNodeCount=2))
    cloud.create(NODE_POOL, base("train-system"))
    cloud.create(NODE_POOL, base("train-cpu"))

    message = "Insufficient regional quota to satisfy request: resource \"CPUS\": request requires '8.0'"
    assert f"Error 403: {message} and is short '2.0'. project has a quota of '6.0'" in str(refused.value)
    assert str(refused.value).endswith("?usage=USED&project=acme-ml., forbidden")
    assert cloud.store.events(kind="quota-exceeded")[0].facts["quota"] == "CPUS"


def test_accelerators_count_against_their_own_quota(tmp_path: Path) -> None:
    """Spot GPUs have a quota apart from the others."""
    cloud = with_cluster(tmp_path)
    cloud.store.inject(InjectedFault(QUOTA, "PREEMPTIBLE_NVIDIA_T4_GPUS", details={"limit": 3}))
    with pytest.raises(RefusedError, match=r"PREEMPTIBLE_NVIDIA_T4_GPUS.*requires '4\.0'.*short '1\.0'"):
        cloud.create(NODE_POOL, base("train-t4", initialNodeCount=1))


def test_an_update_is_refused_as_a_creation_is(tmp_path: Path) -> None:
    """The API looks at the whole pool each time; what it had stays."""
    cloud = with_cluster(tmp_path)
    made = cloud.create(NODE_POOL, base("train-a100"))
    with pytest.raises(
        RefusedError, match=r"^googleapi: Error 400: Queued_provisioning requires the minimum"
    ):
        cloud.update(made.id, base("train-a100", **total(1, 4)))
    assert cloud.node_pools()["a100"].minimum == 0


def test_a_pool_of_that_name_is_there(tmp_path: Path) -> None:
    """Terraform looks before it asks."""
    cloud = with_cluster(tmp_path)
    made = cloud.create(NODE_POOL, base("train-cpu"))
    with pytest.raises(RefusedError, match=rf"^resource - {made.id} - already exists$"):
        cloud.create(NODE_POOL, base("train-cpu"))


def test_every_rule_is_tried() -> None:
    """Every rule has a case that breaks it, and names its source."""
    elsewhere = {"identities of pods", "enough quota", "features of the version"}
    assert {case[2] for case in CASES} | elsewhere == {rule.name for rule in RULES}
    assert all(rule.source for rule in RULES)
