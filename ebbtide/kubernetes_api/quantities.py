"""Kubernetes quantities as numbers, parsed by the official client."""

from decimal import Decimal
from typing import Any

from kubernetes.utils import quantity as untyped  # pyright: ignore[reportMissingTypeStubs] - it has none

_quantity: Any = untyped


def parse_quantity(written: Any) -> Decimal:
    """Parse a quantity: `500m` is 0.5, `1Gi` is 2^30.

    Raises:
        ValueError: the quantity is malformed.
    """
    return _quantity.parse_quantity(written)
