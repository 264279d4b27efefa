"""Processes that end with their parent, and the proxy into the cluster."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide_rehearsal.control_plane.processes import AddressTakenError, ControlPlaneError, Processes
from ebbtide_rehearsal.control_plane.routes import EgressProxy, NoRouteError
from tests.repository import ROOT

_STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo here; while :; do sleep 1; done"]

_PARENT = """
import sys, threading
from pathlib import Path
from ebbtide_rehearsal.control_plane.processes import Processes

here = Path(sys.argv[1])
processes = Processes()
started = []
for command in (["sleep", "300"], sys.argv[2:]):
    worker = threading.Thread(
        target=lambda: started.append(processes.start("it", command, log=here / "log", directory=here))
    )
    worker.start()
    worker.join()
print(processes.sockets, *(process.child.pid for process in started), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def processes() -> Iterator[Processes]:
    """A group that is closed after the test."""
    with Processes() as group:
        yield group


def _ends(pid: int) -> bool:
    """Return whether a process ends soon; a zombie has ended, too."""
    command = ["/bin/ps", "-o", "stat=", "-p", str(pid)]
    for _ in range(100):
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if not listed or listed.startswith("Z"):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_survives(how: signal.Signals, tmp_path: Path) -> None:
    """However the parent ends, its children end, also those that ignore a signal and whose thread is gone."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path), *_STUBBORN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        sockets, *children = parent.stdout.readline().split()
        parent.send_signal(how)
    assert len(children) == 2
    assert all(_ends(int(child)) for child in children)
    deadline = time.monotonic() + 10
    while Path(sockets).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_end_is_said_with_the_last_words(processes: Processes, tmp_path: Path) -> None:
    """The error names the program, its status and its last output."""
    command = ["/bin/sh", "-c", "echo the wheel came off; exit 7"]
    process = processes.start("cart", command, log=tmp_path / "log", directory=tmp_path)
    process.child.wait()
    assert not process.running
    assert str(process.ended()) == "cart ended with status 7. Its last output:\nthe wheel came off"


def test_a_lost_race_for_a_port_is_told_apart(processes: Processes, tmp_path: Path) -> None:
    """A port that is already in use is a separate error, which is retried with another port."""
    command = ["/bin/sh", "-c", "echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1"]
    process = processes.start("it", command, log=tmp_path / "log", directory=tmp_path)
    process.child.wait()
    assert isinstance(process.ended(), AddressTakenError)


def test_what_cannot_be_run_is_said(processes: Processes, tmp_path: Path) -> None:
    """A missing program is one sentence."""
    with pytest.raises(
        ControlPlaneError, match=r"^cart cannot be run: /no/cart: No such file or directory\.$"
    ):
        processes.start("cart", ["/no/cart"], log=tmp_path / "log", directory=tmp_path)


def test_nothing_of_ours_is_handed_on(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of this machine would lead a control plane away from itself."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    environment = {"GREETING": "hello"}
    process = processes.start(
        "env", ["env"], log=tmp_path / "log", directory=tmp_path, environment=environment
    )
    process.child.wait()
    lines = set((tmp_path / "log").read_text().splitlines())
    assert {f"HOME={tmp_path}", "GREETING=hello", f"PATH={os.defpath}"} <= lines
    assert not [line for line in lines if "PROXY" in line]


def test_a_stubborn_one_is_ended_by_force(processes: Processes, tmp_path: Path) -> None:
    """A signal first, which it ignores; what it used is given back."""
    log = tmp_path / "log"
    process = processes.start("mule", _STUBBORN, log=log, directory=tmp_path)
    while "here" not in process.last_words():
        time.sleep(0.05)
    assert processes.memory() > 0
    processes.stop(process)
    assert process.child.returncode == -signal.SIGKILL
    assert processes.memory() == 0


@pytest.fixture
def proxy(processes: Processes) -> Iterator[Path]:
    """A proxy to a server that answers each line in capitals; port 1 leads nowhere."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = server.accept()
        except OSError:
            return  # no client connected
        with connection:
            while data := connection.recv(1024):
                connection.sendall(data.upper())

    def route(host: str, port: int) -> tuple[str, int]:
        if port == 1:
            raise NoRouteError(f"no ready pod behind {host}")
        return server.getsockname()

    worker = threading.Thread(target=serve, daemon=True)
    worker.start()
    started = EgressProxy(processes.sockets / "egress", route)
    started.start()
    yield processes.sockets / "egress"
    started.close()
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)  # wakes who waits for a connection
    server.close()
    worker.join()


def _ask(proxy: Path, port: int) -> tuple[socket.socket, str]:
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(str(proxy))
    asking.sendall(f"CONNECT 10.96.0.7:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return asking, asking.recv(1024).decode()


def test_a_connection_is_passed_on_both_ways(proxy: Path) -> None:
    """Bytes after `CONNECT` reach the process, and its answer returns."""
    asking, answer = _ask(proxy, 443)
    with asking:
        assert answer.startswith("HTTP/1.1 200 ")
        asking.sendall(b"hello")
        assert asking.recv(1024) == b"HELLO"


def test_no_way_is_said_with_its_reason(proxy: Path) -> None:
    """The API server passes the reason on to the client."""
    asking, answer = _ask(proxy, 1)
    with asking:
        assert answer.startswith("HTTP/1.1 503 no ready pod behind 10.96.0.7\r\n")
