"""The `run` and `sweep` commands. Dependencies are imported on execution."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide.cli import follow as follow_command
from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import ExitStatus, say
from ebbtide.cli.job import CommandWords, Name, fields_of, give, pairs_of, with_defaults, with_shared_options
from ebbtide.cli.options import Command, PreviewFormat
from ebbtide.cli.replay import show_when
from ebbtide.clients.kubernetes import Api, KubeconfigError
from ebbtide.text import several
from ebbtide.values.given_command import given_command
from ebbtide.values.user_files import parse_json
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.tasks import CodeIn

if TYPE_CHECKING:
    from ebbtide.clients.kubernetes.objects import Object
    from ebbtide.placement import Profile
    from ebbtide.work.runs.folder import Folder
    from ebbtide.work.runs.run import Plan
    from ebbtide.work.sweeps import Value

CodeInOption = Annotated[
    CodeIn | None,
    typer.Option(
        envvar="EBBTIDE_CODE_IN",
        help="Storage of the code; by default a layer on the image if the team has a registry, else a "
        "ConfigMap, or for much code the team's bucket.",
    ),
]
UNRECORDED: Final = {"profile", "when", "context", "format_", "env", "secret_env", "secret_volumes", "setup"}
"""Options that the annotation with the parameters omits."""
Setup = Annotated[
    str, typer.Option(metavar="COMMANDS", help="Shell commands in the folder before the command.")
]
Code = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the code.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Delete an existing Job of that name, with its pods.")
]


class RunCommand(Command):
    """A command line `[NAME] [OPTIONS] -- COMMAND`: without a name, the first word of COMMAND is none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before the dashes; the others are the command."""
        dashes = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:dashes])
        if words := ctx.params.get("command"):
            raise typer.BadParameter(
                f"{' '.join(words)} is not an option. Write the command last, after dashes: -- "
                f"{' '.join(words)}"
            )
        ctx.params["command"] = args[dashes + 1 :]
        if not ctx.resilient_parsing:
            ctx.obj.arguments += ("--", *args[dashes + 1 :])
        return rest


@partial(with_shared_options, without=("submit",))
def run(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The Job's name; by default the folder's, with a suffix.")
    ] = "",
    command: CommandWords = None,
    *,
    code: Code = Path(),
    code_in: CodeInOption = None,
    setup: Setup = "",
    nodes: Annotated[
        int, typer.Option(help="Pods of the Job, each with its rank and the address of the first.")
    ] = 1,
    replace: Replace = False,
    **options: Any,
) -> None:
    """Run a command with the code of a folder.

    The Job's pods have the folder's files in /code, without those that .dockerignore or .gitignore exclude.
    They are a layer on the image if the namespace's team has a registry, else a ConfigMap, or for more than
    700 kB an archive in the team's bucket. CPU and memory default to the part of a node that belongs to the
    requested accelerators. The logs are printed until the Job ends; Ctrl-C leaves it running. Exit status 1:
    the Job failed.
    """
    from ebbtide.work.jobs import job_over_nodes

    def build(profile: "Profile", **task: Any) -> "Sequence[Object]":
        return job_over_nodes(profile, nodes, **task)

    create(
        name,
        command,
        options,
        code=code,
        code_in=code_in,
        setup=setup,
        replace=replace,
        build=build if nodes != 1 else None,
    )


def create(
    name: str,
    command: list[str] | None,
    options: dict[str, Any],
    *,
    code: Path,
    code_in: CodeIn | None,
    setup: str,
    replace: bool,
    build: "Callable[..., Sequence[Object]] | None" = None,
) -> None:
    """Create a run of a folder's code, and follow it to its end with its logs.

    Args:
        name: name of the Job; empty for the folder's with a suffix.
        options: the shared options.
        code_in: storage of the code.
        setup: commands of the shell before the command.
        replace: whether an existing Job of that name is deleted.
        build: function that returns the Job for a profile and a task's fields, and its Services; default: an
            ordinary Job.
    """
    from ebbtide.placement import ProfileError
    from ebbtide.work.runs import run as runs
    from ebbtide.work.runs.folder import read_folder, size_text
    from ebbtide.work.runs.run import user_of

    cluster = folder = api = None
    user = ""
    plans: list[Plan] = []
    problems = Problems()
    with problems.collecting():
        folder = read_folder(code)
    with problems.collecting(ProfileError, KubeconfigError):
        cluster = with_defaults(options)
        api = Api.of_user(options["context"])
        user = user_of(api)
        if not options["queue"]:
            options["namespace"] = namespace_of(api, options["namespace"])
    parameters = {key: value for key, value in options.items() if value and key not in UNRECORDED}
    with problems.collecting(), fields_of(name, command, options) as fields:
        if cluster and folder:
            more: dict[str, Any] = {"build": build, "setup": setup, "code_in": code_in, **fields}
            plans.append(runs.plan(cluster, folder, user, parameters, **more))
    problems.end()
    assert cluster and folder and api  # noqa: S101, PT018 - their absence is a problem
    (made,) = plans
    if options["when"]:
        show_when(api, made.job, cluster, options["format_"])
        return
    namespace = made.job["metadata"].get("namespace") or api.namespace
    earlier = runs.check(api, made, namespace, replace=replace)
    ends = confirm_end(earlier, user, namespace) if earlier is not None else ""
    notes = [
        *([ends] if ends else []),
        f"Code: {several(len(folder.files), 'file')}, {size_text(folder.size)}, of {folder.root}",
        *(
            f"{path} is an absolute link, or one to outside of the folder, and is not copied to the Job."
            for path in folder.skipped
        ),
    ]
    manifest, note = with_code(made, api, cluster, namespace, folder, options)
    notes += [note] if note else []
    follow_command.submit(
        api,
        manifest,
        *made.dependents,
        earlier=earlier,
        profile=cluster,
        format_=options["format_"],
        logs=True,
        notes=notes,
    )


def confirm_end(earlier: "Object", user: str, namespace: str) -> str:
    """Ask before a running Job is replaced; without a terminal only a user's own is.

    Returns:
        What to report once it is replaced; empty if it had ended, or the user was asked.

    Raises:
        Exit: the user declined; nothing was changed.
        WorkloadError: it is another user's, and there is no terminal to ask.
    """
    from ebbtide.clients.kubernetes.objects import condition
    from ebbtide.work.evidence import owner_of

    if condition(earlier, "Complete") or condition(earlier, "Failed"):
        return ""
    name, owner = earlier["metadata"]["name"], owner_of(earlier)
    whose = "yours" if owner == user else f"that of {owner}"
    active = earlier.get("status", {}).get("active", 0)
    job = f"Job {name} in namespace {namespace} has not ended, with {several(active, 'pod')}, and is {whose}"
    if sys.stdin.isatty():
        if not typer.confirm(f"{job}. End it?"):
            raise typer.Exit(ExitStatus.FOUND)
        return ""
    if owner != user:
        cancel = given_command().on_job("cancel", name, namespace)
        raise WorkloadError(
            f"Nothing was changed: {job}, and there is no terminal to confirm its end. Write another name, "
            f"or end it first with: {cancel}"
        )
    return f"The earlier Job {name}, yours, had not ended, with {several(active, 'pod')}: it is replaced."


def with_code(
    made: "Plan", api: Api, cluster: "Profile", namespace: str, folder: "Folder", options: dict[str, Any]
) -> "tuple[Object, str]":
    """Upload the code of a run and report copied layers of its base image; return the Job, and a line."""
    from ebbtide.work.runs.code import check_destination, uploaded
    from ebbtide.work.runs.folder import size_text

    check_destination(api, cluster, namespace)
    lacks = (
        f"{made.storage.address} does not have the layers of {options['image']} yet; they are copied once: "
    )

    def report(copied: int, total: int) -> None:
        text = f"{'' if copied else lacks}{size_text(copied)} of {size_text(total)}"
        say(text, err=options.get("format_") is PreviewFormat.JSON)

    chosen = {key: options[key] or "" for key in ("pool", "queue", "namespace")}
    try:
        return uploaded(made.job, cluster, made.storage, folder, chosen, report)
    except KeyboardInterrupt:
        say("Interrupted before a Job was created. What was uploaded is kept and not sent again.", err=True)
        raise SystemExit(ExitStatus.INTERRUPTED) from None


@with_shared_options
def sweep(  # noqa: PLR0913 - one parameter an option
    name: Name,
    command: CommandWords = None,
    *,
    axes: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE,VALUE", help="A parameter, with its values.")
    ],
    parallelism: Annotated[int | None, typer.Option(help="Indexes that run at once; by default all.")] = None,
    max_failed: Annotated[int | None, typer.Option(help="Failed indexes that end the sweep.")] = None,
    code: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Create it with the code of a folder and follow its logs, as `run` does: no manifest is "
            "printed.",
        ),
    ] = None,
    code_in: CodeInOption = None,
    setup: Setup = "",
    replace: Replace = False,
    **options: Any,
) -> None:
    """Print the manifest of a sweep over parameters: an Indexed Job.

    One index runs for each point of the grid. It reads its parameters with
    `ebbtide.work.sweeps.parameters()`, or from the variables EBBTIDE_SWEEP (a JSON list) and
    JOB_COMPLETION_INDEX. With --code or --submit, it is created and followed instead of printed, and exit
    status 1 says that it failed.
    """
    from ebbtide.work.sweeps import sweep as made

    problems = Problems()
    pairs = pairs_of("set", axes, problems)
    problems.end()
    grid = {key: [_value(text) for text in values.split(",")] for key, values in pairs.items()}

    def build(profile: "Profile", **task: Any) -> "Sequence[Object]":
        return (made(profile, grid, parallelism=parallelism, max_failed=max_failed, **task),)

    if code is not None:
        create(name, command, options, code=code, code_in=code_in, setup=setup, replace=replace, build=build)
        return
    for option, value in (("--code-in", code_in), ("--setup", setup), ("--replace", replace)):
        if value:
            raise WorkloadError(f"{option} needs the folder of the code: --code DIR.")
    cluster = with_defaults(options)
    with fields_of(name, command, options) as fields:
        manifests = build(cluster, **fields)
    give(manifests, cluster, options)


def _value(text: str) -> "Value":
    """Parse a number, true or false; return any other text as it is."""
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text
