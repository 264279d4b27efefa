"""The commands for work on a cluster, from its placement profile: `job`, `sweep`, `logs` and `follow`.

They print, and apply nothing unless told to. What they need is imported when they run.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide import follow_command
from ebbtide.follow_command import Context

if TYPE_CHECKING:
    from ebbtide.placement import Profile
    from ebbtide.workloads.sweeps import Value
    from ebbtide.workloads.tasks import TaskFields

ProfileSource = Annotated[
    str,
    typer.Option("--profile", envvar="EBBTIDE_PROFILE", help="The cluster's profile: a file, or the JSON."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The Job's name.")]
Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND]", help="What runs; left out, what the image says.", show_default=False
    ),
]
Image = Annotated[str, typer.Option(help="The container's image.")]
Pool = Annotated[str, typer.Option(help="The pool that it runs on.", show_default=False)]
Queue = Annotated[str, typer.Option(help="The queue that it waits in, instead.", show_default=False)]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", help="Where the Job is. Left out: as kubectl says.", show_default=False
    ),
]
Gpus = Annotated[int, typer.Option(help="Accelerators for each pod.")]
Cpu = Annotated[str, typer.Option(help="CPU that each pod requests: 4, 500m.", show_default=False)]
Memory = Annotated[str, typer.Option(help="Memory of each pod, request and limit: 48Gi.", show_default=False)]
Retries = Annotated[
    int,
    typer.Option(help="How often a failure is tried again, in a sweep each index; disruptions do not count."),
]
FailOn = Annotated[
    list[int] | None, typer.Option(help="An exit code not to try again after; more than once for several.")
]
Ttl = Annotated[str, typer.Option(help="How long the Job stays after its end: 2h, 7d.")]
MaxRun = Annotated[
    str | None,
    typer.Option(help="How long one attempt may run, without the wait for a node.", show_default=False),
]
Env = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An environment variable.", show_default=False)
]
ServiceAccount = Annotated[str, typer.Option(help="The pods' service account.", show_default=False)]
Volume = Annotated[str, typer.Option(help="A claim to mount, for checkpoints.", show_default=False)]
MountPath = Annotated[str, typer.Option(help="Where it is mounted.")]
Submit = Annotated[
    bool,
    typer.Option("--submit", help="Create it on the cluster of your kubeconfig, and follow it to its end."),
]


def job(  # noqa: PLR0913 - one parameter an option
    name: Name,
    command: Command = None,
    *,
    profile: ProfileSource,
    image: Image,
    pool: Pool = "",
    queue: Queue = "",
    namespace: Namespace = "",
    gpus: Gpus = 0,
    cpu: Cpu = "",
    memory: Memory = "",
    retries: Retries = 3,
    fail_on: FailOn = None,
    ttl: Ttl = "1d",
    max_run: MaxRun = None,
    env: Env = None,
    service_account: ServiceAccount = "",
    volume: Volume = "",
    mount_path: MountPath = "/checkpoints",
    submit: Submit = False,
    context: Context = "",
) -> None:
    """Print the manifest of a Job on a pool or in a queue, for `kubectl apply -f -`.

    A disruption uses no retry, and a chosen exit code fails the Job at once. With --submit, exit status 1
    says that the Job failed.
    """
    fields = _fields(locals())
    from ebbtide.workloads.jobs import job as made  # noqa: PLC0415

    cluster = _profile(profile)
    _give(made(cluster, **fields), cluster, submit=submit, context=context)


def sweep(  # noqa: PLR0913 - one parameter an option
    name: Name,
    command: Command = None,
    *,
    profile: ProfileSource,
    image: Image,
    axes: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE,VALUE", help="A parameter, with its values.")
    ],
    parallelism: Annotated[
        int | None, typer.Option(help="How many run at once; left out, all.", show_default=False)
    ] = None,
    max_failed: Annotated[
        int | None, typer.Option(help="How many may fail before the rest is given up.", show_default=False)
    ] = None,
    pool: Pool = "",
    queue: Queue = "",
    namespace: Namespace = "",
    gpus: Gpus = 0,
    cpu: Cpu = "",
    memory: Memory = "",
    retries: Retries = 3,
    fail_on: FailOn = None,
    ttl: Ttl = "1d",
    max_run: MaxRun = None,
    env: Env = None,
    service_account: ServiceAccount = "",
    volume: Volume = "",
    mount_path: MountPath = "/checkpoints",
    submit: Submit = False,
    context: Context = "",
) -> None:
    """Print the manifest of a sweep: one Indexed Job, a run for each point of the grid.

    A run reads its parameters with `ebbtide.workloads.sweeps.parameters()`, or from the variables
    EBBTIDE_SWEEP (a JSON list) and JOB_COMPLETION_INDEX. With --submit, exit status 1 says that it failed.
    """
    fields = _fields(locals())
    from ebbtide.workloads.sweeps import sweep as made  # noqa: PLC0415

    grid = {key: [_value(text) for text in values.split(",")] for key, values in _pairs("set", axes).items()}
    cluster = _profile(profile)
    manifest = made(cluster, grid, parallelism=parallelism, max_failed=max_failed, **fields)
    _give(manifest, cluster, submit=submit, context=context)


def logs(
    *,
    profile: ProfileSource,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the pods were.")],
    pod: Annotated[str, typer.Option(help="One pod.", show_default=False)] = "",
    job: Annotated[str, typer.Option(help="Every pod of a Job or a sweep.", show_default=False)] = "",
    label: Annotated[
        str, typer.Option(metavar="KEY=VALUE", help="Every pod with a label.", show_default=False)
    ] = "",
    workspace: Annotated[
        str, typer.Option(help="On AKS: resource id of the Log Analytics workspace.", show_default=False)
    ] = "",
) -> None:
    """Print the link to the logs of pods that may be gone, and the query behind it."""
    from ebbtide.workloads.logs import log_link, log_query  # noqa: PLC0415

    cluster = _profile(profile)
    query = log_query(cluster, namespace=namespace, pod=pod, job=job, label=label)
    link = log_link(cluster, namespace=namespace, pod=pod, job=job, label=label, workspace=workspace)
    typer.echo("\n\n".join(filter(None, (link, query))))


COMMANDS: Final[tuple[Callable[..., None], ...]] = (job, sweep, logs, follow_command.follow)

_OF_COMMANDS = {"profile", "axes", "parallelism", "max_failed", "submit", "context"}


def _fields(given: dict[str, Any]) -> "TaskFields":
    """The parameters of a command that are a task's fields. What is None was not given."""
    fields = {key: value for key, value in given.items() if key not in _OF_COMMANDS and value is not None}
    if "env" in fields:
        fields["env"] = _pairs("env", fields["env"])
    return fields  # pyright: ignore[reportReturnType]  # the parameters are called as the fields are


def _profile(source: str) -> "Profile":
    from ebbtide.placement import Profile  # noqa: PLC0415

    return Profile.load(source)


def _pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    from ebbtide.workloads.errors import Problems  # noqa: PLC0415

    problems = Problems()
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        problems.check(key and equals, f"--{option} has {text!r}; write a name, =, and what it is.")
        problems.check(key not in found, f"--{option} has {key} twice.")
        found[key] = value
    problems.end()
    return found


def _value(text: str) -> "Value":
    """A number, true or false where it reads as one, and else the text."""
    import json  # noqa: PLC0415

    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, int | float) else text


def _give(manifest: dict[str, Any], profile: "Profile", *, submit: bool, context: str) -> None:
    """Hand a Job to the cluster, or print it."""
    from ebbtide.workloads.errors import WorkloadError  # noqa: PLC0415

    if submit:
        follow_command.submit(manifest, profile, context)
        return
    if context:
        raise WorkloadError("--context says where --submit creates the Job: without it, nothing is created.")
    import yaml  # noqa: PLC0415

    typer.echo(yaml.safe_dump(manifest, sort_keys=False), nl=False)
