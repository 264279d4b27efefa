"""Kueue's own tables of cases, each of which describes one scheduling cycle."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ebbtide.clients.kubernetes.objects import condition
from ebbtide_rehearsal.tools.build import find_go, module_directory
from ebbtide_rehearsal.tools.download import pins
from ebbtide_rehearsal.tools.items import BUILD_FLAGS, Tool
from ebbtide_rehearsal.tools.table import all_items
from kueue_jobs import Object
from kueue_replay.kueue import PROGRAM, Flavors

_PACKAGES: Final = ("scheduler", "scheduler/preemption")
_TESTS: Final = (
    "TestSchedule(ForFairSharing|RecomputePreemptionTargets)?|Test(Fair|Hierarchical)?Preemptions?"
)
_LOOPS: Final = {
    "runScheduleTestCases": "cfg",
    "TestPreemption": "flavors",
    "TestFairPreemptions": "flavors",
    "TestHierarchicalPreemptions": "flavors",
}
"""Functions with a loop over cases, and the variable that the cases share."""
_LOOP: Final = "\tfor name, tc := range cases {\n"


class Outcome(NamedTuple):
    """Decisions of a cycle: flavors by job that gets quota, and Kueue's reason by job that is preempted."""

    reserved: Mapping[str, Flavors]
    preempted: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a table.

    Attributes:
        content: the fields of the case, and those that its table shares. Tables of preemption have an
            incoming Workload with an assignment in place of waiting ones, and want no reservations.
    """

    content: Object

    @property
    def name(self) -> str:
        """The table and the name of the case."""
        return f"{self.content['table']}: {self.content['name']}"

    def items(self, *fields: str) -> list[Object]:
        """Return the objects of some fields."""
        return [item for field in fields for item in self.content.get(field) or ()]

    @property
    def queues(self) -> list[Object]:
        """ClusterQueues."""
        return self.items("clusterQueues", "additionalClusterQueues")

    @property
    def running(self) -> list[Object]:
        """Workloads with quota."""
        return [item for item in self.items("workloads", "admitted") if flavors(item)]

    @property
    def waiting(self) -> list[Object]:
        """Workloads without quota."""
        return [item for item in self.items("workloads", "admitted") if not flavors(item)]

    def assigned(self, pod_set: str) -> set[str]:
        """Return the flavors of a pod set of the incoming Workload."""
        parts = (item["Flavors"] for item in self.items("assignment") if item["Name"] == pod_set)
        named = {flavor["Name"] for part in parts for flavor in part.values()}
        return named or {self.content.get("assignmentFlavor") or "default"}

    @property
    def gates(self) -> dict[str, bool]:
        """Feature gates that the test sets."""
        return self.content["gates"] | (self.content.get("featureGates") or {})

    @property
    def fair(self) -> bool:
        """True if fair sharing is enabled."""
        return self.content.get("enableFairSharing") or self.content["table"] == "TestFairPreemptions"

    @property
    def not_runnable(self) -> str:
        """Why the case cannot be given to Kueue in virtual time; empty if it can."""
        waiting, queues = self.waiting, [item["spec"] for item in self.queues]
        pod_sets = [pod_set for item in waiting for pod_set in item["spec"]["podSets"]]
        containers = [item for pod_set in pod_sets for item in pod_set["template"]["spec"]["containers"]]
        reasons = {
            "a resource in two groups, which the API server refuses": any(map(_repeated, queues)),
            "fair sharing without reclaimWithinCohort, which the API server sets": self.fair
            and any(item.get("cohortName") and _unset(item.get("preemption") or {}) for item in queues),
            "jobs that are being evicted": any(condition(item, "Evicted") for item in self.running),
            "errors of the API server": self.content.get("admissionError") is not None,
            "limits of containers": any("limits" in item["resources"] for item in containers)
            or bool(self.items("objects")),
            "topology-aware scheduling switched off": self.gates.get("TopologyAwareScheduling") is False,
            "partial admission": any("minCount" in item for item in pod_sets),
            "dynamic resizing": any("annotations" in item["metadata"] for item in waiting),
            "MultiKueue": any("preemptionGates" in item["spec"] for item in waiting),
            "earlier states of admission checks": any(
                "admissionChecks" in item["status"] for item in waiting
            ),
        }
        return next((reason for reason, applies in reasons.items() if applies), "")

    @property
    def wanted(self) -> Outcome:
        """Decisions that Kueue's test wants."""
        if self.content["table"] == "TestFairPreemptions":
            victims: Mapping[str, object] = self.content["wantPreempted"] or {}
            return Outcome({}, dict(victim.rsplit(":", 1) for victim in victims))
        running = {key(item) for item in self.running}
        assignments: Mapping[str, Object] = self.content.get("wantAssignments") or {}
        preempted = ((key(item), condition(item, "Preempted")) for item in self.items("wantWorkloads"))
        return Outcome(
            {job: _flavors(item) for job, item in assignments.items() if job not in running},
            {job: found["reason"] for job, found in preempted if found},
        )


def key(workload: Object) -> str:
    """Return namespace and name of a Workload."""
    return f"{workload['metadata'].get('namespace', '')}/{workload['metadata']['name']}"


def flavors(workload: Object) -> Flavors:
    """Return the flavors of a Workload; none if it has no quota."""
    return _flavors(workload["status"].get("admission") or {"podSetAssignments": ()})


def _flavors(admission: Object) -> Flavors:
    return {item["name"]: item["flavors"] for item in admission["podSetAssignments"]}


def _repeated(queue: Object) -> bool:
    groups = queue.get("resourceGroups") or ()
    resources = [name for group in groups for name in group.get("coveredResources", ())]
    return len({*resources}) < len(resources)


def _unset(preemption: Object) -> bool:
    return "withinClusterQueue" in preemption and "reclaimWithinCohort" not in preemption


def read(directory: Path) -> list[Case]:
    """Let Kueue's own tests write their cases, without running them.

    Args:
        directory: an empty directory, for a copy of the tested packages.
    """
    tool = all_items()[PROGRAM]
    assert isinstance(tool, Tool)
    go, log = find_go([tool], lambda _: None), directory / "log"
    for path in pins(tool.group):
        shutil.copyfile(path, directory / path.name)
    module = module_directory(go, tool.module, f"v{tool.version}", directory, log)
    dump = Path(__file__).with_suffix(".go").read_text(encoding="utf-8")
    for package in _PACKAGES:
        copy = directory / Path(package).name
        copy.mkdir()
        (copy / "dump_test.go").write_text(dump.replace("package scheduler\n", f"package {copy.name}\n"))
        for path in (module / "pkg" / package).glob("*.go"):
            text = path.read_text(encoding="utf-8")
            if not path.name.endswith("_test.go") or any(f"{function}(" in text for function in _LOOPS):
                (copy / path.name).write_text(_dumping(text), encoding="utf-8")
    # The tests import more than the program, of the same go.sum.
    flags = (*BUILD_FLAGS, "-mod=mod", "-vet=off")
    go.run(
        ["test", *flags, "-run", f"^({_TESTS})$", "./..."],
        directory=directory,
        log=log,
        purpose="Kueue's tables could not be read",
    )
    lines = [line for path in directory.glob("*/cases.json") for line in path.read_text().splitlines()]
    return sorted((Case(json.loads(line)) for line in lines), key=lambda case: case.name)


def _dumping(text: str) -> str:
    """Return a test file whose loops write their cases."""
    for function, shared in _LOOPS.items():
        before, start, body = text.partition(f"func {function}(")
        text = before + start + body.replace(_LOOP, f"{_LOOP}dump(t, name, tc, {shared})\ncontinue\n", 1)
    return text
