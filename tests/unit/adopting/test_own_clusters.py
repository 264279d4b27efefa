"""Adopting a cluster that Ebbtide created gives back its declaration."""

from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from pydantic.alias_generators import to_snake

from ebbtide.analysis.reading.gke import CLUSTER, NODE_POOL
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.providers.schema import (
    Property,
    alternatives,
    item_of,
    properties,
    properties_of,
    word,
)
from ebbtide.operations.adopting import google, terraform
from ebbtide.operations.adopting.found import Found
from ebbtide.operations.adopting.proof import adopt
from ebbtide.values.cloud_kind import CloudKind
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


def _terraform(found: Found) -> dict[str, Any]:
    """The state of a Terraform that created the same resources."""
    resources = [
        {
            "mode": "managed",
            "type": {CLUSTER: "google_container_cluster", NODE_POOL: "google_container_node_pool"}[item.type],
            "instances": [{"attributes": _attributes(properties(item.type), item.inputs) | {"id": item.id}}],
        }
        for item in found.resources
    ]
    return {"version": 4, "terraform_version": "1.13.4", "resources": resources}


def _attributes(known: Mapping[str, Property], inputs: Any) -> dict[str, Any]:
    """Attributes in Terraform's form: snake case, an object as a list of one, a list of objects named in the
    singular."""
    attributes: dict[str, Any] = {}
    for name, value in inputs.items():
        hint = alternatives(known[name].hint)[0]
        snake = to_snake(name)
        match word(hint):
            case "object":
                attributes[snake] = [_attributes(properties_of(hint), value)]
            case "list" if word(item := alternatives(item_of(hint))[0]) == "object":
                own = [_attributes(properties_of(item), one) for one in value]
                attributes[snake.removesuffix("s")] = own
            case _:
                attributes[snake] = value
    return attributes


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
    state = terraform.read(_terraform(found), "terraform.tfstate")
    assert state is not None
    assert {item.id: item.inputs for item in state.resources} == {
        item.id: item.inputs for item in found.resources
    }
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
    """Every pool but queued ones, which need Kueue, is resolved as before, and an update changes nothing; a
    Terraform state of the same cluster is read as the same."""
    pools = [pool for pool in declaration["pools"] if "queued" not in str(pool.get("capacity"))]
    _check({**{key: value for key, value in declaration.items() if key != "lifetime"}, "pools": pools})
