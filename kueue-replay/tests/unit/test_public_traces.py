"""Public traces: download and check."""

import io
import tarfile
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebbtide.cli import app
from kueue_replay import public_traces
from kueue_replay.public_traces import TRACES, PublicTrace, PublicTraceError, fetch
from tests.loopback import folder_served


@pytest.fixture
def site(tmp_path: Path) -> Generator[str]:
    """A site with the files below `site`."""
    (tmp_path / "site").mkdir()
    with folder_served(tmp_path / "site") as address:
        yield address


def _published(directory: Path, content: bytes, member: str = "") -> PublicTrace:
    trace = PublicTrace("us/traces", "c0ffee", "jobs.csv", sha256(content).hexdigest(), "MIT", "", member)
    path = directory / "site" / trace.location
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return trace


def test_a_trace_is_downloaded(site: str, tmp_path: Path) -> None:
    """The file has the content that its hash promises."""
    trace = _published(tmp_path, b"submit,duration\n0,60\n")
    fetch(trace, tmp_path / "jobs.csv", site)
    assert (tmp_path / "jobs.csv").read_text(encoding="utf-8") == "submit,duration\n0,60\n"


def test_a_member_of_an_archive_is_extracted(site: str, tmp_path: Path) -> None:
    """The archive is checked, and one file of it written."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("a/0.json")
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    trace = _published(tmp_path, packed.getvalue(), "a/0.json")
    fetch(trace, tmp_path / "spot.json", site)
    assert (tmp_path / "spot.json").read_bytes() == b"{}"


def test_another_content_is_not_written(site: str, tmp_path: Path) -> None:
    """A changed file is an error with both hashes."""
    trace = replace(_published(tmp_path, b"changed"), sha256="0" * 64)
    with pytest.raises(PublicTraceError, match=f"instead of {'0' * 64}, so nothing was written"):
        fetch(trace, tmp_path / "jobs.csv", site)
    assert not (tmp_path / "jobs.csv").exists()


def test_a_missing_file_has_advice(site: str, tmp_path: Path) -> None:
    """A failed download names the address and the hash for other means."""
    with pytest.raises(PublicTraceError, match=f"cannot be downloaded: .* SHA-256 is {TRACES['pai'].sha256}"):
        fetch(TRACES["pai"], tmp_path / "pai.csv", site)


def test_the_command_writes_to_the_trace_s_own_name(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The licence is shown, and an unknown name gets a suggestion."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(public_traces, "TRACES", {"mine": _published(tmp_path, b"x")})
    monkeypatch.setattr(public_traces, "fetch", partial(fetch, site=site))
    done = CliRunner().invoke(app, ["trace", "fetch", "mine"])
    assert done.exit_code == 0, done.output
    assert "licence: MIT" in done.output
    assert (tmp_path / "jobs.csv").is_file()
    assert "did you mean mine?" in CliRunner().invoke(app, ["trace", "fetch", "mien"]).output
    assert "us/traces" in CliRunner().invoke(app, ["trace", "fetch"]).output
