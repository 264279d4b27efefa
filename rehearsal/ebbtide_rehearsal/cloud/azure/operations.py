"""Operations in progress, with which concurrent ones conflict."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock

from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.azure.ids import last, within
from ebbtide_rehearsal.cloud.provider import RefusedError

_WAIT = (
    "is in progress, please wait for it to finish before starting a new operation. "
    "See https://aka.ms/aks-pending-operation for more details"
)


class Operations:
    """Operations in progress, by resource id."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._underway: dict[str, str] = {}

    @contextmanager
    def on(
        self, identity: str, doing: str, otherwise: Callable[[str, str], str] | None = None
    ) -> Generator[None]:
        """Run an operation until the end of the block.

        Args:
            identity: id of its resource. No operation may be in progress on it, above it or below it.
            doing: Azure's name of the operation, such as `Creating`.
            otherwise: returns the refusal for the id and the name of the operation in progress; by default
                AKS's.

        Raises:
            RefusedError: another operation is in progress.
        """
        with self._lock:
            for other, word in self._underway.items():
                if within(other, identity) or within(identity, other):
                    raise RefusedError((otherwise or _pending)(other, word))
            self._underway[identity] = doing
        try:
            yield
        finally:
            with self._lock:
                del self._underway[identity]


def _pending(identity: str, doing: str) -> str:
    """Format AKS's refusal of concurrent operations (cilium/cilium#25944;
    Azure/terraform-azurerm-avm-ptn-aks-production#25).

    Pools of one cluster may be created concurrently since 2020 (Azure/AKS#1913); the azurerm provider has
    no lock for it (2026-08).
    """
    is_pool = "/agentpools/" in identity.lower()
    operation = (
        f"Another agentpool operation ({last(identity)} - {doing})"
        if is_pool
        else f"Another operation ({doing})"
    )
    return refused("OperationNotAllowed", f"Operation is not allowed: {operation} {_WAIT}", status=CONFLICT)
