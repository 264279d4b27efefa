"""Amounts and names in the arguments of workloads: CPU, memory, durations, and names in Kubernetes, with
messages for users.
"""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from ebbtide.values import durations, quantities
from ebbtide.work.errors import WorkloadError

MEBIBYTE: Final = 1024**2
LABEL_LENGTH: Final = 63
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH: Final = 253
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


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


def is_label(text: str, length: int = LABEL_LENGTH) -> bool:
    """Check a name that must be a DNS label (RFC 1123)."""
    return len(text) <= length and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Check a name that must be a DNS subdomain (RFC 1123)."""
    return len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    """Check the name of an environment variable."""
    return _VARIABLE.fullmatch(text) is not None


def is_data_key(text: str) -> bool:
    """Check a key of a Secret's or ConfigMap's data."""
    return _DATA_KEY.fullmatch(text) is not None
