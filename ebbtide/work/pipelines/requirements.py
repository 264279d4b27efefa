"""Requirements of a step, from arguments and from kfp."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from ebbtide.work.amounts import seconds
from ebbtide.work.errors import Problems
from ebbtide.work.pipelines.steps import Step
from ebbtide.work.placement import KEPT
from ebbtide.work.shared_memory import PATH, VOLUME
from ebbtide.work.tasks import Task


class RequirementFields(TypedDict, total=False):
    """Fields of a step; omitted ones keep their values in kfp."""

    gpus: int
    """Accelerators, as a limit; their kind follows from the pool. Required, here or in kfp, if the nodes have
    accelerators; 0 uses none of them."""
    cpu: str
    """CPU limit, and also the request: cores, such as `4`, or `500m`."""
    memory: str
    """Memory limit, and also the request: `48G`, `48Gi`."""
    shared_memory: str
    """Size of a volume in memory at `/dev/shm`, a part of `memory`: `8Gi`."""
    lasts: str | timedelta
    """Expected duration of the step: `6h`. It is not a limit; warnings use it."""
    checkpoints: bool
    """True if a retry of the step continues from its last checkpoint."""
    keep_node: bool
    """True if the cluster autoscaler must not end its pod to remove a node that is less than half used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Requirements of a step.

    Attributes:
        gpus: number of accelerators; None if unset, 1 if a parameter of the run sets it.
        cpu: CPU; empty if unknown at compile time.
        memory: memory; empty if unknown at compile time.
        shared_memory: size of a volume in memory at /dev/shm; empty for the container runtime's default.
        lasts: expected duration in seconds; None if unset.
        checkpoints: whether it resumes from its last checkpoint.
        mounts_bucket: whether it mounts a bucket on GKE.
    """

    gpus: int | None
    cpu: str
    memory: str
    shared_memory: str
    lasts: int | None
    checkpoints: bool
    mounts_bucket: bool

    def task(self, *, pool: str = "", queue: str = "", namespace: str = "", priority: str = "") -> Task:
        """Return the step as a task of a Job, to validate it by the same rules. A step has neither a Job's
        name nor its image, and the name of its claim does not matter."""
        return Task(
            name="step",
            image="step",
            pool=pool,
            queue=queue,
            namespace=namespace,
            gpus=self.gpus,
            cpu=self.cpu,
            memory=self.memory,
            shared_memory=self.shared_memory,
            priority=priority,
            volume="step" if self.mounts_bucket else "",
        )


def requirements(step: Step, needs: RequirementFields, problems: Problems) -> Requirements:
    """Return the requirements of a step; malformed amounts become problems."""
    gpus = needs.get("gpus", step.accelerators)
    problems.check(gpus is None or gpus >= 0, f"gpus is {gpus}; write 0 or more.")
    requirements = Requirements(
        gpus=None if gpus is None else max(0, gpus),
        cpu=needs.get("cpu", step.cpu),
        memory=needs.get("memory", step.memory),
        shared_memory=needs.get("shared_memory", ""),
        lasts=_lasts(needs, problems),
        checkpoints=needs.get("checkpoints", False),
        mounts_bucket=step.mounts_bucket,
    )
    task = requirements.task()
    for amount in ("cpu_m", "memory_b", "shared_memory_b"):
        with problems.collecting():
            getattr(task, amount)
    return requirements


def _lasts(needs: RequirementFields, problems: Problems) -> int | None:
    with problems.collecting():
        return seconds("lasts", needs["lasts"]) if "lasts" in needs else None
    return None


def limit(step: Step, needs: RequirementFields, accelerator: str) -> None:
    """Set the limits in kfp, the kind of accelerator, and whether the pod keeps its node."""
    if "cpu" in needs:
        step.limit_cpu(needs["cpu"])
    if "memory" in needs:
        step.limit_memory(needs["memory"])
    if "shared_memory" in needs:
        step.mount_memory(VOLUME, PATH, needs["shared_memory"])
    if accelerator:
        step.limit_accelerators(accelerator, needs.get("gpus"))
    if needs.get("keep_node", False):
        step.annotate(KEPT)
