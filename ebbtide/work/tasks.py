"""Tasks: the common fields of Jobs and sweeps, and the shared memory of their pods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, overload

from ebbtide.values.paths import Object
from ebbtide.work.arguments import LABEL_LENGTH, is_label, is_subdomain, memory_bytes, millicores, seconds
from ebbtide.work.errors import Problems
from ebbtide.work.secrets import check_env, check_image_pull_secrets, check_secrets, check_text

_STOPPED: Final = {137: "SIGKILL", 143: "SIGTERM"}
_HIGHEST_EXIT_CODE: Final = 255
_HIGHEST_USER: Final = 2**31 - 1
"""The highest user id that Kubernetes accepts (apimachinery, validation.IsValidUserID)."""
_P = ParamSpec("_P")
_A = TypeVar("_A")
_B = TypeVar("_B")
_R = TypeVar("_R")
SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - a mount point, not a file
SHARED_MEMORY_VOLUME: Final = "shared-memory"


class CodeIn(StrEnum):
    """Storage of a run's code."""

    IMAGE = "image"
    """A layer on the image, in the registry of the namespace's team."""
    CONFIG_MAP = "config-map"
    BUCKET = "bucket"
    """An archive in the bucket of the namespace's team, which the pods mount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A container that a controller or the cloud adds to the pod.

    Attributes:
        cpu_m: its CPU request in millicores.
        memory_mib: its memory request in MiB.
    """

    name: str
    cpu_m: int
    memory_mib: int


def _option(text: str, *names: str, metavar: str | None = None, **default: Any) -> Any:
    """Return a field that is an option of the command line.

    Args:
        text: its text for help.
        *names: names of the option; default: the field's.
        metavar: name of its value.
        **default: `default` or `default_factory` of the field.
    """
    return field(**default, metadata={"help": text, "names": names, "metavar": metavar})


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The fields of a task; `name`, `image` and one of `pool` and `queue` are required.

    Those with a text for help are options of the commands that create Jobs.
    """

    name: str
    """The Job's name."""
    image: str = _option("The container's image; by default one for the pool's accelerator.", default=MISSING)
    """The container's image."""
    command: Sequence[str] = ()
    """The command. Default: the image's."""
    args: Sequence[str] = ()
    """Arguments of `command` or, by default, of the image's command."""
    pool: str = _option("The pool.", default="")
    """The required pool. Either this or `queue`."""
    queue: str = _option(
        "The queue, instead of a pool: its name, or as in a preview, vision/big.", default=""
    )
    """The queue, by its name in the declaration."""
    namespace: str = _option(
        "The Job's namespace; by default the configured one, or the context's.",
        "--namespace",
        "-n",
        default="",
    )
    """Namespace of the Job. Default: `kubectl`'s, or the only namespace that has the queue."""
    gpus: int | None = _option(
        "Accelerators for each pod; required on a pool that has them, 0 for none.", default=None
    )
    """Accelerators for each pod. Required if the nodes have accelerators; 0 uses none of them."""
    cpu: str = _option("CPU that each pod requests: 4, 500m.", default="")
    """CPU request of each pod: cores, such as `4`, or `500m`. There is no CPU limit."""
    memory: str = _option("Memory of each pod, request and limit: 48Gi.", default="")
    """Memory request and limit of each pod: `48Gi`."""
    shared_memory: str = _option("Size of /dev/shm, a part of the memory: 8Gi.", default="", metavar="SIZE")
    """Size of a volume in memory at `/dev/shm`, for data loaders and NCCL: `8Gi`. It is part of `memory`.
    Default: the 64 MiB of the container runtime."""
    priority: str = _option("WorkloadPriorityClass, in a queue: ebbtide-low, ebbtide-high.", default="")
    """In a queue: the WorkloadPriorityClass, one of the profile's `priorities`. It determines the order in
    the queue and preemption. Default: priority 0, like `ebbtide-normal`."""
    retries: int = _option(
        "Retries after failures, in a sweep for each index; disruptions do not count.", default=3
    )
    """Retries after failures. Default: 3. Disruptions do not count. In a sweep: for each index."""
    fail_on: Sequence[int] = _option("An exit code that is not retried; repeatable.", default=())
    """Exit codes after which a retry is useless, such as those of invalid arguments."""
    ttl: str | timedelta = _option(  # noqa: RUF009 - a field
        "Time until the finished Job is deleted: 2h, 7d.", default="1d"
    )
    """Time until the finished Job is deleted: `2h`, `7d`. Default: a day."""
    max_run: str | timedelta | None = _option(  # noqa: RUF009 - a field
        "Time limit of one attempt, not counting the wait for a node.", default=None
    )
    """Time limit of an attempt. The wait for a node does not count."""
    keep_node: bool = _option(
        "Let no scale-down end it, also on a node that is less than half used.", "--keep-node", default=False
    )
    """True if the cluster autoscaler must not end it to remove a node that is less than half used. By default
    its pods begin anew on other nodes, or continue from their last checkpoint."""
    env: Mapping[str, str] = _option(
        "An environment variable.", default_factory=dict[str, str], metavar="NAME=VALUE"
    )
    """Environment variables, with Kubernetes' syntax: `$(NAME)` is the value of another variable."""
    secret_env: Mapping[str, str] = _option(
        "An environment variable from a key of a Secret in the namespace.",
        default_factory=dict[str, str],
        metavar="NAME=SECRET/KEY",
    )
    """Environment variables from keys of Secrets in the namespace: `{"WANDB_API_KEY": "tracker/api-key"}`."""
    secret_volumes: Mapping[str, str] = _option(
        "A Secret to mount, a file for each key.",
        "--secret-volume",
        default_factory=dict[str, str],
        metavar="SECRET=PATH",
    )
    """Secrets to mount, a file for each key, by name: `{"tracker": "/secrets/tracker"}`."""
    image_pull_secrets: Sequence[str] = _option(
        "A Secret to pull the image with; repeatable.", "--image-pull-secret", default=(), metavar="NAME"
    )
    """Secrets in the namespace for pulling images, such as from a registry with its own login."""
    service_account: str = _option("The pods' service account.", default="")
    """The pods' service account, for their cloud permissions."""
    run_as_user: int | None = _option("Id of the container's user; by default the image's.", default=None)
    """User id of the container, 1 or more, with a group of the same id. The pods then satisfy the Pod
    Security Standard `restricted`. Default: the image's own user, which may be root."""
    volume: str = _option("A PersistentVolumeClaim to mount, for checkpoints.", default="")
    """Name of a claim to mount, for checkpoints that outlive the pod; a team's own is called `shared`. On GKE
    it is treated as a bucket mount, whose sidecar requests 250m CPU and 256Mi of the node."""
    mount_path: str = _option("The volume's path in the container.", default="/checkpoints")
    """Path of the volume in the container. Default: `/checkpoints`."""
    outputs: str = _option(
        "Path in the container of a folder of the Job that outlives it, for `ebbtide cp`.",
        default="",
        metavar="PATH",
    )
    """Path in the container of a folder that outlives the Job, `outputs/NAME` on the `volume`, or without it
    on the claim or in the bucket of the namespace's team; in a sweep, one for each index below it. The
    variable `EBBTIDE_OUTPUTS` has the path. The pods' service account is then the team's by default."""
    mounts: Mapping[str, str] = _option(
        "A folder of a bucket to mount, read-only: gs://bucket/data:/data.",
        "--mount",
        default_factory=dict[str, str],
        metavar="ADDRESS:PATH",
    )
    """Folders of buckets to mount, read-only, by the identity of the service account, by default the team's:
    `{"gs://acme-data/images": "/data"}`; on AKS only of the team's bucket that is its `volume`,
    `abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER`."""
    sidecars: tuple[Sidecar, ...] = ()
    """Containers that run in the same pod and need a part of the node."""

    @property
    def mount_paths(self) -> tuple[tuple[str, str], ...]:
        """Paths of mounted volumes, each after the field that it is from."""
        return (
            *([("mount_path", self.mount_path)] if self.volume else []),
            *([("outputs", self.outputs)] if self.outputs else []),
            *(("mounts", path) for path in self.mounts.values()),
            *(("secret_volumes", path) for path in self.secret_volumes.values()),
        )

    @property
    def gpu_count(self) -> int:
        """Accelerators of a pod."""
        return self.gpus or 0

    @property
    def cpu_m(self) -> int:
        """CPU request of a pod in millicores; 0 if unset."""
        return millicores(self.cpu) if self.cpu else 0

    @property
    def memory_b(self) -> int:
        """Memory request of a pod in bytes; 0 if unset."""
        return memory_bytes(self.memory) if self.memory else 0

    @property
    def shared_memory_b(self) -> int:
        """Size of the volume at /dev/shm in bytes; 0 for the container runtime's default."""
        return memory_bytes(self.shared_memory, "shared_memory") if self.shared_memory else 0

    @property
    def ttl_seconds(self) -> int:
        """Time until the finished Job is deleted, in seconds."""
        return seconds("ttl", self.ttl)

    @property
    def max_run_seconds(self) -> int | None:
        """Time limit of an attempt in seconds; None for no limit."""
        return None if self.max_run is None else seconds("max_run", self.max_run)


_T = TypeVar("_T", bound=Task)


@overload
def with_fields(
    task: Callable[_P, _T], function: Callable[[_A, _T], _R]
) -> Callable[Concatenate[_A, _P], _R]: ...
@overload
def with_fields(
    task: Callable[_P, _T], function: Callable[[_A, _B, _T], _R]
) -> Callable[Concatenate[_A, _B, _P], _R]: ...
def with_fields(task: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the fields of its last argument, a task, by their names."""

    @wraps(function)
    def made(*arguments: Any, **fields: Any) -> Any:
        return function(*arguments, task(**fields))

    return made


def check(task: Task, problems: Problems, *, name_length: int = LABEL_LENGTH) -> None:
    """Report the problems of a task that do not depend on its placement."""
    problems.check(
        is_label(task.name, name_length),
        f"name is {task.name!r}; write at most {name_length} lower-case letters, digits and hyphens.",
    )
    no_target = not (task.pool or task.queue)  # which has a default image, and whose absence is reported
    problems.check(task.image.strip() or no_target, "image is empty; name an image.")
    problems.check(
        not task.namespace or is_label(task.namespace),
        f"namespace is {task.namespace!r}, which is not a valid namespace name.",
    )
    for name, text in (("service_account", task.service_account), ("volume", task.volume)):
        problems.check(not text or is_subdomain(text), f"{name} is {text!r}, which is not a valid name.")
    given = (("mount_path", task.mount_path), ("outputs", task.outputs))
    for name, path in (*given, *(("mounts", path) for path in task.mounts.values())):
        problems.check(
            not path or (path.startswith("/") and path != "/" and ":" not in path),
            f"{name} is {path!r}; it is an absolute path in the container.",
        )
    for name, words in (("command", task.command), ("args", task.args)):
        problems.check(
            not isinstance(words, str),
            f"{name} is a text; write its words as a list, ['python', 'train.py'].",
        )
        check_text(name, " ".join(words), problems)
    check_secrets(task.secret_env, task.secret_volumes, problems)
    check_image_pull_secrets(task.image_pull_secrets, problems)
    check_env(task.env, task.secret_env, problems)
    fields: dict[str, str] = {}
    for name, path in task.mount_paths:
        other = fields.setdefault(path, name)
        problems.check(
            other == name,
            f"{other} and {name} both have {path}: only one volume can be mounted there.",
        )
    paths = list(task.mounts.values())
    for path in dict.fromkeys(path for path in paths if paths.count(path) > 1):
        problems.add(f"mounts has {path} twice: only one folder can be mounted there.")
    problems.check(
        task.run_as_user is None or 0 < task.run_as_user <= _HIGHEST_USER,
        f"run_as_user is {task.run_as_user}; write 1 to {_HIGHEST_USER}. Omit it to run as root.",
    )
    problems.check(task.gpu_count >= 0, f"gpus is {task.gpus}; write 0 or more.")
    problems.check(task.retries >= 0, f"retries is {task.retries}; write 0 or more.")
    for code in task.fail_on:
        if code in _STOPPED:
            problems.add(
                f"fail_on has {code}, the exit code of a pod that {_STOPPED[code]} stopped: a disruption "
                "would fail the work. Use another exit code in the program."
            )
        else:
            problems.check(
                0 < code <= _HIGHEST_EXIT_CODE,
                f"fail_on has {code}; write an exit code from 1 to {_HIGHEST_EXIT_CODE}.",
            )
    for amount in ("cpu_m", "memory_b", "ttl_seconds", "max_run_seconds"):
        with problems.collecting():
            getattr(task, amount)


def check_free(task: Task, names: Iterable[str], owner: str, problems: Problems) -> None:
    """Report environment variables of a task that are reserved.

    Args:
        names: names of the reserved variables.
        owner: the component that sets them, for the message.
    """
    for field_name, given in (("env", task.env), ("secret_env", task.secret_env)):
        for name in names:
            problems.check(
                name not in given, f"{field_name} has {name}, which {owner} sets: use another name."
            )


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
        problems.check(
            path != SHARED_MEMORY_PATH,
            f"{SHARED_MEMORY_PATH} is where shared_memory is mounted: use another path.",
        )


def memory_volumes(task: "Task") -> list[Object]:
    """Return a pod's volumes for its shared memory."""
    volume = {"medium": "Memory", "sizeLimit": task.shared_memory}
    return [{"name": SHARED_MEMORY_VOLUME, "emptyDir": volume}] if task.shared_memory else []


def memory_mounts(task: "Task") -> list[Object]:
    """Return the container's mounts for its shared memory."""
    return [{"name": SHARED_MEMORY_VOLUME, "mountPath": SHARED_MEMORY_PATH}] if task.shared_memory else []
