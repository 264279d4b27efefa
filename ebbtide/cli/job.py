"""The `job` command, which prints a manifest, and the options that it shares with other commands.

Only --submit creates objects. Dependencies are imported on execution.
"""

import dataclasses
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

import typer

from ebbtide.cli import follow as follow_command
from ebbtide.cli.config import complete
from ebbtide.cli.consoles import write, write_json
from ebbtide.cli.options import Context, Format, PreviewFormat
from ebbtide.cli.replay import show_when
from ebbtide.clients.kubernetes import Api
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.tasks import Task

if TYPE_CHECKING:
    from ebbtide.placement import Profile

_PROFILE: Final = "EBBTIDE_PROFILE"

ProfileSource = Annotated[
    str,
    typer.Option(
        "--profile",
        envvar=_PROFILE,
        help="The cluster's profile: a file, or the JSON; by default the namespace's own.",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The Job's name.")]
CommandWords = Annotated[
    list[str] | None, typer.Argument(metavar="[-- COMMAND]", help="The command; by default the image's.")
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
_NOT_FIELDS: Final = {"profile", "submit", "when", "context", "format_"}
_PAIRS: Final = {"env": "env", "secret_env": "secret-env", "secret_volumes": "secret-volume"}
"""Fields that are mappings, with their options."""


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
    from ebbtide.placement import Profile, ProfileError

    source = context.params.get("profile") or os.environ.get(_PROFILE)
    try:
        return [Profile.load(source)] if source else []
    except ProfileError:
        return []


def _task_options() -> Iterator[Parameter]:
    """Yield the options of a task, from its fields: a list or a mapping is a repeatable option."""
    completions = {"pool": _pools, "queue": _queues}
    for item in dataclasses.fields(Task):
        if "help" not in item.metadata:
            continue
        of, default = item.type, "" if item.default is dataclasses.MISSING else item.default
        if get_origin(of) in (Mapping, Sequence):
            of, default = (list[int] if of == Sequence[int] else list[str]) | None, None
        elif timedelta in get_args(of):
            of = str | None if default is None else str
        info = typer.Option(
            *item.metadata["names"],
            help=item.metadata["help"],
            metavar=item.metadata["metavar"],
            autocompletion=completions.get(item.name),
            show_default=bool(default),
        )
        yield Parameter(item.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, info])  # pyrefly: ignore[not-a-type] # made while running


def _shared_options() -> Iterator[Parameter]:
    """Yield the options of every command that creates a Job; those of a task have the names of its fields."""

    def option(name: str, of: object, default: object) -> Parameter:
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=of)

    yield option("profile", ProfileSource, "")
    yield from _task_options()
    yield option("submit", Submit, default=False)
    yield option("when", When, default=False)
    yield option("context", Context, "")
    yield option("format_", Format, PreviewFormat.TEXT)


def with_shared_options(
    command: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[..., None]:
    """Replace a command's `**options` with the shared options, for Typer.

    Args:
        without: names of shared options that it does not have.
    """
    own = [item for item in signature(command).parameters.values() if item.kind is not Parameter.VAR_KEYWORD]
    shared = [item for item in _shared_options() if item.name not in without]
    command.__signature__ = Signature([*own, *shared])  # pyright: ignore[reportFunctionMemberAccess]  # PEP 362's
    return command


@with_shared_options
def job(
    name: Name,
    command: CommandWords = None,
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
    from ebbtide.work import jobs

    cluster = with_defaults(options)
    with fields_of(name, command, options) as fields:
        manifests = (
            (jobs.job(cluster, **fields),) if nodes == 1 else jobs.job_over_nodes(cluster, nodes, **fields)
        )
    give(manifests, cluster, options)


@contextmanager
def fields_of(name: str, command: list[str] | None, options: dict[str, Any]) -> Generator[dict[str, Any]]:
    """Yield the given options that are fields of a task; their problems are raised with those of the block,
    which builds the task."""
    problems = Problems()
    given = {"name": name, "command": command, **options}
    fields = {key: value for key, value in given.items() if key not in _NOT_FIELDS and value is not None}
    for field, option in _PAIRS.items():
        if field in fields:
            fields[field] = pairs_of(option, fields[field], problems)
    if "mounts" in fields:
        fields["mounts"] = _mounts_of(fields["mounts"], problems)
    with problems.collecting():
        yield fields
    problems.end()


def _mounts_of(given: Iterable[str], problems: Problems) -> dict[str, str]:
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
    from ebbtide.placement import Profile

    complete(options)
    cluster = Profile.load(
        options["profile"], namespace=options["namespace"], context=options.get("context", "")
    )
    if not options["image"] and (options["pool"] or options["queue"]):
        options["image"] = cluster.default_image(
            pool=options["pool"], queue=options["queue"], namespace=options["namespace"]
        )
    return cluster


def pairs_of(option: str, given: Iterable[str], problems: Problems) -> dict[str, str]:
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
    if options["when"] or options["submit"]:
        api = Api.of_user(options["context"])
        if options["when"]:
            show_when(api, manifests[0], profile, options["format_"])
        else:
            follow_command.submit(api, *manifests, profile=profile, format_=options["format_"])
        return
    if options["context"]:
        raise WorkloadError("--context needs --submit or --when: without them, no cluster is used.")
    if options["format_"] is PreviewFormat.JSON:
        write_json({"apiVersion": "v1", "kind": "List", "items": manifests})
        return
    import yaml

    write(yaml.safe_dump_all(manifests, sort_keys=False), None)
