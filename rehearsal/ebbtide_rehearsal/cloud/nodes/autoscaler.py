"""The cloud's autoscaler: what `growing`, `shrinking` and `queueing` decide is done and said here."""

from collections.abc import Mapping
from typing import Literal

from ebbtide.wording import several
from ebbtide_rehearsal.cloud.nodes.atomic import ordered
from ebbtide_rehearsal.cloud.nodes.cluster import Request, Seen
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet, is_quota
from ebbtide_rehearsal.cloud.nodes.growing import BACKED_OFF, FULL, Growth, Stranded, grow, ignored, offers
from ebbtide_rehearsal.cloud.nodes.hands import Hands
from ebbtide_rehearsal.cloud.nodes.message_ids import no_scale_up
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.preferences import cooled
from ebbtide_rehearsal.cloud.nodes.queueing import decide
from ebbtide_rehearsal.cloud.nodes.reading import Reader
from ebbtide_rehearsal.cloud.nodes.rooms import booked
from ebbtide_rehearsal.cloud.nodes.settings import Settings
from ebbtide_rehearsal.cloud.nodes.shrinking import Review, idle_seconds, review
from ebbtide_rehearsal.cloud.nodes.verdicts import ATOMIC, Condition, Order
from ebbtide_rehearsal.cloud.store import Store


class Autoscaler:
    """Sizes node pools. What it remembers is lost with it, as that of a real one that is started anew."""

    def __init__(
        self, cloud: Literal["gke", "aks"], hands: Hands, fleet: Fleet, store: Store, settings: Settings
    ) -> None:
        """Size the pools of a cluster."""
        self._cloud, self._hands, self._fleet = cloud, hands, fleet
        self._store, self._settings = store, settings
        self._review = Review({}, {}, (), ())
        self._last_growth: float | None = None
        self._told: dict[str, str] = {}
        self._held: set[tuple[str, str, str]] = set()
        self._since: dict[str, float] = {}

    def requests(self, seen: Seen, reader: Reader) -> bool:
        """See to ProvisioningRequests, until one is answered; whether what is free has changed."""
        for request in seen.requests:
            since = self._since.setdefault(request.uid, seen.now)
            match decide(request, seen, since, self._fleet.backoff.until, self._settings):
                case None:
                    pass
                case Condition() as new:
                    self._tell(request, reader, new, seen.now)
                    if new.kind == "Provisioned":
                        return True  # what is free has changed
                case Order() as order:
                    came = self._order(request, order, seen)
                    if request.kind == ATOMIC and (new := ordered(request, came=came)):
                        self._tell(request, reader, new, seen.now)
                    if came:
                        return True
        return False

    def _tell(self, request: Request, reader: Reader, new: Condition, now: float) -> None:
        self._since[request.uid] = now
        self._hands.told(request, reader.raw_request(request), new)
        self._store.say(
            "provisioning-request",
            f"ProvisioningRequest {request.id} {new.sentence}",
            request=request.id,
            condition=new.kind,
            status=new.status,
            reason=new.reason,
        )

    def _order(self, request: Request, order: Order, seen: Seen) -> bool:
        backoff = self._fleet.backoff.until
        if any(backoff.get(group(order.pool, zone), 0) > seen.now for zone in order.zones):
            return False
        came = not self._fleet.order(order.pool, order.zones, request.id)
        if came:
            self._last_growth = seen.now
        return came

    def grow(self, seen: Seen) -> None:
        """Ask for nodes that pending pods need."""
        offered = list(offers(seen, self._fleet.backoff.until))
        growth, stranded = grow(seen, offered)
        self._stranded(stranded)
        for pod, message in ignored(seen):
            if self._told.get(pod.uid) != message:
                self._told[pod.uid] = message
                self._hands.event(pod, "Normal", "", message)
        if growth is not None:
            self._grow(growth, seen)

    def _grow(self, growth: Growth, seen: Seen) -> None:
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
            self._last_growth = seen.now
        for pod in growth.pods:
            self._told.pop(pod.uid, None)
            if came:
                self._hands.event(pod, "Normal", "TriggeredScaleUp", growth.message)
        if refusals and self._cloud == "gke":
            self._failed(growth, refusals, seen)

    def _failed(self, growth: Growth, refusals: Mapping[str, str], seen: Seen) -> None:
        """Tell pods of refusals as GKE does, and suspend what shares a ComputeClass rule with the pool."""
        zones, regional = sorted(refusals), any(is_quota(refusal) for refusal in refusals.values())
        self._fleet.backoff.cool(cooled(growth.pool, zones, seen, regional=regional), seen.now)
        reasons = ", ".join(dict.fromkeys(refusal.partition(" (")[0] for refusal in refusals.values()))
        message = (
            f"Node scale up in zones {', '.join(zones)} associated with this pod failed: {reasons}. Pod is "
            "at risk of not being scheduled."
        )
        for pod in growth.pods:
            self._hands.event(pod, "Warning", "FailedScaleUp", message)

    def _stranded(self, stranded: list[Stranded]) -> None:
        """Tell pods why no pool can help them, each once for each reason, and the timeline once for all."""
        new = [each for each in stranded if self._told.get(each.pod.uid) != each.message]
        by_message: dict[str, list[str]] = {}
        reasons = {each.message: each.reasons for each in new}
        for each in new:
            self._told[each.pod.uid] = each.message
            self._hands.event(each.pod, "Normal", "NotTriggerScaleUp", each.message)
            by_message.setdefault(each.message, []).append(each.pod.id)
        for message, pods in by_message.items():
            others = f" and {len(pods) - 1} others" if len(pods) > 1 else ""
            why = message.partition(": ")[2] or "no node pool is autoscaled"
            messages = no_scale_up(reasons[message], (BACKED_OFF, FULL)) if self._cloud == "gke" else []
            text = f"No pool can grow for pod {pods[0]}{others}: {why}."
            self._store.say("no-scale-up", text, pods=pods, why=why, messages=messages)

    def shrink(self, seen: Seen) -> None:
        """Let nodes go that are not needed, and say what holds the others."""
        self._review = review(seen, self._review, booked(seen), self._last_growth, self._settings)
        for hold in self._review.held:
            key = hold.node, hold.pod, hold.why
            if key not in self._held:
                self._held.add(key)
                message = hold.message if self._cloud == "gke" else ""
                facts = {"node": hold.node, "pod": hold.pod, "why": hold.why, "message": message}
                self._store.say("held-node", hold.sentence, **facts)
        by_name = {machine.name: machine for machine in seen.machines}
        for name in self._review.leave:
            self._hands.condemn(seen.nodes[name])
            why = f"it was not needed for {idle_seconds(seen, self._settings) / 60:.0f} min"
            self._fleet.keep(by_name[name].having(state="draining", since=seen.now, why=why))
