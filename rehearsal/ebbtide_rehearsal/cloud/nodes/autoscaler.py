"""The cloud's autoscaler: applies and logs the decisions of `scale_up`, `scale_down` and
`provisioning_requests`."""

from collections.abc import Mapping
from typing import Literal

from ebbtide.text import several
from ebbtide_rehearsal.cloud.nodes.actuator import Actuator
from ebbtide_rehearsal.cloud.nodes.atomic import ordered
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot, ProvisioningRequest
from ebbtide_rehearsal.cloud.nodes.decisions import ATOMIC, Order, RequestCondition
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet, is_quota
from ebbtide_rehearsal.cloud.nodes.free_capacity import booked
from ebbtide_rehearsal.cloud.nodes.message_ids import no_scale_up
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.preferences import cooldown_groups
from ebbtide_rehearsal.cloud.nodes.provisioning_requests import decide
from ebbtide_rehearsal.cloud.nodes.scale_down import UNNEEDED, ScaleDownReview, idle_seconds, review
from ebbtide_rehearsal.cloud.nodes.scale_up import (
    BACKED_OFF,
    FULL,
    NoScaleUpInfo,
    ScaleUp,
    expansion_options,
    ignored,
    scale_up,
)
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings
from ebbtide_rehearsal.cloud.nodes.snapshot_reader import SnapshotReader
from ebbtide_rehearsal.cloud.store import Store


class Autoscaler:
    """Cluster autoscaler of one cluster. As with a real one, its state is lost on a restart."""

    def __init__(
        self,
        cloud: Literal["gke", "aks"],
        actuator: Actuator,
        fleet: Fleet,
        store: Store,
        settings: NodeSettings,
    ) -> None:
        """Initialize without history."""
        self._cloud, self._actuator, self._fleet = cloud, actuator, fleet
        self._store, self._settings = store, settings
        self._review = ScaleDownReview({}, {}, (), ())
        self._last_scale_up: float | None = None
        self._messages: dict[str, str] = {}
        self._reported: set[tuple[str, str, str]] = set()
        self._since: dict[str, float] = {}

    def requests(self, snapshot: ClusterSnapshot, reader: SnapshotReader) -> bool:
        """Process ProvisioningRequests until one is handled; return whether free capacity has changed."""
        for request in snapshot.requests:
            since = self._since.setdefault(request.uid, snapshot.now)
            match decide(request, snapshot, since, self._fleet.backoff.until, self._settings):
                case None:
                    pass
                case RequestCondition() as new:
                    self._set_condition(request, reader, new, snapshot.now)
                    if new.kind == "Provisioned":
                        return True  # what is free has changed
                case Order() as order:
                    is_ordered = self._order(request, order, snapshot)
                    if request.kind == ATOMIC and (new := ordered(request, came=is_ordered)):
                        self._set_condition(request, reader, new, snapshot.now)
                    if is_ordered:
                        return True
        return False

    def _set_condition(
        self, request: ProvisioningRequest, reader: SnapshotReader, new: RequestCondition, now: float
    ) -> None:
        self._since[request.uid] = now
        self._actuator.set_condition(request, reader.raw_request(request), new)
        self._store.log_event(
            "provisioning-request",
            f"ProvisioningRequest {request.id} {new.sentence}",
            request=request.id,
            condition=new.kind,
            status=new.status,
            reason=new.reason,
        )

    def _order(self, request: ProvisioningRequest, order: Order, snapshot: ClusterSnapshot) -> bool:
        backoff = self._fleet.backoff.until
        if any(backoff.get(group(order.pool, zone), 0) > snapshot.now for zone in order.zones):
            return False
        is_ordered = not self._fleet.order(order.pool, order.zones, request.id)
        if is_ordered:
            self._last_scale_up = snapshot.now
        return is_ordered

    def scale_up(self, snapshot: ClusterSnapshot) -> None:
        """Order nodes for pending pods."""
        offered = list(expansion_options(snapshot, self._fleet.backoff.until))
        planned, unschedulable = scale_up(snapshot, offered)
        self._report_unschedulable(unschedulable)
        for pod, message in ignored(snapshot):
            if self._messages.get(pod.uid) != message:
                self._messages[pod.uid] = message
                self._actuator.create_event(pod, "Normal", "", message)
        if planned is not None:
            self._apply_scale_up(planned, snapshot)

    def _apply_scale_up(self, planned: ScaleUp, snapshot: ClusterSnapshot) -> None:
        pool, count = planned.pool, len(planned.zones)
        self._store.log_event(
            "scale-up",
            f"Pool {pool.name} is to grow from {planned.before} to "
            f"{several(planned.before + count, 'node')} for {several(len(planned.pods), 'pending pod')}, "
            f"{planned.pods[0].id} among them.",
            pool=pool.name,
            before=planned.before,
            after=planned.before + count,
            pods=[pod.id for pod in planned.pods],
        )
        refusals = self._fleet.order(pool, planned.zones)
        is_ordered = not set(planned.zones) <= refusals.keys()
        if is_ordered:
            self._last_scale_up = snapshot.now
        for pod in planned.pods:
            self._messages.pop(pod.uid, None)
            if is_ordered:
                self._actuator.create_event(pod, "Normal", "TriggeredScaleUp", planned.message)
        if refusals and self._cloud == "gke":
            self._report_failure(planned, refusals, snapshot)

    def _report_failure(
        self, planned: ScaleUp, refusals: Mapping[str, str], snapshot: ClusterSnapshot
    ) -> None:
        """Report refusals to pods as GKE does, and suspend the node groups of the pool's ComputeClass
        rule."""
        zones, regional = sorted(refusals), any(is_quota(refusal) for refusal in refusals.values())
        self._fleet.backoff.cool(
            cooldown_groups(planned.pool, zones, snapshot, regional=regional), snapshot.now
        )
        reasons = ", ".join(dict.fromkeys(refusal.partition(" (")[0] for refusal in refusals.values()))
        message = (
            f"Node scale up in zones {', '.join(zones)} associated with this pod failed: {reasons}. Pod is "
            "at risk of not being scheduled."
        )
        for pod in planned.pods:
            self._actuator.create_event(pod, "Warning", "FailedScaleUp", message)

    def _report_unschedulable(self, unschedulable: list[NoScaleUpInfo]) -> None:
        """Report to pods why no pool can grow for them: one event per pod and reason, one log entry per
        reason."""
        new = [info for info in unschedulable if self._messages.get(info.pod.uid) != info.message]
        by_message: dict[str, list[str]] = {}
        reasons = {info.message: info.reasons for info in new}
        for info in new:
            self._messages[info.pod.uid] = info.message
            self._actuator.create_event(info.pod, "Normal", "NotTriggerScaleUp", info.message)
            by_message.setdefault(info.message, []).append(info.pod.id)
        for message, pods in by_message.items():
            others = f" and {len(pods) - 1} others" if len(pods) > 1 else ""
            why = message.partition(": ")[2] or "no node pool is autoscaled"
            messages = no_scale_up(reasons[message], (BACKED_OFF, FULL)) if self._cloud == "gke" else []
            text = f"No pool can grow for pod {pods[0]}{others}: {why}."
            self._store.log_event("no-scale-up", text, pods=pods, why=why, messages=messages)

    def scale_down(self, snapshot: ClusterSnapshot) -> None:
        """Drain unneeded nodes, and log the reasons that keep the others."""
        self._review = review(snapshot, self._review, booked(snapshot), self._last_scale_up, self._settings)
        for node in self._review.unremovable:
            key = node.node, node.pod, node.why
            if key not in self._reported:
                self._reported.add(key)
                message = node.message if self._cloud == "gke" else ""
                facts = {"node": node.node, "pod": node.pod, "why": node.why, "message": message}
                self._store.log_event("held-node", node.sentence, **facts)
        by_name = {machine.name: machine for machine in snapshot.machines}
        for name in self._review.removable:
            self._actuator.mark_to_be_deleted(snapshot.nodes[name])
            idle = idle_seconds(snapshot, self._settings, snapshot.pool(by_name[name]))
            why = f"{UNNEEDED} {idle / 60:.0f} min"
            self._fleet.save(by_name[name].having(state="draining", since=snapshot.now, why=why))
