"""Objects of a cluster that a stack has added to, as its API server gives them."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from ebbtide.declaration.model.declare import declare
from ebbtide.operations.engine.state import ObjectReference, State
from ebbtide.placement.derive import profile
from ebbtide.values.paths import Object

NOW: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
PROFILE: Final = profile(
    declare(
        {
            "name": "added",
            "owner": "us",
            "cloud": {
                "kind": "gke",
                "project": "acme-ml",
                "location": "us-central1-a",
                "existing": {"name": "shared"},
            },
            "pools": [
                {
                    "name": "system",
                    "role": "system",
                    "machine": "e2-standard-4",
                    "nodes": {"min": 1, "max": 2},
                },
                {"name": "spot", "machine": "n2-standard-4", "capacity": "spot", "nodes": {"max": 2}},
            ],
            "queues": [{"name": "cpu", "pools": ["spot"]}],
            "teams": [{"name": "research", "queues": [{"queue": "cpu", "as": "ours"}]}],
        }
    )
)
STATE: Final = State(
    resources=3,
    protected=(),
    owns_cluster=False,
    buckets=(),
    registries=(),
    objects=frozenset(
        {
            ObjectReference("Namespace", "", "research"),
            ObjectReference("Namespace", "", "kueue-system"),
            ObjectReference("Deployment", "default", "trainer"),
        }
    ),
    teams=frozenset({"research"}),
)

_uids = count()


def made(
    name: str,
    place: str = "research",
    *,
    owner: tuple[str, Object] | None = None,
    minutes: int = 5,
    **more: Any,
) -> Object:
    """An object of an age, with its owner's kind and the owner."""
    metadata: Object = {
        "name": name,
        "namespace": place,
        "uid": f"uid-{next(_uids)}",
        "creationTimestamp": (NOW - timedelta(minutes=minutes)).isoformat(),
    }
    if owner is not None:
        kind, of = owner
        metadata["ownerReferences"] = [
            {"kind": kind, "name": of["metadata"]["name"], "uid": of["metadata"]["uid"], "controller": True}
        ]
    return {"metadata": metadata, **more}


def pod(
    name: str, place: str = "research", *, node: str = "n", phase: str = "Running", **more: Any
) -> Object:
    """A pod on a node."""
    priority = more.pop("priority", None)
    spec = {"nodeName": node, "priorityClassName": priority}
    return made(name, place, spec=spec, status={"phase": phase}, **more)


def node(name: str, pool: str) -> Object:
    """A node of one of the stack's pools."""
    return {"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", **PROFILE.pool(pool).labels}}}


def condition(kind: str) -> Object:
    """A status with one condition."""
    return {"conditions": [{"type": kind, "status": "True"}]}
