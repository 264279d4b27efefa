"""Requirements: locked, with hashes, and in step with requirements.in."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.repository import ROOT

_PINNED = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;\\]+)", flags=re.MULTILINE)


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _required(name: str) -> list[Requirement]:
    lines = (line.partition(" #")[0].strip() for line in _text(name).splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def _locked(name: str) -> dict[str, str]:
    return {match["name"]: match["version"] for match in _PINNED.finditer(_text(name))}


_LOCKS = ["requirements", "tests/requirements", "tests/packaging/requirements", "policies/requirements"]


@pytest.mark.parametrize("name", _LOCKS)
def test_lock_is_in_step(name: str) -> None:
    """Each requirement is locked at a version that it allows: otherwise `make lock` was forgotten."""
    locked = _locked(f"{name}.txt")
    assert [
        str(item)
        for item in _required(f"{name}.in")
        if not item.specifier.contains(locked.get(item.name, ""))
    ] == []


@pytest.mark.parametrize("name", _LOCKS)
def test_lock_has_hashes_and_no_address(name: str) -> None:
    """Every locked package has a hash, and no lock says from which index it comes."""
    text = _text(f"{name}.txt")
    blocks = re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)[1:]
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_locks_agree() -> None:
    """A package in both locks has one version: the tests run with what the program runs with."""
    runtime, dev = _locked("requirements.txt"), _locked("tests/requirements.txt")
    assert {name for name in runtime.keys() & dev.keys() if runtime[name] != dev[name]} == set()


def test_the_policy_pack_has_the_same_versions() -> None:
    """The policy pack's dependencies differ only in protobuf and its dependencies."""
    runtime, pack = ({item.name: str(item.specifier) for item in _required(name)} for name in _RUN_WITH)
    assert {name for name in runtime.keys() & pack.keys() if runtime[name] != pack[name]} == set()


_RUN_WITH = ("requirements.in", "policies/requirements.in")


def test_wheel_is_built_with_what_is_tested() -> None:
    """The build backend that pyproject.toml asks for is the one that installs the checkout into .venv."""
    requires = tomllib.loads(_text("pyproject.toml"))["build-system"]["requires"]
    assert requires == [f"setuptools=={_locked('requirements.txt')['setuptools']}"]
