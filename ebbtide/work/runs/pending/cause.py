"""The cause of a workload's waiting."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

VERSION: Final = "ebbtide.dev/why/v1"
"""Version of the document of `ebbtide why --format json`."""
OBVIOUS: Final = frozenset({"New", "Starting"})
"""Causes that the phase of a workload tells."""


class Actor(StrEnum):
    """Person or team who can change a cause."""

    OWNER = "owner"
    """The user who created the workload."""
    OTHERS = "others"
    """The users of other workloads, which hold what it needs."""
    ADMINISTRATOR = "administrator"
    """An administrator of the cluster, or of the stack."""
    CLOUD = "cloud"
    """The cloud, once it has capacity."""
    TIME = "time"
    """No user: a controller continues by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause of a workload's waiting.

    Attributes:
        reason: the kind of cause, in CamelCase as in a condition.
        message: the cause, as a clause without a full stop.
        remedy: what changes it and by whom, as a clause.
        actor: who can change it.
        until: the next time at which it can start, where a controller or an estimate tells; else None.
    """

    reason: str
    message: str
    remedy: str
    actor: Actor
    until: datetime | None = None

    def __str__(self) -> str:
        """Return one sentence."""
        return f"{self.message}; {self.remedy}."

    def document(self) -> dict[str, Any]:
        """Return it as a part of the document."""
        return {
            "reason": self.reason,
            "message": self.message,
            "remedy": self.remedy,
            "actor": self.actor.value,
            "until": self.until.isoformat() if self.until else None,
        }
