"""Free ports, reserved so that parallel rehearsals use different ones."""

import socket
from contextlib import ExitStack
from types import TracebackType
from typing import Self

LOCALHOST = "127.0.0.1"


class PortReservation:
    """Reserved ports.

    They are bound, so that the system does not assign them. Release them just before their program starts; if
    another process takes one first, the program fails and is restarted with other ports.

    Attributes:
        ports: their numbers.
    """

    def __init__(self, count: int) -> None:
        self._held = ExitStack()
        sockets = [self._held.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind((LOCALHOST, 0))
        self.ports = tuple(int(item.getsockname()[1]) for item in sockets)

    def release(self) -> None:
        """Release all ports."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
