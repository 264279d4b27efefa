"""Waiting until an object is as it should be, or gone."""

import time

from ebbtide_rehearsal.cloud.kubernetes import reasons
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, annotation, identity, metadata
from ebbtide_rehearsal.cloud.kubernetes.readiness import (
    Check,
    FailedError,
    check_of,
    leads_to_pods,
)
from ebbtide_rehearsal.cloud.kubernetes.wait_for import asked_for

SKIP = "pulumi.com/skipAwait"
_SECONDS = "pulumi.com/timeoutSeconds"
_LOOKED_AT = frozenset({"DaemonSet", "Deployment", "Ingress", "Job", "Pod", "Service", "StatefulSet"})
_SKIPS_WAIT_AT_END = frozenset(
    {"Namespace", "Pod", "ReplicationController", "DaemonSet", "Deployment", "StatefulSet"}
)


class NotReadyError(Exception):
    """Something is there and is not as it should be; the message says what is missing, and why."""

    def __init__(self, message: str, live: Object) -> None:
        super().__init__(message)
        self.live = live


def _patience(inputs: Object, given: float | None, usual: float) -> float:
    """How long to wait: what the program says, what the object says, or the usual."""
    text = annotation(inputs, _SECONDS)
    return given or (float(text) if text.isdecimal() else usual)


def ready(cluster: Cluster, inputs: Object, live: Object, timeout: float | None) -> Object:
    """Wait until an object that was just made or changed is as it should be.

    Args:
        cluster: where it is.
        inputs: what was asked for, with the annotations that say how to wait.
        live: as it is.
        timeout: seconds, where the program says so.

    Returns:
        The object as it is then.

    Raises:
        NotReadyError: it is not, in time.
        RefusedError: what it is to be waited for cannot be understood.
    """
    check = asked_for(live) or check_of(live)
    if check is None or annotation(inputs, SKIP) == "true":
        return live
    started = time.monotonic()
    limit = started + _patience(inputs, timeout, cluster.patience.ready)
    live = _until(cluster, check, live, limit)
    _tell(cluster, live, "ready", time.monotonic() - started)
    return live


def still_missing(cluster: Cluster, inputs: Object, live: Object) -> str | None:
    """What an object lacks that is only looked at; None where it is as it should be, or nobody asks."""
    check = check_of(live)
    if check is None or live["kind"] not in _LOOKED_AT or annotation(inputs, SKIP) == "true":
        return None
    try:
        return check(live, cluster)
    except FailedError as error:
        return str(error)


def gone(cluster: Cluster, inputs: Object, live: Object, timeout: float | None) -> None:
    """Wait until an object whose end was asked for is gone.

    Raises:
        NotReadyError: it stays; with what holds it.
    """
    if annotation(inputs, SKIP) == "true" and live["kind"] in _SKIPS_WAIT_AT_END:
        return
    path, uid = cluster.path(live), metadata(live).get("uid")
    started = time.monotonic()
    limit = started + _patience(inputs, timeout, cluster.patience.gone)
    while (found := cluster.api.find(path)) is not None and metadata(found).get("uid") == uid:
        if time.monotonic() >= limit:
            raise NotReadyError(f"timed out: it is still there; {reasons.held_by(found)}", found)
        time.sleep(cluster.patience.step)
    _tell(cluster, live, "gone", time.monotonic() - started)


def _until(cluster: Cluster, check: Check, live: Object, limit: float) -> Object:
    settles = live["kind"] == "Service" and leads_to_pods(live)
    path, since = cluster.path(live), None
    while True:
        try:
            missing = check(live, cluster)
        except FailedError as error:
            raise NotReadyError(str(error), live) from None
        now = time.monotonic()
        since = None if missing else since or now
        if since is not None and (not settles or now - since >= cluster.patience.settled):
            return live
        if now >= limit:
            why = reasons.why(cluster, live, missing or "its endpoints keep changing")
            raise NotReadyError(why, live)
        time.sleep(cluster.patience.step)
        found = cluster.api.find(path)
        if found is None:
            raise NotReadyError("it was deleted while it was waited for", live)
        live = found


def _tell(cluster: Cluster, live: Object, what: str, seconds: float) -> None:
    if seconds >= cluster.patience.worth_telling:
        text = f"{live['kind']} {identity(live)} is {what} after {seconds:.0f} s."
        facts = {"of": live["kind"], "name": identity(live), "seconds": round(seconds, 1)}
        cluster.store.say(f"object-{what}", text, **facts)
