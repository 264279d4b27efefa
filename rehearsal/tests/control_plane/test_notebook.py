"""`ebbtide notebook` on a real API server: JupyterLab runs, and is reached through the forwarded port."""

import asyncio
import json
import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.commands import dev
from rehearsal.tests.control_plane.node_pools import declared_pool, running
from rehearsal.tests.control_plane.process_pods import Terminal, process_namespace

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]  # installs JupyterLab from PyPI

_DEV, _POOL = dev()


def test_a_notebook(
    control_plane: ControlPlane, tools: ControlPlaneTools, folder: Path, tmp_path: Path
) -> None:
    """A kernel starts beside the folder's code, Ctrl-C leaves the Job, and culling completes it."""
    api = control_plane.api
    place = process_namespace(api, "notebook", **{"pod-security.kubernetes.io/enforce": "restricted"})
    options = ("--pool", _POOL, "-n", place, "--code", str(folder), "--image", "python")
    words = ("notebook", "lab", *options, "--run-as-user", "1000", "--idle", "90s")
    with running(control_plane, tmp_path, declared_pool(_DEV, _POOL)):
        terminal = Terminal(tools.path("kubectl"), control_plane.plan.kubeconfig, profile(_DEV), *words)
        token = _token(terminal)
        assert [item["name"] for item in _call(token, "contents")["content"]] == ["train.py"]
        kernel = _call(token, "kernels", {"name": "python3"})
        assert asyncio.run(_printed(token, kernel["id"], "import train")) == "trained"
        terminal.process.send_signal(signal.SIGINT)
        output = terminal.read("End it: ")
        assert terminal.end() == 130
        assert "The port is closed. lab ends after 90 s without activity." in output
        again = Terminal(tools.path("kubectl"), control_plane.plan.kubeconfig, profile(_DEV), *words)
        assert _call(_token(again), "kernels")
        again.read("lab has ended. JupyterLab had no activity for 90 s (--idle)", seconds=600)
        assert again.end() == 1


def _token(terminal: Terminal) -> tuple[str, str]:
    """Return the server's port and token once they are shown."""
    output = terminal.read("Ctrl-C closes the port.", seconds=900)
    found = re.search(r"http://127\.0\.0\.1:(\d+)/lab\?token=(\w+)", output)
    assert found
    return found[1], found[2]


def _call(server: tuple[str, str], path: str, body: dict[str, Any] | None = None) -> Any:
    """Call Jupyter's API."""
    port, token = server
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/api/{path}?token={token}", data, timeout=300
    ) as answer:
        return json.load(answer)


async def _printed(server: tuple[str, str], kernel: str, code: str) -> str:
    """Return what a kernel prints when it runs a line of code."""
    port, token = server
    header = {"msg_id": "1", "msg_type": "execute_request", "session": "s", "username": "", "version": "5.3"}
    request = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}}
    url = f"http://127.0.0.1:{port}/api/kernels/{kernel}/channels?token={token}"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as channels, asyncio.timeout(300):
        await channels.send_json(request | {"content": {"code": code, "silent": False}})
        while True:
            message = await channels.receive_json()
            if message["msg_type"] == "stream":
                return message["content"]["text"].strip()
