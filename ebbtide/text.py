"""Text of messages: numbers, lists and similar names in sentences, and command lines that run as printed."""

import functools
import json
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_AT_LEAST: Final = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?[^;]*?>=([\d.]+)")
"""Name and lower bound of a requirement."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_REPEATED: Final = re.compile(r"(\d)\1+")
_KINDS: Final = {
    word: words[0]
    for words in (
        *((unit, f"{unit}s") for unit in ("second", "minute", "hour", "day", "week", "month", "year")),
        *(("mib", "mb"), ("gib", "gb"), ("tib", "tb"), ("usd",), ("eur",), ("percent",)),
        *(("min", "minimum"), ("max", "maximum"), ("enable", "enabled"), ("disable", "disabled")),
    )
    for word in words
}
"""Words of units and bounds, each with its kind."""
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tab and newline, and those that reorder text or end a line."""
_DISTRIBUTIONS: Final = {"rehearse": ("ebbtide-rehearsal", "rehearsal"), "replay": ("kueue-replay",) * 2}
"""Distributions of their own that extras have, each with its directory in a checkout."""


def several(number: object, singular: str, more: str = "") -> str:
    """Format a count, also a formatted one: `1 node`, `2,000 nodes`; `more` is an irregular plural."""
    count = f"{number:,}" if isinstance(number, int) else str(number)
    return f"{count} {singular if count == '1' else more or singular + 's'}"


def and_list(items: Iterable[object]) -> str:
    """Format a list: `a, b and c`."""
    return _joined(items, "and")


def or_list(items: Iterable[object]) -> str:
    """Format alternatives: `1, 2 or 4`."""
    return _joined(items, "or")


def bound(unknown: Collection[str], estimated: Collection[str]) -> str:
    """Return the words before an amount: `at least ` if prices are unknown, `about ` if some are estimates;
    empty if all are known.
    """
    return f"{'at least ' if unknown else ''}{'about ' if estimated else ''}"


def _joined(items: Iterable[object], conjunction: str) -> str:
    *others, last = map(str, items)
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def is_comparable(written: str, name: str) -> bool:
    """Return whether a name may be suggested: not one with another unit, bound or number, which would be
    accepted and mean something else. A repeated digit is a slip of the keyboard."""
    one, other = map(_WORD.findall, (written, name))
    kinds, others = (
        {_KINDS[word.lower()] for word in words if word.lower() in _KINDS} for words in (one, other)
    )
    numbers = [[_REPEATED.sub(r"\1", word) for word in words if word.isdigit()] for words in (one, other)]
    return (kinds <= others or others <= kinds) and (not all(numbers) or numbers[0] == numbers[1])


def did_you_mean(written: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return a clause with the nearest known name, such as `; did you mean n1-highmem-8?`, or a full stop if
    there is none."""
    names = {name.lower(): name for name in known if is_comparable(written, name)}
    near = get_close_matches(written.lower(), names, n=1, cutoff=cutoff)
    return f"; did you mean {names[near[0]]}?" if near else "."


def printable(text: str, *, one_line: bool = False) -> str:
    """Escape control characters as in JSON, since a terminal would obey them.

    Args:
        one_line: whether newlines are escaped, too.
    """
    escaped = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return escaped.replace("\n", "\\n") if one_line else escaped


def described(value: object) -> str:
    """Describe a value for a message: `the text "4"`, `a mapping`."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, Sequence) else str(value)


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
    else the packages that the extras require. The rehearsal and the replay are distributions of the same
    origin. In an environment without pip, such as uv's, the command is uv's.
    """
    return shlex.join([*_installer(), *requirements(extras)])


def _installer() -> list[str]:
    """Return the command that installs packages in this environment."""
    from importlib.util import find_spec  # noqa: PLC0415 - only errors need it

    python = _relative(Path(sys.executable))
    return (
        [python, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", python]
    )


def requirements(extras: Collection[str]) -> list[str]:
    """Return what pip installs for extras, Ebbtide first: requirements, and `-e` before an editable one."""
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
    listed = f"[{','.join(extras)}]"
    besides = [_DISTRIBUTIONS[extra] for extra in extras if extra in _DISTRIBUTIONS]
    wheels = [f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name, _ in besides]
    match origin:
        case {"dir_info": options}:
            editable = ["-e"] if options == {"editable": True} else []
            own = [*editable, _location(path) + listed]
            others = [item for _, directory in besides for item in (*editable, _location(path / directory))]
        case {"vcs_info": {"vcs": vcs, "commit_id": commit}}:
            repository = f"{vcs}+{origin['url']}@{commit}"
            own = [f"ebbtide{listed} @ {repository}"]
            others = [f"{name} @ {repository}#subdirectory={of}" for name, of in besides]
        case {"archive_info": _} if path.is_file():
            own = [_location(path) + listed]
            others = [_location(path.with_name(wheel)) for wheel in wheels]
        case _:
            parts = (item.partition(";") for item in required)
            own = [name.strip() for name, _, of in parts if any(f'"{extra}"' in of for extra in extras)]
            others = [f"./{wheel}" for wheel in wheels]
    return [*dict.fromkeys(own), *others]


@functools.cache
def outdated() -> str:
    """Return an error message if an installed package is older than Ebbtide requires; empty if none is.

    pip reports such a package but installs it, if another requirement asks for it later.
    """
    from importlib.metadata import PackageNotFoundError, requires, version  # noqa: PLC0415 - takes 20 ms

    try:
        required = requires("ebbtide") or []
    except PackageNotFoundError:  # sources without their metadata
        return ""
    older: dict[str, tuple[str, str]] = {}
    for text in required:
        with suppress(PackageNotFoundError):
            match = _AT_LEAST.match(text)
            if match and release(installed := version(match[1])) < release(match[2]):
                older[match[1]] = installed, match[2]
    if not older:
        return ""
    problems = " ".join(
        f"{name} is {is_}, and Ebbtide needs {of} or later." for name, (is_, of) in older.items()
    )
    install = (f"{name}>={of}" for name, (_, of) in older.items())
    return f"{problems} Install it with: {shlex.join([*_installer(), *install])}"


def release(version: str) -> tuple[int, ...]:
    """Return the release of a version, such as `3.271.0`, to compare it."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _location(path: Path) -> str:
    """Return a path that pip cannot take for the name of a package."""
    text = _relative(path)
    return text if text == "." or Path(text).is_absolute() else f"./{text}"


def _relative(path: Path) -> str:
    """Return a path below the working directory as a relative path."""
    working_directory = Path.cwd()
    return str(path.relative_to(working_directory) if path.is_relative_to(working_directory) else path)
