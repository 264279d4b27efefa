"""Downloading released binaries from a loopback server, and building them if that fails."""

import hashlib
import io
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Generator
from pathlib import Path

import pytest

from ebbtide_rehearsal.tools import download as download_module
from ebbtide_rehearsal.tools.download import Release, directory, releases
from ebbtide_rehearsal.tools.find import Origin, ensure
from ebbtide_rehearsal.tools.items import Finished, NotDownloaded, Started, Step, ToolError
from ebbtide_rehearsal.tools.table import all_items
from rehearsal.tests.unit.machine import Machine, entries, machine_in, silent
from rehearsal.tests.unit.release_server import Mode, ReleaseServer, serving

_HOST = "releases.example"
_PADDING = os.urandom(300_000)
"""Compression does not shorten it: half of an archive is more than a piece of the download."""


def _script(name: str, version: str) -> bytes:
    return f"#!/bin/sh\necho {name} {version}\nexit\n".encode() + _PADDING


def _archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


_STALLED = 2.0
"""Seconds after which a stalled download is given up; in less, a busy machine has not received the rest."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with Go and nothing else."""
    machine = machine_in(tmp_path, monkeypatch)
    machine.go()
    return machine


@pytest.fixture
def server(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Generator[ReleaseServer]:
    """A mirror with archives of etcd and of two programs of Kubernetes, and a plain scheduler."""
    assert machine.bin.is_dir()
    for limit in ("_ANSWER_SECONDS", "_STALL_SECONDS"):
        monkeypatch.setattr(download_module, limit, 600)  # for a busy machine
    envtest = _archive(
        {
            f"controller-tools/envtest/{name}": _script(name, "1.36.2")
            for name in ("kube-apiserver", "kubectl")
        }
    )
    served = {
        "etcd": (
            "etcd.tar.gz",
            "etcd-v3.6.14/etcd",
            _archive({"etcd-v3.6.14/etcd": _script("etcd", "3.6.14")}),
        ),
        "kube-apiserver": ("envtest.tar.gz", "controller-tools/envtest/kube-apiserver", envtest),
        "kubectl": ("envtest.tar.gz", "controller-tools/envtest/kubectl", envtest),
        "kube-scheduler": ("kube-scheduler", "", _script("kube-scheduler", "1.36.2")),
    }
    here = download_module.release_of(all_items()["kubectl"])
    assert here, "the tests run where releases are"
    rows = tuple(
        Release(
            program=program,
            platform=here.platform,
            version=all_items()[program].version,
            url=f"https://{_HOST}/{file}",
            digest=f"sha256:{hashlib.sha256(content).hexdigest()}",
            member=member,
            source="this test",
        )
        for program, (file, member, content) in served.items()
    )
    monkeypatch.setattr(download_module, "releases", lambda: rows)
    with serving() as server:
        server.files = {f"/{_HOST}/{file}": content for file, _, content in served.values()}
        monkeypatch.setenv("EBBTIDE_RELEASES", f"{server.address}/")
        yield server


def _output(path: Path) -> str:
    return subprocess.run([path], capture_output=True, check=True, text=True).stdout.strip()


def test_releases_are_downloaded_and_the_rest_is_built(machine: Machine, server: ReleaseServer) -> None:
    """An archive with two programs is downloaded once; the second time everything comes from the cache."""
    names = ["etcd", "kube-apiserver", "kubectl", "kube-scheduler", "kustomize"]
    steps: list[Step] = []
    tools = ensure(names, on_step=steps.append)
    assert [tools.by_name[name].origin for name in names] == [*[Origin.DOWNLOADED] * 4, Origin.BUILT]
    assert _output(tools.path("kubectl")) == "kubectl 1.36.2"
    assert _output(tools.path("kube-scheduler")) == "kube-scheduler 1.36.2"
    assert len(server.ranges) == 3
    assert machine.built() == ["sigs.k8s.io/kustomize/kustomize/v5"]
    assert {step.name for step in steps if isinstance(step, Finished)} == {
        "etcd",
        "kube-apiserver, kubectl",
        "kube-scheduler",
        "kustomize",
    }
    assert not list((directory() / "downloads").iterdir())
    again = ensure(names, on_step=silent)
    assert {tool.origin for tool in again.by_name.values()} == {Origin.CACHE}
    assert len(server.ranges) == 3


@pytest.mark.parametrize("mode", [Mode.TRUNCATE, Mode.STALL])
@pytest.mark.usefixtures("machine")
def test_an_interrupted_download_is_resumed(
    server: ReleaseServer, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """The next request asks for the rest alone."""
    if mode is Mode.STALL:
        monkeypatch.setattr(download_module, "_STALL_SECONDS", _STALLED)
    server.modes = [mode, Mode.SERVE]
    assert _output(ensure(["etcd"], on_step=silent).path("etcd")) == "etcd 3.6.14"
    half = len(server.files[f"/{_HOST}/etcd.tar.gz"]) // 2
    assert server.ranges == [None, f"bytes={half}-"]


@pytest.mark.usefixtures("machine")
def test_a_server_that_sends_everything_again_is_accepted(server: ReleaseServer) -> None:
    """A mirror may not know ranges."""
    server.modes = [Mode.TRUNCATE, Mode.WHOLE]
    assert _output(ensure(["etcd"], on_step=silent).path("etcd")) == "etcd 3.6.14"


@pytest.mark.parametrize("mode", [Mode.TRUNCATE, Mode.STALL])
def test_a_download_that_never_completes_is_built_and_kept(
    machine: Machine, server: ReleaseServer, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """A later run continues it after three attempts."""
    if mode is Mode.STALL:
        monkeypatch.setattr(download_module, "_STALL_SECONDS", _STALLED)
    server.modes = [mode]
    steps: list[Step] = []
    tools = ensure(["etcd"], on_step=steps.append)
    assert tools.by_name["etcd"].origin is Origin.BUILT
    [failure] = [step for step in steps if isinstance(step, NotDownloaded)]
    assert failure.names == ("etcd",)
    assert failure.reason.startswith(f"{server.address}/{_HOST}/etcd.tar.gz stopped: ")
    assert len(server.ranges) == 3
    received = 7 * len(server.files[f"/{_HOST}/etcd.tar.gz"]) // 8
    server.modes = [Mode.SERVE]
    machine.builds.unlink()
    [built] = directory().glob("etcd-*")
    built.rename(built.with_name("old"))
    assert ensure(["etcd"], on_step=silent).by_name["etcd"].origin is Origin.DOWNLOADED
    assert abs(int((server.ranges[-1] or "").removeprefix("bytes=").removesuffix("-")) - received) <= 3


def test_other_bytes_are_deleted_and_built(machine: Machine, server: ReleaseServer) -> None:
    """The message has both hashes; nothing of the lie stays, and only its program is built."""
    server.modes = [Mode.LIE]
    steps: list[Step] = []
    tools = ensure(["etcd", "kustomize"], on_step=steps.append)
    assert _output(tools.path("etcd")) == "built"
    [failure] = [step for step in steps if isinstance(step, NotDownloaded)]
    assert "/etcd.tar.gz has sha256:" in failure.reason
    assert failure.reason.endswith(": the file was deleted")
    assert not list((directory() / "downloads").iterdir())
    assert len(server.ranges) == 1
    assert sorted(machine.built()) == ["go.etcd.io/etcd/server/v3", "sigs.k8s.io/kustomize/kustomize/v5"]


@pytest.mark.usefixtures("machine")
def test_a_lie_after_an_interruption_is_repeated_from_the_start(server: ReleaseServer) -> None:
    """The first part may be the bad one."""
    server.modes = [Mode.TRUNCATE, Mode.LIE, Mode.SERVE]
    assert ensure(["etcd"], on_step=silent).by_name["etcd"].origin is Origin.DOWNLOADED
    assert server.ranges[-1] is None


@pytest.mark.usefixtures("machine")
def test_a_partial_file_that_is_too_long_is_replaced(server: ReleaseServer) -> None:
    """The server refuses the range of what does not exist."""
    [release] = [row for row in download_module.releases() if row.program == "etcd"]
    partial = directory() / "downloads" / release.digest.partition(":")[2][:32]
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"x" * 10**6)
    assert ensure(["etcd"], on_step=silent).by_name["etcd"].origin is Origin.DOWNLOADED
    assert server.ranges == ["bytes=1000000-", None]


@pytest.mark.usefixtures("machine")
def test_an_archive_without_the_program_is_built(
    server: ReleaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table names a member that the archive lacks."""
    rows = tuple(
        Release(row.program, row.platform, row.version, row.url, row.digest, "bin/etcd", row.source)
        for row in download_module.releases()
        if row.program == "etcd"
    )
    monkeypatch.setattr(download_module, "releases", lambda: rows)
    steps: list[Step] = []
    assert ensure(["etcd"], on_step=steps.append).by_name["etcd"].origin is Origin.BUILT
    assert NotDownloaded(("etcd",), f"{server.address}/{_HOST}/etcd.tar.gz has no bin/etcd") in steps


def _closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (Mode.SILENT, "127.0.0.1: no answer within 0.5 seconds"),
        (Mode.MISSING, "127.0.0.1: status 404"),
        (None, "127.0.0.1: not reachable (ConnectionError)"),
    ],
)
def test_an_address_without_releases_is_reported_once(
    machine: Machine, server: ReleaseServer, monkeypatch: pytest.MonkeyPatch, mode: Mode | None, reason: str
) -> None:
    """All programs are built, with one message for all of them."""
    if mode is Mode.SILENT:
        monkeypatch.setattr(download_module, "_ANSWER_SECONDS", 0.5)
    if mode:
        server.modes = [mode]
    else:
        monkeypatch.setenv("EBBTIDE_RELEASES", f"http://127.0.0.1:{_closed_port()}")
    steps: list[Step] = []
    names = ["etcd", "kube-apiserver", "kubectl", "kube-scheduler"]
    tools = ensure(names, on_step=steps.append)
    assert {tool.origin for tool in tools.by_name.values()} == {Origin.BUILT}
    assert [step for step in steps if isinstance(step, NotDownloaded)] == [
        NotDownloaded(tuple(names), reason)
    ]
    assert len(machine.built()) == 4
    assert [step.of for step in steps if isinstance(step, Started)] == [2, 2]


@pytest.mark.usefixtures("server")
def test_nothing_is_downloaded_where_that_is_switched_off(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EBBTIDE_RELEASES=off builds without a message."""
    monkeypatch.setenv("EBBTIDE_RELEASES", "off")
    steps: list[Step] = []
    assert ensure(["etcd"], on_step=steps.append).by_name["etcd"].origin is Origin.BUILT
    assert not [step for step in steps if isinstance(step, NotDownloaded)]
    assert machine.built() == ["go.etcd.io/etcd/server/v3"]


@pytest.mark.usefixtures("machine", "server")
def test_a_mirror_that_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has what to write."""
    monkeypatch.setenv("EBBTIDE_RELEASES", "mirror.example")
    with pytest.raises(ToolError) as raised:
        ensure(["etcd"], on_step=silent)
    assert str(raised.value) == (
        "EBBTIDE_RELEASES is 'mirror.example': write the http or https address of a mirror of released "
        "binaries, or off to build from Go modules."
    )
    assert entries() == set()


_RUN = "from ebbtide_rehearsal.tools.find import ensure; ensure(['kubectl'], on_step=lambda step: None)"


@pytest.mark.usefixtures("machine")
def test_the_pinned_hash_of_a_release_is_what_counts(server: ReleaseServer) -> None:
    """The real table refuses the archives of this test: a mirror cannot choose what runs."""
    here = download_module.releases()[0].platform
    [pinned] = [row for row in releases() if (row.program, row.platform) == ("kubectl", here)]
    server.files[f"/{pinned.url.partition('://')[2]}"] = server.files[f"/{_HOST}/envtest.tar.gz"]
    subprocess.run([sys.executable, "-c", _RUN], check=True)
    [made] = directory().glob("kubectl-*/kubectl")
    assert _output(made) == "built"
