"""Build the document of a review from recordings: what changes, what that does to running work, and why its
update would fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Literal

from ebbtide.analysis.changes.inputs import recreates_nodes
from ebbtide.analysis.policy.settings import Policy
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.preview_document import (
    FindingReport,
    PoolReport,
    Preview,
    QueueReport,
)
from ebbtide.analysis.preview.words import type_words
from ebbtide.analysis.reading.aks import CAPACITY_RESERVATION
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import FUTURE_RESERVATION, read_period
from ebbtide.analysis.recording.recording import Message, Recording, Resource
from ebbtide.analysis.recording.values import masked
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.difference import Change, compare, deleted
from ebbtide.analysis.review.review_document import (
    ChangeReport,
    DifferenceReport,
    FieldChangeReport,
    ReplaySummary,
    Review,
)
from ebbtide.declaration.model import expiry
from ebbtide.declaration.project.extends import Declaration
from ebbtide.text import and_list
from ebbtide.values.clock import in_utc
from ebbtide.values.cloud_kind import by_cloud

_PROVIDER: Final = "pulumi:providers:"
_NAMESPACE: Final = "kubernetes:core/v1:Namespace"
_ROLE_BINDING: Final = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
POOL_NAMES: Final[Mapping[str, str]] = dict(
    by_cloud(gke=("ebbtide:gke:NodePool", "name"), aks=("ebbtide:aks:NodePool", "agentPoolName")).values()
)
"""Input with a pool's name, by the type of its component."""


def review_of(
    after: Recording,
    before: Baseline | None = None,
    *,
    warnings: Iterable[str] = (),
    errors: Iterable[str] = (),
    policy: Policy | None = None,
    declaration: Declaration | None = None,
    replay: ReplaySummary | None = None,
) -> Review:
    """Build the document of a review.

    Args:
        after: the recording of the program.
        before: the earlier version to compare with, if any.
        warnings: warnings besides the program's.
        errors: errors of other stacks that extend this one's file.
        policy: the stack's policy; the default one if omitted.
        declaration: the stack's declaration, for the files that it extends.
        replay: the replay of a trace, if any.
    """
    old = (before and before.recording) or Recording(project=after.project, stack=after.stack)
    changes = compare(old, after, deployed=before.deployed) if before else ()
    others = tuple(errors)
    earlier = before.earlier if before else None
    preview = preview_of(
        after,
        warnings,
        policy,
        declaration=declaration,
        errors=others,
        earlier=replace(earlier, decides=bool(changes)) if earlier else None,
        deleted=deleted(changes),
    )
    difference = _difference(before, old, after, changes, preview) if before else None
    return Review(
        preview=preview,
        difference=difference,
        replay=replay,
        findings=preview.findings,
        verdict="fail" if others else _verdict(difference, preview.findings),
    )


def _difference(
    before: Baseline, old: Recording, after: Recording, changes: Sequence[Change], preview: Preview
) -> DifferenceReport:
    with before.prices():
        old_preview = preview_of(old)
    beside = tuple(message.text for message in new_pools_beside(after))
    if before.recording is None:
        effects = (f"Stack {after.stack} does not exist at {before.name}: everything is created.",)
    else:
        refused = (message.urn for message in after.refusals)
        effects = (*beside, *consequences(old_preview, preview, changes, refused))
    return DifferenceReport(
        against=before.name,
        changes=_changes(changes, old_preview, preview),
        refusals=tuple(text for text in refusals(after, changes) if text not in beside),
        consequences=effects,
        cost_before=old_preview.cost,
        quotas_before=old_preview.quotas,
    )


def _changes(changes: Iterable[Change], before: Preview, after: Preview) -> tuple[ChangeReport, ...]:
    pools = {pool.urn: pool.name for pool in (*before.pools, *after.pools) if not pool.inline}
    return tuple(
        ChangeReport(
            action=change.action,
            type=change.resource.type,
            name=change.resource.name,
            urn=change.resource.urn,
            pool=pools.get(change.resource.urn, ""),
            fields=tuple(
                FieldChangeReport(
                    path=item.path,
                    old=masked(item.old, item.path),
                    new=masked(item.new, item.path),
                    replaces=item.replaces,
                )
                for item in change.fields
            ),
        )
        for change in changes
        if not change.resource.type.startswith(_PROVIDER)
    )


def _verdict(
    difference: DifferenceReport | None, findings: Iterable[FindingReport]
) -> Literal["pass", "warn", "fail"]:
    """Return the verdict of a review; a finding with a declared exception does not count."""
    levels = {finding.level for finding in findings if not finding.exception}
    if "mandatory" in levels or (difference and difference.refusals):
        return "fail"
    ends_work = difference is not None and any(
        change.action in ("replace", "delete") for change in difference.changes
    )
    return "warn" if levels or ends_work or (difference and difference.consequences) else "pass"


def new_pools_beside(after: Recording) -> tuple[Message, ...]:
    """Return the rejected changes of work pools, for which `ebbtide up` creates a new pool beside the old."""
    return tuple(
        message
        for message in after.refusals
        if message.urn is not None
        and (pool := after[message.urn]).type in POOL_NAMES
        and pool.inputs.get("mode") != "System"
    )


def refusals(after: Recording, changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the reasons why `pulumi up` would fail: hooks that reject it, and protected
    resources."""
    protected = (
        f"{type_words(change.resource.type)} {change.resource.name} is protected, and the engine refuses to "
        f"{change.action} it{_because(change)}. Revert the change, or remove its protection first."
        for change in changes
        if change.is_refused
    )
    return (*(message.text for message in after.refusals), *protected)


def consequences(
    before: Preview, after: Preview, changes: Sequence[Change], refused: Iterable[str | None]
) -> tuple[str, ...]:
    """Return the effects on running work.

    Args:
        before: the stack as it is.
        after: the stack as it would be.
        changes: the difference.
        refused: URNs of the components whose update a hook rejects; changes below them are skipped.
    """
    refused = set(refused)
    possible = [change for change in changes if change.resource.parent not in refused]
    return tuple(
        dict.fromkeys(
            (
                *_lifetime(before, after),
                *_clusters(before, possible),
                *_pools(before, possible),
                *_queues(before, after),
                *_largest_pods(before, after),
                *_members(possible),
                *_others(possible),
            )
        )
    )


def _lifetime(before: Preview, after: Preview) -> Iterator[str]:
    """Yield the end of a cluster that comes earlier, or never."""
    old, new = _hours(before), _hours(after)
    if old is not None and new is None:
        yield "The cluster no longer expires: it is protected, and billed until it is destroyed."
    elif new is not None and (old is None or new < old):
        # Known only from a deployed state.
        stashes = [item for item in before.resources if item.type == "pulumi:index:Stash"]
        starts = [start for item in stashes if (start := expiry.parsed(str(item.inputs.get("input"))))]
        time = f", at {expiry.text(starts[0] + timedelta(hours=new))}" if starts else ""
        instead = "" if old is None else f" instead of {old} h"
        yield (
            f"The cluster expires {new} h after its first update{instead}{time}: the next `ebbtide reap` "
            "destroys it with its work then."
        )


def _hours(preview: Preview) -> int | None:
    """Return the lifetime of a stack's cluster; None for a permanent one."""
    hours = (item.inputs.get("hours") for item in preview.resources if item.type == expiry.COMPONENT)
    return next((int(value) for value in hours if isinstance(value, int | float)), None)


def _members(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the users and groups who lose their rights in a namespace that stays."""
    for change in changes:
        if change.old is None or change.new is None or change.old.type != _ROLE_BINDING:
            continue
        removed = _subjects(change.old) - _subjects(change.new)
        if removed:
            namespace = _metadata(change).get("namespace", "")
            yield f"{and_list(sorted(removed))} can no longer submit, see or stop work in {namespace}."


def _subjects(binding: Resource) -> set[str]:
    subjects = binding.inputs.get("subjects")
    items = subjects if isinstance(subjects, list) else []
    return {str(item["name"]) for item in items if isinstance(item, dict) and "name" in item}


def _clusters(before: Preview, changes: Iterable[Change]) -> Iterator[str]:
    by_urn = _by_old_urn(changes)
    for cluster in before.clusters:
        change = by_urn.get(cluster.urn)
        if change is not None and change.action == "delete":
            yield f"Cluster {cluster.name} is deleted, with its pools and everything that runs on it."
        elif change is not None and change.action == "replace":
            yield (
                f"Cluster {cluster.name} is deleted and created again{_because(change)}: its workloads end, "
                "and objects that this stack does not declare are lost."
            )
        elif change is not None and (paths := _recreating(change)):
            yield (
                f"{cluster.cloud.upper()} recreates all nodes of cluster {cluster.name}, a few at a time "
                f"({paths}): pods on them are evicted."
            )


def _pools(before: Preview, changes: Sequence[Change]) -> Iterator[str]:
    by_urn = _by_old_urn(changes)
    gone = {
        cluster.name
        for cluster in before.clusters
        if cluster.urn in by_urn and by_urn[cluster.urn].action in ("delete", "replace")
    }
    for pool in before.pools:
        change = by_urn.get(pool.urn)
        if change is None or pool.inline or pool.cluster in gone:
            continue
        if change.action == "delete":
            yield f"Pool {pool.name} is deleted: its nodes are drained, and {_work(pool)}."
        elif change.action == "replace":
            yield (
                f"Pool {pool.name} is deleted and created again{_because(change)}: its nodes are drained, "
                f"and {_work(pool)}."
            )
        elif paths := _recreating(change):
            yield (
                f"{pool.cloud.upper()} recreates the nodes of pool {pool.name}, a few at a time ({paths}): "
                "pods on them are evicted."
            )


def _recreating(change: Change) -> str:
    """Return the changed properties that recreate nodes, as a list; empty if none does."""
    return ", ".join(
        item.path
        for item in change.fields
        if recreates_nodes(change.resource.type, item.path, item.old, item.new)
    )


def _work(pool: PoolReport) -> str:
    if pool.queues:
        return f"work on them ends, admitted from {', '.join(pool.queues)}"
    return "work on them ends"


def _queues(before: Preview, after: Preview) -> Iterator[str]:
    """Yield each queue whose maximum decreases."""
    queues = {queue.name: queue for queue in after.queues}
    for old in before.queues:
        new = queues.get(old.name)
        if new is None:
            yield (
                f"Queue {_name(old)} is removed: its running work is evicted, and pending work stays pending."
            )
            continue
        now = {(quota.flavor, quota.resource): quota for quota in new.quotas}
        for quota in old.by_flavor:
            left, of_pool = now.get((quota.flavor, quota.resource)), quota.pool or quota.flavor
            most, less = quota.most, left.most if left else 0.0
            guarantee = left.nominal if left else 0
            if guarantee < quota.nominal:
                yield (
                    f"Queue {_name(old)} is guaranteed {guarantee:g} {quota.resource} of {of_pool}, "
                    f"{quota.nominal:g} before: other queues can preempt its work beyond that."
                )
            if less < most:
                yield (
                    f"Queue {_name(old)} loses capacity: at most {less:g} {quota.resource} of {of_pool}"
                    f", {most:g} before."
                )


def _largest_pods(before: Preview, after: Preview) -> Iterator[str]:
    """Yield each queue whose largest possible pod shrinks."""
    for old in before.queues:
        if old.name in {queue.name for queue in after.queues}:
            smaller = _largest_pod(old, after)
            for resource, most in _largest_pod(old, before).items():
                if (less := smaller.get(resource, 0)) < most:
                    yield (
                        f"The largest pod of queue {_name(old)} shrinks from {most:g} to {less:g} "
                        f"{resource}: pending work that needs more cannot run."
                    )


def _largest_pod(queue: QueueReport, preview: Preview) -> dict[str, float]:
    """Return the largest node of a queue's pools: its accelerators, or else its vCPUs and memory."""
    pools = [pool for pool in preview.pools if not set(queue.local_queues).isdisjoint(pool.queues)]
    if accelerators := [pool.accelerator.requestable for pool in pools if pool.accelerator]:
        return {"accelerators": max(accelerators)}
    return {
        "vCPUs": max((pool.vcpus or 0 for pool in pools), default=0),
        "GiB of memory": max((pool.memory_gib or 0 for pool in pools), default=0),
    }


def _name(queue: QueueReport) -> str:
    return ", ".join(queue.local_queues) or queue.name


def _others(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        resource = change.resource
        if resource.type == FUTURE_RESERVATION and change.action != "update":
            yield _reservation(change)
        elif change.action == "create" and resource.type == CAPACITY_RESERVATION:
            sku = Inputs(resource.inputs)
            yield (
                f"Capacity reservation {resource.name} reserves {sku.number('sku.capacity')} x "
                f"{sku.text('sku.name')}: billed until the pool is removed, used or not."
            )
        elif change.action == "delete" and resource.retain_on_delete:
            yield (
                f"{type_words(resource.type)} {resource.name} is removed from the stack and retained in the "
                "cloud."
            )
        elif change.action == "delete" and resource.type == _NAMESPACE:
            name = _metadata(change).get("name") or resource.name
            yield f"Namespace {name} is deleted, with everything in it."


def _reservation(change: Change) -> str:
    name, (begin, end) = read_period(Inputs(change.resource.inputs))
    period = f"from {in_utc(begin)} to {in_utc(end)}"
    if change.action == "delete":
        return (
            f"Reservation {name} is removed from the stack, and cannot be cancelled: it is billed {period}, "
            "used or not."
        )
    return (
        f"Reservation {name} is requested {period}: once requested, it can neither be changed nor "
        "cancelled. Its end ends its machines and their work."
    )


def _metadata(change: Change) -> Mapping[str, Any]:
    metadata = change.resource.inputs.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _because(change: Change) -> str:
    paths = [item.path for item in change.fields if item.replaces]
    return f" ({', '.join(paths)})" if paths else ""


def _by_old_urn(changes: Iterable[Change]) -> Mapping[str, Change]:
    return {change.old.urn: change for change in changes if change.old is not None}
