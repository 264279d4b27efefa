"""Free ports, chosen so that several rehearsals at once do not choose the same ones."""

import socket
from contextlib import ExitStack
from types import TracebackType
from typing import Self

LOCALHOST = "127.0.0.1"


class Reservation:
    """Ports that nobody else is given while they are held.

    They are bound, so that the system hands them to no one who asks for a free port. Release them just before
    the program starts that is told to use them; where someone is quicker, it says so and is started again
    with others.

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
        """Let go of them all."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
