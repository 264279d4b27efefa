"""Google Cloud's refusals that no rule of a declaration has, of creations, changes and deletions."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide_rehearsal.cloud.gcp.kinds import put_object
from ebbtide_rehearsal.cloud.gcp.node_pools import RULES
from ebbtide_rehearsal.cloud.gcp.request import (
    ACCOUNT,
    NODE_POOL,
)
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import QUOTA, InjectedFault
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, Cloud, asked_for, base, with_cluster
from tests.running import full

VPC = "projects/acme-ml/global/networks/train"
SUBNET = "projects/acme-ml/regions/us-central1/subnetworks/train"

_CASES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "gcp_refusals.yaml").read_text(encoding="utf-8")
)
POOLS = [tuple(case.values()) for case in _CASES["pools"]]
"""What is changed, the rule that is broken, and what the API says."""


def test_an_account_of_a_domains_project(tmp_path: Path) -> None:
    """The service account's address of a domain-scoped project has the project before the domain."""
    account = Cloud(tmp_path, "acme.example:ml").create(ACCOUNT, {"accountId": "train-nodes"})
    assert account.state["email"] == "train-nodes@ml.acme.example.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("pool", "changes", "rule", "message"), POOLS, ids=[f"{case[2]}-{case[3][:30]}" for case in POOLS]
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


def test_an_update_is_refused_as_a_creation_is(tmp_path: Path) -> None:
    """The API looks at the whole pool each time; what it had stays."""
    cloud = with_cluster(tmp_path)
    made = cloud.create(NODE_POOL, base("train-a100"))
    with pytest.raises(RefusedError, match=r"^googleapi: Error 400: Machine type with name"):
        cloud.update(made.id, base("train-a100", nodeConfig__machineType="n2-standard-7"))
    assert cloud.node_pools()["a100"].minimum == 0


def test_every_rule_is_tried() -> None:
    """Every rule has a case that breaks it, and names its source."""
    assert {case[2] for case in POOLS} | {"sufficient quota"} == {rule.name for rule in RULES}
    assert all(rule.source for rule in RULES)


@pytest.fixture
def everything(tmp_path: Path) -> Cloud:
    """A cloud with all that the program makes, of a permanent cluster with every add-on and team."""
    cloud = Cloud(tmp_path)
    for resource, inputs in asked_for(full("gke", pipelines={"artifacts": "bucket"})):
        cloud.create(resource.type, inputs, resource.name)
    return cloud


def test_a_bucket_stays_while_anything_is_in_it(everything: Cloud) -> None:
    """A bucket is deleted with its contents and IAM members only if `forceDestroy` is declared."""
    bucket = "acme-ml-train-pipelines"
    put_object(everything.store, bucket, "v2/artifacts/model.pt")
    with pytest.raises(RefusedError, match=f"delete bucket {bucket} without `force_destroy` set to true"):
        everything.delete(bucket)

    everything.update(bucket, {**everything.read(bucket).inputs, "forceDestroy": True})
    everything.delete(bucket)
    left = [resource.id for resource in everything.store.resources("gcp")]
    assert not [identity for identity in left if identity.startswith((bucket, f"b/{bucket}/"))]


def test_a_pool_that_is_never_to_go(tmp_path: Path) -> None:
    """The provider's own guard, of either kind of resource."""
    cloud = with_cluster(tmp_path, deletionPolicy="PREVENT")
    pool = cloud.create(NODE_POOL, base("train-cpu", deletionPolicy="PREVENT"))
    for identity in (pool.id, CLUSTER_ID):
        with pytest.raises(RefusedError, match="deletion_policy is set to PREVENT"):
            cloud.delete(identity)
