"""Secrets: those of the namespace in a container, by reference, and texts and files that usually hold some.

A manifest never contains the values of secrets. The patterns of `data/secrets.csv` find them in files and
texts.
"""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from ebbtide.values.paths import Object
from ebbtide.work.arguments import is_data_key, is_subdomain, is_variable
from ebbtide.work.errors import Problems

_EXCEPT: Final = "!"
_SECRET_NAMES: Final = re.compile(
    r"(?:.*_)?(?:API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?)",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(r"(?<![\w$-])(?P<name>[A-Za-z_]\w*)=(?P<value>(?!['\"]?\$)[^\s;&|]+)")
"""An assignment of a shell, but not of another variable or a command's output."""
_TOKEN: Final = re.compile(r"(?:.*_)?TOKEN", re.IGNORECASE)
_TOKEN_LENGTH: Final = 16
"""Minimum length in characters of a token that looks like a credential: `PAD_TOKEN=<pad>` does not."""


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A row.

    Attributes:
        kind: `file` or `text`.
        pattern: of files, a name or the end of a path with wildcards, in lower case, or after `!` one that is
            an exception; of texts, a regular expression.
        contains: text of such a file that holds a secret; empty for any.
        holds: what it holds.
    """

    kind: str
    pattern: str
    contains: str
    holds: str


@cache
def _patterns(kind: str) -> tuple[SecretPattern, ...]:
    text = files("ebbtide.work").joinpath("data/secrets.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    every = (SecretPattern(row["kind"], row["pattern"], row["contains"], row["holds"]) for row in rows)
    return tuple(item for item in every if item.kind == kind)


def secret_in_text(text: str) -> str:
    """Return what a text holds that looks like a secret, such as `a token of GitHub`; empty for nothing."""
    found = (item.holds for item in _patterns("text") if re.search(item.pattern, text))
    return next(found, "")


def secret_in_file(path: str, read: Callable[[], str]) -> str:
    """Return what a file holds that is a secret, by its name and content; empty for nothing.

    Args:
        path: its path, with `/`.
        read: returns its content, or the begin of it.
    """
    matching = [item for item in _patterns("file") if _matches(path, item.pattern.removeprefix(_EXCEPT))]
    if any(item.pattern.startswith(_EXCEPT) for item in matching):
        return ""
    return next((item.holds for item in matching if not item.contains), "") or _held(matching, read)


def _held(patterns: Iterable[SecretPattern], read: Callable[[], str]) -> str:
    content = read() if patterns else ""
    return next((item.holds for item in patterns if item.contains in content), "")


def _matches(path: str, pattern: str) -> bool:
    """Check the end of a path, in any case: `.ENV` is a file of that name on some machines."""
    parts = PurePosixPath(path.lower()).parts
    return fnmatchcase("/".join(parts[-pattern.count("/") - 1 :]), pattern)


def looks_secret(name: str, value: str) -> bool:
    """Return whether an environment variable looks like a credential."""
    if not value or "$(" in value:
        return False
    return bool(_SECRET_NAMES.fullmatch(name)) or (
        bool(_TOKEN.fullmatch(name)) and len(value) >= _TOKEN_LENGTH
    )


def check_env(env: Mapping[str, str], secret_env: Mapping[str, str], problems: Problems) -> None:
    """Report environment variables that are invalid, set twice, or belong into a Secret. Messages contain no
    values."""
    for name, value in env.items():
        problems.check(is_variable(name), f"env has {name!r}, which is not a valid name of a variable.")
        problems.check(name not in secret_env, f"env and secret_env both have {name}: write it once.")
        problems.check(
            not looks_secret(name, value) and not secret_in_text(value),
            f"env has {name}, which looks like a secret: everyone with access to the Job could read it. Put "
            "it into a Secret (kubectl create secret generic NAME --from-literal KEY=…), and write "
            f"secret_env (--secret-env) {name}=NAME/KEY.",
        )


def check_text(field: str, text: str, problems: Problems) -> None:
    """Report a command, or commands of a shell, with a secret. Messages do not contain it.

    Args:
        field: name of the field.
    """
    set_here = (match for match in _ASSIGNED.finditer(text) if looks_secret(match["name"], match["value"]))
    held = secret_in_text(text) or next((f"a value of {match['name']}" for match in set_here), "")
    problems.check(
        not held,
        f"{field} has {held}, which everyone with access to the Job could read. Put it into a Secret "
        "(kubectl create secret generic NAME --from-literal KEY=…), write secret_env (--secret-env) "
        "VARIABLE=NAME/KEY, and use $VARIABLE.",
    )


def check_secrets(
    secret_env: Mapping[str, str], secret_volumes: Mapping[str, str], problems: Problems
) -> None:
    """Report references to Secrets that cannot be resolved, and paths that cannot be mounted."""
    for name, reference in secret_env.items():
        secret, _, key = reference.partition("/")
        problems.check(
            is_variable(name), f"secret_env has {name!r}, which is not a valid name of a variable."
        )
        problems.check(
            is_subdomain(secret) and is_data_key(key),
            f"secret_env has {name} without a reference to a Secret's key: write SECRET/KEY, such as "
            f"{name}=tracker/api-key, never the value.",
        )
    for secret, path in secret_volumes.items():
        problems.check(
            is_subdomain(secret), f"secret_volumes has {secret!r}, which is not a valid name of a Secret."
        )
        problems.check(
            path.startswith("/") and ":" not in path,
            f"secret_volumes has {secret} at {path!r}; write an absolute path in the container.",
        )
    paths = list(secret_volumes.values())
    for path in dict.fromkeys(path for path in paths if paths.count(path) > 1):
        problems.add(f"secret_volumes has {path} twice: only one Secret can be mounted there.")


def check_image_pull_secrets(names: Sequence[str], problems: Problems) -> None:
    """Report names that no Secret can have."""
    if isinstance(names, str):
        problems.add(f"image_pull_secrets is a text; write a list, [{names!r}].")
        return
    for name in names:
        problems.check(
            is_subdomain(name), f"image_pull_secrets has {name!r}, which is not a valid name of a Secret."
        )


def secret_variables(secret_env: Mapping[str, str]) -> list[Object]:
    """Return a container's environment variables from keys of Secrets."""
    references = {name: reference.partition("/") for name, reference in secret_env.items()}
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for name, (secret, _, key) in references.items()
    ]


def secret_volumes(secrets: Mapping[str, str]) -> list[Object]:
    """Return a pod's volumes, one for each Secret."""
    return [
        {"name": _volume(index), "secret": {"secretName": secret}} for index, secret in enumerate(secrets)
    ]


def secret_mounts(secrets: Mapping[str, str]) -> list[Object]:
    """Return a container's mounts, one for each Secret."""
    return [
        {"name": _volume(index), "mountPath": path, "readOnly": True}
        for index, path in enumerate(secrets.values())
    ]


def _volume(index: int) -> str:
    # A Secret's name may be longer than a volume's, and may contain dots.
    return f"secret-{index}"
