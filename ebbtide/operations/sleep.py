"""Put a stack to sleep and wake it: queues are held, then the machines stop; waiting work is kept.

Every step can be repeated, so that an interrupted command continues with the same call.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ebbtide import clock
from ebbtide.catalog import CloudKind
from ebbtide.cloud_apis.interfaces import ClusterPower
from ebbtide.invocation import command_line
from ebbtide.operations import access, messages, queue_hold, snapshot, state
from ebbtide.operations.errors import OperationError
from ebbtide.operations.power import OwnCluster, own_cluster
from ebbtide.operations.rates import Rates, rates
from ebbtide.operations.work import Work, work

_STEP: Final = 10.0  # seconds between two checks of running work
_UNCHANGED: Final = "nothing was changed"


class Running(StrEnum):
    """Treatment of running work."""

    REFUSE = "refuse"
    WAIT = "wait"
    END = "end"


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A stack to put to sleep or wake.

    Attributes:
        name: the stack's name.
        state: its state.
        cluster: its cluster.
        power: the cluster's power.
        rates: its prices.
        outputs: its outputs.
    """

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
        name: the stack's name.
        exported: the document of `pulumi stack export`.
        outputs: the stack's outputs.
        power: opens the power of a cluster.

    Raises:
        OperationError: the stack has no cluster of its own.
        CredentialsError: there are no credentials for the cloud.
    """
    deployment = exported["deployment"]
    cluster = own_cluster(name, deployment)
    return Sleeper(name, state.read(deployment), cluster, power(cluster), rates(exported), outputs)


def sleep(of: Sleeper, running: Running, say: Callable[[str], None]) -> bool:
    """Put a stack to sleep.

    Args:
        of: the stack.
        running: the treatment of running work.
        say: called with messages for the user.

    Returns:
        False if running work is to be kept; nothing was changed then.

    Raises:
        OperationError: the cluster can never be stopped, or does not answer; nothing was changed.
        CloudApiError: the cloud rejects a request or does not answer; the same call continues.
    """
    if reason := of.power.refusal():
        raise OperationError(f"Cluster {of.cluster.name} cannot sleep, and {_UNCHANGED}. {reason}")
    if of.power.is_stopped():
        say(f"Stack {of.name} is asleep. Wake it with: {command_line('wake', of.name)}")
        return True
    api, profile = access.connected(of.outputs, _UNCHANGED)

    def unfinished() -> list[Work]:
        with access.reaching(_UNCHANGED):
            return [item for item in work(snapshot.take(api), profile, of.state) if item.pods]

    works = unfinished()
    for line in messages.running(works, clock.now()):
        say(line)
    if works and running is Running.REFUSE:
        wait, now = (command_line("sleep", of.name, option) for option in ("--wait", "--now"))
        say(f"Nothing was changed. Wait for its end with: {wait}\nEnd it, to run again later, with: {now}")
        return False
    names = queue_hold.queues(of.state)
    with access.reaching(_UNCHANGED):
        queue_hold.hold(api, names, drain=running is Running.END)
    if names:
        say("The queues are held: work that waits is kept.")
    with access.reaching("the queues are held"):
        while (running is Running.WAIT and unfinished()) or (
            running is Running.END and queue_hold.reserving(api, names)
        ):
            time.sleep(_STEP)
    of.power.stop(lambda step: say(f"{step} …"))
    for line in _summary(of):
        say(line)
    return True


def wake(of: Sleeper, say: Callable[[str], None]) -> None:
    """Wake a stack: start its machines, and release its queues once Kueue answers.

    Args:
        of: the stack.
        say: called with messages for the user.

    Raises:
        OperationError: the cluster does not answer; the same call continues.
        CloudApiError: the cloud rejects a request or does not answer; the same call continues.
    """
    of.power.start(lambda step: say(f"{step} …"))
    consequence = "its queues are still held"
    api, _ = access.connected(of.outputs, consequence)
    names = queue_hold.queues(of.state)
    if names:
        say("Waiting for Kueue, to release the queues …")
    with access.reaching(consequence):
        queue_hold.release(api, names)
    say(f"Stack {of.name} is awake.")


def _summary(of: Sleeper) -> list[str]:
    """Return lines about what a sleeping stack saves, and what is still billed."""
    is_gke = of.cluster.cloud is CloudKind.GKE
    saved = of.rates.idle_of_nodes
    billed = [item for item in of.rates.items if is_gke or item.name != "control plane"]
    known = sum(item.amount.known for item in billed)
    names = ", ".join(dict.fromkeys(item.name for item in billed)) or "nothing else"
    return [
        f"Stack {of.name} is asleep: it saves ${saved.known:.2f} per hour of its idle nodes.",
        f"Still billed, ${known:.2f} per hour: {names}.",
        "Disks of volumes are billed too, and on AKS those of stopped nodes.",
        f"Wake it with: {command_line('wake', of.name)}",
    ]
