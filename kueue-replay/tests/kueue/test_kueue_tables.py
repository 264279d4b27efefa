"""Kueue in virtual time: its decisions on the cases of Kueue's own tests."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from ebbtide.clients.kubernetes.objects import condition
from ebbtide.values.kueue_api import API_VERSION
from ebbtide_rehearsal.tools.progress import narrated
from kueue_jobs import CONFIGURATION, Object
from kueue_replay.kueue import PROGRAM, Action, Apply, Event, Kueue, PodSet, Submit
from kueue_tables import Case, Outcome, flavors, key, read

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

LEAST = 150
"""Number of cases that run."""

NOW: Final = 4e9
"""Seconds from the start, after the times of all cases."""

PRESENT: Final = "present"
"""Namespace with a LocalQueue for each ClusterQueue."""

TOLERATIONS: Final = ({"operator": "Exists"},)

GATE: Final = "gate"
"""A flavor without which no queue is active: the first cycle after it has the heads of all queues."""

NAMESPACES: Final = {
    **{name: {"dep": name} for name in ("sales", "lend")},
    **{f"eng-{name}": {"dep": "eng"} for name in ("alpha", "beta", "gamma")},
}
"""Labels of namespaces (runScheduleTestCases, 0.19.2)."""

REASONS: Final = {
    "prioritization in the ClusterQueue": "InClusterQueue",
    "reclamation within the cohort": "InCohortReclamation",
    "Fair Sharing within the cohort": "InCohortFairSharing",
    "reclamation within the cohort while borrowing": "InCohortReclaimWhileBorrowing",
}
"""Reasons of preemptions by their text in messages (preemption.HumanReadablePreemptionReasons, 0.19.2)."""


def test_virtual_time_agrees_with_the_tables_of_kueue(tmp_path: Path) -> None:
    """The first scheduling cycle reserves and preempts what Kueue's tests want; the counts are printed."""
    program = narrated([PROGRAM]).path(PROGRAM)
    agreeing, omitted = Counter[str](), Counter[str]()
    different: dict[str, tuple[Outcome, Outcome]] = {}
    for case in read(tmp_path):
        if case.not_runnable:
            omitted[case.not_runnable] += 1
        elif (outcome := decided(program, case)) != case.wanted:
            different[case.name] = (outcome, case.wanted)
        else:
            agreeing[case.content["table"]] += 1
    print(f"Agreeing: {dict(agreeing)}. Not run: {dict(omitted)}.")  # noqa: T201
    assert not different
    assert agreeing.total() >= LEAST


def decided(program: Path, case: Case) -> Outcome:
    """Return the decisions of the first cycle in which the waiting jobs of a case meet those with quota.

    Those with quota are submitted first, to queues that have plenty, and select their flavors. Then the
    queues become those of the case.
    """
    events: list[Event] = []

    def follow(event: Event) -> Iterable[Action]:
        events.append(event)
        return ()

    objects = [
        *_flavors(case),
        *(_object("Cohort", item, item["spec"]) for item in case.items("cohorts")),
        *(_object("ClusterQueue", item, _plenty(item["spec"])) for item in case.queues),
        *(
            _object("LocalQueue", item, item["spec"])
            for item in case.items("queues", "additionalLocalQueues")
        ),
        *(
            _object("LocalQueue", item, {"clusterQueue": item["metadata"]["name"]}, namespace=PRESENT)
            for item in case.queues
        ),
    ]
    strategies = case.items("strategies") or ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    fair = {"preemptionStrategies": strategies} if case.fair else None
    configuration = CONFIGURATION | {"featureGates": case.gates, "fairSharing": fair}
    with Kueue(program, objects, configuration, NAMESPACES) as kueue:
        kueue.run(until=NOW)
        kueue.add(*_running(case))
        kueue.run(follow, until=NOW)
        present = {event.job: event.flavors for event in events if event.kind == "reserved"}
        assert present == {key(item): flavors(item) for item in case.running}, case.name
        queues = (_object("ClusterQueue", item, _gated(item["spec"])) for item in case.queues)
        kueue.add(*(Apply(NOW, item) for item in queues), *_waiting(case))
        before = kueue.run(until=NOW + 10).cycles
        events.clear()
        kueue.add(Apply(NOW + 10, _object("ResourceFlavor", {"metadata": {"name": GATE}}, {})))
        kueue.run(follow, until=NOW + 10)
    cycle = [event for event in events if event.cycles == before + 1]
    return Outcome(
        {
            event.job: event.flavors
            for event in cycle
            if event.kind == "reserved" and "incoming" not in case.content
        },
        {event.job: _reason(event) for event in cycle if event.kind == "evicted"},
    )


def _object(kind: str, item: Object, spec: Object, **metadata: str) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": item["metadata"] | metadata, "spec": spec}


def _flavors(case: Case) -> Iterator[Object]:
    """Return flavors that a job can select: the others of their resource groups have the label, too."""
    groups = [group for queue in case.queues for group in queue["spec"].get("resourceGroups") or ()]
    together = [{flavor["name"] for flavor in group["flavors"]} for group in groups]
    for item in case.items("flavors") or case.items("resourceFlavors"):
        name = item["metadata"]["name"]
        others = {other for names in together if name in names for other in names}
        labels = dict.fromkeys(_selector(others), "false") | _selector([name])
        yield _object("ResourceFlavor", item, item["spec"] | {"nodeLabels": labels})


def _selector(names: Iterable[str]) -> dict[str, str]:
    return {f"flavor-{name}": "true" for name in names}


def _groups(queue: Object, quota: str = "") -> Iterator[Object]:
    """Return resource groups, with another quota if given; those without resources have no quota of CPUs."""
    for group in queue.get("resourceGroups") or [{"flavors": [{"name": "default"}]}]:
        names = group.get("coveredResources") or ["cpu", "memory"]
        resources = [{"name": name, "nominalQuota": quota or "0"} for name in names]
        quotas = [{"name": item["name"], "resources": resources} for item in group["flavors"]]
        yield (
            group
            if "coveredResources" in group and not quota
            else {"coveredResources": names, "flavors": quotas}
        )


def _plenty(queue: Object) -> Object:
    """Return a queue with plenty of quota, in no cohort."""
    strategy, groups = queue["queueingStrategy"], [*_groups(queue, "1P")]
    return {"namespaceSelector": {}, "queueingStrategy": strategy, "resourceGroups": groups}


def _gated(queue: Object) -> Object:
    """Return a queue that is not active without the flavor `GATE`."""
    flavor = {"name": GATE, "resources": [{"name": "example.com/gate", "nominalQuota": "0"}]}
    gate = {"coveredResources": ["example.com/gate"], "flavors": [flavor]}
    return queue | {"resourceGroups": [*_groups(queue), gate]}


def _running(case: Case) -> Iterator[Submit]:
    """Submit the jobs with quota; the last is the first victim: the newest, or that with the least UID."""
    by_uid = sorted(case.running, key=_uid, reverse=True)
    for item in sorted(by_uid, key=_reserved_at):
        admission = item["status"]["admission"]
        pod_sets = [
            PodSet(part["name"], 1, part["resourceUsage"], _selector(part["flavors"].values()), TOLERATIONS)
            for part in admission["podSetAssignments"]
        ]
        yield _submit(item, f"{PRESENT}/{admission['clusterQueue']}", pod_sets)


def _waiting(case: Case) -> Iterator[Submit]:
    """Submit the jobs without quota, the oldest first."""
    for item in sorted(case.waiting, key=lambda item: (_created(item), _uid(item))):
        queue = f"{item['metadata']['namespace']}/{item['spec']['queueName']}"
        yield _submit(item, queue, [_pod_set(pods) for pods in item["spec"]["podSets"]])
    if item := case.content.get("incoming"):
        pod_sets = [
            replace(_pod_set(pods), node_selector=_selector(case.assigned(pods["name"])))
            for pods in item["spec"]["podSets"]
        ]
        yield _submit(item, f"{PRESENT}/{case.content['targetCQ']}", pod_sets)


def _submit(item: Object, queue: str, pod_sets: list[PodSet]) -> Submit:
    return Submit(_created(item), key(item), queue, pod_sets, item["spec"].get("priority", 0))


def _pod_set(pods: Object) -> PodSet:
    spec = pods["template"]["spec"]
    requests = spec["containers"][0]["resources"].get("requests", {})
    selector, tolerations = spec.get("nodeSelector", {}), spec.get("tolerations", ())
    return PodSet(pods["name"], pods["count"], requests, selector, tolerations)


def _uid(item: Object) -> str:
    return item["metadata"].get("uid") or item["metadata"]["name"]


def _created(item: Object) -> float:
    return _seconds(item["metadata"].get("creationTimestamp"))


def _reserved_at(item: Object) -> float:
    return _seconds(condition(item, "QuotaReserved")["lastTransitionTime"])


def _seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def _reason(event: Event) -> str:
    found = re.search(r" due to (.+?);", event.message)
    return REASONS[found[1]] if found else event.reason
