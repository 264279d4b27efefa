"""Shared memory of a pod: a volume in memory at /dev/shm, instead of the container runtime's 64 MiB
(containerd 2.1, CRI, defaultShmSize)."""

from typing import TYPE_CHECKING, Any, Final

from ebbtide.work.errors import Problems

if TYPE_CHECKING:
    from ebbtide.work.tasks import Task

PATH: Final = "/dev/shm"  # noqa: S108 - a mount point, not a file
VOLUME: Final = "shared-memory"

Manifest = dict[str, Any]


def check_shared_memory(task: "Task", problems: Problems) -> None:
    """Report shared memory that exceeds the pod's memory.

    Files in it count towards the memory limit of the container that wrote them (Kubernetes docs, volumes,
    emptyDir, 1.35).
    """
    if not task.shared_memory:
        return
    problems.check(
        task.memory,
        "shared_memory is given without memory: it is part of the container's memory, which would not be "
        "requested. Write memory (--memory), including shared_memory.",
    )
    with problems.collecting():
        problems.check(
            not task.memory or task.shared_memory_b < task.memory_b,
            f"shared_memory is {task.shared_memory}, which is part of memory, and memory is {task.memory}: "
            "a container that fills it would be killed. Write less, or more memory.",
        )
    for _, path in task.mount_paths:
        problems.check(path != PATH, f"{PATH} is where shared_memory is mounted: use another path.")


def memory_volumes(task: "Task") -> list[Manifest]:
    """Return a pod's volumes for its shared memory."""
    volume = {"medium": "Memory", "sizeLimit": task.shared_memory}
    return [{"name": VOLUME, "emptyDir": volume}] if task.shared_memory else []


def memory_mounts(task: "Task") -> list[Manifest]:
    """Return the container's mounts for its shared memory."""
    return [{"name": VOLUME, "mountPath": PATH}] if task.shared_memory else []
