"""Options of several commands: of those with stacks, with the stack's files, and of those with workloads."""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperOption

from ebbtide.cli.consoles import ExitStatus, say
from ebbtide.values import durations
from ebbtide.values.given_command import GivenCommand, running
from ebbtide.work.errors import WorkloadError

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.operations.engine.backend import Backend
    from ebbtide.operations.engine.stack import Stack as OpenedStack
    from ebbtide.placement import Profile

_DEFAULT: Final = "dev"
_SECRET: Final = ("backend", "env")
"""Parameters whose values may be secret, and are never printed."""
_IN_BACKEND: Final = "Stack name, with its organization if it has one"
ConfigFile = Annotated[
    Path | None, typer.Option(help="File of the stack; by default Pulumi.STACK.yaml beside Pulumi.yaml.")
]
Documents = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="A document about the cluster, as gcloud, az, Terraform or Pulumi writes it, or Kueue's "
        "objects from kubectl; several times for several files. No cloud is read.",
    ),
]
"""Documents about an existing cluster."""
ExistingCluster = Annotated[
    str | None, typer.Option(metavar="NAME", help="The cluster; by default the only one in the files.")
]
ClusterContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Your kubeconfig's context for the cluster: Kueue's objects and the DaemonSets are read there.",
    ),
]
ResourceGroup = Annotated[
    str | None, typer.Option(help="Resource group of the cluster, if several have its name.")
]
PoolsOnly = Annotated[
    bool, typer.Option("--pools-only", help="Declare the pools alone; the cluster stays with its owner.")
]
Out = Annotated[Path | None, typer.Option(help="File to write to instead of standard output.")]
Cwd = Annotated[Path, typer.Option(help="Directory of the project, or one below it.")]
Context = Annotated[str, typer.Option(help="The kubeconfig's context; by default the current one.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Refresh every 5 seconds until Ctrl-C.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]
Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="The namespace; by default the configured one, or the context's."),
]
OptionalProfile = Annotated[
    str,
    typer.Option("--profile", envvar="EBBTIDE_PROFILE", help="The cluster's profile: a file, or the JSON."),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Include workloads of all namespaces.")
]


class Command(TyperCommand):
    """A command that refuses an option that is given twice, of which Typer would keep the last value, and
    keeps what was typed, for the command lines that it prints."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, and keep them as `GivenCommand`.

        Raises:
            BadParameter: an option that takes one value is repeated.
        """
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        typed, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for option in order:
            takes_one = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if takes_one and order.count(option) > 1:
                problem = "takes one value, and is given several times. Write it once."
                raise typer.BadParameter(f"{max(option.opts, key=len)} {problem}")
        rest = super().parse_args(ctx, args)
        name = ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
        words = {item: tuple(_words(item, typed[item.name])) for item in dict.fromkeys(order)}
        is_argument = {item: item.param_type_name == "argument" for item in words}
        ctx.obj = GivenCommand(
            name,
            tuple(word for item, own in words.items() if is_argument[item] for word in own),
            {
                item.name: own
                for item, own in words.items()
                if not is_argument[item] and item.name not in _SECRET
            },
        )
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; one that changes something says after Ctrl-C what has happened."""
        given: GivenCommand = ctx.obj
        with running(given):
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                if given.facts is None:
                    raise
                say(given.interrupted(), err=True)
                raise typer.Exit(ExitStatus.INTERRUPTED) from None


def _words(parameter: Any, typed: Any) -> Iterator[str]:
    """Yield the words of a parameter; an option has its longest name."""
    values: list[str | None] = [*typed] if isinstance(typed, list | tuple) else [typed]
    if parameter.param_type_name == "argument":
        yield from (value for value in values if isinstance(value, str))
    elif parameter.is_flag:
        yield max(parameter.opts if typed else parameter.secondary_opts, key=len)
    else:
        name: str = max(parameter.opts, key=len)
        for value in values:
            yield from (name, str(value))


class PreviewFormat(StrEnum):
    """Output formats of a preview, and of its errors."""

    TEXT = "text"
    JSON = "json"


class ReportFormat(StrEnum):
    """Output formats of the report of a rehearsal or a replay."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


def stack_names(context: typer.Context) -> list[str]:
    """Return the names of the stacks whose files are in the project's directory, for shell completion."""
    from ebbtide.analysis.preview.stack_files import stack_named_by

    files = Path(context.params.get("cwd") or Path()).glob("Pulumi.*.y*ml")
    return sorted(name for path in files if (name := stack_named_by(path)))


def _stack(name: str, default: str) -> Any:
    help_ = f"{name}; by default the one in the name of --config-file, or {default}."
    return typer.Argument(metavar="STACK", help=help_, autocompletion=stack_names)


Stack = Annotated[str | None, _stack("Stack name", _DEFAULT)]
BackendStack = Annotated[str | None, _stack(_IN_BACKEND, _DEFAULT)]
"""A stack in the backend, optionally with an organization."""
SelectedStack = Annotated[str | None, _stack(_IN_BACKEND, "the one that `pulumi stack select` selected")]
"""A stack in the backend, whose default is Pulumi's."""
Format = Annotated[PreviewFormat, typer.Option("--format", help="Text for people, or JSON.")]
FormatOfReport = Annotated[ReportFormat, typer.Option("--format", help="Text, JSON, or an HTML page.")]


def check_namespaces(namespace: str, *, all_namespaces: bool) -> None:
    """Check the options for namespaces, which exclude each other.

    Raises:
        WorkloadError: both are given.
    """
    if namespace and all_namespaces:
        raise WorkloadError("--namespace and --all-namespaces exclude each other: write one of them.")


def available_profile(source: str, namespace: str, context: str) -> "Profile | None":
    """Return the profile of a source, or without a source that of a namespace; None if that has none.

    Raises:
        ProfileError: the source has no usable profile.
    """
    from ebbtide.placement import Profile, ProfileError

    if source:
        return Profile.load(source)
    try:
        return Profile.load(namespace=namespace, context=context)
    except ProfileError:
        return None


def duration(written: str) -> timedelta:
    """Parse an option's duration, such as `90m`.

    Raises:
        BadParameter: it is malformed or negative.
    """
    try:
        length = durations.parse(written)
    except ValueError as error:
        raise typer.BadParameter(f"{written}: {error}, such as 90m or 11h.") from None
    if length < timedelta():
        raise typer.BadParameter(f"{written} is negative.")
    return length


def stack_name(stack: str | None, config_file: Path | None) -> str:
    """Return the given name, by default the one in the file's name, or else dev."""
    from ebbtide.analysis.preview.stack_files import stack_named_by

    return stack or (stack_named_by(config_file) if config_file else None) or _DEFAULT


def stack_files(stack: str | None, config_file: Path | None, cwd: Path) -> "StackFiles":
    """Read the project's files for the selected stack.

    Raises:
        StackFileError: a file is missing, malformed or has the wrong structure.
    """
    from ebbtide.analysis.preview.stack_files import read_stack

    return read_stack(cwd, stack_name(stack, config_file), config_file=config_file)


def opened_stack(name: str, config_file: Path | None, cwd: Path) -> "tuple[StackFiles, Backend, OpenedStack]":
    """Open a stack, whose name may have an organization, in its backend, with the project's files for it.

    Raises:
        StackFileError: a file is missing, malformed or has the wrong structure.
        OperationError: `pulumi` cannot be used, the backend is unreachable, or the stack does not exist.
    """
    from ebbtide.operations.engine.backend import Backend  # loads Pulumi

    files = stack_files(name.rpartition("/")[2], config_file, cwd)
    backend = Backend(files.root)
    return files, backend, backend.opened(name, config_file)
