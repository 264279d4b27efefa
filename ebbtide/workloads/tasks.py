"""Tasks: the common fields of Jobs and sweeps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Required, TypedDict

from ebbtide.workloads.amounts import memory_bytes, millicores, seconds
from ebbtide.workloads.errors import Problems
from ebbtide.workloads.names import LABEL_LENGTH, is_label, is_subdomain
from ebbtide.workloads.secrets import check_env, check_image_pull_secrets, check_secrets

_STOPPED: Final = {137: "SIGKILL", 143: "SIGTERM"}
_HIGHEST_EXIT_CODE: Final = 255
_HIGHEST_USER: Final = 2**31 - 1
"""The highest id that Kubernetes takes (apimachinery, validation.IsValidUserID)."""


class TaskFields(TypedDict, total=False):
    """Fields of a task; `name`, `image` and one of `pool` and `queue` are required."""

    name: Required[str]
    """The Job's name."""
    image: Required[str]
    """The container's image."""
    command: Sequence[str]
    """The command. Default: the image's."""
    args: Sequence[str]
    """Its arguments; with `command` left out, those of the image's own."""
    pool: str
    """The pool that it runs on, and no other. Either this or `queue`."""
    queue: str
    """The queue that it waits in, by its name in the declaration."""
    namespace: str
    """Namespace of the Job. Default: `kubectl`'s, or the only namespace that has the queue."""
    gpus: int
    """Accelerators for each pod. To be given wherever nodes have accelerators; 0 uses none of them."""
    cpu: str
    """CPU that each pod requests: cores, as `4`, or `500m`. It may use more where the node has it."""
    memory: str
    """Memory that each pod requests, and its limit: `48Gi`."""
    shared_memory: str
    """Size of a volume in memory at `/dev/shm`, for data loaders and NCCL: `8Gi`. It is a part of `memory`.
    Default: the 64 MiB of the container runtime."""
    priority: str
    """In a queue: the WorkloadPriorityClass, one of the profile's `priorities`. It orders the queue's work
    and decides what is preempted. Default: priority 0, as `ebbtide-normal` has."""
    retries: int
    """Retries after failures. Default: 3. Disruptions do not count. In a sweep: for each index."""
    fail_on: Sequence[int]
    """Exit codes after which trying again is of no use: bad arguments, say."""
    ttl: str | timedelta
    """Time until the finished Job is deleted: `2h`, `7d`. Default: a day."""
    max_run: str | timedelta
    """Time limit of an attempt. The wait for a node does not count."""
    env: Mapping[str, str]
    """Environment variables, as Kubernetes reads them: `$(NAME)` stands for another one's value."""
    secret_env: Mapping[str, str]
    """Environment variables from keys of Secrets in the namespace: `{"WANDB_API_KEY": "tracker/api-key"}`."""
    secret_volumes: Mapping[str, str]
    """Secrets to mount, a file for each key, by name: `{"tracker": "/secrets/tracker"}`."""
    image_pull_secrets: Sequence[str]
    """Secrets in the namespace with which images are pulled, as of a registry with its own login."""
    service_account: str
    """The pods' service account, for what they may do in the cloud."""
    run_as_user: int
    """Id of the user that the container runs as, 1 or more, with a group of the same id. The pods then
    satisfy the Pod Security Standard `restricted`. Default: the image's own user, which may be root."""
    volume: str
    """Name of a claim to mount, where checkpoints outlive the pod; a team's own is called `shared`. On GKE it
    is taken to be a bucket mount, which runs beside the work and needs 250m CPU and 256Mi of the node."""
    mount_path: str
    """Path of the volume in the container. Default: `/checkpoints`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A container that something adds to the pod.

    Attributes:
        name: what it is called in a message.
        cpu_m: CPU that it requests, millicores.
        memory_mib: memory that it requests, MiB.
    """

    name: str
    cpu_m: int
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The fields with their defaults, as `TaskFields` describes them.

    Attributes:
        sidecars: containers that run beside the work and need a part of the node.
    """

    name: str
    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    pool: str = ""
    queue: str = ""
    namespace: str = ""
    gpus: int | None = None
    cpu: str = ""
    memory: str = ""
    shared_memory: str = ""
    priority: str = ""
    retries: int = 3
    fail_on: Sequence[int] = ()
    ttl: str | timedelta = "1d"
    max_run: str | timedelta | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    secret_env: Mapping[str, str] = field(default_factory=dict[str, str])
    secret_volumes: Mapping[str, str] = field(default_factory=dict[str, str])
    image_pull_secrets: Sequence[str] = ()
    service_account: str = ""
    run_as_user: int | None = None
    volume: str = ""
    mount_path: str = "/checkpoints"
    sidecars: tuple[Sidecar, ...] = ()

    @property
    def gpu_count(self) -> int:
        """Accelerators of a pod."""
        return self.gpus or 0

    @property
    def cpu_m(self) -> int:
        """CPU of a pod, millicores; 0 where it is not said."""
        return millicores(self.cpu) if self.cpu else 0

    @property
    def memory_b(self) -> int:
        """Memory of a pod, bytes; 0 where it is not said."""
        return memory_bytes(self.memory) if self.memory else 0

    @property
    def shared_memory_b(self) -> int:
        """Size of the volume at /dev/shm, bytes; 0 for the container runtime's own."""
        return memory_bytes(self.shared_memory, "shared_memory") if self.shared_memory else 0

    @property
    def ttl_seconds(self) -> int:
        """Time until the finished Job is deleted."""
        return seconds("ttl", self.ttl)

    @property
    def max_run_seconds(self) -> int | None:
        """Time limit of an attempt."""
        return None if self.max_run is None else seconds("max_run", self.max_run)


def check(task: Task, problems: Problems, *, name_length: int = LABEL_LENGTH) -> None:
    """Note what is wrong with a task by itself, wherever it is to run."""
    problems.check(
        is_label(task.name, name_length),
        f"name is {task.name!r}; a Job's is up to {name_length} lower-case letters, digits and hyphens here.",
    )
    problems.check(task.image.strip(), "image is empty; say which one runs.")
    problems.check(
        not task.namespace or is_label(task.namespace),
        f"namespace is {task.namespace!r}, which can be no namespace's name.",
    )
    for name, text in (("service_account", task.service_account), ("volume", task.volume)):
        problems.check(not text or is_subdomain(text), f"{name} is {text!r}, which can be nothing's name.")
    problems.check(
        task.mount_path.startswith("/") and ":" not in task.mount_path,
        f"mount_path is {task.mount_path!r}; it is an absolute path in the container.",
    )
    for name, words in (("command", task.command), ("args", task.args)):
        problems.check(
            not isinstance(words, str),
            f"{name} is one text; write its words as a list, ['python', 'train.py'].",
        )
    check_secrets(task.secret_env, task.secret_volumes, problems)
    check_image_pull_secrets(task.image_pull_secrets, problems)
    check_env(task.env, task.secret_env, problems)
    problems.check(
        not task.volume or task.mount_path not in task.secret_volumes.values(),
        f"mount_path and secret_volumes both have {task.mount_path}: only one volume can be mounted there.",
    )
    problems.check(
        task.run_as_user is None or 0 < task.run_as_user <= _HIGHEST_USER,
        f"run_as_user is {task.run_as_user}; write 1 to {_HIGHEST_USER}. 0 is root: leave it out for that.",
    )
    problems.check(task.gpu_count >= 0, f"gpus is {task.gpus}; write 0 or more.")
    problems.check(task.retries >= 0, f"retries is {task.retries}; write 0 or more.")
    for code in task.fail_on:
        if code in _STOPPED:
            problems.add(
                f"fail_on has {code}, with which a pod ends that {_STOPPED[code]} stopped: a disruption "
                "would fail the work. Let the program end with a code of its own."
            )
        else:
            problems.check(
                0 < code <= _HIGHEST_EXIT_CODE,
                f"fail_on has {code}; exit codes of a failure are 1 to {_HIGHEST_EXIT_CODE}.",
            )
    for amount in ("cpu_m", "memory_b", "ttl_seconds", "max_run_seconds"):
        with problems.collecting():
            getattr(task, amount)


def check_free(task: Task, names: Iterable[str], owner: str, problems: Problems) -> None:
    """Note environment variables of a task that something else sets.

    Args:
        task: the task.
        names: of the variables.
        owner: what sets them, for the message.
        problems: for the notes.
    """
    for field_name, given in (("env", task.env), ("secret_env", task.secret_env)):
        for name in names:
            problems.check(
                name not in given, f"{field_name} has {name}, which {owner} sets itself: use another name."
            )
