"""Put a stack to sleep and wake it: queues are held, then the machines stop; waiting work is kept.

Every step can be repeated, so that an interrupted command continues with the same call. With stop policy
Hold a ClusterQueue admits nothing, and admitted work continues; with HoldAndDrain it is evicted as well
(Kueue docs, ClusterQueue, stop policy, 0.19). An annotation marks the queues that Ebbtide held, so that
waking does not release a queue that a user held.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from ebbtide.analysis.charges import Rates, rates
from ebbtide.clients.clouds.interfaces import ClusterPower
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import part, text
from ebbtide.declaration.catalog.amounts import total
from ebbtide.operations import access
from ebbtide.operations.engine import state
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import OwnCluster, own_cluster
from ebbtide.operations.inspection import running_lines
from ebbtide.operations.work import Work, reserving, take_snapshot, work
from ebbtide.values import clock
from ebbtide.values.cloud_kind import by_cloud
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import ASLEEP, CLUSTER_QUEUES

_STEP: Final = 10.0  # seconds between two checks of running work
_WEBHOOKS: Final = 900.0  # seconds until system nodes and Kueue's webhooks run; nodes take 1 to 5 minutes
_WEBHOOKS_STEP: Final = 5.0
_UNCHANGED: Final = "nothing was changed"


class Running(StrEnum):
    """Treatment of running work."""

    REFUSE = "refuse"
    WAIT = "wait"
    END = "end"


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A stack to put to sleep or wake."""

    name: str
    state: state.State
    cluster: OwnCluster
    power: ClusterPower
    rates: Rates
    outputs: Mapping[str, Any]


def sleeper(
    name: str,
    exported: Mapping[str, Any],
    outputs: Mapping[str, Any],
    power: Callable[[OwnCluster], ClusterPower],
) -> Sleeper:
    """Return a stack that can sleep.

    Args:
        exported: the document of `pulumi stack export`.
        power: opens the power of a cluster.

    Raises:
        OperationError: the stack has no cluster of its own.
        CredentialsError: there are no credentials for the cloud.
    """
    deployment = exported["deployment"]
    cluster = own_cluster(name, deployment)
    return Sleeper(name, state.read(deployment), cluster, power(cluster), rates(exported), outputs)


def sleep(
    sleeper: Sleeper, running: Running, log: Callable[[str], None], planned: timedelta | None = None
) -> bool:
    """Put a stack to sleep.

    Args:
        running: the treatment of running work.
        log: called with messages for the user.
        planned: time until the stack is woken, if known.

    Returns:
        False if running work is to be kept, or the stack expires before it is woken; nothing was changed
        then.

    Raises:
        OperationError: the cluster can never be stopped, or does not answer; nothing was changed.
        CloudApiError: the cloud rejects a request or does not answer; the same call continues.
    """
    if reason := sleeper.power.refusal():
        raise OperationError(f"Cluster {sleeper.cluster.name} cannot sleep, and {_UNCHANGED}. {reason}")
    if (expires := sleeper.state.expires) and planned and expires < clock.now() + planned:
        destroy = given_command().on_stack("destroy", sleeper.name)
        log(
            f"Stack {sleeper.name} expires at {clock.in_utc(expires)}, before it would wake, and "
            f"{_UNCHANGED}. Destroy it with `{destroy}`, or give it a longer lifetime."
        )
        return False
    if sleeper.power.is_stopped():
        log(access.asleep_message(sleeper.name))
        return True
    api, profile = access.connected(sleeper.outputs, _UNCHANGED)

    def unfinished() -> list[Work]:
        with access.reaching(_UNCHANGED):
            return [item for item in work(take_snapshot(api), profile, sleeper.state) if item.pods]

    works = unfinished()
    for line in running_lines(works, clock.now()):
        log(line)
    if works and running is Running.REFUSE:
        given = given_command()
        wait, now = (given.on_stack("sleep", sleeper.name, option) for option in ("--wait", "--now"))
        log(f"Nothing was changed. Wait for its end with: {wait}\nEnd it, to run again later, with: {now}")
        return False
    names = sleeper.state.queues
    with access.reaching(_UNCHANGED):
        hold(api, names, drain=running is Running.END)
    if names:
        log("The queues are held: pending work is kept.")
    with access.reaching("the queues are held"):
        while (running is Running.WAIT and unfinished()) or (
            running is Running.END and reserving(api, names)
        ):
            time.sleep(_STEP)
    given_command().happens(f"the machines of cluster {sleeper.cluster.name} are being stopped")
    sleeper.power.stop(lambda step: log(f"{step} …"))
    given_command().finished(f"stack {sleeper.name} is asleep", of=("sleep",))
    for line in _summary(sleeper):
        log(line)
    return True


def wake(sleeper: Sleeper, log: Callable[[str], None]) -> None:
    """Wake a stack: start its machines, and release its queues once Kueue answers.

    Args:
        log: called with messages for the user.

    Raises:
        OperationError: the cluster does not answer; the same call continues.
        CloudApiError: the cloud rejects a request or does not answer; the same call continues.
    """
    given_command().happens(f"the machines of cluster {sleeper.cluster.name} are being started")
    sleeper.power.start(lambda step: log(f"{step} …"))
    consequence = "its queues are still held"
    api, _ = access.connected(sleeper.outputs, consequence)
    names = sleeper.state.queues
    if names:
        log("Waiting for Kueue to release the queues …")
    with access.reaching(consequence):
        release(api, names)
    given_command().finished(f"stack {sleeper.name} is awake", of=("wake",))
    log(f"Stack {sleeper.name} is awake.")


def _summary(sleeper: Sleeper) -> list[str]:
    """Return lines about what a sleeping stack saves, and what is still billed."""
    nodes = sleeper.rates.idle_of_nodes
    saved = nodes.words(unknown="an unknown amount")
    unbilled = by_cloud(gke="", aks="control plane")[sleeper.cluster.cloud]
    billed = [item for item in sleeper.rates.billed(clock.now()) if item.item != unbilled]
    still = total(item.maximum for item in billed).words(unknown="an unknown amount")
    names = ", ".join(dict.fromkeys(item.item for item in billed)) or "nothing else"
    return [
        f"Stack {sleeper.name} is asleep: it saves {saved} per hour of its idle nodes.",
        f"Still billed, {still} per hour: {names}.",
        "Disks of volumes are billed too, and on AKS those of stopped nodes.",
        f"Wake it with: {given_command().on_stack('wake', sleeper.name)}",
    ]


def hold(api: Api, names: Iterable[str], *, drain: bool) -> None:
    """Hold queues. A queue that a user holds is unchanged unless it is to be drained.

    Args:
        drain: True to evict admitted work.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    policy = "HoldAndDrain" if drain else "Hold"
    for name in sorted(names):
        queue = api.find(f"{CLUSTER_QUEUES}/{name}")
        if queue is None:
            continue
        before = text(queue, "spec", "stopPolicy") or "None"
        if before == policy or (before != "None" and not drain):
            continue
        known = part(queue, "metadata", "annotations").get(ASLEEP, before)
        given_command().happens(f"queue {name} is {'drained' if drain else 'held'}")
        body = {"metadata": {"annotations": {ASLEEP: known}}, "spec": {"stopPolicy": policy}}
        api.patch(f"{CLUSTER_QUEUES}/{name}", body)


def release(api: Api, names: Iterable[str]) -> None:
    """Restore the earlier stop policy of held queues once Kueue's webhooks answer.

    Raises:
        ApiError: the API server denies access, or does not answer for 15 minutes.
    """
    end = time.monotonic() + _WEBHOOKS
    for name in sorted(names):
        while True:
            try:
                _release(api, f"{CLUSTER_QUEUES}/{name}")
                break
            except ApiError as error:
                if not error.unanswered or time.monotonic() > end:
                    raise
            time.sleep(_WEBHOOKS_STEP)


def _release(api: Api, path: str) -> None:
    queue = api.find(path)
    before = part(queue or {}, "metadata", "annotations").get(ASLEEP)
    if before is not None:
        given_command().happens(f"queue {text(queue or {}, 'metadata', 'name')} is released")
        api.patch(path, {"metadata": {"annotations": {ASLEEP: None}}, "spec": {"stopPolicy": before}})
