"""Scenario files, including the built-in ones."""

from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ebbtide.declaration.project import yaml_file
from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.scenarios.model import Scenario

_LIBRARY: Final = Path(__file__).parent / "library"


class ScenarioError(RehearsalError):
    """An unreadable or invalid scenario; the message lists all errors."""


def read(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: it is unreadable or invalid.
    """
    try:
        written = yaml_file.load(path)
    except yaml_file.YamlFileError as error:
        raise ScenarioError(str(error)) from error
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}.") from error
    try:
        return Scenario.model_validate(written)
    except ValidationError as error:
        errors = "\n".join(
            f"  {'.'.join(str(part) for part in fault['loc']) or 'the scenario'}: {fault['msg']}"
            for fault in error.errors()
        )
        raise ScenarioError(f"{path} is not a scenario; nothing was started.\n{errors}") from error


def chosen(name: str) -> Path:
    """Return the file of a scenario: a built-in one by name, or any path.

    Raises:
        ScenarioError: there is no such scenario.
    """
    names = built_in()
    if name in names:
        return names[name]
    if Path(name).is_file():
        return Path(name)
    near = get_close_matches(name, names, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise ScenarioError(
        f"There is no file {name}, and no scenario of that name.{meant} There are: {', '.join(names)}."
    )


def built_in() -> dict[str, Path]:
    """Return the files of the built-in scenarios by name."""
    return {path.stem: path for path in sorted(_LIBRARY.glob("*.yaml"))}
