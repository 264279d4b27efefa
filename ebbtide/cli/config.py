"""The `config` commands: defaults of the workload commands, in the project's folder or the user's; and the
command of kubectl, which makes connections to pods.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from ebbtide.cli.consoles import say
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.errors import EbbtideError
from ebbtide.text import command_line, did_you_mean, printable
from ebbtide.values.user_files import UserFileError, parse_json, read_text

PROJECT_FILE: Final = ".ebbtide.json"
"""Name of the file in the project's folder, which is the current one or the nearest above it."""

KEYS: Final = ("pool", "queue", "image", "namespace")
"""Options that have configurable defaults."""

_NO_NAMESPACE: Final = "default"
"""Namespace of a context that names none."""
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_ALTERNATIVES: Final = {"pool": "queue", "queue": "pool"}
User = Annotated[
    bool, typer.Option("--user", help="Use the user's configuration file instead of the project's.")
]
_Keys = Annotated[list[str], typer.Argument(metavar="KEY…", help=f"{', '.join(KEYS)}.")]


class ConfigError(EbbtideError):
    """A file of defaults, or a default, is invalid."""


def config_set(
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help=f"{', '.join(KEYS)}.")],
    *,
    user: User = False,
) -> None:
    """Set defaults of the options --pool, --queue, --image and --namespace.

    The project's are in `.ebbtide.json` in the current folder or the nearest above it, and take precedence
    over the user's. An option on the command line takes precedence over both.
    """
    given = dict(_pair(text) for text in pairs)
    file = _user_file() if user else _project_file() or Path(PROJECT_FILE)
    _write(file, {**_read(file), **given})
    say("\n".join(f"{key} = {value}  ({file})" for key, value in given.items()))


def config_get(
    key: Annotated[str, typer.Argument(metavar="[KEY]", help="One default; by default all.")] = "",
) -> None:
    """Show the defaults, and the files that they are from."""
    if key:
        _check(key)
    shown = [f"{name} = {value}  ({file})" for name, (value, file) in defaults().items() if key in ("", name)]
    say("\n".join(shown) or f"No default {f'of {key} ' if key else ''}is set.")


def config_unset(keys: _Keys, *, user: User = False) -> None:
    """Remove defaults."""
    for key in keys:
        _check(key)
    file = _user_file() if user else _project_file()
    values = _read(file) if file else {}
    if missing := [key for key in keys if key not in values]:
        where = f"{file} has no" if file else "No folder from here up has a"
        raise ConfigError(
            f"{where} default of {' or '.join(missing)}. `ebbtide config get` lists the defaults."
        )
    if file:
        _write(file, {key: value for key, value in values.items() if key not in keys})


COMMANDS: Final[tuple[Callable[..., None], ...]] = (config_set, config_get, config_unset)


def defaults() -> dict[str, tuple[str, Path]]:
    """Return the defaults by option, each with the file that it is from.

    Raises:
        ConfigError: a file is invalid.
    """
    files = (_user_file(), _project_file())
    return {key: (value, file) for file in files if file for key, value in _read(file).items()}


def complete(options: dict[str, Any]) -> None:
    """Fill the empty options of a workload command with the configured defaults.

    A default pool is ignored if a queue is given, and a default queue if a pool is.

    Raises:
        ConfigError: a file is invalid.
    """
    given = {key for key in KEYS if options.get(key)}
    for key, (value, _) in defaults().items():
        if key in options and key not in given and _ALTERNATIVES.get(key) not in given:
            options[key] = value


def namespace_of(api: Api, given: str) -> str:
    """Return the namespace of a workload: the given one, the configured default, the context's, or without
    any the one of the caller's team, which is then named on standard error. A caller with rights in the
    namespace `default`, such as an administrator, is of no team.

    Raises:
        ConfigError: a file is invalid.
    """
    configured, _ = defaults().get("namespace", ("", None))
    if given or configured or api.namespace != _NO_NAMESPACE:
        return given or configured or api.namespace
    team = _team_namespace(api)
    if team:
        say(f"Namespace {team}, that of your team.", err=True)
    return team or api.namespace


def _team_namespace(api: Api) -> str:
    """Return the namespace of the only team, or of the only one whose Jobs the caller may list; empty if
    there is none, or no usable profile is named."""
    from ebbtide.placement import Profile, ProfileError
    from ebbtide.placement.profile_sources import VARIABLE

    if not os.environ.get(VARIABLE):
        return ""
    try:
        names = [team.namespace for team in Profile.load(None).teams]
        if _NO_NAMESPACE in names or _may_list_jobs(api, _NO_NAMESPACE):
            return ""
        if len(names) > 1:
            names = [name for name in names if _may_list_jobs(api, name)]
    except (ApiError, ProfileError):
        return ""
    return names[0] if len(names) == 1 else ""


def _may_list_jobs(api: Api, namespace: str) -> bool:
    access = {"namespace": namespace, "verb": "list", "group": "batch", "resource": "jobs"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": access},
    }
    return bool(api.create(_ACCESS_REVIEWS, review)["status"]["allowed"])


def _user_file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "ebbtide" / "config.json"


def _project_file() -> Path | None:
    """Return the nearest file from the current folder up, as far as the folders are the user's own."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if folder.stat().st_uid != os.getuid():
            return None
        if (folder / PROJECT_FILE).exists():
            return folder / PROJECT_FILE
    return None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{printable(text)!r} is not KEY=VALUE. Write, for example, pool=t4-spot.")
    _check(key, value)
    return key, value


def _check(key: str, value: str = "x") -> None:
    if key not in KEYS:
        raise ConfigError(f"No option {printable(key)!r} has a configurable default{did_you_mean(key, KEYS)}")
    if not value or value != printable(value, one_line=True) or " " in value:
        unset = f", or remove it with `{command_line('config', 'unset', key)}`" if not value else ""
        raise ConfigError(
            f"The default of {key} is {printable(value)!r}. Write a name without spaces{unset}."
        )


def _read(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    try:
        values = parse_json(read_text(file))
    except (UserFileError, ValueError) as error:
        raise ConfigError(f"{file}: {error} Correct it, or delete the file.") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: It is not a JSON object. Correct it, or delete the file.")
    entries = cast("dict[str, object]", values)
    for key, value in entries.items():
        try:
            _check(key, value if isinstance(value, str) else "")
        except ConfigError as error:
            raise ConfigError(f"{file}: {error}") from None
    return cast("dict[str, str]", entries)


def _write(file: Path, values: Mapping[str, str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values, indent=2) + "\n")
    except OSError as error:
        raise ConfigError(f"{file}: The file cannot be written: {error.strerror}.") from None


class NoKubectlError(EbbtideError):
    """kubectl is not installed; the message has the fix."""


def kubectl_command(namespace: str = "", context: str = "") -> list[str]:
    """Return the command of kubectl for a namespace.

    Args:
        namespace: the namespace; empty for the context's.
        context: the kubeconfig's context; empty for the current one.

    Raises:
        NoKubectlError: kubectl is not installed.
    """
    path = shutil.which("kubectl")
    if path is None:
        raise NoKubectlError(
            "kubectl is not on PATH, and it makes the connection to the pod. Install it: "
            "https://kubernetes.io/docs/tasks/tools/."
        )
    return [
        path,
        *(["--context", context] if context else []),
        *(["--namespace", namespace] if namespace else []),
    ]
