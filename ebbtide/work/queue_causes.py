"""Causes of a workload that Kueue has not admitted, or has admitted and not resumed, and of one with reserved
quota that waits for the cloud's capacity by an admission check (Kueue 0.19.2).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import Object, condition, part, parts, text
from ebbtide.text import and_list, command_line, or_list, several
from ebbtide.values import quantities
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import ASLEEP
from ebbtide.work.evidence import Actor, Cause, Evidence, clock_time, owner_name
from ebbtide.work.placement import amount_text, misfit

_SHORT: Final = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\S+) more needed")
_MAXIMUM: Final = re.compile(
    r"insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \(\S+\) \+ "
    r"current podset request \((\S+)\) > maximum capacity \((\S+)\)"
)
_TAINT: Final = re.compile(r"untolerated taint \{(\S+) (\S*) ?(\w+) \S+\} in flavor ([^\s,;.]+)")
_AFFINITY: Final = re.compile(r"flavor (\S+) doesn't match node affinity")
_UNKNOWN: Final = re.compile(r"resource (\S+) unavailable in ClusterQueue")
_PREEMPTED: Final = re.compile(r"Pending the preemption of (\d+) workload")
_RERUN: Final = frozenset({"Job", "TrainJob", "experiment"})
"""Kinds that `ebbtide rerun` creates again."""
_STARTING: Final = 60
"""Seconds in which Kueue creates a Workload, and resumes an admitted one, even on a busy cluster."""
_PREEMPTOR: Final = re.compile(r"JobUID: ([^)]*)\).*; preemptor path: \S*/([^;\s]+)")
_PREEMPTION: Final = re.compile(r" due to ([^;]+)")
_SHOWN: Final = 3
"""Holders of quota that are named."""
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shortage:
    """Missing quota of a resource in a flavor."""

    resource: str
    flavor: str
    missing: Decimal


@dataclass(frozen=True, slots=True)
class Excess:
    """A request of a pod set that is larger than the whole quota of a flavor."""

    resource: str
    flavor: str
    request: Decimal
    maximum: Decimal


@dataclass(frozen=True, slots=True)
class Assignment:
    """The reasons of a message.

    Attributes:
        shortages: quota that other workloads use.
        excesses: requests larger than a whole flavor.
        taints: taints that it does not tolerate, by flavor.
        selected_away: flavors that its node selector or affinity excludes.
        unknown: resources that no flavor of the queue has.
        preempting: workloads that are being preempted for it.
    """

    shortages: tuple[Shortage, ...] = ()
    excesses: tuple[Excess, ...] = ()
    taints: Mapping[str, str] = field(default_factory=dict[str, str])
    selected_away: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    preempting: int = 0


def read_assignment(message: str) -> Assignment:
    """Parse the message of a Workload's condition `QuotaReserved`."""
    preempted = _PREEMPTED.search(message)
    return Assignment(
        shortages=tuple(
            Shortage(resource, flavor, quantities.parse(missing))
            for resource, flavor, missing in _SHORT.findall(message)
        ),
        excesses=tuple(
            Excess(resource, flavor, quantities.parse(request), quantities.parse(maximum))
            for resource, flavor, request, maximum in _MAXIMUM.findall(message)
        ),
        taints={
            flavor: f"{key}{'=' if value else ''}{value}:{effect}"
            for key, value, effect, flavor in _TAINT.findall(message)
        },
        selected_away=tuple(dict.fromkeys(_AFFINITY.findall(message))),
        unknown=tuple(dict.fromkeys(_UNKNOWN.findall(message))),
        preempting=int(preempted[1]) if preempted else 0,
    )


def queue_cause(evidence: Evidence) -> Cause:
    """Return why a suspended workload is suspended."""
    workload = evidence.workload
    if workload is None:
        return _without_workload(evidence)
    if workload["spec"].get("active") is False:
        return _deactivated(evidence, workload)
    if not condition(workload, "QuotaReserved"):
        return _backoff(evidence, workload) or _blocked(evidence) or _unassigned(evidence, workload)
    if not condition(workload, "Admitted"):
        return provisioning(evidence, workload)
    return _not_resumed(evidence, workload)


def _without_workload(evidence: Evidence) -> Cause:
    if not evidence.queue:
        return Cause(
            reason="Suspended",
            message="it is suspended and in no queue, so that no controller resumes it",
            remedy="its owner can resume it (`spec.suspend: false`), or submit it to a queue",
            actor=Actor.OWNER,
        )
    created = text(evidence.job, "metadata", "creationTimestamp")
    if created and evidence.age_seconds(created) < _STARTING:
        return Cause(
            reason="New",
            message=f"Kueue has not read it yet, for queue {evidence.queue}",
            remedy="that takes seconds",
            actor=Actor.TIME,
        )
    return Cause(
        reason="NotManaged",
        message=f"it is in queue {evidence.queue}, and Kueue has not created a Workload for it",
        remedy=(
            f"an administrator can check that Kueue runs and manages namespace {evidence.namespace} (label "
            f"`ebbtide.dev/queues`) and the kind {evidence.kind}"
        ),
        actor=Actor.ADMINISTRATOR,
    )


def _deactivated(evidence: Evidence, workload: Object) -> Cause:
    _, _, why = text(condition(workload, "Evicted"), "message").partition(" due to ")
    return Cause(
        reason="Deactivated",
        message=f"it is deactivated{': ' if why else ''}{why.rstrip('.')}",
        remedy=f"its owner can {_again(evidence)}",
        actor=Actor.OWNER,
    )


def _backoff(evidence: Evidence, workload: Object) -> Cause | None:
    """Return the backoff after an eviction, while it lasts."""
    at = text(workload, "status", "requeueState", "requeueAt")
    if not at or datetime.fromisoformat(at) <= evidence.now:
        return None
    evicted = condition(workload, "Evicted")
    tries = int(part(workload, "status", "requeueState").get("count") or 1)
    return Cause(
        reason="Backoff",
        message=(
            f"it was evicted {several(tries, 'time')} and waits for its backoff until {clock_time(at)}: "
            f"{text(evicted, 'message').rstrip('.')}"
        ),
        remedy="Kueue then tries it again",
        actor=Actor.TIME,
        until=datetime.fromisoformat(at),
    )


def _blocked(evidence: Evidence) -> Cause | None:
    """Return why its queue admits nothing; None if it admits workloads, or is unknown."""
    local, queue = evidence.local_queue, evidence.queue
    if local is not None and _stopped(local):
        return _held(evidence, f"LocalQueue {evidence.queue} of namespace {evidence.namespace}")
    if local is not None:
        return _inactive(evidence, local)
    names = [item["metadata"]["name"] for item in evidence.local_queues]
    if not names:
        return None
    return Cause(
        reason="NoSuchQueue",
        message=f"namespace {evidence.namespace} has no queue {queue}",
        remedy=f"its owner can submit it to queue {or_list(names)}",
        actor=Actor.OWNER,
    )


def _inactive(evidence: Evidence, local: Object) -> Cause | None:
    """Return why its ClusterQueue is inactive. Members of a team may not read it."""
    inactive = condition(local, "Active", "False")
    name, queue = text(local, "spec", "clusterQueue"), evidence.queue
    cluster_queue = evidence.cluster_queue
    if cluster_queue is None:
        if not inactive:
            return None
        return Cause(
            reason="QueueInactive",
            message=f"queue {queue} admits nothing: its ClusterQueue {name} is held or misconfigured",
            remedy=f"an administrator can see which with `kubectl describe clusterqueue {name}`",
            actor=Actor.ADMINISTRATOR,
        )
    if ASLEEP in part(cluster_queue, "metadata", "annotations"):
        return Cause(
            reason="Asleep",
            message=f"the cluster's stack sleeps and holds queue {queue}",
            remedy=f"a user with access to the stack can wake it with `{command_line('wake')}`",
            actor=Actor.ADMINISTRATOR,
        )
    if _stopped(cluster_queue):
        return _held(evidence, f"ClusterQueue {name}")
    if broken := condition(cluster_queue, "Active", "False"):
        return _misconfigured(f"queue {queue} admits nothing: {text(broken, 'message').rstrip('.')}")
    return None


def _stopped(queue: Object) -> bool:
    return text(queue, "spec", "stopPolicy") not in {"", "None"}


def _held(evidence: Evidence, held: str) -> Cause:
    return Cause(
        reason="Held",
        message=f"queue {evidence.queue} is held and admits nothing",
        remedy=f"an administrator can release it by `stopPolicy: None` on {held}",
        actor=Actor.ADMINISTRATOR,
    )


def _misconfigured(message: str) -> Cause:
    return Cause(
        reason="Misconfigured",
        message=message,
        remedy="an administrator can correct it",
        actor=Actor.ADMINISTRATOR,
    )


def _unassigned(evidence: Evidence, workload: Object) -> Cause:
    refused = condition(workload, "QuotaReserved", "False")
    message = text(refused, "message")
    found = read_assignment(message)
    if found.preempting:
        return Cause(
            reason="WaitingForPreemption",
            message=f"Kueue preempts {several(found.preempting, 'workload')} of lower priority for it",
            remedy="it starts when they have ended",
            actor=Actor.TIME,
        )
    if never := misfit(workload, evidence.queue_pools) if evidence.queue_pools else "":
        return _never(evidence, workload, never)
    if found.shortages:
        return _quota(evidence, workload, found)
    reasons = list(_unfit(found))
    if reasons:
        return _never(evidence, workload, "; ".join(reasons))
    if "doesn't match ClusterQueue selector" in message:
        return _misconfigured(
            f"the ClusterQueue of queue {evidence.queue} does not admit namespace {evidence.namespace}"
        )
    return _in_order(evidence, message)


def _never(evidence: Evidence, workload: Object, why: str) -> Cause:
    queues = _fitting(evidence, workload)
    return Cause(
        reason="DoesNotFit",
        message=f"it can never start in queue {evidence.queue}: {why}",
        remedy=(
            f"its owner can submit it to queue {or_list(queues)}, where it fits"
            if queues
            else "its owner can submit it with other requests, or an administrator can change the pools"
        ),
        actor=Actor.OWNER,
    )


def _fitting(evidence: Evidence, workload: Object) -> list[str]:
    """Return the other queues of its namespace with a pool that can take it."""
    profile = evidence.profile
    return [
        local.name
        for queue in (profile.queues if profile else ())
        if profile and not misfit(workload, map(profile.pool, queue.pools))
        for local in queue.local_queues
        if local.namespace == evidence.namespace and local.name != evidence.queue
    ]


def _unfit(found: Assignment) -> Iterator[str]:
    """Yield the reasons why no flavor of the queue can take it, not even without other work."""
    for resource in found.unknown:
        yield f"its pools have no {resource}"
    for item in found.excesses:
        yield (
            f"it requests {amount_text(item.resource, item.request)}, and flavor {item.flavor} has "
            f"{amount_text(item.resource, item.maximum)} in all"
        )
    for flavor, taint in found.taints.items():
        yield f"it does not tolerate the taint {taint} of flavor {flavor}"
    if found.selected_away:
        yield f"its node selector excludes flavor {and_list(found.selected_away)}"


def _quota(evidence: Evidence, workload: Object, found: Assignment) -> Cause:
    short = min(found.shortages, key=lambda item: item.missing)
    holders = _holders(evidence, short)
    hidden = "" if evidence.is_complete else ", or of namespaces that you may not read"
    others = "other workloads" if evidence.is_complete else "workloads of other namespaces"
    held = f"held by {_listed(holders) if holders else others}"
    was = _preempted(evidence, workload)
    behind = f", and it is number {evidence.position} in the queue" if (evidence.position or 1) > 1 else ""
    return Cause(
        reason="WaitingForQuota",
        message=(
            f"{was}queue {evidence.queue} lacks {amount_text(short.resource, short.missing)} of free quota "
            f"in flavor {short.flavor}, {held}{behind}"
        ),
        remedy=(
            f"it starts when enough of them end{hidden if holders else ''}; their owners can end them, or an "
            "administrator can raise the pool's `nodes.max`"
        ),
        actor=Actor.OTHERS,
    )


def _preempted(evidence: Evidence, workload: Object) -> str:
    """Return the clause about the workload for which another was preempted; empty if it was not."""
    message = text(condition(workload, "Preempted"), "message")
    if not message:
        return ""
    by, why = _PREEMPTOR.search(message), _PREEMPTION.search(message)
    uid, queue = (by[1], by[2]) if by else ("", "")
    known = evidence.workloads.by_job.get(uid) if uid else None
    unknown = f"a workload of ClusterQueue {queue}" if queue else "another workload"
    preemptor = owner_name(known, evidence.namespace) if known else unknown
    return f"it was preempted by {preemptor}{f' ({why[1]})' if why else ''}, and "


def _holders(evidence: Evidence, short: Shortage) -> list[tuple[str, str]]:
    """Return the workloads that hold quota of a flavor with their amounts, the largest first."""
    amounts: defaultdict[str, Decimal] = defaultdict(Decimal)
    for item, amount in evidence.workloads.quota.get((short.resource, short.flavor), ()):
        amounts[owner_name(item, evidence.namespace)] += amount
    ordered = sorted(amounts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(name, amount_text(short.resource, amount)) for name, amount in ordered if amount]


def _listed(holders: list[tuple[str, str]]) -> str:
    shown = [f"{name} ({amount})" for name, amount in holders[:_SHOWN]]
    more = len(holders) - _SHOWN
    return and_list([*shown, f"{more} more"] if more > 0 else shown)


def _in_order(evidence: Evidence, message: str) -> Cause:
    """Return the cause of a workload that Kueue has not tried yet, or about which it says something else."""
    if message and not message.startswith("Previously:"):
        return Cause(
            reason="Queued",
            message=f"Kueue has not admitted it from queue {evidence.queue}: {message.rstrip('.')}",
            remedy="an administrator can say more from Kueue's log",
            actor=Actor.ADMINISTRATOR,
        )
    ahead = f", behind {and_list(evidence.ahead[-_SHOWN:])}" if evidence.ahead else ""
    place = f"it is number {evidence.position} in queue" if evidence.position else "it is in queue"
    return Cause(
        reason="InQueue",
        message=f"{place} {evidence.queue}{ahead}",
        remedy="Kueue tries it in its turn",
        actor=Actor.TIME,
    )


def _not_resumed(evidence: Evidence, workload: Object) -> Cause:
    admitted = text(condition(workload, "Admitted"), "lastTransitionTime")
    seconds = evidence.age_seconds(admitted)
    if seconds < _STARTING:
        return Cause(
            reason="Starting",
            message="Kueue has just admitted it",
            remedy="its pods are created within seconds",
            actor=Actor.TIME,
        )
    for_minutes = f"Kueue admitted it {round(seconds / 60)} min ago"
    if evidence.kind == "TrainJob" and evidence.has_runtime_patches is False:
        return Cause(
            reason="IncompatibleVersions",
            message=(
                f"{for_minutes} and cannot resume it: the installed Trainer has no `spec.runtimePatches`, "
                "which this Kueue writes (kueue#11931)"
            ),
            remedy="an administrator can update Kubeflow Trainer to 2.2 or later",
            actor=Actor.ADMINISTRATOR,
        )
    return Cause(
        reason="NotResumed",
        message=f"{for_minutes}, and it is still suspended",
        remedy=(
            "an administrator can check the logs of Kueue and of its controller: their versions may not work "
            "together"
        ),
        actor=Actor.ADMINISTRATOR,
    )


def _again(evidence: Evidence) -> str:
    if evidence.kind not in _RERUN:
        return "submit it again"
    return f"run it again with `{given_command().on_job('rerun', evidence.name, evidence.namespace)}`"


def provisioning(evidence: Evidence, workload: Object) -> Cause:
    """Return the open admission check of a workload."""
    checks = parts(workload, "status", "admissionChecks")
    open_: Mapping[str, Any] = next((check for check in checks if check.get("state") != "Ready"), _NONE)
    name, state, message = (text(open_, key) for key in ("name", "state", "message"))
    request = evidence.request
    if failed := condition(request, "Failed"):
        return _stock_out(open_, text(failed, "message") or message)
    if state == "Retry":
        return _stock_out(open_, message)
    if state == "Rejected":
        return Cause(
            reason="CheckRejected",
            message=f"admission check {name} rejected it: {message.rstrip('.') or 'it gives no reason'}",
            remedy="its owner can submit it again once that is corrected",
            actor=Actor.OWNER,
        )
    detail = text(condition(request, "Provisioned", "False"), "message") or message
    return Cause(
        reason="WaitingForCapacity",
        message=(
            f"admission check {name} has requested its nodes from the cloud"
            f"{': ' if detail else ''}{detail.rstrip('.')}"
        ),
        remedy="it starts when the cloud has provisioned them",
        actor=Actor.CLOUD,
    )


def _stock_out(check: Mapping[str, Any], message: str) -> Cause:
    since, after = text(check, "lastTransitionTime"), check.get("requeueAfterSeconds")
    until = datetime.fromisoformat(since) + timedelta(seconds=int(str(after))) if since and after else None
    again = f"Kueue requests them again at {clock_time(until)}" if until else "Kueue requests them again"
    return Cause(
        reason="StockOut",
        message=f"the cloud did not provision its nodes: {message.rstrip('.')}",
        remedy=f"{again}; its owner can choose another queue",
        actor=Actor.CLOUD,
        until=until,
    )
