"""Command lines in messages, quoted so that they run as printed in the user's shell."""

import shlex
import shutil
import sys
import sysconfig
from pathlib import Path


def command_line(*arguments: str) -> str:
    """Return the command line that runs this installation's `ebbtide` with these arguments.

    The bare name `ebbtide` is printed only if PATH resolves it to this environment's script.
    """
    script = Path(sysconfig.get_path("scripts"), "ebbtide")
    if not script.is_file():
        return shlex.join([_relative(Path(sys.executable)), "-m", "ebbtide", *arguments])
    installed = shutil.which("ebbtide")
    first = "ebbtide" if installed and Path(installed).samefile(script) else _relative(script)
    return shlex.join([first, *arguments])


def pip_install(*extras: str) -> str:
    """Return the command line that adds extras of Ebbtide to this environment.

    pip reads the extras of an installed package from its metadata, without an index lookup of the package
    (tested with pip 23.2.1, 2026-11), so no release is required. A checkout that is not installed is
    installed by its path.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - takes 20 ms

    listed = ",".join(extras)
    try:
        distribution("ebbtide")
        package = [f"ebbtide[{listed}]"]
    except PackageNotFoundError:
        package = ["-e", f"{Path(__file__).parents[1]}[{listed}]"]
    return shlex.join([_relative(Path(sys.executable)), "-m", "pip", "install", *package])


def _relative(path: Path) -> str:
    """Return a path below the working directory as a relative path."""
    working_directory = Path.cwd()
    return str(path.relative_to(working_directory) if path.is_relative_to(working_directory) else path)
