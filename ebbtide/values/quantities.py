"""Kubernetes quantities: one parser and one format.

It uses only the standard library, since pipeline authors may have nothing else.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

LARGEST: Final = 2**31 - 1
"""Largest int32, the type of counts in the clouds' APIs (GKE v1 API; Microsoft.ContainerService 2025-09-01)
and in Kubernetes'."""

_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,2})|([a-zA-Z]*))")
_UNITS: Final = {
    **{unit: Decimal(1000) ** power for power, unit in enumerate(["n", "u", "m", "", *"kMGTPE"], start=-3)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


@lru_cache(maxsize=1024)
def parse(written: str | float) -> Decimal:
    """Parse a quantity: `500m` is 0.5, `1Gi` is 2^30 (Kubernetes API, resource.Quantity).

    Raises:
        ValueError: the quantity is malformed.
    """
    match = _QUANTITY.fullmatch(str(written))
    if match is None or (match[3] or "") not in _UNITS:
        raise ValueError(f"{written!r} is not a quantity")
    return Decimal(match[1]) * (Decimal(10) ** int(match[2]) if match[2] else _UNITS[match[3]])


def cpu(millicores: int) -> str:
    """Format CPU in Kubernetes' canonical form: `500m`, `4`."""
    return _in_largest_unit(millicores, 1000, ("m", ""))


def memory(mebibytes: int) -> str:
    """Format memory in Kubernetes' canonical form: `512Mi`, `48Gi`."""
    return _in_largest_unit(mebibytes, 1024, ("Mi", "Gi", "Ti"))


def count(number: int) -> str:
    """Format a number of objects in Kubernetes' canonical form: `20`, `2k`."""
    return _in_largest_unit(number, 1000, ("", "k", "M", "G"))


def _in_largest_unit(amount: int, base: int, units: tuple[str, ...]) -> str:
    unit = 0
    while amount and unit < len(units) - 1 and amount % base == 0:
        amount //= base
        unit += 1
    return f"{amount}{units[unit]}" if amount else "0"
