"""The `preview` command. Its dependencies are imported on execution."""

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, screen, write
from ebbtide.cli.options import ConfigFile, Cwd, Out, PreviewFormat, Stack, stack_files


def preview(
    stack: Stack = None,
    *,
    format_: Annotated[
        PreviewFormat, typer.Option("--format", help="Text for people, or JSON.")
    ] = PreviewFormat.TEXT,
    tree: Annotated[bool, typer.Option("--tree", help="Show all resources.")] = False,
    values: Annotated[
        bool, typer.Option("--values", help="Show all resources with their inputs, and taints of pools.")
    ] = False,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Show a stack's pools, cost and quotas, without a cloud.

    The project's own program runs in this process, without credentials and without the `pulumi` command.
    Values that only a cloud knows are assumed, and marked as such. Exit status 1: the program logged an
    error, the stack breaks a mandatory rule of its policy, or a stack that extends its file is invalid.
    """
    from ebbtide.analysis.preview.build_report import preview_of  # noqa: PLC0415
    from ebbtide.analysis.preview.stack_files import record_stack  # noqa: PLC0415 - loads Pulumi
    from ebbtide.cli.error_output import extension_errors  # noqa: PLC0415

    files = stack_files(stack, config_file, cwd)
    policy = files.policy()
    declaration = files.source.declaration if files.source else None
    with files.prices():
        recording, errors = record_stack(files), extension_errors(files)
        document = preview_of(recording, files.warnings, policy, declaration=declaration, errors=errors)
    if format_ is PreviewFormat.JSON:
        write(document.model_dump_json(indent=2) + "\n", out)
    else:
        from ebbtide.analysis.preview.render import render  # noqa: PLC0415

        with screen(out) as output:
            render(document, output, tree=tree, values=values)
    is_refused = any(finding.is_refused for finding in document.findings)
    if is_refused or any(message.severity == "error" for message in document.warnings):
        raise typer.Exit(ExitStatus.FOUND)
