"""Command lines in messages, quoted so that they run as printed in the user's shell."""

import shlex
import shutil
import sys
import sysconfig
from pathlib import Path


def command_line(*words: str) -> str:
    """Return the command line that runs this installation's `ebbtide` with these arguments.

    The bare name `ebbtide` is printed only if PATH resolves it to this environment's script.
    """
    script = Path(sysconfig.get_path("scripts"), "ebbtide")
    if not script.is_file():
        return shlex.join([_shown(Path(sys.executable)), "-m", "ebbtide", *words])
    found = shutil.which("ebbtide")
    first = "ebbtide" if found and Path(found).samefile(script) else _shown(script)
    return shlex.join([first, *words])


def pip_install(*extras: str) -> str:
    """Return the command line that adds extras of Ebbtide to this environment.

    pip takes the extras of an installed package from its metadata without an index lookup of the package (run
    with pip 23.2.1, 2026-11), so no release is required. A checkout that is not installed is installed by
    path.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - takes 20 ms

    listed = ",".join(extras)
    try:
        distribution("ebbtide")
        package = [f"ebbtide[{listed}]"]
    except PackageNotFoundError:
        package = ["-e", f"{Path(__file__).parents[1]}[{listed}]"]
    return shlex.join([_shown(Path(sys.executable)), "-m", "pip", "install", *package])


def _shown(path: Path) -> str:
    """Return a path below the working directory as a relative path."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
