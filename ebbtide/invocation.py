"""Command lines in messages, quoted so that they run as printed in the user's shell."""

import json
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


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


def install_command(*extras: str) -> str:
    """Return the command line that adds extras of Ebbtide to this environment.

    No index has Ebbtide: a command with its name alone would install whatever is registered under it. The
    command names the checkout, the wheel or the Git repository that Ebbtide was installed from (PEP 610),
    else the packages that the extras require. The rehearsal is a second distribution of the same origin. In
    an environment without pip, such as uv's, the command is uv's.
    """
    from importlib.util import find_spec  # noqa: PLC0415 - only errors need it

    python = _relative(Path(sys.executable))
    pip = (
        [python, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", python]
    )
    return shlex.join([*pip, *_requirements(extras)])


def _requirements(extras: Collection[str]) -> list[str]:
    """Return what pip installs for extras: requirements, and `-e` before an editable one."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - takes 20 ms

    version, required = "", list[str]()
    origin: dict[str, Any] = {"dir_info": {"editable": True}, "url": Path(__file__).parents[1].as_uri()}
    try:
        installed = distribution("ebbtide")
        version, required = installed.version, installed.requires or []
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        pass
    path = Path(unquote(urlsplit(str(origin.get("url", ""))).path))
    listed, rehearsal_wheel = f"[{','.join(extras)}]", f"ebbtide_rehearsal-{version}-py3-none-any.whl"
    match origin:
        case {"dir_info": options}:
            editable = ["-e"] if options == {"editable": True} else []
            own = [*editable, _location(path) + listed]
            second = [*editable, _location(path / "rehearsal")]
        case {"vcs_info": {"vcs": vcs, "commit_id": commit}}:
            repository = f"{vcs}+{origin['url']}@{commit}"
            own = [f"ebbtide{listed} @ {repository}"]
            second = [f"ebbtide-rehearsal @ {repository}#subdirectory=rehearsal"]
        case {"archive_info": _} if path.is_file():
            own, second = [_location(path) + listed], [_location(path.with_name(rehearsal_wheel))]
        case _:
            parts = (item.partition(";") for item in required)
            own = [name.strip() for name, _, of in parts if any(f'"{extra}"' in of for extra in extras)]
            second = [f"./{rehearsal_wheel}"]
    return [*dict.fromkeys(own), *(second if "rehearse" in extras else ())]


def _location(path: Path) -> str:
    """Return a path that pip cannot take for the name of a package."""
    text = _relative(path)
    return text if text == "." or Path(text).is_absolute() else f"./{text}"


def _relative(path: Path) -> str:
    """Return a path below the working directory as a relative path."""
    working_directory = Path.cwd()
    return str(path.relative_to(working_directory) if path.is_relative_to(working_directory) else path)
