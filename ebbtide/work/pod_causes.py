"""Causes of pods that are missing, have no node, or have not started."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import (
    Object,
    condition,
    message_of,
    part,
    parts,
    text,
    waits,
)
from ebbtide.placement import PoolProfile
from ebbtide.text import and_list, or_list
from ebbtide.values.clock import in_utc
from ebbtide.values.selectors import selects_node, untolerated
from ebbtide.work.evidence import Actor, Cause, Evidence, clock_time, event_time
from ebbtide.work.placement import misfit

_SCALING: Final = ("TriggeredScaleUp", "FailedScaleUp", "NotTriggerScaleUp")
"""Reasons of cluster-autoscaler's events of a pending pod (cluster-autoscaler FAQ, events, 1.36)."""
_BACKOFF: Final = timedelta(minutes=5)
_LONGEST: Final = timedelta(minutes=30)
"""First and longest backoff of a node group after a failed scale-up; each is twice the one before
(cluster-autoscaler FAQ, `initial-node-group-backoff-duration`, `max-node-group-backoff-duration`)."""
_FAILED_CREATE: Final = ("FailedCreate",)
_NOT_STARTED: Final = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_USUAL: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
_CLAIM: Final = re.compile(r'persistentvolumeclaim "([^"]+)" (not found|is being deleted)')


def missing_pods(evidence: Evidence, job: Object) -> Cause | None:
    """Return why a resumed Job has no pods; None if nothing prevents them."""
    failed = evidence.events_of(job["metadata"]["uid"], *_FAILED_CREATE)
    if not failed:
        return None
    message = message_of(failed[-1]).removeprefix("Error creating: ").rstrip(".")
    if "exceeded quota" in message:
        return Cause(
            reason="ResourceQuota",
            message=f"a ResourceQuota of namespace {evidence.namespace} admits no more pods: {message}",
            remedy="its owner can end other work there, or an administrator can raise the quota",
            actor=Actor.ADMINISTRATOR,
        )
    standards = " (see Pod Security Standards)" if "violates PodSecurity" in message else ""
    return Cause(
        reason="PodsRejected",
        message=f"the API server rejects its pods: {message}",
        remedy=f"its owner can correct the pod template and submit it again{standards}",
        actor=Actor.OWNER,
    )


def pending_pod(evidence: Evidence, pod: Object) -> Cause:
    """Return why a pending pod has not started."""
    if not waits(pod):
        return _not_started(evidence, pod)
    if gates := [text(gate, "name") for gate in parts(pod, "spec", "schedulingGates")]:
        return Cause(
            reason="SchedulingGated",
            message=f"its scheduling gate {and_list(gates)} is closed",
            remedy="the controller of that gate has to remove it",
            actor=Actor.ADMINISTRATOR,
        )
    return (
        _volume(pod)
        or _outside_period(evidence, pod)
        or _autoscaler(evidence, pod)
        or _unschedulable(evidence, pod)
    )


def _shortened(message: str) -> str:
    """Remove the scheduler's second sentence, about claims and preemption."""
    first = message.partition(" no new claims to deallocate,")[0]
    return first.partition(" preemption:")[0].strip().rstrip(".")


def _volume(pod: Object) -> Cause | None:
    message = text(condition(pod, "PodScheduled", "False"), "message")
    if lost := _CLAIM.search(message):
        return Cause(
            reason="MissingVolume",
            message=f"PersistentVolumeClaim {lost[1]} {lost[2].replace('not found', 'does not exist')}",
            remedy="its owner can name another claim, or create it",
            actor=Actor.OWNER,
        )
    if "unbound immediate PersistentVolumeClaims" in message:
        return Cause(
            reason="UnboundVolume",
            message="a PersistentVolumeClaim that it mounts has no volume yet",
            remedy="`kubectl describe pvc` shows its owner why",
            actor=Actor.OWNER,
        )
    if "volume node affinity conflict" in message:
        return Cause(
            reason="VolumeElsewhere",
            message=f"its volume is in a zone in which no node can take it: {_shortened(message)}",
            remedy="its owner can select a pool in the zone of the volume",
            actor=Actor.OWNER,
        )
    return None


def _outside_period(evidence: Evidence, pod: Object) -> Cause | None:
    """Return the cause if every pool that could take a pod has nodes in a period alone, and not now."""
    pools = candidates(evidence, pod)
    periods = [tuple(map(datetime.fromisoformat, pool.period)) for pool in pools]
    if not pools or any(not period or period[0] <= evidence.now < period[1] for period in periods):
        return None
    of_pools = f"of pool {or_list(pool.name for pool in pools)}"
    if begins := [begin for begin, _ in periods if begin > evidence.now]:
        return Cause(
            reason="ReservationNotBegun",
            message=f"the reservation {of_pools} begins at {in_utc(min(begins))}",
            remedy="it starts within 30 minutes of the begin; its owner can choose another pool",
            actor=Actor.TIME,
            until=min(begins),
        )
    return Cause(
        reason="ReservationEnded",
        message=f"the reservation {of_pools} ended at {in_utc(max(end for _, end in periods))}",
        remedy="its owner can choose another pool",
        actor=Actor.OWNER,
    )


def _autoscaler(evidence: Evidence, pod: Object) -> Cause | None:
    """Return what the cluster autoscaler last did for a pod; None if nothing explains it."""
    events = evidence.events_of(pod["metadata"]["uid"], *_SCALING)
    if not events:
        return None
    newest, message = events[-1], message_of(events[-1]).rstrip(".")
    pools = candidates(evidence, pod)
    of_pools = f" of pool {or_list(pool.name for pool in pools)}" if pools else ""
    failures = [item for item in events if item["reason"] == "FailedScaleUp"]
    if newest["reason"] == "TriggeredScaleUp":
        return Cause(
            reason="NodeStarting",
            message=f"a node{of_pools} is being created for it since {clock_time(event_time(newest))}",
            remedy="it starts when the node is ready",
            actor=Actor.TIME,
        )
    is_backed_off = "in backoff after failed scale-up" in message
    if newest["reason"] == "FailedScaleUp" or (failures and is_backed_off):
        return _stock_out(evidence, failures, of_pools)
    is_full = "max node group size reached" in message
    if _never(evidence, pod) or not (is_backed_off or is_full):
        return None
    return _no_scale_up(of_pools, is_backed_off=is_backed_off, is_full=is_full)


def _no_scale_up(of_pools: str, *, is_backed_off: bool, is_full: bool) -> Cause:
    """Return the cause from the autoscaler's reasons, which do not name the node groups."""
    if is_full and is_backed_off:
        return Cause(
            reason="NoScaleUp",
            message=f"no node{of_pools} can be created: some pools have their maximum, others are in backoff",
            remedy="it starts when other work ends, or when a backoff of at most 30 minutes is over",
            actor=Actor.TIME,
        )
    if is_full:
        return Cause(
            reason="PoolFull",
            message=f"all nodes{of_pools} are in use, and it has its maximum of nodes",
            remedy="it starts when other work there ends, or an administrator can raise `nodes.max`",
            actor=Actor.OTHERS,
        )
    return Cause(
        reason="StockOut",
        message=f"the cloud had no node{of_pools} for an earlier pod, and the autoscaler backs off",
        remedy="it tries again within 30 minutes; its owner can choose another pool",
        actor=Actor.CLOUD,
    )


def _stock_out(evidence: Evidence, failures: list[Object], of_pools: str) -> Cause:
    newest = failures[-1]
    doublings = sum(int(item.get("count") or 1) for item in failures) - 1
    at = datetime.fromisoformat(event_time(newest))
    until = at + min(_LONGEST, _BACKOFF * 2 ** min(doublings, 8))
    message = message_of(newest).rstrip(".")
    quota = "quota" in message.lower()
    again = f"the autoscaler tries again at about {clock_time(until)}"
    return Cause(
        reason="CloudQuota" if quota else "StockOut",
        message=f"the cloud could not create a node{of_pools}: {message}",
        remedy=(
            f"{again}, and an administrator can request more quota from the cloud"
            if quota
            else f"{again}; its owner can choose another pool"
        ),
        actor=Actor.ADMINISTRATOR if quota else Actor.CLOUD,
        until=until if until > evidence.now else None,
    )


def _unschedulable(evidence: Evidence, pod: Object) -> Cause:
    if never := _never(evidence, pod):
        return Cause(
            reason="DoesNotFit",
            message=f"no pool can take it: {never}",
            remedy="its owner can correct the pod template and submit it again",
            actor=Actor.OWNER,
        )
    events = evidence.events_of(pod["metadata"]["uid"], *_SCALING)
    scheduler = _shortened(text(condition(pod, "PodScheduled", "False"), "message"))
    newest = message_of(events[-1]).rstrip(".") if events else scheduler
    if not newest:
        return Cause(
            reason="New",
            message="the scheduler has not tried it yet",
            remedy="that takes seconds",
            actor=Actor.TIME,
        )
    pools = candidates(evidence, pod)
    return Cause(
        reason="Unschedulable",
        message=f"no node can take it: {newest}",
        remedy=(
            f"it starts when a node of pool {or_list(pool.name for pool in pools)} is free or created"
            if pools
            else "its owner can select a pool and tolerate its taints, as `ebbtide job` does"
        ),
        actor=Actor.TIME if pools else Actor.OWNER,
    )


def candidates(evidence: Evidence, pod: Object) -> list[PoolProfile]:
    """Return the pools that could take a pod, from its node selector, its tolerations and its size."""
    pools = evidence.profile.pools if evidence.profile else ()
    return [pool for pool in pools if not _excluded(part(pod, "spec"), pool)]


def _never(evidence: Evidence, pod: Object) -> str:
    """Return why no pool of the profile can take a pod; empty if one can, or without a profile. Only the
    reasons of the pools that it selects are returned, if there are any."""
    if evidence.profile is None or candidates(evidence, pod):
        return ""
    spec = part(pod, "spec")
    selected = [pool for pool in evidence.profile.pools if not _not_selected(spec, pool)]
    work = selected or [pool for pool in evidence.profile.pools if pool.role == "work"]
    return "; ".join(dict.fromkeys(_excluded(spec, pool) for pool in work))


def _excluded(spec: Mapping[str, Any], pool: PoolProfile) -> str:
    """Return why a pool cannot take a pod; empty if it can."""
    if why := _not_selected(spec, pool):
        return why
    taints = [
        f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
        for taint in untolerated(spec, pool.taints)
    ]
    if taints:
        return f"it does not tolerate the taint {and_list(taints)} of pool {pool.name}"
    pod_set = {"count": 1, "template": {"spec": spec}}
    return misfit({"spec": {"podSets": [pod_set]}}, [pool])


def _not_selected(spec: Mapping[str, Any], pool: PoolProfile) -> str:
    for label, value in part(spec, "nodeSelector").items():
        if label in pool.labels and pool.labels[label] != value:
            return f"its node selector {label}={value} excludes pool {pool.name}"
    if selects_node({"affinity": part(spec, "affinity")}, pool.labels, lambda _: True) is False:
        return f"its node affinity excludes pool {pool.name}"
    return ""


def _not_started(evidence: Evidence, pod: Object) -> Cause:
    """Return why a pod's containers have not started on its node."""
    status = part(pod, "status")
    for container in (*parts(status, "initContainerStatuses"), *parts(status, "containerStatuses")):
        reason = text(container, "state", "waiting", "reason")
        if reason in _USUAL:
            continue
        message = text(container, "state", "waiting", "message").rstrip(".")
        detail = f"{reason}{': ' if message else ''}{message}"
        if reason in _IMAGE:
            return Cause(
                reason="ImagePull",
                message=f"the node cannot pull its image {text(container, 'image')}: {detail}",
                remedy="its owner can correct the image's name, or its access to the registry",
                actor=Actor.OWNER,
            )
        return Cause(
            reason=reason,
            message=f"its container {text(container, 'name')} cannot start: {detail}",
            remedy="its owner can correct the pod template and submit it again",
            actor=Actor.OWNER,
        )
    if evidence.missing:
        return Cause(
            reason="ConfigMap",
            message=(
                f"its ConfigMap {and_list(evidence.missing)} does not exist, and it waits on node "
                f"{text(pod, 'spec', 'nodeName')} without an end"
            ),
            remedy="its owner can cancel it and submit it again; the node is billed meanwhile",
            actor=Actor.OWNER,
        )
    if failed := evidence.events_of(pod["metadata"]["uid"], *_NOT_STARTED):
        return Cause(
            reason=text(failed[-1], "reason"),
            message=f"its node cannot start it: {text(failed[-1], 'message').rstrip('.')}",
            remedy="its owner can correct the volume or the Secret that it names; the node tries again",
            actor=Actor.OWNER,
        )
    return Cause(
        reason="Starting",
        message=f"its containers are being created on node {text(pod, 'spec', 'nodeName')}",
        remedy="it starts when its volumes are mounted and its image is pulled",
        actor=Actor.TIME,
    )
