"""Kubernetes' quantities as numbers, by the official client."""

from decimal import Decimal
from typing import Any

from kubernetes.utils import quantity as untyped  # pyright: ignore[reportMissingTypeStubs] - it has none

_quantity: Any = untyped


def parse_quantity(written: Any) -> Decimal:
    """A quantity as a number: `500m` is 0.5, `1Gi` is 2^30.

    Raises:
        ValueError: it is none.
    """
    return _quantity.parse_quantity(written)
