"""The `job` command, which prints a manifest, and the options that it shares with other commands.

Only --submit creates objects. Dependencies are imported on execution.
"""

import json
import os
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide.cli import follow as follow_command
from ebbtide.cli.consoles import write
from ebbtide.cli.follow import Context, Format
from ebbtide.cli.options import PreviewFormat

if TYPE_CHECKING:
    from ebbtide.placement import Profile
    from ebbtide.work.errors import Problems
    from ebbtide.work.tasks import TaskFields

_PROFILE: Final = "EBBTIDE_PROFILE"

ProfileSource = Annotated[
    str,
    typer.Option(
        "--profile",
        envvar=_PROFILE,
        help="The cluster's profile: a file, or the JSON; by default the namespace's own.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The Job's name.")]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND]", help="The command; by default the image's.", show_default=False),
]
Image = Annotated[
    str,
    typer.Option(
        help="The container's image; by default one for the pool's accelerator.", show_default=False
    ),
]


def _pools(context: typer.Context) -> list[str]:
    """Return the work pools of the given profile, for shell completion."""
    return [pool.name for profile in _completed(context) for pool in profile.pools if pool.role == "work"]


def _queues(context: typer.Context) -> list[str]:
    """Return the queues of the given profile, and their names in namespaces, for shell completion."""
    queues = [queue for profile in _completed(context) for queue in profile.queues]
    local = (f"{local.namespace}/{local.name}" for queue in queues for local in queue.local_queues)
    return [*(queue.name for queue in queues), *local]


def _completed(context: typer.Context) -> "list[Profile]":
    """Return the profile of an unfinished command line; empty without a readable one."""
    from ebbtide.placement import Profile, ProfileError  # noqa: PLC0415

    source = context.params.get("profile") or os.environ.get(_PROFILE)
    try:
        return [Profile.load(source)] if source else []
    except ProfileError:
        return []


Pool = Annotated[str, typer.Option(help="The pool.", autocompletion=_pools, show_default=False)]
Queue = Annotated[
    str,
    typer.Option(
        help="The queue, instead of a pool: its name, or as in a preview, vision/big.",
        autocompletion=_queues,
        show_default=False,
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        help="The Job's namespace; by default the configured one, or the context's.",
        show_default=False,
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        help="Accelerators for each pod; required on a pool that has them, 0 for none.", show_default=False
    ),
]
Cpu = Annotated[str, typer.Option(help="CPU that each pod requests: 4, 500m.", show_default=False)]
Memory = Annotated[str, typer.Option(help="Memory of each pod, request and limit: 48Gi.", show_default=False)]
SharedMemory = Annotated[
    str,
    typer.Option(metavar="SIZE", help="Size of /dev/shm, a part of the memory: 8Gi.", show_default=False),
]
Priority = Annotated[
    str,
    typer.Option(help="WorkloadPriorityClass, in a queue: ebbtide-low, ebbtide-high.", show_default=False),
]
ImagePullSecrets = Annotated[
    list[str] | None,
    typer.Option(
        "--image-pull-secret",
        metavar="NAME",
        help="A Secret to pull the image with; repeatable.",
        show_default=False,
    ),
]
Retries = Annotated[
    int,
    typer.Option(help="Retries after failures, in a sweep for each index; disruptions do not count."),
]
FailOn = Annotated[list[int] | None, typer.Option(help="An exit code that is not retried; repeatable.")]
Ttl = Annotated[str, typer.Option(help="Time until the finished Job is deleted: 2h, 7d.")]
MaxRun = Annotated[
    str | None,
    typer.Option(help="Time limit of one attempt, not counting the wait for a node.", show_default=False),
]
KeepNode = Annotated[
    bool,
    typer.Option("--keep-node", help="Let no scale-down end it, also on a node that is less than half used."),
]
Env = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An environment variable.", show_default=False)
]
ServiceAccount = Annotated[str, typer.Option(help="The pods' service account.", show_default=False)]
RunAsUser = Annotated[
    int | None,
    typer.Option(help="Id of the container's user; by default the image's.", show_default=False),
]
Volume = Annotated[
    str, typer.Option(help="A PersistentVolumeClaim to mount, for checkpoints.", show_default=False)
]
MountPath = Annotated[str, typer.Option(help="The volume's path in the container.")]
Outputs = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Path in the container of a folder of the Job that outlives it, for `ebbtide cp`.",
        show_default=False,
    ),
]
Submit = Annotated[
    bool,
    typer.Option(
        "--submit", help="Create it on the cluster of your kubeconfig, and follow it until it ends."
    ),
]


When = Annotated[
    bool,
    typer.Option("--when", help="Estimate when it would start, from a replay of the queues; create nothing."),
]

SecretEnv = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SECRET/KEY",
        help="An environment variable from a key of a Secret in the namespace.",
        show_default=False,
    ),
]
SecretVolumes = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-volume",
        metavar="SECRET=PATH",
        help="A Secret to mount, a file for each key.",
        show_default=False,
    ),
]

Mounts = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        metavar="ADDRESS:PATH",
        help="A folder of a bucket to mount, read-only: gs://bucket/data:/data.",
        show_default=False,
    ),
]


def _shared(  # noqa: PLR0913 - one parameter an option
    *,
    profile: ProfileSource = "",
    image: Image = "",
    pool: Pool = "",
    queue: Queue = "",
    namespace: Namespace = "",
    gpus: Gpus = None,
    cpu: Cpu = "",
    memory: Memory = "",
    shared_memory: SharedMemory = "",
    priority: Priority = "",
    retries: Retries = 3,
    fail_on: FailOn = None,
    ttl: Ttl = "1d",
    max_run: MaxRun = None,
    keep_node: KeepNode = False,
    env: Env = None,
    secret_env: SecretEnv = None,
    secret_volumes: SecretVolumes = None,
    image_pull_secrets: ImagePullSecrets = None,
    service_account: ServiceAccount = "",
    run_as_user: RunAsUser = None,
    volume: Volume = "",
    mount_path: MountPath = "/checkpoints",
    outputs: Outputs = "",
    mounts: Mounts = None,
    submit: Submit = False,
    when: When = False,
    context: Context = "",
    format_: Format = PreviewFormat.TEXT,
) -> None:
    """Options of every command that creates a Job; task options have the names of the task's fields."""


def with_shared_options(
    command: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[..., None]:
    """Replace a command's `**options` with the options of `_shared`, for Typer.

    Args:
        command: the command.
        without: names of shared options that it does not have.
    """
    own = [item for item in signature(command).parameters.values() if item.kind is not Parameter.VAR_KEYWORD]
    shared = [item for item in signature(_shared).parameters.values() if item.name not in without]
    parameters = [*own, *shared]
    command.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]  # PEP 362's
    return command


@with_shared_options
def job(
    name: Name,
    command: Command = None,
    *,
    nodes: Annotated[
        int, typer.Option(help="Pods of the Job, each with its rank and the address of the first.")
    ] = 1,
    **options: Any,
) -> None:
    """Print the manifest of a Job on a pool or in a queue.

    `kubectl apply -f -` or --submit creates it. A disruption uses no retry, and a chosen exit code fails the
    Job at once. With --nodes, a headless Service comes with the Job. With --submit, exit status 1 says that
    the Job failed.
    """
    from ebbtide.work import jobs  # noqa: PLC0415

    cluster = with_defaults(options)
    with fields_of(name, command, options) as fields:
        manifests = (
            (jobs.job(cluster, **fields),) if nodes == 1 else jobs.job_over_nodes(cluster, nodes, **fields)
        )
    give(manifests, cluster, options)


_NOT_FIELDS: Final = {"profile", "submit", "when", "context", "format_"}
_PAIRS: Final = {"env": "env", "secret_env": "secret-env", "secret_volumes": "secret-volume"}
"""Fields that are mappings, with their options."""


@contextmanager
def fields_of(name: str, command: list[str] | None, options: dict[str, Any]) -> "Generator[TaskFields]":
    """Yield the given options that are fields of a task; their problems are raised with those of the block,
    which builds the task."""
    from ebbtide.work.errors import Problems  # noqa: PLC0415

    problems = Problems()
    given = {"name": name, "command": command, **options}
    fields = {key: value for key, value in given.items() if key not in _NOT_FIELDS and value is not None}
    for field, option in _PAIRS.items():
        if field in fields:
            fields[field] = pairs_of(option, fields[field], problems)
    if "mounts" in fields:
        fields["mounts"] = _mounts_of(fields["mounts"], problems)
    with problems.collecting():
        yield fields  # pyright: ignore[reportReturnType]  # the options are called as the fields are
    problems.end()


def _mounts_of(given: Iterable[str], problems: "Problems") -> dict[str, str]:
    """Parse `ADDRESS:PATH` of `--mount`."""
    mounts: dict[str, str] = {}
    for text in given:
        address, _, path = text.rpartition(":")
        problems.check(
            "://" in address,
            f"--mount has {text!r}; write ADDRESS:PATH, such as gs://bucket/data:/data.",
        )
        problems.check(address not in mounts, f"--mount has {address} twice.")
        if "://" in address:
            mounts[address] = path
    return mounts


def with_defaults(options: dict[str, Any]) -> "Profile":
    """Complete options with the configured defaults, and the default image; return the profile."""
    from ebbtide.cli.config import complete  # noqa: PLC0415
    from ebbtide.placement import Profile  # noqa: PLC0415

    complete(options)
    cluster = Profile.load(
        options["profile"], namespace=options["namespace"], context=options.get("context", "")
    )
    if not options["image"] and (options["pool"] or options["queue"]):
        options["image"] = cluster.default_image(
            pool=options["pool"], queue=options["queue"], namespace=options["namespace"]
        )
    return cluster


def pairs_of(option: str, given: Iterable[str], problems: "Problems") -> dict[str, str]:
    """Parse `NAME=VALUE` of a repeatable option."""
    pairs: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        # A value is not shown: it may be a secret.
        shown = repr(text) if not equals else "a value without a name"
        problems.check(key and equals, f"--{option} has {shown}; write NAME=VALUE.")
        problems.check(key not in pairs, f"--{option} has {key} twice.")
        if key and equals:
            pairs[key] = value
    return pairs


def give(manifests: Sequence[dict[str, Any]], profile: "Profile", options: dict[str, Any]) -> None:
    """Create a Job and its dependent objects on the cluster, print them, or tell when it would start."""
    from ebbtide.work.errors import WorkloadError  # noqa: PLC0415

    if options["when"]:
        from ebbtide.cli.when import show_when  # noqa: PLC0415

        show_when(manifests[0], profile, options["context"], options["format_"])
        return
    if options["submit"]:
        follow_command.submit(
            *manifests, profile=profile, context=options["context"], format_=options["format_"]
        )
        return
    if options["context"]:
        raise WorkloadError("--context needs --submit or --when: without them, no cluster is used.")
    if options["format_"] is PreviewFormat.JSON:
        document = {"apiVersion": "v1", "kind": "List", "items": manifests}
        write(json.dumps(document, indent=2) + "\n", None)
        return
    import yaml  # noqa: PLC0415

    write(yaml.safe_dump_all(manifests, sort_keys=False), None)
