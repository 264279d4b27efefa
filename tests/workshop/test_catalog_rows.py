"""A contributor's new rows in the catalog break no test."""

import sys

import pytest

from tests.repository import ran

_PLUGIN = "tests.workshop.extended_catalog"
_DEPENDENT = (
    "tests/contract/test_idle_price.py",
    "tests/unit/catalog",
    "tests/unit/model/test_bad_declarations.py::test_every_fault_is_reported",
    "tests/unit/model/test_bad_declarations.py::test_every_warning_is_reported",
)
"""The tests whose results follow from the catalog."""


def test_rows_break_no_test() -> None:
    """Machine types, accelerators, prices and quotas can be added without changing any other test."""
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-p", _PLUGIN, "-k", "not narrow_terminal")
    ran(sys.executable, "-m", "pytest", *options, *_DEPENDENT)


@pytest.mark.parametrize("name", ["n5d-standard-2", "a4x-maxgpu-8g-metal"])
def test_the_rows_are_there(name: str) -> None:
    """The plugin reaches the catalog: a machine type that only it has is found."""
    code = (
        f"import {_PLUGIN}\nfrom ebbtide.declaration.catalog.machines import find_machine\n"
        "from ebbtide.values.cloud_kind import CloudKind\n"
        f"assert find_machine(CloudKind.GKE, {name!r})"
    )
    ran(sys.executable, "-c", code)
