"""Programs with an accepted version in `$KUBEBUILDER_ASSETS` or on PATH."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from ebbtide_rehearsal.tools.items import Tool, VersionRule

_VERSION: Final = re.compile(r"(?<![\d.])(\d+)\.(\d+)\.(\d+)")
_SECONDS: Final = 60  # for a busy machine; a program that does not answer is built instead
_QUIET: Final = {"PULUMI_SKIP_UPDATE_CHECK": "true"}
"""Disables version checks over the network."""
_ASSETS: Final = "KUBEBUILDER_ASSETS"
"""The directory of etcd, kube-apiserver and kubectl for tests of controllers (setup-envtest)."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A semantic version without suffixes such as `-dispatcher` and `+k3s1`, which identify the builder."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version_in(text: str) -> Version | None:
    """Return the first version in a text, as `v1.36.2` or `etcd Version: 3.6.14`."""
    match = _VERSION.search(text)
    return Version(*map(int, match.groups())) if match else None


def suits(has: Version, pinned: Version, rule: VersionRule) -> bool:
    """Check that a version can replace the pinned one."""
    match rule:
        case VersionRule.SAME_MINOR:
            return (has.major, has.minor) == (pinned.major, pinned.minor)
        case VersionRule.NO_OLDER:
            return has.major == pinned.major and has >= pinned
        case VersionRule.NO_OLDER_MINOR:
            return has.major == pinned.major and has.minor >= pinned.minor
    assert_never(rule)


def on_path(tool: Tool) -> tuple[Path, Version] | None:
    """Return an accepted program with its version; None if there is none, or none reports its version."""
    pinned = version_in(tool.version)
    if tool.on_path is None or pinned is None:
        return None
    for directories in (os.environ.get(_ASSETS), os.environ.get("PATH", os.defpath)):
        path = directories and shutil.which(tool.name, path=directories)
        has = _reported_version(path, tool.on_path.version_arguments) if path else None
        if path and has and suits(has, pinned, tool.on_path.accepts):
            return Path(path).absolute(), has
    return None


def _reported_version(path: str, arguments: tuple[str, ...]) -> Version | None:
    try:
        answer = subprocess.run(  # noqa: S603
            [path, *arguments],
            env={**os.environ, **_QUIET},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(answer.stdout) if answer.returncode == 0 else None
