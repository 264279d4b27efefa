"""The command line. What a command needs is imported when it runs, so that `--help` answers at once.

Exit status: 0 done; 1 done, and something was found; 2 the declaration or the call is wrong; 3 a fault of
Ebbtide's own. Errors go to standard error as sentences.
"""

import contextlib
import gc
import sys
import warnings
from collections.abc import Generator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide import workload_commands
from ebbtide.consoles import console
from ebbtide.destroy_command import destroy
from ebbtide.rehearse_command import rehearse
from ebbtide.stack_options import ConfigFile, Cwd, Stack, stack_files

if TYPE_CHECKING:
    from ebbtide.preview.report import Preview

FOUND = 1
WRONG = 2
BROKEN = 3

app = typer.Typer(
    name="ebbtide",
    help="ML clusters on GKE and AKS, declared once. Nothing here needs a cloud unless it says so.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class PreviewFormat(StrEnum):
    """In what form a preview is written."""

    TEXT = "text"
    JSON = "json"


Out = Annotated[
    Path | None, typer.Option(help="A file to write to, in place of standard output.", show_default=False)
]


@app.command()
def preview(
    stack: Stack = None,
    *,
    format_: Annotated[
        PreviewFormat, typer.Option("--format", help="Text for people, or the JSON document.")
    ] = PreviewFormat.TEXT,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Show what a stack would create, without a cloud, credentials or the pulumi command.

    The project's real program runs in this process. What a cloud would answer is assumed, and marked as such.
    Exit status 1 says that the program logged an error.
    """
    with _sentences():
        from ebbtide.preview.report import preview_of  # noqa: PLC0415
        from ebbtide.recording import lazy_packages  # noqa: PLC0415
        from ebbtide.recording.record import record  # noqa: PLC0415 - loads Pulumi

        lazy_packages.install()
        files = stack_files(stack, config_file, cwd)
        recording = record(
            files.program,
            project=files.project,
            stack=files.stack,
            config=files.config,
            secret_keys=files.secret_keys,
            root=files.root,
        )
        document = preview_of(recording, files.warnings)
        if format_ is PreviewFormat.JSON:
            _write(document.model_dump_json(indent=2) + "\n", out)
        else:
            _write_text(document, out)
    if any(message.severity == "error" for message in document.warnings):
        raise typer.Exit(FOUND)


@app.command()
def schema(
    *,
    of_preview: Annotated[
        bool, typer.Option("--preview", help="Of the preview's JSON document, not of the declaration.")
    ] = False,
    out: Out = None,
) -> None:
    """Print a JSON Schema: of the declaration, for editors, or of the preview's document."""
    import json  # noqa: PLC0415

    with _sentences():
        if of_preview:
            from ebbtide.preview.report import preview_schema  # noqa: PLC0415

            document = preview_schema()
        else:
            from ebbtide.model import declaration_schema  # noqa: PLC0415

            document = declaration_schema()
        _write(json.dumps(document, indent=2) + "\n", out)


@app.command()
def profile(
    stack: Stack = None, *, out: Out = None, config_file: ConfigFile = None, cwd: Cwd = Path()
) -> None:
    """Write a stack's placement profile, which is all that workloads need to know of it.

    It follows from the declaration alone; the stack's output `placementProfile` is the same.
    """
    with _sentences():
        from ebbtide.model import declare  # noqa: PLC0415
        from ebbtide.placement.derive import profile as derived  # noqa: PLC0415

        files = stack_files(stack, config_file, cwd)
        cluster = declare(files.declaration(), default_name=files.cluster_name)
        _write(derived(cluster).json() + "\n", out)


@contextlib.contextmanager
def _sentences() -> Generator[None]:
    """Turn what is wrong with a declaration or a call into sentences and exit status 2."""
    from ebbtide.complaints import complaint, own_fault  # noqa: PLC0415

    with warnings.catch_warnings():
        if not sys.warnoptions:
            # Pulumi's providers warn of their own deprecations, in Python's form and again as messages.
            warnings.simplefilter("ignore")
        try:
            yield
        except typer.Exit:
            raise
        except Exception as error:  # noqa: BLE001 - nobody is shown a traceback
            text = complaint(error)
            typer.echo(text or own_fault(error), err=True)
            raise typer.Exit(WRONG if text else BROKEN) from None


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


def _write_text(document: "Preview", out: Path | None) -> None:
    """The preview as text: in colour for a terminal, plain for a pipe or a file."""
    from ebbtide.preview.render import render  # noqa: PLC0415

    if out is None:
        render(document, console(sys.stdout))
        return
    with out.open("w", encoding="utf-8") as file:
        render(document, console(file, plain=True))


for _command in (*workload_commands.COMMANDS, rehearse, destroy):
    app.command()(_sentences()(_command))

_GC_THRESHOLD = 500_000


def main() -> None:
    """Run the command line."""
    # Importing a provider makes a million objects that stay: at Python's own threshold, looking for garbage
    # among them took a quarter of a preview's time, and once more at the end a third.
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
    try:
        app()
    finally:
        gc.freeze()
