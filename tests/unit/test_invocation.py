"""Command lines in messages."""

import json
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest

from ebbtide.text import install_command

_REQUIRES = 'Requires-Dist: kfp[kubernetes]<2.18,>=2.17; extra == "kfp"\nRequires-Dist: rich>=14\n'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the metadata of an installed Ebbtide."""
    information = tmp_path / "ebbtide-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: ebbtide\nVersion: 0.1.0\n{_REQUIRES}", encoding="utf-8")

    def distribution(_: str) -> metadata.Distribution:
        return metadata.PathDistribution(information)

    monkeypatch.setattr(metadata, "distribution", distribution)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _requirements(site: Path, origin: dict[str, Any] | None, *extras: str) -> str:
    if origin:
        path = site / "ebbtide-0.1.0.dist-info" / "direct_url.json"
        path.write_text(json.dumps(origin), encoding="utf-8")
    return install_command(*extras).partition(" install ")[2]


def test_a_checkout_is_installed_again(site: Path) -> None:
    """An editable checkout stays editable, and brings the rehearsal from its directory."""
    checkout = {"url": site.as_uri(), "dir_info": {"editable": True}}
    assert _requirements(site, checkout, "kfp") == "-e '.[kfp]'"
    assert _requirements(site, checkout, "gke", "rehearse") == "-e '.[gke,rehearse]' -e ./rehearsal"
    assert _requirements(site, {**checkout, "dir_info": {}}, "kfp") == "'.[kfp]'"


def test_a_wheel_is_named_by_its_path(site: Path) -> None:
    """The wheel that was installed, and that of the rehearsal beside it."""
    wheel = site / "some wheels" / "ebbtide-0.1.0-py3-none-any.whl"
    origin: dict[str, Any] = {"url": wheel.as_uri(), "archive_info": {}}
    assert _requirements(site, origin, "kfp") == "'kfp[kubernetes]<2.18,>=2.17'"
    wheel.parent.mkdir()
    wheel.touch()
    assert _requirements(site, origin, "kfp") == f"'./some wheels/{wheel.name}[kfp]'"
    second = "'./some wheels/ebbtide_rehearsal-0.1.0-py3-none-any.whl'"
    assert _requirements(site, origin, "rehearse") == f"'./some wheels/{wheel.name}[rehearse]' {second}"
    third = "'./some wheels/kueue_replay-0.1.0-py3-none-any.whl'"
    both = _requirements(site, origin, "rehearse", "replay")
    assert both == f"'./some wheels/{wheel.name}[rehearse,replay]' {second} {third}"


def test_a_git_repository_is_named_with_its_commit(site: Path) -> None:
    """The address and the commit that were installed."""
    origin = {"url": "https://git.example.com/e.git", "vcs_info": {"vcs": "git", "commit_id": "4a35"}}
    assert _requirements(site, origin, "kfp") == "'ebbtide[kfp] @ git+https://git.example.com/e.git@4a35'"
    assert _requirements(site, origin, "rehearse").endswith(
        "'ebbtide-rehearsal @ git+https://git.example.com/e.git@4a35#subdirectory=rehearsal'"
    )


def test_an_unknown_origin_names_packages_of_others(site: Path) -> None:
    """Without an origin, the requirements of the extras are named, which are on the index."""
    assert _requirements(site, None, "kfp", "kfp") == "'kfp[kubernetes]<2.18,>=2.17'"


def test_an_environment_without_pip_uses_uv(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is uv's, which creates environments without pip."""
    monkeypatch.setattr(sys, "executable", str(site / ".venv/bin/python"))
    assert install_command("kfp").startswith(".venv/bin/python -m pip install ")
    monkeypatch.setattr(util, "find_spec", dict[str, None]().get)
    assert install_command("kfp").startswith("uv pip install --python .venv/bin/python ")
