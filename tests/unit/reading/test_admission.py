"""The work that a pool admits, in words."""

import pytest

from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.reading.pools import admits
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.site import Site

_SPOT = Taint(key="spot", value="true")
_GPU = Taint(key="nvidia.com/gpu", value="present")
_TEAM = Taint(key="team", effect="NoExecute")
_SOFT = Taint(key="slow", effect="PreferNoSchedule")


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
def test_taints_say_who_may_come(cloud: CloudKind, taints: tuple[Taint, ...], sentence: str) -> None:
    """A device taint needs no toleration of the pod's own on GKE; a soft taint excludes no pod."""
    pool = RecordedPool.model_construct(
        site=Site(cloud, "us-central1"), addons=NO_ADDONS, hardware=None, name="pool", taints=taints
    )
    assert admits(pool) == sentence
