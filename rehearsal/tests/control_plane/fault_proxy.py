"""A proxy between a command and the API server, which fails one of the command's requests."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from aiohttp import web
from yarl import URL

from ebbtide_rehearsal.cloud.control_planes import PROVIDER, VALIDATED, ApiServerProxy
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import kubeconfig

_DELAY: Final = 2.0
_HEADERS: Final = ("Accept", "Authorization", "Content-Type", "User-Agent")


class Fault(StrEnum):
    """Fault of a request."""

    KILLED = "the command is killed before the API server has it"
    KILLED_AFTER = "the API server has done it, and the command is killed before the answer"
    LOST = "the API server has done it, and the answer is lost"
    LATE = "it arrives seconds later"
    BUSY = "the API server answers 429, with Retry-After"
    ERROR = "the API server answers 500"
    GONE = "neither it nor a later one is answered"


ONCE: Final = tuple(fault for fault in Fault if fault is not Fault.GONE)
"""Faults of a single request."""


class FaultProxy(ApiServerProxy):
    """A proxy that counts the requests of commands, and fails one of them.

    Attributes:
        requests: method and path of each counted request since `inject`.
        of_engine: count the changes that the engine's Kubernetes provider makes instead.
    """

    def __init__(self, plane: ControlPlane, store: Store, cluster: str) -> None:
        self.requests: list[str] = []
        self.of_engine = False
        self.inject()
        super().__init__(plane, store, cluster)

    def inject(
        self, fault: Fault | None = None, at: int = -1, kill: Callable[[], object] = lambda: None
    ) -> None:
        """Fail a request from now on.

        Args:
            fault: what happens to it.
            at: its number, from 0.
            kill: kills the command.
        """
        self.requests.clear()
        self._fault, self._at, self._kill = fault, at, kill

    def kubeconfig(self, file: Path) -> Path:
        """Write an administrator's kubeconfig whose server is the proxy, and return its file."""
        plan = self._plane.plan
        user = {"token": plan.identities.admin.token}
        authority = plan.certificates.authority_data()
        config = kubeconfig(server=f"https://{self.host}", authority=authority, user=user)
        file.write_text(json.dumps(config))
        return file

    def _is_counted(self, request: web.Request) -> bool:
        of_engine = request.headers.get("User-Agent", "").startswith(PROVIDER)
        return of_engine is self.of_engine and (
            not of_engine or (request.method in VALIDATED | {"DELETE"} and "dryRun" not in request.query)
        )

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if not self._is_counted(request):
            return await super()._forward(request)
        number = len(self.requests)
        self.requests.append(f"{request.method} {request.path_qs}")
        fault = self._fault if number == self._at else None
        if self._fault is Fault.GONE and number >= self._at >= 0:
            fault = Fault.GONE
        match fault:
            case None:
                return await super()._forward(request)
            case Fault.LATE:
                await asyncio.sleep(_DELAY)
                return await super()._forward(request)
            case Fault.BUSY | Fault.ERROR:
                code = 429 if fault is Fault.BUSY else 500
                status = {"kind": "Status", "status": "Failure", "message": fault.value, "code": code}
                return web.json_response(status, status=code, headers={"Retry-After": "1"})
            case Fault.KILLED_AFTER | Fault.LOST:
                await self._perform(request)
            case Fault.KILLED | Fault.GONE:
                pass
        if fault in (Fault.KILLED, Fault.KILLED_AFTER):
            self._kill()
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _perform(self, request: web.Request) -> None:
        url = URL(f"{self._plane.server}{request.raw_path}", encoded=True)
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        body = await request.read() if request.can_read_body else None
        async with self._client.request(request.method, url, headers=headers, data=body) as answer:
            await answer.read()


def kill_group(leader: subprocess.Popen[str]) -> None:
    """Kill a process and those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
