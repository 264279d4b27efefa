"""Names that a message suggests."""

import csv
import re
from importlib import resources

import pytest

from ebbtide.declaration.providers.constraints import words_of_pattern
from ebbtide.text import did_you_mean


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("maximumUsdPerMonth", "maximumUsdPerHour"),
        ("maximumEurPerHour", "maximumUsdPerHour"),
        ("minSurge", "maxSurge"),
        ("disableAutoRepair", "enableAutoRepair"),
        ("TLS1_4", "TLS1_3"),
        ("n2-highcpu-18", "n2-highcpu-8"),
        ("us-central9", "us-central2"),
    ],
)
def test_no_suggestion_has_another_unit_bound_or_number(written: str, known: str) -> None:
    """Such a name would be accepted, and mean something else."""
    assert did_you_mean(written, [known]) == "."


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("sizeGb", "sizeGib"),
        ("maximumUsdPerHuor", "maximumUsdPerHour"),
        ("maximum", "max"),
        ("nvidia-tesla-t44", "nvidia-tesla-t4"),
        ("n1-highmen-8", "n1-highmem-8"),
        ("us-centrl1", "us-central1"),
    ],
)
def test_a_slip_has_a_suggestion(written: str, known: str) -> None:
    """A wrong letter, a repeated digit, and another spelling of a unit."""
    assert did_you_mean(written, [known], 0.5) == f"; did you mean {known}?"


def test_every_pattern_has_words_and_an_example() -> None:
    """A message has them instead of a regular expression; each example matches its pattern."""
    folder = resources.files("ebbtide.declaration.providers") / "schemas"
    words = {
        row["pattern"]: row for row in csv.DictReader((folder / "patterns.csv").read_text().splitlines())
    }
    for table in ("gcp.csv", "azure_native.csv", "kubernetes.csv", "kueue.csv", "noted.csv"):
        for row in csv.DictReader((folder / table).read_text().splitlines()):
            if row["constraint"] == "pattern":
                assert re.search(row["value"], words[row["value"]]["example"])
                assert row["value"] not in words_of_pattern(row["value"])
