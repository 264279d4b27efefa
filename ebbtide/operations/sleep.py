"""Put a stack to sleep and wake it: queues are held, then the machines stop; waiting work is kept.

Every step can be repeated, so that an interrupted command continues with the same call.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from ebbtide.analysis.costs.charges import Rates, rates
from ebbtide.clients.clouds.interfaces import ClusterPower, NodePoolSize
from ebbtide.clients.kubernetes.objects import part, text, words
from ebbtide.declaration.catalog.amounts import total
from ebbtide.declaration.cloud_kind import CloudKind, by_cloud
from ebbtide.operations import access, queue_stops
from ebbtide.operations.engine import state
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.inspection import running_lines
from ebbtide.operations.work import Work, take_snapshot, work
from ebbtide.values import clock
from ebbtide.values.given_command import given_command

_GKE_POOL: Final = "gcp:container/nodePool:NodePool"


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """A cluster that a stack created.

    Attributes:
        id: id in the cloud.
        pools: on Google Cloud the sizes of its node pools, those with a minimum above zero first.
    """

    cloud: CloudKind
    id: str
    name: str
    pools: tuple[NodePoolSize, ...]


def own_cluster(stack: str, deployment: Mapping[str, Any]) -> OwnCluster:
    """Return the cluster of a stack, with the sizes of its node pools at the last `up`.

    Nothing else has to be stored while the cluster sleeps.

    Args:
        deployment: the `deployment` of `pulumi stack export`.

    Raises:
        OperationError: the stack has no cluster of its own, or several.
    """
    resources: list[Mapping[str, Any]] = deployment.get("resources") or []
    clusters = [item for item in resources if item["type"] in state.CLUSTERS and not item.get("external")]
    if not clusters:
        raise OperationError(
            f"Stack {stack} has no cluster of its own. Ebbtide never stops an existing cluster, which may "
            "have other users."
        )
    if len(clusters) > 1:
        raise OperationError(f"Stack {stack} has {len(clusters)} clusters; sleep and wake need one.")
    (cluster,) = clusters
    sizes = [
        _size(item)
        for item in resources
        if item["type"] == _GKE_POOL and str(item.get("id")).startswith(f"{cluster['id']}/")
    ]
    return OwnCluster(
        state.CLUSTERS[cluster["type"]],
        str(cluster["id"]),
        text(cluster, "outputs", "name") or str(cluster["id"]).rpartition("/")[2],
        tuple(sorted(sizes, key=lambda size: size.count == 0)),
    )


def _size(pool: Mapping[str, Any]) -> NodePoolSize:
    """Return the size of a running pool: its fixed count, or the autoscaler's minimum. GKE counts nodes per
    zone, except in total limits.
    """
    inputs = part(pool, "inputs")
    autoscaling = dict(_without_defaults(part(inputs, "autoscaling")))
    name = str(pool["id"]).rpartition("/")[2]
    if not autoscaling:
        return NodePoolSize(name, {}, int(inputs.get("nodeCount") or inputs.get("initialNodeCount") or 0))
    zones = len(words(pool, "outputs", "nodeLocations")) or 1
    total = int(autoscaling.get("totalMinNodeCount") or 0)
    return NodePoolSize(name, autoscaling, max(-(-total // zones), int(autoscaling.get("minNodeCount") or 0)))


def _without_defaults(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield inputs without the bridge's list of defaulted properties."""
    return ((name, value) for name, value in inputs.items() if not name.startswith("__"))


_STEP: Final = 10.0  # seconds between two checks of running work
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
        queue_stops.hold(api, names, drain=running is Running.END)
    if names:
        log("The queues are held: pending work is kept.")
    with access.reaching("the queues are held"):
        while (running is Running.WAIT and unfinished()) or (
            running is Running.END and queue_stops.reserving(api, names)
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
        queue_stops.release(api, names)
    given_command().finished(f"stack {sleeper.name} is awake", of=("wake",))
    log(f"Stack {sleeper.name} is awake.")


def _summary(sleeper: Sleeper) -> list[str]:
    """Return lines about what a sleeping stack saves, and what is still billed."""
    nodes = sleeper.rates.idle_of_nodes
    saved = nodes.words(unknown="an unknown amount")
    unbilled = by_cloud(gke="", aks="control plane")[sleeper.cluster.cloud]
    billed = [item for item in sleeper.rates.billed(clock.now()) if item.name != unbilled]
    still = total(item.amount for item in billed).words(unknown="an unknown amount")
    names = ", ".join(dict.fromkeys(item.name for item in billed)) or "nothing else"
    return [
        f"Stack {sleeper.name} is asleep: it saves {saved} per hour of its idle nodes.",
        f"Still billed, {still} per hour: {names}.",
        "Disks of volumes are billed too, and on AKS those of stopped nodes.",
        f"Wake it with: {given_command().on_stack('wake', sleeper.name)}",
    ]
