"""The cloud's autoscaler: applies and logs the decisions of `growing`, `shrinking` and `queueing`."""

from collections.abc import Mapping
from typing import Literal

from ebbtide.wording import several
from ebbtide_rehearsal.cloud.nodes.actuator import Actuator
from ebbtide_rehearsal.cloud.nodes.atomic import ordered
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot, ProvisioningRequest
from ebbtide_rehearsal.cloud.nodes.decisions import ATOMIC, Order, RequestCondition
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet, is_quota
from ebbtide_rehearsal.cloud.nodes.free_capacity import booked
from ebbtide_rehearsal.cloud.nodes.message_ids import no_scale_up
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.preferences import cooled
from ebbtide_rehearsal.cloud.nodes.provisioning_requests import decide
from ebbtide_rehearsal.cloud.nodes.scale_down import UNNEEDED, ScaleDownReview, idle_seconds, review
from ebbtide_rehearsal.cloud.nodes.scale_up import BACKED_OFF, FULL, Growth, Stranded, grow, ignored, offers
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings
from ebbtide_rehearsal.cloud.nodes.snapshot_reader import Reader
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
        self._last_growth: float | None = None
        self._messages: dict[str, str] = {}
        self._held: set[tuple[str, str, str]] = set()
        self._since: dict[str, float] = {}

    def requests(self, snapshot: ClusterSnapshot, reader: Reader) -> bool:
        """Process ProvisioningRequests until one is handled; return whether free capacity has changed."""
        for request in snapshot.requests:
            since = self._since.setdefault(request.uid, snapshot.now)
            match decide(request, snapshot, since, self._fleet.backoff.until, self._settings):
                case None:
                    pass
                case RequestCondition() as new:
                    self._tell(request, reader, new, snapshot.now)
                    if new.kind == "Provisioned":
                        return True  # what is free has changed
                case Order() as order:
                    came = self._order(request, order, snapshot)
                    if request.kind == ATOMIC and (new := ordered(request, came=came)):
                        self._tell(request, reader, new, snapshot.now)
                    if came:
                        return True
        return False

    def _tell(self, request: ProvisioningRequest, reader: Reader, new: RequestCondition, now: float) -> None:
        self._since[request.uid] = now
        self._actuator.set_condition(request, reader.raw_request(request), new)
        self._store.say(
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
        came = not self._fleet.order(order.pool, order.zones, request.id)
        if came:
            self._last_growth = snapshot.now
        return came

    def grow(self, snapshot: ClusterSnapshot) -> None:
        """Order nodes for pending pods."""
        offered = list(offers(snapshot, self._fleet.backoff.until))
        growth, stranded = grow(snapshot, offered)
        self._stranded(stranded)
        for pod, message in ignored(snapshot):
            if self._messages.get(pod.uid) != message:
                self._messages[pod.uid] = message
                self._actuator.create_event(pod, "Normal", "", message)
        if growth is not None:
            self._grow(growth, snapshot)

    def _grow(self, growth: Growth, snapshot: ClusterSnapshot) -> None:
        pool, count = growth.pool, len(growth.zones)
        self._store.say(
            "scale-up",
            f"Pool {pool.name} is to grow from {growth.before} to "
            f"{several(growth.before + count, 'node')} for {several(len(growth.pods), 'pending pod')}, "
            f"{growth.pods[0].id} among them.",
            pool=pool.name,
            before=growth.before,
            after=growth.before + count,
            pods=[pod.id for pod in growth.pods],
        )
        refusals = self._fleet.order(pool, growth.zones)
        came = not set(growth.zones) <= refusals.keys()
        if came:
            self._last_growth = snapshot.now
        for pod in growth.pods:
            self._messages.pop(pod.uid, None)
            if came:
                self._actuator.create_event(pod, "Normal", "TriggeredScaleUp", growth.message)
        if refusals and self._cloud == "gke":
            self._failed(growth, refusals, snapshot)

    def _failed(self, growth: Growth, refusals: Mapping[str, str], snapshot: ClusterSnapshot) -> None:
        """Report refusals to pods as GKE does, and suspend the node groups of the pool's ComputeClass
        rule."""
        zones, regional = sorted(refusals), any(is_quota(refusal) for refusal in refusals.values())
        self._fleet.backoff.cool(cooled(growth.pool, zones, snapshot, regional=regional), snapshot.now)
        reasons = ", ".join(dict.fromkeys(refusal.partition(" (")[0] for refusal in refusals.values()))
        message = (
            f"Node scale up in zones {', '.join(zones)} associated with this pod failed: {reasons}. Pod is "
            "at risk of not being scheduled."
        )
        for pod in growth.pods:
            self._actuator.create_event(pod, "Warning", "FailedScaleUp", message)

    def _stranded(self, stranded: list[Stranded]) -> None:
        """Report to pods why no pool can grow for them: one event per pod and reason, one log entry per
        reason."""
        new = [
            stranded_pod
            for stranded_pod in stranded
            if self._messages.get(stranded_pod.pod.uid) != stranded_pod.message
        ]
        by_message: dict[str, list[str]] = {}
        reasons = {stranded_pod.message: stranded_pod.reasons for stranded_pod in new}
        for stranded_pod in new:
            self._messages[stranded_pod.pod.uid] = stranded_pod.message
            self._actuator.create_event(stranded_pod.pod, "Normal", "NotTriggerScaleUp", stranded_pod.message)
            by_message.setdefault(stranded_pod.message, []).append(stranded_pod.pod.id)
        for message, pods in by_message.items():
            others = f" and {len(pods) - 1} others" if len(pods) > 1 else ""
            why = message.partition(": ")[2] or "no node pool is autoscaled"
            messages = no_scale_up(reasons[message], (BACKED_OFF, FULL)) if self._cloud == "gke" else []
            text = f"No pool can grow for pod {pods[0]}{others}: {why}."
            self._store.say("no-scale-up", text, pods=pods, why=why, messages=messages)

    def shrink(self, snapshot: ClusterSnapshot) -> None:
        """Drain unneeded nodes, and log the reasons that keep the others."""
        self._review = review(snapshot, self._review, booked(snapshot), self._last_growth, self._settings)
        for hold in self._review.held:
            key = hold.node, hold.pod, hold.why
            if key not in self._held:
                self._held.add(key)
                message = hold.message if self._cloud == "gke" else ""
                facts = {"node": hold.node, "pod": hold.pod, "why": hold.why, "message": message}
                self._store.say("held-node", hold.sentence, **facts)
        by_name = {machine.name: machine for machine in snapshot.machines}
        for name in self._review.leave:
            self._actuator.mark_to_be_deleted(snapshot.nodes[name])
            idle = idle_seconds(snapshot, self._settings, snapshot.pool(by_name[name]))
            why = f"{UNNEEDED} {idle / 60:.0f} min"
            self._fleet.keep(by_name[name].having(state="draining", since=snapshot.now, why=why))
