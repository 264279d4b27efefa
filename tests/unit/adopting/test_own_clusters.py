"""Adopting a cluster that Ebbtide created gives back its declaration."""

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from ebbtide.analysis.adopting import google
from ebbtide.analysis.adopting.found import Found
from ebbtide.analysis.adopting.proof import adopt
from ebbtide.analysis.reading.gke import CLUSTER, NODE_POOL
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from tests.declarations import Declaration, declarations
from tests.synth import synth

_NOT_FOUND = {"service_account", "drain_timeout", "overrides", "labels", "taints"}
"""Fields that a cloud does not have, or has in another form: the account is the one that Ebbtide created,
labels and taints are compared with the derived ones."""


def _found(recording: Recording, project: str) -> Found:
    """What a cloud has after the deployment: the inputs of the cluster and of its pools."""
    (cluster,) = recording.of_type(CLUSTER)
    base = f"projects/{project}/locations/{cluster.inputs['location']}/clusters/{cluster.inputs['name']}"
    pools = (
        google.found_resource(NODE_POOL, pool.inputs, f"{base}/nodePools/{pool.inputs['name']}")
        for pool in recording.of_type(NODE_POOL)
    )
    resources = (google.found_resource(CLUSTER, cluster.inputs, base), *pools)
    return Found(cloud=CloudKind.GKE, account=project, resources=resources)


def _facts(pool: ResolvedPool) -> dict[str, Any]:
    derived = pool.labels_and_taints
    fields = {name: getattr(pool, name) for name in Pool.model_fields if name not in _NOT_FOUND}
    zones = () if pool.zones == (pool.site.location,) else pool.zones
    return fields | {
        "zones": zones,
        "labels": dict(derived.labels),
        "taints": set(map(str, derived.all_taints)),
    }


def _check(written: Declaration) -> None:
    project = written["cloud"]["project"]
    recording = synth(written)
    found = _found(recording, project)
    top = {"name": written["name"], "owner": written["owner"]}
    adoption = adopt(found, top, google.cloud_fields(found), synth, pools_only=False)
    assert adoption.left_out == ()
    own = [item for item in recording if item.type in (CLUSTER, NODE_POOL)]
    before = Recording(project=recording.project, stack=recording.stack, resources=tuple(own))
    changed = [change for change in compare(before, adoption.recording, deployed=True) if change.fields]
    assert [(change.resource.name, change.fields) for change in changed] == []
    old, new = declare(written), declare(adoption.declaration)
    assert {pool.name: _facts(pool) for pool in new.resolved_pools} == {
        pool.name: _facts(pool) for pool in old.resolved_pools
    }
    for name in ("release_channel", "access", "maintenance", "consolidation"):
        assert getattr(new.cloud, name) == getattr(old.cloud, name)


@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(declarations("gke"))
def test_own_clusters_are_declared_again(declaration: Declaration) -> None:
    """Every pool but queued ones, which need Kueue, is resolved as before, and an update changes nothing."""
    pools = [pool for pool in declaration["pools"] if "queued" not in str(pool.get("capacity"))]
    _check({**{key: value for key, value in declaration.items() if key != "lifetime"}, "pools": pools})
