"""Small queues and jobs, shown to Kueue in virtual time and to the real controller."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from ebbtide.values import kueue_api
from ebbtide.values.kueue_api import API_VERSION
from ebbtide.values.paths import Object
from kueue_replay.kueue import Action, Event, Finish, Kueue, PodSet, PodsReady, Submit

NAMESPACE = "default"
CONFIGURATION: Object = {**kueue_api.CONFIGURATION, "fairSharing": None}
RECLAIM = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": dict(spec),
    }


def queue(name: str, quotas: Mapping[str, int], cohort: str = "", **spec: Any) -> list[Object]:
    """Return a ClusterQueue with a quota by flavor, and a LocalQueue of the same name."""
    flavors = [
        {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": str(quota)}]}
        for flavor, quota in quotas.items()
    ]
    group = {"coveredResources": ["cpu"], "flavors": flavors}
    cluster_queue: Object = {"namespaceSelector": {}, "resourceGroups": [group], **spec}
    if cohort:
        cluster_queue["cohortName"] = cohort
    local = _object("LocalQueue", name, {"clusterQueue": name}, namespace=NAMESPACE)
    return [_object("ClusterQueue", name, cluster_queue), local]


def flavors(*names: str) -> list[Object]:
    """Return ResourceFlavors."""
    return [_object("ResourceFlavor", name, {}) for name in names]


def provisioning(name: str, limit: int) -> list[Object]:
    """Return an AdmissionCheck with ProvisioningRequests, which are retried after one second, then two."""
    retries = {"backoffLimitCount": limit, "backoffBaseSeconds": 1, "backoffMaxSeconds": 60}
    config = {"provisioningClassName": "queued-provisioning.gke.io", "retryStrategy": retries}
    parameters = {
        "apiGroup": API_VERSION.partition("/")[0],
        "kind": "ProvisioningRequestConfig",
        "name": name,
    }
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    return [_object("ProvisioningRequestConfig", name, config), _object("AdmissionCheck", name, check)]


@dataclass(frozen=True, slots=True)
class Job:
    """A job of one pod set.

    Attributes:
        at: seconds from the start.
        queue: its LocalQueue.
        cpus: CPUs of its one pod.
        seconds: how long it runs; infinite if its pods never become ready.
        priority: value of its priority.
    """

    at: float
    queue: str
    cpus: int
    seconds: float
    priority: int = 0


def trace(
    count: int,
    seed: int,
    queues: Sequence[str],
    priorities: Sequence[int] = (0,),
    sizes: Sequence[int] = (1, 2),
) -> list[Job]:
    """Return jobs on a grid of 4 seconds, with ends between its lines."""
    random = Random(seed)  # noqa: S311
    return [
        Job(4.0 * at, random.choice(queues), random.choice(sizes), 4.0 * random.randint(2, 8) + 2, priority)
        for at in range(count)
        for priority in [random.choice(priorities)]
    ]


@dataclass(frozen=True, slots=True)
class Played:
    """Events of Kueue in virtual time.

    Attributes:
        events: its events, without the number of their cycle.
        end: the end.
    """

    events: list[Event]
    end: Event

    def rows(self) -> list[tuple[str, str, str]]:
        """Return phase, job and flavor of each event."""
        return [
            (event.kind, event.job, event.flavors["main"]["cpu"] if event.flavors else "")
            for event in self.events
        ]

    def at(self, kind: str) -> dict[str, list[float]]:
        """Return the times of the events of a kind, by job."""
        times: dict[str, list[float]] = {}
        for event in self.events:
            if event.kind == kind:
                times.setdefault(event.job, []).append(event.at)
        return times


def play(
    program: Path,
    objects: Iterable[Object],
    jobs: Sequence[Job],
    *actions: Action,
    configuration: Mapping[str, Any] | None = None,
    answer: Callable[[Event], Iterable[Action]] = lambda _: (),
) -> Played:
    """Play jobs, which are named by their number. Each ends its seconds after it is admitted."""
    seconds = {str(number): job.seconds for number, job in enumerate(jobs)}
    events: list[Event] = []

    def follow(event: Event) -> Iterable[Action]:
        events.append(replace(event, cycles=0))
        further = list(answer(event))
        if event.kind == "admitted" and not further and seconds[event.job] < math.inf:
            yield PodsReady(event.at, event.job)
            yield Finish(event.at + seconds[event.job], event.job)
        yield from further

    with Kueue(program, objects, configuration or CONFIGURATION) as kueue:
        kueue.add(
            *(
                Submit(
                    job.at,
                    str(number),
                    f"{NAMESPACE}/{job.queue}",
                    [PodSet("main", 1, {"cpu": str(job.cpus)})],
                    job.priority,
                )
                for number, job in enumerate(jobs)
            ),
            *actions,
        )
        return Played(events, kueue.run(follow))
