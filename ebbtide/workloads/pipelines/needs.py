"""What a step needs of a node, said here or through kfp before."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from ebbtide.workloads.amounts import seconds
from ebbtide.workloads.errors import Problems
from ebbtide.workloads.pipelines.steps import Step
from ebbtide.workloads.shared_memory import PATH, VOLUME
from ebbtide.workloads.tasks import Task


class Needs(TypedDict, total=False):
    """What can be said of a step; what is left out is as kfp was told before, where it was."""

    gpus: int
    """Accelerators, as a limit; of which kind follows from the pool. To be given, here or to kfp, wherever
    nodes have accelerators; 0 uses none of them."""
    cpu: str
    """CPU as a limit, which is then the request too: cores, as `4`, or `500m`."""
    memory: str
    """Memory as a limit, which is then the request too: `48G`, `48Gi`."""
    shared_memory: str
    """Size of a volume in memory at `/dev/shm`, a part of `memory`: `8Gi`."""
    lasts: str | timedelta
    """How long the step is expected to run: `6h`. It limits nothing, and is what is warned by."""
    checkpoints: bool
    """Whether the step goes on from its last checkpoint when it is run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a step needs, once it is known where that was said.

    Attributes:
        gpus: accelerators; None where nothing was said, 1 where a parameter of the run says how many.
        cpu: CPU; empty where it is not known at compile time.
        memory: the same.
        shared_memory: size of a volume in memory at /dev/shm; empty for the container runtime's own.
        lasts: how long it is expected to run, seconds; None where that is not said.
        checkpoints: whether it goes on from its last checkpoint.
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
        """The same as a task of a Job, which is placed by the same rules. A step has neither a Job's name
        nor its image, and which claim it mounts does not matter."""
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


def asked(step: Step, needs: Needs, problems: Problems) -> Asked:
    """What a step needs; amounts that are none are noted."""
    gpus = needs.get("gpus", step.accelerators)
    problems.check(gpus is None or gpus >= 0, f"gpus is {gpus}; write 0 or more.")
    found = Asked(
        gpus=None if gpus is None else max(0, gpus),
        cpu=needs.get("cpu", step.cpu),
        memory=needs.get("memory", step.memory),
        shared_memory=needs.get("shared_memory", ""),
        lasts=_lasts(needs, problems),
        checkpoints=needs.get("checkpoints", False),
        mounts_bucket=step.mounts_bucket,
    )
    task = found.task()
    for amount in ("cpu_m", "memory_b", "shared_memory_b"):
        with problems.collecting():
            getattr(task, amount)
    return found


def _lasts(needs: Needs, problems: Problems) -> int | None:
    with problems.collecting():
        return seconds("lasts", needs["lasts"]) if "lasts" in needs else None
    return None


def limit(step: Step, needs: Needs, accelerator: str) -> None:
    """Pass what is given here to kfp, and what kind of accelerator the limit is of."""
    if "cpu" in needs:
        step.limit_cpu(needs["cpu"])
    if "memory" in needs:
        step.limit_memory(needs["memory"])
    if "shared_memory" in needs:
        step.mount_memory(VOLUME, PATH, needs["shared_memory"])
    if accelerator:
        step.limit_accelerators(accelerator, needs.get("gpus"))
