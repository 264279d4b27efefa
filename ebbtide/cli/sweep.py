"""The `sweep` command. Dependencies are imported on execution."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.job import (
    CommandWords,
    Name,
    fields_of,
    give,
    pairs_of,
    with_defaults,
    with_shared_options,
)
from ebbtide.cli.run import CodeInOption, Replace, Setup, create

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ebbtide.clients.kubernetes.objects import Object
    from ebbtide.placement import Profile
    from ebbtide.work.sweeps import Value


@with_shared_options
def sweep(  # noqa: PLR0913 - one parameter an option
    name: Name,
    command: CommandWords = None,
    *,
    axes: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE,VALUE", help="A parameter, with its values.")
    ],
    parallelism: Annotated[
        int | None, typer.Option(help="Indexes that run at once; by default all.", show_default=False)
    ] = None,
    max_failed: Annotated[
        int | None, typer.Option(help="Failed indexes that end the sweep.", show_default=False)
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Create it with the code of a folder and follow its logs, as `run` does: no manifest is "
            "printed.",
            show_default=False,
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
    from ebbtide.work.errors import Problems, WorkloadError  # noqa: PLC0415
    from ebbtide.work.sweeps import sweep as made  # noqa: PLC0415

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
    from ebbtide.values.user_files import parse_json  # noqa: PLC0415

    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text
