"""The `adopt` command. Its dependencies are imported on execution."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, console, screen, write
from ebbtide.cli.options import (
    BackendStack,
    ClusterContext,
    ConfigFile,
    Cwd,
    Documents,
    ExistingCluster,
    Format,
    Out,
    PoolsOnly,
    PreviewFormat,
    ResourceGroup,
    opened_stack,
    stack_name,
)
from ebbtide.cli.up import confirmed
from ebbtide.text import and_list, several
from ebbtide.values.given_command import given_command

if TYPE_CHECKING:
    from rich.console import Console

    from ebbtide.operations.adopting.steps import Adopted


def adopt(  # noqa: PLR0913 - all but the stack are options
    stack: BackendStack = None,
    *,
    from_: Documents = None,
    cluster: ExistingCluster = None,
    context: ClusterContext = None,
    project: Annotated[
        str | None, typer.Option(help="Google Cloud project in which the cluster is read.")
    ] = None,
    subscription: Annotated[
        str | None, typer.Option(help="Azure subscription in which the cluster is read.")
    ] = None,
    resource_group: ResourceGroup = None,
    location: Annotated[
        str | None, typer.Option(help="Zone or region of the cluster, if several have its name.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="Owner in the declaration; by default the project or subscription.")
    ] = None,
    pools_only: PoolsOnly = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the declaration in an existing file of the stack.")
    ] = False,
    into_state: Annotated[
        bool, typer.Option("--into-state", help="Import what the declaration adopts into the stack's state.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take what was adopted out of the stack's state again.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Skip the confirmation of --into-state and --undo.")
    ] = False,
    format_: Format = PreviewFormat.TEXT,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Declare a cluster that exists, without changing it.

    It reads the cluster with your credentials, or from files without any; writes Pulumi.STACK.yaml and the
    file of the resources that the stack imports; and proves the declaration by going forward: recorded, it
    has the same inputs, or the difference is listed. What would be replaced is left out.

    Later, --into-state imports these resources with your own `pulumi`, and --undo takes them out of the state
    again, and restores Kueue's objects as they were. Interrupted, run it again. Exit status 1: you did not
    confirm, or the engine failed.
    """
    if into_state or undo:
        _check_alone("undo" if undo else "into_state")
        _change_state(stack, config_file, cwd, undo=undo, yes=yes)
        return
    given = given_command()
    name = stack_name(stack, None)
    given.begin(name)
    from ebbtide.analysis.preview.stack_files import project_path
    from ebbtide.operations.adopting.steps import Request, find, prove, write_files

    request = Request(
        stack=name,
        root=project_path(cwd).parent,
        files=tuple(from_ or ()),
        cluster=cluster,
        context=context,
        location=location,
        project=project,
        subscription=subscription,
        resource_group=resource_group,
        owner=owner,
        pools_only=pools_only,
        overwrite=overwrite,
    )
    adopted = prove(request, find(request))
    given.happens(f"the files of stack {request.stack} are being written")
    given.options = {**given.options, "overwrite": ("--overwrite",)}  # what exists from now on is this one's
    written = write_files(request, adopted)
    names = " and ".join(path.name for path in written)
    given.finished(f"{names} are written", of=("adopt",))
    if format_ is PreviewFormat.JSON:
        write(adopted.report(written).model_dump_json(indent=2) + "\n", out)
        return
    with screen(out) as output:
        show(adopted, output)
        output.print(f"Written: {names}. Nothing in the cloud has changed.", soft_wrap=True)
        output.print(
            "See the changes of the first update: " + given.on_stack("preview", request.stack),
            soft_wrap=True,
            markup=False,
        )


def _check_alone(option: str) -> None:
    """Refuse options that a change of the state ignores.

    Raises:
        AdoptionError: some are given.
    """
    others = {**given_command().options}
    name, *_ = others.pop(option)
    if ignored := [words[0] for key, words in others.items() if key not in ("yes", "config_file", "cwd")]:
        from ebbtide.operations.adopting.found import AdoptionError

        raise AdoptionError(
            f"{name} reads no cluster and prints no document: it takes the stack's files. Omit "
            f"{and_list(ignored)}."
        )


def _change_state(stack: str | None, config_file: Path | None, cwd: Path, *, undo: bool, yes: bool) -> None:
    """Take the adopted resources into the state, or out of it."""
    name = stack_name(stack, config_file)
    given_command().begin(name)
    from ebbtide.operations.adopting.resources import import_resources, remove_resources
    from ebbtide.operations.update.up import Update

    files, backend, opened = opened_stack(name, config_file, cwd)
    update = Update(opened, files, console(sys.stdout))

    def ask(question: str) -> bool:
        return confirmed(question, yes=yes)

    done = remove_resources(update, ask) if undo else import_resources(update, ask, backend.exported_by_all)
    if not done:
        raise typer.Exit(ExitStatus.FOUND)


def show(adopted: "Adopted", output: "Console") -> None:
    """Print the table of fields, and what follows from the adoption."""
    from ebbtide.analysis.preview.fitted_table import plain_table
    from ebbtide.operations.adopting.found import STATUSES

    adoption = adopted.adoption
    output.print(f"{adopted.cluster} in {adopted.place}", soft_wrap=True)
    counted = [heading.upper() for heading in ("read", *STATUSES)]
    table = plain_table("RESOURCE", *counted, right=counted)
    for name, counts in adoption.counts().items():
        table.add_row(name, *map(str, counts))
    output.print(table)
    for heading, lines in _sections(adopted):
        output.print()
        output.print(heading, soft_wrap=True)
        for line in lines:
            output.print(f"  {line}", soft_wrap=True, markup=False)
    output.print()


def _sections(adopted: "Adopted") -> Iterator[tuple[str, list[str]]]:
    from ebbtide.operations.adopting.found import LEFT, shown

    adoption = adopted.adoption
    left = [
        f"{row.resource}: {row.path} is {shown(row.value)}. {row.reason}"
        for row in adoption.fields
        if row.status == LEFT
    ]
    updates, recreating = (
        [
            f"{row.resource}: {row.path} from {shown(row.old)} to {shown(row.new)}"
            + (f": {row.reason}" if row.reason else "")
            for row in adoption.updates
            if row.recreates == recreates
        ]
        for recreates in (False, True)
    )
    created = [f"{name} ({token.rpartition(':')[2]})" for token, name in adoption.created]
    queues = adopted.queues
    differences = queues.differences if queues else ()
    objects = [
        f"{item.name} {item.path}: {shown(item.found)}, declared {shown(item.declared)}. {item.reason}"
        for item in differences
    ]
    left_out = (*adoption.left_out, *(queues.left if queues else ()))
    parts = [f"{part.name}: {part.reason}" for part in left_out]
    unread = sum(adoption.output_only.values())
    yield from (
        (heading, lines)
        for heading, lines in (
            ("Not adopted", parts),
            ("Left as they are, without a word in the declaration", left),
            ("Nodes recreated by the first update, a few at a time, evicting their pods", recreating),
            ("Changed in place by the first update", updates),
            ("Differences of Kueue's objects", objects),
            ("Drivers and device plugins of others", list(adopted.drivers)),
            ("Created by the import or the first update", created),
            (
                "Accepted violations of the policy, under exceptions in ebbtide:policy",
                [f"{item['resource']}: {item['rule']}" for item in adopted.exceptions],
            ),
            (
                f"Not counted: {several(unread, 'attribute')} that no program sets, such as status and links",
                [],
            ),
        )
        if lines or heading.startswith("Not counted")
    )
