"""Kubernetes quantities as numbers and as text."""

from decimal import Decimal
from typing import Any

import pytest
from kubernetes.utils import quantity as untyped  # pyright: ignore[reportMissingTypeStubs] - it has none

from ebbtide.values import quantities

_official: Any = untyped


@pytest.mark.parametrize(
    "written",
    ["0", "2", "0.5", ".5", "500m", "100n", "7u", "1k", "48G", "1e3", "12E", "1Ki", "1.5Gi", "3Ei", 2],
)
def test_they_are_read_as_the_official_client_reads_them(written: str | int) -> None:
    """Quantities are parsed as by the official client, which creating a Job does not need."""
    assert quantities.parse(written) == _official.parse_quantity(written)


@pytest.mark.parametrize("written", ["", "much", "4 Gi", "1ki", "1K", "5mm", "1e3Gi", "--1", "."])
def test_what_is_malformed(written: str) -> None:
    """The API server refuses them too."""
    with pytest.raises(ValueError, match="is no quantity"):
        quantities.parse(written)


@pytest.mark.parametrize(
    ("millicores", "mebibytes", "cpu", "memory"),
    [
        (0, 0, "0", "0"),
        (500, 512, "500m", "512Mi"),
        (4000, 49152, "4", "48Gi"),
        (1500, 1536, "1500m", "1536Mi"),
    ],
)
def test_they_are_written_in_canonical_form(millicores: int, mebibytes: int, cpu: str, memory: str) -> None:
    """The API server rewrites any other form, which a plan would show as a change."""
    assert quantities.cpu(millicores) == cpu
    assert quantities.memory(mebibytes) == memory
    assert quantities.parse(cpu) == Decimal(millicores) / 1000


@pytest.mark.parametrize(("number", "written"), [(20, "20"), (1500, "1500"), (2000, "2k"), (5_000_000, "5M")])
def test_numbers_of_objects(number: int, written: str) -> None:
    """The API server answers in this form, and another would be an update each time."""
    assert quantities.count(number) == written
