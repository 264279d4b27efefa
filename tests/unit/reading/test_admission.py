"""The work that a pool admits, in words."""

import pytest

from ebbtide.catalog import CloudKind
from ebbtide.reading.admission import admits
from ebbtide.reading.facts import DiskFacts, NodeFacts, PoolFacts, TaintFacts

_POOL = PoolFacts(
    urn="",
    cloud=CloudKind.GKE,
    name="pool",
    cluster="train",
    role="work",
    machine="n2-standard-8",
    accelerator=None,
    capacity="spot",
    nodes=NodeFacts(0, 4),
    disk=DiskFacts(None, None),
    labels={},
    taints=(),
    billing={},
)
_SPOT = TaintFacts("spot", "true", "NoSchedule")
_GPU = TaintFacts("nvidia.com/gpu", "present", "NoSchedule", automatic=True)
_TEAM = TaintFacts("team", "", "NoExecute")
_SOFT = TaintFacts("slow", "", "PreferNoSchedule")


@pytest.mark.parametrize(
    ("cloud", "taints", "sentence"),
    [
        (CloudKind.GKE, (), "any pod"),
        (CloudKind.GKE, (_SPOT,), "only pods that tolerate spot=true:NoSchedule"),
        (
            CloudKind.GKE,
            (_SPOT, _TEAM),
            "only pods that tolerate spot=true:NoSchedule and team:NoExecute",
        ),
        (CloudKind.GKE, (_GPU,), "only pods that request nvidia.com/gpu"),
        (
            CloudKind.GKE,
            (_GPU, _SPOT),
            "only pods that request nvidia.com/gpu and tolerate spot=true:NoSchedule",
        ),
        (
            CloudKind.AKS,
            (_GPU, _SPOT),
            "only pods that tolerate nvidia.com/gpu=present:NoSchedule and spot=true:NoSchedule",
        ),
        (CloudKind.GKE, (_SOFT,), "any pod, rather those that tolerate slow:PreferNoSchedule"),
    ],
)
def test_taints_say_who_may_come(cloud: CloudKind, taints: tuple[TaintFacts, ...], sentence: str) -> None:
    """A device taint needs no toleration of the pod's own on GKE; a soft taint excludes no pod."""
    assert admits(_POOL.model_copy(update={"cloud": cloud, "taints": taints})) == sentence
