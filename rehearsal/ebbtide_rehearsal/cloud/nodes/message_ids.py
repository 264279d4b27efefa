"""Ids of GKE's messages about nodes that are not added or not removed, as logged by its autoscaler
(GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/visibility/types/messages.go)."""

from collections.abc import Iterable
from typing import Final

OUT_OF_RESOURCES: Final = "scale.up.error.out.of.resources"
QUOTA_EXCEEDED: Final = "scale.up.error.quota.exceeded"
SKIPPED: Final = "no.scale.up.mig.skipped"
FAILING_PREDICATE: Final = "no.scale.up.mig.failing.predicate"
SCALE_DOWN_DISABLED: Final = "no.scale.down.node.scale.down.disabled.annotation"
NO_PLACE: Final = "no.scale.down.node.no.place.to.move.pods"
NOT_SAFE_TO_EVICT: Final = "no.scale.down.node.pod.not.safe.to.evict.annotation"
NO_CONTROLLER: Final = "no.scale.down.node.pod.not.backed.by.controller"
SYSTEM_POD: Final = "no.scale.down.node.pod.kube.system.unmovable"
LOCAL_STORAGE: Final = "no.scale.down.node.pod.has.local.storage"
DISRUPTION_BUDGET: Final = "no.scale.down.node.pod.not.enough.pdb"
NOT_EVICTED: Final = "scale.down.error.failed.to.evict.pods"


def no_scale_up(reasons: Iterable[str], skipped: Iterable[str]) -> list[str]:
    """Return the ids of the reasons why no node group can grow for a pod.

    Args:
        reasons: reasons in the autoscaler's words.
        skipped: those for which a node group is not even considered.
    """
    passed_over = frozenset(skipped)
    return sorted({SKIPPED if reason in passed_over else FAILING_PREDICATE for reason in reasons})
