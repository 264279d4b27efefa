"""Amounts as people write them: CPU, memory and durations."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from ebbtide.workloads.errors import WorkloadError

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)")
_BYTES: Final = {
    "": 1,
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTP", start=1)},
    **{letter: 1000**power for power, letter in enumerate("kMGTP", start=1)},
}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
MEBIBYTE: Final = 1024**2


def _split(text: str) -> tuple[Decimal, str] | None:
    match = _NUMBER.fullmatch(text)
    return (Decimal(match[1]), match[2]) if match else None


def millicores(text: str) -> int:
    """CPU as Kubernetes has it (`2`, `0.5`, `500m`), in millicores.

    Raises:
        WorkloadError: it is no amount of CPU.
    """
    match _split(text):
        case (number, "") if number * 1000 == (whole := int(number * 1000)) and whole > 0:
            return whole
        case (number, "m") if number == (whole := int(number)) and whole > 0:
            return whole
        case _:
            raise WorkloadError(f"cpu is {text!r}, which is no amount of CPU: write cores, as 4, or 500m.")


def memory_bytes(text: str, name: str = "memory") -> int:
    """Memory as Kubernetes has it (`48Gi`, `48G`), in bytes.

    Args:
        text: the amount.
        name: of the field, for the message.

    Raises:
        WorkloadError: it is no amount of memory.
    """
    match _split(text):
        case (number, unit) if unit in _BYTES and (whole := int(number * _BYTES[unit])) >= MEBIBYTE:
            return whole
        case _:
            raise WorkloadError(
                f"{name} is {text!r}, which is no amount of memory for a pod: write it as 48Gi or 512Mi."
            )


def seconds(name: str, given: str | timedelta) -> int:
    """Convert a duration (`90m`, `12h`, `7d`, or a timedelta) to seconds.

    Args:
        name: the field's name, for the message.
        given: the duration.

    Raises:
        WorkloadError: it is no duration of a second or more.
    """
    if isinstance(given, timedelta):
        total = int(given.total_seconds())
    else:
        match _split(given):
            case (number, unit) if unit in _SECONDS:
                total = int(number * _SECONDS[unit])
            case _:
                total = 0
    if total < 1:
        raise WorkloadError(f"{name} is {given!r}, which is no duration: write it as 90m, 12h or 7d.")
    return total


def in_words(length: int) -> str:
    """Seconds in the largest unit that they are a whole number of."""
    unit = next(unit for unit in ("d", "h", "m", "s") if length % _SECONDS[unit] == 0)
    return f"{length // _SECONDS[unit]}{unit}"
