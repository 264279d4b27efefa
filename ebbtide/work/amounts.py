"""Amounts in the arguments of workloads: CPU, memory and durations, with messages for users."""

from datetime import timedelta
from decimal import Decimal
from typing import Final

from ebbtide.values import durations, quantities
from ebbtide.work.errors import WorkloadError

MEBIBYTE: Final = 1024**2


def _parsed(text: str) -> Decimal:
    """Parse a quantity; 0 for a malformed one."""
    try:
        return quantities.parse(text)
    except ValueError:
        return Decimal(0)


def millicores(text: str) -> int:
    """Parse CPU in Kubernetes' notation (`2`, `0.5`, `500m`), in millicores.

    Raises:
        WorkloadError: it is not an amount of CPU.
    """
    amount = _parsed(text) * 1000
    if amount <= 0 or amount != int(amount):
        raise WorkloadError(
            f"cpu is {text!r}, which is not an amount of CPU: write cores, such as 4, or 500m."
        )
    return int(amount)


def memory_bytes(text: str, name: str = "memory") -> int:
    """Parse memory in Kubernetes' notation (`48Gi`, `48G`), in bytes.

    Args:
        text: the amount.
        name: the field's name, for the message.

    Raises:
        WorkloadError: it is not an amount of memory, or less than 1Mi.
    """
    amount = int(_parsed(text))
    if amount < MEBIBYTE:
        raise WorkloadError(
            f"{name} is {text!r}, which is not an amount of memory for a pod: write it as 48Gi or 512Mi."
        )
    return amount


def seconds(name: str, duration: str | timedelta) -> int:
    """Convert a duration (`90m`, `12h`, `7d`, or a timedelta) to seconds.

    Args:
        name: the field's name, for the message.
        duration: the duration.

    Raises:
        WorkloadError: it is not a duration of a second or more.
    """
    try:
        total = int(durations.parse(duration).total_seconds())
    except ValueError:
        total = 0
    if total < 1:
        raise WorkloadError(f"{name} is {duration!r}, which is not a duration: write it as 90m, 12h or 7d.")
    return total
