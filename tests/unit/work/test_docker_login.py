"""Credentials that Docker keeps for registries."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.work.registry import docker_login

_ENTRY = {"auth": base64.b64encode(b"ada:pass:word").decode()}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of Docker's configuration, which is also the only one with programs."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return tmp_path


def _configure(directory: Path, configuration: Any) -> None:
    (directory / "config.json").write_text(json.dumps(configuration))


def _helper(directory: Path, name: str, answer: str) -> None:
    program = directory / f"docker-credential-{name}"
    program.write_text(
        f'#!/bin/sh\nread host; [ "$1" = get ] || exit 1; echo \'{answer}\' | sed "s|HOST|$host|"\n'
    )
    program.chmod(0o755)


def test_entries(directory: Path) -> None:
    """An entry has user name and password; Docker Hub's has the key of its first registry."""
    _configure(directory, {"auths": {"ghcr.io": _ENTRY, "https://index.docker.io/v1/": _ENTRY}})
    assert docker_login("ghcr.io") == ("ada", "pass:word")
    assert docker_login("registry-1.docker.io") == ("ada", "pass:word")
    assert docker_login("nvcr.io") is None


def test_helpers(directory: Path) -> None:
    """A registry's own helper comes before the store, and both before entries."""
    _helper(directory, "own", '{"Username": "own", "Secret": "HOST"}')
    _helper(directory, "store", '{"Username": "store", "Secret": "HOST"}')
    _configure(
        directory,
        {"auths": {"ghcr.io": _ENTRY}, "credHelpers": {"nvcr.io": "own"}, "credsStore": "store"},
    )
    assert docker_login("nvcr.io") == ("own", "nvcr.io")
    assert docker_login("ghcr.io") == ("store", "ghcr.io")
    assert docker_login("registry-1.docker.io") == ("store", "https://index.docker.io/v1/")


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        [],
        {"auths": {"ghcr.io": {}}},
        {"auths": {"ghcr.io": {"auth": "%"}}},
        {"auths": {"ghcr.io": {"auth": "YWRh"}}},
        {"credHelpers": {"ghcr.io": "missing"}},
        {"credsStore": "token"},
        {"credsStore": "broken"},
    ],
)
def test_no_credentials(directory: Path, configuration: Any) -> None:
    """An incomplete configuration, a missing helper and an identity token give none."""
    _helper(directory, "token", '{"Username": "<token>", "Secret": "HOST"}')
    _helper(directory, "broken", "credentials not found")
    _configure(directory, configuration)
    assert docker_login("ghcr.io") is None


def test_no_configuration(directory: Path) -> None:
    """Without a file, or with one that is no JSON, there are none."""
    assert docker_login("ghcr.io") is None
    (directory / "config.json").write_text("{")
    assert docker_login("ghcr.io") is None
